//! Notifications of a household with a media server: people are told that a title is ready once it plays.

use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::conversation::notifications::quiet_hours::QuietHours;
use dialarr::media_servers::CatalogIds;
use jiff::SignedDuration;

use serde_json::json;

use crate::harness::model::{adds_movie, calls, finds, says};
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

const DUNE: i64 = 438_631;
const THE_BEAR: i64 = 403_294;
const MINUTE: i64 = 60;
const READY: &str = "Dune (2021) is ready to watch.";
const DELAYED: &str = "Dune (2021) is downloaded, but not on Jellyfin yet. I'll text you when it plays.";

/// Starts with Bob following Dune and the second season of The Bear, both missing; Ann is an admin.
async fn app_with_bob_waiting(setup: Setup) -> TestApp {
    let app = setup.jellyfin().start().await;
    app.register_user(BOB, Has::AddRight).await;
    app.radarr().add(movie("Dune").year(2021).tmdb(DUNE));
    app.sonarr().add(series("The Bear").year(2022).tvdb(THE_BEAR).seasons(2).episodes(6));
    app.follow_movie(BOB, DUNE).await;
    app.follow_season(BOB, THE_BEAR, 2).await;
    app.later(0).await;
    app
}

async fn import_dune(app: &TestApp) {
    app.radarr().download_and_import("Dune");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    app.later(1).await;
}

/// Adds Dune to Jellyfin, as a scan does.
fn show_dune(app: &TestApp) -> u64 {
    let ids = CatalogIds { tmdb: Some(DUNE), ..CatalogIds::default() };
    app.jellyfin().add_movie(("Dune", 2021), ids, SignedDuration::ZERO)
}

async fn pass_minutes(app: &TestApp, minutes: i64) {
    for _ in 0..minutes {
        app.later(MINUTE).await;
    }
}

#[tokio::test]
async fn imported_movie_is_ready_once_jellyfin_shows_it() {
    let app = app_with_bob_waiting(Setup::default()).await;
    import_dune(&app).await;
    assert_eq!(app.messages_to(BOB), [""; 0]);
    assert_eq!(app.jellyfin().scans(), ["/media/movies/Dune (2021)"]);
    pass_minutes(&app, 5).await;
    assert_eq!(app.messages_to(BOB), [""; 0]);
    show_dune(&app);
    app.later(MINUTE).await;
    assert_eq!(app.messages_to(BOB), [READY]);
    pass_minutes(&app, 5).await;
    assert_eq!(app.messages_to(BOB), [READY]);
}

#[tokio::test]
async fn person_is_told_of_a_delay_once_and_of_the_title_later() {
    let mut app = app_with_bob_waiting(Setup::default()).await;
    import_dune(&app).await;
    pass_minutes(&app, 22).await;
    assert_eq!(app.messages_to(BOB), [DELAYED]);
    app.restart().await;
    pass_minutes(&app, 30).await;
    assert_eq!(app.messages_to(BOB), [DELAYED]);
    show_dune(&app);
    app.later(MINUTE).await;
    assert_eq!(app.messages_to(BOB), [DELAYED, READY]);
    pass_minutes(&app, 90).await;
    assert_eq!(app.messages_to(BOB), [DELAYED, READY]);
    assert_eq!(app.messages_to(ANN), [""; 0]);
}

#[tokio::test]
async fn admins_learn_the_likely_cause_once_after_two_hours() {
    let app = app_with_bob_waiting(Setup::default()).await;
    app.jellyfin().set_folders(&[("Shows", "/media/shows")]);
    import_dune(&app).await;
    pass_minutes(&app, 180).await;
    assert_eq!(app.messages_to(BOB), [DELAYED]);
    let expected = "Dune (2021) was imported more than 2 hours ago, but Jellyfin does not show it. No library there has its folder.";
    assert_eq!(app.messages_to(ANN), [expected]);
    assert_eq!(app.jellyfin().scans(), [""; 0]);
    show_dune(&app);
    app.later(15 * MINUTE).await;
    assert_eq!(app.messages_to(BOB), [DELAYED, READY]);
}

#[tokio::test]
async fn title_that_never_plays_is_given_up_after_a_day() {
    let app = app_with_bob_waiting(Setup::default()).await;
    import_dune(&app).await;
    for _ in 0..3 {
        app.later(12 * 60 * MINUTE).await;
    }
    let asked = app.jellyfin().requests().len();
    show_dune(&app);
    app.later(15 * MINUTE).await;
    assert_eq!(app.messages_to(BOB), [DELAYED]);
    assert_eq!(app.jellyfin().requests().len(), asked);
}

#[tokio::test]
async fn server_that_is_down_for_a_day_keeps_no_notification() {
    let app = app_with_bob_waiting(Setup::default()).await;
    app.jellyfin().set_status(Some(502));
    import_dune(&app).await;
    for _ in 0..3 {
        app.later(12 * 60 * MINUTE).await;
    }
    assert_eq!(app.last_to(BOB), READY);
}

#[tokio::test]
async fn episode_that_never_plays_does_not_hold_back_the_others() {
    let app = app_with_bob_waiting(Setup::default()).await;
    let ids = CatalogIds { tvdb: Some(THE_BEAR), ..CatalogIds::default() };
    let bear = app.jellyfin().add_show(("The Bear", 2022), ids, SignedDuration::ZERO);
    app.jellyfin().add_episode(bear, (2, 1));
    for number in 1..=2 {
        let title = format!("The Bear S02E{number:02}");
        app.sonarr().download_and_import(&title);
        app.receive_event("sonarr", &app.sonarr().import_event_json(&title)).await;
    }
    pass_minutes(&app, 15).await;
    assert_eq!(app.messages_to(BOB), [""; 0]);
    pass_minutes(&app, 8).await;
    let delayed = "The Bear S02E02 is downloaded, but not on Jellyfin yet. I'll text you when it plays.";
    assert_eq!(app.messages_to(BOB), ["The Bear S02E01 is ready to watch.", delayed]);
}

#[tokio::test]
async fn delay_in_quiet_hours_is_told_after_them_if_it_lasts() {
    let app = app_with_bob_waiting(
        Setup::default().with(|settings| settings.quiet_hours = QuietHours::parse("20-7")),
    )
    .await;
    import_dune(&app).await;
    pass_minutes(&app, 125).await;
    assert_eq!(app.messages_to(BOB), [""; 0]);
    app.later(10 * 60 * MINUTE).await;
    assert_eq!(app.messages_to(BOB), [DELAYED]);
}

#[tokio::test]
async fn server_that_is_down_means_unknown_and_not_missing() {
    let app = app_with_bob_waiting(Setup::default()).await;
    app.jellyfin().set_status(Some(502));
    import_dune(&app).await;
    pass_minutes(&app, 22).await;
    let unknown = "Dune (2021) is downloaded, but I can't reach Jellyfin to see whether it plays.";
    assert_eq!(app.messages_to(BOB), [unknown]);
    show_dune(&app);
    app.jellyfin().set_status(None);
    app.later(MINUTE).await;
    assert_eq!(app.messages_to(BOB), [unknown, READY]);
}

#[tokio::test]
async fn quiet_hours_keep_a_delay_that_ends_by_the_morning() {
    let app = app_with_bob_waiting(
        Setup::default().with(|settings| settings.quiet_hours = QuietHours::parse("20-7")),
    )
    .await;
    import_dune(&app).await;
    pass_minutes(&app, 40).await;
    show_dune(&app);
    app.later(MINUTE).await;
    assert_eq!(app.messages_to(BOB), [""; 0]);
    app.later(10 * 60 * MINUTE).await;
    assert_eq!(app.messages_to(BOB), [READY]);
}

#[tokio::test]
async fn episodes_are_ready_once_their_files_play() {
    let app = app_with_bob_waiting(Setup::default()).await;
    let ids = CatalogIds { tvdb: Some(THE_BEAR), ..CatalogIds::default() };
    let bear = app.jellyfin().add_show(("The Bear", 2022), ids, SignedDuration::ZERO);
    for number in 1..=2 {
        app.jellyfin().add_missing_episode(bear, (2, number));
        let title = format!("The Bear S02E{number:02}");
        app.sonarr().download_and_import(&title);
        app.receive_event("sonarr", &app.sonarr().import_event_json(&title)).await;
    }
    app.later(61).await;
    app.jellyfin().add_episode(bear, (2, 1));
    pass_minutes(&app, 2).await;
    assert_eq!(app.messages_to(BOB), [""; 0]);
    app.jellyfin().add_episode(bear, (2, 2));
    app.later(MINUTE).await;
    assert_eq!(app.messages_to(BOB), ["The Bear: 2 new episodes of season 2 are ready."]);
}

#[tokio::test]
async fn import_that_nobody_waits_for_asks_no_media_server() {
    let app = Setup::default().jellyfin().start().await;
    app.radarr().add(movie("Dune").year(2021).tmdb(DUNE));
    app.later(0).await;
    import_dune(&app).await;
    pass_minutes(&app, 3).await;
    assert_eq!(app.jellyfin().requests(), [""; 0]);
}

#[tokio::test]
async fn server_that_fails_is_asked_once_in_a_round() {
    let app = app_with_bob_waiting(Setup::default()).await;
    app.radarr().add(movie("Heat").year(1995).tmdb(949));
    app.follow_movie(BOB, 949).await;
    app.jellyfin().set_status(Some(500));
    for title in ["Dune", "Heat"] {
        app.radarr().download_and_import(title);
        app.receive_event("radarr", &app.radarr().import_event_json(title)).await;
    }
    app.later(1).await;
    let asked = app.jellyfin().requests().len();
    app.later(MINUTE).await;
    assert_eq!(app.jellyfin().requests()[asked..], ["GET /Items"]);
    show_dune(&app);
    app.jellyfin().set_status(None);
    app.later(MINUTE).await;
    assert_eq!(app.messages_to(BOB), [READY]);
}

/// Starts without a model, with Dune and the first season of The Bear on disk.
async fn app_with_titles_on_disk(setup: Setup) -> TestApp {
    let app = setup.keyword_responder().start().await;
    app.register_user(BOB, Has::AddRight).await;
    app.radarr().add(movie("Dune").id(7).year(2021).tmdb(DUNE).size_gb(21.4));
    app.sonarr().add(series("The Bear").id(4).year(2022).tvdb(THE_BEAR).seasons(1).episodes(2).size_gb(8.0));
    app
}

#[tokio::test]
async fn question_whether_a_title_is_ready_asks_the_media_server() {
    let app = app_with_titles_on_disk(Setup::default().jellyfin()).await;
    let missing = "Dune (2021) is downloaded, but not on Jellyfin yet.";
    for question in ["is dune ready?", "why is dune not here?"] {
        assert_eq!(
            app.sms_from(BOB, question).await,
            format!("{missing} Its library may not be scanned yet.")
        );
    }
    assert_eq!(app.sms("is dune ready?").await, format!("{missing} Check that its library is scanned."));
    show_dune(&app);
    app.later(MINUTE).await;
    assert_eq!(app.sms("is dune ready?").await, "Dune (2021) is ready on Jellyfin.");
}

#[tokio::test]
async fn question_about_a_show_asks_for_the_episodes_on_disk() {
    let app = app_with_titles_on_disk(Setup::default().jellyfin()).await;
    let ids = CatalogIds { tvdb: Some(THE_BEAR), ..CatalogIds::default() };
    let bear = app.jellyfin().add_show(("The Bear", 2022), ids, SignedDuration::ZERO);
    app.jellyfin().add_episode(bear, (1, 1));
    let partly = "The Bear (2022) season 1 is downloaded, but not all of it is on Jellyfin yet.";
    assert_eq!(app.sms("is the bear ready?").await, partly);
    app.jellyfin().add_episode(bear, (1, 2));
    assert_eq!(app.sms("is the bear ready?").await, "The Bear (2022) season 1 is ready on Jellyfin.");
}

#[tokio::test]
async fn server_that_is_down_does_not_hide_that_a_title_is_downloaded() {
    let app = app_with_titles_on_disk(Setup::default().jellyfin()).await;
    app.jellyfin().set_status(Some(502));
    let unknown = "Dune (2021) is downloaded, but I can't reach Jellyfin to see whether it plays.";
    assert_eq!(app.sms("is dune ready?").await, unknown);
}

#[tokio::test]
async fn title_on_disk_is_there_in_a_household_without_media_server() {
    let app = app_with_titles_on_disk(Setup::default()).await;
    assert_eq!(app.sms("is dune ready?").await, "Dune (2021) is there, 21.4 GB.");
}

#[tokio::test]
async fn model_learns_whether_the_titles_it_asks_about_play() {
    let app = app_with_bob_waiting(Setup::default()).await;
    app.radarr().add(movie("Heat").id(8).year(1995).tmdb(949).size_gb(18.2));
    let why = json!({ "type": "movie", "id": 8 });
    app.model_plays([finds("heat"), calls("why_missing", why), says("Not yet.")]);
    app.sms("is heat ready?").await;
    let expected = r#""media_server":"Jellyfin","playable":false"#;
    assert!(app.results().iter().any(|result| result.contains(expected)), "{:?}", app.results());
}

#[tokio::test]
async fn status_names_a_requested_movie_that_does_not_play_yet() {
    let app = app_with_bob_waiting(Setup::default()).await;
    app.radarr().add_to_catalog(movie("Heat").year(1995).tmdb(949));
    let [searches, adds] = adds_movie("Heat", 949);
    app.model_plays([searches, adds, says("Added.")]);
    app.sms_from(BOB, "add heat").await;
    app.radarr().download_and_import("Heat");
    app.model_plays([calls("check_status", json!({})), says("Not on Jellyfin yet.")]);
    app.sms_from(BOB, "is it ready?").await;
    let expected = "Heat (1995) is downloaded, but not on Jellyfin yet. Its library may not be scanned yet.";
    assert!(app.results().iter().any(|result| result.contains(expected)), "{:?}", app.results());
}

#[tokio::test]
async fn details_of_a_title_on_disk_say_whether_it_plays() {
    let app = app_with_titles_on_disk(Setup::default().jellyfin()).await;
    let ids = CatalogIds { tvdb: Some(THE_BEAR), ..CatalogIds::default() };
    let bear = app.jellyfin().add_show(("The Bear", 2022), ids, SignedDuration::ZERO);
    let details = app.sms("tell me about dune").await;
    assert!(details.contains(" It is downloaded, but not on Jellyfin yet."), "{details}");
    let missing = app.sms("do we have season 1 of the bear").await;
    assert!(missing.contains(" It is downloaded, but not on Jellyfin yet."), "{missing}");
    app.jellyfin().add_episode(bear, (1, 1));
    let partly = app.sms("do we have season 1 of the bear").await;
    assert!(partly.contains(" It is downloaded, but not all of it is on Jellyfin yet."), "{partly}");
    let whole = app.sms("tell me about the bear").await;
    assert!(whole.contains(" It is ready on Jellyfin."), "{whole}");
}

#[tokio::test]
async fn wish_for_a_title_that_does_not_play_yet_is_kept() {
    let app = app_with_bob_waiting(Setup::default()).await;
    app.radarr().add(movie("Heat").id(8).year(1995).tmdb(949).size_gb(18.2));
    let follows = calls("tell_me_when_ready", json!({ "type": "movie", "id": 8 }));
    app.model_plays([finds("heat"), follows, says(""), says("")]);
    let reply = app.sms("tell me when heat is ready").await;
    assert!(reply.starts_with("Heat (1995) is downloaded, but not on Jellyfin yet."), "{reply}");
    assert!(app.results().iter().any(|result| result.contains("\"playable\":false")), "{:?}", app.results());
}
