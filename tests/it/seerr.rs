//! Requests at a Seerr in place of additions: links of people, outcomes, lost answers and restarts.

use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::conversation::rating_caps::{MinimumAge, RatingCaps};
use dialarr::conversation::transcript::{MediaKind, PhoneNumber, UserRights, UserRole};
use dialarr::conversation::viewer_accounts::{AccountScope, MediaServerKind, ViewerAccount};
use dialarr::media_servers::fake::FakeJellyfin;
use dialarr::seerr::fake::{Permission, WriteFault};
use dialarr::store::audit::Actor;
use dialarr::store::people::{age_limits, users, viewer_accounts};
use serde_json::{Value, json};

use crate::harness::model::{adds_movie, calls, finds, offered, says};
use crate::harness::seerr::{DUNE, HEAT, Home, SEVERANCE, TRUSTED, link};
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

const MINUTE: u64 = 60;
const ON_THE_WAY: &str = "Dune (2021) is on the way.";
const NOT_LINKED: &str = "You are not linked to Seerr yet. Text LINK SEERR and your name there.";
const ALREADY_ASKED: &str = "Dune (2021) is already asked for.";

#[tokio::test(start_paused = true)]
async fn movie_is_requested_in_the_name_of_its_user() {
    let home = Home::start(TRUSTED).await;
    assert_eq!(home.asks_for_dune().await, ON_THE_WAY);
    assert_eq!(home.requests(), [(home.sam, DUNE)]);
    assert_eq!(home.world.radarr().added_ids(), Vec::<i64>::new());
    assert_eq!(home.world.additions().await, Vec::<String>::new());
    assert_eq!(home.world.requests().await, ["+15550100002 added radarr Dune (2021)"]);
    assert_eq!(home.world.follows().await, ["+15550100002 radarr movie 438631"]);
}

#[tokio::test(start_paused = true)]
async fn title_that_seerr_adds_is_reported_when_it_is_ready() {
    let home = Home::start(TRUSTED).await;
    home.asks_for_dune().await;
    home.world.pass(10 * MINUTE).await;
    home.world.radarr().add(movie("Dune").year(2021).tmdb(DUNE));
    home.world.radarr().download_and_import("Dune");
    home.world.pass(20 * MINUTE).await;
    assert!(home.last().starts_with("Dune (2021) is ready"), "{}", home.last());
}

#[tokio::test(start_paused = true)]
async fn unlinked_person_is_refused_and_nothing_is_asked_for() {
    let home = Home::unlinked(TRUSTED).await;
    assert_eq!(home.asks_for_dune().await, NOT_LINKED);
    assert_eq!(home.requests(), []);
    let posts: Vec<String> =
        home.world.seerr().calls().into_iter().filter(|call| call.contains("POST")).collect();
    assert_eq!(posts, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn title_over_a_cap_is_requested_only_after_its_approval() {
    let home = Home::start(TRUSTED).await;
    let (phone, now) = (PhoneNumber::parse(ANN).unwrap(), home.world.now());
    let set_caps = move |conn: &mut _| {
        let ann = users::find_user_by_phone(conn, &phone)?.unwrap();
        let caps = RatingCaps { movies: Some(MinimumAge(13)), shows: None };
        age_limits::set_rating_caps(conn, ann.id, caps, now)
    };
    home.world.write_database(set_caps).await;
    home.asks_for_dune().await;
    assert_eq!(home.requests(), []);
    let phone = PhoneNumber::parse(ANN).unwrap();
    let approve = move |conn: &mut _| {
        let ann = users::find_user_by_phone(conn, &phone)?.unwrap();
        age_limits::approve_title(conn, ann.id, (MediaKind::Movie, DUNE), now)
    };
    home.world.write_database(approve).await;
    assert_eq!(home.asks_for_dune().await, ON_THE_WAY);
    assert_eq!(home.requests(), [(home.sam, DUNE)]);
}

#[tokio::test(start_paused = true)]
async fn user_of_seerr_who_is_gone_is_not_replaced_by_the_owner() {
    let home = Home::start(TRUSTED).await;
    home.world.seerr().remove_user(home.sam);
    assert_eq!(
        home.asks_for_dune().await,
        "Your user in Seerr is gone. Text UNLINK SEERR, then LINK SEERR and your name there."
    );
    assert_eq!(home.requests(), []);
}

#[tokio::test(start_paused = true)]
async fn refusals_of_seerr_are_told_in_plain_words() {
    let home = Home::start(0).await;
    assert_eq!(
        home.asks_for_dune().await,
        "You may not ask for that in Seerr. An admin can change it there."
    );
    home.world.seerr().edit_user(home.sam, |user| {
        (user.permissions, user.movie_limit) = (Permission::REQUEST, Some(1));
    });
    assert_eq!(home.asks_for_dune().await, "Asked for Dune (2021). An admin has to approve it.");
    assert_eq!(home.asks_for_dune().await, ALREADY_ASKED);
    assert_eq!(
        home.asks_for("heat", HEAT).await,
        "That is over your limit in Seerr: 1 of 1 movies in 7 days are used."
    );
    home.world.seerr().blocklist(HEAT);
    assert_eq!(home.asks_for("heat", HEAT).await, "Heat (1995) is blocked in Seerr.");
    assert_eq!(home.requests(), [(home.sam, DUNE)]);
}

#[tokio::test(start_paused = true)]
async fn limit_of_space_refuses_a_request_at_seerr() {
    let home = Home::start(TRUSTED).await;
    home.world.damage_rows("UPDATE users SET role = 'member', space_limit = 0").await;
    let refused = home.asks_for_dune().await;
    assert!(
        refused.starts_with("Your titles hold 0 of 0 GB. Text MY SPACE to see them, or ask "),
        "{refused}"
    );
    assert_eq!(home.requests(), []);
}

#[tokio::test(start_paused = true)]
async fn seasons_are_requested_by_number_and_never_twice() {
    let home = Home::start(TRUSTED).await;
    assert_eq!(home.asks_for_seasons(json!([1])).await, "Severance (2022), season 1 is on the way.");
    assert_eq!(home.asks_for_seasons(json!([1, 2])).await, "Severance (2022) is on the way.");
    assert_eq!(
        home.asks_for_seasons(json!([2])).await,
        "Severance (2022), season 2: the seasons are there or asked for already."
    );
    let requests = home.world.seerr().requests();
    let seasons: Vec<(Option<i64>, &[u32])> =
        requests.iter().map(|request| (request.tvdb, request.seasons.as_slice())).collect();
    assert_eq!(seasons, [(Some(SEVERANCE.1), &[1][..]), (Some(SEVERANCE.1), &[2][..])]);
    assert_eq!(
        home.asks_for_seasons(json!("pilot")).await,
        "Seerr takes whole seasons only. Which seasons do you want?"
    );
}

#[tokio::test(start_paused = true)]
async fn more_seasons_of_a_show_in_the_library_are_requested() {
    let home = Home::start(TRUSTED).await;
    let id = home.world.sonarr().add(
        series("The Bear")
            .year(2022)
            .tvdb(403_294)
            .tmdb(136_315)
            .seasons(3)
            .unmonitored_season(2)
            .unmonitored_season(3),
    );
    let more = |seasons: Value| calls("get_more", json!({ "type": "series", "id": id, "seasons": seasons }));
    home.world.model_plays([finds("bear"), more(json!(["2"])), says(""), says("")]);
    let reply = home.world.sms("get season 2 of the bear").await.pop().unwrap();
    assert_eq!(reply, "The Bear (2022), season 2 is on the way.");
    assert_eq!(home.world.seerr().requests()[0].seasons, [2]);
    let change =
        calls("change_media", json!({ "type": "series", "id": id, "monitored": true, "seasons": ["3"] }));
    home.world.model_plays([finds("bear"), change, says(""), says("")]);
    let reply = home.world.sms("look for season 3 of the bear").await.pop().unwrap();
    assert_eq!(reply, "More of a title is asked for in Seerr. Ask me to get it.");
    assert_eq!(home.world.additions().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn lost_answer_leads_to_no_second_request() {
    for fault in [WriteFault::LostAnswer, WriteFault::NoAnswer] {
        let home = Home::start(TRUSTED).await;
        home.world.seerr().fail_next_write(fault);
        home.asks_for_dune().await;
        home.world.pass(3 * MINUTE).await;
        assert_eq!((home.last().as_str(), home.requests()), (ON_THE_WAY, vec![(home.sam, DUNE)]));
    }
}

#[tokio::test(start_paused = true)]
async fn restart_after_an_unanswered_request_leads_to_no_second_request() {
    let mut home = Home::start(TRUSTED).await;
    home.world.seerr().fail_next_write(WriteFault::NoAnswer);
    let [searches, adds] = adds_movie("dune", DUNE);
    home.world.model_plays([searches, adds, says(""), says("")]);
    home.world.texts("add dune").await;
    home.world.pass(2).await;
    assert_eq!(home.requests(), [(home.sam, DUNE)]);
    home.world.kill().await;
    home.world.start_again().await;
    home.world.pass(3 * MINUTE).await;
    assert_eq!((home.last().as_str(), home.requests()), (ON_THE_WAY, vec![(home.sam, DUNE)]));
}

#[tokio::test(start_paused = true)]
async fn request_that_fails_at_seerr_is_made_later_with_one_message() {
    let home = Home::start(TRUSTED).await;
    home.world.seerr().fail_next_write(WriteFault::Failed(500));
    assert_eq!(home.asks_for_dune().await, "Seerr had an error. I'll keep trying for a day and text you.");
    assert_eq!(home.requests(), []);
    home.world.pass(10 * MINUTE).await;
    assert_eq!((home.last().as_str(), home.requests()), (ON_THE_WAY, vec![(home.sam, DUNE)]));
    let before = home.world.messages_to(ANN).len();
    home.world.pass(60 * MINUTE).await;
    assert_eq!((home.world.messages_to(ANN).len(), home.requests().len()), (before, 1));
}

#[tokio::test(start_paused = true)]
async fn movie_in_4k_needs_our_right_and_is_requested_as_such() {
    let home = Home::start(TRUSTED | Permission::REQUEST_4K).await;
    let asks = async || {
        let add = calls("add_movie", json!({ "tmdb": DUNE, "quality": "4K" }));
        let searches = calls("search_media", json!({ "query": "dune" }));
        home.world.model_plays([searches, add, says(""), says("")]);
        home.world.sms("add dune in 4k").await.pop().unwrap()
    };
    asks().await;
    assert_eq!(home.requests(), []);
    let (ann, now) = (PhoneNumber::parse(ANN).unwrap(), home.world.now());
    let rights =
        UserRights { role: UserRole::Member, add: true, delete: false, four_k: true, ..UserRights::MEMBER };
    let permit = move |conn: &mut _| {
        let user = users::find_user_by_phone(conn, &ann)?.unwrap();
        users::set_rights(conn, user.id, rights, now)
    };
    home.world.write_database(permit).await;
    assert_eq!(asks().await, ON_THE_WAY);
    assert_eq!(home.requests(), [(home.sam, DUNE)]);
    assert!(home.world.seerr().requests()[0].is_4k);
}

#[tokio::test(start_paused = true)]
async fn unlinked_person_gets_a_refusal_after_a_restart() {
    let mut home = Home::unlinked(TRUSTED).await;
    let [searches, adds] = adds_movie("dune", DUNE);
    home.world.model_plays([searches, adds, says(""), says("")]);
    link(&home.world, ANN, home.sam).await;
    home.world.seerr().set_silent(true);
    home.world.texts("add dune").await;
    home.world.pass(5).await;
    home.world.kill().await;
    home.world.seerr().set_silent(false);
    home.world.start_again().await;
    let scope = AccountScope::Seerr;
    let now = home.world.now();
    let unlink = move |conn: &mut _| {
        let user = users::find_user_by_phone(conn, &PhoneNumber::parse(ANN).unwrap())?.unwrap();
        viewer_accounts::unlink_accounts(conn, (user.id, scope), Actor::Console, now).map(drop)
    };
    home.world.write_database(unlink).await;
    home.world.pass(3 * MINUTE).await;
    assert_eq!((home.last().as_str(), home.requests()), (NOT_LINKED, vec![]));
}

#[tokio::test(start_paused = true)]
async fn unknown_show_is_refused_after_a_restart() {
    let mut home = Home::start(TRUSTED).await;
    // Sonarr does not know the TMDB id of the show.
    home.world.sonarr().add_to_catalog(series("Dark").year(2017).tvdb(334_824).seasons(3));
    home.world.seerr().set_silent(true);
    let adds = calls("add_series", json!({ "tvdb": 334_824, "seasons": [1] }));
    home.world.model_plays([calls("search_media", json!({ "query": "dark" })), adds, says(""), says("")]);
    home.world.texts("add dark season 1").await;
    home.world.pass(5).await;
    home.world.kill().await;
    home.world.seerr().set_silent(false);
    home.world.start_again().await;
    home.world.pass(3 * MINUTE).await;
    let last = home.last();
    assert!(last.contains("Seerr does not know Dark (2017), so I can't ask for it."), "{last}");
}

/// Lets Ann report the audio of an episode of The Bear, and returns the last message to her.
async fn reports_bad_audio(home: &Home) -> String {
    let bear = series("The Bear").id(4).year(2022).tvdb(403_294).tmdb(136_315).seasons(1).size_gb(4.0);
    home.world.sonarr().add(bear);
    let report = json!({ "type": "series", "id": 4, "problem": "audio", "season": 1, "episode": 2,
        "message": "no sound" });
    home.world.model_plays([finds("bear"), calls("report_problem", report), says(""), says("")]);
    home.world.sms("the audio of the bear s01e02 is broken").await.pop().unwrap_or_default()
}

const REPORTED: &str = "I reported the audio of The Bear (2022), S01E02 to the admins in Seerr.";

#[tokio::test(start_paused = true)]
async fn bad_audio_becomes_an_issue_with_season_and_episode() {
    let home = Home::start(Permission::REQUEST | Permission::CREATE_ISSUES).await;
    let media = home.world.seerr().add_media(MediaKind::Series, 136_315);
    assert_eq!(reports_bad_audio(&home).await, REPORTED);
    let issues = home.world.seerr().issues();
    let [issue] = issues.as_slice() else { panic!("{issues:?}") };
    assert_eq!((issue.user, issue.kind, issue.media), (home.sam, 2, media));
    assert_eq!((issue.season, issue.episode, issue.message.as_str()), (1, 2, "no sound"));
}

#[tokio::test(start_paused = true)]
async fn lost_answer_leads_to_no_second_issue() {
    let home = Home::start(Permission::REQUEST | Permission::CREATE_ISSUES).await;
    home.world.seerr().add_media(MediaKind::Series, 136_315);
    home.world.seerr().fail_next_write(WriteFault::LostAnswer);
    reports_bad_audio(&home).await;
    home.world.pass(3 * MINUTE).await;
    assert_eq!((home.last().as_str(), home.world.seerr().issues().len()), (REPORTED, 1));
}

#[tokio::test(start_paused = true)]
async fn problem_is_not_reported_without_a_link_or_the_right_in_seerr() {
    let home = Home::unlinked(Permission::CREATE_ISSUES).await;
    home.world.seerr().add_media(MediaKind::Series, 136_315);
    assert_eq!(reports_bad_audio(&home).await, NOT_LINKED);
    let home = Home::start(Permission::REQUEST).await;
    let unknown = "Seerr does not know The Bear (2022) yet, so I can't report it.";
    assert_eq!(reports_bad_audio(&home).await, unknown);
    home.world.seerr().add_media(MediaKind::Series, 136_315);
    let report = json!({ "type": "series", "id": 4, "problem": "audio" });
    home.world.model_plays([finds("bear"), calls("report_problem", report), says(""), says("")]);
    assert_eq!(
        home.world.sms("the audio of the bear is broken").await.pop().unwrap(),
        "You may not report problems in Seerr. An admin can change it there."
    );
    assert_eq!(home.world.seerr().issues(), []);
}

#[tokio::test]
async fn problems_can_be_reported_only_with_seerr() {
    for (setup, is_offered) in [(Setup::default(), false), (Setup::default().seerr(), true)] {
        let app = setup.start().await;
        app.model_plays([says("Hi.")]);
        app.sms("how are you").await;
        assert_eq!(offered(&app.last_request()).contains(&"report_problem"), is_offered);
    }
}

/// Program with a Jellyfin and a Seerr, at which Bob is the user Bobby.
async fn household() -> TestApp {
    let app = Setup::default().jellyfin().seerr().start().await;
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    let bobby = app.seerr().add_user("Bobby", TRUSTED);
    let id = app.jellyfin().add_user("bobby");
    let jellyfin_id = FakeJellyfin::user_id(id);
    app.seerr().edit_user(bobby, |user| user.jellyfin_id = Some(jellyfin_id));
    app
}

#[tokio::test]
async fn admin_approves_the_link_to_a_user_of_seerr_who_watches_nothing() {
    let app = household().await;
    app.model_plays([calls("link_account", json!({ "name": "bobby", "seerr": true })), says(""), says("")]);
    assert_eq!(
        app.sms_from(BOB, "link me to seerr").await,
        "I asked the admins to link you to the Seerr user Bobby. I'll text you their decision."
    );
    let request = app.last_to(ANN);
    let code: String = request.split_once("APPROVE ").unwrap().1.chars().take(4).collect();
    assert_eq!(
        request,
        format!(
            "Bob asks to be linked to the Seerr user Bobby, to ask for titles in the name of this user. Reply APPROVE \
             {code} or DENY {code}"
        )
    );
    app.sms(&format!("approve {code}")).await;
    assert_eq!(
        app.last_to(BOB),
        "You are linked to the Seerr user Bobby. Titles that you ask me for are requested there."
    );
    app.model_plays([calls("recently_watched", json!({})), says(""), says("")]);
    assert_eq!(
        app.sms_from(BOB, "what was i watching").await,
        "I don't know who you are on Jellyfin. Text LINK JELLYFIN and your name there."
    );
}

#[tokio::test]
async fn page_of_accounts_links_the_person_with_the_same_jellyfin_user() {
    let app = household().await;
    let (phone, now) = (PhoneNumber::parse(BOB).unwrap(), app.now());
    let account = ViewerAccount {
        server: MediaServerKind::Jellyfin,
        id: FakeJellyfin::user_id(1),
        name: "bobby".to_owned(),
    };
    let link = move |conn: &mut _| {
        let user = users::find_user_by_phone(conn, &phone)?.unwrap();
        viewer_accounts::link_account(conn, user.id, &account, Actor::Console, now).map(drop)
    };
    app.app().db.write(link).await.unwrap();
    let mut browser = app.browser().await;
    let page = browser.get("/viewer-accounts").await;
    assert!(page.html.contains(r#"<option value="2" selected>Bob</option>"#), "{}", page.html);
    let choice = [("server", "seerr"), ("account", "2"), ("user", "2")];
    let page = browser.presses(&page, "Link", &choice).await;
    page.assert_shows(200, "Linked.");
    let linked = "SELECT server || ' ' || user_id AS line FROM viewer_accounts ORDER BY server";
    assert_eq!(app.lines(linked).await, ["jellyfin 2", "seerr 2"]);
}
