//! Loading of events after a cursor, for clients that follow a conversation.

use diesel::prelude::*;
use diesel::sql_types::BigInt;
use jiff::Timestamp;

use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::stream_events::{BlockKind, EventSeq, StreamBlock, StreamEvent, StreamEventKind};
use crate::conversation::transcript::{CallRow, ConversationId, EventId, OutboxId, TurnId};
use crate::store::Conn;
use crate::store::codec::{convert_integer, unreadable_column};
use crate::store::column_types::StoredEnum;
use crate::store::schema::{conversations, stream_events};

/// Result of loading the events after a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventsSince {
    /// The cursor is invalid: an event after it was deleted, or it never existed.
    Pruned,
    /// The next events of the conversation, in order. All events up to `up_to` are included; those up to `floor` have
    /// been deleted.
    Events { events: Vec<StreamEvent>, up_to: EventSeq, floor: EventSeq },
}

/// Loads the sequence number of the last event ever logged, in any conversation.
pub fn load_last_seq(conn: &mut Conn) -> QueryResult<EventSeq> {
    #[derive(QueryableByName)]
    struct LastSeqRow {
        #[diesel(sql_type = BigInt)]
        seq: i64,
    }
    // The newest event may be deleted, so the highest number in the table may be too low.
    let query = diesel::sql_query("SELECT seq FROM sqlite_sequence WHERE name = 'stream_events'");
    Ok(EventSeq(query.get_result::<LastSeqRow>(conn).optional()?.map_or(0, |row| row.seq)))
}

/// Loads the events of a conversation after `after`, at most `limit`.
pub fn load_events_since(
    conn: &mut Conn,
    conversation: ConversationId,
    after: EventSeq,
    limit: usize,
) -> QueryResult<EventsSince> {
    let floor: i64 =
        conversations::table.find(conversation).select(conversations::stream_floor).first(conn)?;
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
        .filter(stream_events::conversation_id.eq(conversation).and(stream_events::seq.gt(after)))
        .order(stream_events::seq)
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .select(EventRow::as_select())
        .load(conn)?
        .into_iter()
        .map(EventRow::into_event)
        .collect()
}

/// Loads the events after `after` with their conversations.
pub(in crate::store) fn load_event_conversations(
    conn: &mut Conn,
    after: EventSeq,
) -> QueryResult<Vec<(EventSeq, ConversationId)>> {
    stream_events::table
        .filter(stream_events::seq.gt(after))
        .order(stream_events::seq)
        .select((stream_events::seq, stream_events::conversation_id))
        .load(conn)
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = stream_events)]
struct EventRow {
    seq: EventSeq,
    turn_id: Option<TurnId>,
    kind: String,
    subject_id: Option<i64>,
    state: Option<String>,
    step: Option<i64>,
    attempt: Option<i64>,
    block_type: Option<BlockKind>,
    ord: Option<i64>,
    delta: Option<String>,
    created_at: Timestamp,
}

impl EventRow {
    fn into_event(self) -> QueryResult<StreamEvent> {
        Ok(StreamEvent {
            seq: self.seq,
            at: self.created_at,
            turn: self.turn_id,
            kind: self.into_event_kind()?,
        })
    }

    fn into_event_kind(self) -> QueryResult<StreamEventKind> {
        Ok(match self.kind.as_str() {
            "turn" => StreamEventKind::Turn(self.parse_state()?),
            "block_start" => StreamEventKind::BlockStart(self.parse_block()?),
            "block_delta" => StreamEventKind::BlockDelta(self.parse_block()?, required_column(self.delta)?),
            "block_end" => StreamEventKind::BlockEnd(self.parse_block()?),
            "step_abandoned" => StreamEventKind::StepAbandoned {
                step: convert_integer(required_column(self.step)?)?,
                attempt: convert_integer(required_column(self.attempt)?)?,
            },
            "tool_call" => StreamEventKind::ToolCall(CallRow(self.required_subject()?), self.parse_state()?),
            "text_in" => {
                StreamEventKind::InboundMessage(EventId(self.required_subject()?), self.parse_state()?)
            }
            "text_out" => StreamEventKind::OutboundMessage(
                OutboxId(self.required_subject()?),
                DeliveryStatus::parse(self.required_state()?).ok_or_else(|| unreadable_column("delivery"))?,
            ),
            "question" => StreamEventKind::Prompt(self.required_subject()?, self.parse_state()?),
            "reaction" => StreamEventKind::Reaction(self.required_subject()?, self.parse_state()?),
            "conversation" => StreamEventKind::Conversation(self.parse_state()?),
            _ => return Err(unreadable_column("event kind")),
        })
    }

    fn parse_block(&self) -> QueryResult<StreamBlock> {
        Ok(StreamBlock {
            step: convert_integer(required_column(self.step)?)?,
            attempt: convert_integer(required_column(self.attempt)?)?,
            kind: required_column(self.block_type)?,
            ord: convert_integer(required_column(self.ord)?)?,
        })
    }

    fn required_state(&self) -> QueryResult<&str> {
        required_column(self.state.as_deref())
    }

    fn parse_state<T: StoredEnum>(&self) -> QueryResult<T> {
        T::from_text(self.required_state()?)
    }

    fn required_subject(&self) -> QueryResult<i64> {
        required_column(self.subject_id)
    }
}

fn required_column<T>(column: Option<T>) -> QueryResult<T> {
    column.ok_or_else(|| unreadable_column("event"))
}
