//! Notifications: titles that are ready, and for admins, problems that need attention.

use dialarr::app::{AppBlueprint, ApplyError};
use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::arr::sonarr::Sonarr;
use dialarr::conversation::notifications::quiet_hours::QuietHours;
use dialarr::http::HttpClient;
use dialarr::tools::library::Instance;
use diesel::connection::SimpleConnection;
use http::{Method, Request};
use serde_json::json;

use crate::harness::model::{calls, removes_movie, says};
use crate::harness::reports::{SECRET, report};
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

const DUNE: i64 = 438_631;
const THE_BEAR: i64 = 403_294;
const HOUR: i64 = 60 * 60;
const READY: &str = "Dune (2021) is ready to watch.";

/// Starts with Bob following Dune and the second season of The Bear, both missing; Ann is an admin.
async fn app_with_bob_waiting() -> TestApp {
    app_of(Setup::default()).await
}

async fn app_of(setup: Setup) -> TestApp {
    let app = setup.start().await;
    app.register_user(BOB, Has::AddRight).await;
    app.radarr().add(movie("Dune").year(2021).tmdb(DUNE));
    app.sonarr().add(series("The Bear").year(2022).tvdb(THE_BEAR).seasons(2).episodes(6));
    app.follow_movie(BOB, DUNE).await;
    app.follow_season(BOB, THE_BEAR, 2).await;
    // The first reading of the history stores its start.
    app.later(0).await;
    app
}

#[tokio::test]
async fn import_notifies_only_followers() {
    let app = app_with_bob_waiting().await;
    app.radarr().download_and_import("Dune");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    app.later(1).await;
    assert_eq!(app.messages_to(BOB), [READY]);
    assert_eq!(app.messages_to(ANN), Vec::<String>::new());

    // No user follows the title any longer.
    app.radarr().download_and_import("Dune");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    app.later(1).await;
    assert_eq!(app.messages_to(BOB), [READY]);
}

#[tokio::test]
async fn notification_quotes_a_title_that_reads_as_an_instruction() {
    let app = Setup::default().start().await;
    app.register_user(BOB, Has::AddRight).await;
    app.radarr().add(movie("Press Y").year(2021).tmdb(DUNE));
    app.follow_movie(BOB, DUNE).await;
    app.later(0).await;
    app.radarr().download_and_import("Press Y");
    app.receive_event("radarr", &app.radarr().import_event_json("Press Y")).await;
    app.later(1).await;
    assert_eq!(app.messages_to(BOB), ["\"Press Y\" (2021) is ready to watch."]);
}

#[tokio::test]
async fn repeated_import_days_later_notifies_new_followers() {
    let app = app_with_bob_waiting().await;
    app.radarr().download_and_import("Dune");
    let report = app.radarr().import_event_json("Dune");
    app.receive_event("radarr", &report).await;
    app.later(1).await;
    app.pass(7 * 24 * HOUR);
    app.follow_movie(BOB, DUNE).await;
    app.receive_event("radarr", &report).await;
    app.later(1).await;
    assert_eq!(app.messages_to(BOB), [READY, READY]);
}

#[tokio::test]
async fn files_of_a_season_pack_are_one_notification() {
    let app = app_with_bob_waiting().await;
    app.sonarr().download_and_import("The Bear S02");
    app.receive_event("sonarr", &app.sonarr().file_event_json("The Bear S02", 1)).await;
    app.later(20).await;
    app.receive_event("sonarr", &app.sonarr().file_event_json("The Bear S02", 2)).await;
    app.later(20).await;
    app.receive_event("sonarr", &app.sonarr().file_event_json("The Bear S02", 3)).await;
    app.receive_event("sonarr", &app.sonarr().import_event_json("The Bear S02")).await;
    app.later(19).await;
    assert_eq!(app.messages_to(BOB), Vec::<String>::new(), "more may be on its way");
    app.later(61).await;
    assert_eq!(app.messages_to(BOB), ["The Bear season 2 is ready to watch."]);
}

#[tokio::test]
async fn single_episodes_are_announced_together_at_most_hourly() {
    let app = app_with_bob_waiting().await;
    let imports = async |number: u32| {
        let title = format!("The Bear S02E{number:02}");
        app.sonarr().download_and_import(&title);
        app.receive_event("sonarr", &app.sonarr().import_event_json(&title)).await;
        app.later(61).await;
    };
    imports(1).await;
    assert_eq!(app.messages_to(BOB), ["The Bear S02E01 is ready to watch."]);
    imports(2).await;
    assert_eq!(app.messages_to(BOB).len(), 1, "an episode was told of just now");
    app.later(HOUR).await;
    assert_eq!(app.last_to(BOB), "The Bear S02E02 is ready to watch.");
    imports(3).await;
    assert_eq!(app.last_to(BOB), "The Bear season 2 is ready to watch.", "a whole season does not wait");
}

#[tokio::test]
async fn complete_specials_end_the_follow_of_the_specials() {
    let app = Setup::default().start().await;
    app.register_user(BOB, Has::AddRight).await;
    app.sonarr().add(series("The Bear").year(2022).tvdb(THE_BEAR).seasons(1).episodes(2).specials(2));
    app.follow_season(BOB, THE_BEAR, 0).await;
    app.later(0).await;
    for title in ["The Bear S00E01", "The Bear S00E02"] {
        app.sonarr().download_and_import(title);
        app.receive_event("sonarr", &app.sonarr().import_event_json(title)).await;
    }
    app.later(61).await;
    assert_eq!(app.messages_to(BOB), ["The Bear specials are ready to watch."]);
    assert_eq!(app.follows().await, Vec::<String>::new());
}

#[tokio::test]
async fn several_episodes_of_an_unfinished_season_are_counted() {
    let app = app_with_bob_waiting().await;
    for title in ["The Bear S02E01", "The Bear S02E02"] {
        app.sonarr().download_and_import(title);
        app.receive_event("sonarr", &app.sonarr().import_event_json(title)).await;
    }
    app.later(61).await;
    assert_eq!(app.messages_to(BOB), ["The Bear: 2 new episodes of season 2 are ready."]);
}

#[tokio::test]
async fn followers_hear_only_of_their_show_or_season() {
    let app = app_with_bob_waiting().await;
    app.follow_show(ANN, THE_BEAR).await;
    for season in ["The Bear S01", "The Bear S02"] {
        app.sonarr().download_and_import(season);
        app.receive_event("sonarr", &app.sonarr().import_event_json(season)).await;
        app.later(61).await;
    }
    assert_eq!(app.messages_to(BOB), ["The Bear season 2 is ready to watch."]);
    assert_eq!(
        app.messages_to(ANN),
        ["The Bear season 1 is ready to watch.", "The Bear season 2 is ready to watch."]
    );
}

#[tokio::test]
async fn duplicate_event_is_one_notification() {
    let app = app_with_bob_waiting().await;
    app.radarr().download_and_import("Dune");
    for _ in 0..2 {
        app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    }
    app.later(1).await;
    assert_eq!(app.messages_to(BOB), [READY]);
}

#[tokio::test]
async fn notification_is_not_repeated_after_a_restart() {
    let mut app = app_with_bob_waiting().await;
    app.radarr().download_and_import("Dune");
    app.sonarr().download_and_import("The Bear S02");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    app.receive_event("sonarr", &app.sonarr().import_event_json("The Bear S02")).await;
    app.restart().await;
    app.later(61).await;
    // After a restart each message is sent when its own lookup has ended.
    let mut messages = app.messages_to(BOB);
    messages.sort();
    assert_eq!(messages, [READY, "The Bear season 2 is ready to watch."]);
    app.restart().await;
    app.later(HOUR).await;
    assert_eq!(app.messages_to(BOB).len(), messages.len());
}

#[tokio::test]
async fn missed_events_are_found_in_the_history() {
    let app = app_with_bob_waiting().await;
    app.radarr().download_and_import("Dune");
    app.sonarr().download_and_import("The Bear S02");
    app.later(300).await;
    app.later(61).await;
    assert_eq!(app.messages_to(BOB), [READY, "The Bear season 2 is ready to watch."]);
}

#[tokio::test]
async fn future_dated_import_does_not_stop_the_history() {
    let app = app_with_bob_waiting().await;
    app.radarr().add(movie("Heat").year(1995).tmdb(949));
    app.radarr().add_import("Heat", app.now() + jiff::SignedDuration::from_hours(24 * 365));
    app.later(300).await;
    app.later(1200).await;
    app.radarr().download_and_import("Dune");
    app.later(300).await;
    assert_eq!(app.messages_to(BOB), [READY]);
}

#[tokio::test]
async fn event_from_webhook_and_history_is_one_notification() {
    let app = app_with_bob_waiting().await;
    app.follow_show(BOB, THE_BEAR).await;
    for reported_first in [true, false] {
        let title = if reported_first { "The Bear S01E01" } else { "The Bear S01E02" };
        app.sonarr().download_and_import(title);
        if reported_first {
            app.receive_event("sonarr", &app.sonarr().file_event_json("The Bear S01E01", 1)).await;
            app.later(61).await;
        } else {
            app.later(300).await;
            app.later(61).await;
            app.receive_event("sonarr", &app.sonarr().import_event_json(title)).await;
        }
        app.later(2 * HOUR).await;
    }
    assert_eq!(
        app.messages_to(BOB),
        ["The Bear S01E01 is ready to watch.", "The Bear S01E02 is ready to watch."]
    );
}

#[tokio::test]
async fn events_before_the_first_start_are_not_announced() {
    let app = Setup::default().start().await;
    app.radarr().add(movie("Dune").year(2021).tmdb(DUNE));
    app.follow_movie(ANN, DUNE).await;
    app.radarr().download_and_import("Dune");
    app.pass(120);
    app.later(0).await;
    app.later(300).await;
    assert_eq!(app.messages_to(ANN), Vec::<String>::new());
}

#[tokio::test]
async fn notification_waits_for_an_unreachable_library() {
    let app = app_with_bob_waiting().await;
    app.sonarr().download_and_import("The Bear S02");
    app.receive_event("sonarr", &app.sonarr().import_event_json("The Bear S02")).await;
    app.sonarr().set_down(true);
    app.later(61).await;
    assert_eq!(app.messages_to(BOB), Vec::<String>::new());
    app.sonarr().set_down(false);
    app.later(61).await;
    assert_eq!(app.messages_to(BOB), ["The Bear season 2 is ready to watch."]);
}

#[tokio::test]
async fn event_of_an_earlier_server_is_not_completed_with_another_series() {
    let app = app_with_bob_waiting().await;
    app.sonarr().download_and_import("The Bear S02E01");
    app.receive_event("sonarr", &app.sonarr().import_event_json("The Bear S02E01")).await;
    let other = FakeSonarr::with_clock(app.app().console.clock.clone());
    other.add(series("Slow Horses").year(2022).tvdb(370_112).seasons(2).episodes(6).size_gb(6.0));
    let client = Sonarr::new(
        HttpClient::in_process(other.in_process()),
        "http://moved.invalid".parse().unwrap(),
        other.api_key().into(),
    );
    let move_sonarr = |current: &AppBlueprint| {
        let mut moved = current.clone();
        moved.library.series = vec![Instance::new("sonarr", false, client)];
        Ok::<_, ApplyError>(moved)
    };
    app.app().change_blueprint(move_sonarr).await.unwrap();
    app.later(61).await;
    assert_eq!(app.messages_to(BOB), Vec::<String>::new());
    assert_eq!(app.follows().await.len(), 2);
}

#[tokio::test]
async fn import_in_one_instance_does_not_announce_another() {
    let four_k = FakeRadarr::new();
    four_k.add(movie("Dune").year(2021).tmdb(DUNE));
    let app = app_of(Setup::default().four_k(&four_k)).await;
    four_k.download_and_import("Dune");
    app.receive_event("radarr-4k", &four_k.import_event_json("Dune")).await;
    app.receive_event("radarr-4k", &four_k.stuck_event_json("Dune")).await;
    app.later(1).await;
    assert_eq!(app.messages_to(BOB), Vec::<String>::new());
    assert_eq!(app.messages_to(ANN), ["Radarr 4K could not import Dune (2021). Text STATUS for details."]);
}

#[tokio::test]
async fn upgrade_of_a_copy_is_not_announced() {
    let app = app_with_bob_waiting().await;
    app.follow_show(BOB, THE_BEAR).await;
    app.radarr().download_and_upgrade("Dune");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    app.sonarr().download_and_upgrade("The Bear S01E01");
    // The event does not mark the import as an upgrade; the history does.
    app.receive_event("sonarr", &app.sonarr().import_event_json("The Bear S01E01")).await;
    app.later(61).await;
    app.sonarr().download_and_upgrade("The Bear S01E02");
    app.later(HOUR).await;
    app.later(61).await;
    assert_eq!(app.messages_to(BOB), Vec::<String>::new());
}

#[tokio::test]
async fn notifications_in_quiet_hours_are_merged_in_the_morning() {
    let app = app_with_bob_waiting().await;
    assert_eq!(
        app.sms_from(BOB, "quiet 21-7").await,
        "OK, no notifications from 21:00 to 7:00. I send them afterward. Text QUIET OFF to change that."
    );
    app.radarr().download_and_import("Dune");
    app.sonarr().download_and_import("The Bear S02");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    app.receive_event("sonarr", &app.sonarr().import_event_json("The Bear S02")).await;
    app.later(9 * HOUR).await;
    assert_eq!(app.messages_to(BOB).len(), 1, "it is six in the morning");
    app.later(HOUR).await;
    assert_eq!(app.last_to(BOB), "Dune (2021) and The Bear season 2 are ready to watch.");
    assert_eq!(app.messages_to(BOB).len(), 2);
}

#[tokio::test]
async fn household_quiet_hours_are_the_default() {
    let setup = Setup::default().with(|settings| settings.quiet_hours = QuietHours::new(21, 7));
    let app = app_of(setup).await;
    app.follow_movie(ANN, DUNE).await;
    assert_eq!(app.sms("quiet off").await, "OK, you get notifications at any hour.");
    app.radarr().download_and_import("Dune");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    app.later(1).await;
    assert_eq!((app.last_to(ANN).as_str(), app.messages_to(BOB).len()), (READY, 0));
    app.later(10 * HOUR).await;
    assert_eq!(app.messages_to(BOB), [READY]);
}

#[tokio::test]
async fn turning_quiet_hours_off_sends_waiting_notifications() {
    let app = app_with_bob_waiting().await;
    app.sms_from(BOB, "quiet 21-7").await;
    app.radarr().download_and_import("Dune");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    app.later(HOUR).await;
    assert_eq!(app.messages_to(BOB).len(), 1);
    app.sms_from(BOB, "quiet off").await;
    assert!(app.messages_to(BOB).contains(&READY.to_owned()), "{:?}", app.messages_to(BOB));
}

#[tokio::test]
async fn changed_quiet_hours_reschedule_waiting_notifications() {
    let app = app_with_bob_waiting().await;
    app.sms_from(BOB, "quiet 21-7").await;
    app.radarr().download_and_import("Dune");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    app.later(1).await;
    app.sms_from(BOB, "quiet 21-9").await;
    app.later(11 * HOUR).await;
    assert_eq!(app.messages_to(BOB).len(), 2, "it is eight in the morning");
    app.later(HOUR).await;
    assert_eq!(app.last_to(BOB), READY);
}

#[tokio::test]
async fn changed_household_hours_reschedule_notifications_at_the_start() {
    let setup = Setup::default().with(|settings| settings.quiet_hours = QuietHours::new(21, 7));
    let mut app = app_of(setup).await;
    app.radarr().download_and_import("Dune");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    app.later(1).await;
    assert_eq!(app.messages_to(BOB), Vec::<String>::new());
    app.restart_with(|setup| setup.with(|settings| settings.quiet_hours = None)).await;
    // After a start the message is looked up in the carrier's list first; this test does not wait for that.
    for _ in 0..5 {
        app.later(20).await;
    }
    assert_eq!(app.messages_to(BOB), [READY]);
}

#[tokio::test]
async fn notification_behind_a_prompt_is_not_sent_in_quiet_hours() {
    let app = app_with_bob_waiting().await;
    app.follow_movie(ANN, DUNE).await;
    app.sms("quiet 22-7").await;
    // The clock shows a quarter to ten.
    app.pass(50 * 60);
    let heat = app.radarr().add(movie("Heat").year(1995).size_gb(12.0));
    app.model_plays(removes_movie("heat", heat));
    app.sms("delete heat").await;
    app.radarr().download_and_import("Dune");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    app.later(1).await;
    app.pass(4 * 60);
    let before = app.messages_to(ANN).len();
    app.later(10 * 60).await;
    assert_eq!(app.messages_to(ANN).len(), before, "the question has expired, but it is past ten");
    app.later(9 * HOUR).await;
    assert_eq!(app.last_to(ANN), READY);
}

#[tokio::test]
async fn reply_overtakes_a_notification_in_quiet_hours() {
    let setup =
        Setup::default().keyword_responder().with(|settings| settings.quiet_hours = QuietHours::new(21, 7));
    let app = app_of(setup).await;
    app.radarr().download_and_import("Dune");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    app.later(1).await;
    assert_eq!(app.sms_from(BOB, "have dune").await, "In the library: Dune (2021), 8 GB.");
    app.later(10 * HOUR).await;
    assert_eq!(app.last_to(BOB), READY);
}

#[tokio::test]
async fn sixth_notification_of_an_hour_waits_and_merges() {
    let app = app_with_bob_waiting().await;
    for number in 1..=10 {
        let title = format!("Film {number}");
        app.radarr().add(movie(&title).year(2000).tmdb(number));
        app.follow_movie(BOB, number).await;
        app.radarr().download_and_import(&title);
        app.receive_event("radarr", &app.radarr().import_event_json(&title)).await;
        app.later(1).await;
    }
    assert_eq!(app.messages_to(BOB).len(), 5);
    app.later(HOUR).await;
    assert_eq!(app.messages_to(BOB).len(), 6);
    assert_eq!(app.last_to(BOB), "Film 6 (2000), Film 7 (2000), Film 8 (2000) and 2 more titles are ready.");
}

#[tokio::test]
async fn notify_off_drops_waiting_notifications() {
    let app = app_with_bob_waiting().await;
    app.sms_from(BOB, "quiet 21-7").await;
    app.radarr().download_and_import("Dune");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    app.later(1).await;
    assert_eq!(
        app.sms_from(BOB, "notify off").await,
        "OK, no more notifications. I still answer your texts. Text NOTIFY ON to get them again."
    );
    app.sonarr().download_and_import("The Bear S02E01");
    app.receive_event("sonarr", &app.sonarr().import_event_json("The Bear S02E01")).await;
    app.later(12 * HOUR).await;
    assert_eq!(app.messages_to(BOB).len(), 2, "both are answers");
    assert_eq!(app.sms_from(BOB, "notify on").await, "OK, I'll text you when something is ready.");
    app.sonarr().download_and_import("The Bear S02E02");
    app.receive_event("sonarr", &app.sonarr().import_event_json("The Bear S02E02")).await;
    app.later(61).await;
    assert_eq!(app.last_to(BOB), "The Bear S02E02 is ready to watch.");
}

#[tokio::test]
async fn explicit_follow_is_delivered_while_notifications_are_off() {
    let app = app_with_bob_waiting().await;
    app.sms("notify off").await;
    let shown = calls("find_in_library", json!({ "query": "dune" }));
    let follows = calls("tell_me_when_ready", json!({ "type": "movie", "tmdb": DUNE }));
    app.model_plays([shown, follows, says("I'll text you when Dune (2021) is ready.")]);
    app.sms("tell me when dune is ready").await;
    app.radarr().download_and_import("Dune");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    app.later(1).await;
    assert_eq!(app.last_to(ANN), READY);
}

#[tokio::test]
async fn user_who_asks_again_is_notified_of_the_next_import() {
    let app = app_with_bob_waiting().await;
    app.follow_show(ANN, THE_BEAR).await;
    let imports = async || {
        app.sonarr().download_and_import("The Bear S01");
        app.receive_event("sonarr", &app.sonarr().import_event_json("The Bear S01")).await;
        app.later(61).await;
    };
    imports().await;
    app.pass(7 * 24 * HOUR);
    app.follow_show(ANN, THE_BEAR).await;
    imports().await;
    assert_eq!(app.messages_to(ANN), ["The Bear season 1 is ready to watch."; 2]);
}

#[tokio::test]
async fn erased_waiting_notification_does_not_affect_later_ones() {
    let app = app_with_bob_waiting().await;
    app.sms_from(BOB, "quiet 21-7").await;
    app.radarr().download_and_import("Dune");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    app.later(1).await;
    app.sms_from(BOB, "forget all").await;
    let before = app.messages_to(BOB);
    app.follow_season(BOB, THE_BEAR, 2).await;
    app.sonarr().download_and_import("The Bear S02");
    app.receive_event("sonarr", &app.sonarr().import_event_json("The Bear S02")).await;
    app.later(12 * HOUR).await;
    assert_eq!(app.messages_to(BOB)[before.len()..], ["The Bear season 2 is ready to watch."]);
}

#[tokio::test]
async fn opted_out_and_blocked_users_get_no_notifications() {
    let app = app_with_bob_waiting().await;
    app.follow_movie(ANN, DUNE).await;
    app.sms("STOP").await;
    app.block(BOB).await;
    app.radarr().download_and_import("Dune");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    app.later(1).await;
    assert_eq!((app.messages_to(ANN), app.messages_to(BOB)), (vec![], vec![]));
}

#[tokio::test]
async fn notification_waits_for_the_reply_to_a_prompt() {
    let app = app_with_bob_waiting().await;
    app.follow_movie(ANN, DUNE).await;
    let heat = app.radarr().add(movie("Heat").year(1995).size_gb(12.0));
    app.model_plays(removes_movie("heat", heat));
    assert_eq!(app.sms("delete heat").await, "Delete Heat (1995) and its file, 12 GB? Reply YES or NO.");
    app.radarr().download_and_import("Dune");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    app.later(1).await;
    assert_eq!(app.messages_to(ANN).len(), 1, "the question is open");
    let replies = app.sms("yes").await;
    let mut lines: Vec<&str> = replies.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["Deleted Heat (1995). Freed 12 GB.", READY]);
}

#[tokio::test]
async fn admins_hear_once_a_day_of_a_download_that_needs_attention() {
    let app = app_with_bob_waiting().await;
    let notification = "Radarr could not import Dune (2021). Text STATUS for details.";
    for _ in 0..3 {
        app.receive_event("radarr", &app.radarr().stuck_event_json("Dune")).await;
        app.later(2 * HOUR).await;
    }
    assert_eq!(app.messages_to(ANN), [notification]);
    app.later(24 * HOUR).await;
    app.receive_event("radarr", &app.radarr().stuck_event_json("Dune")).await;
    app.later(1).await;
    assert_eq!(app.messages_to(ANN), [notification, notification]);
    assert_eq!(app.messages_to(BOB), Vec::<String>::new());
}

#[tokio::test]
async fn admins_hear_of_a_failed_download_without_a_retry() {
    let app = app_with_bob_waiting().await;
    app.radarr().add_history_event("Dune", "downloadFailed", "No files were found");
    app.later(300).await;
    assert_eq!(app.messages_to(ANN), Vec::<String>::new(), "it looks for another one by itself");
    app.radarr().set_replaces_failed(false);
    app.later(300).await;
    app.later(300).await;
    assert_eq!(app.messages_to(ANN), ["The download of Dune (2021) failed. Ask me to search again."]);
}

#[tokio::test]
async fn admins_hear_of_a_lasting_health_problem() {
    let app = app_with_bob_waiting().await;
    let ill = app.sonarr().health_event_json("error", "IndexerSearchCheck", "No indexers are available");
    app.receive_event("sonarr", &ill).await;
    app.later(300).await;
    app.receive_event("sonarr", &app.sonarr().health_restored_event_json("IndexerSearchCheck")).await;
    app.later(HOUR).await;
    assert_eq!(app.messages_to(ANN), Vec::<String>::new(), "it passed");
    for _ in 0..2 {
        app.receive_event("sonarr", &ill).await;
        app.later(601).await;
    }
    assert_eq!(
        app.messages_to(ANN),
        ["Sonarr has a problem: No indexers are available. See System, Status there."]
    );
}

#[tokio::test]
async fn event_webhook_needs_the_secret() {
    let app = app_with_bob_waiting().await;
    app.radarr().download_and_import("Dune");
    let event = app.radarr().import_event_json("Dune");
    for wrong in ["", "a-long-random-wor", "a-long-random-words", "another"] {
        assert_eq!(app.request(report("radarr", &event, wrong)).await.status(), 401);
        assert_eq!(app.request(report("radarr", &json!("no event"), wrong)).await.status(), 401);
    }
    let bare =
        Request::post("https://sms.example.org/webhook/radarr").body(event.to_string().into()).unwrap();
    assert_eq!(app.request(bare).await.status(), 401);
    assert_eq!(app.stored_events().await, Vec::<String>::new());

    let with_header = Request::builder()
        .method(Method::PUT)
        .uri("https://sms.example.org/webhook/radarr")
        .header("X-Dialarr-Token", SECRET)
        .body(event.to_string().into())
        .unwrap();
    assert_eq!(app.request(with_header).await.status(), 200);
    assert_eq!(app.stored_events().await.len(), 1);
}

#[tokio::test]
async fn connect_test_events_are_acknowledged_and_malformed_ones_refused() {
    let app = app_with_bob_waiting().await;
    app.receive_event("radarr", &app.radarr().connection_test_json()).await;
    assert_eq!(app.request(report("radarr", &json!("no event"), SECRET)).await.status(), 400);
    let huge = json!({ "eventType": "Test", "message": "x".repeat(1 << 20) });
    assert_eq!(app.request(report("radarr", &huge, SECRET)).await.status(), 413);
    assert_eq!(
        app.request(report("radarr-4k", &app.radarr().import_event_json("Dune"), SECRET)).await.status(),
        404
    );
    assert_eq!(app.stored_events().await, Vec::<String>::new());
}

#[tokio::test]
async fn event_webhook_is_disabled_without_a_secret() {
    let app = app_of(Setup::default().without_report_secret()).await;
    let event = app.radarr().import_event_json("Dune");
    for password in ["", SECRET] {
        assert_eq!(app.request(report("radarr", &event, password)).await.status(), 503);
    }
    assert_eq!(app.stored_events().await, Vec::<String>::new());
}

#[tokio::test]
async fn old_events_and_notifications_are_deleted() {
    let app = app_with_bob_waiting().await;
    app.radarr().download_and_import("Dune");
    app.receive_event("radarr", &app.radarr().import_event_json("Dune")).await;
    app.later(1).await;
    app.pass(31 * 24 * HOUR);
    app.run_maintenance().await;
    assert_eq!(app.stored_events().await, Vec::<String>::new());
}

#[tokio::test]
async fn merged_notification_adds_no_test_user_to_a_memory_group() {
    let app = Setup::default().with(|settings| settings.quiet_hours = QuietHours::new(21, 7)).start().await;
    app.register_user(BOB, Has::AddRight).await;
    let mark = "UPDATE users SET test = 1 WHERE id = (SELECT user_id FROM user_addresses WHERE address = '+15550100003')";
    app.app().db.write(move |conn| conn.batch_execute(mark)).await.unwrap();
    for (title, tmdb) in [("Dune", DUNE), ("Heat", DUNE + 1)] {
        app.radarr().add(movie(title).year(2000).tmdb(tmdb));
        app.follow_movie(ANN, tmdb).await;
        app.follow_movie(BOB, tmdb).await;
    }
    app.later(0).await;
    for title in ["Dune", "Heat"] {
        app.radarr().download_and_import(title);
        app.receive_event("radarr", &app.radarr().import_event_json(title)).await;
        app.later(1).await;
    }
    assert_eq!(app.count("memory_groups").await, 0);
    app.later(10 * HOUR).await;
    assert_eq!(app.messages_to(ANN), ["Dune (2000) and Heat (2000) are ready to watch."]);
}
