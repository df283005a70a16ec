//! Reader of the log after a cursor, for clients that follow a conversation.

use diesel::prelude::*;
use diesel::sql_types::BigInt;

use crate::conversation::stream::{
    Arrival, Block, CallPhase, Change, Delivery, Event, QuestionState, ReactionState, Seq, TurnState, What,
};
use crate::conversation::transcript::{CallRow, ConversationId, EventId, OutboxId, TurnId};
use crate::store::Conn;
use crate::store::codec::{number, part, time, unreadable};
use crate::store::schema::{conversations, stream_events};

/// Result of reading after a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Since {
    /// The cursor is invalid: an event after it was deleted, or it never existed.
    Gone,
    /// The next events of the conversation, in order. All events up to `up_to` are included; those up to `floor` have
    /// been deleted.
    Events { events: Vec<Event>, up_to: Seq, floor: Seq },
}

/// Returns the last event ever logged, in any conversation.
pub fn last(conn: &mut Conn) -> QueryResult<Seq> {
    #[derive(QueryableByName)]
    struct Last {
        #[diesel(sql_type = BigInt)]
        seq: i64,
    }
    // Not read from the highest row, because the newest event may be deleted.
    let last = diesel::sql_query("SELECT seq FROM sqlite_sequence WHERE name = 'stream_events'");
    Ok(Seq(last.get_result::<Last>(conn).optional()?.map_or(0, |last| last.seq)))
}

/// Loads the next events after `after`, at most `limit`.
pub fn since(conn: &mut Conn, conversation: ConversationId, after: Seq, limit: usize) -> QueryResult<Since> {
    let floor: i64 =
        conversations::table.find(conversation.0).select(conversations::stream_floor).first(conn)?;
    let last = last(conn)?;
    if after.0 < floor || after > last {
        return Ok(Since::Gone);
    }
    let events = rows(conn, conversation, after, limit)?;
    let up_to = match events.last() {
        Some(event) if events.len() >= limit => event.seq,
        Some(_) | None => last,
    };
    Ok(Since::Events { events, up_to, floor: Seq(floor) })
}

fn rows(conn: &mut Conn, conversation: ConversationId, after: Seq, limit: usize) -> QueryResult<Vec<Event>> {
    stream_events::table
        .filter(stream_events::conversation_id.eq(conversation.0).and(stream_events::seq.gt(after.0)))
        .order(stream_events::seq)
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .select(Row::as_select())
        .load(conn)?
        .into_iter()
        .map(Row::read)
        .collect()
}

/// Loads the conversations of the events after `after`, one entry for each event.
pub(in crate::store) fn changed_since(
    conn: &mut Conn,
    after: Seq,
) -> QueryResult<Vec<(Seq, ConversationId)>> {
    let rows: Vec<(i64, i64)> = stream_events::table
        .filter(stream_events::seq.gt(after.0))
        .order(stream_events::seq)
        .select((stream_events::seq, stream_events::conversation_id))
        .load(conn)?;
    Ok(rows.into_iter().map(|(seq, conversation)| (Seq(seq), ConversationId(conversation))).collect())
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = stream_events)]
struct Row {
    seq: i64,
    turn_id: Option<i64>,
    kind: String,
    subject_id: Option<i64>,
    state: Option<String>,
    step: Option<i64>,
    attempt: Option<i64>,
    block_type: Option<String>,
    ord: Option<i64>,
    delta: Option<String>,
    created_at: i64,
}

impl Row {
    fn read(self) -> QueryResult<Event> {
        Ok(Event {
            seq: Seq(self.seq),
            at: time(self.created_at)?,
            turn: self.turn_id.map(TurnId),
            what: self.what()?,
        })
    }

    fn what(self) -> QueryResult<What> {
        Ok(match self.kind.as_str() {
            "turn" => What::Turn(turn_state(self.state()?)?),
            "block_start" => What::BlockStart(self.block()?),
            "block_delta" => What::BlockDelta(self.block()?, known(self.delta)?),
            "block_end" => What::BlockEnd(self.block()?),
            "step_abandoned" => What::StepAbandoned {
                step: number(known(self.step)?)?,
                attempt: number(known(self.attempt)?)?,
            },
            "tool_call" => What::ToolCall(CallRow(self.subject()?), call_phase(self.state()?)?),
            "text_in" => What::TextIn(EventId(self.subject()?), arrival(self.state()?)?),
            "text_out" => What::TextOut(OutboxId(self.subject()?), delivery(self.state()?)?),
            "question" => What::Question(self.subject()?, question_state(self.state()?)?),
            "reaction" => What::Reaction(self.subject()?, reaction_state(self.state()?)?),
            "conversation" => What::Conversation(change(self.state()?)?),
            _ => return Err(unreadable("kind of an event")),
        })
    }

    fn block(&self) -> QueryResult<Block> {
        Ok(Block {
            step: number(known(self.step)?)?,
            attempt: number(known(self.attempt)?)?,
            part: part(known(self.block_type.as_deref())?)?,
            ord: number(known(self.ord)?)?,
        })
    }

    fn state(&self) -> QueryResult<&str> {
        known(self.state.as_deref())
    }

    fn subject(&self) -> QueryResult<i64> {
        known(self.subject_id)
    }
}

fn known<T>(column: Option<T>) -> QueryResult<T> {
    column.ok_or_else(|| unreadable("event"))
}

pub(in crate::store) fn turn_state(word: &str) -> QueryResult<TurnState> {
    Ok(match word {
        "CREATED" => TurnState::Created,
        "IN_PROGRESS" => TurnState::InProgress,
        "WAITING_FOR_TOOLS" => TurnState::WaitingForTools,
        "FAILED" => TurnState::Failed,
        "ERROR" => TurnState::Error,
        "COMPLETED" => TurnState::Completed,
        "CANCELED" => TurnState::Canceled,
        _ => return Err(unreadable("turn state")),
    })
}

pub(in crate::store) fn call_phase(word: &str) -> QueryResult<CallPhase> {
    Ok(match word {
        "created" => CallPhase::Created,
        "held" => CallPhase::Held,
        "running" => CallPhase::Running,
        "unknown" => CallPhase::Unknown,
        "complete" => CallPhase::Complete,
        "error" => CallPhase::Error,
        "canceled" => CallPhase::Canceled,
        _ => return Err(unreadable("call state")),
    })
}

pub(in crate::store) fn delivery(word: &str) -> QueryResult<Delivery> {
    Ok(match word {
        "queued" => Delivery::Queued,
        "attempting" => Delivery::Attempting,
        "unknown" => Delivery::Unknown,
        "accepted" => Delivery::Accepted,
        "scheduled" => Delivery::Scheduled,
        "sending" => Delivery::Sending,
        "sent" => Delivery::Sent,
        "delivered" => Delivery::Delivered,
        "read" => Delivery::Read,
        "undelivered" => Delivery::Undelivered,
        "failed" => Delivery::Failed,
        "canceled" => Delivery::Canceled,
        "suppressed" => Delivery::Suppressed,
        _ => return Err(unreadable("delivery")),
    })
}

fn arrival(word: &str) -> QueryResult<Arrival> {
    Ok(match word {
        "waiting" => Arrival::Waiting,
        "received" => Arrival::Taken,
        "skipped" => Arrival::PutAside,
        _ => return Err(unreadable("arrival")),
    })
}

fn question_state(word: &str) -> QueryResult<QuestionState> {
    Ok(match word {
        "asked" => QuestionState::Asked,
        "open" => QuestionState::Open,
        "closed" => QuestionState::Closed,
        _ => return Err(unreadable("question state")),
    })
}

fn reaction_state(word: &str) -> QueryResult<ReactionState> {
    Ok(match word {
        "given" => ReactionState::Given,
        "removed" => ReactionState::Removed,
        _ => return Err(unreadable("reaction state")),
    })
}

fn change(word: &str) -> QueryResult<Change> {
    Ok(match word {
        "begun" => Change::Begun,
        "ended" => Change::Ended,
        "reopened" => Change::Reopened,
        _ => return Err(unreadable("change of a conversation")),
    })
}
