//! External dependencies of the engine: permanent ones, and those that a change of the configuration replaces.

use std::sync::Arc;

use super::model_calls::caller::ModelCaller;
use super::model_calls::text_embedder::TextEmbedder;
use super::settings::HouseholdSettings;
use crate::clock::Clock;
use crate::live::Live;
use crate::llm::Model;
use crate::llm::embeddings::Embedder;
use crate::messaging::channel_ports::ChannelPorts;
use crate::messaging::outbox_relay::OutboxSignal;
use crate::metrics::Metrics;
use crate::store::database::db::Db;
use crate::store::turns::running_calls::RunningCalls;
use crate::tools::library::ArrInstances;
use crate::tools::registry::ToolRegistry;

/// External dependencies of the engine. Each component takes only the ones that it needs.
#[derive(Clone)]
pub(crate) struct EngineParts {
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
    pub(crate) outbox: OutboxSignal,
    pub(crate) running_calls: RunningCalls,
    pub(crate) live: LiveParts,
}

/// Newest parts that depend on the configuration. A turn takes them once, and ends on them.
pub(crate) type LiveParts = Live<ConfiguredParts>;

impl LiveParts {
    pub(crate) fn settings(&self) -> Arc<HouseholdSettings> {
        self.current().settings.clone()
    }
}

/// Parts of the engine that depend on the configuration, and are replaced together.
pub(crate) struct ConfiguredParts {
    pub(crate) settings: Arc<HouseholdSettings>,
    pub(crate) models: Arc<ModelCaller>,
    /// `None` if none is configured: recall uses full-text search only.
    pub(crate) embedder: Option<Arc<TextEmbedder>>,
    pub(crate) tools: Arc<ToolRegistry>,
    /// Libraries in which the titles of arr events are looked up.
    pub(crate) library: Arc<ArrInstances>,
    /// Channels, whose records verify ambiguous messages.
    pub(crate) channels: ChannelPorts,
}

/// Configuration of the engine, from which its parts are built.
pub(crate) struct EngineConfiguration {
    pub(crate) settings: HouseholdSettings,
    /// `None` if none is configured: the keyword responder answers.
    pub(crate) model: Option<Arc<dyn Model>>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    pub(crate) tools: Arc<ToolRegistry>,
    pub(crate) library: Arc<ArrInstances>,
    pub(crate) channels: ChannelPorts,
}

impl EngineConfiguration {
    /// Builds the parts. The callers of unchanged models are those of the `earlier` parts, with what they have learned
    /// about their servers.
    pub(crate) fn into_parts(
        self,
        earlier: Option<&ConfiguredParts>,
        clock: &Clock,
        metrics: &Metrics,
    ) -> ConfiguredParts {
        let Self { settings, model, embedder, tools, library, channels } = self;
        let limit = settings.max_model_calls;
        let models = earlier.map(|parts| &parts.models).filter(|models| models.calls(model.as_ref(), limit));
        let models = models
            .cloned()
            .unwrap_or_else(|| Arc::new(ModelCaller::new(model, limit, clock.clone(), metrics.clone())));
        let build_embedder = |embedder: Arc<dyn Embedder>| {
            let earlier = earlier.and_then(|parts| parts.embedder.as_ref());
            let unchanged = earlier.filter(|earlier| earlier.calls(&embedder)).cloned();
            unchanged.unwrap_or_else(|| Arc::new(TextEmbedder::new(embedder)))
        };
        let embedder = embedder.map(build_embedder);
        ConfiguredParts { settings: Arc::new(settings), models, embedder, tools, library, channels }
    }
}
