//! Engine: executes the decisions of `conversation` and records every step. After a crash, the same code continues from
//! the last record.

pub mod additions;
pub mod agents;
pub mod approvals;
pub(crate) mod clock_step;
mod codes;
pub mod digests;
pub mod gestures;
pub mod inbound;
mod lifecycle;
mod making_room;
pub mod memory;
mod model_calls;
pub mod moved_servers;
pub mod notifications;
pub mod operator;
mod parts;
mod reply_address;
mod routing;
mod seerr;
pub(crate) mod send_time;
pub(crate) mod service_moves;
mod settings;
pub mod stream;
mod turns;
pub mod votes;
mod work_signal;

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;

use crate::store::database::db::DbError;

use additions::addition_retrier::AdditionRetrier;
use agents::AgentCalls;
use approvals::expiry::DueExpiry;
use clock_step::ClockStepAdoption;
use digests::sender::DigestSender;
use gestures::recorder::GestureRecorder;
use inbound::admission::Admission;
use inbound::scheduler::TurnScheduler;
use lifecycle::EngineLifecycle;
use memory::indexer::MemoryIndexer;
use memory::recall::AnswerRecall;
use moved_servers::MovedServers;
use notifications::arr_event_intake::ArrEventIntake;
use notifications::notifier::Notifier;
use notifications::reconciler::{PeriodicCheckers, Reconciler};
use operator::answers::AnswerActions;
use operator::conversations::ConversationActions;
use operator::decisions::OperatorDecisions;
use operator::library::LibraryActions;
use operator::turns::TurnActions;
use routing::turn_start::TurnStarter;
use seerr::request_watcher::RequestWatcher;
use stream::hub::Hub;
use turns::log::turn_log::TurnLogs;
use turns::turn_runner::TurnRunners;
use votes::closing::VoteCloser;
use work_signal::WorkSignal;

pub use codes::CodeSource;
pub(crate) use model_calls::caller::{ModelCaller, ModelState, ToolSupport};
pub(crate) use parts::{EngineConfiguration, EngineParts};
pub use settings::{HouseholdSettings, MetadataSource, ModelSkipping, PicturePolicy, Quotas, SmsReactions};

/// Running engine: its components, each with only what it needs, and the operations that concern several of them.
pub struct Engine {
    pub admission: Arc<Admission>,
    pub arr_events: Arc<ArrEventIntake>,
    pub scheduler: TurnScheduler,
    pub agents: AgentCalls,
    pub additions: Arc<AdditionRetrier>,
    pub indexer: Arc<MemoryIndexer>,
    pub recall: Arc<AnswerRecall>,
    pub notifier: Arc<Notifier>,
    pub reconciler: Arc<Reconciler>,
    pub checkers: PeriodicCheckers,
    request_watcher: Arc<RequestWatcher>,
    pub expiry: Arc<DueExpiry>,
    pub gestures: Arc<GestureRecorder>,
    vote_closer: Arc<VoteCloser>,
    pub digests: Arc<DigestSender>,
    pub streams: Hub,
    pub decisions: OperatorDecisions,
    pub conversation_actions: ConversationActions,
    pub turn_actions: TurnActions,
    pub answer_actions: AnswerActions,
    pub library: LibraryActions,
    pub moved_servers: MovedServers,
    clock_steps: ClockStepAdoption,
    parts: EngineParts,
    lifecycle: EngineLifecycle,
}

impl Engine {
    pub(crate) fn new(parts: &EngineParts) -> Self {
        let lifecycle = EngineLifecycle::default();
        let (event_stored, addition_queued) = (WorkSignal::default(), WorkSignal::default());
        let (answer_stored, requests_changed) = (WorkSignal::default(), WorkSignal::default());
        let digest_changed = WorkSignal::default();
        let recall = Arc::new(AnswerRecall::new(parts));
        let logs = TurnLogs::new(parts, answer_stored.clone(), addition_queued.clone());
        let turns = TurnRunners::new(parts, logs, recall.clone());
        let starter = TurnStarter::new(parts, addition_queued.clone(), digest_changed.clone());
        let scheduler = TurnScheduler::new(parts, lifecycle.clone(), starter, turns);
        let admission = Arc::new(Admission::new(parts, scheduler.clone()));
        let additions = AdditionRetrier::new(parts, lifecycle.clone(), addition_queued);
        let indexer = MemoryIndexer::new(parts, lifecycle.clone(), answer_stored.clone());
        let checkers = PeriodicCheckers::new(parts);
        let reconciler = Reconciler::new(parts, event_stored.clone(), checkers.clone());
        Self {
            arr_events: Arc::new(ArrEventIntake::new(parts, event_stored.clone(), requests_changed.clone())),
            additions: Arc::new(additions),
            indexer: Arc::new(indexer),
            recall,
            notifier: Arc::new(Notifier::new(parts, event_stored)),
            reconciler: Arc::new(reconciler),
            checkers,
            request_watcher: Arc::new(RequestWatcher::new(parts, requests_changed)),
            expiry: Arc::new(DueExpiry::new(parts)),
            gestures: Arc::new(GestureRecorder::new(parts)),
            vote_closer: Arc::new(VoteCloser::new(parts)),
            digests: Arc::new(DigestSender::new(parts, digest_changed)),
            streams: Hub::new(parts.db.clone()),
            decisions: OperatorDecisions::new(parts, scheduler.clone()),
            conversation_actions: ConversationActions::new(parts, scheduler.clone(), admission.clone()),
            turn_actions: TurnActions::new(parts, scheduler.clone()),
            answer_actions: AnswerActions::new(parts, answer_stored),
            library: LibraryActions::new(parts),
            moved_servers: MovedServers::new(parts),
            agents: AgentCalls::new(parts, scheduler.clone()),
            admission,
            scheduler,
            clock_steps: ClockStepAdoption::new(parts),
            parts: parts.clone(),
            lifecycle,
        }
    }

    /// Returns the newest settings of the household.
    pub fn settings(&self) -> Arc<HouseholdSettings> {
        self.parts.live.settings()
    }

    /// Forgets what was read about the watching of people more than a day ago, and old lists of titles.
    pub fn drop_old_responses(&self) {
        let EngineParts { clock, live, .. } = &self.parts;
        let (now, current) = (clock.now(), live.current());
        current.library.media_servers.drop_old_watch_states(now);
        current.library.discovery.drop_old_responses(now);
    }

    /// Returns the caller of the configured models, which knows the state of their server.
    pub(crate) fn model_caller(&self) -> Arc<ModelCaller> {
        self.parts.live.current().models.clone()
    }

    /// Replaces the parts that depend on the configuration. Running turns end on the earlier ones.
    pub(crate) fn apply_configuration(&self, configuration: EngineConfiguration) {
        let EngineParts { clock, metrics, live, .. } = &self.parts;
        let earlier = live.current();
        live.replace(configuration.into_parts(Some(&earlier), clock, metrics));
        self.scheduler.drop_earlier_parts();
    }

    /// Lets the workers check their queues at once.
    pub(crate) fn wake_workers(&self) {
        self.parts.outbox.notify();
        self.additions.wake_worker();
        self.notifier.wake_worker();
        self.vote_closer.wake_worker();
        self.digests.wake_worker();
        self.request_watcher.wake_worker();
    }

    /// Starts no new turn, and waits until the running turns end or `timeout` has passed. Interrupted work continues
    /// from its last record at the next start.
    pub async fn drain(&self, timeout: Duration) {
        self.lifecycle.drain(timeout).await;
    }

    /// Drops running work immediately.
    pub async fn abort(&self) {
        self.lifecycle.abort().await;
        self.streams.close().await;
    }

    /// Starts the notifier, the reconciler, the vote closer, the sender of digests and the request watcher. They run until the engine drains.
    pub(crate) fn start_notifications(&self) {
        let (notifier, reconciler) = (self.notifier.clone(), self.reconciler.clone());
        let (vote_closer, request_watcher) = (self.vote_closer.clone(), self.request_watcher.clone());
        let digests = self.digests.clone();
        let lifecycle = self.lifecycle.clone();
        self.lifecycle.spawn(async move {
            let work = async {
                lifecycle.wait_for_turns().await;
                tokio::join!(
                    notifier.run(),
                    reconciler.run(),
                    vote_closer.run(),
                    request_watcher.run(),
                    digests.run()
                );
            };
            tokio::select! {
                () = work => {}
                () = lifecycle.wait_for_drain() => {}
            }
        });
    }

    /// Adopts a step of the wall clock, shifts all waits by the step, then wakes the workers. If the commit fails, the
    /// step stays pending.
    pub(crate) async fn adopt_clock_step(&self) -> Result<SignedDuration, DbError> {
        let step = self.clock_steps.adopt_step().await?;
        self.parts.live.current().models.apply_clock_step(step);
        self.indexer.apply_clock_step(step);
        self.wake_workers();
        if self.lifecycle.accepts_turns() {
            self.scheduler.recover_work().await?;
        }
        Ok(step)
    }
}
