//! Records of turns, with their messages and steps.

use std::collections::HashMap;
use std::hash::Hash;

use diesel::prelude::*;
use jiff::Timestamp;
use serde::Serialize;

use super::messages::{self, InboundRecord, OutboundRecord};
use super::steps::{self, AttemptRecord, BlockRecord, LoadedBlocks, StepRecord, ToolCallRecord};
use crate::conversation::stream_events::{BlockKind, StreamBlock, StreamTurnState};
use crate::conversation::transcript::{ConversationId, ToolArguments, TurnId, UserId};
use crate::store::column_types::StoredJson;
use crate::store::conversation::record::turn_range::{TurnRange, select_turn_ids};
use crate::store::database::literal_sql::{LiteralSql, literal_sql};
use crate::store::schema::{tool_calls, turns};
use crate::store::turns::turn_lifecycle::TurnKind;
use crate::store::{Conn, QueryResult};

/// Turn with its messages, steps and calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnRecord {
    pub row: TurnRow,
    pub received: Vec<InboundRecord>,
    pub steps: Vec<StepRecord>,
    /// Confirmed calls of an earlier turn that this turn executes.
    pub executed_calls: Vec<ToolCallRecord>,
    pub sent: Vec<OutboundRecord>,
}

literal_sql! {
    /// State of the turn in the row of `turns`. A running turn waits for its tools from a response with calls until its
    /// next attempt starts; its row does not change meanwhile.
    pub(in crate::store::conversation) const DISPLAYED_STATE: StreamTurnState =
        "iif(turns.state = 'IN_PROGRESS' AND EXISTS (SELECT 1 FROM tool_calls WHERE tool_calls.turn_id = turns.id \
         AND tool_calls.step = (SELECT max(llm_steps.step) FROM llm_steps WHERE llm_steps.turn_id = turns.id)), \
         'WAITING_FOR_TOOLS', turns.state)";
}

/// Turn as stored, without its content.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Serialize)]
#[diesel(table_name = turns)]
pub struct TurnRow {
    #[serde(skip)]
    pub id: TurnId,
    #[serde(skip)]
    #[diesel(column_name = user_id)]
    pub user: UserId,
    kind: TurnKind,
    #[diesel(select_expression = DISPLAYED_STATE)]
    #[diesel(select_expression_type = LiteralSql<{ DISPLAYED_STATE.hash() }, StreamTurnState>)]
    pub state: StreamTurnState,
    #[diesel(column_name = prompt)]
    plan: StoredJson,
    /// Full text of the answer, of which the messages contain the first page.
    #[diesel(column_name = response_text)]
    pub answer: Option<String>,
    #[serde(rename = "begun_at")]
    #[diesel(column_name = created_at)]
    pub started_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    #[serde(skip)]
    cancel_requested_at: Option<Timestamp>,
    /// True if the answer mentions what somebody has watched.
    #[serde(skip)]
    about_viewing: bool,
}

impl TurnRow {
    pub fn is_running(&self) -> bool {
        self.finished_at.is_none()
    }

    /// Returns whether the turn is still running after a cancellation was requested.
    pub fn is_ending(&self) -> bool {
        self.is_running() && self.cancel_requested_at.is_some()
    }
}

/// Block of a turn as the event stream numbers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnBlock {
    pub block: StreamBlock,
    pub text: String,
    /// True if no further text will follow.
    pub is_complete: bool,
}

/// Text that replaces an answer which mentions what somebody has watched. Only the person who asked reads it.
pub const HIDDEN_ANSWER: &str = "(An answer about what somebody has watched.)";

impl TurnRecord {
    /// Replaces the texts of a turn that mention what somebody has watched.
    pub(super) fn hide_viewing(&mut self) {
        if !self.row.about_viewing {
            return;
        }
        if let Some(answer) = &mut self.row.answer {
            *answer = HIDDEN_ANSWER.to_owned();
        }
        self.sent.iter_mut().for_each(OutboundRecord::hide_body);
        self.steps.iter_mut().for_each(StepRecord::hide_texts);
        self.executed_calls.iter_mut().for_each(ToolCallRecord::hide_result);
    }

    /// Returns the calls that the turn requested, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCallRecord> {
        self.steps.iter().flat_map(|step| &step.calls)
    }

    /// Returns the blocks of the turn, in order. Blocks of an unfinished response are included only while the turn is
    /// running.
    pub fn blocks(&self) -> QueryResult<Vec<TurnBlock>> {
        let attempts =
            self.steps.iter().flat_map(|step| step.attempts.iter().map(move |attempt| (step, attempt)));
        attempts
            .filter(|(_, attempt)| !attempt.is_running() || self.row.is_running())
            .flat_map(|(step, attempt)| {
                attempt.blocks.iter().map(move |block| turn_block_from_record(step, attempt, block))
            })
            .collect()
    }
}

/// Converts a block of a step. The text of a recorded call consists of the tool name and the arguments.
fn turn_block_from_record(
    step: &StepRecord,
    attempt: &AttemptRecord,
    record: &BlockRecord,
) -> QueryResult<TurnBlock> {
    let BlockRecord { kind, ord, ref text } = *record;
    let call = step.calls.iter().find(|call| call.ord == ord);
    let call = call.filter(|_| kind == BlockKind::ToolCall && !attempt.is_running());
    let arguments = call.map(ToolCallRecord::arguments).transpose()?;
    Ok(TurnBlock {
        block: StreamBlock { step: attempt.row.step, attempt: attempt.row.attempt, kind, ord },
        text: text.clone() + &arguments.as_ref().map(format_arguments).unwrap_or_default(),
        is_complete: !attempt.is_running(),
    })
}

/// Formats the arguments of a tool call as text that follows the name of the tool in a response.
pub(in crate::store) fn format_arguments(arguments: &ToolArguments) -> String {
    match arguments {
        ToolArguments::Object(map) => serde_json::Value::Object(map.clone()).to_string(),
        ToolArguments::Malformed(text) => text.clone(),
    }
}

/// Loads the newest turns of a conversation below `before`, at most `limit`, newest first.
pub(super) fn load_newest_turn_rows(
    conn: &mut Conn,
    conversation: ConversationId,
    before: i64,
    limit: i64,
) -> QueryResult<Vec<TurnRow>> {
    turns::table
        .filter(turns::conversation_id.eq(conversation).and(turns::id.lt(before)))
        .order(turns::id.desc())
        .limit(limit)
        .select(TurnRow::as_select())
        .load(conn)
}

/// Loads one turn; returns an empty list if it does not exist.
pub(super) fn load_turn_record(
    conn: &mut Conn,
    conversation: ConversationId,
    turn: TurnId,
) -> QueryResult<Vec<TurnRecord>> {
    let rows = turns::table.find(turn).select(TurnRow::as_select()).load(conn)?;
    load_turn_content(conn, conversation, rows)
}

/// Loads all turns of a conversation, oldest first.
pub(in crate::store) fn load_all_turns(
    conn: &mut Conn,
    conversation: ConversationId,
) -> QueryResult<Vec<TurnRecord>> {
    let rows = turns::table
        .filter(turns::conversation_id.eq(conversation))
        .order(turns::id)
        .select(TurnRow::as_select())
        .load(conn)?;
    load_turn_content(conn, conversation, rows)
}

/// Loads the content of consecutive turns, oldest first.
pub(super) fn load_turn_content(
    conn: &mut Conn,
    conversation: ConversationId,
    rows: Vec<TurnRow>,
) -> QueryResult<Vec<TurnRecord>> {
    let (Some(oldest), Some(newest)) = (rows.first(), rows.last()) else { return Ok(Vec::new()) };
    let range = TurnRange { conversation, from: oldest.id, to: newest.id };
    let mut received = group_rows(messages::load_inbound_of_turns(conn, range)?, |message| message.turn);
    let mut sent = group_rows(messages::load_outbound_of_turns(conn, range)?, |message| message.turn);
    let mut steps = steps::load_steps(conn, range, LoadedBlocks::All)?;
    let mut executed = group_rows(load_executed_calls(conn, range)?, |call| call.run_turn);
    let build_record = |row: TurnRow| TurnRecord {
        received: received.remove(&Some(row.id)).unwrap_or_default(),
        steps: steps.remove(&row.id).unwrap_or_default(),
        executed_calls: executed.remove(&Some(row.id)).unwrap_or_default(),
        sent: sent.remove(&Some(row.id)).unwrap_or_default(),
        row,
    };
    Ok(rows.into_iter().map(build_record).collect())
}

/// Loads the calls that these turns execute on behalf of an earlier turn.
fn load_executed_calls(conn: &mut Conn, turns: TurnRange) -> QueryResult<Vec<ToolCallRecord>> {
    tool_calls::table
        .filter(tool_calls::run_turn_id.eq_any(select_turn_ids(turns).nullable()))
        .filter(tool_calls::run_turn_id.ne(tool_calls::turn_id.nullable()))
        .order(tool_calls::id)
        .select(ToolCallRecord::as_select())
        .load(conn)
}

/// Groups rows by a key, and preserves their order within each group.
fn group_rows<T, K: Eq + Hash>(rows: Vec<T>, key: impl Fn(&T) -> K) -> HashMap<K, Vec<T>> {
    let mut groups: HashMap<K, Vec<T>> = HashMap::new();
    for row in rows {
        groups.entry(key(&row)).or_default().push(row);
    }
    groups
}
