//! Blocks of model responses: the output that running attempts have streamed so far, and the events of their blocks.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::event_log::LogEntry;
use super::recording;
use crate::conversation::stream_events::{BlockKind, StreamBlock, StreamEventKind};
use crate::conversation::transcript::ToolArguments;
use crate::store::conversation::record::steps::BlockRecord;
use crate::store::conversation::record::turns::format_arguments;
use crate::store::turns::model_steps::{AttemptId, NewCall, RecordedResponse};
use crate::store::{Conn, QueryResult};

/// Blocks that running attempts have streamed so far.
pub type StreamedBlocks = HashMap<AttemptId, Vec<BlockRecord>>;

/// Output that one attempt has streamed so far. The output limit of the model bounds its size.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamedResponse {
    pub(super) blocks: Vec<BlockRecord>,
    /// Last block, unless it has ended: the start of a block ends the previous one.
    open: Option<(BlockKind, u32)>,
}

impl StreamedResponse {
    /// Appends consecutive text of one block, and returns its events.
    pub(super) fn append_chunk(&mut self, attempt: AttemptId, chunk: &BlockRecord) -> Vec<StreamEventKind> {
        let key = (chunk.kind, chunk.ord);
        let mut events = Vec::new();
        if self.open != Some(key) {
            events.extend(self.open.map(|open| StreamEventKind::BlockEnd(stream_block(attempt, open))));
            events.push(StreamEventKind::BlockStart(stream_block(attempt, key)));
            self.open = Some(key);
        }
        events.push(StreamEventKind::BlockDelta(stream_block(attempt, key), chunk.text.clone()));
        match self.blocks.iter_mut().find(|block| (block.kind, block.ord) == key) {
            Some(block) => block.text.push_str(&chunk.text),
            None => self.blocks.push(chunk.clone()),
        }
        events
    }

    /// Returns whether the streamed blocks equal the response. The arguments of calls may differ in whitespace.
    fn matches_response(&self, response: &RecordedResponse) -> bool {
        let text = |kind| self.blocks.iter().find(|block| block.kind == kind).map_or("", |block| &block.text);
        let mut calls: Vec<&BlockRecord> =
            self.blocks.iter().filter(|block| block.kind == BlockKind::ToolCall).collect();
        calls.sort_by_key(|call| call.ord);
        text(BlockKind::Text) == response.text
            && text(BlockKind::Thinking) == response.thinking
            && calls.len() == response.calls.len()
            && calls.iter().zip(&response.calls).all(|(streamed, call)| matches_call(&streamed.text, call))
    }
}

fn matches_call(streamed: &str, call: &NewCall) -> bool {
    let arguments = streamed.strip_prefix(&call.name);
    arguments.is_some_and(|arguments| match &call.arguments {
        ToolArguments::Object(map) => {
            serde_json::from_str(arguments).is_ok_and(|streamed: Map<String, Value>| streamed == *map)
        }
        ToolArguments::Malformed(text) => arguments == text,
    })
}

fn stream_block(AttemptId { step, attempt, .. }: AttemptId, (kind, ord): (BlockKind, u32)) -> StreamBlock {
    StreamBlock { step, attempt, kind, ord }
}

/// Records the start of an attempt, from which on its output can be streamed.
pub(in crate::store) fn record_attempt_start(conn: &mut Conn, attempt: AttemptId) -> QueryResult<()> {
    if let Some(conversation) = recording::find_conversation(conn, attempt.turn)? {
        recording::record_entry(LogEntry::AttemptStarted(attempt, conversation));
    }
    Ok(())
}

/// Records that an attempt gave no response. Readers discard its streamed output.
pub(in crate::store) fn record_abandoned_attempt(
    conn: &mut Conn,
    attempt: AttemptId,
    now: Timestamp,
) -> QueryResult<()> {
    recording::record_event(conn, attempt.turn, now, abandoned_event(attempt))?;
    recording::record_entry(LogEntry::AttemptEnded(attempt));
    Ok(())
}

/// Records the response to an attempt. If the streamed blocks differ from the response, or nothing was streamed, the
/// response is recorded as a whole. Of a private response, only the calls are recorded.
pub(in crate::store) fn record_response(
    conn: &mut Conn,
    attempt: AttemptId,
    response: &RecordedResponse,
    now: Timestamp,
) -> QueryResult<()> {
    let streamed = recording::streamed_response(attempt);
    let mut events = Vec::new();
    if streamed.matches_response(response) {
        events.extend(streamed.open.map(|open| StreamEventKind::BlockEnd(stream_block(attempt, open))));
    } else {
        if !streamed.blocks.is_empty() {
            events.push(abandoned_event(attempt));
        }
        for BlockRecord { kind, ord, text } in response_blocks(response) {
            let block = stream_block(attempt, (kind, ord));
            events.push(StreamEventKind::BlockStart(block));
            events.push(StreamEventKind::BlockDelta(block, text));
            events.push(StreamEventKind::BlockEnd(block));
        }
    }
    for event in events {
        recording::record_event(conn, attempt.turn, now, event)?;
    }
    recording::record_entry(LogEntry::AttemptEnded(attempt));
    Ok(())
}

fn abandoned_event(AttemptId { step, attempt, .. }: AttemptId) -> StreamEventKind {
    StreamEventKind::StepAbandoned { step, attempt }
}

/// Returns the blocks of a response, as they would be streamed.
fn response_blocks(response: &RecordedResponse) -> impl Iterator<Item = BlockRecord> {
    let call = |(ord, call): (u32, &NewCall)| BlockRecord {
        kind: BlockKind::ToolCall,
        ord,
        text: call.name.clone() + &format_arguments(&call.arguments),
    };
    let text = |kind, text: &str| BlockRecord { kind, ord: 0, text: text.to_owned() };
    [text(BlockKind::Thinking, &response.thinking), text(BlockKind::Text, &response.text)]
        .into_iter()
        .chain((0..).zip(&response.calls).map(call))
        .filter(|block| !block.text.is_empty() && (block.kind == BlockKind::ToolCall || !response.is_private))
}
