//! Requests to the webhooks, each with one clear outcome: signatures, bodies, senders, duplicates, delivery reports.

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::messaging::twilio::fake::FakeDelivery;
use http::Method;
use http::header::CONTENT_TYPE;

use crate::harness::model::{Holding, removes_movie, request_text, says};
use crate::harness::wire::{ACCEPTED, Form, TEXT, TOKEN, seen, through_proxy, to_host, unsigned};
use crate::harness::world::World;
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

const NOTHING: [&str; 0] = [];
const DELIVERIES: &str =
    "SELECT state || ' ' || coalesce(delivery, 'untold') AS line FROM outbox ORDER BY id";

/// Checks the status that a form gets, and the messages that are stored after it.
async fn check(form: &Form, status: u16, stored: &[&str]) {
    let app = TestApp::start_without_model().await;
    let response = app.request(form.request()).await;
    assert_eq!(response.status().as_u16(), status);
    app.settle().await;
    assert_eq!(app.stored_texts().await, stored);
}

#[tokio::test]
async fn message_is_acknowledged_with_an_empty_document() {
    let app = TestApp::start_without_model().await;
    assert_eq!(seen(&app.request(Form::text().request()).await), ACCEPTED);
    assert_eq!(app.stored_texts().await, ["hello"]);
    app.settle().await;
}

#[tokio::test]
async fn wrong_signature_is_refused_and_nothing_is_stored() {
    check(&Form::text().signed_with("another-token"), 403, &NOTHING).await;
}

#[tokio::test]
async fn empty_token_signs_nothing() {
    check(&Form::text().signed_with(""), 403, &NOTHING).await;
}

#[tokio::test]
async fn missing_signature_is_refused_and_nothing_is_stored() {
    let app = TestApp::start_without_model().await;
    assert_eq!(app.status_of(unsigned(Form::text().request())).await, 403);
    assert_eq!(app.stored_texts().await, NOTHING);
    assert_eq!(app.people().await, ["+15550100002 active admin"]);
}

#[tokio::test]
async fn host_header_does_not_affect_the_signature() {
    let app = TestApp::start_without_model().await;
    let elsewhere = Form::text().signed_for("https://evil.example/webhook/twilio").request();
    assert_eq!(app.status_of(to_host(elsewhere, "evil.example")).await, 403);
    assert_eq!(app.status_of(to_host(Form::text().request(), "10.0.0.7:3000")).await, 200);
    app.settle().await;
}

#[tokio::test]
async fn public_url_may_have_a_path_that_the_proxy_removes() {
    let setup = Setup::default().keyword_responder().public_url("https://home.example/dialarr/");
    let app = setup.start().await;
    let request = app.text(ANN, "hello").into_signed_request().unwrap();
    assert_eq!(app.status_of(through_proxy(request, "/dialarr")).await, 200);
    assert_eq!(app.stored_texts().await, ["hello"]);
    app.settle().await;
}

#[tokio::test]
async fn both_tokens_are_valid_during_a_rotation() {
    let app = Setup::default().keyword_responder().tokens(&["the-next-token", TOKEN]).start().await;
    let next = Form::text().number(2).set("Body", "two").signed_with("the-next-token");
    for (form, status) in
        [(Form::text(), 200), (next, 200), (Form::text().signed_with("the-last-token"), 403)]
    {
        assert_eq!(app.status_of(form.request()).await, status);
    }
    assert_eq!(app.stored_texts().await, ["hello", "two"]);
    app.settle().await;
}

#[tokio::test]
async fn form_without_a_required_field_is_refused() {
    for field in ["AccountSid", "MessageSid", "From", "To", "NumMedia"] {
        check(&Form::text().without(field), 400, &NOTHING).await;
        check(&Form::text().set(field, ""), 400, &NOTHING).await;
    }
}

#[tokio::test]
async fn sender_that_is_not_a_phone_number_is_refused() {
    for sender in ["12345", "DIALARR", "anonymous", "whatsapp:bob", "+", "+1555010000x"] {
        check(&Form::text().set("From", sender), 400, &NOTHING).await;
    }
}

#[tokio::test]
async fn malformed_form_is_refused() {
    let app = TestApp::start_without_model().await;
    for junk in ["", "&&&===", "%", "{\"MessageSid\":\"SM1\"}", "\0\0\0", "Body=%ZZ&Body&=&From"] {
        assert_eq!(app.status_of(Form::text().with_body(junk)).await, 403, "{junk:?}");
    }
    assert_eq!(app.status_of(Form::of(&[]).request()).await, 400);
    assert_eq!(app.status_of(Form::of(&[("", ""), ("a", "")]).request()).await, 400);
    assert_eq!(app.stored_texts().await, NOTHING);
}

#[tokio::test]
async fn invalid_utf_8_is_replaced_raw_or_encoded() {
    let others: Vec<_> = TEXT.into_iter().filter(|(name, _)| *name != "Body").collect();
    let others = serde_urlencoded::to_string(others).unwrap();
    let body = |last: &[u8]| [others.as_bytes(), b"&Body=caf", last].concat();
    let signed = Form::text().set("Body", "caf\u{fffd}");
    for bytes in [body(b"\xe9"), body(b"%E9")] {
        let app = TestApp::start_without_model().await;
        assert_eq!(app.status_of(signed.with_body(bytes)).await, 200);
        assert_eq!(app.stored_texts().await, ["caf\u{fffd}"]);
        app.settle().await;
    }
}

#[tokio::test]
async fn signature_decides_regardless_of_the_content_type() {
    let app = TestApp::start_without_model().await;
    for (form, content_type) in [
        (Form::text(), "application/octet-stream"),
        (Form::text().number(2), "application/x-www-form-urlencoded; charset=latin1"),
        (Form::text().number(3), "???"),
    ] {
        let mut request = form.request();
        request.headers_mut().insert(CONTENT_TYPE, content_type.parse().unwrap());
        assert_eq!(app.status_of(request).await, 200, "{content_type}");
    }
    app.settle().await;
}

#[tokio::test]
async fn ten_megabytes_are_refused_by_their_length_header() {
    let app = TestApp::start_without_model().await;
    assert_eq!(app.announce_ten_megabytes().await, 413);
}

#[tokio::test]
async fn ten_megabytes_without_a_length_are_read_to_the_limit_only() {
    let app = TestApp::start_without_model().await;
    let (status, kilobytes) = app.pour_ten_megabytes().await;
    assert_eq!(status, 413);
    assert!(kilobytes <= 65, "{kilobytes} kB were read");
}

#[tokio::test]
async fn oversized_message_is_refused() {
    check(&Form::text().set("Body", &"x".repeat(100_000)), 413, &NOTHING).await;
}

#[tokio::test]
async fn long_message_is_stored_whole_and_shortened_for_the_model() {
    let app = TestApp::start().await;
    app.model_plays([says("Quite a story.")]);
    let story = "dune ".repeat(6_000);
    assert_eq!(app.sms(&story).await, "Quite a story.");
    assert_eq!(app.stored_texts().await, [story.as_str()]);
    let requests = app.model().requests();
    assert_eq!(request_text(&requests[0]).matches("dune").count(), 800);
}

#[tokio::test]
async fn emoji_and_right_to_left_texts_reach_the_model_unchanged() {
    let app = TestApp::start().await;
    let texts =
        ["\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} night?", "מה יש לראות \u{200f}היום?", "هل لديك فيلم؟"];
    for text in texts {
        app.model_plays([says("Dune, perhaps.")]);
        assert_eq!(app.sms(text).await, "Dune, perhaps.");
        assert!(request_text(app.model().requests().last().unwrap()).ends_with(text));
    }
    assert_eq!(app.stored_texts().await, texts);
}

#[tokio::test]
async fn nul_character_does_not_truncate_a_message() {
    let app = TestApp::start().await;
    app.model_plays([says("Yes.")]);
    assert_eq!(app.sms("have\0dune?").await, "Yes.");
    assert_eq!(app.stored_texts().await, ["have\u{fffd}dune?"]);
}

#[tokio::test]
async fn nul_characters_in_numbers_and_ids_are_refused() {
    check(&Form::text().set("From", "+1555\x000100002"), 400, &NOTHING).await;
    check(&Form::text().set("MessageSid", "SM\0"), 400, &NOTHING).await;
}

#[tokio::test]
async fn blank_message_is_only_stored() {
    let app = TestApp::start().await;
    assert_eq!(app.sms("  ").await, "");
    assert_eq!(app.message_outcomes().await, ["  : skipped empty"]);
}

#[tokio::test]
async fn picture_without_text_is_answered_without_the_model() {
    let app = TestApp::start().await;
    let picture = app.text(ANN, "").with_media("https://media.example/1", "image/jpeg");
    assert_eq!(app.post(picture).await, 200);
    app.settle().await;
    assert_eq!(app.texts_to(ANN, 0), "I can only read text. What would you like to watch?");
    assert_eq!(app.message_outcomes().await, [": replied"]);
}

#[tokio::test]
async fn picture_does_not_answer_a_prompt() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    let question = app.sms("delete dune").await;
    let before = app.twilio().sent_messages().len();
    app.pass(1);
    app.post(app.text(ANN, "").with_media("https://media.example/1", "image/jpeg")).await;
    app.settle().await;
    assert_eq!(app.texts_to(ANN, before), question);
    assert_eq!(app.sms("yes").await, "Deleted Dune (2021). Freed 21.4 GB.");
}

#[tokio::test]
async fn reply_uses_the_channel_of_the_message() {
    let app = TestApp::start().await;
    for prefix in ["whatsapp:", "rcs:", ""] {
        app.model_plays([says("Hello.")]);
        let before = app.twilio().sent_messages().len();
        app.post(app.text(ANN, "hello").with_channel_prefix(prefix)).await;
        app.settle().await;
        let sent = &app.twilio().sent_messages()[before..];
        let ways: Vec<(&str, &str)> =
            sent.iter().map(|text| (text.from.as_str(), text.to.as_str())).collect();
        let (ours, theirs) = (format!("{prefix}+15550100000"), format!("{prefix}{ANN}"));
        assert_eq!(ways, [(ours.as_str(), theirs.as_str())]);
    }
    assert_eq!(app.people().await, ["+15550100002 active admin"]);
    assert_eq!(app.conversations().await, ["open"]);
}

#[tokio::test]
async fn duplicate_deliveries_are_answered_once() {
    let app = TestApp::start().await;
    app.model_plays([says("Hello.")]);
    let form = Form::text();
    let (one, two) = tokio::join!(app.request(form.request()), app.request(form.request()));
    app.settle().await;
    let three = app.request(form.request()).await;
    app.settle().await;
    assert_eq!([seen(&one), seen(&two), seen(&three)], [ACCEPTED; 3]);
    assert_eq!(app.message_outcomes().await, ["hello: replied"]);
    assert_eq!(app.texts_to(ANN, 0), "Hello.");
}

#[tokio::test]
async fn long_turn_of_a_user_does_not_delay_another_user() {
    let model = Holding::closed();
    let app = Setup::default().holding(&model).start().await;
    app.register_user(BOB, Has::AddRight).await;
    let mut sent = app.twilio().subscribe();

    app.post(app.text(ANN, "hold the line")).await;
    app.post(app.text(BOB, "how are you?")).await;

    assert_eq!(sent.recv().await.unwrap().to.as_str(), BOB);
    model.let_go();
    app.settle().await;
    assert_eq!(app.texts_to(ANN, 0), "Fine.");
}

#[tokio::test]
async fn acknowledgment_does_not_wait_for_the_model() {
    let app = Setup::default().holding(&Holding::closed()).start().await;
    for text in ["hold", "hold on", "hold it"] {
        assert_eq!(seen(&app.request(app.text(ANN, text).into_signed_request().unwrap()).await), ACCEPTED);
    }
    assert_eq!(app.stored_texts().await, ["hold", "hold on", "hold it"]);
    assert_eq!(app.outbox().await, NOTHING);
}

#[tokio::test]
async fn acknowledgment_does_not_wait_for_libraries_or_the_carrier() {
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::AddRight).await;
    app.sonarr().hang_next();
    app.radarr().hang_next();
    app.twilio().hang_next();
    for (who, text) in [(ANN, "status"), (ANN, "upcoming"), (BOB, "?"), (BOB, "commands")] {
        assert_eq!(seen(&app.request(app.text(who, text).into_signed_request().unwrap()).await), ACCEPTED);
    }
    assert_eq!(app.stored_texts().await, ["status", "upcoming", "?", "commands"]);
    assert_eq!(app.texts_to(ANN, 0), "");
}

#[tokio::test]
async fn yes_by_the_fallback_url_repeats_the_prompt() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    let question = app.sms("delete dune").await;
    let before = app.twilio().sent_messages().len();

    app.pass(1);
    let yes = app
        .text(ANN, "yes")
        .with_field("ErrorCode", "11200")
        .with_field("ErrorUrl", "https://sms.example.org/");
    assert_eq!(app.post(yes).await, 200);
    app.settle().await;

    assert_eq!(app.texts_to(ANN, before), question);
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
    assert_eq!(app.sms("yes").await, "Deleted Dune (2021). Freed 21.4 GB.");
}

#[tokio::test]
async fn message_that_cannot_be_stored_is_accepted_on_redelivery() {
    let app = TestApp::start().await;
    app.model_plays([says("Hello.")]);
    app.refuse_texts().await;
    let form = Form::text();
    assert_eq!(app.status_of(form.request()).await, 503);
    assert_eq!(app.stored_texts().await, NOTHING);

    app.accept_texts().await;
    assert_eq!(app.status_of(form.request()).await, 200);
    app.settle().await;
    assert_eq!(app.texts_to(ANN, 0), "Hello.");
}

#[tokio::test]
async fn webhook_server_answers_only_its_own_routes() {
    let app = TestApp::start_without_model().await;
    for (method, path, status) in [
        (Method::GET, "/webhook/twilio", 405),
        (Method::PUT, "/webhook/twilio", 405),
        (Method::GET, "/webhook/twilio/status", 405),
        (Method::POST, "/webhook/twilio/", 404),
        (Method::POST, "/webhook/other", 404),
        (Method::GET, "/", 404),
        (Method::GET, "/../etc/passwd", 404),
        (Method::POST, "/health", 405),
        (Method::GET, "/health", 200),
        (Method::GET, "/ready", 200),
    ] {
        assert_eq!(app.visit(method.clone(), path).await, status, "{method} {path}");
    }
}

#[tokio::test]
async fn delivery_status_only_moves_forward() {
    let app = TestApp::start_without_model().await;
    app.sms("?").await;
    let text = &app.twilio().sent_messages()[0];
    for (reported, known) in [
        (FakeDelivery::Sending, "sending"),
        (FakeDelivery::Queued, "sending"),
        (FakeDelivery::Delivered, "delivered"),
        (FakeDelivery::Sent, "delivered"),
        (FakeDelivery::Delivered, "delivered"),
    ] {
        assert_eq!(app.report(text, reported).await, 204);
        assert_eq!(app.deliveries().await, [known]);
    }
}

#[tokio::test]
async fn failed_delivery_keeps_its_error_code() {
    let app = TestApp::start_without_model().await;
    app.sms("?").await;
    assert_eq!(app.report(&app.twilio().sent_messages()[0], FakeDelivery::Undelivered(30003)).await, 204);
    assert_eq!(app.deliveries().await, ["undelivered 30003"]);
}

#[tokio::test(start_paused = true)]
async fn repeated_or_late_report_changes_nothing() {
    let world = World::start().await;
    world.model_plays([says("Hello.")]);
    world.sms("hi").await;
    let sent = world.twilio().sent_messages()[0].clone();
    let report = |delivery| world.twilio().status_callback(&sent, delivery).unwrap().unwrap();
    assert_eq!(world.deliver(report(FakeDelivery::Undelivered(30003))).await, 204);
    let row = "SELECT json_array(state, delivery, error, attempts, updated_at) AS line FROM outbox";
    let recorded = world.lines(row).await;
    world.pass(60).await;
    for late in
        [FakeDelivery::Undelivered(30003), FakeDelivery::Queued, FakeDelivery::Sent, FakeDelivery::Delivered]
    {
        assert_eq!(world.deliver(report(late)).await, 204);
    }
    assert_eq!(world.lines(row).await, recorded);
}

#[tokio::test(start_paused = true)]
async fn early_delivery_reports_count_in_any_order() {
    let world = World::start().await;
    world.model_plays([says("Hello.")]);
    world.twilio().lose_next_answer();
    world.texts("hi").await;
    world.pass(2).await;
    let sent = world.twilio().sent_messages()[0].clone();
    assert_eq!(world.lines(DELIVERIES).await, ["attempting untold"]);
    for delivery in [FakeDelivery::Delivered, FakeDelivery::Queued, FakeDelivery::Sent] {
        let callback = world.twilio().status_callback(&sent, delivery).unwrap().unwrap();
        assert_eq!(world.deliver(callback).await, 204);
    }
    assert_eq!(world.lines(DELIVERIES).await, ["accepted delivered"]);
}

#[tokio::test]
async fn report_for_an_unknown_message_changes_nothing() {
    let app = TestApp::start_without_model().await;
    app.sms("?").await;
    let sent = app.twilio().sent_messages()[0].clone();
    let query = sent.callback.as_deref().and_then(|url| url.split_once('?')).unwrap().1.to_owned();
    let (address, word) = query.rsplit_once('=').unwrap();
    let zeros = "0".repeat(word.len());
    let others = [
        (sent.sid.as_str(), String::new()),
        (sent.sid.as_str(), "out=1&n=1".to_owned()),
        (sent.sid.as_str(), format!("{address}={zeros}")),
        (sent.sid.as_str(), query.replace("out=1", "out=99")),
        (sent.sid.as_str(), query.replace("n=1", "n=2")),
        ("SM00000000000000000000000000000099", query.clone()),
    ];
    for (sid, query) in others {
        assert_eq!(app.report_of(sid, "undelivered", &query).await, 204, "{query}");
        assert_eq!(app.deliveries().await, ["untold"]);
    }
    assert_eq!(app.report_of(&sent.sid, "undelivered", &query).await, 204);
    assert_eq!(app.deliveries().await, ["undelivered"]);
}

#[tokio::test]
async fn unsigned_delivery_report_changes_nothing() {
    let app = TestApp::start_without_model().await;
    app.sms("?").await;
    let text = &app.twilio().sent_messages()[0];
    let report = app.twilio().status_callback(text, FakeDelivery::Delivered).unwrap().unwrap();
    assert_eq!(app.status_of(unsigned(report.clone())).await, 403);
    let mut other_text = report.clone();
    *other_text.uri_mut() = "/webhook/twilio/status?out=2&n=1".parse().unwrap();
    assert_eq!(app.status_of(other_text).await, 403);
    assert_eq!(app.deliveries().await, ["untold"]);
    assert_eq!(app.status_of(report).await, 204);
    assert_eq!(app.deliveries().await, ["delivered"]);
}
