//! Completeness of the event log: each change of what readers of a conversation see is an event, in the same order.

use std::collections::BTreeSet;

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::transcript::{ConversationId, TurnId};
use dialarr::llm::ModelError;
use dialarr::messaging::twilio::fake::FakeDelivery;
use dialarr::store::audit::Actor;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde_json::json;

use crate::harness::expected_events::ExpectedEvents;
use crate::harness::model::{Slow, adds_movie, calls, fails, is_cut_off_in, removes_movie, says};
use crate::harness::world::World;
use crate::harness::{ANN, BOB};

/// Part of a day. Returns its world, and the events that must be in the log.
type Scenario = fn() -> LocalBoxFuture<'static, (World, ExpectedEvents)>;

async fn start() -> (World, ExpectedEvents) {
    let world = World::start().await;
    let expected = world.expect_events().await;
    (world, expected)
}

async fn chat_with_tools() -> (World, ExpectedEvents) {
    let (world, expected) = start().await;
    let arrival = world.radarr().add_to_catalog(movie("Arrival").year(2016));
    world.model_plays([&adds_movie("arrival", arrival)[..], &[says("Arrival is on its way.")]].concat());
    world.sms("get arrival").await;
    world.model_plays([is_cut_off_in("find_in_library", json!({ "query": "heat" })), says("Shorter, then.")]);
    world.sms("do we have heat and all the others?").await;
    world.radarr().set_down(true);
    world.model_plays([calls("find_in_library", json!({ "query": "heat" })), says("Radarr is down.")]);
    world.sms("heat?").await;
    world.radarr().set_down(false);
    world.model_plays([fails(ModelError::Unavailable("busy".to_owned())), says("All is well.")]);
    world.texts("how are you?").await;
    world.pass(60).await;
    (world, expected)
}

async fn deliveries() -> (World, ExpectedEvents) {
    let (world, expected) = start().await;
    world.model_plays([says("One."), says("Two."), says("Three.")]);
    world.sms("one").await;
    let sent = world.twilio().sent_messages().pop().unwrap();
    for status in [FakeDelivery::Queued, FakeDelivery::Sent, FakeDelivery::Delivered, FakeDelivery::Sent] {
        let report = world.twilio().status_callback(&sent, status).unwrap().unwrap();
        world.deliver(report).await;
    }
    world.twilio().lose_next_answer();
    world.sms("two").await;
    world.pass(5 * 60).await;
    world.twilio().fail_next(400, 21_211);
    world.sms("three").await;
    // The recipient has opted out at the carrier.
    world.twilio().fail_next(400, 21_610);
    world.model_plays([says("Four.")]);
    world.texts("four").await;
    world.pass(60).await;
    (world, expected)
}

async fn agents() -> (World, ExpectedEvents) {
    let (world, expected) = start().await;
    let heat = world.radarr().add(movie("Heat").year(1995).size_gb(18.0));
    world.model_plays([says("Hi."), says("Bye.")]);
    world.sms("hi").await;
    let items = json!([{ "type": "movie", "id": heat }]);
    let removal = json!({ "items": items, "delete_files": true });
    let find = ("find_in_library", json!({ "query": "heat" }));
    let asked = world.agent_calls(ANN, &[find, ("remove_media", removal)]).await;
    assert!(asked.last().unwrap().was_asked, "{asked:?}");
    world.sms("no").await;
    world.sms("bye").await;
    world.pass(60).await;
    (world, expected)
}

async fn deletions() -> (World, ExpectedEvents) {
    let (world, expected) = start().await;
    let dune = world.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    world.model_plays(removes_movie("dune", dune));
    world.sms("delete dune").await;
    world.sms("no").await;
    world.model_plays(removes_movie("dune", dune));
    world.sms("delete dune").await;
    world.queue_message("Arrival can be watched now.").await;
    world.sms("yes").await;
    world.sms("yes").await;
    let heat = world.radarr().add(movie("Heat").year(1995).size_gb(18.0));
    world.model_plays(removes_movie("heat", heat));
    world.sms("delete heat").await;
    world.pass(10 * 60).await;
    world.sms("yes").await;
    (world, expected)
}

async fn canceled_turn() -> (World, ExpectedEvents) {
    let world = World::start_with(Slow::playing(25, [says("Too late.")])).await;
    let expected = world.expect_events().await;
    world.texts("hello?").await;
    world.pass(5).await;
    world.engine().turn_actions.cancel_turn(TurnId(1), Actor::Console).await.unwrap();
    world.pass(60).await;
    (world, expected)
}

async fn ended_turns() -> (World, ExpectedEvents) {
    let (world, expected) = start().await;
    // Each further step is a call, until the turn runs out of steps.
    world.model_plays(vec![calls("no_such_tool", json!({})); 12]);
    world.sms("what is on?").await;
    world.model_plays([says("Nothing.")]);
    let turns = world.lines("SELECT '' || max(id) AS line FROM turns").await.remove(0);
    world.engine().turn_actions.resume_turn(TurnId(turns.parse().unwrap()), Actor::Console).await.unwrap();
    world.pass(60).await;
    world.sms("never mind").await;
    (world, expected)
}

/// The time of a turn is over just as the model calls for an addition.
async fn failure_and_resume() -> (World, ExpectedEvents) {
    let [search, add] = adds_movie("heat", 949);
    let again = calls("search_media", json!({ "query": "heat 1995" }));
    let world = World::start_with(Slow::playing(25, [search, again, add, says("Heat is added.")])).await;
    let expected = world.expect_events().await;
    world.radarr().add_to_catalog(movie("Heat").year(1995).tmdb(949));
    world.texts("add heat").await;
    world.pass(90).await;
    world.engine().turn_actions.resume_turn(TurnId(1), Actor::Console).await.unwrap();
    world.pass(60).await;
    (world, expected)
}

async fn messages_without_a_turn() -> (World, ExpectedEvents) {
    let (world, expected) = start().await;
    world.register_admin(BOB).await;
    world.model_plays([says("One.")]);
    world.sms("one").await;
    world.sms("thanks!").await;
    world.sms_from(BOB, "tell everyone movie night at 8").await;
    let notice = world.messages_to(ANN).pop().unwrap();
    world.sms(&format!("Loved \u{201c}{notice}\u{201d}")).await;
    world.sms(&format!("Laughed at \u{201c}{notice}\u{201d}")).await;
    world.sms(&format!("Removed a laugh from \u{201c}{notice}\u{201d}")).await;
    world.sms("Liked \u{201c}One.\u{201d}").await;
    world.sms_from(BOB, "pause").await;
    world.sms("do we have heat?").await;
    world.model_plays([says("No.")]);
    world.sms_from(BOB, "resume").await;
    (world, expected)
}

async fn conversations() -> (World, ExpectedEvents) {
    let (world, expected) = start().await;
    world.model_plays([says("One."), says("Two."), says("Three.")]);
    world.sms("one").await;
    world.sms("/clear").await;
    world.sms("two").await;
    world.engine().conversation_actions.reopen_conversation(ConversationId(1), Actor::Console).await.unwrap();
    world.pass(31 * 60).await;
    world.run_maintenance().await;
    world.sms("STOP").await;
    world.sms("START").await;
    world.sms("three").await;
    world.block_user(ANN).await;
    world.sms("four").await;
    (world, expected)
}

async fn newcomers_and_notifications() -> (World, ExpectedEvents) {
    let (world, expected) = start().await;
    world.register_admin(BOB).await;
    world.sms_from("+15550100009", "hello, I am Sam").await;
    world.import_followed_titles().await;
    world.sms("notify off").await;
    world.sms("forget me").await;
    world.pass(60).await;
    (world, expected)
}

/// The program is killed while it adds a movie, sends a message and streams a response.
async fn restart() -> (World, ExpectedEvents) {
    let (mut world, _) = start().await;
    let heat = world.radarr().add_to_catalog(movie("Heat").year(1995));
    world.model_plays(adds_movie("heat", heat));
    world.radarr().hang_next_write();
    world.texts("add heat").await;
    world.pass(5).await;
    world.kill().await;
    let expected = world.start_again_expecting_events().await;
    world.model_plays([says("Heat is added."), says("Three.")]);
    world.pass(5 * 60).await;
    world.sms("three").await;
    (world, expected)
}

const SCENARIOS: [(&str, Scenario); 11] = [
    ("chat with tools", || chat_with_tools().boxed_local()),
    ("deliveries", || deliveries().boxed_local()),
    ("agents", || agents().boxed_local()),
    ("deletions", || deletions().boxed_local()),
    ("canceled turn", || canceled_turn().boxed_local()),
    ("ended turns", || ended_turns().boxed_local()),
    ("failure and resume", || failure_and_resume().boxed_local()),
    ("messages without a turn", || messages_without_a_turn().boxed_local()),
    ("conversations", || conversations().boxed_local()),
    ("newcomers and notifications", || newcomers_and_notifications().boxed_local()),
    ("restart", || restart().boxed_local()),
];

/// States that the scenarios reach together.
const REACHED: [&str; 31] = [
    "abandoned",
    "call canceled",
    "call complete",
    "call created",
    "call error",
    "call held",
    "call running",
    "call unknown",
    "conversation begun",
    "conversation ended",
    "conversation reopened",
    "inbound claimed",
    "inbound noturn",
    "inbound waiting",
    "outbound accepted",
    "outbound attempting",
    "outbound delivered",
    "outbound failed",
    "outbound queued",
    "outbound suppressed",
    "outbound unknown",
    "prompt closed",
    "prompt open",
    "prompt sending",
    "reaction given",
    "reaction removed",
    "turn canceled",
    "turn completed",
    "turn created",
    "turn error",
    "turn failed",
];

#[tokio::test(start_paused = true)]
async fn every_change_of_a_conversation_is_an_event() {
    let mut reached = BTreeSet::new();
    for (name, play) in SCENARIOS {
        let (world, expected) = play().await;
        let report = world.compare_events(expected).await;
        assert_eq!(report.differences, Vec::<String>::new(), "{name}");
        reached.extend(report.states);
    }
    let missing: Vec<_> = REACHED.iter().filter(|state| !reached.contains(**state)).collect();
    assert!(missing.is_empty(), "no scenario reaches {missing:?}");
}
