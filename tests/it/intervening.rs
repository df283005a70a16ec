//! Turns that the operator cancels or resumes.

use std::sync::Arc;

use async_trait::async_trait;
use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::transcript::TurnId;
use dialarr::engine::operator::turns::{CancelRequestOutcome, ResumeTurnOutcome};
use dialarr::llm::embeddings::{EmbedError, Embedder};
use dialarr::store::audit::Actor;
use dialarr::store::turns::turn_resume::ResumeBlocker;
use serde_json::json;

use crate::harness::model::{Slow, adds_movie, calls, calls_together, removes_movies, says};
use crate::harness::world::World;
use crate::harness::{ANN, BOB};

const SORRY: &str = "Something went wrong on my side. Please try again.";

impl World {
    async fn cancels(&self, turn: i64) -> CancelRequestOutcome {
        self.engine().turn_actions.cancel_turn(TurnId(turn), Actor::Console).await.unwrap()
    }

    async fn resumes(&self, turn: i64) -> ResumeTurnOutcome {
        self.engine().turn_actions.resume_turn(TurnId(turn), Actor::Console).await.unwrap()
    }

    /// Returns the turns: `1 COMPLETED`.
    async fn turns(&self) -> Vec<String> {
        self.lines("SELECT id || ' ' || state || iif(finished_at IS NULL, ' live', '') AS line FROM turns ORDER BY id")
            .await
    }

    /// Returns the calls and the number of their starts: `add_movie complete 1`.
    async fn calls(&self) -> Vec<String> {
        self.lines("SELECT tool_name || ' ' || state || ' ' || attempts AS line FROM tool_calls ORDER BY id")
            .await
    }

    async fn audited(&self) -> Vec<String> {
        self.lines(
            "SELECT kind || ' ' || subject || ' ' || (detail ->> 'by') AS line FROM audit_log
             WHERE kind IN ('cancel_turn', 'resume_turn') ORDER BY id",
        )
        .await
    }
}

#[tokio::test(start_paused = true)]
async fn canceled_turn_drops_its_model_call_at_once() {
    let world = World::start_with(Slow::playing(25, [says("Too late.")])).await;
    world.texts("hello?").await;
    world.pass(5).await;
    assert_eq!(world.turns().await, ["1 IN_PROGRESS live"]);
    assert_eq!(world.cancels(1).await, CancelRequestOutcome::Requested);
    world.pass(1).await;
    assert_eq!(world.turns().await, ["1 CANCELED"]);
    assert_eq!(world.cancels(1).await, CancelRequestOutcome::AlreadyEnded);
    assert_eq!(world.cancels(2).await, CancelRequestOutcome::Unknown);
    world.pass(60).await;
    assert_eq!(world.sent_texts(), Vec::<String>::new());
    assert_eq!(world.audited().await, ["cancel_turn turn:1 console"]);
}

#[tokio::test(start_paused = true)]
async fn canceled_turn_reports_the_prompt_it_closed() {
    let world = World::start_with(Slow::playing(
        5,
        [removes_movies(&[("dune", 1)]), vec![says("Too late.")]].concat(),
    ))
    .await;
    world.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    world.sms("delete dune").await;
    world.texts("what else is large?").await;
    world.pass(5).await;
    assert_eq!(world.cancels(2).await, CancelRequestOutcome::Requested);
    world.pass(1).await;
    assert_eq!(world.sent_texts().last().unwrap(), "OK, Dune (2021) is kept.");
}

#[tokio::test(start_paused = true)]
async fn canceled_turn_drops_its_triage_call_at_once() {
    let world = World::start_with_triage_by(Slow::playing(5, [says("Hello Ann."), says("SKIP")])).await;
    assert_eq!(world.sms("hello there").await, ["Hello Ann."]);
    world.texts("we loved the bear").await;
    world.pass(4).await;
    assert_eq!(world.turns().await, ["1 COMPLETED", "2 CREATED live"]);
    assert_eq!(world.cancels(2).await, CancelRequestOutcome::Requested);
    world.pass_ms(100).await;
    assert_eq!(world.turns().await, ["1 COMPLETED", "2 CANCELED"]);
    assert_eq!(world.sent_texts(), ["Hello Ann."]);
}

/// Embedder that never responds.
struct Absent;

#[async_trait]
impl Embedder for Absent {
    fn model(&self) -> &str {
        "absent"
    }

    async fn embed(&self, _: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn canceled_turn_drops_its_recall_at_once() {
    let mut world = World::start().await;
    world.start_again_with(Arc::new(Absent)).await;
    world.texts("which spy show was it?").await;
    world.pass(1).await;
    assert_eq!(world.turns().await, ["1 CREATED live"]);
    assert_eq!(world.cancels(1).await, CancelRequestOutcome::Requested);
    world.pass_ms(100).await;
    assert_eq!(world.turns().await, ["1 CANCELED"]);
    assert_eq!(world.sent_texts(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn canceled_turn_makes_no_triage_call_after_a_restart() {
    let mut world = World::start_with_triage_by(Slow::playing(5, [says("Hello Ann."), says("SKIP")])).await;
    assert_eq!(world.sms("hello there").await, ["Hello Ann."]);
    world.start_again_with(Arc::new(Absent)).await;
    world.texts("we loved the bear").await;
    world.pass(1).await;
    assert_eq!(world.cancels(2).await, CancelRequestOutcome::Requested);
    world.pass_ms(100).await;
    assert_eq!(world.turns().await, ["1 COMPLETED", "2 CANCELED"]);
    assert_eq!(world.sent_texts(), ["Hello Ann."]);
}

#[tokio::test(start_paused = true)]
async fn canceled_turn_drops_a_running_read_at_once() {
    let world = World::start().await;
    world.model_plays([calls("search_media", json!({ "query": "heat" })), says("Too late.")]);
    world.radarr().hang_next();
    world.texts("heat?").await;
    world.pass(4).await;
    assert_eq!(world.calls().await, ["search_media created 0"]);
    assert_eq!(world.cancels(1).await, CancelRequestOutcome::Requested);
    world.pass(1).await;
    assert_eq!(world.calls().await, ["search_media canceled 0"]);
    assert_eq!(world.turns().await, ["1 CANCELED"]);
    world.pass(60).await;
    assert_eq!(world.sent_texts(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn canceled_turn_reports_its_running_write_and_starts_no_other() {
    let world = World::start().await;
    let heat = world.radarr().add_to_catalog(movie("Heat").year(1995));
    let alien = world.radarr().add_to_catalog(movie("Alien").year(1979));
    let searches =
        [("search_media", json!({ "query": "heat" })), ("search_media", json!({ "query": "alien" }))];
    let adds = [("add_movie", json!({ "tmdb": heat })), ("add_movie", json!({ "tmdb": alien }))];
    world.model_plays([calls_together(&searches), calls_together(&adds), says("Too late.")]);
    world.radarr().drop_next_write_response();
    world.texts("add heat and alien").await;
    world.pass(5).await;
    assert_eq!(world.calls().await[2..], ["add_movie running 1", "add_movie created 0"]);
    assert_eq!(world.cancels(1).await, CancelRequestOutcome::Requested);
    world.pass(5).await;
    assert_eq!(world.turns().await, ["1 IN_PROGRESS live"], "the write is not settled yet");
    world.pass(90).await;
    assert_eq!(world.calls().await[2..], ["add_movie complete 1", "add_movie canceled 0"]);
    assert_eq!(world.sent_texts(), ["Added Heat (1995)."]);
    assert_eq!((world.radarr().added_ids(), world.radarr().post_count()), (vec![heat], 1));
}

#[tokio::test(start_paused = true)]
async fn canceled_turn_reports_a_write_with_unknown_outcome() {
    let world = World::start().await;
    let heat = world.radarr().add_to_catalog(movie("Heat").year(1995));
    world.model_plays(adds_movie("heat", heat));
    world.radarr().drop_next_write_response();
    world.texts("add heat").await;
    world.pass(5).await;
    assert_eq!(world.calls().await, ["search_media complete 1", "add_movie running 1"]);
    assert_eq!(world.cancels(1).await, CancelRequestOutcome::Requested);
    world.radarr().set_down(true);
    world.pass(120).await;
    assert_eq!(world.calls().await, ["search_media complete 1", "add_movie error 1"]);
    assert_eq!(world.sent_texts(), ["I could not find out whether that worked. Please check."]);
    assert_eq!(world.radarr().post_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn canceled_turn_stops_between_deletions_and_reports_the_first() {
    let world = World::start().await;
    let dune = world.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    let alien = world.radarr().add(movie("Alien").year(1979).size_gb(8.0));
    world.model_plays(removes_movies(&[("dune", dune), ("alien", alien)]));
    let question = world.sms("delete dune and alien").await.pop().unwrap();
    let code = question.rsplit("YES ").next().unwrap()[..4].to_owned();
    world.radarr().drop_next_write_response();
    world.texts(&format!("yes {code}")).await;
    world.pass(5).await;
    assert_eq!(world.cancels(2).await, CancelRequestOutcome::Requested);
    world.pass(120).await;
    let report = "Deleted Dune (2021). Freed 21.4 GB. I was interrupted and kept Alien (1979).";
    assert_eq!(world.sent_texts(), [question.as_str(), report]);
    assert_eq!(world.radarr().removed_ids(), [dune]);
}

/// Starts a turn whose time is over just as the model calls for an addition.
async fn world_with_a_failed_turn() -> (World, i64) {
    let heat = 949;
    let [search, add] = adds_movie("heat", heat);
    let again = calls("search_media", json!({ "query": "heat 1995" }));
    let model = Slow::playing(25, [search, again, add, says("Heat is added.")]);
    let world = World::start_with(model).await;
    assert_eq!(world.radarr().add_to_catalog(movie("Heat").year(1995).tmdb(heat)), heat);
    world.texts("add heat").await;
    world.pass(90).await;
    assert_eq!(world.sent_texts(), [SORRY]);
    assert_eq!(world.turns().await, ["1 FAILED"]);
    (world, heat)
}

#[tokio::test(start_paused = true)]
async fn failed_turn_resumes_from_its_log_without_repeating_calls() {
    let (world, heat) = world_with_a_failed_turn().await;
    let before = ["search_media complete 1", "search_media complete 1", "add_movie error 0"];
    assert_eq!(world.calls().await, before);
    assert_eq!(world.resumes(1).await, ResumeTurnOutcome::Resumed);
    world.pass(40).await;
    assert_eq!(world.sent_texts(), [SORRY, "Heat is added."]);
    let after = ["search_media complete 1", "search_media complete 1", "add_movie complete 1"];
    assert_eq!(world.calls().await, after);
    assert_eq!((world.radarr().added_ids(), world.radarr().post_count()), (vec![heat], 1));
    assert_eq!(world.turns().await, ["1 COMPLETED"]);
    assert_eq!(world.audited().await, ["resume_turn turn:1 console"]);
    assert_eq!(world.resumes(1).await, ResumeTurnOutcome::NotResumable(ResumeBlocker::NotFailed));
}

#[tokio::test(start_paused = true)]
async fn resumed_turn_survives_a_crash_and_replies_once() {
    let (mut world, heat) = world_with_a_failed_turn().await;
    world.radarr().drop_next_write_response();
    assert_eq!(world.resumes(1).await, ResumeTurnOutcome::Resumed);
    world.pass(2).await;
    assert_eq!(world.radarr().added_ids(), [heat]);
    world.kill().await;
    world.start_again().await;
    world.pass(120).await;
    assert_eq!(world.sent_texts(), [SORRY, "Heat is added."]);
    assert_eq!((world.radarr().added_ids(), world.radarr().post_count()), (vec![heat], 1));
}

#[tokio::test(start_paused = true)]
async fn refused_resume_gives_its_reason() {
    let (world, _) = world_with_a_failed_turn().await;
    assert_eq!(world.resumes(2).await, ResumeTurnOutcome::Unknown);
    world.texts("hello?").await;
    assert_eq!(world.resumes(1).await, ResumeTurnOutcome::NotResumable(ResumeBlocker::Busy));
    // The only response claims a change that was not made, so the model is called twice.
    world.pass(100).await;
    assert_eq!(world.turns().await, ["1 FAILED", "2 COMPLETED"]);
    assert_eq!(world.resumes(1).await, ResumeTurnOutcome::NotResumable(ResumeBlocker::NotNewest));
    world.texts("/clear").await;
    world.pass(5).await;
    assert_eq!(world.resumes(1).await, ResumeTurnOutcome::NotResumable(ResumeBlocker::ConversationEnded));
}

#[tokio::test(start_paused = true)]
async fn turn_is_not_resumed_during_a_pause_or_after_erasure() {
    let (world, _) = world_with_a_failed_turn().await;
    world.register_admin(BOB).await;
    assert_eq!(world.sms_from(BOB, "pause").await.len(), 1);
    assert_eq!(world.resumes(1).await, ResumeTurnOutcome::NotResumable(ResumeBlocker::Paused));
    world.sms_from(BOB, "resume").await;
    world.erase_old_texts().await;
    assert_eq!(world.resumes(1).await, ResumeTurnOutcome::NotResumable(ResumeBlocker::Erased));
    assert_eq!(world.turns().await[0], "1 FAILED");
}

#[tokio::test(start_paused = true)]
async fn turn_of_a_blocked_user_is_not_resumed() {
    let (world, _) = world_with_a_failed_turn().await;
    world.block_user(ANN).await;
    let refused = world.resumes(1).await;
    assert!(matches!(
        refused,
        ResumeTurnOutcome::NotResumable(ResumeBlocker::NotServed | ResumeBlocker::ConversationEnded)
    ));
    assert_eq!(world.sent_texts(), [SORRY]);
}
