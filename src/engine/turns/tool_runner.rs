//! Runs tools with their context, checks the outcome of interrupted runs, and sends a progress message when a change
//! takes long.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::tool_context::{RecordScope, ToolRecords};
use super::turn_context::TurnContext;
use crate::clock::Clock;
use crate::conversation::grammar::make_room_step::{MakeRoomStep, parse_make_room_step};
use crate::conversation::transcript::EffectLevel;
use crate::engine::parts::{ConfiguredParts, EngineParts, LiveParts};
use crate::engine::reply_address::ReplyAddress;
use crate::engine::settings::HouseholdSettings;
use crate::messaging::outbox_relay::OutboxSignal;
use crate::store::database::db::{Db, DbError};
use crate::store::turns::progress_message;
use crate::store::turns::turn_lifecycle::ActiveTurn;
use crate::store::{Conn, QueryResult};
use crate::telemetry;
use crate::tools::registry::ToolRegistry;
use crate::tools::{InterruptedRun, RecoveryOutcome, Tool, ToolContext};

const PROGRESS_MESSAGE: &str = "Still working on it.";
/// Minimum delay of a progress message for a change that starts late in its turn. Most changes take less time.
const MIN_PROGRESS_DELAY: Duration = Duration::from_secs(3);

/// Runner of tools, for turns and for queued additions.
pub(crate) struct ToolRunner {
    db: Db,
    clock: Clock,
    parts: Arc<ConfiguredParts>,
    live: LiveParts,
    outbox: OutboxSignal,
}

impl ToolRunner {
    /// Creates a runner of the tools in `parts`.
    pub(crate) fn new(engine: &EngineParts, parts: Arc<ConfiguredParts>) -> Self {
        let EngineParts { db, clock, outbox, live, .. } = engine.clone();
        Self { db, clock, parts, live, outbox }
    }

    /// Returns the newest settings, whose rules for codes and quotas also apply to running turns.
    pub(super) fn newest_settings(&self) -> Arc<HouseholdSettings> {
        self.live.settings()
    }

    /// Returns the newest parts, whose media servers are asked also by running turns.
    pub(super) fn newest_parts(&self) -> Arc<ConfiguredParts> {
        self.live.current()
    }

    pub(super) async fn read_records<T: Send + 'static>(
        &self,
        read: impl Fn(&mut Conn) -> QueryResult<T> + Send + 'static,
    ) -> Result<T, DbError> {
        self.db.read(read).await
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn registry(&self) -> &ToolRegistry {
        &self.parts.tools
    }

    /// Loads the context of a tool run.
    pub(crate) async fn load_context(
        &self,
        context: &TurnContext,
        scope: impl Into<RecordScope>,
    ) -> Result<ToolContext, DbError> {
        let records = self.db.read(self.records_query(context, scope.into())).await?;
        Ok(self.build_context(context, records))
    }

    /// Returns the query that loads the records for a tool.
    pub(super) fn records_query(
        &self,
        context: &TurnContext,
        scope: RecordScope,
    ) -> impl Fn(&mut Conn) -> QueryResult<ToolRecords> + Send + 'static {
        let (now, settings, user) = (self.clock.now(), self.newest_settings(), context.user.clone());
        let last_message = context.events.last().map(|event| (event.id, event.room));
        let requests_titles = scope.level == EffectLevel::Write && self.parts.library.requests.is_some();
        let mut texts = context.events.iter().map(|event| event.body.as_str());
        let reviews = texts.all(|text| parse_make_room_step(text) == Some(MakeRoomStep::Review));
        let ActiveTurn { room, agent, .. } = context.active_turn;
        // Without messages, nothing was asked for.
        let reviews = reviews && !context.events.is_empty();
        let scope = RecordScope { requests_titles, reviews, room, agent, ..scope };
        move |conn| ToolRecords::load_records(conn, &user, last_message, (scope, &settings), now)
    }

    pub(super) fn build_context(&self, context: &TurnContext, records: ToolRecords) -> ToolContext {
        records.into_context(context, &self.parts.settings, self.clock.now())
    }

    /// Checks the outcome of a run that started at `started_at` and has no response.
    pub(super) async fn check_outcome(
        &self,
        context: &TurnContext,
        tool: &Arc<dyn Tool>,
        run: InterruptedRun<'_>,
        (level, started_at): (EffectLevel, Option<Timestamp>),
    ) -> Result<RecoveryOutcome, DbError> {
        self.wait_for_grace_period(started_at).await;
        let tool_context = self.load_context(context, level).await?;
        Ok(recover_outcome(tool, run, &tool_context).await)
    }

    /// Waits for the end of the grace period in which a request sent at `started_at` may still arrive. Restarts of the
    /// program and a clock that was set back do not extend the wait.
    async fn wait_for_grace_period(&self, started_at: Option<Timestamp>) {
        let elapsed =
            started_at.map(|at| Duration::try_from(self.clock.now().duration_since(at)).unwrap_or_default());
        let grace = self.parts.settings.recovery_delays.grace;
        self.clock.sleep(grace.saturating_sub(elapsed.unwrap_or_default())).await;
    }

    /// Waits for a library change, or for the check of one, and sends the progress message if the turn takes long.
    pub(super) async fn run_with_progress<T>(
        &self,
        context: &TurnContext,
        change: impl Future<Output = T>,
    ) -> T {
        if context.agent.is_some() {
            // The agent waits for the result, and the person for nothing.
            return change.await;
        }
        let due = context.turn.progress_due_at().duration_since(self.clock.now());
        let wait = Duration::try_from(due).unwrap_or_default().max(MIN_PROGRESS_DELAY);
        tokio::pin!(change);
        tokio::select! {
            biased;
            () = tokio::time::sleep(wait) => {}
            output = &mut change => return output,
        }
        tokio::join!(change, self.send_progress(context)).0
    }

    /// Queues the progress message. If that fails, the change continues without it.
    async fn send_progress(&self, context: &TurnContext) {
        let (user, turn, now) = (context.user.clone(), context.active_turn.id, self.clock.now());
        let settings = self.parts.settings.clone();
        let queue = move |conn: &mut _| {
            let message = ReplyAddress::load_for_user(conn, &user, &settings.senders)?
                .notification_message("", PROGRESS_MESSAGE);
            progress_message::queue_progress_message(conn, turn, message, now)
        };
        match self.db.write(queue).await {
            Ok(()) => self.outbox.notify(),
            Err(error) => {
                tracing::warn!(%turn, error = telemetry::error_chain(&error), "failed to queue a progress message");
            }
        }
    }
}

/// Asks a tool for the outcome of an interrupted run, within the tool's timeout.
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
