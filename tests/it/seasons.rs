//! When a season is ready: the catalog may list its episodes as they air, so that those on disk may be far from all.

use dialarr::arr::fake::item::{FakeSeries, series};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::harness::model::{calls, finds, says};
use crate::harness::world::World;
use crate::harness::{ANN, BOB, Has, TestApp};

const TRAITORS: i64 = 403_294;
const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
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
    app.knows(BOB, Has::AddRight).await;
    app.sonarr().add(series("The Traitors").year(2022).tvdb(TRAITORS).seasons(1).episodes(0));
    app.awaits_season(BOB, TRAITORS, 1).await;
    // The first reading of the history stores where it begins.
    app.later(0).await;
    app
}

/// Bob, and a show in the middle of its season; its library id is 1.
async fn app_in_mid_season() -> TestApp {
    let app = TestApp::start().await;
    app.knows(BOB, Has::AddRight).await;
    app.sonarr().add(airing(app.now()));
    app.later(0).await;
    app
}

/// The catalog lists the next episode of the first season, which is imported on the day on which it airs.
async fn next_episode_airs(app: &TestApp, number: u32) {
    let airs = app.now();
    app.sonarr().edit(1, |show| show.lists_next_episode(1, airs));
    let title = format!("The Traitors S01E{number:02}");
    app.sonarr().imports(&title);
    app.hears("sonarr", &app.sonarr().import_report(&title)).await;
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
    assert_eq!(app.heard_by(BOB), [1, 2, 3].map(episode_ready));
    assert_eq!(app.follows().await, [FOLLOWED]);

    app.sonarr().edit(1, |show| show.details.finales = vec![1]);
    next_episode_airs(&app, 4).await;
    assert_eq!(app.last_to(BOB), READY);
    assert_eq!(app.follows().await, Vec::<String>::new());
}

#[tokio::test]
async fn airing_season_is_followed_instead_of_called_ready() {
    let app = app_in_mid_season().await;
    assert_eq!(
        bob_asks_for(&app, Some(1)).await,
        "I'll text you when The Traitors (2022), season 1 is ready. What has aired so far is there."
    );
    assert_eq!(app.follows().await, [FOLLOWED]);
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
    app.sonarr().spare_next();
    app.sonarr().fail_next_n(2, 500);
    app.sms_from(BOB, "tell me when season 1 is ready").await;
    assert_eq!(app.follows().await, [FOLLOWED]);
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
async fn requested_airing_season_is_looked_for_and_followed() {
    let app = app_in_mid_season().await;
    app.sonarr().edit(1, |show| *show = show.clone().unmonitored_season(1));
    let more = calls("get_more", json!({ "type": "series", "id": 1, "seasons": ["1"] }));
    app.model_plays([finds("traitors"), more, says("")]);
    assert_eq!(
        app.sms_from(BOB, "get season 1 of the traitors").await,
        "You have season 1 of The Traitors (2022) as far as it has aired. New episodes are fetched as they air."
    );
    assert!(app.sonarr().item(1).unwrap().details.seasons[0].monitored);
    assert_eq!(app.follows().await, [FOLLOWED]);
}

#[tokio::test(start_paused = true)]
async fn retried_addition_keeps_the_followers_of_an_airing_season() {
    let world = World::start().await;
    world.knows(BOB).await;
    world.sonarr().catalog(series("The Traitors").year(2022).tvdb(TRAITORS).seasons(1).episodes(2));
    let searches = || calls("search_media", json!({ "query": "traitors" }));
    let adds = calls("add_series", json!({ "tvdb": TRAITORS, "seasons": [1] }));
    let follows = calls("tell_me_when_ready", json!({ "type": "series", "tvdb": TRAITORS, "season": 1 }));
    world.model_plays([searches(), says("This?"), adds, says("Sonarr is down, I'll keep trying.")]);
    world.sms("search the traitors").await;
    world.sonarr().down(true);
    world.sms("yes, season 1").await;
    world.sonarr().down(false);
    world.sonarr().spare_next();
    world.model_plays([searches(), says("This?")]);
    world.sms_from(BOB, "is the traitors coming?").await;
    world.sonarr().down(true);
    world.model_plays([follows, says("I'll text you.")]);
    world.sms_from(BOB, "tell me when season 1 is ready").await;
    assert_eq!(world.follows().await, [FOLLOWED]);
    let heard = world.heard_by(BOB);

    world.sonarr().add(airing(world.now()));
    world.sonarr().down(false);
    world.passes(60 * 60).await;
    assert_eq!(world.heard_by(ANN).pop().unwrap(), "The Traitors (2022) is in the library now.");
    assert_eq!(world.heard_by(BOB), heard);
    assert!(world.follows().await.contains(&FOLLOWED.to_owned()));
}
