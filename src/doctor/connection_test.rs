//! Test of one connection, started from the console.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::library::WebhookCheck;
use super::{Finding, LongRequest, clock, embeddings, library, model, phone};
use crate::config::Config;
use crate::http::{HttpClient, build_network_client};
use crate::llm::embeddings::Embedder;
use crate::setup::arr_instance::{ConfiguredInstance, library_instances};
use crate::setup::connect::WebhookTarget;
use crate::tools::library::ArrInstances;

/// Time limit of a test.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Connection to another service, or to the local clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionKind {
    /// Sonarr or Radarr instance, by its name such as `radarr-4k` and its label.
    Library(&'static str, &'static str),
    Model,
    Embeddings,
    Phone,
    Webhook,
    Clock,
}

impl ConnectionKind {
    /// Returns the name of the connection in URLs and forms.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Library(name, _) => name,
            Self::Model => "model",
            Self::Embeddings => "embeddings",
            Self::Phone => "phone",
            Self::Webhook => "webhook",
            Self::Clock => "clock",
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Library(_, label) => label,
            Self::Model => "Model",
            Self::Embeddings => "Embeddings",
            Self::Phone => "Twilio",
            Self::Webhook => "Webhook address",
            Self::Clock => "Clock",
        }
    }
}

/// Outcome of a request to test a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TestOutcome {
    Finished(Vec<Finding>),
    /// Another test is running.
    Busy,
}

/// Tester of all connections. Clones share the permit.
#[derive(Clone)]
pub struct ConnectionTester(Arc<TesterParts>);

struct TesterParts {
    instances: Vec<ConfiguredInstance>,
    /// Configuration. `None` if Twilio, Sonarr and Radarr are simulated.
    config: Option<Arc<Config>>,
    embedder: Option<Arc<dyn Embedder>>,
    /// Minimum similarity of texts that match.
    floor: f32,
    /// Permit for the one test that may run at a time.
    test_permit: Semaphore,
}

impl ConnectionTester {
    pub fn new(
        config: Option<Arc<Config>>,
        library: &ArrInstances,
        embedder: Option<Arc<dyn Embedder>>,
        floor: f32,
    ) -> Self {
        let instances = library_instances(library);
        Self(Arc::new(TesterParts { instances, config, embedder, floor, test_permit: Semaphore::new(1) }))
    }

    pub(crate) fn is_simulated(&self) -> bool {
        self.0.config.is_none()
    }

    pub(crate) fn connections(&self) -> Vec<ConnectionKind> {
        let libraries =
            self.0.instances.iter().map(|instance| ConnectionKind::Library(instance.name, instance.label));
        let others = match &self.0.config {
            Some(_) => vec![
                ConnectionKind::Model,
                ConnectionKind::Embeddings,
                ConnectionKind::Phone,
                ConnectionKind::Webhook,
                ConnectionKind::Clock,
            ],
            None => vec![ConnectionKind::Embeddings],
        };
        libraries.chain(others).collect()
    }

    /// Tests one connection. Returns `Busy` while another test is running, because a hanging test would block a queue.
    pub(crate) async fn check_connection(&self, connection: ConnectionKind) -> TestOutcome {
        let Ok(_permit) = self.0.test_permit.try_acquire() else { return TestOutcome::Busy };
        let findings = tokio::time::timeout(TEST_TIMEOUT, self.find_problems(connection)).await;
        TestOutcome::Finished(findings.unwrap_or_else(|_| {
            let summary = format!("{}: no response within {} s", connection.label(), TEST_TIMEOUT.as_secs());
            vec![Finding::failure(summary, "check its URL, and that it is running")]
        }))
    }

    async fn find_problems(&self, connection: ConnectionKind) -> Vec<Finding> {
        let config = self.0.config.as_deref();
        if let ConnectionKind::Library(name, _) = connection {
            let Some(instance) = self.0.instances.iter().find(|instance| instance.name == name) else {
                return Vec::new();
            };
            let webhook_check = config.map_or(WebhookCheck::Skip, |config| {
                WebhookCheck::Compare(WebhookTarget::from_config(config, instance))
            });
            return library::check_instance(instance, webhook_check).await;
        }
        if connection == ConnectionKind::Embeddings {
            return embeddings::check_embeddings(self.0.embedder.as_deref(), self.0.floor).await;
        }
        let Some(config) = config else { return Vec::new() };
        let network = match build_network_client() {
            Ok(network) => network,
            Err(error) => {
                return vec![Finding::failure(format!("network: {error}"), "install ca-certificates")];
            }
        };
        let http = HttpClient::over_network(network.clone());
        match connection {
            ConnectionKind::Library(..) | ConnectionKind::Embeddings => Vec::new(),
            ConnectionKind::Model => model::check_model(config, &network, LongRequest::WithoutKey).await,
            ConnectionKind::Phone => phone::check_account(config, &http).await,
            ConnectionKind::Webhook => phone::check_own_webhook(config, &http).await,
            ConnectionKind::Clock => clock::check_clock(config, &http).await.into_iter().collect(),
        }
    }
}
