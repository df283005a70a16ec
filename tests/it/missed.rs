//! Messages that the carrier could not deliver: fetched from its list, once and in order.

use std::collections::BTreeSet;

use dialarr::conversation::channel_list;
use dialarr::conversation::rate_limit::RateLimit;
use dialarr::conversation::routing::inbound_message::{MessageSource, ReceivedMessage};
use dialarr::conversation::routing::verification::FieldAuthority;
use dialarr::conversation::transcript::{Address, PhoneNumber};
use dialarr::simulation::OUR_NUMBER;
use jiff::SignedDuration;

use crate::harness::model::says;
use crate::harness::world::World;
use crate::harness::{ANN, TestApp};

#[tokio::test(start_paused = true)]
async fn missed_messages_are_fetched_at_the_start_oldest_first() {
    let mut world = World::start().await;
    world.kill().await;
    world.miss_message("first").await;
    world.miss_message("second").await;
    world.pass(60).await;
    world.model_plays([says("Both heard.")]);
    world.start_again().await;
    world.pass(30).await;
    assert_eq!(world.sent_texts(), ["Both heard."]);
    assert!(world.last_user_message().ends_with("first\nsecond"), "{}", world.last_user_message());
}

#[tokio::test(start_paused = true)]
async fn message_missed_while_running_is_fetched_within_minutes() {
    let world = World::start().await;
    world.model_plays([says("Found you.")]);
    world.miss_message("hello?").await;
    world.pass(400).await;
    assert_eq!(world.sent_texts(), ["Found you."]);
}

#[tokio::test(start_paused = true)]
async fn message_missed_for_over_an_hour_is_only_reported() {
    let mut world = World::start().await;
    world.kill().await;
    world.miss_message("add dune").await;
    world.pass(2 * 3600).await;
    world.start_again().await;
    world.pass(30).await;
    assert_eq!(
        world.sent_texts(),
        ["I was offline and missed your text. Please resend anything you still need."]
    );
    assert_eq!(world.radarr().added_ids(), Vec::<i64>::new());
}

#[tokio::test(start_paused = true)]
async fn endless_message_list_does_not_block_replies() {
    let mut world = World::start().await;
    world.kill().await;
    world.twilio().make_list_endless();
    world.miss_message("hello?").await;
    world.pass(60).await;
    world.model_plays([says("Hello."), says("And again.")]);
    world.start_again().await;
    world.pass(30).await;
    assert_eq!(world.sent_texts(), ["Hello."]);
    assert_eq!(world.sms("still there?").await, ["Hello.", "And again."]);
}

#[tokio::test(start_paused = true)]
async fn message_listed_late_is_found_behind_a_newer_one() {
    let world = World::start().await;
    world.model_plays([says("To the second."), says("To the first.")]);
    world.miss_message_listed_after("first", 30 * 60).await;
    world.miss_message("second").await;
    world.pass(20 * 60).await;
    assert_eq!(world.sent_texts(), ["To the second."]);
    world.pass(20 * 60).await;
    assert_eq!(world.sent_texts(), ["To the second.", "To the first."]);
}

#[tokio::test(start_paused = true)]
async fn opt_out_found_late_does_not_undo_a_later_start() {
    let world = World::start().await;
    world.miss_message("STOP").await;
    world.pass(60).await;
    world.texts("START").await;
    world.pass(400).await;
    assert_eq!(world.sms("status").await, ["Nothing is downloading."]);
}

/// Milliseconds after a start within which the list is read, its messages are stored and the cursor is moved.
const READING_MS: u64 = 60;

#[tokio::test(start_paused = true)]
async fn missed_messages_survive_a_kill_at_any_moment_of_fetching() {
    let mut stored_at_the_kill = BTreeSet::new();
    for moment in 0..READING_MS {
        let mut world = World::start().await;
        world.kill().await;
        world.miss_message("an old one").await;
        world.pass(3 * 60 * 60).await;
        world.miss_message("a young one").await;
        world.pass(60).await;
        world.start_again().await;
        world.pass_ms(moment).await;
        stored_at_the_kill.insert(world.stored_texts().await.len());
        world.kill().await;
        world.start_again().await;
        world.pass(60).await;
        assert_eq!(world.stored_texts().await, ["an old one", "a young one"], "killed after {moment} ms");
        world.kill().await;
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
        channel: channel_list::TWILIO,
        external_id: "SM-recovered".to_owned(),
        from: PhoneNumber::parse(ANN).unwrap().into(),
        to: Address::new(OUR_NUMBER),
        body: "what is one?".to_owned(),
        media: Vec::new(),
        via: MessageSource::Recovery,
        authority: FieldAuthority::Certain,
        carrier_word: None,
        pressed: None,
        room: None,
        provider_at: sent_at,
        received_at: app.now(),
    };
    app.app().engine.admission.admit_message(recovered).await.unwrap();
    app.model_plays([says("Three of four.")]);
    app.restart().await;
    app.settle().await;
    assert!(app.messages_to(ANN).contains(&"Three of four.".to_owned()), "{:?}", app.messages_to(ANN));
    let over = app.lines("SELECT body AS line FROM inbound_events WHERE over_limit = 1").await;
    assert_eq!(over, ["what is four?"]);
}
