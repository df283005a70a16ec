//! Webhooks with arbitrary requests: a form or a callback is accepted exactly if it can be trusted and parsed.

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

use super::{TwilioVerification, in_process, webhook_router};
use crate::app::App;
use crate::arr::connect_events;
use crate::arr::fake::radarr::FakeRadarr;
use crate::arr::fake::sonarr::FakeSonarr;
use crate::clock::Clock;
use crate::http::InProcess;
use crate::messaging::signature::{self, SIGNATURE_HEADER, SignatureVerifier};
use crate::messaging::twilio::{STATUS_PATH, WEBHOOK_PATH};
use crate::messaging::webhook::{self, CallbackQuery};
use crate::simulation::{self, SimulatedPeers};
use crate::store::database::db::Db;
use crate::store::queue::backlog::load_backlog;

const PUBLIC_URL: &str = "https://sms.example.org";
const REPORT_SECRET: &str = "a-long-random-word";
/// Number of cases. A request costs a transaction.
const CASES: u32 = 192;

/// Whole program behind its webhooks. It accepts messages and processes none.
struct Door {
    runtime: Runtime,
    app: App,
    door: InProcess,
    _folder: TempDir,
}

type Form = Vec<(String, String)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signer {
    Twilio,
    Somebody,
    Nobody,
}

impl Door {
    fn open() -> Self {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(folder.path().join("door.db").to_str().unwrap()).unwrap();
        let clock = Clock::System;
        let libraries = (FakeRadarr::with_clock(clock.clone()), FakeSonarr::with_clock(clock.clone()));
        let peers = SimulatedPeers::new(clock, libraries.0, libraries.1, PUBLIC_URL);
        let mut blueprint =
            peers.blueprint(db, simulation::simulation_settings(TimeZone::UTC), None).unwrap();
        let verifier = SignatureVerifier { tokens: vec!["the-token".into()], shared_keys: BTreeMap::new() };
        blueprint.twilio_verification = Some(Arc::new(TwilioVerification {
            verifier,
            public_url: PUBLIC_URL.to_owned(),
            account_sid: simulation::ACCOUNT.to_owned(),
        }));
        blueprint.arr_secret = Some(REPORT_SECRET.into());
        let app = runtime.block_on(App::start(blueprint)).unwrap();
        runtime.block_on(app.engine.drain(Duration::ZERO));
        let door = in_process(webhook_router(app.webhooks.clone()));
        Self { runtime, app, door, _folder: folder }
    }

    fn answer(&self, request: Request<Bytes>) -> u16 {
        self.runtime.block_on((self.door)(request)).status().as_u16()
    }

    /// Returns the status of the response to a form sent to `target`, with a signature of `url` and `signed`.
    fn form(&self, target: &str, body: &[u8], signer: Signer, (url, signed): (&str, &Form)) -> u16 {
        let token = match signer {
            Signer::Twilio => "the-token",
            Signer::Somebody => "another-token",
            Signer::Nobody => "",
        };
        let mut request =
            Request::post(target).header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        if signer != Signer::Nobody {
            let signature =
                signature::sign_form(&token.into(), &signature::signed_url(PUBLIC_URL, url), signed);
            request = request.header(SIGNATURE_HEADER, signature);
        }
        self.answer(request.body(Bytes::copy_from_slice(body)).unwrap())
    }

    /// Returns the number of callbacks that named no message of ours.
    fn unbound(&self) -> usize {
        let now = Timestamp::UNIX_EPOCH;
        let backlog = self.runtime.block_on(self.app.db.read(move |conn| load_backlog(conn, now))).unwrap();
        let metrics = self.app.webhooks.metrics.render(&backlog, now).unwrap();
        let name = "dialarr_webhook_refusals_total{webhook=\"status\",reason=\"unbound\"} ";
        metrics.lines().find_map(|line| line.strip_prefix(name)).map_or(0, |count| count.parse().unwrap())
    }
}

fn signer() -> impl Strategy<Value = Signer> {
    prop_oneof![4 => Just(Signer::Twilio), 1 => Just(Signer::Somebody), 1 => Just(Signer::Nobody)]
}

/// Fields with these names, in any order and any number.
fn form(names: &'static [&'static str], value: impl Strategy<Value = String>) -> impl Strategy<Value = Form> {
    proptest::collection::vec((select(names), value), 0..12)
        .prop_map(|form| form.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn encoded(form: &Form) -> String {
    serde_urlencoded::to_string(form).unwrap()
}

/// Returns the text that a signature covers. Twilio does not sign the boundary between a name and its value.
fn signed_words(form: &Form) -> String {
    let distinct: BTreeSet<_> = form.iter().collect();
    distinct.into_iter().flat_map(|(name, value)| [name.as_str(), value]).collect()
}

/// Fields of one of Twilio's requests, some of which may be missing, and further ones.
fn about_whole(
    fields: &'static [(&'static str, &'static str)],
    more: impl Strategy<Value = Form>,
) -> impl Strategy<Value = Form> {
    let kept = proptest::collection::vec(proptest::bool::weighted(0.98), fields.len());
    (kept, more).prop_map(|(kept, more)| {
        let fields = fields.iter().zip(kept).filter(|(_, kept)| *kept);
        fields.map(|((name, value), _)| ((*name).to_owned(), (*value).to_owned())).chain(more).collect()
    })
}

const TEXT: [(&str, &str); 11] = [
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
    const NAMES: [&str; 6] = ["Body", "From", "MediaUrl0", "OptOutType", "ErrorUrl", "FromCity"];
    let door = Door::open();
    let value =
        prop_oneof![3 => Just("+15550100101".to_owned()), 1 => any::<String>(), 1 => Just("STOP".to_owned())];
    let more = prop_oneof![2 => Just(Form::new()), 1 => form(&NAMES, value)];
    proptest!(ProptestConfig::with_cases(CASES), |(
        signed in about_whole(&TEXT, more),
        signer in signer(),
        changed in proptest::option::weighted(0.3, (any::<Index>(), 0..8_u32)),
    )| {
        let mut body = encoded(&signed).into_bytes();
        if let Some((place, bit)) = changed && !body.is_empty() {
            let place = place.index(body.len());
            body[place] ^= 1 << bit;
        }
        let arrived: Form = serde_urlencoded::from_bytes(&body).unwrap();
        let is_trusted = signer == Signer::Twilio && signed_words(&arrived) == signed_words(&signed);
        let is_whole = webhook::parse_text(&arrived, simulation::ACCOUNT, Timestamp::UNIX_EPOCH).is_ok();
        let expected = match (is_trusted, is_whole) {
            (false, _) => 403,
            (true, false) => 400,
            (true, true) => 200,
        };
        assert_eq!(door.form(WEBHOOK_PATH, &body, signer, (WEBHOOK_PATH, &signed)), expected);
    });
}

const REPORT: [(&str, &str); 7] = [
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
    let door = Door::open();
    let number = prop_oneof![any::<u64>().prop_map(|number| number.to_string()), any::<String>()];
    let more = form(&["ErrorCode", "From", "RawDlrDoneDate", "ChannelPrefix"], number.clone());
    let more = prop_oneof![2 => Just(Form::new()), 1 => more];
    let unbound = std::cell::Cell::new(0);
    proptest!(ProptestConfig::with_cases(CASES), |(
        form in about_whole(&REPORT, more),
        query in form(&["out", "n", "word"], number),
        (signer, with_query) in (signer(), proptest::bool::weighted(0.8)),
    )| {
        let target = if query.is_empty() { STATUS_PATH.to_owned() } else { format!("{STATUS_PATH}?{}", encoded(&query)) };
        let signed = if with_query { target.as_str() } else { STATUS_PATH };
        let is_whole = webhook::parse_report(&form, CallbackQuery::from_query(""), simulation::ACCOUNT).is_ok();
        let expected = match (signer == Signer::Twilio && signed == target, is_whole) {
            (false, _) => 403,
            (true, false) => 400,
            (true, true) => 204,
        };
        assert_eq!(door.form(&target, encoded(&form).as_bytes(), signer, (signed, &form)), expected);
        unbound.set(unbound.get() + usize::from(expected == 204));
        assert_eq!(door.unbound(), unbound.get());
    });
}

#[test]
fn arr_event_needs_the_secret_and_a_valid_event() {
    let door = Door::open();
    let event =
        (any::<Option<i64>>(), any::<String>(), select(vec!["Download", "Health", "HealthRestored", "Test"]));
    let event = event.prop_map(|(id, word, kind)| {
        let movie = json!({ "id": id, "tmdbId": id, "title": word });
        json!({ "eventType": kind, "movie": movie, "type": word, "message": word }).to_string().into_bytes()
    });
    let body = prop_oneof![
        6 => (event.clone(), Just(usize::MAX)),
        2 => (event, 0..120_usize),
        1 => (any::<Vec<u8>>(), Just(usize::MAX)),
    ];
    let secrets = vec![REPORT_SECRET, REPORT_SECRET, "", "a-long-random-wor", "a-long-random-word2"];
    proptest!(ProptestConfig::with_cases(CASES), |(
        (mut body, length) in body,
        library in select(vec!["radarr", "sonarr", "sonarr", "lidarr"]),
        secret in proptest::option::weighted(0.9, select(secrets)),
        as_password: bool,
    )| {
        body.truncate(length);
        let mut request = Request::post(format!("/webhook/{library}"));
        if let Some(secret) = secret {
            let (name, value) = if as_password {
                (header::AUTHORIZATION.as_str(), format!("Basic {}", STANDARD.encode(format!("dialarr:{secret}"))))
            } else {
                ("x-dialarr-token", secret.to_owned())
            };
            request = request.header(name, value);
        }
        let is_event = connect_events::parse_events(&body, Timestamp::UNIX_EPOCH).is_ok();
        let expected = match (library, secret) {
            ("lidarr", _) => 404,
            (_, Some(REPORT_SECRET)) if is_event => 200,
            (_, Some(REPORT_SECRET)) => 400,
            _ => 401,
        };
        assert_eq!(door.answer(request.body(body.into()).unwrap()), expected);
    });
}
