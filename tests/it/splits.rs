//! Signed requests whose fields are recombined under the same signature, as an attacker with a recorded request can do.

use bytes::Bytes;
use dialarr::arr::fake::media_fixtures::movie;
use dialarr::messaging::twilio::fake::FakeDelivery;
use dialarr::messaging::twilio::signature::SIGNATURE_HEADER;
use http::Request;
use jiff::SignedDuration;

use crate::harness::model::{removes_movie, says};
use crate::harness::world::World;
use crate::harness::{ANN, BOB, Has, TestApp};

const OPTED_OUT: &str = "SELECT address AS line FROM user_addresses WHERE opted_out_at IS NOT NULL";
const QUESTION: &str = "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.";
const DELETED: &str = "Deleted Dune (2021). Freed 21.4 GB.";
const OTHER_SID: &str = "SM000000000000000000000000000000ff";
const UNVERIFIED: &str = "I could not be sure that these are your own words, so nothing was done. \
                          Please type and send them again.";

type Pairs = Vec<(String, String)>;

/// Fields of a request in the order of the signature.
fn fields_of(request: &Request<Bytes>) -> Pairs {
    let mut fields: Pairs = serde_urlencoded::from_bytes(request.body()).unwrap();
    fields.sort();
    fields
}

fn characters(fields: &Pairs) -> String {
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort();
    sorted.into_iter().flat_map(|(name, value)| [name.as_str(), value]).collect()
}

/// Returns other fields under the signature of a request: together with the address they form the same characters.
#[track_caller]
fn resplit(genuine: &Request<Bytes>, target: &str, fields: &Pairs) -> Request<Bytes> {
    let path = genuine.uri().path_and_query().unwrap().as_str();
    let signed = format!("{path}{}", characters(&fields_of(genuine)));
    assert_eq!(format!("{target}{}", characters(fields)), signed, "the signature covers the same characters");
    let signature = &genuine.headers()[SIGNATURE_HEADER];
    let body = serde_urlencoded::to_string(fields).unwrap();
    Request::post(target).header(SIGNATURE_HEADER, signature).body(body.into()).unwrap()
}

/// Builds Bob's own message so that it can be read as one of Ann with the body `body` and an id of his choice. Each
/// field name is documented.
fn forged(app: &TestApp, body: &str, more: &[(&str, &str)]) -> (Request<Bytes>, Request<Bytes>) {
    let start = [("From", ANN), ("MessageSid", OTHER_SID), ("NumMedia", "0")];
    let added: Vec<_> = start.iter().chain(more).collect();
    let words: String = added.iter().flat_map(|(name, value)| [*name, *value]).collect();
    let genuine = app.text(BOB, &format!("{body}{words}ProfileName")).into_signed_request().unwrap();
    let all = fields_of(&genuine);
    let hidden = all.iter().filter(|(name, _)| ("From".."To").contains(&name.as_str())).cloned().collect();
    let mut fields: Pairs = all.iter().filter(|(name, _)| name.as_str() < "Body").cloned().collect();
    fields.push(("Body".to_owned(), body.to_owned()));
    fields.extend(added.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    fields.push(("ProfileName".to_owned(), characters(&hidden)));
    fields.extend(all.into_iter().filter(|(name, _)| name.as_str() >= "To"));
    let other = resplit(&genuine, "/webhook/twilio", &fields);
    (genuine, other)
}

/// Starts with a prompt to Ann, an admin, about Dune; Bob is a member.
async fn app_with_a_question() -> (TestApp, i64) {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::AddRight).await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    assert_eq!(app.sms("delete dune").await, QUESTION);
    app.pass(1);
    (app, dune)
}

#[tokio::test]
async fn recorded_text_of_a_member_never_becomes_an_admins_yes() {
    let (app, _) = app_with_a_question().await;
    let before = app.twilio().sent_messages().len();
    app.model_plays([says("Sorry, what do you mean?")]);
    let (genuine, other) = forged(&app, "yes", &[]);
    assert_eq!(app.status_of(genuine).await, 200);
    app.settle().await;
    app.pass(1);
    assert_eq!(app.status_of(other).await, 200);
    app.settle().await;
    assert_eq!(app.texts_to(BOB, before), "Sorry, what do you mean?");
    assert_eq!(app.texts_to(ANN, before), QUESTION);
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
    assert_eq!(app.sms("yes").await, DELETED);
}

#[tokio::test]
async fn forged_recipient_or_city_confirms_nothing() {
    let (app, _) = app_with_a_question().await;
    let crafted = format!("yesFrom{ANN}MessageSid{OTHER_SID}NumMedia0To");
    let genuine = app.text(BOB, &crafted).into_signed_request().unwrap();
    let all = fields_of(&genuine);
    let mut fields: Pairs = all.iter().filter(|(name, _)| name.as_str() < "Body").cloned().collect();
    let rest = all.iter().filter(|(name, _)| name.as_str() >= "From").cloned().collect();
    let named = [("Body", "yes"), ("From", ANN), ("MessageSid", OTHER_SID), ("NumMedia", "0")];
    fields.extend(named.map(|(name, value)| (name.to_owned(), value.to_owned())));
    fields.push(("To".to_owned(), characters(&rest)));
    assert_eq!(app.status_of(resplit(&genuine, "/webhook/twilio", &fields)).await, 400);

    let genuine = app.text(BOB, &format!("yesFrom{ANN}FromCity")).into_signed_request().unwrap();
    let mut fields = fields_of(&genuine);
    for (name, value) in &mut fields {
        match name.as_str() {
            "Body" => *value = "yes".to_owned(),
            "From" => *value = ANN.to_owned(),
            "FromCity" => *value = format!("From{BOB}FromCity{value}"),
            _ => {}
        }
    }
    let before = app.twilio().sent_messages().len();
    assert_eq!(app.status_of(resplit(&genuine, "/webhook/twilio", &fields)).await, 200);
    app.settle().await;
    assert_eq!(app.texts_to(ANN, before), QUESTION);
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test]
async fn forged_opt_out_or_admin_command_is_ignored() {
    let (app, _) = app_with_a_question().await;
    let (_, stop) = forged(&app, "hello", &[("OptOutType", "STOP")]);
    assert_eq!(app.status_of(stop).await, 200);
    app.settle().await;
    assert_eq!(app.people().await, ["+15550100002 active admin", "+15550100003 active member"]);
    assert_eq!(app.message_outcomes().await.last().unwrap(), "hello: skipped unverified");
    assert_eq!(app.sms("yes").await, DELETED);
}

#[tokio::test]
async fn admin_command_that_differs_from_the_record_is_not_executed() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::AddRight).await;
    let before = app.twilio().sent_messages().len();
    let (_, pause) = forged(&app, "pause", &[]);
    assert_eq!(app.status_of(pause).await, 200);
    app.settle().await;
    assert_eq!(app.texts_to(ANN, before), UNVERIFIED);
    assert_eq!(app.count("pauses").await, 0);
}

#[tokio::test]
async fn ambiguous_yes_confirms_once_the_record_agrees() {
    let (app, dune) = app_with_a_question().await;
    let yes = app
        .text(ANN, "yes")
        .with_field("ProfileName", "Tom")
        .with_listing_delay(SignedDuration::from_secs(1));
    assert_eq!(app.post(yes).await, 200);
    app.settle().await;
    assert_eq!(app.last_to(ANN), DELETED);
    assert_eq!(app.radarr().removed_ids(), [dune]);
}

#[tokio::test]
async fn ambiguous_yes_without_a_record_repeats_the_prompt() {
    let (app, _) = app_with_a_question().await;
    let before = app.twilio().sent_messages().len();
    let yes = app
        .text(ANN, "yes")
        .with_field("ProfileName", "Tom")
        .with_listing_delay(SignedDuration::from_secs(60));
    assert_eq!(app.post(yes).await, 200);
    app.settle().await;
    assert_eq!(app.texts_to(ANN, before), QUESTION);
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test]
async fn ambiguous_stop_opts_out_once_the_record_agrees() {
    let app = TestApp::start().await;
    assert_eq!(app.post(app.text(ANN, "STOP").with_field("ProfileName", "Tom")).await, 200);
    app.settle().await;
    assert_eq!(app.people().await, ["+15550100002 active admin opted out"]);
}

#[tokio::test(start_paused = true)]
async fn ambiguous_stop_is_compared_again_after_a_refused_read() {
    let world = World::start().await;
    world.twilio().fail_reads(true);
    let stop = world
        .twilio()
        .inbound_form(ANN, "STOP")
        .with_field("ProfileName", "Tom")
        .into_signed_request()
        .unwrap();
    assert_eq!(world.deliver(stop).await, 200);
    world.pass(60).await;
    assert_eq!(world.lines(OPTED_OUT).await, Vec::<String>::new());
    world.twilio().fail_reads(false);
    world.pass(150).await;
    assert_eq!(world.lines(OPTED_OUT).await, [ANN]);
}

#[tokio::test]
async fn truncated_callback_updates_no_other_message() {
    let app = TestApp::start_without_model().await;
    for _ in 0..12 {
        app.sms("?").await;
        app.pass(60);
    }
    let twelfth = app.twilio().sent_messages()[11].clone();
    let genuine = app.twilio().status_callback(&twelfth, FakeDelivery::Undelivered(30003)).unwrap().unwrap();
    let target = genuine.uri().path_and_query().unwrap().as_str().to_owned();
    let (short, rest) = target.split_at(target.find("out=12").unwrap() + "out=1".len());
    let mut fields = fields_of(&genuine);
    let account = fields.remove(0);
    fields.insert(0, (format!("{rest}{}", account.0), account.1));
    assert_eq!(app.status_of(resplit(&genuine, short, &fields)).await, 400);
    assert_eq!(app.deliveries().await, ["untold"; 12]);
    assert_eq!(app.status_of(genuine).await, 204);
    assert_eq!(app.deliveries().await[10..], ["untold", "undelivered 30003"]);
}

#[tokio::test]
async fn late_report_from_before_a_restore_changes_nothing() {
    let lost = TestApp::start_without_model().await;
    lost.sms("?").await;
    let late = lost
        .twilio()
        .status_callback(&lost.twilio().sent_messages()[0], FakeDelivery::Delivered)
        .unwrap()
        .unwrap();
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::AddRight).await;
    app.sms_from(BOB, "?").await;
    assert_eq!(app.status_of(late).await, 204);
    assert_eq!(app.deliveries().await, ["untold"]);
}

#[tokio::test]
async fn each_webhook_route_refuses_the_requests_of_the_other() {
    let app = TestApp::start_without_model().await;
    app.sms("?").await;
    let sent = app.twilio().sent_messages()[0].clone();
    let text = app.text(ANN, "hello").into_signed_request().unwrap();
    let url = "https://sms.example.org/webhook/twilio/status";
    let form = crate::harness::wire::Form::of(&crate::harness::wire::TEXT).signed_for(url);
    let mut at_status = form.request();
    *at_status.uri_mut() = "/webhook/twilio/status".parse().unwrap();
    assert_eq!(app.status_of(at_status).await, 400);
    let mut report = crate::harness::wire::Form::of(&crate::harness::wire::TEXT);
    report = report.set("MessageStatus", "delivered").set("MessageSid", &sent.sid);
    assert_eq!(app.status_of(report.request()).await, 400);
    assert_eq!(app.status_of(text).await, 200);
    app.settle().await;
    let metrics = app.program().await.get("/metrics").await.body;
    let mut refusals: Vec<&str> =
        metrics.lines().filter(|line| line.starts_with("dialarr_webhook_refusals_total")).collect();
    refusals.sort_unstable();
    assert_eq!(
        refusals,
        [
            "dialarr_webhook_refusals_total{webhook=\"status\",reason=\"wrong_route\"} 1",
            "dialarr_webhook_refusals_total{webhook=\"texts\",reason=\"wrong_route\"} 1",
        ]
    );
}
