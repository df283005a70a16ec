//! Execution of the decisions of `conversation`, one recorded step after another. After a crash, the same code
//! continues from the last record.

mod addition_retries;
mod admin_commands;
mod admission;
mod arr_events;
mod change_record;
pub(crate) mod clock_step;
mod code_guesses;
mod code_replies;
mod codes;
mod deletion;
mod expiry;
mod facts;
mod failed_work;
pub mod memory_indexing;
mod metadata_failure;
mod metadata_pause;
mod model_call;
mod model_step;
pub mod newcomers;
pub(crate) mod notification_fanout;
mod notifications;
pub mod operator_conversations;
pub mod operator_decisions;
mod progress;
mod recall;
mod reconcile;
mod removal_requests;
mod retry_outcomes;
mod scheduler;
mod season_check;
mod settings;
pub mod stream;
mod tool_calls;
mod tool_context;
mod tool_effects;
mod triage;
pub mod turn_control;
mod turn_end;
mod turn_loop;
mod turn_start;
mod verification;
mod write_recovery;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Notify, Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::clock::Clock;
use crate::conversation::stream_events::EventSeq;
use crate::conversation::transcript::ConversationId;
use crate::llm::Model;
use crate::llm::embeddings::Embedder;
use crate::memory::index::VectorIndex;
use crate::messaging::MessageChannel;
use crate::messaging::outbox_relay::OutboxSignal;
use crate::metrics::Metrics;
use crate::store::database::db::Db;
use crate::store::{Conn, QueryResult};
use crate::tools::library::ArrInstances;
use crate::tools::registry::ToolRegistry;

use metadata_pause::MetadataPause;
use stream::hub::Hub;
use stream::reader::StreamReader;

pub use admission::AdmitError;
pub use arr_events::StoreEventError;
pub use codes::CodeSource;
pub use settings::{HouseholdSettings, MetadataSource, PicturePolicy, Quotas, SmsReactions};

/// Maximum number of concurrent requests for vectors.
const EMBEDDINGS_AT_ONCE: usize = 2;

/// External dependencies of a turn.
pub struct EngineParts {
    pub db: Db,
    pub clock: Clock,
    pub settings: HouseholdSettings,
    /// `None` if none is configured: the keyword responder answers.
    pub model: Option<Arc<dyn Model>>,
    pub keyword: Arc<dyn Model>,
    /// `None` if none is configured: memory is searched by text alone.
    pub embedder: Option<Arc<dyn Embedder>>,
    pub tools: ToolRegistry,
    pub metrics: Metrics,
    /// Libraries in which the titles of arr events are looked up.
    pub library: Arc<ArrInstances>,
    pub outbox: OutboxSignal,
    /// Carrier whose record decides about ambiguous messages; `None` without an account.
    pub carrier: Option<Arc<dyn MessageChannel>>,
}

/// Handle to the running engine; clones share it.
#[derive(Clone)]
pub struct Engine(Arc<EngineInner>);

struct EngineInner {
    parts: EngineParts,
    model_permits: Semaphore,
    /// End of the time without model calls, because an operator has to act first.
    model_off_until: Mutex<Option<Timestamp>>,
    scheduler: scheduler::Scheduler,
    /// Notified when an arr event was stored.
    arr_event_stored: Notify,
    hub: Hub,
    tasks: TaskTracker,
    /// Notified when an addition may be queued for a later try.
    retries: Notify,
    /// Notified when a turn was answered and its answer may be indexed.
    turn_answered: Notify,
    /// Lock of the run that indexes answers.
    indexing_lock: tokio::sync::Mutex<()>,
    metadata_pause: MetadataPause,
    embedding_permits: Semaphore,
    /// Vectors of the answers that users may find.
    index: Arc<tokio::sync::Mutex<VectorIndex>>,
    /// Vector space of the last computed vector. Only vectors of one space are comparable.
    vector_space: Mutex<Option<String>>,
    /// Canceled when no new turn may begin.
    draining: CancellationToken,
    /// Canceled when turns may begin. Messages are accepted before that.
    accepting_turns: CancellationToken,
    /// Canceled when running work is dropped immediately.
    aborting: CancellationToken,
}

impl Engine {
    pub fn new(parts: EngineParts) -> Self {
        Self(Arc::new(EngineInner {
            model_permits: Semaphore::new(parts.settings.model_calls),
            hub: Hub::new(parts.db.clone()),
            parts,
            model_off_until: Mutex::new(None),
            scheduler: scheduler::Scheduler::default(),
            arr_event_stored: Notify::new(),
            tasks: TaskTracker::new(),
            retries: Notify::new(),
            turn_answered: Notify::new(),
            indexing_lock: tokio::sync::Mutex::new(()),
            metadata_pause: MetadataPause::default(),
            embedding_permits: Semaphore::new(EMBEDDINGS_AT_ONCE),
            index: Arc::default(),
            vector_space: Mutex::new(None),
            draining: CancellationToken::new(),
            accepting_turns: CancellationToken::new(),
            aborting: CancellationToken::new(),
        }))
    }

    /// Begins no new turn, and waits until the running turns end or `patience` has passed. Interrupted work continues
    /// from its last record at the next start.
    pub async fn drain(&self, patience: Duration) {
        let inner = &self.0;
        inner.draining.cancel();
        inner.tasks.close();
        if tokio::time::timeout(patience, inner.tasks.wait()).await.is_err() {
            inner.aborting.cancel();
            inner.tasks.wait().await;
        }
    }

    /// Drops running work immediately.
    pub async fn abort(&self) {
        self.0.draining.cancel();
        self.0.aborting.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
        self.0.hub.close().await;
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
