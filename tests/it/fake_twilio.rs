use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Request, Response};
use serde_json::Value;

use dialarr::clock::Clock;
use dialarr::conversation::transcript::{Address, OutboxId};
use dialarr::http::HttpClient;
use dialarr::messaging::twilio::fake::{FakeAccount, FakeDelivery, FakeTwilio, SentMessage};
use dialarr::messaging::twilio::signature::{
    ClaimedSignature, SIGNATURE_HEADER, SignatureVerifier, SignedBody, signed_url,
};
use dialarr::messaging::twilio::{Twilio, TwilioSender};
use dialarr::messaging::{CarrierReceipt, ChannelPort, OutboundMessage, SendError};
use dialarr::store::queue::callbacks::CallbackToken;

const OURS: &str = "+15550100000";
const ADA: &str = "+15550100001";
const PUBLIC_URL: &str = "https://sms.example";

struct World {
    carrier: FakeTwilio,
    clock: Clock,
    twilio: Twilio,
}

fn world() -> World {
    let clock = Clock::stopped_at("2026-11-20T09:00:00Z".parse().unwrap());
    let account = FakeAccount {
        account_sid: "AC0123456789abcdef0123456789abcdef".into(),
        auth_token: "token".into(),
        number: Address::new(OURS),
        public_url: PUBLIC_URL.into(),
    };
    let carrier = FakeTwilio::new(account, clock.clone());
    let twilio = Twilio::new(
        carrier.client_account("https://api.example"),
        HttpClient::in_process(carrier.in_process()),
    );
    World { carrier, clock, twilio }
}

fn outgoing(id: i64, body: &str) -> OutboundMessage {
    OutboundMessage {
        id: OutboxId(id),
        attempt: 1,
        to: Address::new(ADA),
        from: Address::new(OURS),
        body: body.into(),
        media: vec![],
        reacts_to: None,
        quotes: None,
        poll: None,
        buttons: Vec::new(),
        valid_for: Duration::from_secs(3600),
        callback_token: CallbackToken::from_stored("0123"),
    }
}

async fn get(world: &World, path: &str) -> Value {
    let credentials = "Basic QUMwMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZjp0b2tlbg==";
    let uri = match path.starts_with('/') {
        true => format!("https://api.example{path}"),
        false => {
            format!("https://api.example/2010-04-01/Accounts/AC0123456789abcdef0123456789abcdef/{path}")
        }
    };
    let request = Request::get(uri).header("authorization", credentials).body(Bytes::new()).unwrap();
    serde_json::from_slice(world.carrier.in_process()(request).await.body()).unwrap()
}

fn bodies(list: &Value) -> Vec<&str> {
    list["messages"].as_array().unwrap().iter().map(|message| message["body"].as_str().unwrap()).collect()
}

fn fields(request: &Request<Bytes>) -> Vec<(String, String)> {
    serde_urlencoded::from_bytes(request.body()).unwrap()
}

#[track_caller]
fn check_signed(request: &Request<Bytes>) {
    let verifier = SignatureVerifier { tokens: vec!["token".into()], shared_keys: BTreeMap::new() };
    let url = signed_url(PUBLIC_URL, request.uri().path_and_query().unwrap().as_str());
    let signature = request.headers()[SIGNATURE_HEADER].to_str().unwrap();
    let form = fields(request);
    assert_eq!(
        verifier.verify(&url, SignedBody::Form(&form), ClaimedSignature { signature, settings: None }),
        Ok(())
    );
}

#[tokio::test]
async fn message_is_accepted_stored_and_announced() {
    let world = world();
    let mut announced = world.carrier.subscribe();
    world.carrier.set_latency(Duration::from_secs(2));
    let accepted = world.twilio.send(&outgoing(7, "Added Dune.")).await.unwrap();
    let at = "2026-11-20T09:00:02Z".parse().unwrap();
    assert_eq!(accepted, CarrierReceipt { sid: accepted.sid.clone(), created_at: Some(at), poll: None });
    let sent = SentMessage {
        sid: accepted.sid,
        to: Address::new(ADA),
        from: Address::new(OURS),
        body: "Added Dune.".into(),
        media: vec![],
        callback: Some("https://sms.example/webhook/twilio/status?out=7&n=1&word=0123".into()),
        accepted_at: at,
    };
    assert_eq!(announced.recv().await.unwrap(), sent);
    assert_eq!(world.carrier.sent_messages(), [sent]);
}

#[tokio::test]
async fn message_resource_matches_the_real_one() {
    let world = world();
    let sid = world.twilio.send(&outgoing(7, &"x".repeat(161))).await.unwrap().sid;
    let mut resource = get(&world, &format!("Messages/{sid}.json")).await;
    resource["body"].take();
    insta::assert_json_snapshot!(resource, @r#"
        {
          "account_sid": "AC0123456789abcdef0123456789abcdef",
          "api_version": "2010-04-01",
          "body": null,
          "date_created": "Fri, 20 Nov 2026 09:00:00 +0000",
          "date_sent": null,
          "date_updated": "Fri, 20 Nov 2026 09:00:00 +0000",
          "direction": "outbound-api",
          "error_code": null,
          "error_message": null,
          "from": "+15550100000",
          "messaging_service_sid": null,
          "num_media": "0",
          "num_segments": "2",
          "price": null,
          "price_unit": "USD",
          "sid": "SMcd2662154e6d76b2b2b92e70c0cac3cc",
          "status": "queued",
          "subresource_uris": {
            "media": "/2010-04-01/Accounts/AC0123456789abcdef0123456789abcdef/Messages/SMcd2662154e6d76b2b2b92e70c0cac3cc/Media.json"
          },
          "to": "+15550100001",
          "uri": "/2010-04-01/Accounts/AC0123456789abcdef0123456789abcdef/Messages/SMcd2662154e6d76b2b2b92e70c0cac3cc.json"
        }
        "#);
}

#[tokio::test]
async fn invalid_message_is_refused_with_its_code() {
    let World { carrier, twilio, .. } = world();
    let text = outgoing(1, "hi");
    let http = || HttpClient::in_process(carrier.in_process());
    let mut stranger = carrier.client_account("https://api.example");
    stranger.account_sid = "AC2".into();
    let outcomes = [
        Twilio::new(stranger, http()).send(&text).await,
        twilio.send(&OutboundMessage { from: Address::new("+15550100009"), ..text.clone() }).await,
        twilio.send(&OutboundMessage { to: Address::new("nobody"), ..text.clone() }).await,
        twilio.send(&OutboundMessage { to: Address::new(OURS), ..text.clone() }).await,
        twilio.send(&OutboundMessage { to: Address::new(""), ..text.clone() }).await,
        twilio.send(&OutboundMessage { body: String::new(), ..text.clone() }).await,
        twilio.send(&OutboundMessage { body: "x".repeat(1601), ..text.clone() }).await,
        twilio.send(&OutboundMessage { media: vec!["https://a.example/".into(); 11], ..text.clone() }).await,
    ];
    let codes = outcomes.map(|outcome| match outcome {
        Err(SendError::Permanent { code, .. } | SendError::Misconfigured { code, .. }) => code,
        other => panic!("{other:?}"),
    });
    assert_eq!(
        codes.map(Option::unwrap_or_default),
        [20003, 21606, 21211, 21211, 21604, 21619, 21617, 21623]
    );
    assert_eq!(carrier.sent_messages(), []);
}

#[tokio::test]
async fn service_sends_from_its_number() {
    let world = world();
    let mut account = world.carrier.client_account("https://api.example");
    account.sender = TwilioSender::MessagingService("MG1".into());
    let twilio = Twilio::new(account, HttpClient::in_process(world.carrier.in_process()));
    twilio.send(&OutboundMessage { from: Address::new("unused"), ..outgoing(1, "hi") }).await.unwrap();
    assert_eq!(world.carrier.sent_messages()[0].from, Address::new(OURS));
}

#[tokio::test(start_paused = true)]
async fn each_fault_affects_one_message() {
    let World { carrier, twilio, .. } = world();
    carrier.fail_next(503, 20503);
    carrier.hang_next();
    carrier.lose_next_answer();
    let mut outcomes = Vec::new();
    for body in ["refused", "unheard", "taken", "normal"] {
        outcomes.push(twilio.send(&outgoing(1, body)).await.is_ok());
    }
    let taken: Vec<String> = carrier.sent_messages().into_iter().map(|sent| sent.body).collect();
    assert_eq!(
        (outcomes, taken),
        (vec![false, false, false, true], vec!["taken".to_owned(), "normal".to_owned()])
    );
}

#[tokio::test]
async fn list_is_newest_first_filtered_and_paged() {
    let world = world();
    world.carrier.inbound_form(ADA, "first").into_signed_request().unwrap();
    world.clock.advance(Duration::from_hours(24));
    world.carrier.inbound_form(ADA, "second").into_signed_request().unwrap();
    world
        .carrier
        .inbound_form(ADA, "third")
        .with_media("https://api.example/a", "image/jpeg")
        .into_signed_request()
        .unwrap();
    world.twilio.send(&outgoing(1, "answer")).await.unwrap();

    assert_eq!(bodies(&get(&world, "Messages.json").await), ["answer", "third", "second", "first"]);
    let inbound = "Messages.json?To=%2B15550100000&PageSize=1&DateSent%3E=2026-11-21";
    let page = get(&world, inbound).await;
    assert_eq!((bodies(&page), &page["messages"][0]["num_media"]), (vec!["third"], &Value::from("1")));
    let page = get(&world, page["next_page_uri"].as_str().unwrap()).await;
    assert_eq!((bodies(&page), &page["next_page_uri"]), (vec!["second"], &Value::Null));
    let old = get(&world, "Messages.json?DateSent%3C=2026-11-20").await;
    assert_eq!(bodies(&old), ["first"]);
}

#[tokio::test]
async fn inbound_message_is_a_signed_form() {
    let world = world();
    let text = world
        .carrier
        .inbound_form(ADA, "add d\u{fc}ne & co")
        .with_media("https://api.example/ME1", "image/jpeg");
    let request = text
        .with_sid("MM00000000000000000000000000000001")
        .with_field("OptOutType", "HELP")
        .into_signed_request()
        .unwrap();
    check_signed(&request);
    let lines: Vec<String> = fields(&request).iter().map(|(name, value)| format!("{name}={value}")).collect();
    insta::assert_snapshot!(format!("{} {}\n{}", request.method(), request.uri(), lines.join("\n")), @r#"
        POST https://sms.example/webhook/twilio
        ToCountry=US
        ToState=CA
        SmsMessageSid=MM00000000000000000000000000000001
        NumMedia=1
        ToCity=
        FromZip=94107
        SmsSid=MM00000000000000000000000000000001
        FromState=CA
        SmsStatus=received
        FromCity=SAN FRANCISCO
        Body=add düne & co
        FromCountry=US
        To=+15550100000
        ToZip=
        NumSegments=1
        MessageSid=MM00000000000000000000000000000001
        AccountSid=AC0123456789abcdef0123456789abcdef
        From=+15550100001
        ApiVersion=2010-04-01
        MediaUrl0=https://api.example/ME1
        MediaContentType0=image/jpeg
        OptOutType=HELP
        "#);
}

#[tokio::test]
async fn channel_prefix_is_in_the_addresses() {
    let request = world()
        .carrier
        .inbound_form(ADA, "hi")
        .with_channel_prefix("whatsapp:")
        .into_signed_request()
        .unwrap();
    check_signed(&request);
    let addresses: Vec<_> =
        fields(&request).into_iter().filter(|(name, _)| name == "From" || name == "To").collect();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(addresses, [pair("To", "whatsapp:+15550100000"), pair("From", "whatsapp:+15550100001")]);
}

#[tokio::test]
async fn repeated_webhook_is_identical_and_listed_once() {
    let world = world();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let webhook = HttpClient::in_process({
        let seen = Arc::clone(&seen);
        Arc::new(move |request: Request<Bytes>| {
            seen.lock().unwrap().push(request.into_body());
            async { Response::new(Bytes::new()) }.boxed()
        })
    });
    let request = world.carrier.inbound_form(ADA, "hi").into_signed_request().unwrap();
    for _ in 0..2 {
        FakeTwilio::deliver_request(request.clone(), &webhook).await.unwrap();
    }
    let seen = seen.lock().unwrap().clone();
    assert_eq!((seen.len(), &seen[0]), (2, &seen[1]));
    assert_eq!(bodies(&get(&world, "Messages.json").await), ["hi"]);
}

#[tokio::test]
async fn status_callback_is_signed_and_updates_the_message() {
    let world = world();
    let sid = world.twilio.send(&outgoing(7, "hi")).await.unwrap().sid;
    let [sent] = <[SentMessage; 1]>::try_from(world.carrier.sent_messages()).unwrap();
    for delivery in [FakeDelivery::Sent, FakeDelivery::Undelivered(30003)] {
        let request = world.carrier.status_callback(&sent, delivery).unwrap().unwrap();
        check_signed(&request);
        assert_eq!(request.uri(), "https://sms.example/webhook/twilio/status?out=7&n=1&word=0123");
    }
    let resource = get(&world, &format!("Messages/{sid}.json")).await;
    assert_eq!(
        (&resource["status"], &resource["error_code"]),
        (&Value::from("undelivered"), &Value::from(30003))
    );
}

#[tokio::test]
async fn opt_out_words_block_sending_until_an_opt_in_word() {
    let keywords: Value = serde_json::from_str(include_str!("../data/twilio/optout_keywords.json")).unwrap();
    let words = |kind: &str| -> Vec<String> { serde_json::from_value(keywords[kind].clone()).unwrap() };
    let World { carrier, twilio, .. } = world();
    for (stop, start) in words("opt_out").iter().zip(words("opt_in").iter().cycle()) {
        carrier.inbound_form(ADA, &stop.to_lowercase()).into_signed_request().unwrap();
        let silenced = twilio.send(&outgoing(1, "hi")).await;
        assert!(matches!(silenced, Err(SendError::OptedOut)), "{stop}: {silenced:?}");
        carrier.inbound_form(ADA, start).with_channel_prefix("rcs:").into_signed_request().unwrap();
        assert!(twilio.send(&outgoing(1, "hi")).await.is_ok(), "{start}");
    }
    carrier.inbound_form(ADA, "stop it").into_signed_request().unwrap();
    assert!(twilio.send(&outgoing(1, "hi")).await.is_ok());
}

#[tokio::test]
async fn router_and_in_process_carrier_answer_alike() {
    use tower::ServiceExt;
    let World { carrier, .. } = world();
    let request =
        Request::get("/2010-04-01/Accounts/AC1/Messages.json").body(axum::body::Body::empty()).unwrap();
    let response = carrier.router().oneshot(request).await.unwrap();
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 1000).await.unwrap();
    assert_eq!(
        (status.as_u16(), String::from_utf8(body.to_vec()).unwrap().as_str()),
        (
            401,
            r#"{"code":20003,"message":"Twilio refused the account's credentials","more_info":"https://www.twilio.com/docs/errors/20003","status":401}"#
        )
    );
}
