//! Deltas of responses as they came, numbered per turn.

use diesel::prelude::*;
use jiff::Timestamp;

use super::Conn;
use super::codec::ms;
use super::schema::{stream_events, turns};
use super::steps::Attempt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub part: Part,
    /// Which call of the response; 0 for text and thinking.
    pub ord: u32,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Text,
    Thinking,
    ToolCall,
}

pub fn append(conn: &mut Conn, attempt: Attempt, pieces: &[Piece], now: Timestamp) -> QueryResult<()> {
    let conversation: i64 = turns::table.find(attempt.turn.0).select(turns::conversation_id).first(conn)?;
    for piece in pieces {
        let part = match piece.part {
            Part::Text => "text",
            Part::Thinking => "thinking",
            Part::ToolCall => "tool_call",
        };
        diesel::insert_into(stream_events::table)
            .values((
                stream_events::conversation_id.eq(conversation),
                stream_events::turn_id.eq(attempt.turn.0),
                stream_events::kind.eq("block_delta"),
                stream_events::step.eq(i64::from(attempt.step)),
                stream_events::attempt.eq(i64::from(attempt.attempt)),
                stream_events::block_type.eq(part),
                stream_events::ord.eq(i64::from(piece.ord)),
                stream_events::delta.eq(&piece.text),
                stream_events::created_at.eq(ms(now)),
            ))
            .execute(conn)?;
    }
    Ok(())
}

/// Removes deltas from before `before`, unless their turn still runs; their content stands in blocks.
pub fn forget(conn: &mut Conn, before: Timestamp) -> QueryResult<usize> {
    let running = turns::table.filter(turns::finished_at.is_null()).select(turns::id.nullable());
    let old = stream_events::created_at.lt(ms(before)).and(stream_events::turn_id.ne_all(running));
    diesel::delete(stream_events::table.filter(old)).execute(conn)
}
