//! Property tests of the webhooks: a request is accepted exactly if it can be authenticated and parsed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, header};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::sample::{Index, select};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use super::{in_process, webhook_router};
use crate::app::App;
use crate::arr::connect_events;
use crate::arr::fake::radarr::FakeRadarr;
use crate::arr::fake::sonarr::FakeSonarr;
use crate::clock::Clock;
use crate::conversation::transcript::Address;
use crate::http::{HttpClient, InProcess};
use crate::messaging::twilio::signature::{self, SIGNATURE_HEADER, SignatureVerifier};
use crate::messaging::twilio::webhook::{self, CallbackQuery};
use crate::messaging::twilio::{STATUS_PATH, Twilio, TwilioReceiving, WEBHOOK_PATH};
use crate::simulation::{self, SimulatedPeers};
use crate::store::database::db::Db;
use crate::store::queue::backlog::load_backlog;

const PUBLIC_URL: &str = "https://sms.example.org";
const ARR_WEBHOOK_SECRET: &str = "a-long-random-word";
/// Number of cases, kept small because each request costs a transaction.
const CASES: u32 = 192;

/// Program behind its webhooks. It stores messages and does not process them.
struct WebhookHarness {
    runtime: Runtime,
    app: App,
    webhooks: InProcess,
    _folder: TempDir,
}

type Form = Vec<(String, String)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signer {
    Twilio,
    OtherToken,
    Unsigned,
}

impl WebhookHarness {
    fn start() -> Self {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(folder.path().join("webhooks.db").to_str().unwrap()).unwrap();
        let clock = Clock::System;
        let libraries = (FakeRadarr::with_clock(clock.clone()), FakeSonarr::with_clock(clock.clone()));
        let peers = SimulatedPeers::new(clock, libraries.0, libraries.1, PUBLIC_URL);
        let mut blueprint = peers.blueprint(simulation::simulation_settings(TimeZone::UTC), None).unwrap();
        let verifier = SignatureVerifier { tokens: vec!["the-token".into()], shared_keys: BTreeMap::new() };
        let account = peers.twilio.client_account("https://api.twilio.invalid");
        let number = Address::new(simulation::OUR_NUMBER);
        let twilio = Twilio::new(account, HttpClient::in_process(peers.twilio.in_process()))
            .with_receiving(TwilioReceiving { number, verifier });
        blueprint.channels = blueprint.channels.with(Arc::new(twilio));
        blueprint.arr_secret = Some(ARR_WEBHOOK_SECRET.into());
        let app = runtime.block_on(App::start(db, peers.clock, blueprint)).unwrap();
        runtime.block_on(app.engine.drain(Duration::ZERO));
        let webhooks = in_process(webhook_router(app.webhooks.clone()));
        Self { runtime, app, webhooks, _folder: folder }
    }

    fn response_status(&self, request: Request<Bytes>) -> u16 {
        self.runtime.block_on((self.webhooks)(request)).status().as_u16()
    }

    /// Posts a form to `target`, with a signature over `url` and `signed`, and returns the status of the response.
    fn post_form(&self, target: &str, body: &[u8], signer: Signer, (url, signed): (&str, &Form)) -> u16 {
        let token = match signer {
            Signer::Twilio => "the-token",
            Signer::OtherToken => "another-token",
            Signer::Unsigned => "",
        };
        let mut request =
            Request::post(target).header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        if signer != Signer::Unsigned {
            let signature =
                signature::sign_form(&token.into(), &signature::signed_url(PUBLIC_URL, url), signed);
            request = request.header(SIGNATURE_HEADER, signature);
        }
        self.response_status(request.body(Bytes::copy_from_slice(body)).unwrap())
    }

    /// Returns the number of callbacks that matched no outbound message.
    fn unbound_callback_count(&self) -> usize {
        let now = Timestamp::UNIX_EPOCH;
        let backlog = self.runtime.block_on(self.app.db.read(move |conn| load_backlog(conn, now))).unwrap();
        let metrics = self.app.webhooks.metrics.render(&backlog, now).unwrap();
        let name = "dialarr_webhook_refusals_total{webhook=\"status\",reason=\"unbound\"} ";
        metrics.lines().find_map(|line| line.strip_prefix(name)).map_or(0, |count| count.parse().unwrap())
    }
}

fn any_signer() -> impl Strategy<Value = Signer> {
    prop_oneof![4 => Just(Signer::Twilio), 1 => Just(Signer::OtherToken), 1 => Just(Signer::Unsigned)]
}

/// Generates forms with these field names, in any order and number.
fn form_with_fields(
    names: &'static [&'static str],
    value: impl Strategy<Value = String>,
) -> impl Strategy<Value = Form> {
    proptest::collection::vec((select(names), value), 0..12)
        .prop_map(|form| form.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn encode_form(form: &Form) -> String {
    serde_urlencoded::to_string(form).unwrap()
}

/// Returns the text that a signature covers. Twilio does not sign the boundary between a name and its value.
fn signed_text(form: &Form) -> String {
    let distinct: BTreeSet<_> = form.iter().collect();
    distinct.into_iter().flat_map(|(name, value)| [name.as_str(), value]).collect()
}

/// Generates one of Twilio's forms, in which fields are occasionally missing, with additional fields.
fn nearly_complete_form(
    fields: &'static [(&'static str, &'static str)],
    additional: impl Strategy<Value = Form>,
) -> impl Strategy<Value = Form> {
    let present = proptest::collection::vec(proptest::bool::weighted(0.98), fields.len());
    (present, additional).prop_map(|(present, additional)| {
        let fields = fields.iter().zip(present).filter(|(_, present)| *present);
        fields.map(|((name, value), _)| ((*name).to_owned(), (*value).to_owned())).chain(additional).collect()
    })
}

const INBOUND_FORM: [(&str, &str); 11] = [
    ("AccountSid", simulation::ACCOUNT),
    ("ApiVersion", "2010-04-01"),
    ("Body", "hello"),
    ("From", "+15550100101"),
    ("MessageSid", "SM00000000000000000000000000000001"),
    ("NumMedia", "0"),
    ("NumSegments", "1"),
    ("SmsMessageSid", "SM00000000000000000000000000000001"),
    ("SmsSid", "SM00000000000000000000000000000001"),
    ("SmsStatus", "received"),
    ("To", "+15550100000"),
];

#[test]
fn webhook_accepts_exactly_signed_forms_with_sender_and_recipient() {
    const ADDITIONAL_NAMES: [&str; 6] = ["Body", "From", "MediaUrl0", "OptOutType", "ErrorUrl", "FromCity"];
    let harness = WebhookHarness::start();
    let value =
        prop_oneof![3 => Just("+15550100101".to_owned()), 1 => any::<String>(), 1 => Just("STOP".to_owned())];
    let additional = prop_oneof![2 => Just(Form::new()), 1 => form_with_fields(&ADDITIONAL_NAMES, value)];
    proptest!(ProptestConfig::with_cases(CASES), |(
        signed in nearly_complete_form(&INBOUND_FORM, additional),
        signer in any_signer(),
        flipped_bit in proptest::option::weighted(0.3, (any::<Index>(), 0..8_u32)),
    )| {
        let mut body = encode_form(&signed).into_bytes();
        if let Some((index, bit)) = flipped_bit && !body.is_empty() {
            let index = index.index(body.len());
            body[index] ^= 1 << bit;
        }
        let received: Form = serde_urlencoded::from_bytes(&body).unwrap();
        let is_trusted = signer == Signer::Twilio && signed_text(&received) == signed_text(&signed);
        let is_complete = webhook::parse_inbound_message(&received, simulation::ACCOUNT, Timestamp::UNIX_EPOCH).is_ok();
        let expected = match (is_trusted, is_complete) {
            (false, _) => 403,
            (true, false) => 400,
            (true, true) => 200,
        };
        assert_eq!(harness.post_form(WEBHOOK_PATH, &body, signer, (WEBHOOK_PATH, &signed)), expected);
    });
}

const CALLBACK_FORM: [(&str, &str); 7] = [
    ("AccountSid", simulation::ACCOUNT),
    ("ApiVersion", "2010-04-01"),
    ("MessageSid", "SM00000000000000000000000000000001"),
    ("MessageStatus", "delivered"),
    ("SmsSid", "SM00000000000000000000000000000001"),
    ("SmsStatus", "delivered"),
    ("To", "+15550100101"),
];

#[test]
fn callback_is_accepted_only_if_signed_with_its_query() {
    let harness = WebhookHarness::start();
    let number = prop_oneof![any::<u64>().prop_map(|number| number.to_string()), any::<String>()];
    let additional =
        form_with_fields(&["ErrorCode", "From", "RawDlrDoneDate", "ChannelPrefix"], number.clone());
    let additional = prop_oneof![2 => Just(Form::new()), 1 => additional];
    let unbound = std::cell::Cell::new(0);
    proptest!(ProptestConfig::with_cases(CASES), |(
        form in nearly_complete_form(&CALLBACK_FORM, additional),
        query in form_with_fields(&["out", "n", "word"], number),
        (signer, with_query) in (any_signer(), proptest::bool::weighted(0.8)),
    )| {
        let target = if query.is_empty() { STATUS_PATH.to_owned() } else { format!("{STATUS_PATH}?{}", encode_form(&query)) };
        let signed = if with_query { target.as_str() } else { STATUS_PATH };
        let is_complete = webhook::parse_status_callback(&form, CallbackQuery::from_query(""), simulation::ACCOUNT).is_ok();
        let expected = match (signer == Signer::Twilio && signed == target, is_complete) {
            (false, _) => 403,
            (true, false) => 400,
            (true, true) => 204,
        };
        assert_eq!(harness.post_form(&target, encode_form(&form).as_bytes(), signer, (signed, &form)), expected);
        unbound.set(unbound.get() + usize::from(expected == 204));
        assert_eq!(harness.unbound_callback_count(), unbound.get());
    });
}

#[test]
fn arr_event_needs_the_secret_and_a_valid_event() {
    let harness = WebhookHarness::start();
    let event =
        (any::<Option<i64>>(), any::<String>(), select(vec!["Download", "Health", "HealthRestored", "Test"]));
    let event = event.prop_map(|(id, text, kind)| {
        let movie = json!({ "id": id, "tmdbId": id, "title": text });
        json!({ "eventType": kind, "movie": movie, "type": text, "message": text }).to_string().into_bytes()
    });
    let body = prop_oneof![
        6 => (event.clone(), Just(usize::MAX)),
        2 => (event, 0..120_usize),
        1 => (any::<Vec<u8>>(), Just(usize::MAX)),
    ];
    let secrets =
        vec![ARR_WEBHOOK_SECRET, ARR_WEBHOOK_SECRET, "", "a-long-random-wor", "a-long-random-word2"];
    proptest!(ProptestConfig::with_cases(CASES), |(
        (mut body, length) in body,
        library in select(vec!["radarr", "sonarr", "sonarr", "lidarr"]),
        secret in proptest::option::weighted(0.9, select(secrets)),
        uses_basic_auth: bool,
    )| {
        body.truncate(length);
        let mut request = Request::post(format!("/webhook/{library}"));
        if let Some(secret) = secret {
            let (name, value) = if uses_basic_auth {
                (header::AUTHORIZATION.as_str(), format!("Basic {}", STANDARD.encode(format!("dialarr:{secret}"))))
            } else {
                ("x-dialarr-token", secret.to_owned())
            };
            request = request.header(name, value);
        }
        let is_event = connect_events::parse_events(&body, Timestamp::UNIX_EPOCH).is_ok();
        let expected = match (library, secret) {
            ("lidarr", _) => 404,
            (_, Some(ARR_WEBHOOK_SECRET)) if is_event => 200,
            (_, Some(ARR_WEBHOOK_SECRET)) => 400,
            _ => 401,
        };
        assert_eq!(harness.response_status(request.body(body.into()).unwrap()), expected);
    });
}
