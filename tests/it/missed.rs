//! Texts that the carrier could not bring: found in its list, once, and in their order.

use std::collections::BTreeSet;

use dialarr::conversation::rate_limit::RateLimit;
use dialarr::conversation::routing::inbound_message::{MessageSource, ReceivedMessage};
use dialarr::conversation::routing::verification::FieldAuthority;
use dialarr::conversation::transcript::{Address, ChannelKind, PhoneNumber};
use dialarr::simulation::OUR_NUMBER;
use jiff::SignedDuration;

use crate::harness::model::says;
use crate::harness::world::World;
use crate::harness::{ANN, TestApp};

#[tokio::test(start_paused = true)]
async fn missed_messages_are_fetched_at_the_start_oldest_first() {
    let mut world = World::start().await;
    world.is_killed().await;
    world.misses("first").await;
    world.misses("second").await;
    world.passes(60).await;
    world.model_plays([says("Both heard.")]);
    world.is_started().await;
    world.passes(30).await;
    assert_eq!(world.said(), ["Both heard."]);
    assert!(world.model_was_told().ends_with("first\nsecond"), "{}", world.model_was_told());
}

#[tokio::test(start_paused = true)]
async fn message_missed_while_running_is_fetched_within_minutes() {
    let world = World::start().await;
    world.model_plays([says("Found you.")]);
    world.misses("hello?").await;
    world.passes(400).await;
    assert_eq!(world.said(), ["Found you."]);
}

#[tokio::test(start_paused = true)]
async fn message_missed_for_over_an_hour_is_only_reported() {
    let mut world = World::start().await;
    world.is_killed().await;
    world.misses("add dune").await;
    world.passes(2 * 3600).await;
    world.is_started().await;
    world.passes(30).await;
    assert_eq!(world.said(), ["I was offline and missed your text. Please send again what you still need."]);
    assert_eq!(world.radarr().added_ids(), Vec::<i64>::new());
}

#[tokio::test(start_paused = true)]
async fn endless_message_list_does_not_block_replies() {
    let mut world = World::start().await;
    world.is_killed().await;
    world.twilio().list_never_ends();
    world.misses("hello?").await;
    world.passes(60).await;
    world.model_plays([says("Hello."), says("And again.")]);
    world.is_started().await;
    world.passes(30).await;
    assert_eq!(world.said(), ["Hello."]);
    assert_eq!(world.sms("still there?").await, ["Hello.", "And again."]);
}

#[tokio::test(start_paused = true)]
async fn message_listed_late_is_found_behind_a_newer_one() {
    let world = World::start().await;
    world.model_plays([says("To the second."), says("To the first.")]);
    world.misses_and_is_listed_after("first", 30 * 60).await;
    world.misses("second").await;
    world.passes(20 * 60).await;
    assert_eq!(world.said(), ["To the second."]);
    world.passes(20 * 60).await;
    assert_eq!(world.said(), ["To the second.", "To the first."]);
}

#[tokio::test(start_paused = true)]
async fn opt_out_found_late_does_not_undo_a_later_start() {
    let world = World::start().await;
    world.misses("STOP").await;
    world.passes(60).await;
    world.texts("START").await;
    world.passes(400).await;
    assert_eq!(world.sms("status").await, ["Nothing is downloading."]);
}

/// Milliseconds from a start within which the list is read, its texts are taken in and the cursor is moved.
const READING_MS: u64 = 60;

#[tokio::test(start_paused = true)]
async fn missed_messages_survive_a_kill_at_any_moment_of_fetching() {
    let mut stored_at_the_kill = BTreeSet::new();
    for moment in 0..READING_MS {
        let mut world = World::start().await;
        world.is_killed().await;
        world.misses("an old one").await;
        world.passes(3 * 60 * 60).await;
        world.misses("a young one").await;
        world.passes(60).await;
        world.is_started().await;
        world.passes_ms(moment).await;
        stored_at_the_kill.insert(world.texts_stored().await.len());
        world.is_killed().await;
        world.is_started().await;
        world.passes(60).await;
        assert_eq!(world.texts_stored().await, ["an old one", "a young one"], "killed after {moment} ms");
        world.is_killed().await;
    }
    assert_eq!(
        stored_at_the_kill,
        BTreeSet::from([0, 1, 2]),
        "a kill before, between and after the admissions"
    );
}

#[tokio::test]
async fn recovered_message_and_its_neighbors_count_once_towards_the_limit() {
    let period = SignedDuration::from_mins(1);
    let mut app = TestApp::with(|settings| settings.rate_limit = Some(RateLimit { max: 3, period })).await;
    app.pass(3600);
    let sent_at = app.now();
    app.pass(10);
    app.app().engine.abort().await;
    for text in ["what is two?", "what is three?", "what is four?"] {
        assert_eq!(app.post(app.text(ANN, text)).await, 200);
    }
    let recovered = ReceivedMessage {
        channel: ChannelKind::Twilio,
        external_id: "SM-recovered".to_owned(),
        from: PhoneNumber::parse(ANN).unwrap(),
        to: Address::new(OUR_NUMBER),
        body: "what is one?".to_owned(),
        media: Vec::new(),
        via: MessageSource::Recovery,
        authority: FieldAuthority::Certain,
        carrier_word: None,
        provider_at: sent_at,
        received_at: app.now(),
    };
    app.app().engine.admit_message(recovered).await.unwrap();
    app.model_plays([says("Three of four.")]);
    app.restart().await;
    app.settle().await;
    assert!(app.heard_by(ANN).contains(&"Three of four.".to_owned()), "{:?}", app.heard_by(ANN));
    let over = app.lines("SELECT body AS line FROM inbound_events WHERE over_limit = 1").await;
    assert_eq!(over, ["what is four?"]);
}
