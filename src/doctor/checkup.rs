//! One connection at a time, tested when somebody asks.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::library::Reporting;
use super::{Finding, LongRequest, clock, embeddings, library, model, phone};
use crate::config::Config;
use crate::http::Http;
use crate::llm::embeddings::Embedder;
use crate::setup::arr_instance::{ArrInstance, library_instances};
use crate::setup::connect::Hook;
use crate::tools::library::Library;

/// Longest time that a test may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where work comes from or goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connection {
    /// By its name, such as `radarr-4k`.
    Library(&'static str, &'static str),
    Model,
    Embeddings,
    Phone,
    Webhook,
    Clock,
}

impl Connection {
    /// In addresses and forms.
    pub(crate) fn word(self) -> &'static str {
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

/// What came of the wish to test a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tested {
    Found(Vec<Finding>),
    /// Another test is under way.
    Busy,
}

/// What can be tested; clones share it.
#[derive(Clone)]
pub struct Checkup(Arc<Inner>);

struct Inner {
    instances: Vec<ArrInstance>,
    /// `None`: Twilio, Sonarr and Radarr are simulated.
    config: Option<Arc<Config>>,
    embedder: Option<Arc<dyn Embedder>>,
    /// From which likeness on two texts count as alike.
    floor: f32,
    place: Semaphore,
}

impl Checkup {
    pub fn new(
        config: Option<Arc<Config>>,
        library: &Library,
        embedder: Option<Arc<dyn Embedder>>,
        floor: f32,
    ) -> Self {
        let instances = library_instances(library);
        Self(Arc::new(Inner { instances, config, embedder, floor, place: Semaphore::new(1) }))
    }

    pub(crate) fn is_simulated(&self) -> bool {
        self.0.config.is_none()
    }

    pub(crate) fn connections(&self) -> Vec<Connection> {
        let libraries =
            self.0.instances.iter().map(|instance| Connection::Library(instance.name, instance.label));
        let others = match &self.0.config {
            Some(_) => vec![
                Connection::Model,
                Connection::Embeddings,
                Connection::Phone,
                Connection::Webhook,
                Connection::Clock,
            ],
            None => vec![Connection::Embeddings],
        };
        libraries.chain(others).collect()
    }

    /// Nobody is made to wait in line: a test that hangs would hold up all others.
    pub(crate) async fn test(&self, connection: Connection) -> Tested {
        let Ok(_place) = self.0.place.try_acquire() else { return Tested::Busy };
        let found = tokio::time::timeout(PATIENCE, self.look(connection)).await;
        Tested::Found(found.unwrap_or_else(|_| {
            let what = format!("{}: no answer within {} s", connection.label(), PATIENCE.as_secs());
            vec![Finding::failure(what, "check its address, and whether it runs")]
        }))
    }

    async fn look(&self, connection: Connection) -> Vec<Finding> {
        let config = self.0.config.as_deref();
        if let Connection::Library(name, _) = connection {
            let Some(instance) = self.0.instances.iter().find(|instance| instance.name == name) else {
                return Vec::new();
            };
            let reporting = config
                .map_or(Reporting::Simulated, |config| Reporting::To(Hook::from_config(config, instance)));
            return library::check(instance, reporting).await;
        }
        if connection == Connection::Embeddings {
            return embeddings::check(self.0.embedder.as_deref(), self.0.floor).await;
        }
        let Some(config) = config else { return Vec::new() };
        let http = match Http::network() {
            Ok(http) => http,
            Err(error) => {
                return vec![Finding::failure(format!("network: {error}"), "install ca-certificates")];
            }
        };
        match connection {
            Connection::Library(..) | Connection::Embeddings => Vec::new(),
            Connection::Model => {
                model::check(config.llm.as_ref(), config.limits.budget, LongRequest::WhereFree).await
            }
            Connection::Phone => phone::account(config, &http).await,
            Connection::Webhook => phone::webhook(config, &http).await,
            Connection::Clock => clock::check(config, &http).await.into_iter().collect(),
        }
    }
}
