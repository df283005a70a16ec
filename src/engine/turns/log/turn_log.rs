//! Log of a running turn. Every record about a running turn is written through its log. The transaction of a record also
//! ends the turn, or returns its new state.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::conversation::transcript::{ConversationId, TurnId, UserId};
use crate::engine::parts::{ConfiguredParts, EngineParts, LiveParts};
use crate::engine::settings::HouseholdSettings;
use crate::engine::turns::turn_context::TurnContext;
use crate::engine::turns::turn_end;
use crate::engine::turns::turn_history::LoadedHistory;
use crate::engine::work_signal::WorkSignal;
use crate::failpoint;
use crate::messaging::outbox_relay::OutboxSignal;
use crate::store::database::db::{Db, DbError, Durability};
use crate::store::stream::event_log::HistoryVersion;
use crate::store::turns::budget_blocks::BudgetBlock;
use crate::store::turns::finished_turns::{self, TurnEnd};
use crate::store::turns::running_calls::{CostReservation, RunningCalls};
use crate::store::turns::turn_lifecycle::{self, ActiveTurn};
use crate::store::{Conn, QueryResult};

/// Shared dependencies of turn logs, with the signals of the workers that process their records.
pub(crate) struct TurnLogs {
    pub(super) db: Db,
    pub(super) clock: Clock,
    live: LiveParts,
    pub(super) outbox: OutboxSignal,
    pub(super) budget_block: BudgetBlock,
    pub(super) running_calls: RunningCalls,
    turn_answered: WorkSignal,
    pub(super) addition_queued: WorkSignal,
}

impl TurnLogs {
    pub(crate) fn new(parts: &EngineParts, turn_answered: WorkSignal, addition_queued: WorkSignal) -> Self {
        let EngineParts { db, clock, outbox, running_calls, live, .. } = parts.clone();
        let budget_block = BudgetBlock::new(db.log_syncs().clone(), db.boot_id());
        Self { db, clock, live, outbox, budget_block, running_calls, turn_answered, addition_queued }
    }

    /// Returns the newest settings, which also limit the running turns.
    pub(super) fn settings(&self) -> Arc<HouseholdSettings> {
        self.live.settings()
    }

    /// Returns whether these are the newest parts, on which new turns run.
    pub(crate) fn has_current_parts(&self, parts: &Arc<ConfiguredParts>) -> bool {
        Arc::ptr_eq(&self.live.current(), parts)
    }

    /// Returns the version of the history before the rows of a turn are loaded.
    pub(crate) fn history_version(&self) -> HistoryVersion {
        self.db.history_cache().version()
    }

    /// Opens the log of a turn. `loaded_at` is the version of the history before the rows of the turn were loaded, and
    /// `wakeup` wakes the task of the turn's user.
    pub(crate) fn open_log(
        self: &Arc<Self>,
        (user, active_turn): (UserId, ActiveTurn),
        loaded_at: HistoryVersion,
        wakeup: Arc<Notify>,
    ) -> TurnLog {
        TurnLog {
            logs: self.clone(),
            user,
            active_turn,
            wakeup,
            loaded_at,
            earlier_reports: Arc::default(),
            deferred: Mutex::default(),
            reservation: Mutex::default(),
        }
    }
}

/// Log of one running turn.
pub(crate) struct TurnLog {
    pub(super) logs: Arc<TurnLogs>,
    pub(super) user: UserId,
    pub(super) active_turn: ActiveTurn,
    /// Wake-up of the user's task, which every cancellation of the turn notifies.
    wakeup: Arc<Notify>,
    /// Version of the history before the rows of the turn were loaded.
    loaded_at: HistoryVersion,
    /// Reports of tools and code before this turn, newest first.
    earlier_reports: Arc<[String]>,
    /// Records that the next record of the turn stores too, oldest first.
    deferred: Mutex<Vec<DeferredRecord>>,
    /// Reserved cost of the model call under way.
    pub(super) reservation: Mutex<Option<CostReservation>>,
}

/// Record that is stored together with a later one. Nothing outside the turn has seen it.
type DeferredRecord = Arc<dyn Fn(&mut Conn) -> QueryResult<()> + Send + Sync>;

/// Progress of a turn after a step.
pub(crate) enum TurnProgress {
    /// The turn continues, and its state has to be loaded.
    Reload,
    /// The turn continues from this state.
    Loaded(Box<TurnContext>),
    Ended,
}

impl TurnLog {
    /// Loads the state and the history of the turn.
    pub(crate) async fn load_with_history(&self) -> Result<(TurnContext, LoadedHistory), DbError> {
        let (user, active_turn) = (self.user, self.active_turn);
        let load_history =
            self.logs.history_loader(self.conversation_owner(), Some(active_turn.conversation));
        let read = move |conn: &mut Conn| {
            let history = load_history(conn)?;
            Ok((TurnContext::load_turn(conn, user, active_turn)?, history))
        };
        self.read(read).await
    }

    pub(crate) async fn load_history(&self) -> Result<LoadedHistory, DbError> {
        let conversation = Some(self.active_turn.conversation);
        self.read(self.logs.history_loader(self.conversation_owner(), conversation)).await
    }

    fn conversation_owner(&self) -> UserId {
        self.active_turn.room.unwrap_or(self.user)
    }

    /// Adds the reports of earlier turns to all states that the log loads from now on.
    pub(crate) fn with_earlier_reports(self, earlier_reports: Arc<[String]>) -> Self {
        Self { earlier_reports, ..self }
    }

    pub(crate) async fn load_context(&self) -> Result<TurnContext, DbError> {
        let (user, active_turn) = (self.user, self.active_turn);
        let context = self.read(move |conn| TurnContext::load_turn(conn, user, active_turn)).await?;
        Ok(context.with_earlier_reports(&self.earlier_reports))
    }

    /// Records a result of the turn, and applies it to the state before it. In the same transaction, the turn ends if
    /// it has a reply. The claim of the reply's message syncs a record that is not synced here.
    pub(super) async fn record_and_continue(
        &self,
        context: &TurnContext,
        durability: Durability,
        record: impl Fn(&mut Conn, &mut TurnContext) -> QueryResult<()> + Send + Sync + 'static,
    ) -> anyhow::Result<TurnProgress> {
        let (logs, before, record) = (self.logs.clone(), Arc::new(context.clone()), Arc::new(record));
        let loaded_at = self.loaded_at;
        let write = {
            let (before, record) = (before.clone(), record.clone());
            move |conn: &mut Conn| {
                let mut context = (*before).clone();
                record(conn, &mut context)?;
                logs.end_or_continue(conn, context, loaded_at)
            }
        };
        let progress = match self.write_with(durability, write).await {
            Err(DbError::Query(error)) => {
                // What is known is recorded without the rest. The next load of the turn returns the error.
                tracing::warn!(turn = %self.active_turn.id, %error, "failed to continue a turn after a record");
                let write = move |conn: &mut Conn| record(conn, &mut (*before).clone());
                self.write_with(durability, write).await?;
                TurnProgress::Reload
            }
            progress => progress?,
        };
        if let TurnProgress::Ended = progress {
            self.signal_end();
        }
        Ok(progress)
    }

    /// Defers a record to the next one of the turn, or to the next read of it.
    pub(super) fn defer_record(&self, record: impl Fn(&mut Conn) -> QueryResult<()> + Send + Sync + 'static) {
        self.lock_deferred().push(Arc::new(record));
    }

    fn lock_deferred(&self) -> MutexGuard<'_, Vec<DeferredRecord>> {
        self.deferred.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the deferred records and `work` in one transaction. If it fails, the deferred records are lost with it.
    pub(super) async fn write_with<R: Send + 'static>(
        &self,
        durability: Durability,
        work: impl Fn(&mut Conn) -> QueryResult<R> + Send + 'static,
    ) -> Result<R, DbError> {
        let deferred = std::mem::take(&mut *self.lock_deferred());
        let write = move |conn: &mut Conn| {
            deferred.iter().try_for_each(|record| record(conn))?;
            work(conn)
        };
        self.logs.db.write_with(move |_| durability, write).await
    }

    pub(crate) async fn end_turn(&self, end: TurnEnd) -> anyhow::Result<TurnProgress> {
        let now = self.now();
        self.write(move |conn| finished_turns::finish_turn(conn, &end, now)).await?;
        self.signal_end();
        Ok(TurnProgress::Ended)
    }

    /// Wakes the workers that process the answer of the ended turn.
    pub(super) fn signal_end(&self) {
        failpoint::reached("turn.ended");
        self.logs.outbox.notify();
        self.logs.turn_answered.notify();
    }

    /// Waits until the user or the operator has canceled the turn.
    pub(crate) async fn wait_for_cancellation(&self) {
        let turn = self.active_turn.id;
        loop {
            self.wakeup.notified().await;
            // If the read fails, the turn continues, and its next record returns the error.
            let read = move |conn: &mut Conn| turn_lifecycle::is_cancel_requested(conn, turn);
            if self.logs.db.read(read).await.unwrap_or(false) {
                return;
            }
        }
    }

    pub(crate) fn turn(&self) -> TurnId {
        self.active_turn.id
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.logs.clock.now()
    }

    /// Runs `work` on a state that includes the deferred records.
    pub(super) async fn read<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Conn) -> QueryResult<R> + Send + 'static,
    ) -> Result<R, DbError> {
        if !self.lock_deferred().is_empty() {
            self.write_with(Durability::Unsynced, |_| Ok(())).await?;
        }
        self.logs.db.read(work).await
    }

    pub(super) async fn write<R: Send + 'static>(
        &self,
        work: impl Fn(&mut Conn) -> QueryResult<R> + Send + 'static,
    ) -> Result<R, DbError> {
        self.write_with(Durability::Synced, work).await
    }
}

impl TurnLogs {
    /// Returns a read of the history before the next turn of a conversation, or before a new conversation. It must be the
    /// first read of its transaction, or run without one.
    pub(crate) fn history_loader(
        &self,
        owner: UserId,
        conversation: Option<ConversationId>,
    ) -> impl FnOnce(&mut Conn) -> QueryResult<LoadedHistory> + Send + use<> {
        let (cache, now) = (self.db.history_cache().clone(), self.clock.now());
        let zoned = now.to_zoned(self.settings().zone.clone());
        let since = zoned.start_of_day().map_or(now, |midnight| midnight.timestamp());
        move |conn| LoadedHistory::load(conn, &cache, (owner, conversation), since)
    }

    fn end_or_continue(
        &self,
        conn: &mut Conn,
        mut context: TurnContext,
        loaded_at: HistoryVersion,
    ) -> QueryResult<TurnProgress> {
        context.refresh(conn)?;
        let (settings, now) = (self.settings(), self.clock.now());
        if context.agent.is_some() {
            return Ok(TurnProgress::Loaded(Box::new(context)));
        }
        let step = context.turn.next_step(now, &settings.limits);
        match turn_end::final_turn_end(&context, &step, settings.reactions) {
            Some(end) => {
                match context.transcript(loaded_at) {
                    Some(transcript) => {
                        finished_turns::finish_transcribed_turn(conn, &end, transcript, now)?;
                    }
                    None => finished_turns::finish_turn(conn, &end, now)?,
                }
                Ok(TurnProgress::Ended)
            }
            None => Ok(TurnProgress::Loaded(Box::new(context))),
        }
    }
}
