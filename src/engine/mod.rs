//! Execution of the decisions of `conversation`, one recorded step after another. After a crash, the same code
//! continues from the last record.

mod addition_retries;
pub mod approvals;
pub(crate) mod clock_step;
mod codes;
pub mod inbound;
mod lifecycle;
pub mod memory;
mod model_call;
pub mod notifications;
pub mod operator;
pub mod operator_conversations;
pub mod operator_decisions;
mod parts;
mod reply_address;
mod retry_outcomes;
mod routing;
mod settings;
pub mod stream;
pub mod turn_control;
mod turns;
mod work_signal;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::conversation::stream_events::EventSeq;
use crate::conversation::transcript::ConversationId;
use crate::store::{Conn, QueryResult};

use approvals::expiry::DueExpiry;
use inbound::admission::Admission;
use inbound::scheduler::TurnScheduler;
use lifecycle::EngineLifecycle;
use memory::indexer::MemoryIndexer;
use memory::recall::AnswerRecall;
use memory::text_embedder::TextEmbedder;
use model_call::ModelCaller;
use notifications::arr_event_intake::ArrEventIntake;
use notifications::notifier::Notifier;
use notifications::reconciler::Reconciler;
use notifications::season_checker::SeasonChecker;
use operator::answers::AnswerActions;
use routing::turn_start::TurnStarter;
use stream::hub::Hub;
use stream::reader::StreamReader;
use turns::log::turn_log::TurnLogs;
use turns::tool_runner::ToolRunner;
use turns::turn_runner::TurnRunner;
use work_signal::WorkSignal;

pub use codes::CodeSource;
pub use parts::EngineParts;
pub use settings::{HouseholdSettings, MetadataSource, PicturePolicy, Quotas, SmsReactions};

/// Handle to the running engine; clones share it.
#[derive(Clone)]
pub struct Engine(Arc<EngineComponents>);

/// Components of the engine.
pub struct EngineComponents {
    pub admission: Arc<Admission>,
    pub scheduler: TurnScheduler,
    pub indexer: Arc<MemoryIndexer>,
    pub recall: Arc<AnswerRecall>,
    pub answer_actions: AnswerActions,
    pub expiry: Arc<DueExpiry>,
    pub arr_events: ArrEventIntake,
    pub notifier: Arc<Notifier>,
    pub reconciler: Arc<Reconciler>,
    pub season_checker: Arc<SeasonChecker>,
    parts: EngineParts,
    models: Arc<ModelCaller>,
    tools: Arc<ToolRunner>,
    lifecycle: EngineLifecycle,
    hub: Hub,
    /// Signal that an arr event was stored.
    event_stored: WorkSignal,
    /// Signal that an addition may be queued for a later try.
    addition_queued: WorkSignal,
}

impl std::ops::Deref for Engine {
    type Target = EngineComponents;

    fn deref(&self) -> &EngineComponents {
        &self.0
    }
}

impl Engine {
    pub fn new(parts: EngineParts) -> Self {
        let (lifecycle, turn_answered) = (EngineLifecycle::default(), WorkSignal::default());
        let models = Arc::new(ModelCaller::new(&parts));
        let embedder = parts.embedder.clone().map(|embedder| Arc::new(TextEmbedder::new(embedder)));
        let indexer = MemoryIndexer::new(
            &parts,
            models.clone(),
            embedder.clone(),
            lifecycle.clone(),
            turn_answered.clone(),
        );
        let event_stored = WorkSignal::default();
        let addition_queued = WorkSignal::default();
        let recall = Arc::new(AnswerRecall::new(&parts, embedder));
        let tools = Arc::new(ToolRunner::new(&parts));
        let logs = TurnLogs::new(&parts, turn_answered.clone(), addition_queued.clone());
        let turns = TurnRunner::new(&parts, logs, &models, recall.clone(), &tools);
        let starter = TurnStarter::new(&parts, models.clone());
        let scheduler = TurnScheduler::new(&parts, lifecycle.clone(), starter, turns);
        let season_checker = Arc::new(SeasonChecker::new(&parts));
        Self(Arc::new(EngineComponents {
            indexer: Arc::new(indexer),
            admission: Arc::new(Admission::new(&parts, scheduler.clone())),
            scheduler,
            tools,
            recall,
            answer_actions: AnswerActions::new(&parts, turn_answered.clone()),
            expiry: Arc::new(DueExpiry::new(&parts)),
            arr_events: ArrEventIntake::new(&parts, event_stored.clone()),
            notifier: Arc::new(Notifier::new(&parts, event_stored.clone())),
            reconciler: Arc::new(Reconciler::new(&parts, event_stored.clone(), season_checker.clone())),
            season_checker,
            models,
            hub: Hub::new(parts.db.clone()),
            parts,
            lifecycle,
            event_stored,
            addition_queued,
        }))
    }

    /// Begins no new turn, and waits until the running turns end or `patience` has passed. Interrupted work continues
    /// from its last record at the next start.
    pub async fn drain(&self, patience: Duration) {
        self.0.lifecycle.drain(patience).await;
    }

    /// Drops running work immediately.
    pub async fn abort(&self) {
        self.0.lifecycle.abort().await;
        self.0.hub.close().await;
    }

    /// Starts the import of events that were not reported and the notifications about all events. Both run until no
    /// more turns begin.
    pub(crate) fn start_notifications(&self) {
        let (notifier, reconciler) = (self.notifier.clone(), self.reconciler.clone());
        let lifecycle = self.lifecycle.clone();
        self.lifecycle.spawn(async move {
            let work = async {
                lifecycle.wait_for_turns().await;
                tokio::join!(notifier.run(), reconciler.run());
            };
            tokio::select! {
                () = work => {}
                () = lifecycle.wait_for_drain() => {}
            }
        });
    }

    /// Follows the event log of a conversation: see [`stream::hub::Hub::connect`].
    pub fn follow_conversation<S>(
        &self,
        conversation: ConversationId,
        after: Option<EventSeq>,
        snapshot: impl Fn(&mut Conn) -> QueryResult<S> + Send + Sync + 'static,
    ) -> StreamReader<S> {
        self.0.hub.connect(conversation, after, snapshot)
    }

    fn now(&self) -> Timestamp {
        self.0.parts.clock.now()
    }
}
