//! State of a conversation: messages and tool calls of its last turns, and the response in progress.

use std::collections::BTreeMap;

use diesel::prelude::*;
use jiff::Timestamp;

use super::reading::{call_phase, turn_state};
use super::texts::{self, Asides, Received, Sent};
use super::writing::written;
use crate::conversation::stream::{Block, CallPhase, Part, TurnState};
use crate::conversation::transcript::{Arguments, CallRow, ConversationId, TurnId, UserId};
use crate::store::codec::{arguments, number, part, result, time};
use crate::store::schema::{
    blocks, conversations, llm_steps, pending_actions, stream_events, tool_calls, turns,
};
use crate::store::span::{self, Time, Turns};
use crate::store::written::Written;
use crate::store::{Conn, QueryResult};

/// Number of newest turns in a snapshot.
pub const TURNS: usize = 50;

const STARTED: Written = Written("llm_steps.state = 'started'");

#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub name: String,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// Newest turns, oldest first.
    pub turns: Vec<Turn>,
    /// True if there are turns before these.
    pub cut: bool,
    /// Messages between these turns, and after them.
    pub asides: Asides,
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
    /// Full text of the answer, of which the messages carry the first page.
    pub answer: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub row: CallRow,
    pub step: u32,
    pub ord: u32,
    pub tool: String,
    pub arguments: Arguments,
    pub phase: CallPhase,
    /// Result of the tool, worded for people, once the call has finished.
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

/// Deletion that waits for confirmation.
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

/// Loads the snapshot of a conversation; returns an error if the conversation does not exist.
pub fn read(conn: &mut Conn, conversation: ConversationId) -> QueryResult<Snapshot> {
    page(conn, conversation, i64::MAX, TURNS)
}

/// Loads a snapshot with at most `most` turns: the newest ones below `before`.
pub fn page(
    conn: &mut Conn,
    conversation: ConversationId,
    before: i64,
    most: usize,
) -> QueryResult<Snapshot> {
    let (user, name, started_at, ended_at): (i64, String, i64, Option<i64>) = conversations::table
        .find(conversation.0)
        .select((
            conversations::user_id,
            conversations::name,
            conversations::started_at,
            conversations::ended_at,
        ))
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
    let oldest = newest.first().map(|turn| turn.created_at).filter(|_| cut);
    let waits = ended_at.is_none().then_some(UserId(user));
    let time_of = Time::of(conn, conversation, oldest, before)?;
    Ok(Snapshot {
        name,
        started_at: time(started_at)?,
        ended_at: ended_at.map(time).transpose()?,
        turns: with_content(conn, conversation, newest)?,
        cut,
        asides: texts::asides(conn, time_of, waits)?,
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

/// Rows grouped by the id of their turn.
pub(super) type Grouped<T> = BTreeMap<i64, Vec<T>>;

pub(super) fn grouped<T>(rows: impl IntoIterator<Item = QueryResult<(i64, T)>>) -> QueryResult<Grouped<T>> {
    let mut groups: Grouped<T> = BTreeMap::new();
    for row in rows {
        let (turn, item) = row?;
        groups.entry(turn).or_default().push(item);
    }
    Ok(groups)
}

/// Adds their content to consecutive turns, oldest first.
fn with_content(conn: &mut Conn, conversation: ConversationId, rows: Vec<TurnRow>) -> QueryResult<Vec<Turn>> {
    let (Some(oldest), Some(newest)) = (rows.first(), rows.last()) else { return Ok(Vec::new()) };
    let turns = Turns { conversation, from: TurnId(oldest.id), to: TurnId(newest.id) };
    let mut received = texts::received(conn, turns)?;
    let mut sent = texts::sent(conn, turns)?;
    let mut calls = calls(conn, turns)?;
    let mut blocks = recorded(conn, turns)?;
    rows.into_iter()
        .map(|row| {
            let calls = calls.remove(&row.id).unwrap_or_default();
            let mut blocks = blocks.remove(&row.id).unwrap_or_default();
            for block in blocks.iter_mut().filter(|content| content.block.part == Part::ToolCall) {
                let asked = |call: &&Call| (call.step, call.ord) == (block.block.step, block.block.ord);
                block.text.extend(calls.iter().find(asked).map(|call| written(&call.arguments)));
            }
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
                calls,
                blocks,
                answer: row.response_text,
            })
        })
        .collect()
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

fn calls(conn: &mut Conn, turns: Turns) -> QueryResult<Grouped<Call>> {
    let records: Vec<CallRecord> = tool_calls::table
        .filter(tool_calls::turn_id.eq_any(span::ids(turns)))
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

/// Loads the blocks of recorded responses. The `ord` of a call is its index among the calls of its step.
fn recorded(conn: &mut Conn, turns: Turns) -> QueryResult<Grouped<Content>> {
    let rows: Vec<(i64, i64, i64, String, String)> = blocks::table
        .filter(blocks::turn_id.eq_any(span::ids(turns)))
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

/// Loads the blocks of the response in progress, as far as it has arrived.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::transcript::{Address, Brain, PhoneNumber};
    use crate::store::ledger::Outcome;
    use crate::store::outbox::{self, NewText, TextKind};
    use crate::store::turns::{self as turn_rows, End, Kind, NewTurn, Plan};
    use crate::store::users::{self, Newcomer};
    use crate::store::{conversations as talks, scratch, steps};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Creates a conversation of four turns that call a tool, each followed by a notification.
    fn a_talk(conn: &mut Conn) -> ConversationId {
        let phone = PhoneNumber::parse("+15550100001").unwrap();
        let user = users::ensure(conn, &phone, Newcomer::Member, at(0)).unwrap();
        let conversation = talks::begin(conn, user, "A talk", at(0)).unwrap();
        for turn in 1..=4 {
            let plan = Plan::by(Brain::Model);
            let new = NewTurn { user, conversation, kind: Kind::Chat, plan: &plan };
            let id = turn_rows::create(conn, new, at(10 * turn)).unwrap();
            steps::add_call(conn, id, "check_status", at(10 * turn)).unwrap();
            let end = End::without_a_text(id, Outcome::Replied);
            turn_rows::finish(conn, &end, at(10 * turn + 1)).unwrap();
            let notice = NewText {
                key: format!("notice:{turn}"),
                user,
                turn: None,
                kind: TextKind::Notice,
                to: Address::new("+15550100001"),
                from: Address::new("+15550100000"),
                body: format!("after turn {turn}"),
                media: None,
                segments: 1,
            };
            outbox::queue(conn, &notice, at(10 * turn + 5)).unwrap();
        }
        conversation
    }

    /// Returns the turns and the notifications on a page of two turns.
    fn shown(conn: &mut Conn, conversation: ConversationId, before: i64) -> (Vec<i64>, Vec<String>) {
        let page = page(conn, conversation, before, 2).unwrap();
        let notices = page.asides.notices.into_iter().map(|notice| notice.body).collect();
        (page.turns.into_iter().map(|turn| turn.id.0).collect(), notices)
    }

    #[test]
    fn each_notice_stands_on_the_page_of_the_turn_before_it() {
        let mut conn = scratch();
        let talk = a_talk(&mut conn);
        let notices = |turns: [i64; 2]| turns.map(|turn| format!("after turn {turn}")).to_vec();
        assert_eq!(shown(&mut conn, talk, i64::MAX), (vec![3, 4], notices([3, 4])));
        assert_eq!(shown(&mut conn, talk, 3), (vec![1, 2], notices([1, 2])));
    }

    #[test]
    fn of_what_waits_the_newest_is_told_and_that_there_is_more() {
        let mut conn = scratch();
        let talk = a_talk(&mut conn);
        let mut waits = |texts: std::ops::RangeInclusive<i64>| {
            for n in texts {
                let text = format!(
                    "INSERT INTO inbound_events (channel, external_id, user_id, to_addr, body, provider_at, received_at, via, updated_at)
                     VALUES ('twilio', '{n}', 1, '+1', '{n}', {n}, {n}, 'webhook', 0)"
                );
                diesel::sql_query(text).execute(&mut conn).unwrap();
            }
            let told = read(&mut conn, talk).unwrap().asides;
            (told.waiting.into_iter().map(|text| text.body).collect::<Vec<_>>(), told.cut)
        };
        let bodies = |texts: std::ops::RangeInclusive<i64>| texts.map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(waits(1..=50), (bodies(1..=50), false));
        assert_eq!(waits(51..=51), (bodies(2..=51), true));
    }

    #[test]
    fn an_older_page_reads_nothing_of_newer_turns() {
        let mut conn = scratch();
        let talk = a_talk(&mut conn);
        let unreadable = tool_calls::table.filter(tool_calls::turn_id.ge(3));
        diesel::update(unreadable).set(tool_calls::request.eq("7")).execute(&mut conn).unwrap();
        assert!(page(&mut conn, talk, i64::MAX, 2).is_err(), "a row that cannot be read is an error");
        assert_eq!(shown(&mut conn, talk, 3).0, [1, 2]);
    }
}
