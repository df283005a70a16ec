//! How a conversation stands: what was said and done in its last turns, and what is being said now.

use std::collections::BTreeMap;

use diesel::prelude::*;
use jiff::Timestamp;

use super::reading::{call_phase, delivery, turn_state};
use crate::conversation::stream::{Block, CallPhase, Delivery, Part, TurnState};
use crate::conversation::transcript::{Arguments, CallRow, ConversationId, EventId, OutboxId, TurnId};
use crate::store::codec::{arguments, number, part, result, time};
use crate::store::schema::{
    blocks, conversations, inbound_events, llm_steps, outbox, pending_actions, stream_events, tool_calls,
    turns,
};
use crate::store::turns::ids_from;
use crate::store::written::Written;
use crate::store::{Conn, QueryResult};

/// The newest turns that are told.
pub const TURNS: usize = 50;

const STARTED: Written = Written("llm_steps.state = 'started'");

#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub name: String,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// The newest, oldest first.
    pub turns: Vec<Turn>,
    /// There are turns before these.
    pub cut: bool,
    pub question: Option<Question>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub id: TurnId,
    pub state: TurnState,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    pub received: Vec<Received>,
    pub sent: Vec<Sent>,
    pub calls: Vec<Call>,
    pub blocks: Vec<Content>,
    /// The whole answer, of which the texts carry the first page.
    pub answer: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    pub id: EventId,
    pub body: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub id: OutboxId,
    pub body: String,
    pub segments: u32,
    pub delivery: Delivery,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub row: CallRow,
    pub step: u32,
    pub ord: u32,
    pub tool: String,
    pub arguments: Arguments,
    pub phase: CallPhase,
    /// What the tool says for people, where it is done.
    pub outcome: Option<String>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    pub block: Block,
    pub text: String,
    /// `Partial` up to the last delta.
    pub extent: Extent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Whole,
    Partial,
}

/// What waits for a yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub id: i64,
    pub call: CallRow,
    pub words: String,
    pub expires_at: Option<Timestamp>,
}

pub fn exists(conn: &mut Conn, conversation: ConversationId) -> QueryResult<bool> {
    let found: Option<i64> =
        conversations::table.find(conversation.0).select(conversations::id).first(conn).optional()?;
    Ok(found.is_some())
}

/// An error where there is no such conversation.
pub fn read(conn: &mut Conn, conversation: ConversationId) -> QueryResult<Snapshot> {
    page(conn, conversation, i64::MAX, TURNS)
}

/// The same of the newest turns below `before`, of which `most` are told.
pub fn page(
    conn: &mut Conn,
    conversation: ConversationId,
    before: i64,
    most: usize,
) -> QueryResult<Snapshot> {
    let (name, started_at, ended_at): (String, i64, Option<i64>) = conversations::table
        .find(conversation.0)
        .select((conversations::name, conversations::started_at, conversations::ended_at))
        .first(conn)?;
    let mut newest: Vec<TurnRow> = turns::table
        .filter(turns::conversation_id.eq(conversation.0).and(turns::id.lt(before)))
        .order(turns::id.desc())
        .limit(i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1))
        .select(TurnRow::as_select())
        .load(conn)?;
    let cut = newest.len() > most;
    newest.truncate(most);
    newest.reverse();
    let turns = match newest.first() {
        Some(oldest) => {
            let span = Span { conversation, from: TurnId(oldest.id) };
            with_content(conn, span, newest)?
        }
        None => Vec::new(),
    };
    Ok(Snapshot {
        name,
        started_at: time(started_at)?,
        ended_at: ended_at.map(time).transpose()?,
        turns,
        cut,
        question: question(conn, conversation)?,
    })
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = turns)]
struct TurnRow {
    id: i64,
    state: String,
    response_text: Option<String>,
    created_at: i64,
    finished_at: Option<i64>,
}

/// The turns of a conversation from one on.
#[derive(Clone, Copy)]
struct Span {
    conversation: ConversationId,
    from: TurnId,
}

/// By the turn they belong to.
type Grouped<T> = BTreeMap<i64, Vec<T>>;

fn grouped<T>(rows: impl IntoIterator<Item = QueryResult<(i64, T)>>) -> QueryResult<Grouped<T>> {
    let mut groups: Grouped<T> = BTreeMap::new();
    for row in rows {
        let (turn, item) = row?;
        groups.entry(turn).or_default().push(item);
    }
    Ok(groups)
}

fn with_content(conn: &mut Conn, span: Span, rows: Vec<TurnRow>) -> QueryResult<Vec<Turn>> {
    let mut received = received(conn, span)?;
    let mut sent = sent(conn, span)?;
    let mut calls = calls(conn, span)?;
    let mut blocks = recorded(conn, span)?;
    rows.into_iter()
        .map(|row| {
            let mut blocks = blocks.remove(&row.id).unwrap_or_default();
            if row.finished_at.is_none() {
                blocks.extend(streamed(conn, TurnId(row.id))?);
            }
            Ok(Turn {
                id: TurnId(row.id),
                state: turn_state(&row.state)?,
                created_at: time(row.created_at)?,
                finished_at: row.finished_at.map(time).transpose()?,
                received: received.remove(&row.id).unwrap_or_default(),
                sent: sent.remove(&row.id).unwrap_or_default(),
                calls: calls.remove(&row.id).unwrap_or_default(),
                blocks,
                answer: row.response_text,
            })
        })
        .collect()
}

fn received(conn: &mut Conn, span: Span) -> QueryResult<Grouped<Received>> {
    let rows: Vec<(Option<i64>, i64, String, i64)> = inbound_events::table
        .filter(inbound_events::turn_id.eq_any(ids_from(span.conversation, span.from).nullable()))
        .order((inbound_events::provider_at, inbound_events::id))
        .select((
            inbound_events::turn_id,
            inbound_events::id,
            inbound_events::body,
            inbound_events::received_at,
        ))
        .load(conn)?;
    grouped(rows.into_iter().map(|(turn, id, body, at)| {
        Ok((turn.unwrap_or_default(), Received { id: EventId(id), body, at: time(at)? }))
    }))
}

fn sent(conn: &mut Conn, span: Span) -> QueryResult<Grouped<Sent>> {
    type Row = (Option<i64>, i64, String, i64, String, Option<String>, i64);
    let rows: Vec<Row> = outbox::table
        .filter(outbox::turn_id.eq_any(ids_from(span.conversation, span.from).nullable()))
        .order(outbox::id)
        .select((
            outbox::turn_id,
            outbox::id,
            outbox::body,
            outbox::segments,
            outbox::state,
            outbox::delivery,
            outbox::created_at,
        ))
        .load(conn)?;
    grouped(rows.into_iter().map(|(turn, id, body, segments, state, report, at)| {
        // Once the carrier has it, its word counts.
        let word = report.filter(|_| state == "accepted").unwrap_or(state);
        let (segments, delivery, at) = (number(segments)?, delivery(&word)?, time(at)?);
        Ok((turn.unwrap_or_default(), Sent { id: OutboxId(id), body, segments, delivery, at }))
    }))
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = tool_calls)]
struct CallRecord {
    id: i64,
    turn_id: i64,
    step: i64,
    ord: i64,
    tool_name: String,
    request: String,
    state: String,
    response: Option<String>,
    started_at: Option<i64>,
    finished_at: Option<i64>,
}

fn calls(conn: &mut Conn, span: Span) -> QueryResult<Grouped<Call>> {
    let records: Vec<CallRecord> = tool_calls::table
        .filter(tool_calls::turn_id.eq_any(ids_from(span.conversation, span.from)))
        .order((tool_calls::turn_id, tool_calls::step, tool_calls::ord))
        .select(CallRecord::as_select())
        .load(conn)?;
    grouped(records.into_iter().map(|record| {
        let outcome = record.response.as_deref().map(result).transpose()?;
        let call = Call {
            row: CallRow(record.id),
            step: number(record.step)?,
            ord: number(record.ord)?,
            tool: record.tool_name,
            arguments: arguments(&record.request)?,
            phase: call_phase(&record.state)?,
            outcome: outcome.map(|outcome| outcome.for_user).filter(|words| !words.is_empty()),
            started_at: record.started_at.map(time).transpose()?,
            finished_at: record.finished_at.map(time).transpose()?,
        };
        Ok((record.turn_id, call))
    }))
}

/// The blocks of recorded responses. A turn's place of a call among those of its step is its `ord`.
fn recorded(conn: &mut Conn, span: Span) -> QueryResult<Grouped<Content>> {
    let rows: Vec<(i64, i64, i64, String, String)> = blocks::table
        .filter(blocks::turn_id.eq_any(ids_from(span.conversation, span.from)))
        .order((blocks::turn_id, blocks::idx))
        .select((blocks::turn_id, blocks::step, blocks::attempt, blocks::type_, blocks::content))
        .load(conn)?;
    let mut calls_before: BTreeMap<(i64, i64), u32> = BTreeMap::new();
    grouped(rows.into_iter().map(|(turn, step, attempt, word, text)| {
        let part = part(&word)?;
        let ord = match part {
            Part::Text | Part::Thinking => 0,
            Part::ToolCall => {
                let next = calls_before.entry((turn, step)).or_insert(0);
                let ord = *next;
                *next += 1;
                ord
            }
        };
        let block = Block { step: number(step)?, attempt: number(attempt)?, part, ord };
        Ok((turn, Content { block, text, extent: Extent::Whole }))
    }))
}

/// The blocks of the response that is under way, as far as it has come.
fn streamed(conn: &mut Conn, turn: TurnId) -> QueryResult<Vec<Content>> {
    let running: Option<(i64, i64)> = llm_steps::table
        .filter(llm_steps::turn_id.eq(turn.0).and(STARTED))
        .select((llm_steps::step, llm_steps::attempt))
        .first(conn)
        .optional()?;
    let Some((step, attempt)) = running else { return Ok(Vec::new()) };
    let deltas: Vec<(Option<String>, Option<i64>, Option<String>)> = stream_events::table
        .filter(stream_events::turn_id.eq(turn.0).and(stream_events::kind.eq("block_delta")))
        .filter(stream_events::step.eq(step).and(stream_events::attempt.eq(attempt)))
        .order(stream_events::seq)
        .select((stream_events::block_type, stream_events::ord, stream_events::delta))
        .load(conn)?;
    let (step, attempt) = (number(step)?, number(attempt)?);
    let mut contents: Vec<Content> = Vec::new();
    for (word, ord, delta) in deltas {
        let part = part(word.as_deref().unwrap_or_default())?;
        let block = Block { step, attempt, part, ord: number(ord.unwrap_or_default())? };
        let text = delta.unwrap_or_default();
        match contents.iter_mut().find(|content| content.block == block) {
            Some(content) => content.text.push_str(&text),
            None => contents.push(Content { block, text, extent: Extent::Partial }),
        }
    }
    Ok(contents)
}

fn question(conn: &mut Conn, conversation: ConversationId) -> QueryResult<Option<Question>> {
    let row: Option<(i64, i64, String, Option<i64>)> = pending_actions::table
        .filter(pending_actions::conversation_id.eq(conversation.0))
        .select((
            pending_actions::id,
            pending_actions::tool_call_id,
            pending_actions::summary,
            pending_actions::expires_at,
        ))
        .first(conn)
        .optional()?;
    row.map(|(id, call, words, expires_at)| {
        Ok(Question { id, call: CallRow(call), words, expires_at: expires_at.map(time).transpose()? })
    })
    .transpose()
}
