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
mod lifecycle;
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
mod parts;
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
mod work_signal;
mod write_recovery;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Semaphore;

use crate::conversation::stream_events::EventSeq;
use crate::conversation::transcript::ConversationId;
use crate::memory::index::VectorIndex;
use crate::store::{Conn, QueryResult};

use lifecycle::EngineLifecycle;
use metadata_pause::MetadataPause;
use model_call::ModelCaller;
use stream::hub::Hub;
use stream::reader::StreamReader;
use work_signal::WorkSignal;

pub use admission::AdmitError;
pub use arr_events::StoreEventError;
pub use codes::CodeSource;
pub use parts::EngineParts;
pub use settings::{HouseholdSettings, MetadataSource, PicturePolicy, Quotas, SmsReactions};

/// Maximum number of concurrent requests for vectors.
const EMBEDDINGS_AT_ONCE: usize = 2;

/// Handle to the running engine; clones share it.
#[derive(Clone)]
pub struct Engine(Arc<EngineInner>);

struct EngineInner {
    parts: EngineParts,
    models: ModelCaller,
    scheduler: scheduler::Scheduler,
    lifecycle: EngineLifecycle,
    hub: Hub,
    /// Signal that an arr event was stored.
    arr_event_stored: WorkSignal,
    /// Signal that an addition may be queued for a later try.
    addition_queued: WorkSignal,
    /// Signal that a turn was answered and its answer may be indexed.
    turn_answered: WorkSignal,
    /// Lock of the run that indexes answers.
    indexing_lock: tokio::sync::Mutex<()>,
    metadata_pause: MetadataPause,
    embedding_permits: Semaphore,
    /// Vectors of the answers that users may find.
    index: Arc<tokio::sync::Mutex<VectorIndex>>,
    /// Vector space of the last computed vector. Only vectors of one space are comparable.
    vector_space: Mutex<Option<String>>,
}

impl Engine {
    pub fn new(parts: EngineParts) -> Self {
        Self(Arc::new(EngineInner {
            models: ModelCaller::new(&parts),
            hub: Hub::new(parts.db.clone()),
            parts,
            scheduler: scheduler::Scheduler::default(),
            lifecycle: EngineLifecycle::default(),
            arr_event_stored: WorkSignal::default(),
            addition_queued: WorkSignal::default(),
            turn_answered: WorkSignal::default(),
            indexing_lock: tokio::sync::Mutex::new(()),
            metadata_pause: MetadataPause::default(),
            embedding_permits: Semaphore::new(EMBEDDINGS_AT_ONCE),
            index: Arc::default(),
            vector_space: Mutex::new(None),
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
