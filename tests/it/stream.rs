//! Live events of a conversation: their order, restarts, expired cursors, and the wire format.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::model_request::ModelRequest;
use dialarr::conversation::stream_events::{EventSeq, StreamEventKind};
use dialarr::conversation::transcript::{ConversationId, StopReason, UserId};
use dialarr::engine::stream::reader::{StreamBatch, StreamReader};
use dialarr::llm::{DeltaSink, Model, ModelError, ModelResponse, ResponseDelta};
use dialarr::messaging::twilio::fake::FakeDelivery;
use dialarr::store::conversation::conversations::{self, EndReason};
use dialarr::store::conversation::record::pages::{self, ConversationPage};
use dialarr::store::database::shell_access;
use dialarr::store::privacy::erase_user_content;
use dialarr::store::stream::event_log::LogPosition;
use dialarr::web;
use futures_util::StreamExt;
use http::{Request, StatusCode};
use serde_json::json;
use tower::ServiceExt;

use crate::harness::model::{adds_movie, is_cut_off_in, removes_movie, says};
use crate::harness::seen::Seen;
use crate::harness::world::World;
use crate::harness::{ANN, BOB};

const CONVERSATION: ConversationId = ConversationId(1);

/// Model that sends half of its first response and nothing more; later responses are complete.
#[derive(Default)]
struct Halting(AtomicBool);

#[async_trait]
impl Model for Halting {
    fn name(&self) -> &str {
        "halting"
    }

    async fn next_response(
        &self,
        _: &ModelRequest,
        sink: DeltaSink<'_>,
    ) -> Result<ModelResponse, ModelError> {
        sink(ResponseDelta::Thinking("Well.".to_owned()));
        sink(ResponseDelta::Text("All is ".to_owned()));
        if !self.0.swap(true, Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        sink(ResponseDelta::Text("well.".to_owned()));
        let (text, thinking) = ("All is well.".to_owned(), "Well.".to_owned());
        Ok(ModelResponse {
            text,
            thinking,
            calls: Vec::new(),
            stop: StopReason::Done,
            usage: None,
            response_id: None,
        })
    }
}

fn follow(world: &World, after: Option<EventSeq>) -> StreamReader<ConversationPage> {
    let snapshot = |conn: &mut _, position: &LogPosition| {
        pages::load_newest_page(conn, CONVERSATION, &position.streamed)
    };
    world.engine().streams.connect(CONVERSATION, after, snapshot)
}

/// Reads all events until no more come.
async fn read_events(reader: &mut StreamReader<ConversationPage>) -> Vec<String> {
    let mut events = Vec::new();
    while let Ok(batch) = tokio::time::timeout(Duration::from_millis(500), reader.next()).await {
        match batch.unwrap() {
            StreamBatch::Reset => events.push("reset".to_owned()),
            StreamBatch::Snapshot(_, snapshot) => {
                let blocks = snapshot.content.turns.iter().flat_map(|turn| turn.blocks().unwrap());
                let texts: Vec<String> = blocks.map(|content| format!("{:?}", content.text)).collect();
                events.push(format!("snapshot {}", texts.join(" ")).trim_end().to_owned());
            }
            StreamBatch::Events(batch) => events.extend(batch.iter().map(|event| line(&event.kind))),
            StreamBatch::CaughtUp => events.push("caught up".to_owned()),
        }
    }
    events
}

fn line(what: &StreamEventKind) -> String {
    match what {
        StreamEventKind::BlockStart(block) => {
            format!("begin {:?} {}.{}", block.kind, block.step, block.attempt)
        }
        StreamEventKind::BlockDelta(block, text) => {
            format!("{:?} {}.{} {text:?}", block.kind, block.step, block.attempt)
        }
        StreamEventKind::BlockEnd(block) => format!("end {:?} {}.{}", block.kind, block.step, block.attempt),
        StreamEventKind::StepAbandoned { step, attempt } => format!("void {step}.{attempt}"),
        other => format!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn events_of_a_turn_are_in_order() {
    let world = World::start().await;
    world.model_plays([says("Hello.")]);
    world.sms("hi").await;
    let heat = world.radarr().add_to_catalog(movie("Heat").year(1995));
    let mut reader = follow(&world, None);
    assert_eq!(read_events(&mut reader).await, ["snapshot \"Hello.\"", "caught up"]);
    world.model_plays([&adds_movie("heat", heat)[..1], &[says("Shall I?")]].concat());
    world.sms("heat?").await;
    let expected = [
        "InboundMessage(EventId(2), Waiting)",
        "Turn(Created)",
        "InboundMessage(EventId(2), Claimed)",
        "Turn(InProgress)",
        "begin ToolCall 0.1",
        "ToolCall 0.1 \"search_media{\\\"query\\\":\\\"heat\\\"}\"",
        "end ToolCall 0.1",
        "ToolCall(CallRow(1), Created)",
        "Turn(WaitingForTools)",
        "ToolCall(CallRow(1), Running)",
        "ToolCall(CallRow(1), Complete)",
        "Turn(InProgress)",
        "begin Text 1.1",
        "Text 1.1 \"Shall I?\"",
        "end Text 1.1",
        "Turn(Completed)",
        "OutboundMessage(OutboxId(2), Queued)",
        "OutboundMessage(OutboxId(2), Attempting)",
        "OutboundMessage(OutboxId(2), Accepted)",
    ];
    assert_eq!(read_events(&mut reader).await, expected);
}

#[tokio::test(start_paused = true)]
async fn restart_during_a_reply_resets_its_readers() {
    let mut world = World::start_with(Arc::new(Halting::default())).await;
    world.texts("how is it?").await;
    world.pass(3).await;
    let mut reader = follow(&world, None);
    assert_eq!(read_events(&mut reader).await, ["snapshot \"Well.\" \"All is \"", "caught up"]);
    let place = reader.cursor();
    drop(reader);

    world.kill().await;
    world.start_again().await;
    world.pass(10).await;
    let mut reader = follow(&world, place);
    let expected = ["reset", "snapshot \"Well.\" \"All is well.\"", "caught up"];
    assert_eq!(read_events(&mut reader).await, expected);
    assert!(reader.cursor() > place, "numbers rise across a restart");
    assert_eq!(world.sent_texts(), ["All is well."]);
}

#[tokio::test(start_paused = true)]
async fn unknown_cursor_gets_a_snapshot() {
    let world = World::start().await;
    world.model_plays([says("One."), says("Two.")]);
    world.sms("one").await;
    world.pass(2 * 60 * 60).await;
    for place in [1, i64::MAX] {
        let mut reader = follow(&world, Some(EventSeq(place)));
        assert_eq!(
            read_events(&mut reader).await,
            ["reset", "snapshot \"One.\"", "caught up"],
            "from {place}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn reader_is_reset_when_texts_are_erased() {
    let world = World::start().await;
    world.model_plays([says("One.")]);
    world.sms("one").await;
    let mut reader = follow(&world, None);
    read_events(&mut reader).await;
    world.sms("forget all").await;
    assert_eq!(read_events(&mut reader).await[..2], ["reset", "snapshot \"\""]);
}

/// No turn of the user caused the change, and no event follows it.
#[tokio::test(start_paused = true)]
async fn reader_is_reset_when_the_operator_erases_texts() {
    let world = World::start().await;
    world.model_plays([says("One.")]);
    world.sms("one").await;
    let mut reader = follow(&world, None);
    read_events(&mut reader).await;
    for _ in 0..2 {
        let path = world.database();
        shell_access::visit_database(path.to_str().unwrap(), |conn| {
            erase_user_content(conn, UserId(1), jiff::Timestamp::UNIX_EPOCH)
        })
        .unwrap();
        world.pass(15).await;
        assert_eq!(read_events(&mut reader).await, ["reset", "snapshot \"\"", "caught up"]);
    }
}

#[tokio::test(start_paused = true)]
async fn change_by_a_shell_command_is_streamed_within_fifteen_seconds() {
    let world = World::start().await;
    world.model_plays([says("One.")]);
    world.sms("one").await;
    let mut reader = follow(&world, None);
    read_events(&mut reader).await;
    let path = world.database();
    let now = jiff::Timestamp::UNIX_EPOCH;
    shell_access::visit_database(path.to_str().unwrap(), |conn| {
        conversations::end_conversation(conn, CONVERSATION, EndReason::Cleared, now)
    })
    .unwrap();
    world.pass(15).await;
    assert_eq!(read_events(&mut reader).await, ["reset", "snapshot \"One.\"", "caught up"]);
}

/// Reads the stream of a conversation up to the event of this name, inclusive.
async fn read_up_to(world: &World, path: &str, last_event_id: Option<&str>, last: &str) -> String {
    let mut request = Request::get(path).header("host", "localhost:3001");
    if let Some(id) = last_event_id {
        request = request.header("last-event-id", id);
    }
    let router = web::console_router(world.console());
    let response = router.oneshot(request.body(axum::body::Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let head = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    let heads = [head("content-type"), head("cache-control"), head("x-accel-buffering")];
    assert_eq!(heads, ["text/event-stream", "no-store", "no"]);
    let mut body = response.into_body().into_data_stream();
    let mut read = String::new();
    while !read.contains(&format!("event: {last}\n")) || !read.ends_with("\n\n") {
        let piece = body.next().await.expect("the stream goes on").unwrap();
        read.push_str(std::str::from_utf8(&piece).unwrap());
    }
    read
}

/// Truncates all times to minutes, since durations do not matter here.
fn without_times(read: &str) -> String {
    let mut parts = read.split("2026-11-20T21:04:");
    let mut cut = parts.next().unwrap().to_owned();
    parts.for_each(|part| cut.extend(["2026-11-20T21:04", &part[part.find('Z').unwrap()..]]));
    cut
}

#[tokio::test(start_paused = true)]
async fn client_resumes_from_a_snapshot_cursor() {
    let world = World::start().await;
    world.model_plays([says("One."), says("Two.")]);
    world.sms("one").await;
    let path = "/api/v1/conversations/1/events";
    let first = read_up_to(&world, path, None, "caught_up").await;
    insta::assert_snapshot!("stream_from_the_beginning", without_times(&first));
    let place = first.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();

    world.sms("two").await;
    let missed = read_up_to(&world, &format!("{path}?after=1"), Some(place), "caught_up").await;
    insta::assert_snapshot!("stream_from_a_place", without_times(&missed));
    let reset = read_up_to(&world, &format!("{path}?after=999999"), None, "snapshot").await;
    assert!(reset.contains("event: reset\ndata: {}\n\nevent: snapshot\n"), "{reset}");
}

#[tokio::test(start_paused = true)]
async fn stream_ends_with_the_program_and_is_limited_per_caller() {
    let world = World::start().await;
    world.model_plays([says("One.")]);
    world.sms("one").await;
    let console = world.console();
    let open = async || {
        let request = Request::get("/api/v1/conversations/1/events").header("host", "localhost:3001");
        let router = web::console_router(console.clone());
        router.oneshot(request.body(axum::body::Body::empty()).unwrap()).await.unwrap()
    };
    let mut streams = Vec::new();
    for _ in 0..512 {
        streams.push(open().await);
    }
    assert!(streams.iter().all(|response| response.status() == StatusCode::OK));
    assert_eq!(open().await.status(), StatusCode::TOO_MANY_REQUESTS);
    drop(streams.pop());
    let last = open().await;
    assert_eq!(last.status(), StatusCode::OK);
    console.stop.cancel();
    let pieces: Vec<_> = last.into_body().into_data_stream().collect().await;
    assert!(pieces.iter().all(Result::is_ok));
}

/// Returns the conversation of a client that received every event since the beginning, and checks it against a
/// snapshot.
async fn seen(world: &World) -> Seen {
    let path = "/api/v1/conversations/1/events";
    let (mut followed, mut standing) = (Seen::default(), Seen::default());
    let log = read_up_to(world, &format!("{path}?after=0"), None, "caught_up").await;
    assert!(!log.contains("event: reset"), "the log is whole");
    log.split("\n\n").for_each(|event| followed.take(event));
    let snapshot = read_up_to(world, path, None, "caught_up").await;
    snapshot.split("\n\n").for_each(|event| standing.take(event));
    assert_eq!(followed, standing);
    followed
}

#[tokio::test(start_paused = true)]
async fn snapshot_equals_the_sum_of_all_events() {
    let world = World::start().await;
    let expected_events = world.expect_events().await;
    world.register_admin(BOB).await;
    let dune = world.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    world.model_plays([says("One.")]);
    world.sms("one").await;
    world.sms_from(BOB, "tell everyone movie night at 8").await;
    let notice = world.messages_to(ANN).pop().unwrap();
    assert_eq!(seen(&world).await.notices.len(), 1);

    world.sms(&format!("Loved \u{201c}{notice}\u{201d}")).await;
    world.sms("Liked \u{201c}One.\u{201d}").await;
    let reacted = seen(&world).await;
    assert_eq!(
        reacted.reactions.into_values().collect::<Vec<_>>(),
        ["out 2: \u{2764}\u{fe0f}", "out 1: \u{1f44d}"]
    );
    assert_eq!(reacted.unanswered.len(), 2);
    world.sms(&format!("Removed a heart from \u{201c}{notice}\u{201d}")).await;
    assert_eq!(seen(&world).await.reactions.len(), 1);

    world.model_plays(removes_movie("dune", dune));
    world.sms("delete dune").await;
    assert!(seen(&world).await.question.is_some());
    world.sms("no").await;
    assert_eq!(seen(&world).await.question, None);

    world.sms_from(BOB, "pause").await;
    world.sms("do we have heat?").await;
    assert_eq!(seen(&world).await.waiting.into_values().collect::<Vec<_>>(), ["do we have heat?"]);
    world.model_plays([says("No.")]);
    world.sms_from(BOB, "resume").await;
    assert!(seen(&world).await.waiting.is_empty());

    world.sms("/clear").await;
    let sent = world.twilio().sent_messages().into_iter().find(|text| text.body == notice).unwrap();
    world.deliver(world.twilio().status_callback(&sent, FakeDelivery::Delivered).unwrap().unwrap()).await;
    let over = seen(&world).await;
    let states: Vec<&str> = over.notices.values().map(|notice| notice.state.as_str()).collect();
    assert_eq!((over.is_over, states[0]), (true, "delivered"), "{states:?}");
    world.assert_events(expected_events).await;
}

#[tokio::test(start_paused = true)]
async fn waiting_message_moves_to_the_next_conversation() {
    let world = World::start().await;
    let expected_events = world.expect_events().await;
    world.register_admin(BOB).await;
    world.model_plays([says("One.")]);
    world.sms("one").await;
    world.sms_from(BOB, "pause").await;
    world.sms("two").await;
    assert_eq!(seen(&world).await.waiting.len(), 1);
    world.pass(31 * 60).await;
    world.run_maintenance().await;
    let over = seen(&world).await;
    assert!(over.is_over && over.waiting.is_empty(), "{over:#?}");
    world.model_plays([says("Two.")]);
    world.sms_from(BOB, "resume").await;
    assert_eq!(seen(&world).await, over);
    world.assert_events(expected_events).await;
}

#[tokio::test(start_paused = true)]
async fn streamed_call_that_was_discarded_is_voided() {
    let world = World::start().await;
    world.model_plays([is_cut_off_in("find_in_library", json!({ "query": "heat" })), says("Shorter, then.")]);
    world.sms("do we have heat and all the others?").await;
    let blocks: Vec<String> = seen(&world).await.turns[&1].blocks.values().cloned().collect();
    assert_eq!(blocks, ["Shorter, then."]);
}
