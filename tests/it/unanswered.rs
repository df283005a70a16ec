//! Changes that Sonarr or Radarr refuse or do not answer, and restarts during one.

use dialarr::arr::fake::media_fixtures::movie;
use serde_json::json;

use crate::harness::TestApp;
use crate::harness::model::{adds_movie, finds, removes, removes_movie};
use crate::harness::world::World;

const QUESTION: &str = "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.";
const DELETED: &str = "Deleted Dune (2021). Freed 21.4 GB.";
const STILL_THERE: &str = "Radarr could not do it. Dune (2021) is still there.";
const STILL_WORKING: &str = "Still working on it.";

/// Starts with a prompt to Ann about Dune.
async fn world_with_question() -> (World, i64) {
    let world = World::start().await;
    let dune = world.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    world.model_plays(removes_movie("dune", dune));
    assert_eq!(world.sms("delete dune").await, [QUESTION]);
    (world, dune)
}

#[tokio::test(start_paused = true)]
async fn refused_deletion_is_reported_and_can_be_requested_again() {
    let (world, dune) = world_with_question().await;
    (0..3).for_each(|_| world.radarr().fail_next_write(500));
    world.texts("yes").await;
    world.pass(30).await;
    assert_eq!(world.sent_texts(), [QUESTION, STILL_THERE]);
    assert_eq!(world.radarr().post_count(), 3);

    let late = format!("No question is open. {STILL_THERE} Ask again to delete.");
    assert_eq!(world.sms("yes").await.last(), Some(&late));
    assert_eq!(world.radarr().post_count(), 3);

    world.model_plays(removes_movie("dune", dune));
    assert_eq!(world.sms("delete dune").await.last().unwrap(), QUESTION);
    assert_eq!(world.sms("yes").await.last().unwrap(), DELETED);
    assert_eq!(world.radarr().removed_ids(), [dune]);
}

#[tokio::test]
async fn refused_addition_is_reported_and_can_be_requested_again() {
    let app = TestApp::start_without_model().await;
    let heat = app.radarr().add_to_catalog(movie("Heat").year(1995));
    (0..3).for_each(|_| app.radarr().fail_next_write(500));
    assert_eq!(app.sms("add heat").await, "Radarr could not do it. Heat (1995) was not added.");
    assert_eq!((app.radarr().added_ids(), app.radarr().post_count()), (vec![], 3));
    assert_eq!(app.sms("add heat").await, "Added Heat (1995).");
    assert_eq!(app.radarr().added_ids(), [heat]);
}

#[tokio::test(start_paused = true)]
async fn deletion_without_a_response_sends_progress_once_and_its_outcome() {
    let (mut world, _) = world_with_question().await;
    (0..3).for_each(|_| world.radarr().hang_next_write());
    world.texts("yes").await;
    world.pass(19).await;
    assert_eq!(world.sent_texts(), [QUESTION]);
    world.pass(6).await;
    assert_eq!(world.sent_texts(), [QUESTION, STILL_WORKING]);
    world.kill().await;
    world.start_again().await;
    world.pass(90).await;
    assert_eq!(world.sent_texts(), [QUESTION, STILL_WORKING, STILL_THERE]);
    assert_eq!(world.radarr().post_count(), 3);
}

#[tokio::test(start_paused = true)]
async fn addition_without_a_response_sends_progress_and_keeps_the_prompt() {
    let world = World::start().await;
    let dune = world.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    let heat = world.radarr().add_to_catalog(movie("Heat").year(1995));
    let [searches, adds] = adds_movie("heat", heat);
    world.model_plays([searches, adds, finds("dune"), removes(&json!([{ "type": "movie", "id": dune }]))]);
    world.radarr().hang_next_write();
    world.texts("add heat and delete dune").await;
    world.pass(40).await;
    assert_eq!(world.sent_texts(), [STILL_WORKING, &format!("Added Heat (1995). {QUESTION}")]);
    assert_eq!(world.sms("yes").await.last().unwrap(), DELETED);
    assert_eq!(world.radarr().removed_ids(), [dune]);
}

#[tokio::test(start_paused = true)]
async fn no_progress_is_sent_after_the_reply_of_a_slow_carrier() {
    let (world, _) = world_with_question().await;
    world.radarr().drop_next_write_response();
    world.pass(1).await;
    // The first attempt at the progress message is refused, and by the second the reply is stored.
    world.twilio().fail_next(429, 20429);
    world.texts("yes").await;
    world.pass(60).await;
    let messages = world.sent_texts();
    assert_eq!(messages.last().unwrap(), DELETED);
    assert_eq!(messages.iter().filter(|text| *text == DELETED).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn deletion_through_seven_quick_restarts_is_reported_as_done() {
    let (mut world, dune) = world_with_question().await;
    world.radarr().drop_next_write_response();
    world.texts("yes").await;
    world.pass_ms(100).await;
    for _ in 0..7 {
        world.kill().await;
        world.start_again().await;
    }
    world.pass(60).await;
    assert_eq!(world.sent_texts(), [QUESTION, DELETED]);
    assert_eq!((world.radarr().removed_ids(), world.radarr().post_count()), (vec![dune], 1));
}

#[tokio::test(start_paused = true)]
async fn started_deletion_is_checked_after_any_number_of_restarts() {
    let (mut world, dune) = world_with_question().await;
    world.radarr().drop_next_write_response();
    world.texts("yes").await;
    world.pass_ms(100).await;
    for _ in 0..12 {
        world.kill().await;
        world.pass(15).await;
        world.start_again().await;
    }
    world.pass(60).await;
    assert_eq!(world.sent_texts(), [QUESTION, DELETED]);
    assert_eq!((world.radarr().removed_ids(), world.radarr().post_count()), (vec![dune], 1));
}

#[tokio::test(start_paused = true)]
async fn started_addition_is_checked_after_any_number_of_restarts() {
    let mut world = World::start().await;
    let heat = world.radarr().add_to_catalog(movie("Heat").year(1995));
    world.model_plays(adds_movie("heat", heat));
    world.radarr().drop_next_write_response();
    world.texts("add heat").await;
    world.pass(5).await;
    for _ in 0..12 {
        world.kill().await;
        world.pass(15).await;
        world.start_again().await;
    }
    world.pass(60).await;
    assert_eq!(world.sent_texts(), ["Added Heat (1995)."]);
    assert_eq!((world.radarr().added_ids(), world.radarr().post_count()), (vec![heat], 1));
}

#[tokio::test(start_paused = true)]
async fn deletion_that_never_started_is_kept_after_many_restarts() {
    let (mut world, _) = world_with_question().await;
    world.radarr().hang_next();
    world.texts("yes").await;
    world.pass_ms(100).await;
    for _ in 0..12 {
        world.radarr().hang_next();
        world.kill().await;
        world.pass(15).await;
        world.start_again().await;
        world.pass_ms(100).await;
    }
    world.kill().await;
    world.start_again().await;
    world.pass(60).await;
    assert_eq!(world.sent_texts(), [QUESTION, STILL_THERE]);
    assert_eq!(world.radarr().post_count(), 0);
}
