//! Execution of the decisions of `conversation`, one recorded step after another. After a crash the same code continues
//! from the last record.

mod admission;
mod answering;
mod asking;
mod begin;
mod calling;
mod change_record;
pub(crate) mod clock_step;
mod code_guesses;
mod codes;
pub mod console;
mod deeds;
mod deleting;
mod ending;
mod facts;
mod failed_work;
mod household;
pub mod intervening;
pub mod joining;
pub mod learning;
mod model_call;
mod notes_pause;
mod notices;
pub mod operator;
mod progress;
mod recalling;
mod reconcile;
mod reports;
mod retries;
mod retry_outcomes;
mod run;
mod scheduler;
mod season_check;
mod settings;
pub mod stream;
pub(crate) mod telling;
mod triage;
mod upkeep;
mod verification;
mod wishes;
mod world;
mod write_recovery;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Notify, Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::clock::Clock;
use crate::conversation::stream::Seq;
use crate::conversation::transcript::ConversationId;
use crate::llm::Model;
use crate::llm::embeddings::Embedder;
use crate::memory::index::Index;
use crate::messaging::Channel;
use crate::messaging::outbox::Doorbell;
use crate::metrics::Metrics;
use crate::store::db::Db;
use crate::store::{Conn, QueryResult};
use crate::tools::library::Library;
use crate::tools::registry::Registry;

use notes_pause::NotesPause;
use stream::hub::Hub;
use stream::reader::Reader;

pub use admission::AdmitError;
pub use reports::ReportError;
pub use settings::{Codes, Pictures, Quotas, Settings, SmsReactions};

/// Maximum number of concurrent requests for vectors.
const EMBEDDINGS_AT_ONCE: usize = 2;

/// Everything a turn needs from outside.
pub struct Parts {
    pub db: Db,
    pub clock: Clock,
    pub settings: Settings,
    /// `None` if none is configured: the keyword responder answers.
    pub model: Option<Arc<dyn Model>>,
    pub keyword: Arc<dyn Model>,
    /// `None` if none is configured: memory is searched by text alone.
    pub embedder: Option<Arc<dyn Embedder>>,
    pub tools: Registry,
    pub metrics: Metrics,
    /// Libraries in which the titles of arr events are looked up.
    pub library: Arc<Library>,
    pub outbox: Doorbell,
    /// Carrier whose record decides about ambiguous messages; `None` without an account.
    pub carrier: Option<Arc<dyn Channel>>,
}

/// Handle to the running engine; clones share it.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    parts: Parts,
    model_places: Semaphore,
    /// Time until which the model is not called, because an operator has to act first.
    model_off_until: Mutex<Option<Timestamp>>,
    scheduler: scheduler::Scheduler,
    /// Rings when an arr event was stored.
    reported: Notify,
    hub: Hub,
    tasks: TaskTracker,
    /// Rings when an addition may be queued for a later try.
    retries: Notify,
    /// Rings when a turn was answered and its answer may be indexed.
    answered: Notify,
    /// Held by the run that works on answers.
    learning: tokio::sync::Mutex<()>,
    notes_pause: NotesPause,
    embedding_places: Semaphore,
    /// Vectors of the answers that users may find.
    index: Arc<tokio::sync::Mutex<Index>>,
    /// Vector space of the last computed vector, which decides its comparability.
    space: Mutex<Option<String>>,
    /// No new turn begins after this.
    draining: CancellationToken,
    /// Turns begin from here on; messages are accepted before.
    open: CancellationToken,
    /// Running work is dropped immediately.
    aborting: CancellationToken,
}

impl Engine {
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(Inner {
            model_places: Semaphore::new(parts.settings.model_calls),
            hub: Hub::new(parts.db.clone()),
            parts,
            model_off_until: Mutex::new(None),
            scheduler: scheduler::Scheduler::default(),
            reported: Notify::new(),
            tasks: TaskTracker::new(),
            retries: Notify::new(),
            answered: Notify::new(),
            learning: tokio::sync::Mutex::new(()),
            notes_pause: NotesPause::default(),
            embedding_places: Semaphore::new(EMBEDDINGS_AT_ONCE),
            index: Arc::default(),
            space: Mutex::new(None),
            draining: CancellationToken::new(),
            open: CancellationToken::new(),
            aborting: CancellationToken::new(),
        }))
    }

    /// Begins no new turn and lets running ones continue until they end or `patience` is over. Work that is cut off
    /// then continues from its last record at the next start.
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

    /// Follows a conversation: see [`stream::hub::Hub::connect`].
    pub fn connect<S>(
        &self,
        conversation: ConversationId,
        after: Option<Seq>,
        snapshot: impl Fn(&mut Conn) -> QueryResult<S> + Send + Sync + 'static,
    ) -> Reader<S> {
        self.0.hub.connect(conversation, after, snapshot)
    }

    fn now(&self) -> Timestamp {
        self.0.parts.clock.now()
    }
}
