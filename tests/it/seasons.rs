//! When a season is ready: the catalog may list its episodes as they air, so that those on disk may be far from all.

use dialarr::arr::fake::media_fixtures::{FakeSeason, FakeSeries, series};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::harness::model::{calls, finds, says};
use crate::harness::world::World;
use crate::harness::{ANN, BOB, Has, TestApp};

const TRAITORS: i64 = 403_294;
const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// More than the period without an episode after which a season is complete.
const REST: i64 = 28 * DAY + HOUR;
const FOLLOWED: &str = "+15550100003 sonarr series 403294 season 1";
const READY: &str = "The Traitors season 1 is ready to watch.";

/// Two episodes are listed and on disk, and the second one has just aired.
fn airing(now: Timestamp) -> FakeSeries {
    let (first, second) = (now - SignedDuration::from_hours(7 * 24), now - SignedDuration::from_hours(1));
    let show = series("The Traitors").year(2022).tvdb(TRAITORS).seasons(1).episodes(2).size_gb(4.0);
    show.airs(1, 1, first).airs(1, 2, second)
}

/// Bob, and a show of which nothing is listed yet; its library id is 1.
async fn app_with_bob_following() -> TestApp {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::AddRight).await;
    app.sonarr().add(series("The Traitors").year(2022).tvdb(TRAITORS).seasons(1).episodes(0));
    app.follow_season(BOB, TRAITORS, 1).await;
    // The first reading of the history stores where it begins.
    app.later(0).await;
    app
}

/// Bob, and a show in the middle of its season; its library id is 1.
async fn app_in_mid_season() -> TestApp {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::AddRight).await;
    app.sonarr().add(airing(app.now()));
    app.later(0).await;
    app
}

/// The catalog lists the next episode of the first season, which is imported on the day on which it airs.
async fn next_episode_airs(app: &TestApp, number: u32) {
    let airs = app.now();
    app.sonarr().edit(1, |show| show.add_next_episode(1, airs));
    let title = format!("The Traitors S01E{number:02}");
    app.sonarr().download_and_import(&title);
    app.receive_event("sonarr", &app.sonarr().import_event_json(&title)).await;
    app.later(61).await;
}

fn episode_ready(number: u32) -> String {
    format!("The Traitors S01E0{number} is ready to watch.")
}

/// Bob asks to be notified of the first season, or of the whole show, and gets this answer.
async fn bob_asks_for(app: &TestApp, season: Option<u32>) -> String {
    let follows = calls("tell_me_when_ready", json!({ "type": "series", "id": 1, "season": season }));
    app.model_plays([finds("traitors"), follows, says("")]);
    app.sms_from(BOB, "tell me when the traitors is ready").await
}

#[tokio::test]
async fn season_listed_week_by_week_is_complete_with_its_finale() {
    let app = app_with_bob_following().await;
    for number in 1..=3 {
        next_episode_airs(&app, number).await;
        app.pass(7 * DAY);
    }
    assert_eq!(app.messages_to(BOB), [1, 2, 3].map(episode_ready));
    assert_eq!(app.follows().await, [FOLLOWED]);

    app.sonarr().edit(1, |show| show.details.finales = vec![1]);
    next_episode_airs(&app, 4).await;
    assert_eq!(app.last_to(BOB), READY);
    assert_eq!(app.follows().await, Vec::<String>::new());
}

#[tokio::test]
async fn season_that_rests_for_weeks_is_complete_without_a_marked_finale() {
    let mut app = app_with_bob_following().await;
    next_episode_airs(&app, 1).await;
    app.pass(7 * DAY);
    next_episode_airs(&app, 2).await;
    app.later(27 * DAY).await;
    assert_eq!(app.messages_to(BOB), [1, 2].map(episode_ready));

    // Nothing is imported any more.
    app.restart().await;
    app.later(DAY).await;
    assert_eq!(app.last_to(BOB), READY);
    assert_eq!(app.follows().await, Vec::<String>::new());
    app.restart().await;
    app.later(7 * DAY).await;
    assert_eq!(app.messages_to(BOB).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn rested_season_is_announced_by_the_running_program() {
    let world = World::start().await;
    world.register_user(BOB).await;
    let last = world.now() - SignedDuration::from_hours(28 * 24 - 12);
    world.sonarr().add(airing(last));
    let follows = calls("tell_me_when_ready", json!({ "type": "series", "id": 1, "season": 1 }));
    world.model_plays([finds("traitors"), follows, says("I'll text you.")]);
    world.sms_from(BOB, "tell me when season 1 of the traitors is ready").await;
    world.pass(10 * 60 * 60).await;
    assert_eq!(world.messages_to(BOB), ["I'll text you."]);
    world.pass(8 * 60 * 60).await;
    assert_eq!(world.messages_to(BOB), ["I'll text you.", READY]);
}

#[tokio::test]
async fn rested_season_is_not_announced_in_quiet_hours() {
    let app = app_with_bob_following().await;
    next_episode_airs(&app, 1).await;
    app.sms_from(BOB, "quiet 21-7").await;
    let before = app.messages_to(BOB).len();
    app.later(REST).await;
    assert_eq!(app.messages_to(BOB).len(), before);
    app.later(10 * HOUR).await;
    assert_eq!(app.messages_to(BOB)[before..], [READY]);
}

#[tokio::test]
async fn new_episode_restarts_the_rest_of_its_season() {
    let app = app_with_bob_following().await;
    next_episode_airs(&app, 1).await;
    app.pass(27 * DAY);
    next_episode_airs(&app, 2).await;
    app.later(2 * DAY).await;
    assert_eq!(app.messages_to(BOB), [1, 2].map(episode_ready));

    // An episode that is listed but not on disk.
    let airs = app.now() + SignedDuration::from_hours(24);
    app.sonarr().edit(1, |show| show.add_next_episode(1, airs));
    app.later(60 * DAY).await;
    assert_eq!(app.follows().await, [FOLLOWED]);
    assert_eq!(app.messages_to(BOB).len(), 2);
}

#[tokio::test]
async fn season_of_a_show_that_ends_is_announced_without_an_import() {
    let app = app_with_bob_following().await;
    app.follow_show(BOB, TRAITORS).await;
    next_episode_airs(&app, 1).await;
    app.sonarr().edit(1, |show| show.details.ended = true);
    app.later(DAY).await;
    assert_eq!(app.messages_to(BOB), [episode_ready(1), READY.to_owned()]);
    assert_eq!(app.follows().await, Vec::<String>::new());
}

#[tokio::test]
async fn airing_season_is_followed_instead_of_called_ready() {
    let app = app_in_mid_season().await;
    assert_eq!(
        bob_asks_for(&app, Some(1)).await,
        "I'll text you when The Traitors (2022), season 1 is ready. Everything that has aired so far is there."
    );
    assert_eq!(app.follows().await, [FOLLOWED]);
    app.later(REST).await;
    assert_eq!(app.last_to(BOB), READY);
    assert_eq!(app.follows().await, Vec::<String>::new());
}

#[tokio::test]
async fn season_with_its_finale_on_disk_is_called_ready() {
    let app = app_in_mid_season().await;
    app.sonarr().edit(1, |show| show.details.finales = vec![1]);
    let answer = bob_asks_for(&app, Some(1)).await;
    assert_eq!(answer, "The Traitors (2022), season 1 is there already, ready to watch.");
    assert_eq!(app.follows().await, Vec::<String>::new());
}

#[tokio::test]
async fn season_whose_episodes_cannot_be_fetched_is_followed() {
    let app = app_in_mid_season().await;
    app.sonarr().edit(1, |show| show.details.finales = vec![1]);
    let follows = calls("tell_me_when_ready", json!({ "type": "series", "id": 1, "season": 1 }));
    app.model_plays([finds("traitors"), says("It is there."), follows, says("I'll text you.")]);
    app.sms_from(BOB, "is the traitors there?").await;
    app.sonarr().allow_next();
    app.sonarr().fail_next_n(2, 500);
    app.sms_from(BOB, "tell me when season 1 is ready").await;
    assert_eq!(app.follows().await, [FOLLOWED]);
}

#[tokio::test]
async fn airing_show_is_followed_and_announced_by_season() {
    let app = app_in_mid_season().await;
    bob_asks_for(&app, None).await;
    assert_eq!(app.follows().await, ["+15550100003 sonarr series 403294"]);
    app.later(REST).await;
    assert_eq!(app.last_to(BOB), READY);
    let before = app.messages_to(BOB).len();
    app.later(DAY).await;
    assert_eq!(app.messages_to(BOB).len(), before);
}

#[tokio::test]
async fn follower_of_a_whole_show_is_notified_after_a_long_outage() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::AddRight).await;
    app.sonarr().add(series("The Traitors").year(2022).tvdb(TRAITORS).seasons(1).episodes(0));
    app.follow_show(BOB, TRAITORS).await;
    app.later(0).await;
    for number in 1..=2 {
        next_episode_airs(&app, number).await;
        app.pass(7 * DAY);
    }
    app.later(30 * DAY).await;
    assert_eq!(app.messages_to(BOB), [episode_ready(1), episode_ready(2), READY.to_owned()]);
    app.later(DAY).await;
    assert_eq!(app.messages_to(BOB).len(), 3);
}

#[tokio::test]
async fn season_before_a_new_one_is_announced_after_its_rest() {
    let app = app_in_mid_season().await;
    bob_asks_for(&app, None).await;
    let next = FakeSeason { number: 2, episodes: 0, monitored: true };
    app.sonarr().edit(1, |show| show.details.seasons.push(next));
    app.later(27 * DAY).await;
    assert_eq!(app.messages_to(BOB).len(), 1);
    app.later(DAY).await;
    assert_eq!(app.last_to(BOB), READY);
    assert_eq!(app.follows().await, ["+15550100003 sonarr series 403294"]);
}

#[tokio::test]
async fn show_that_ends_is_announced_to_followers_of_the_show() {
    let app = app_in_mid_season().await;
    bob_asks_for(&app, None).await;
    app.sonarr().edit(1, |show| show.details.ended = true);
    app.later(DAY).await;
    assert_eq!(app.last_to(BOB), READY);
    assert_eq!(app.follows().await, Vec::<String>::new());
}

#[tokio::test]
async fn import_that_waits_is_left_to_its_own_notification() {
    let app = app_with_bob_following().await;
    app.follow_show(BOB, TRAITORS).await;
    let airs = app.now() - SignedDuration::from_hours(40 * 24);
    app.sonarr().edit(1, |show| show.add_next_episode(1, airs));
    app.sonarr().edit(1, |show| show.add_next_episode(1, airs));
    app.sonarr().download_and_import("The Traitors S01");
    app.receive_event("sonarr", &app.sonarr().import_event_json("The Traitors S01")).await;
    app.later(1).await;
    assert_eq!(app.messages_to(BOB), Vec::<String>::new(), "more may be on its way");
    app.later(61).await;
    assert_eq!(app.messages_to(BOB), [READY]);
}

#[tokio::test]
async fn seasons_from_before_the_follow_are_not_announced() {
    let app = TestApp::start().await;
    let show = series("The Traitors").year(2022).tvdb(TRAITORS).seasons(3).episodes(6).size_gb(12.0);
    app.sonarr().add(show.missing_episode(1, 2));
    app.follow_show(ANN, TRAITORS).await;
    app.later(0).await;
    app.later(REST).await;
    assert_eq!(app.messages_to(ANN), Vec::<String>::new());
    assert_eq!(app.follows().await, ["+15550100002 sonarr series 403294"]);
}

#[tokio::test]
async fn user_who_adds_an_airing_show_again_is_offered_a_notification() {
    let app = app_in_mid_season().await;
    let searches = calls("search_media", json!({ "query": "traitors" }));
    app.model_plays([searches, calls("add_series", json!({ "tvdb": TRAITORS })), says("")]);
    assert_eq!(
        app.sms_from(BOB, "add the traitors").await,
        "You already have The Traitors (2022). Text TELL ME and I will let you know when it is ready."
    );
}

#[tokio::test]
async fn requested_airing_season_is_searched_and_followed() {
    let app = app_in_mid_season().await;
    app.sonarr().edit(1, |show| *show = show.clone().unmonitored_season(1));
    let more = calls("get_more", json!({ "type": "series", "id": 1, "seasons": ["1"] }));
    app.model_plays([finds("traitors"), more, says("")]);
    assert_eq!(
        app.sms_from(BOB, "get season 1 of the traitors").await,
        "You have season 1 of The Traitors (2022) as far as it has aired. New episodes are fetched as they air."
    );
    assert!(app.sonarr().title(1).unwrap().details.seasons[0].monitored);
    assert_eq!(app.follows().await, [FOLLOWED]);
}

#[tokio::test(start_paused = true)]
async fn retried_addition_keeps_the_followers_of_an_airing_season() {
    let world = World::start().await;
    world.register_user(BOB).await;
    world.sonarr().add_to_catalog(series("The Traitors").year(2022).tvdb(TRAITORS).seasons(1).episodes(2));
    let searches = || calls("search_media", json!({ "query": "traitors" }));
    let adds = calls("add_series", json!({ "tvdb": TRAITORS, "seasons": [1] }));
    let follows = calls("tell_me_when_ready", json!({ "type": "series", "tvdb": TRAITORS, "season": 1 }));
    world.model_plays([searches(), says("This?"), adds, says("Sonarr is down, I'll keep trying.")]);
    world.sms("search the traitors").await;
    world.sonarr().set_down(true);
    world.sms("yes, season 1").await;
    world.sonarr().set_down(false);
    world.sonarr().allow_next();
    world.model_plays([searches(), says("This?")]);
    world.sms_from(BOB, "is the traitors coming?").await;
    world.sonarr().set_down(true);
    world.model_plays([follows, says("I'll text you.")]);
    world.sms_from(BOB, "tell me when season 1 is ready").await;
    assert_eq!(world.follows().await, [FOLLOWED]);
    let before = world.messages_to(BOB);

    world.sonarr().add(airing(world.now()));
    world.sonarr().set_down(false);
    world.pass(60 * 60).await;
    assert_eq!(world.messages_to(ANN).pop().unwrap(), "The Traitors (2022) is in the library now.");
    assert_eq!(world.messages_to(BOB), before);
    assert!(world.follows().await.contains(&FOLLOWED.to_owned()));
}
