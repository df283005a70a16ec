//! Simulated peers, with which the demo, the evaluation and the tests run the program in one process. All parts of the
//! program except Sonarr, Radarr, Twilio and the model are real.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Method, Request};
use jiff::SignedDuration;
use jiff::tz::TimeZone;
use secrecy::SecretString;
use url::Url;

use crate::access_rules::{AccessRules, AllowedHosts, SignIn};
use crate::app::{AppBlueprint, Polling};
use crate::arr::fake::radarr::FakeRadarr;
use crate::arr::fake::sonarr::FakeSonarr;
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::clock::Clock;
use crate::conversation::deletion::deletion_messages::CodePolicy;
use crate::conversation::grammar::triage::TriageLevel;
use crate::conversation::making_room::SpacePolicy;
use crate::conversation::model_cost::{DailyBudget, ModelPrices};
use crate::conversation::rate_limit::RateLimit;
use crate::conversation::routing::senders::Senders;
use crate::conversation::transcript::Address;
use crate::conversation::turn::TurnLimits;
use crate::conversation::viewer_accounts::WatchSharing;
use crate::discovery::fake::{FakeCatalog, FakeTmdb};
use crate::discovery::{Discovery, DiscoverySource};
use crate::engine::{
    CodeSource, HouseholdSettings, MetadataSource, ModelSkipping, PicturePolicy, Quotas, SmsReactions,
};
use crate::http::{HttpClient, InProcess};
use crate::llm::Model;
use crate::llm::embeddings::DEFAULT_SIMILARITY_FLOOR;
use crate::llm::embeddings::hashing::HashingEmbedder;
use crate::media_servers::MediaServer;
use crate::media_servers::fake::FakeJellyfin;
use crate::media_servers::jellyfin::Jellyfin;
use crate::media_servers::playability::MediaServers;
use crate::messaging::channel_ports::ChannelPorts;
use crate::messaging::twilio::fake::{FakeAccount, FakeTwilio};
use crate::messaging::twilio::signature::SignatureVerifier;
use crate::messaging::twilio::{Twilio, TwilioReceiving};
use crate::recovery_delays::RecoveryDelays;
use crate::response_budget::ResponseBudget;
use crate::seerr::Seerr;
use crate::seerr::fake::FakeSeerr;
use crate::tools::library::{ArrInstances, Instance};

/// Dialarr's phone number in the simulation.
pub const OUR_NUMBER: &str = "+15550100000";
/// Account SID of the simulated Twilio.
pub const ACCOUNT: &str = "AC00000000000000000000000000000000";
const TWILIO_API: &str = "https://api.twilio.invalid";

/// Simulated Sonarr, Radarr and Twilio. Clones share their state.
#[derive(Clone)]
pub struct SimulatedPeers {
    pub clock: Clock,
    pub radarr: FakeRadarr,
    pub sonarr: FakeSonarr,
    pub twilio: FakeTwilio,
    /// Media server of the household; `None` if it has none.
    pub jellyfin: Option<FakeJellyfin>,
    pub tmdb: Option<FakeTmdb>,
    /// Seerr where titles are requested; `None` if they are added to Sonarr and Radarr.
    pub seerr: Option<FakeSeerr>,
    auth_token: SecretString,
    writes: Arc<Mutex<Vec<LibraryWrite>>>,
    /// Budget shared by the responses of both libraries.
    pub responses: ResponseBudget,
}

/// Kind of a simulated library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimulatedLibrary {
    Radarr,
    Sonarr,
}

/// Successful change in a simulated library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LibraryWrite {
    /// Addition of a title, by its TMDB or TheTVDB id.
    Added(SimulatedLibrary, i64),
    /// Removal of a title, by its id in the library.
    Removed(SimulatedLibrary, i64),
}

impl SimulatedPeers {
    /// Creates the peers. `public_url` is the base URL at which the simulated Twilio expects the webhooks.
    pub fn new(clock: Clock, radarr: FakeRadarr, sonarr: FakeSonarr, public_url: &str) -> Self {
        let auth_token = SecretString::from("a-simulated-token".to_owned());
        let account = FakeAccount {
            account_sid: ACCOUNT.to_owned(),
            auth_token: auth_token.clone(),
            number: Address::new(OUR_NUMBER),
            public_url: public_url.to_owned(),
        };
        let twilio = FakeTwilio::new(account, clock.clone());
        let (writes, responses) = (Arc::default(), ResponseBudget::default());
        let (jellyfin, tmdb, seerr) = (None, None, None);
        Self { clock, radarr, sonarr, twilio, jellyfin, tmdb, seerr, auth_token, writes, responses }
    }

    /// Adds a TMDB with this catalog.
    #[must_use]
    pub fn with_tmdb(self, catalog: FakeCatalog) -> Self {
        Self { tmdb: Some(FakeTmdb::new("eyJhbGciOiJIUzI1NiJ9.e30.abc", catalog)), ..self }
    }

    /// Adds a Jellyfin without titles.
    #[must_use]
    pub fn with_jellyfin(self) -> Self {
        let jellyfin = FakeJellyfin::new("0123456789abcdef0123456789abcdef", self.clock.clone());
        Self { jellyfin: Some(jellyfin), ..self }
    }

    /// Adds a Seerr with its owner alone, where titles are requested.
    #[must_use]
    pub fn with_seerr(self) -> Self {
        let seerr = FakeSeerr::new("fedcba9876543210", self.clock.clone());
        Self { seerr: Some(seerr), ..self }
    }

    /// Returns the blueprint of a program connected to these peers.
    pub fn blueprint(
        &self,
        settings: HouseholdSettings,
        model: Option<Arc<dyn Model>>,
    ) -> Result<AppBlueprint, url::ParseError> {
        Ok(AppBlueprint {
            settings,
            admin: None,
            members: Vec::new(),
            model,
            embedder: Some(Arc::new(HashingEmbedder)),
            library: self.build_instances()?,
            channels: ChannelPorts::local().with(Arc::new(self.twilio_port(self.twilio.in_process()))),
            polling: Polling::Off,
            arr_secret: None,
            config: None,
            twilio: None,
            smsgate: None,
            telegram: None,
            public_address: None,
            alerts: None,
            console: AccessRules { sign_in: SignIn::Links, hosts: AllowedHosts::local() },
        })
    }

    /// Creates a port of the simulated Twilio that sends its requests to `server`.
    pub fn twilio_port(&self, server: InProcess) -> Twilio {
        let account = self.twilio.client_account(TWILIO_API);
        Twilio::new(account, HttpClient::in_process(server)).with_receiving(self.twilio_receiving())
    }

    /// Returns the receiving side of the simulated Twilio.
    pub fn twilio_receiving(&self) -> TwilioReceiving {
        let verifier =
            SignatureVerifier { tokens: vec![self.auth_token.clone()], shared_keys: BTreeMap::new() };
        TwilioReceiving { number: Address::new(OUR_NUMBER), verifier }
    }

    /// Returns the successful changes of both libraries since the last call, in order.
    pub fn take_writes(&self) -> Vec<LibraryWrite> {
        std::mem::take(&mut *self.writes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Creates a client for a simulated library that records successful changes.
    fn recording_client(&self, library: SimulatedLibrary, peer: InProcess) -> HttpClient {
        let writes = self.writes.clone();
        HttpClient::in_process(Arc::new(move |request| {
            let write = parse_library_write(library, &request);
            let (response, writes) = (peer(request), writes.clone());
            Box::pin(async move {
                let response = response.await;
                if response.status().is_success() {
                    writes.lock().unwrap_or_else(PoisonError::into_inner).extend(write);
                }
                response
            })
        }))
        .with_budget(self.responses.clone())
    }

    fn build_instances(&self) -> Result<ArrInstances, url::ParseError> {
        let radarr = Radarr::new(
            self.recording_client(SimulatedLibrary::Radarr, self.radarr.in_process()),
            Url::parse("http://radarr.invalid")?,
            self.radarr.api_key().into(),
        );
        let sonarr = Sonarr::new(
            self.recording_client(SimulatedLibrary::Sonarr, self.sonarr.in_process()),
            Url::parse("http://sonarr.invalid")?,
            self.sonarr.api_key().into(),
        );
        Ok(ArrInstances {
            movies: vec![Instance::new("radarr", false, radarr)],
            series: vec![Instance::new("sonarr", false, sonarr)],
            media_servers: self.build_media_servers()?,
            discovery: self.build_discovery()?,
            requests: self.build_requests()?,
        })
    }

    fn build_discovery(&self) -> Result<Discovery, url::ParseError> {
        let Some(fake) = &self.tmdb else { return Ok(Discovery::default()) };
        let http = HttpClient::in_process(fake.in_process());
        let source = DiscoverySource::tmdb(http, Url::parse("http://tmdb.invalid/3")?, &fake.token());
        Ok(Discovery::new(vec![source], "US".to_owned()))
    }

    fn build_requests(&self) -> Result<Option<Seerr>, url::ParseError> {
        let Some(fake) = &self.seerr else { return Ok(None) };
        let http = HttpClient::in_process(fake.in_process());
        Ok(Some(Seerr::new(http, Url::parse("http://seerr.invalid")?, &fake.key())))
    }

    fn build_media_servers(&self) -> Result<MediaServers, url::ParseError> {
        let Some(fake) = &self.jellyfin else { return Ok(MediaServers::default()) };
        let http = HttpClient::in_process(fake.in_process());
        let jellyfin = Jellyfin::new(http, Url::parse("http://jellyfin.invalid")?, &fake.key());
        Ok(MediaServers::new(vec![Arc::new(jellyfin) as Arc<dyn MediaServer>]))
    }
}

/// Returns the change that a request makes if it succeeds; `None` for a request that adds or removes no title.
fn parse_library_write(library: SimulatedLibrary, request: &Request<Bytes>) -> Option<LibraryWrite> {
    let path = request.uri().path();
    let field = match library {
        SimulatedLibrary::Radarr => "tmdbId",
        SimulatedLibrary::Sonarr => "tvdbId",
    };
    if request.method() == Method::POST && (path.ends_with("/movie") || path.ends_with("/series")) {
        let body: serde_json::Value = serde_json::from_slice(request.body()).ok()?;
        Some(LibraryWrite::Added(library, body.get(field)?.as_i64()?))
    } else if request.method() == Method::DELETE {
        // Deletions of files and downloads have other paths.
        let (folder, id) = path.rsplit_once('/')?;
        let is_title = folder.ends_with("/movie") || folder.ends_with("/series");
        is_title.then_some(LibraryWrite::Removed(library, id.parse().ok()?))
    } else {
        None
    }
}

/// Default retention period of message text.
const RETENTION: SignedDuration = SignedDuration::from_hours(365 * 24);
/// Default quota of movies and of seasons.
const WEEKLY_QUOTA: Option<RateLimit> =
    Some(RateLimit { max: 10, period: SignedDuration::from_hours(7 * 24) });

/// Returns the default settings of a household, without debouncing of messages.
pub fn simulation_settings(zone: TimeZone) -> HouseholdSettings {
    HouseholdSettings {
        zone,
        idle_timeout: SignedDuration::from_mins(30),
        debounce: std::time::Duration::ZERO,
        code_policy: CodePolicy::Bulk,
        codes: CodeSource::Random,
        confirm_for: SignedDuration::from_mins(5),
        languages: Vec::new(),
        limits: TurnLimits::STANDARD,
        max_model_calls: 64,
        quotas: Quotas { movies: WEEKLY_QUOTA, seasons: WEEKLY_QUOTA, space_gb: None },
        rate_limit: Some(RateLimit { max: 10, period: SignedDuration::from_mins(1) }),
        prices: ModelPrices::default(),
        context_window: None,
        budget: DailyBudget::STANDARD,
        triage_level: TriageLevel::Heuristic,
        model_skipping: ModelSkipping::Never,
        prompt_addition: None,
        reactions: SmsReactions::Silent,
        quiet_hours: None,
        pictures: PicturePolicy::Sent,
        metadata_source: MetadataSource::ByCode,
        senders: Senders::from_addresses(vec![Address::new(OUR_NUMBER)]),
        similarity_floor: DEFAULT_SIMILARITY_FLOOR,
        retention: RETENTION,
        watch_sharing: WatchSharing::Off,
        making_room: SpacePolicy::default(),
        recovery_delays: RecoveryDelays::STANDARD,
    }
}
