//! Crashes, lost responses and long absences: promises hold after a restart.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::model_request::{ModelMessage, ModelRequest};
use dialarr::conversation::transcript::StopReason;
use dialarr::llm::{DeltaSink, Model, ModelError, ModelResponse};
use dialarr::messaging::twilio::fake::FakeDelivery;
use dialarr::store::database::backup::back_up;
use dialarr::store::database::db::{Db, OpenError};
use serde_json::json;

use crate::harness::model::{calls, removes_movie, says};
use crate::harness::world::World;

const QUESTION: &str = "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.";
const DELETED: &str = "Deleted Dune (2021). Freed 21.4 GB.";

/// Starts with a request of Ann to delete Dune.
async fn world_with_dune() -> (World, i64) {
    let world = World::start().await;
    let dune = world.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    world.model_plays(removes_movie("dune", dune));
    (world, dune)
}

#[tokio::test(start_paused = true)]
async fn prompt_unsent_before_a_crash_is_sent_and_confirmable_after_it() {
    let (mut world, dune) = world_with_dune().await;
    world.twilio().fail_next(429, 20429);
    world.texts("delete dune").await;
    world.pass(1).await;
    assert_eq!(world.sent_texts(), Vec::<String>::new());

    world.kill().await;
    world.start_again().await;
    world.pass(30).await;
    assert_eq!(world.sent_texts(), [QUESTION]);

    assert_eq!(world.sms("yes").await, [QUESTION, DELETED]);
    assert_eq!(world.radarr().removed_ids(), [dune]);
}

#[tokio::test(start_paused = true)]
async fn yes_received_before_a_crash_deletes_once_after_it() {
    let (mut world, dune) = world_with_dune().await;
    world.sms("delete dune").await;
    world.texts("yes").await;
    world.kill().await;
    world.start_again().await;
    world.pass(30).await;
    assert_eq!(world.sent_texts(), [QUESTION, DELETED]);
    assert_eq!(world.radarr().removed_ids(), [dune]);
}

#[tokio::test(start_paused = true)]
async fn message_received_before_a_crash_is_answered_after_it() {
    let mut world = World::start().await;
    world.model_plays([says("Here I am.")]);
    world.texts("are you there?").await;
    world.kill().await;
    assert_eq!(world.sent_texts(), Vec::<String>::new());
    world.start_again().await;
    world.pass(30).await;
    assert_eq!(world.sent_texts(), ["Here I am."]);
}

#[tokio::test(start_paused = true)]
async fn message_with_a_lost_response_is_found_and_not_resent() {
    let world = World::start().await;
    world.model_plays([says("One."), says("Two.")]);
    world.twilio().lose_next_answer();
    assert_eq!(world.sms("one").await, ["One."]);
    world.pass(300).await;
    assert_eq!(world.sms("two").await, ["One.", "Two."]);
}

#[tokio::test(start_paused = true)]
async fn message_not_found_twice_is_resent_once() {
    let world = World::start().await;
    world.model_plays([says("One.")]);
    world.twilio().hang_next();
    assert_eq!(world.sms("one").await, Vec::<String>::new());
    world.pass(60).await;
    assert_eq!(world.sent_texts(), Vec::<String>::new(), "one look is not enough");
    world.pass(600).await;
    assert_eq!(world.sent_texts(), ["One."]);
}

#[tokio::test(start_paused = true)]
async fn later_message_waits_for_the_delivery_of_the_earlier_one() {
    let world = World::start().await;
    world.model_plays([says("One."), says("Two.")]);
    world.twilio().hang_next();
    world.sms("one").await;
    assert_eq!(world.sms("two").await, Vec::<String>::new());
    world.pass(300).await;
    assert_eq!(world.sent_texts(), ["One.", "Two."]);
}

#[tokio::test(start_paused = true)]
async fn delivery_report_resolves_an_unknown_delivery_at_once() {
    let world = World::start().await;
    world.model_plays([says("One."), says("Two.")]);
    world.twilio().lose_next_answer();
    world.sms("one").await;
    let sent = world.twilio().sent_messages();
    let report = world.twilio().status_callback(&sent[0], FakeDelivery::Delivered).unwrap().unwrap();
    assert_eq!(world.deliver(report).await, 204);
    assert_eq!(world.sms("two").await, ["One.", "Two."]);
}

#[tokio::test(start_paused = true)]
async fn message_accepted_before_a_crash_is_not_resent() {
    let mut world = World::start().await;
    world.model_plays([says("One."), says("Two.")]);
    world.twilio().lose_next_answer();
    world.texts("one").await;
    world.pass(2).await;
    world.kill().await;
    world.start_again().await;
    world.pass(300).await;
    assert_eq!(world.sms("two").await, ["One.", "Two."]);
}

/// Starts with a request of Ann for Arrival, whose addition has a lost response.
async fn world_with_a_lost_addition() -> World {
    let world = World::start().await;
    let arrival = world.radarr().add_to_catalog(movie("Arrival").year(2016));
    world.model_plays([
        calls("search_media", json!({ "query": "arrival" })),
        calls("add_movie", json!({ "tmdb": arrival })),
        says("Arrival is on its way."),
    ]);
    world.radarr().drop_next_write_response();
    world.texts("get arrival").await;
    world.pass(5).await;
    assert_eq!(world.radarr().added_ids(), [arrival]);
    world
}

#[tokio::test(start_paused = true)]
async fn addition_with_a_lost_response_is_found_and_reported() {
    let world = world_with_a_lost_addition().await;
    world.pass(60).await;
    assert_eq!(world.sent_texts(), ["Still working on it.", "Arrival is on its way."]);
    assert!(world.last_tool_result().contains("\"added\""), "{}", world.last_tool_result());
    assert_eq!(world.radarr().post_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn addition_interrupted_by_a_crash_is_found_and_reported() {
    let mut world = world_with_a_lost_addition().await;
    world.kill().await;
    world.start_again().await;
    world.pass(60).await;
    assert_eq!(world.sent_texts(), ["Arrival is on its way."]);
    assert!(world.last_tool_result().contains("\"added\""), "{}", world.last_tool_result());
    assert_eq!(world.radarr().post_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn deletion_with_a_lost_response_is_verified_and_reported() {
    let (world, dune) = world_with_dune().await;
    world.sms("delete dune").await;
    world.radarr().drop_next_write_response();
    world.sms("yes").await;
    world.pass(60).await;
    assert_eq!(world.sent_texts(), [QUESTION, "Still working on it.", DELETED]);
    assert_eq!((world.radarr().removed_ids(), world.radarr().post_count()), (vec![dune], 1));
}

#[tokio::test(start_paused = true)]
async fn yes_after_a_notification_repeats_the_prompt() {
    let (world, dune) = world_with_dune().await;
    world.sms("delete dune").await;
    world.queue_message("Arrival can be watched now.").await;
    let notified = [QUESTION, "Arrival can be watched now."];
    assert_eq!(world.sms("yes").await, [&notified[..], &[QUESTION]].concat());
    assert_eq!(world.radarr().removed_ids(), Vec::<i64>::new());
    assert_eq!(world.sms("yes").await, [&notified[..], &[QUESTION, DELETED]].concat());
    assert_eq!(world.radarr().removed_ids(), [dune]);
}

/// Model that panics on one word, every time.
struct Fragile;

#[async_trait]
impl Model for Fragile {
    fn name(&self) -> &str {
        "fragile"
    }

    async fn next_response(
        &self,
        request: &ModelRequest,
        _: DeltaSink<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let last = request.messages.last().map(|message| &**message);
        assert!(!matches!(last, Some(ModelMessage::User(text)) if text.ends_with("curse")), "cursed");
        let text = "All is well.".to_owned();
        let (thinking, stop) = (String::new(), StopReason::Done);
        Ok(ModelResponse { text, thinking, calls: Vec::new(), stop, usage: None, response_id: None })
    }
}

#[tokio::test(start_paused = true)]
async fn message_that_always_fails_gets_one_reply_and_blocks_no_other() {
    let world = World::start_with(Arc::new(Fragile)).await;
    let sorry = "Something went wrong on my side. Please try again.";
    assert_eq!(world.sms("curse").await, [sorry]);
    assert_eq!(world.sms("and now?").await, [sorry, "All is well."]);
}

#[tokio::test(start_paused = true)]
async fn messages_after_a_backup_are_fetched_after_its_restore() {
    let mut world = World::start().await;
    world.model_plays([says("One."), says("Two."), says("Two, again.")]);
    world.sms("one").await;
    let copy = copied(&world);
    world.sms("two").await;

    is_restored(&mut world, &copy).await;
    assert_eq!(world.sent_texts(), ["One.", "Two.", "Two, again."]);
}

/// Kills the program and starts it again on an earlier copy of its database.
async fn is_restored(world: &mut World, copy: &Path) {
    world.kill().await;
    std::fs::copy(copy, world.database()).unwrap();
    world.start_again().await;
    world.pass(60).await;
}

fn copied(world: &World) -> PathBuf {
    let copy = world.database().with_file_name("copy.db");
    back_up(world.database().to_str().unwrap(), copy.to_str().unwrap()).unwrap();
    copy
}

#[tokio::test(start_paused = true)]
async fn prompt_queued_in_a_backup_is_not_resent_after_its_restore() {
    let (mut world, dune) = world_with_dune().await;
    world.twilio().fail_next(429, 20429);
    world.texts("delete dune").await;
    world.pass(1).await;
    let copy = copied(&world);
    world.pass(60).await;
    assert_eq!(world.sent_texts(), [QUESTION]);

    is_restored(&mut world, &copy).await;
    assert_eq!(world.sent_texts(), [QUESTION]);
    assert_eq!(world.sms("yes").await, [QUESTION, DELETED]);
    assert_eq!(world.radarr().removed_ids(), [dune]);
}

#[tokio::test(start_paused = true)]
async fn prompt_found_after_a_restore_expires_by_its_sending_time() {
    let (mut world, _) = world_with_dune().await;
    world.twilio().fail_next(429, 20429);
    world.texts("delete dune").await;
    world.pass(1).await;
    let copy = copied(&world);
    world.pass(290).await;
    is_restored(&mut world, &copy).await;
    let late = "That question has expired. Dune (2021) is kept. Ask again to delete.";
    assert_eq!(world.sms("yes").await, [QUESTION, late]);
}

#[tokio::test(start_paused = true)]
async fn unreadable_message_list_delays_no_message_after_a_restart() {
    let mut world = World::start().await;
    world.model_plays([says("One.")]);
    world.twilio().fail_next(429, 20429);
    world.texts("one").await;
    world.pass(1).await;
    world.twilio().fail_reads(true);
    world.kill().await;
    world.start_again().await;
    world.pass(30).await;
    assert_eq!(world.sent_texts(), Vec::<String>::new());
    world.pass(60).await;
    assert_eq!(world.sent_texts(), ["One."]);
}

#[tokio::test(start_paused = true)]
async fn deletion_reported_before_a_restore_is_not_reported_again() {
    let (mut world, dune) = world_with_dune().await;
    world.sms("delete dune").await;
    world.radarr().drop_next_write_response();
    world.texts("yes").await;
    world.pass(5).await;
    let copy = copied(&world);
    world.pass(60).await;
    let before = world.sent_texts();
    assert_eq!(before.last().unwrap(), DELETED);

    is_restored(&mut world, &copy).await;
    assert_eq!(world.sent_texts(), before);
    assert_eq!((world.radarr().removed_ids(), world.radarr().post_count()), (vec![dune], 1));
}

#[tokio::test(start_paused = true)]
async fn deletion_repeated_after_a_restore_reports_the_missing_title() {
    let (mut world, dune) = world_with_dune().await;
    world.sms("delete dune").await;
    let copy = copied(&world);
    assert_eq!(world.sms("yes").await, [QUESTION, DELETED]);
    world.pass(60).await;

    is_restored(&mut world, &copy).await;
    assert_eq!(world.sent_texts(), [QUESTION, DELETED, QUESTION]);
    let replies = world.sms("yes").await;
    assert_eq!(replies, [QUESTION, DELETED, QUESTION, "Dune (2021) was already gone."]);
    assert_eq!(world.radarr().removed_ids(), [dune]);
}

#[tokio::test(start_paused = true)]
async fn second_process_on_the_same_database_is_refused() {
    let world = World::start().await;
    let second = Db::open(world.database().to_str().unwrap());
    assert!(matches!(second, Err(OpenError::InUse { .. })));
}
