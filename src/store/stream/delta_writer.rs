//! Writer of the block events of model responses: the deltas, and the start and end of each block.

use std::collections::BTreeMap;

use diesel::prelude::*;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::conversation::stream_events::BlockKind;
use crate::conversation::transcript::{ConversationId, ToolArguments};
use crate::store::Conn;
use crate::store::codec::{convert_integer, ms};
use crate::store::conversation::record::steps::{self, AttemptState};
use crate::store::conversation::record::turns::format_arguments;
use crate::store::schema::{llm_steps, stream_events, turns};
use crate::store::turns::model_steps::{AttemptId, NewCall, RecordedResponse};

/// Consecutive text of one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockChunk {
    pub kind: BlockKind,
    /// Index of the call in the response; 0 for text and thinking.
    pub ord: u32,
    pub text: String,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = stream_events)]
struct BlockEventRow {
    kind: String,
    step: Option<i64>,
    attempt: Option<i64>,
    block_type: Option<BlockKind>,
    ord: Option<i64>,
}

/// Writer that logs the blocks of one attempt.
struct BlockLog<'a> {
    conn: &'a mut Conn,
    conversation: ConversationId,
    attempt: AttemptId,
    now: Timestamp,
}

/// Appends chunks of a running attempt. The start of each block is logged, and its end when another block follows.
/// Chunks of an attempt that has ended are dropped.
pub fn append_chunks(
    conn: &mut Conn,
    attempt: AttemptId,
    chunks: &[BlockChunk],
    now: Timestamp,
) -> QueryResult<()> {
    if chunks.is_empty() {
        return Ok(());
    }
    let Some(mut log) = BlockLog::from_running_attempt(conn, attempt, now)? else { return Ok(()) };
    let mut open = log.load_open_block()?;
    for chunk in chunks {
        let block = (chunk.kind, chunk.ord);
        if open != Some(block) {
            if let Some(previous) = open {
                log.add_event("block_end", previous, None)?;
            }
            log.add_event("block_start", block, None)?;
            open = Some(block);
        }
        log.add_event("block_delta", block, Some(&chunk.text))?;
    }
    Ok(())
}

/// Ends the open block of a response that is being recorded. If the streamed blocks differ from the response, or
/// nothing was streamed, the recorded response is written to the log.
pub(in crate::store) fn complete_blocks(
    conn: &mut Conn,
    attempt: AttemptId,
    response: &RecordedResponse,
    now: Timestamp,
) -> QueryResult<()> {
    let Some(mut log) = BlockLog::from_running_attempt(conn, attempt, now)? else { return Ok(()) };
    let streamed = log.load_streamed_text()?;
    if matches_response(&streamed, response) {
        return match log.load_open_block()? {
            Some(open) => log.add_event("block_end", open, None),
            None => Ok(()),
        };
    }
    if !streamed.is_empty() {
        log.add_abandoned_event()?;
    }
    let calls = response.calls.iter().map(|call| call.name.clone() + &format_arguments(&call.arguments));
    let calls = (0..).zip(calls).map(|(ord, call)| ((BlockKind::ToolCall, ord), call));
    let blocks = [
        ((BlockKind::Thinking, 0), response.thinking.clone()),
        ((BlockKind::Text, 0), response.text.clone()),
    ];
    for (block, text) in blocks.into_iter().chain(calls).filter(|(_, text)| !text.is_empty()) {
        log.add_event("block_start", block, None)?;
        log.add_event("block_delta", block, Some(&text))?;
        log.add_event("block_end", block, None)?;
    }
    Ok(())
}

/// Returns whether the streamed blocks equal the response. The arguments of calls may differ in whitespace.
fn matches_response(streamed: &BTreeMap<(BlockKind, u32), String>, response: &RecordedResponse) -> bool {
    let text = |kind: BlockKind| streamed.get(&(kind, 0)).map_or("", String::as_str);
    let calls = streamed.iter().filter(|((kind, _), _)| *kind == BlockKind::ToolCall);
    let matches_call = |((_, streamed), call): ((&(BlockKind, u32), &String), &NewCall)| {
        let arguments = streamed.strip_prefix(&call.name);
        arguments.is_some_and(|arguments| match &call.arguments {
            ToolArguments::Object(map) => {
                serde_json::from_str(arguments).is_ok_and(|streamed: Map<String, Value>| streamed == *map)
            }
            ToolArguments::Malformed(text) => arguments == text,
        })
    };
    text(BlockKind::Text) == response.text
        && text(BlockKind::Thinking) == response.thinking
        && calls.clone().count() == response.calls.len()
        && calls.zip(&response.calls).all(matches_call)
}

impl<'a> BlockLog<'a> {
    /// Creates a writer; returns `None` if the attempt is not running.
    fn from_running_attempt(
        conn: &'a mut Conn,
        attempt: AttemptId,
        now: Timestamp,
    ) -> QueryResult<Option<Self>> {
        let key = (attempt.turn, i64::from(attempt.step), i64::from(attempt.attempt));
        let running = llm_steps::table.find(key).filter(llm_steps::state.eq(AttemptState::Started));
        let running_turn: Option<i64> = running.select(llm_steps::turn_id).first(conn).optional()?;
        if running_turn.is_none() {
            return Ok(None);
        }
        let conversation = turns::table.find(attempt.turn).select(turns::conversation_id).first(conn)?;
        Ok(Some(Self { conn, conversation, attempt, now }))
    }

    /// Loads the last block that was started and not ended. There is at most one: the start of a block ends the
    /// previous block.
    fn load_open_block(&mut self) -> QueryResult<Option<(BlockKind, u32)>> {
        let AttemptId { turn, step, attempt } = self.attempt;
        let last_event: Option<BlockEventRow> = stream_events::table
            .filter(stream_events::turn_id.eq(turn))
            .filter(stream_events::step.is_not_null().and(stream_events::attempt.is_not_null()))
            .order(stream_events::seq.desc())
            .select(BlockEventRow::as_select())
            .first(self.conn)
            .optional()?;
        let Some(event) = last_event else { return Ok(None) };
        let (Some(kind), Some(ord)) = (event.block_type, event.ord) else { return Ok(None) };
        let is_same_attempt = (event.step, event.attempt) == (Some(step.into()), Some(attempt.into()));
        if !is_same_attempt || event.kind == "block_end" {
            return Ok(None);
        }
        Ok(Some((kind, convert_integer(ord)?)))
    }

    /// Loads the text streamed for this attempt so far, by block kind and index.
    fn load_streamed_text(&mut self) -> QueryResult<BTreeMap<(BlockKind, u32), String>> {
        let blocks = steps::load_streamed_blocks(self.conn, self.attempt)?;
        Ok(blocks.into_iter().map(|block| ((block.kind, block.ord), block.text)).collect())
    }

    fn add_event(
        &mut self,
        event_kind: &str,
        (block_kind, ord): (BlockKind, u32),
        delta: Option<&str>,
    ) -> QueryResult<()> {
        diesel::insert_into(stream_events::table)
            .values((
                stream_events::conversation_id.eq(self.conversation),
                stream_events::turn_id.eq(self.attempt.turn),
                stream_events::kind.eq(event_kind),
                stream_events::step.eq(i64::from(self.attempt.step)),
                stream_events::attempt.eq(i64::from(self.attempt.attempt)),
                stream_events::block_type.eq(block_kind),
                stream_events::ord.eq(i64::from(ord)),
                stream_events::delta.eq(delta),
                stream_events::created_at.eq(ms(self.now)),
            ))
            .execute(self.conn)
            .map(drop)
    }

    /// Adds an event on which subscribers discard the text streamed for this attempt.
    fn add_abandoned_event(&mut self) -> QueryResult<()> {
        diesel::insert_into(stream_events::table)
            .values((
                stream_events::conversation_id.eq(self.conversation),
                stream_events::turn_id.eq(self.attempt.turn),
                stream_events::kind.eq("step_abandoned"),
                stream_events::step.eq(i64::from(self.attempt.step)),
                stream_events::attempt.eq(i64::from(self.attempt.attempt)),
                stream_events::created_at.eq(ms(self.now)),
            ))
            .execute(self.conn)
            .map(drop)
    }
}
