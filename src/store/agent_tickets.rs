//! Outcomes of the calls of agents, by which an agent learns what its person has decided.

use diesel::prelude::*;
use jiff::Timestamp;

use super::agent_calls::DropReason;
use super::codec::{parse_call_failure, parse_call_result};
use super::confirmation::pending_action::CloseReason;
use super::people::users;
use super::queue::outbox::OutboxState;
use super::schema::{agent_calls, outbox, pending_actions, tool_calls, turns};
use super::{Conn, QueryResult};
use crate::conversation::stream_events::CallPhase;
use crate::conversation::transcript::{CallFailure, CallResult, CallRow, TurnId, User, UserId};

/// Progress of a call of an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum CallProgress {
    /// No turn has started it. The person has an open question, or other work for the person runs.
    Waiting,
    Dropped(DropReason),
    Running,
    /// The person is asked. The time is known once the question was sent.
    Asked {
        expires_at: Option<Timestamp>,
    },
    /// The question has expired or could not be sent, and is not closed yet.
    Unanswerable,
    /// The question was closed, and nothing was deleted.
    Closed(CloseReason),
    Done(CallResult),
    Failed(CallFailure),
    /// The turn was canceled before it changed anything.
    Canceled,
}

/// Call of an agent, as its ticket shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRecord {
    pub ticket: String,
    pub person: User,
    /// True if the person was asked about it.
    pub was_asked: bool,
    pub progress: CallProgress,
}

#[derive(Queryable)]
struct CallRecordRow {
    ticket: String,
    user: UserId,
    asked_at: Option<Timestamp>,
    dropped: Option<DropReason>,
    call: Option<CallRow>,
}

/// Loads a call by its id.
pub fn load_call(conn: &mut Conn, id: i64, now: Timestamp) -> QueryResult<Option<CallRecord>> {
    let row = agent_calls::table
        .find(id)
        .select((
            agent_calls::ticket,
            agent_calls::user_id,
            agent_calls::asked_at,
            agent_calls::dropped,
            agent_calls::tool_call_id,
        ))
        .first(conn)
        .optional()?;
    row.map(|row| into_record(conn, row, now)).transpose()
}

/// Loads the call that a key made for a person, by its ticket. A ticket of another key is not found.
pub fn find_call(
    conn: &mut Conn,
    (key, person): (i64, UserId),
    ticket: &str,
    now: Timestamp,
) -> QueryResult<Option<CallRecord>> {
    let id: Option<i64> = agent_calls::table
        .filter(agent_calls::ticket.eq(ticket))
        .filter(agent_calls::key_id.eq(key).and(agent_calls::user_id.eq(person)))
        .select(agent_calls::id)
        .first(conn)
        .optional()?;
    match id {
        Some(id) => load_call(conn, id, now),
        None => Ok(None),
    }
}

fn into_record(conn: &mut Conn, row: CallRecordRow, now: Timestamp) -> QueryResult<CallRecord> {
    let progress = match (row.dropped, row.call) {
        (Some(reason), _) => CallProgress::Dropped(reason),
        (None, None) => CallProgress::Waiting,
        (None, Some(call)) => load_progress(conn, call, now)?,
    };
    let person = users::load_user(conn, row.user)?;
    Ok(CallRecord { ticket: row.ticket, person, was_asked: row.asked_at.is_some(), progress })
}

fn load_progress(conn: &mut Conn, call: CallRow, now: Timestamp) -> QueryResult<CallProgress> {
    type ProgressRow = (CallPhase, Option<String>, Option<String>, TurnId, Option<TurnId>);
    let (state, response, error, turn, run_turn): ProgressRow = tool_calls::table
        .find(call)
        .select((
            tool_calls::state,
            tool_calls::response,
            tool_calls::error,
            tool_calls::turn_id,
            tool_calls::run_turn_id,
        ))
        .first(conn)?;
    Ok(match state {
        CallPhase::Created | CallPhase::Running | CallPhase::Unknown => {
            let finished_at: Option<Timestamp> =
                turns::table.find(run_turn.unwrap_or(turn)).select(turns::finished_at).first(conn)?;
            // A turn that could not continue has left the call behind.
            match finished_at {
                Some(_) => CallProgress::Failed(CallFailure::outcome_unknown()),
                None => CallProgress::Running,
            }
        }
        CallPhase::Held => {
            let question: Option<(Option<Timestamp>, OutboxState)> = pending_actions::table
                .inner_join(outbox::table.on(outbox::id.eq(pending_actions::prompt_outbox_id)))
                .filter(pending_actions::tool_call_id.eq(call))
                .select((pending_actions::expires_at, outbox::state))
                .first(conn)
                .optional()?;
            match question {
                Some((Some(at), _)) if at <= now => CallProgress::Unanswerable,
                Some((None, OutboxState::Failed | OutboxState::Suppressed)) => CallProgress::Unanswerable,
                question => {
                    CallProgress::Asked { expires_at: question.and_then(|(expires_at, _)| expires_at) }
                }
            }
        }
        CallPhase::Complete => {
            CallProgress::Done(parse_call_result(response.as_deref().unwrap_or_default())?)
        }
        CallPhase::Error => CallProgress::Failed(parse_call_failure(error.as_deref().unwrap_or_default())?),
        // The reason of a canceled call is a reason to close its question, or a text about its turn.
        CallPhase::Canceled => serde_json::from_str(error.as_deref().unwrap_or_default())
            .map_or(CallProgress::Canceled, CallProgress::Closed),
    })
}

/// Returns whether a call needs nothing more from us: it has ended, or the person is being asked.
pub fn is_settled(conn: &mut Conn, id: i64, now: Timestamp) -> QueryResult<bool> {
    let record = load_call(conn, id, now)?;
    Ok(record.is_none_or(|record| !matches!(record.progress, CallProgress::Waiting | CallProgress::Running)))
}
