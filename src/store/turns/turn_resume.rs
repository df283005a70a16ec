//! Resume of a failed turn from its log. Calls with a result keep it; only calls that never ran are executed.

use diesel::prelude::*;
use diesel::sql_types::{Nullable, Text};
use jiff::Timestamp;

use super::calls::{self, ChangedCall};
use crate::conversation::stream_events::{CallPhase, StreamEventKind, StreamTurnState};
use crate::conversation::transcript::{ConversationId, TurnId, UserId, UserRole, UserStatus};
use crate::conversation::turn::TURN_TIME;
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::conversation::conversations::record_activity;
use crate::store::conversation::record::steps::AttemptState;
use crate::store::people::{pauses, users};
use crate::store::queue::inbound_messages::{InboundOutcome, InboundState, PENDING};
use crate::store::schema::{conversations, inbound_events, llm_steps, tool_calls, turns};
use crate::store::stream::recording::record_event;

/// Outcome of resuming a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeOutcome {
    /// The turn is running again; the task of this user must be woken.
    Resumed(UserId),
    Blocked(ResumeBlocker),
    Unknown,
}

/// Reason why a turn cannot be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeBlocker {
    /// The turn is running, or finished without a failure.
    NotFailed,
    /// The conversation has a newer turn.
    NotNewest,
    ConversationEnded,
    /// Another turn of the user is running, or a message of the user waits for a turn.
    Busy,
    /// The user is not active, or has opted out.
    NotServed,
    /// Replies are paused, and the user is not an admin.
    Paused,
    /// A message of the turn is erased, so it cannot be answered.
    Erased,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = turns)]
struct EndedTurnRow {
    user_id: UserId,
    conversation_id: ConversationId,
    state: StreamTurnState,
    finished_at: Option<Timestamp>,
}

/// Resumes a failed turn at the step at which it failed, as a new run.
pub fn resume_turn(conn: &mut Conn, turn: TurnId, now: Timestamp) -> QueryResult<ResumeOutcome> {
    let row: Option<EndedTurnRow> =
        turns::table.find(turn).select(EndedTurnRow::as_select()).first(conn).optional()?;
    let Some(row) = row else { return Ok(ResumeOutcome::Unknown) };
    let (user, conversation) = (row.user_id, row.conversation_id);
    let has_failed = matches!(row.state, StreamTurnState::Failed | StreamTurnState::Error);
    if row.finished_at.is_none() || !has_failed {
        return Ok(ResumeOutcome::Blocked(ResumeBlocker::NotFailed));
    }
    if let Some(blocker) = find_resume_blocker(conn, turn, conversation, user)? {
        return Ok(ResumeOutcome::Blocked(blocker));
    }
    diesel::update(turns::table.find(turn))
        .set((
            turns::state.eq(StreamTurnState::Created),
            turns::runs.eq(turns::runs + 1),
            turns::attempts.eq(0),
            turns::work_failures.eq(0),
            turns::deadline_at.eq(ms(now + TURN_TIME)),
            turns::cancel_requested_at.eq(None::<Timestamp>),
            turns::response_text.eq(None::<String>),
            turns::finished_at.eq(None::<Timestamp>),
            turns::updated_at.eq(ms(now)),
        ))
        .execute(conn)?;
    record_event(conn, turn, now, StreamEventKind::Turn(StreamTurnState::Created))?;
    diesel::update(inbound_events::table.filter(inbound_events::turn_id.eq(turn)))
        .set((
            inbound_events::state.eq(InboundState::Processing),
            inbound_events::outcome.eq(None::<InboundOutcome>),
            inbound_events::outcome_reason.eq(None::<String>),
            inbound_events::updated_at.eq(ms(now)),
        ))
        .execute(conn)?;
    forgive_failures(conn, turn)?;
    reopen_calls(conn, turn, now)?;
    record_activity(conn, conversation, now)?;
    Ok(ResumeOutcome::Resumed(user))
}

fn find_resume_blocker(
    conn: &mut Conn,
    turn: TurnId,
    conversation: ConversationId,
    user: UserId,
) -> QueryResult<Option<ResumeBlocker>> {
    let ended_at: Option<Timestamp> =
        conversations::table.find(conversation).select(conversations::ended_at).first(conn)?;
    if ended_at.is_some() {
        return Ok(Some(ResumeBlocker::ConversationEnded));
    }
    let newest_turn: TurnId = turns::table
        .filter(turns::conversation_id.eq(conversation))
        .order(turns::id.desc())
        .select(turns::id)
        .first(conn)?;
    let waiting_message: Option<i64> = inbound_events::table
        .filter(inbound_events::user_id.eq(user).and(PENDING))
        .select(inbound_events::id)
        .first(conn)
        .optional()?;
    if waiting_message.is_some() || super::turn_lifecycle::load_active_turn(conn, user)?.is_some() {
        return Ok(Some(ResumeBlocker::Busy));
    }
    if newest_turn != turn {
        return Ok(Some(ResumeBlocker::NotNewest));
    }
    let user = users::load_user(conn, user)?;
    if user.status != UserStatus::Active || user.opted_out {
        return Ok(Some(ResumeBlocker::NotServed));
    }
    if user.rights.role != UserRole::Admin && pauses::load_current_pause(conn)?.is_some() {
        return Ok(Some(ResumeBlocker::Paused));
    }
    // Messages without text and pictures are not stored, so such a message was erased.
    let erased_message: Option<i64> = inbound_events::table
        .filter(inbound_events::turn_id.eq(turn))
        .filter(inbound_events::body.eq("").and(inbound_events::media.is_null()))
        .select(inbound_events::id)
        .first(conn)
        .optional()?;
    Ok(erased_message.map(|_| ResumeBlocker::Erased))
}

/// Marks the failed attempts as forgiven: they keep their numbers and error messages, but no longer count against any
/// limit.
fn forgive_failures(conn: &mut Conn, turn: TurnId) -> QueryResult<()> {
    let forgiven = diesel::dsl::sql::<Nullable<Text>>("json_set(llm_steps.error, '$.kind', 'forgiven')");
    let failed = llm_steps::turn_id.eq(turn).and(llm_steps::state.eq(AttemptState::Abandoned));
    diesel::update(llm_steps::table.filter(failed)).set(llm_steps::error.eq(forgiven)).execute(conn).map(drop)
}

/// Reopens those calls of the last response that were rejected because the turn's time limit had passed, or that were
/// never reached. Their results are removed, which is possible because the model has not received them.
fn reopen_calls(conn: &mut Conn, turn: TurnId, now: Timestamp) -> QueryResult<()> {
    let last_step: Option<i64> = tool_calls::table
        .filter(tool_calls::turn_id.eq(turn))
        .select(diesel::dsl::max(tool_calls::step))
        .first(conn)?;
    let last_complete_step: Option<i64> = llm_steps::table
        .filter(llm_steps::turn_id.eq(turn).and(llm_steps::state.eq(AttemptState::Complete)))
        .select(diesel::dsl::max(llm_steps::step))
        .first(conn)?;
    let Some(step) = last_step.filter(|_| last_step == last_complete_step) else { return Ok(()) };
    let never_ran = tool_calls::attempts.eq(0).and(tool_calls::started_at.is_null());
    let is_rejected = diesel::dsl::sql::<diesel::sql_types::Bool>(
        "(tool_calls.state = 'canceled' AND tool_calls.error = '\"not_run\"' \
          OR tool_calls.state = 'error' AND tool_calls.error ->> '$.code' = 'limit')",
    );
    let is_in_step = tool_calls::turn_id.eq(turn).and(tool_calls::step.eq(step));
    let reopened = diesel::update(tool_calls::table.filter(is_in_step.and(never_ran)).filter(is_rejected))
        .set((
            tool_calls::state.eq(CallPhase::Created),
            tool_calls::error.eq(None::<String>),
            tool_calls::finished_at.eq(None::<Timestamp>),
            tool_calls::updated_at.eq(ms(now)),
        ))
        .returning(ChangedCall::as_returning())
        .get_results(conn)?;
    calls::record_changed_calls(conn, reopened, now)
}
