//! Runs of tools: the context that a tool gets, the check of a lost outcome, and the progress message that is sent once
//! to a user when a change takes longer than usual.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::tool_context::ToolRecords;
use super::turn_context::TurnContext;
use crate::clock::Clock;
use crate::conversation::transcript::EffectLevel;
use crate::engine::parts::EngineParts;
use crate::engine::reply_address::ReplyAddress;
use crate::engine::settings::HouseholdSettings;
use crate::messaging::outbox_relay::OutboxSignal;
use crate::store::database::db::{Db, DbError};
use crate::store::turns::progress_message;
use crate::store::{Conn, QueryResult};
use crate::telemetry;
use crate::tools::registry::ToolRegistry;
use crate::tools::{InterruptedRun, RecoveryOutcome, Tool, ToolContext};

const STILL_WORKING: &str = "Still working on it.";
/// Minimum time before a progress message about a change that begins late in its turn. Most changes take less time.
const MIN_DELAY: Duration = Duration::from_secs(3);

/// Runner of tools, for turns and for queued additions.
pub(crate) struct ToolRunner {
    db: Db,
    clock: Clock,
    settings: Arc<HouseholdSettings>,
    registry: Arc<ToolRegistry>,
    outbox: OutboxSignal,
}

impl ToolRunner {
    pub(crate) fn new(parts: &EngineParts) -> Self {
        let EngineParts { db, clock, settings, outbox, .. } = parts.clone();
        Self { db, clock, settings, registry: parts.tools.clone(), outbox }
    }

    pub(crate) fn registry(&self) -> &ToolRegistry {
        &self.registry
    }

    /// Loads all data that a tool may read.
    pub(crate) async fn load_context(
        &self,
        context: &TurnContext,
        level: EffectLevel,
    ) -> Result<ToolContext, DbError> {
        let records = self.db.read(self.load_records(context, level)).await?;
        Ok(self.build_context(context, records))
    }

    /// Returns the query that loads our records for a tool.
    pub(super) fn load_records(
        &self,
        context: &TurnContext,
        level: EffectLevel,
    ) -> impl FnOnce(&mut Conn) -> QueryResult<ToolRecords> + Send + 'static {
        let (now, scope, user) = (self.clock.now(), (level, self.settings.quotas), context.user.clone());
        let last = context.events.last().map(|event| event.id);
        move |conn| ToolRecords::load_records(conn, &user, last, scope, now)
    }

    pub(super) fn build_context(&self, context: &TurnContext, records: ToolRecords) -> ToolContext {
        records.into_context(context, &self.settings, self.clock.now())
    }

    /// Checks the outcome of a run that began at `started_at` and has no response.
    pub(super) async fn check_outcome(
        &self,
        context: &TurnContext,
        tool: &Arc<dyn Tool>,
        run: InterruptedRun<'_>,
        (level, started_at): (EffectLevel, Option<Timestamp>),
    ) -> Result<RecoveryOutcome, DbError> {
        self.wait_for_request_arrival(started_at).await;
        let tool_context = self.load_context(context, level).await?;
        Ok(recover_outcome(tool, run, &tool_context).await)
    }

    /// Waits until a request that was sent at `started_at` has had time to arrive, regardless of program restarts
    /// since. A clock that was set back does not extend the wait.
    async fn wait_for_request_arrival(&self, started_at: Option<Timestamp>) {
        let since =
            started_at.map(|at| Duration::try_from(self.clock.now().duration_since(at)).unwrap_or_default());
        let grace = self.settings.recovery_delays.grace;
        self.clock.sleep(grace.saturating_sub(since.unwrap_or_default())).await;
    }

    /// Waits for a library change, or for the check of a change, and notifies the user once if the turn takes long.
    pub(super) async fn run_with_progress<T>(
        &self,
        context: &TurnContext,
        change: impl Future<Output = T>,
    ) -> T {
        let due = context.turn.progress_due_at().duration_since(self.clock.now());
        let wait = Duration::try_from(due).unwrap_or_default().max(MIN_DELAY);
        tokio::pin!(change);
        tokio::select! {
            biased;
            () = tokio::time::sleep(wait) => {}
            done = &mut change => return done,
        }
        tokio::join!(change, self.send_progress(context)).0
    }

    /// Queues the progress message. The message is optional: if it cannot be stored, the change continues.
    async fn send_progress(&self, context: &TurnContext) {
        let (user, turn, now) = (context.user.clone(), context.active_turn.id, self.clock.now());
        let settings = self.settings.clone();
        let queue = move |conn: &mut _| {
            let text = ReplyAddress::load_for_user(conn, &user, settings.number.as_ref())?
                .notification_message("", STILL_WORKING);
            progress_message::queue_progress_message(conn, turn, text, now)
        };
        match self.db.write(queue).await {
            Ok(()) => self.outbox.notify(),
            Err(error) => {
                tracing::warn!(%turn, error = telemetry::error_chain(&error), "failed to queue a progress message");
            }
        }
    }
}

/// Asks a tool for the outcome of a run, within the time limit of the tool.
pub(crate) async fn recover_outcome(
    tool: &Arc<dyn Tool>,
    run: InterruptedRun<'_>,
    tool_context: &ToolContext,
) -> RecoveryOutcome {
    match tokio::time::timeout(tool.timeout(), tool.recover_outcome(run, tool_context)).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) | Err(_) => RecoveryOutcome::Unknown,
    }
}
