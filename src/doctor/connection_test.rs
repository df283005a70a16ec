//! Tests of connections, started from the console.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{Notify, OnceCell, Semaphore};

use super::library::WebhookCheck;
use super::media_server::MediaConnection;
use super::operator::operator_finding;
use super::phone::PublicAddress;
use super::{
    Finding, LongRequest, alerts, clock, discovery, embeddings, library, media_server, model, own_phone,
    phone, telegram,
};
use crate::clock::Clock;
use crate::config::{self, Config, SettingGroup};
use crate::engine::ModelCaller;
use crate::http::{HttpClient, build_network_client};
use crate::llm::embeddings::Embedder;
use crate::messaging::ChannelPort;
use crate::messaging::alert_sender::AlertSender;
use crate::messaging::smsgate::SmsGate;
use crate::messaging::telegram::{Telegram, TelegramAccount};
use crate::messaging::twilio::Twilio;
use crate::setup::arr_instance::{ConfiguredInstance, library_instances};
use crate::setup::bot_name::BotName;
use crate::setup::connect::WebhookTarget;
use crate::store::queue::alerts::AlertTarget;
use crate::tools::library::ArrInstances;

/// Time limit of a test.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for which a page waits for the name of the bot.
const NAME_TIMEOUT: Duration = Duration::from_secs(3);

/// Connection to another service, or part of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionKind {
    /// Sonarr or Radarr instance, by its name such as `radarr-4k` and its label.
    Library(&'static str, &'static str),
    /// Media server or Tautulli, by its name such as `jellyfin` and its label.
    MediaServer(&'static str, &'static str),
    /// Source of titles, by its name such as `tmdb` and its label.
    Discovery(&'static str, &'static str),
    Model,
    Embeddings,
    /// Twilio account.
    Phone,
    /// Phone with SMS Gateway for Android.
    OwnPhone,
    /// Bot at Telegram.
    Telegram,
    /// Public address of the webhooks.
    Webhook,
    Database,
    Disk,
    Clock,
    /// Target of alerts, whose test sends a message.
    Alerts(AlertTarget),
}

impl ConnectionKind {
    /// Returns the name of the connection in URLs and forms.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Library(name, _) | Self::MediaServer(name, _) | Self::Discovery(name, _) => name,
            Self::Model => "model",
            Self::Embeddings => "embeddings",
            Self::Phone => "phone",
            Self::OwnPhone => "own-phone",
            Self::Telegram => "telegram",
            Self::Webhook => "webhook",
            Self::Database => "database",
            Self::Disk => "disk",
            Self::Clock => "clock",
            Self::Alerts(AlertTarget::Ntfy) => "alerts-ntfy",
            Self::Alerts(AlertTarget::Pushover) => "alerts-pushover",
            Self::Alerts(AlertTarget::Webhook) => "alerts-webhook",
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Library(_, label) | Self::MediaServer(_, label) | Self::Discovery(_, label) => label,
            Self::Model => "Model",
            Self::Embeddings => "Embeddings",
            Self::Phone => "Twilio",
            Self::OwnPhone => "Own phone",
            Self::Telegram => "Telegram",
            Self::Webhook => "Public address",
            Self::Database => "Database",
            Self::Disk => "Disk",
            Self::Clock => "Clock",
            Self::Alerts(AlertTarget::Ntfy) => "Alerts by ntfy",
            Self::Alerts(AlertTarget::Pushover) => "Alerts by Pushover",
            Self::Alerts(AlertTarget::Webhook) => "Alerts by webhook",
        }
    }

    /// Returns the group of the settings that a brief test of the connection covers.
    pub(crate) fn group(self) -> Option<SettingGroup> {
        match self {
            Self::Library(..) => Some(SettingGroup::Library),
            Self::MediaServer(..) => Some(SettingGroup::MediaServers),
            Self::Discovery(..) => Some(SettingGroup::Discovery),
            Self::Model | Self::Embeddings => Some(SettingGroup::Model),
            Self::Phone | Self::OwnPhone | Self::Telegram => Some(SettingGroup::Texting),
            Self::Alerts(_) => Some(SettingGroup::Notifications),
            Self::Webhook | Self::Clock | Self::Database | Self::Disk => None,
        }
    }
}

/// Extent of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TestExtent {
    Complete,
    /// Without the webhooks, which are set up after the connections, and without optional connections that are not
    /// configured.
    Brief,
}

/// Outcome of a request to test connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TestOutcome {
    Finished(Vec<Finding>),
    /// Another test is running.
    Busy,
}

/// Tester of all connections. Clones share the permit.
#[derive(Clone)]
pub struct ConnectionTester(Arc<Tester>);

struct Tester {
    parts: TestedParts,
    /// Permit for the one test that may run at a time.
    test_permit: Semaphore,
    bot_name: OnceCell<BotName>,
}

/// Connections that are tested.
pub(crate) struct TestedParts {
    pub(crate) library: ArrInstances,
    /// Configuration. `None` if Twilio, Sonarr and Radarr are simulated.
    pub(crate) config: Option<Arc<Config>>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    /// Minimum similarity of texts that match.
    pub(crate) floor: f32,
    /// Sender of alerts; `None` without a target.
    pub(crate) alerts: Option<AlertSender>,
    /// `None` without an account.
    pub(crate) carrier: Option<Arc<dyn ChannelPort>>,
    /// Client of the configured account, which remembers whether the account was usable in its last request.
    pub(crate) twilio: Option<Arc<Twilio>>,
    /// Client of the configured phone.
    pub(crate) smsgate: Option<Arc<SmsGate>>,
    /// Client of the configured bot.
    pub(crate) telegram: Option<Arc<Telegram>>,
    /// Caller of the models, which remembers whether their server worked.
    pub(crate) models: Arc<ModelCaller>,
    /// Signal that a test has ended, or that a server was changed.
    pub(crate) test_ended: Arc<Notify>,
    /// `None` without an account.
    pub(crate) public_address: Option<PublicAddress>,
}

impl TestedParts {
    pub(super) fn instances(&self) -> Vec<ConfiguredInstance> {
        library_instances(&self.library)
    }

    /// Returns the configured Twilio account and its client.
    pub(super) fn twilio_account(&self) -> Option<(&config::Twilio, &Twilio)> {
        Some((self.config.as_deref()?.twilio.as_ref()?, self.twilio.as_deref()?))
    }

    /// Returns the configured bot and its client.
    pub(super) fn telegram_bot(&self) -> Option<(&TelegramAccount, &Telegram)> {
        Some((&self.config.as_deref()?.telegram.as_ref()?.account, self.telegram.as_deref()?))
    }
}

impl ConnectionTester {
    pub(crate) fn new(parts: TestedParts) -> Self {
        Self(Arc::new(Tester { parts, test_permit: Semaphore::new(1), bot_name: OnceCell::new() }))
    }

    pub(super) fn parts(&self) -> &TestedParts {
        &self.0.parts
    }

    pub(crate) fn is_simulated(&self) -> bool {
        self.0.parts.config.is_none()
    }

    pub(crate) fn connections(&self) -> Vec<ConnectionKind> {
        let instances = self.0.parts.instances().into_iter();
        let libraries = instances.map(|instance| ConnectionKind::Library(instance.name, instance.label));
        let others = match &self.0.parts.config {
            Some(_) => vec![
                ConnectionKind::Model,
                ConnectionKind::Embeddings,
                ConnectionKind::Phone,
                ConnectionKind::Webhook,
                ConnectionKind::Clock,
            ],
            None => vec![ConnectionKind::Embeddings],
        };
        let targets = self.0.parts.alerts.iter().flat_map(AlertSender::targets).map(ConnectionKind::Alerts);
        let own_phone = self.0.parts.smsgate.iter().map(|_| ConnectionKind::OwnPhone);
        let bot = self.0.parts.telegram.iter().map(|_| ConnectionKind::Telegram);
        let media_servers = media_server::connections(&self.0.parts.library.media_servers);
        let media_servers = media_servers.map(MediaConnection::kind);
        let sources = self.0.parts.library.discovery.sources().iter().map(discovery::kind);
        libraries
            .chain(media_servers)
            .chain(sources)
            .chain(others)
            .chain(own_phone)
            .chain(bot)
            .chain(targets)
            .collect()
    }

    /// Tests the connections of a group of settings briefly and concurrently, with one finding for each. The group about
    /// people has a finding without a connection.
    pub(crate) async fn check_group(&self, group: SettingGroup) -> TestOutcome {
        let Ok(_permit) = self.0.test_permit.try_acquire() else { return TestOutcome::Busy };
        let connections = self.connections().into_iter();
        let tests =
            connections.filter(|connection| connection.group() == Some(group)).map(async |connection| {
                Finding::combine(self.find_problems_in_time(connection, TestExtent::Brief).await)
            });
        let mut findings: Vec<Finding> = join_all(tests).await.into_iter().flatten().collect();
        if let (SettingGroup::People, Some(config)) = (group, &self.0.parts.config) {
            findings.push(operator_finding(config, Clock::System.now()));
        }
        self.request_check();
        TestOutcome::Finished(findings)
    }

    /// Has all connections checked again soon, after a change at a server.
    pub(crate) fn request_check(&self) {
        self.0.parts.test_ended.notify_one();
    }

    /// Tests one connection. Returns `Busy` while another test is running, because a hanging test would block a queue.
    pub(crate) async fn check_connection(&self, connection: ConnectionKind) -> TestOutcome {
        let Ok(_permit) = self.0.test_permit.try_acquire() else { return TestOutcome::Busy };
        let findings = self.find_problems_in_time(connection, TestExtent::Complete).await;
        self.request_check();
        TestOutcome::Finished(findings)
    }

    async fn find_problems_in_time(&self, connection: ConnectionKind, extent: TestExtent) -> Vec<Finding> {
        let findings = tokio::time::timeout(TEST_TIMEOUT, self.find_problems(connection, extent)).await;
        findings.unwrap_or_else(|_| {
            let summary = format!("{}: no response within {} s", connection.label(), TEST_TIMEOUT.as_secs());
            vec![Finding::failure(summary, "check its URL, and that it is running")]
        })
    }

    async fn find_problems(&self, connection: ConnectionKind, extent: TestExtent) -> Vec<Finding> {
        let config = self.0.parts.config.as_deref();
        if let ConnectionKind::Library(name, _) = connection {
            let mut instances = self.0.parts.instances().into_iter();
            let Some(instance) = instances.find(|instance| instance.name == name) else {
                return Vec::new();
            };
            let webhook_check = match (config, extent) {
                (Some(config), TestExtent::Complete) => {
                    WebhookCheck::Compare(WebhookTarget::from_config(config, &instance))
                }
                (None, _) | (_, TestExtent::Brief) => WebhookCheck::Skip,
            };
            return library::check_instance(&instance, webhook_check).await;
        }
        let mut servers = media_server::connections(&self.0.parts.library.media_servers);
        if let Some(server) = servers.find(|server| server.kind() == connection) {
            return server.check().await;
        }
        let mut sources = self.0.parts.library.discovery.sources().iter();
        if let Some(source) = sources.find(|source| discovery::kind(source) == connection) {
            return discovery::check_source(source).await;
        }
        if connection == ConnectionKind::Embeddings {
            if self.0.parts.embedder.is_none() && extent == TestExtent::Brief {
                return Vec::new();
            }
            return embeddings::check_embeddings(self.0.parts.embedder.as_deref(), self.0.parts.floor).await;
        }
        if let (ConnectionKind::Alerts(target), Some(sender)) = (connection, &self.0.parts.alerts) {
            return vec![alerts::check_target(sender, target).await];
        }
        let Some(config) = config else { return Vec::new() };
        let network = match build_network_client() {
            Ok(network) => network,
            Err(error) => {
                return vec![Finding::failure(format!("network: {error}"), "install ca-certificates")];
            }
        };
        let http = HttpClient::over_network(network.clone());
        match (connection, extent) {
            (
                ConnectionKind::Library(..)
                | ConnectionKind::MediaServer(..)
                | ConnectionKind::Discovery(..)
                | ConnectionKind::Embeddings
                | ConnectionKind::Database
                | ConnectionKind::Disk
                | ConnectionKind::Alerts(_),
                _,
            ) => Vec::new(),
            (ConnectionKind::Model, _) => self.check_running_model(config, &network, extent).await,
            (ConnectionKind::Phone, _) => self.check_account(extent).await,
            (ConnectionKind::OwnPhone, _) => match &self.0.parts.smsgate {
                Some(phone) => own_phone::check_own_phone(phone).await,
                None => Vec::new(),
            },
            (ConnectionKind::Telegram, _) => self.check_bot(extent).await,
            (ConnectionKind::Webhook, _) => phone::check_own_webhook(config, &http).await,
            (ConnectionKind::Clock, _) => clock::check_clock(config, &http).await.into_iter().collect(),
        }
    }

    /// Tests the Twilio account, which is missed only if people cannot text in another way.
    async fn check_account(&self, extent: TestExtent) -> Vec<Finding> {
        let parts = &self.0.parts;
        match (parts.twilio_account(), extent) {
            (None, _) if parts.smsgate.is_some() || parts.telegram.is_some() => Vec::new(),
            (None, _) => vec![phone::no_account_finding()],
            (Some((account, client)), TestExtent::Complete) => phone::check_account(account, client).await,
            (Some((account, client)), TestExtent::Brief) => phone::check_number(account, client).await,
        }
    }

    async fn check_bot(&self, extent: TestExtent) -> Vec<Finding> {
        match (self.0.parts.telegram_bot(), extent) {
            (None, _) => Vec::new(),
            (Some((account, bot)), TestExtent::Complete) => telegram::check_bot(account, bot).await,
            (Some((account, bot)), TestExtent::Brief) => telegram::check_token(account, bot).await,
        }
    }

    /// Returns the name of the configured bot, which is fetched once. Returns `None` without a bot, or if Telegram does
    /// not respond.
    pub(crate) async fn bot_name(&self) -> Option<BotName> {
        let (_, bot) = self.0.parts.telegram_bot()?;
        let fetch = self.0.bot_name.get_or_try_init(async || {
            let state = tokio::time::timeout(NAME_TIMEOUT, bot.api().fetch_bot_state()).await;
            BotName::parse(&state.map_err(drop)?.map_err(drop)?.username).ok_or(())
        });
        fetch.await.ok().cloned()
    }

    /// Tests the model, and records the outcome as the state of its server.
    async fn check_running_model(
        &self,
        config: &Config,
        network: &reqwest::Client,
        extent: TestExtent,
    ) -> Vec<Finding> {
        let long_request = LongRequest::WithoutKey;
        let check = match extent {
            TestExtent::Complete => model::check_model(config, network, long_request).await,
            TestExtent::Brief => model::probe_model(config.llm.as_ref(), network, long_request).await,
        };
        if let Some(outcome) = check.outcome {
            self.0.parts.models.record_test(outcome);
        }
        check.findings
    }
}
