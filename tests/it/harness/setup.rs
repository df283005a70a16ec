//! Settings of the program before a test starts it. Every setting has a default.

use std::sync::Arc;

use dialarr::access_rules::{AccessRules, AllowedHosts, ConsolePassword, SignIn, parse_host};
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::clock::Clock;
use dialarr::conversation::transcript::PhoneNumber;
use dialarr::discovery::fake::FakeCatalog;
use dialarr::doctor::phone::PublicAddress;
use dialarr::engine::{CodeSource, HouseholdSettings};
use dialarr::llm::Model;
use dialarr::llm::embeddings::Embedder;
use dialarr::llm::embeddings::hashing::HashingEmbedder;
use dialarr::llm::scripted::ScriptedModel;
use dialarr::messaging::alert_sender::AlertSender;
use dialarr::simulation::{self, SimulatedPeers};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use secrecy::SecretString;

use super::checked_folder::CheckedFolder;
use super::model::Holding;
use super::{ANN, Has, PUBLIC_URL, TestApp, World, reports};

pub(crate) struct Setup {
    pub(super) settings: HouseholdSettings,
    pub(super) responder: ResponderKind,
    pub(super) public_url: String,
    /// Tokens in place of the one token that the carrier signs with.
    pub(super) tokens: Option<Vec<SecretString>>,
    pub(super) admin: Option<PhoneNumber>,
    pub(super) members: Vec<PhoneNumber>,
    /// Secret that Sonarr and Radarr must present.
    pub(super) report_secret: Option<SecretString>,
    /// Access rules of the console.
    pub(super) console: AccessRules,
    /// Embeddings that turn text into vectors, if any.
    pub(super) embedder: Option<Arc<dyn Embedder>>,
    /// Second Radarr, for 4K.
    pub(super) four_k: Option<FakeRadarr>,
    pub(super) has_sonarr: bool,
    pub(super) has_jellyfin: bool,
    /// Catalog of a TMDB, if there is one.
    pub(super) tmdb: Option<FakeCatalog>,
    pub(super) has_seerr: bool,
    /// Leaves out Sonarr, Radarr and the carrier.
    pub(super) is_unconfigured: bool,
    pub(super) alerts: Option<AlertSender>,
    pub(super) public_address: Option<PublicAddress>,
}

/// Responder of the program.
pub(super) enum ResponderKind {
    Keyword,
    Scripted(Arc<ScriptedModel>),
    Other(Arc<dyn Model>),
}

impl Default for Setup {
    fn default() -> Self {
        let mut settings = simulation::simulation_settings(TimeZone::UTC);
        settings.codes = CodeSource::Fixed(47);
        Self {
            settings,
            responder: ResponderKind::Scripted(Arc::new(ScriptedModel::new(Vec::new()))),
            public_url: PUBLIC_URL.to_owned(),
            tokens: None,
            admin: None,
            members: Vec::new(),
            report_secret: Some(SecretString::from(reports::SECRET)),
            console: AccessRules { sign_in: SignIn::Links, hosts: AllowedHosts::local() },
            embedder: None,
            four_k: None,
            has_sonarr: true,
            has_jellyfin: false,
            tmdb: None,
            has_seerr: false,
            is_unconfigured: false,
            alerts: None,
            public_address: None,
        }
    }
}

impl Setup {
    pub(crate) fn with(mut self, change: impl FnOnce(&mut HouseholdSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    pub(crate) fn keyword_responder(self) -> Self {
        Self { responder: ResponderKind::Keyword, ..self }
    }

    /// Uses a model that holds messages with the word "hold" until its release.
    pub(crate) fn holding(self, model: &Arc<Holding>) -> Self {
        self.answered_by(model.clone())
    }

    pub(crate) fn answered_by(self, model: Arc<dyn Model>) -> Self {
        Self { responder: ResponderKind::Other(model), ..self }
    }

    pub(crate) fn embedded_by(self, embedder: Arc<dyn Embedder>) -> Self {
        Self { embedder: Some(embedder), ..self }
    }

    /// Uses the embeddings of tests, which compare letters.
    pub(crate) fn with_embeddings(self) -> Self {
        self.embedded_by(Arc::new(HashingEmbedder))
    }

    pub(crate) fn four_k(self, radarr: &FakeRadarr) -> Self {
        Self { four_k: Some(radarr.clone()), ..self }
    }

    pub(crate) fn unconfigured(self) -> Self {
        Self { is_unconfigured: true, ..self }
    }

    /// Adds a Jellyfin without titles.
    pub(crate) fn jellyfin(self) -> Self {
        Self { has_jellyfin: true, ..self }
    }

    /// Adds a TMDB with this catalog.
    pub(crate) fn tmdb(self, catalog: FakeCatalog) -> Self {
        Self { tmdb: Some(catalog), ..self }
    }

    /// Adds a Seerr, where titles are requested.
    pub(crate) fn seerr(self) -> Self {
        Self { has_seerr: true, ..self }
    }

    pub(crate) fn without_sonarr(self) -> Self {
        Self { has_sonarr: false, ..self }
    }

    /// Sets `CONSOLE_PASSWORD`, plain or hashed.
    pub(crate) fn console_password(mut self, password: &str) -> Self {
        self.console.sign_in = SignIn::Password(ConsolePassword::parse(password).unwrap());
        self
    }

    /// Sets `CONSOLE_AUTH=none`.
    pub(crate) fn open_console(mut self) -> Self {
        self.console.sign_in = SignIn::Open;
        self
    }

    /// Sets `CONSOLE_HOSTS`.
    pub(crate) fn console_hosts(mut self, names: &[&str]) -> Self {
        self.console.hosts =
            self.console.hosts.with_hosts(names.iter().map(|name| parse_host(name).unwrap()));
        self
    }

    pub(crate) fn alerted_by(self, sender: AlertSender) -> Self {
        Self { alerts: Some(sender), ..self }
    }

    pub(crate) fn reached_at(self, address: PublicAddress) -> Self {
        Self { public_address: Some(address), ..self }
    }

    pub(crate) fn without_report_secret(self) -> Self {
        Self { report_secret: None, ..self }
    }

    pub(crate) fn public_url(self, url: &str) -> Self {
        Self { public_url: url.to_owned(), ..self }
    }

    /// Sets the auth tokens that the program accepts.
    pub(crate) fn tokens(self, tokens: &[&str]) -> Self {
        let tokens = tokens.iter().map(|token| SecretString::from((*token).to_owned())).collect();
        Self { tokens: Some(tokens), ..self }
    }

    /// Sets `ADMIN_PHONE` and `PHONE_WHITELIST`.
    pub(crate) fn people(self, admin: &str, members: &[&str]) -> Self {
        let phone = |text: &str| PhoneNumber::parse(text).unwrap();
        Self { admin: Some(phone(admin)), members: members.iter().map(|text| phone(text)).collect(), ..self }
    }

    pub(crate) async fn start(self) -> TestApp {
        let start: Timestamp = "2026-11-20T21:04:00Z".parse().unwrap();
        let clock = Clock::stopped_at(start);
        let (radarr, sonarr) = (FakeRadarr::with_clock(clock.clone()), FakeSonarr::with_clock(clock.clone()));
        let peers = SimulatedPeers::new(clock, radarr, sonarr, &self.public_url);
        let peers = if self.has_jellyfin { peers.with_jellyfin() } else { peers };
        let peers = match &self.tmdb {
            Some(catalog) => peers.with_tmdb(catalog.clone()),
            None => peers,
        };
        let peers = if self.has_seerr { peers.with_seerr() } else { peers };
        let world = World { setup: self, peers, folder: CheckedFolder::new() };
        let app = world.run().await;
        let this = TestApp { app: Some(app), world };
        this.register_user(ANN, Has::EveryRight).await;
        this
    }

    pub(super) fn scripted(&self) -> Option<&ScriptedModel> {
        match &self.responder {
            ResponderKind::Scripted(model) => Some(model),
            ResponderKind::Keyword | ResponderKind::Other(_) => None,
        }
    }
}

impl ResponderKind {
    pub(super) fn model(&self) -> Option<Arc<dyn Model>> {
        match self {
            Self::Keyword => None,
            Self::Scripted(model) => Some(model.clone()),
            Self::Other(model) => Some(model.clone()),
        }
    }
}
