//! Steps of the wall clock while messages, additions and prompts wait, or while the program is down.

use dialarr::arr::fake::media_fixtures::movie;
use jiff::SignedDuration;

use crate::harness::ANN;
use crate::harness::model::{adds_movie, removes_movie, says};
use crate::harness::world::World;

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);
const DUNE: i64 = 438_631;
const QUESTION: &str = "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.";
const EXPIRED: &str = "That question has expired. Dune (2021) is kept. Ask again to delete.";

/// Starts with a reply to Ann that the carrier has deferred for some seconds.
async fn world_with_text_put_off() -> World {
    let world = World::start().await;
    for _ in 0..3 {
        world.twilio().fail_next(429, 20429);
    }
    world.model_plays([says("Hello.")]);
    world.texts("hi").await;
    world.pass(10).await;
    assert!(world.sent_texts().is_empty(), "{:?}", world.sent_texts());
    world
}

#[tokio::test(start_paused = true)]
async fn deferred_message_leaves_on_time_after_a_clock_step_back() {
    for step in [-HOUR, -DAY] {
        let world = world_with_text_put_off().await;
        world.set_clock(step).await;
        world.pass(15).await;
        assert_eq!(world.sent_texts(), ["Hello."], "{step}");
    }
}

#[tokio::test(start_paused = true)]
async fn deferred_message_is_sent_after_a_clock_jump_of_a_day() {
    let world = world_with_text_put_off().await;
    world.set_clock(DAY).await;
    world.pass(15).await;
    assert_eq!(world.sent_texts(), ["Hello."]);
}

#[tokio::test(start_paused = true)]
async fn deferred_message_is_sent_by_a_start_with_the_clock_behind() {
    let mut world = world_with_text_put_off().await;
    world.kill().await;
    world.set_clock(-DAY).await;
    world.start_again().await;
    world.pass(15).await;
    assert_eq!(world.sent_texts(), ["Hello."]);
}

#[tokio::test(start_paused = true)]
async fn message_from_before_a_clock_step_back_is_answered_at_once() {
    let world = World::start().await;
    world.model_plays([says("Hello.")]);
    world.texts("hi").await;
    world.set_clock(-HOUR).await;
    world.pass(5).await;
    assert_eq!(world.sent_texts(), ["Hello."]);
}

/// Starts with an open prompt to Ann about the deletion of Dune.
async fn world_with_question() -> (World, i64) {
    let world = World::start().await;
    let dune = world.radarr().add(movie("Dune").year(2021).tmdb(DUNE).size_gb(21.4));
    world.model_plays(removes_movie("dune", dune));
    assert_eq!(world.sms("delete dune").await, [QUESTION]);
    (world, dune)
}

#[tokio::test(start_paused = true)]
async fn prompt_expires_after_any_clock_step() {
    for step in [-DAY, -HOUR, HOUR] {
        let (world, dune) = world_with_question().await;
        world.set_clock(step).await;
        assert_eq!(world.sms("yes").await, [QUESTION, EXPIRED], "{step}");

        world.model_plays(removes_movie("dune", dune));
        world.sms("delete dune").await;
        world.sms("yes").await;
        assert_eq!(world.radarr().removed_ids(), [dune], "{step}: asked again, it is deleted");
    }
}

#[tokio::test(start_paused = true)]
async fn prompt_expires_at_a_start_with_the_clock_behind() {
    let (mut world, _) = world_with_question().await;
    world.kill().await;
    world.set_clock(-HOUR).await;
    world.start_again().await;
    world.pass(1).await;
    assert_eq!(world.sms("yes").await, [QUESTION, EXPIRED]);
    assert_eq!(world.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test(start_paused = true)]
async fn deferred_addition_survives_any_clock_step() {
    for step in [-DAY, DAY] {
        let world = World::start().await;
        world.radarr().add_to_catalog(movie("Dune").year(2021).tmdb(DUNE));
        let [searches, adds] = adds_movie("dune", DUNE);
        world.model_plays([searches, says("Dune (2021)?"), adds, says("Radarr is down.")]);
        world.sms("search dune").await;
        world.radarr().set_down(true);
        world.sms("yes, add it").await;
        world.set_clock(step).await;
        world.radarr().set_down(false);
        world.pass(120).await;
        assert_eq!(world.sent_texts().pop().unwrap(), "Dune (2021) is added now.", "{step}");
    }
}

#[tokio::test(start_paused = true)]
async fn stop_counts_after_a_start_before_a_clock_step_back() {
    let world = World::start().await;
    world.sms("START").await;
    world.set_clock(-HOUR).await;
    world.sms("STOP").await;
    let opted_out =
        "SELECT opted_out_at IS NOT NULL AS line FROM user_addresses WHERE address = '+15550100002'";
    assert_eq!(world.lines(opted_out).await, ["1"]);
}

#[tokio::test(start_paused = true)]
async fn morning_notification_leaves_by_the_corrected_clock() {
    let world = World::start().await;
    world.radarr().add(movie("Dune").year(2021).tmdb(DUNE));
    // The clock shows nine in the evening.
    world.sms("quiet 21-7").await;
    world.import_followed_titles().await;
    let before = world.sent_texts();
    world.set_clock(-HOUR).await;
    world.pass(2).await;
    let after = world.sent_texts();
    assert!(after.len() > before.len(), "it is eight again, and nobody wants quiet: {after:?}");
}

#[tokio::test(start_paused = true)]
async fn missed_message_is_fetched_soon_after_a_clock_step_back() {
    for step in [-HOUR, -DAY] {
        let world = World::start().await;
        world.model_plays([says("Found you."), says("And you.")]);
        world.miss_message("hello?").await;
        world.set_clock(step).await;
        world.pass(400).await;
        assert_eq!(world.sent_texts(), ["Found you."], "{step}");

        world.miss_message("me, too").await;
        world.pass(400).await;
        assert_eq!(world.sent_texts(), ["Found you.", "And you."], "{step}");
    }
}

#[tokio::test(start_paused = true)]
async fn message_after_a_pause_is_answered_despite_a_clock_step_back() {
    for step in [-HOUR * 2, -DAY] {
        let world = World::start().await;
        world.register_admin(ANN).await;
        world.sms("pause").await;
        world.sms("resume").await;
        world.set_clock(step).await;
        world.model_plays([says("Hello.")]);
        world.sms("hi").await;
        assert_eq!(world.sent_texts().last().unwrap(), "Hello.", "{step}");
    }
}
