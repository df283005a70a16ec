//! Reader of the log after a cursor, for clients that follow a conversation.

use diesel::prelude::*;
use diesel::sql_types::BigInt;

use crate::conversation::stream_events::{
    ConversationChange, EventSeq, InboundStatus, PromptState, ReactionState, StreamBlock, StreamEvent,
    StreamEventKind,
};
use crate::conversation::transcript::{CallRow, ConversationId, EventId, OutboxId, TurnId};
use crate::store::Conn;
use crate::store::codec::{convert_integer, part, timestamp_from_ms, unreadable_column};
use crate::store::conversation::record::columns::{call_phase, delivery, turn_state};
use crate::store::schema::{conversations, stream_events};

/// Result of reading after a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventsSince {
    /// The cursor is invalid: an event after it was deleted, or it never existed.
    Pruned,
    /// The next events of the conversation, in order. All events up to `up_to` are included; those up to `floor` have
    /// been deleted.
    Events { events: Vec<StreamEvent>, up_to: EventSeq, floor: EventSeq },
}

/// Returns the last event ever logged, in any conversation.
pub fn load_last_seq(conn: &mut Conn) -> QueryResult<EventSeq> {
    #[derive(QueryableByName)]
    struct LastSeqRow {
        #[diesel(sql_type = BigInt)]
        seq: i64,
    }
    // The highest row does not give this number, because the newest event may be deleted.
    let last = diesel::sql_query("SELECT seq FROM sqlite_sequence WHERE name = 'stream_events'");
    Ok(EventSeq(last.get_result::<LastSeqRow>(conn).optional()?.map_or(0, |last| last.seq)))
}

/// Loads the next events after `after`, at most `limit`.
pub fn load_events_since(
    conn: &mut Conn,
    conversation: ConversationId,
    after: EventSeq,
    limit: usize,
) -> QueryResult<EventsSince> {
    let floor: i64 =
        conversations::table.find(conversation.0).select(conversations::stream_floor).first(conn)?;
    let last = load_last_seq(conn)?;
    if after.0 < floor || after > last {
        return Ok(EventsSince::Pruned);
    }
    let events = load_event_rows(conn, conversation, after, limit)?;
    let up_to = match events.last() {
        Some(event) if events.len() >= limit => event.seq,
        Some(_) | None => last,
    };
    Ok(EventsSince::Events { events, up_to, floor: EventSeq(floor) })
}

fn load_event_rows(
    conn: &mut Conn,
    conversation: ConversationId,
    after: EventSeq,
    limit: usize,
) -> QueryResult<Vec<StreamEvent>> {
    stream_events::table
        .filter(stream_events::conversation_id.eq(conversation.0).and(stream_events::seq.gt(after.0)))
        .order(stream_events::seq)
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .select(EventRow::as_select())
        .load(conn)?
        .into_iter()
        .map(EventRow::into_event)
        .collect()
}

/// Loads the conversations of the events after `after`, one entry for each event.
pub(in crate::store) fn load_changed_conversations(
    conn: &mut Conn,
    after: EventSeq,
) -> QueryResult<Vec<(EventSeq, ConversationId)>> {
    let rows: Vec<(i64, i64)> = stream_events::table
        .filter(stream_events::seq.gt(after.0))
        .order(stream_events::seq)
        .select((stream_events::seq, stream_events::conversation_id))
        .load(conn)?;
    Ok(rows.into_iter().map(|(seq, conversation)| (EventSeq(seq), ConversationId(conversation))).collect())
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = stream_events)]
struct EventRow {
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

impl EventRow {
    fn into_event(self) -> QueryResult<StreamEvent> {
        Ok(StreamEvent {
            seq: EventSeq(self.seq),
            at: timestamp_from_ms(self.created_at)?,
            turn: self.turn_id.map(TurnId),
            kind: self.into_event_kind()?,
        })
    }

    fn into_event_kind(self) -> QueryResult<StreamEventKind> {
        Ok(match self.kind.as_str() {
            "turn" => StreamEventKind::Turn(turn_state(self.required_state()?)?),
            "block_start" => StreamEventKind::BlockStart(self.parse_block()?),
            "block_delta" => StreamEventKind::BlockDelta(self.parse_block()?, required_column(self.delta)?),
            "block_end" => StreamEventKind::BlockEnd(self.parse_block()?),
            "step_abandoned" => StreamEventKind::StepAbandoned {
                step: convert_integer(required_column(self.step)?)?,
                attempt: convert_integer(required_column(self.attempt)?)?,
            },
            "tool_call" => StreamEventKind::ToolCall(
                CallRow(self.required_subject()?),
                call_phase(self.required_state()?)?,
            ),
            "text_in" => StreamEventKind::InboundMessage(
                EventId(self.required_subject()?),
                parse_arrival(self.required_state()?)?,
            ),
            "text_out" => StreamEventKind::OutboundMessage(
                OutboxId(self.required_subject()?),
                delivery(self.required_state()?)?,
            ),
            "question" => StreamEventKind::Prompt(
                self.required_subject()?,
                parse_question_state(self.required_state()?)?,
            ),
            "reaction" => StreamEventKind::Reaction(
                self.required_subject()?,
                parse_reaction_state(self.required_state()?)?,
            ),
            "conversation" => StreamEventKind::Conversation(parse_fact_change(self.required_state()?)?),
            _ => return Err(unreadable_column("kind of an event")),
        })
    }

    fn parse_block(&self) -> QueryResult<StreamBlock> {
        Ok(StreamBlock {
            step: convert_integer(required_column(self.step)?)?,
            attempt: convert_integer(required_column(self.attempt)?)?,
            kind: part(required_column(self.block_type.as_deref())?)?,
            ord: convert_integer(required_column(self.ord)?)?,
        })
    }

    fn required_state(&self) -> QueryResult<&str> {
        required_column(self.state.as_deref())
    }

    fn required_subject(&self) -> QueryResult<i64> {
        required_column(self.subject_id)
    }
}

fn required_column<T>(column: Option<T>) -> QueryResult<T> {
    column.ok_or_else(|| unreadable_column("event"))
}

fn parse_arrival(word: &str) -> QueryResult<InboundStatus> {
    Ok(match word {
        "waiting" => InboundStatus::Waiting,
        "received" => InboundStatus::Claimed,
        "skipped" => InboundStatus::NoTurn,
        _ => return Err(unreadable_column("arrival")),
    })
}

fn parse_question_state(word: &str) -> QueryResult<PromptState> {
    Ok(match word {
        "asked" => PromptState::Sending,
        "open" => PromptState::Open,
        "closed" => PromptState::Closed,
        _ => return Err(unreadable_column("question state")),
    })
}

fn parse_reaction_state(word: &str) -> QueryResult<ReactionState> {
    Ok(match word {
        "given" => ReactionState::Given,
        "removed" => ReactionState::Removed,
        _ => return Err(unreadable_column("reaction state")),
    })
}

fn parse_fact_change(word: &str) -> QueryResult<ConversationChange> {
    Ok(match word {
        "begun" => ConversationChange::Begun,
        "ended" => ConversationChange::Ended,
        "reopened" => ConversationChange::Reopened,
        _ => return Err(unreadable_column("change of a conversation")),
    })
}
