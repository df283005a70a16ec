//! External dependencies of the engine.

use std::sync::Arc;

use super::settings::HouseholdSettings;
use crate::clock::Clock;
use crate::llm::Model;
use crate::llm::embeddings::Embedder;
use crate::messaging::MessageChannel;
use crate::messaging::outbox_relay::OutboxSignal;
use crate::metrics::Metrics;
use crate::store::database::db::Db;
use crate::tools::library::ArrInstances;
use crate::tools::registry::ToolRegistry;

/// External dependencies of the engine. Each component takes only the ones that it needs.
#[derive(Clone)]
pub struct EngineParts {
    pub db: Db,
    pub clock: Clock,
    pub settings: Arc<HouseholdSettings>,
    /// `None` if none is configured: the keyword responder answers.
    pub model: Option<Arc<dyn Model>>,
    pub keyword: Arc<dyn Model>,
    /// `None` if none is configured: recall uses full-text search only.
    pub embedder: Option<Arc<dyn Embedder>>,
    pub tools: Arc<ToolRegistry>,
    pub metrics: Metrics,
    /// Libraries in which the titles of arr events are looked up.
    pub library: Arc<ArrInstances>,
    pub outbox: OutboxSignal,
    /// Carrier, whose records verify ambiguous messages; `None` without an account.
    pub carrier: Option<Arc<dyn MessageChannel>>,
}
