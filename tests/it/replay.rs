//! Killed and started again: what a crash, a lost answer or a long absence leaves of the promises.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::model_request::{ModelMessage, ModelRequest};
use dialarr::conversation::transcript::StopReason;
use dialarr::llm::{DeltaSink, Model, ModelError, ModelResponse};
use dialarr::messaging::fake::FakeDelivery;
use dialarr::store::database::backup::back_up;
use dialarr::store::database::db::{Db, OpenError};
use serde_json::json;

use crate::harness::model::{calls, removes_movie, says};
use crate::harness::world::World;

const QUESTION: &str = "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.";
const DELETED: &str = "Deleted Dune (2021). Freed 21.4 GB.";

/// A world in which Ann has asked for Dune to be deleted.
async fn world_with_dune() -> (World, i64) {
    let world = World::start().await;
    let dune = world.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    world.model_plays(removes_movie("dune", dune));
    (world, dune)
}

#[tokio::test(start_paused = true)]
async fn a_question_not_sent_before_a_crash_is_sent_after_it_and_can_be_answered() {
    let (mut world, dune) = world_with_dune().await;
    world.twilio().fail_next(429, 20429);
    world.texts("delete dune").await;
    world.passes(1).await;
    assert_eq!(world.said(), Vec::<String>::new());

    world.is_killed().await;
    world.is_started().await;
    world.passes(30).await;
    assert_eq!(world.said(), [QUESTION]);

    assert_eq!(world.sms("yes").await, [QUESTION, DELETED]);
    assert_eq!(world.radarr().removed_ids(), [dune]);
}

#[tokio::test(start_paused = true)]
async fn a_yes_taken_in_before_a_crash_deletes_once_after_it() {
    let (mut world, dune) = world_with_dune().await;
    world.sms("delete dune").await;
    world.texts("yes").await;
    world.is_killed().await;
    world.is_started().await;
    world.passes(30).await;
    assert_eq!(world.said(), [QUESTION, DELETED]);
    assert_eq!(world.radarr().removed_ids(), [dune]);
}

#[tokio::test(start_paused = true)]
async fn a_text_taken_in_before_a_crash_is_answered_after_it() {
    let mut world = World::start().await;
    world.model_plays([says("Here I am.")]);
    world.texts("are you there?").await;
    world.is_killed().await;
    assert_eq!(world.said(), Vec::<String>::new());
    world.is_started().await;
    world.passes(30).await;
    assert_eq!(world.said(), ["Here I am."]);
}

#[tokio::test(start_paused = true)]
async fn a_text_whose_answer_was_lost_is_found_and_not_sent_again() {
    let world = World::start().await;
    world.model_plays([says("One."), says("Two.")]);
    world.twilio().lose_next_answer();
    assert_eq!(world.sms("one").await, ["One."]);
    world.passes(300).await;
    assert_eq!(world.sms("two").await, ["One.", "Two."]);
}

#[tokio::test(start_paused = true)]
async fn a_text_that_is_not_found_twice_is_sent_again_once() {
    let world = World::start().await;
    world.model_plays([says("One.")]);
    world.twilio().hang_next();
    assert_eq!(world.sms("one").await, Vec::<String>::new());
    world.passes(60).await;
    assert_eq!(world.said(), Vec::<String>::new(), "one look is not enough");
    world.passes(600).await;
    assert_eq!(world.said(), ["One."]);
}

#[tokio::test(start_paused = true)]
async fn a_later_text_waits_until_the_fate_of_the_one_before_is_known() {
    let world = World::start().await;
    world.model_plays([says("One."), says("Two.")]);
    world.twilio().hang_next();
    world.sms("one").await;
    assert_eq!(world.sms("two").await, Vec::<String>::new());
    world.passes(300).await;
    assert_eq!(world.said(), ["One.", "Two."]);
}

#[tokio::test(start_paused = true)]
async fn a_status_report_tells_the_fate_of_a_text_at_once() {
    let world = World::start().await;
    world.model_plays([says("One."), says("Two.")]);
    world.twilio().lose_next_answer();
    world.sms("one").await;
    let sent = world.twilio().sent_messages();
    let report = world.twilio().status_callback(&sent[0], FakeDelivery::Delivered).unwrap().unwrap();
    assert_eq!(world.bring(report).await, 204);
    assert_eq!(world.sms("two").await, ["One.", "Two."]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_a_text_was_taken_sends_it_no_second_time() {
    let mut world = World::start().await;
    world.model_plays([says("One."), says("Two.")]);
    world.twilio().lose_next_answer();
    world.texts("one").await;
    world.passes(2).await;
    world.is_killed().await;
    world.is_started().await;
    world.passes(300).await;
    assert_eq!(world.sms("two").await, ["One.", "Two."]);
}

/// A world in which Ann has asked for Arrival, and Radarr's answer to its addition is lost.
async fn world_with_a_lost_addition() -> World {
    let world = World::start().await;
    let arrival = world.radarr().add_to_catalog(movie("Arrival").year(2016));
    world.model_plays([
        calls("search_media", json!({ "query": "arrival" })),
        calls("add_movie", json!({ "tmdb": arrival })),
        says("Arrival is on its way."),
    ]);
    world.radarr().lose_next_write_answer();
    world.texts("get arrival").await;
    world.passes(5).await;
    assert_eq!(world.radarr().added_ids(), [arrival]);
    world
}

#[tokio::test(start_paused = true)]
async fn an_addition_whose_answer_was_lost_is_looked_for_and_told_as_made() {
    let world = world_with_a_lost_addition().await;
    world.passes(60).await;
    assert_eq!(world.said(), ["Still working on it.", "Arrival is on its way."]);
    assert!(world.model_was_shown().contains("\"added\""), "{}", world.model_was_shown());
    assert_eq!(world.radarr().post_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_addition_cut_off_by_a_crash_is_looked_for_and_told_as_made() {
    let mut world = world_with_a_lost_addition().await;
    world.is_killed().await;
    world.is_started().await;
    world.passes(60).await;
    assert_eq!(world.said(), ["Arrival is on its way."]);
    assert!(world.model_was_shown().contains("\"added\""), "{}", world.model_was_shown());
    assert_eq!(world.radarr().post_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_whose_answer_was_lost_is_looked_for_and_told_as_made() {
    let (world, dune) = world_with_dune().await;
    world.sms("delete dune").await;
    world.radarr().lose_next_write_answer();
    world.sms("yes").await;
    world.passes(60).await;
    assert_eq!(world.said(), [QUESTION, "Still working on it.", DELETED]);
    assert_eq!((world.radarr().removed_ids(), world.radarr().post_count()), (vec![dune], 1));
}

#[tokio::test(start_paused = true)]
async fn a_yes_after_something_else_was_sent_asks_again() {
    let (world, dune) = world_with_dune().await;
    world.sms("delete dune").await;
    world.notifies("Arrival can be watched now.").await;
    let notified = [QUESTION, "Arrival can be watched now."];
    assert_eq!(world.sms("yes").await, [&notified[..], &[QUESTION]].concat());
    assert_eq!(world.radarr().removed_ids(), Vec::<i64>::new());
    assert_eq!(world.sms("yes").await, [&notified[..], &[QUESTION, DELETED]].concat());
    assert_eq!(world.radarr().removed_ids(), [dune]);
}

#[tokio::test(start_paused = true)]
async fn the_pieces_of_a_response_are_forgotten_after_an_hour() {
    let world = World::start().await;
    world.model_plays([says("One.")]);
    world.sms("one").await;
    assert_eq!(world.pieces_stored().await, ["One."]);
    world.passes(2 * 60 * 60).await;
    assert_eq!(world.pieces_stored().await, Vec::<String>::new());
}

/// Breaks down over one word, every time.
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
        let last = request.messages.last();
        assert!(!matches!(last, Some(ModelMessage::User(text)) if text.ends_with("curse")), "cursed");
        let text = "All is well.".to_owned();
        let (thinking, stop) = (String::new(), StopReason::Done);
        Ok(ModelResponse { text, thinking, calls: Vec::new(), stop, usage: None, response_id: None })
    }
}

#[tokio::test(start_paused = true)]
async fn a_text_whose_work_always_fails_gets_one_honest_answer_and_blocks_nobody() {
    let world = World::start_with(Arc::new(Fragile)).await;
    let sorry = "Something went wrong on my side. Please try again.";
    assert_eq!(world.sms("curse").await, [sorry]);
    assert_eq!(world.sms("and now?").await, [sorry, "All is well."]);
}

#[tokio::test(start_paused = true)]
async fn texts_after_a_copy_of_the_database_come_back_when_it_is_restored() {
    let mut world = World::start().await;
    world.model_plays([says("One."), says("Two."), says("Two, again.")]);
    world.sms("one").await;
    let copy = copied(&world);
    world.sms("two").await;

    is_restored(&mut world, &copy).await;
    assert_eq!(world.said(), ["One.", "Two.", "Two, again."]);
}

/// The program is killed and started again on a copy of its database from before.
async fn is_restored(world: &mut World, copy: &Path) {
    world.is_killed().await;
    std::fs::copy(copy, world.database()).unwrap();
    world.is_started().await;
    world.passes(60).await;
}

fn copied(world: &World) -> PathBuf {
    let copy = world.database().with_file_name("copy.db");
    back_up(world.database().to_str().unwrap(), copy.to_str().unwrap()).unwrap();
    copy
}

#[tokio::test(start_paused = true)]
async fn question_queued_in_a_copy_is_not_sent_again_after_its_restore() {
    let (mut world, dune) = world_with_dune().await;
    world.twilio().fail_next(429, 20429);
    world.texts("delete dune").await;
    world.passes(1).await;
    let copy = copied(&world);
    world.passes(60).await;
    assert_eq!(world.said(), [QUESTION]);

    is_restored(&mut world, &copy).await;
    assert_eq!(world.said(), [QUESTION]);
    assert_eq!(world.sms("yes").await, [QUESTION, DELETED]);
    assert_eq!(world.radarr().removed_ids(), [dune]);
}

#[tokio::test(start_paused = true)]
async fn question_found_after_a_restore_has_been_open_since_it_was_sent() {
    let (mut world, _) = world_with_dune().await;
    world.twilio().fail_next(429, 20429);
    world.texts("delete dune").await;
    world.passes(1).await;
    let copy = copied(&world);
    world.passes(290).await;
    is_restored(&mut world, &copy).await;
    let late = "That question has expired. Dune (2021) is kept. Ask again to delete.";
    assert_eq!(world.sms("yes").await, [QUESTION, late]);
}

#[tokio::test(start_paused = true)]
async fn list_that_cannot_be_read_holds_up_no_text_after_a_restart() {
    let mut world = World::start().await;
    world.model_plays([says("One.")]);
    world.twilio().fail_next(429, 20429);
    world.texts("one").await;
    world.passes(1).await;
    world.twilio().refuse_reads(true);
    world.is_killed().await;
    world.is_started().await;
    world.passes(30).await;
    assert_eq!(world.said(), Vec::<String>::new());
    world.passes(60).await;
    assert_eq!(world.said(), ["One."]);
}

#[tokio::test(start_paused = true)]
async fn deletion_reported_before_a_restore_is_not_reported_again() {
    let (mut world, dune) = world_with_dune().await;
    world.sms("delete dune").await;
    world.radarr().lose_next_write_answer();
    world.texts("yes").await;
    world.passes(5).await;
    let copy = copied(&world);
    world.passes(60).await;
    let said = world.said();
    assert_eq!(said.last().unwrap(), DELETED);

    is_restored(&mut world, &copy).await;
    assert_eq!(world.said(), said);
    assert_eq!((world.radarr().removed_ids(), world.radarr().post_count()), (vec![dune], 1));
}

#[tokio::test(start_paused = true)]
async fn deletion_confirmed_again_after_a_restore_reports_what_was_already_gone() {
    let (mut world, dune) = world_with_dune().await;
    world.sms("delete dune").await;
    let copy = copied(&world);
    assert_eq!(world.sms("yes").await, [QUESTION, DELETED]);
    world.passes(60).await;

    is_restored(&mut world, &copy).await;
    assert_eq!(world.said(), [QUESTION, DELETED, QUESTION]);
    let told = world.sms("yes").await;
    assert_eq!(told, [QUESTION, DELETED, QUESTION, "Dune (2021) was already gone."]);
    assert_eq!(world.radarr().removed_ids(), [dune]);
}

#[tokio::test(start_paused = true)]
async fn a_second_program_on_the_same_database_is_refused() {
    let world = World::start().await;
    let second = Db::open(world.database().to_str().unwrap());
    assert!(matches!(second, Err(OpenError::InUse { .. })));
}
