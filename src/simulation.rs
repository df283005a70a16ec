//! The program among simulated peers, in one process: what the demo, the evaluation and the tests run.
//! Everything but Sonarr, Radarr, Twilio and the model is the real thing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Method, Request};
use jiff::SignedDuration;
use jiff::tz::TimeZone;
use secrecy::SecretString;
use url::Url;

use crate::access_rules::{AccessRules, Hosts, SignIn};
use crate::app::{Blueprint, Missed};
use crate::arr::fake::radarr::FakeRadarr;
use crate::arr::fake::sonarr::FakeSonarr;
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::clock::Clock;
use crate::conversation::deletion::CodePolicy;
use crate::conversation::rate::Rate;
use crate::conversation::spending::{Budget, Prices};
use crate::conversation::transcript::{Address, PhoneNumber};
use crate::conversation::triage::Routing;
use crate::conversation::turn::Limits;
use crate::engine::learning::Notes;
use crate::engine::{Codes, Pictures, Quotas, Settings, SmsReactions};
use crate::http::{Http, InProcess};
use crate::llm::Model;
use crate::llm::embeddings::USUAL_FLOOR;
use crate::llm::embeddings::hashing::HashingEmbedder;
use crate::messaging::console::Sink;
use crate::messaging::fake::{FakeAccount, FakeTwilio};
use crate::messaging::outbox::Channels;
use crate::messaging::signature::Verifier;
use crate::messaging::terminal::Terminal;
use crate::messaging::twilio::Twilio;
use crate::pace::Pace;
use crate::response_budget::ResponseBudget;
use crate::store::db::Db;
use crate::tools::library::{Instance, Library};
use crate::tools::shelf::freshness::Shelf;
use crate::web::Trust;

/// The number that simulated people text.
pub const OUR_NUMBER: &str = "+15550100000";
/// The account of the simulated Twilio.
pub const ACCOUNT: &str = "AC00000000000000000000000000000000";
const TWILIO_API: &str = "https://api.twilio.invalid";

/// A simulated Sonarr, Radarr and Twilio. Clones share their state.
#[derive(Clone)]
pub struct Peers {
    pub clock: Clock,
    pub radarr: FakeRadarr,
    pub sonarr: FakeSonarr,
    pub twilio: FakeTwilio,
    token: SecretString,
    public_url: String,
    writes: Arc<Mutex<Vec<Write>>>,
    /// Shared by the answers of both libraries.
    pub responses: ResponseBudget,
}

/// Which simulated library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    Radarr,
    Sonarr,
}

/// A change that a simulated library carried out, in the order of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// By its number in the catalogue: TMDB or TVDB.
    Added(Served, i64),
    /// By its id in the library.
    Removed(Served, i64),
}

impl Peers {
    /// `public_url` is where the simulated Twilio believes our webhooks to be.
    pub fn new(clock: Clock, radarr: FakeRadarr, sonarr: FakeSonarr, public_url: &str) -> Self {
        let token = SecretString::from("a-simulated-token".to_owned());
        let account = FakeAccount {
            account_sid: ACCOUNT.to_owned(),
            auth_token: token.clone(),
            number: Address::new(OUR_NUMBER),
            public_url: public_url.to_owned(),
        };
        let twilio = FakeTwilio::new(account, clock.clone());
        let (writes, responses) = (Arc::default(), ResponseBudget::default());
        Self { clock, radarr, sonarr, twilio, token, public_url: public_url.to_owned(), writes, responses }
    }

    /// The program wired to these peers.
    pub fn blueprint(
        &self,
        db: Db,
        settings: Settings,
        model: Option<Arc<dyn Model>>,
    ) -> Result<Blueprint, url::ParseError> {
        let verifier = Verifier { tokens: vec![self.token.clone()], shared_keys: BTreeMap::new() };
        let carrier = self.carrier();
        Ok(Blueprint {
            db,
            clock: self.clock.clone(),
            settings,
            confirm_for: SignedDuration::from_mins(5),
            retention: RETENTION,
            admin: None,
            members: Vec::new(),
            model,
            embedder: Some(Arc::new(HashingEmbedder)),
            library: self.library()?,
            channels: Channels {
                carrier: Some(carrier),
                terminal: Arc::new(Terminal),
                console: Arc::new(Sink),
            },
            trust: Some(Arc::new(Trust {
                verifier,
                public_url: self.public_url.clone(),
                account_sid: ACCOUNT.to_owned(),
            })),
            report_secret: None,
            config: None,
            missed: None,
            context_window: None,
            console: AccessRules { sign_in: SignIn::Links, hosts: Hosts::local() },
        })
    }

    /// The simulated carrier's record of texts to us, for a program that is to find those it missed.
    pub fn missed(&self) -> Missed {
        Missed { twilio: self.carrier(), number: Address::new(OUR_NUMBER) }
    }

    fn carrier(&self) -> Arc<Twilio> {
        let account = self.twilio.client_account(TWILIO_API);
        Arc::new(Twilio::new(account, Http::in_process(self.twilio.in_process())))
    }

    /// The changes since the last look.
    pub fn take_writes(&self) -> Vec<Write> {
        std::mem::take(&mut *self.writes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The way to a simulated library, with its changes noted as they succeed.
    fn watched(&self, served: Served, peer: InProcess) -> Http {
        let writes = self.writes.clone();
        Http::in_process(Arc::new(move |request| {
            let attempt = attempt(served, &request);
            let (answer, writes) = (peer(request), writes.clone());
            Box::pin(async move {
                let answer = answer.await;
                if answer.status().is_success() {
                    writes.lock().unwrap_or_else(PoisonError::into_inner).extend(attempt);
                }
                answer
            })
        }))
        .with_budget(self.responses.clone())
    }

    fn library(&self) -> Result<Library, url::ParseError> {
        let radarr = Radarr::new(
            self.watched(Served::Radarr, self.radarr.in_process()),
            Url::parse("http://radarr.invalid")?,
            SecretString::from(self.radarr.key().to_owned()),
        );
        let sonarr = Sonarr::new(
            self.watched(Served::Sonarr, self.sonarr.in_process()),
            Url::parse("http://sonarr.invalid")?,
            SecretString::from(self.sonarr.key().to_owned()),
        );
        Ok(Library {
            movies: vec![Instance { name: "radarr", four_k: false, client: radarr, shelf: Shelf::default() }],
            series: vec![Instance { name: "sonarr", four_k: false, client: sonarr, shelf: Shelf::default() }],
        })
    }
}

/// What a request would change.
fn attempt(served: Served, request: &Request<Bytes>) -> Option<Write> {
    let path = request.uri().path();
    let field = match served {
        Served::Radarr => "tmdbId",
        Served::Sonarr => "tvdbId",
    };
    if request.method() == Method::POST && (path.ends_with("/movie") || path.ends_with("/series")) {
        let body: serde_json::Value = serde_json::from_slice(request.body()).ok()?;
        Some(Write::Added(served, body.get(field)?.as_i64()?))
    } else if request.method() == Method::DELETE {
        // Files and downloads are deleted too, under other names.
        let (folder, id) = path.rsplit_once('/')?;
        let title = folder.ends_with("/movie") || folder.ends_with("/series");
        title.then_some(Write::Removed(served, id.parse().ok()?))
    } else {
        None
    }
}

/// A year of days, as where nothing else is configured.
const RETENTION: SignedDuration = SignedDuration::from_hours(365 * 24);
const WEEKLY: Option<Rate> = Some(Rate { most: 10, within: SignedDuration::from_hours(7 * 24) });

/// The settings that a household gets by default, without waiting for further texts.
pub fn settings(zone: TimeZone) -> Settings {
    Settings {
        zone,
        idle: SignedDuration::from_mins(30),
        coalesce: std::time::Duration::ZERO,
        code_policy: CodePolicy::Bulk,
        codes: Codes::Random,
        languages: Vec::new(),
        limits: Limits::STANDARD,
        model_calls: 8,
        quotas: Quotas { movies: WEEKLY, seasons: WEEKLY },
        rate: Some(Rate { most: 10, within: SignedDuration::from_mins(1) }),
        prices: Prices::default(),
        budget: Budget::default(),
        routing: Routing::Heuristic,
        reactions: SmsReactions::Silent,
        quiet: None,
        pictures: Pictures::Sent,
        notes: Notes::ByCode,
        number: Some(Address::new(OUR_NUMBER)),
        floor: USUAL_FLOOR,
        pace: Pace::STANDARD,
    }
}

/// A fictional number, which no real phone has.
pub fn fictional(last_two: u8) -> Option<PhoneNumber> {
    PhoneNumber::parse(&format!("+155501001{last_two:02}")).ok()
}
