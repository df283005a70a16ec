//! State of a conversation: messages and tool calls of its last turns, and the response in progress.

use std::collections::BTreeMap;

use diesel::prelude::*;
use jiff::Timestamp;

use super::delta_writer::format_arguments;
use super::event_reader::{parse_call_phase, parse_turn_state};
use super::messages::{self, SnapshotInbound, SnapshotOutbound, UnassignedMessages};
use crate::conversation::stream_events::{BlockKind, CallPhase, StreamBlock, StreamTurnState};
use crate::conversation::transcript::{CallRow, ConversationId, ToolArguments, TurnId, UserId};
use crate::store::codec::{convert_integer, parse_arguments, parse_call_result, part, timestamp_from_ms};
use crate::store::conversation::turn_range::{self, MessageTimeRange, TurnRange};
use crate::store::database::literal_sql::LiteralSql;
use crate::store::schema::{
    blocks, conversations, llm_steps, pending_actions, stream_events, tool_calls, turns,
};
use crate::store::{Conn, QueryResult};

/// Number of newest turns in a snapshot.
pub const TURNS: usize = 50;

const STARTED: LiteralSql = LiteralSql("llm_steps.state = 'started'");

#[derive(Debug, Clone, PartialEq)]
pub struct ConversationSnapshot {
    pub name: String,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// Newest turns, oldest first.
    pub turns: Vec<SnapshotTurn>,
    /// True if there are turns before these.
    pub truncated: bool,
    /// Messages between these turns, and after them.
    pub unassigned: UnassignedMessages,
    pub pending_action: Option<SnapshotPendingAction>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotTurn {
    pub id: TurnId,
    pub state: StreamTurnState,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    pub received: Vec<SnapshotInbound>,
    pub sent: Vec<SnapshotOutbound>,
    pub calls: Vec<SnapshotCall>,
    pub blocks: Vec<SnapshotBlock>,
    /// Full text of the answer, of which the messages contain the first page.
    pub answer: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotCall {
    pub row: CallRow,
    pub step: u32,
    pub ord: u32,
    pub tool: String,
    pub arguments: ToolArguments,
    pub phase: CallPhase,
    /// Result of the tool, as a sentence for users, after the call has finished.
    pub outcome: Option<String>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotBlock {
    pub block: StreamBlock,
    pub text: String,
    /// `Partial` up to the last delta.
    pub extent: BlockExtent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockExtent {
    Whole,
    Partial,
}

/// Deletion that waits for confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotPendingAction {
    pub id: i64,
    pub call: CallRow,
    pub summary: String,
    pub expires_at: Option<Timestamp>,
}

pub fn conversation_exists(conn: &mut Conn, conversation: ConversationId) -> QueryResult<bool> {
    let found: Option<i64> =
        conversations::table.find(conversation.0).select(conversations::id).first(conn).optional()?;
    Ok(found.is_some())
}

/// Loads the snapshot of a conversation; returns an error if the conversation does not exist.
pub fn load_snapshot(conn: &mut Conn, conversation: ConversationId) -> QueryResult<ConversationSnapshot> {
    load_snapshot_page(conn, conversation, i64::MAX, TURNS)
}

/// Loads a snapshot with at most `most` turns: the newest ones below `before`.
pub fn load_snapshot_page(
    conn: &mut Conn,
    conversation: ConversationId,
    before: i64,
    most: usize,
) -> QueryResult<ConversationSnapshot> {
    let (user, name, started_at, ended_at): (i64, String, i64, Option<i64>) = conversations::table
        .find(conversation.0)
        .select((
            conversations::user_id,
            conversations::name,
            conversations::started_at,
            conversations::ended_at,
        ))
        .first(conn)?;
    let mut newest: Vec<SnapshotTurnRow> = turns::table
        .filter(turns::conversation_id.eq(conversation.0).and(turns::id.lt(before)))
        .order(turns::id.desc())
        .limit(i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1))
        .select(SnapshotTurnRow::as_select())
        .load(conn)?;
    let cut = newest.len() > most;
    newest.truncate(most);
    newest.reverse();
    let oldest = newest.first().map(|turn| turn.created_at).filter(|_| cut);
    let waits = ended_at.is_none().then_some(UserId(user));
    let time_of = MessageTimeRange::load_for_page(conn, conversation, oldest, before)?;
    Ok(ConversationSnapshot {
        name,
        started_at: timestamp_from_ms(started_at)?,
        ended_at: ended_at.map(timestamp_from_ms).transpose()?,
        turns: load_turn_content(conn, conversation, newest)?,
        truncated: cut,
        unassigned: messages::load_unassigned_messages(conn, time_of, waits)?,
        pending_action: load_snapshot_pending_action(conn, conversation)?,
    })
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = turns)]
struct SnapshotTurnRow {
    id: i64,
    state: String,
    response_text: Option<String>,
    created_at: i64,
    finished_at: Option<i64>,
}

/// Rows grouped by the id of their turn.
pub(super) type SnapshotsByTurn<T> = BTreeMap<i64, Vec<T>>;

pub(super) fn group_by_turn<T>(
    rows: impl IntoIterator<Item = QueryResult<(i64, T)>>,
) -> QueryResult<SnapshotsByTurn<T>> {
    let mut groups: SnapshotsByTurn<T> = BTreeMap::new();
    for row in rows {
        let (turn, item) = row?;
        groups.entry(turn).or_default().push(item);
    }
    Ok(groups)
}

/// Loads the content of consecutive turns, oldest first.
fn load_turn_content(
    conn: &mut Conn,
    conversation: ConversationId,
    rows: Vec<SnapshotTurnRow>,
) -> QueryResult<Vec<SnapshotTurn>> {
    let (Some(oldest), Some(newest)) = (rows.first(), rows.last()) else { return Ok(Vec::new()) };
    let turns = TurnRange { conversation, from: TurnId(oldest.id), to: TurnId(newest.id) };
    let mut received = messages::load_snapshot_inbound(conn, turns)?;
    let mut sent = messages::load_snapshot_outbound(conn, turns)?;
    let mut calls = load_snapshot_calls(conn, turns)?;
    let mut blocks = load_recorded_blocks(conn, turns)?;
    rows.into_iter()
        .map(|row| {
            let calls = calls.remove(&row.id).unwrap_or_default();
            let mut blocks = blocks.remove(&row.id).unwrap_or_default();
            for block in blocks.iter_mut().filter(|content| content.block.kind == BlockKind::ToolCall) {
                let asked =
                    |call: &&SnapshotCall| (call.step, call.ord) == (block.block.step, block.block.ord);
                block.text.extend(calls.iter().find(asked).map(|call| format_arguments(&call.arguments)));
            }
            if row.finished_at.is_none() {
                blocks.extend(load_streamed_blocks(conn, TurnId(row.id))?);
            }
            Ok(SnapshotTurn {
                id: TurnId(row.id),
                state: parse_turn_state(&row.state)?,
                created_at: timestamp_from_ms(row.created_at)?,
                finished_at: row.finished_at.map(timestamp_from_ms).transpose()?,
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
struct SnapshotCallRow {
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

fn load_snapshot_calls(conn: &mut Conn, turns: TurnRange) -> QueryResult<SnapshotsByTurn<SnapshotCall>> {
    let records: Vec<SnapshotCallRow> = tool_calls::table
        .filter(tool_calls::turn_id.eq_any(turn_range::select_turn_ids(turns)))
        .order((tool_calls::turn_id, tool_calls::step, tool_calls::ord))
        .select(SnapshotCallRow::as_select())
        .load(conn)?;
    group_by_turn(records.into_iter().map(|record| {
        let outcome = record.response.as_deref().map(parse_call_result).transpose()?;
        let call = SnapshotCall {
            row: CallRow(record.id),
            step: convert_integer(record.step)?,
            ord: convert_integer(record.ord)?,
            tool: record.tool_name,
            arguments: parse_arguments(&record.request)?,
            phase: parse_call_phase(&record.state)?,
            outcome: outcome.map(|outcome| outcome.for_user).filter(|words| !words.is_empty()),
            started_at: record.started_at.map(timestamp_from_ms).transpose()?,
            finished_at: record.finished_at.map(timestamp_from_ms).transpose()?,
        };
        Ok((record.turn_id, call))
    }))
}

/// Loads the blocks of recorded responses. The `ord` of a call is its index among the calls of its step.
fn load_recorded_blocks(conn: &mut Conn, turns: TurnRange) -> QueryResult<SnapshotsByTurn<SnapshotBlock>> {
    let rows: Vec<(i64, i64, i64, String, String)> = blocks::table
        .filter(blocks::turn_id.eq_any(turn_range::select_turn_ids(turns)))
        .order((blocks::turn_id, blocks::idx))
        .select((blocks::turn_id, blocks::step, blocks::attempt, blocks::type_, blocks::content))
        .load(conn)?;
    let mut calls_before: BTreeMap<(i64, i64), u32> = BTreeMap::new();
    group_by_turn(rows.into_iter().map(|(turn, step, attempt, word, text)| {
        let part = part(&word)?;
        let ord = match part {
            BlockKind::Text | BlockKind::Thinking => 0,
            BlockKind::ToolCall => {
                let next = calls_before.entry((turn, step)).or_insert(0);
                let ord = *next;
                *next += 1;
                ord
            }
        };
        let block =
            StreamBlock { step: convert_integer(step)?, attempt: convert_integer(attempt)?, kind: part, ord };
        Ok((turn, SnapshotBlock { block, text, extent: BlockExtent::Whole }))
    }))
}

/// Loads the blocks of the response in progress, as far as it has arrived.
fn load_streamed_blocks(conn: &mut Conn, turn: TurnId) -> QueryResult<Vec<SnapshotBlock>> {
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
    let (step, attempt) = (convert_integer(step)?, convert_integer(attempt)?);
    let mut contents: Vec<SnapshotBlock> = Vec::new();
    for (word, ord, delta) in deltas {
        let part = part(word.as_deref().unwrap_or_default())?;
        let block = StreamBlock { step, attempt, kind: part, ord: convert_integer(ord.unwrap_or_default())? };
        let text = delta.unwrap_or_default();
        match contents.iter_mut().find(|content| content.block == block) {
            Some(content) => content.text.push_str(&text),
            None => contents.push(SnapshotBlock { block, text, extent: BlockExtent::Partial }),
        }
    }
    Ok(contents)
}

fn load_snapshot_pending_action(
    conn: &mut Conn,
    conversation: ConversationId,
) -> QueryResult<Option<SnapshotPendingAction>> {
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
        Ok(SnapshotPendingAction {
            id,
            call: CallRow(call),
            summary: words,
            expires_at: expires_at.map(timestamp_from_ms).transpose()?,
        })
    })
    .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::transcript::{Address, PhoneNumber, Responder};
    use crate::store::conversation::conversations as talks;
    use crate::store::people::users::{self, FirstContactRole};
    use crate::store::queue::inbound_messages::MessageOutcome;
    use crate::store::queue::outbox::{self, NewOutboundMessage, OutboundKind};
    use crate::store::scratch;
    use crate::store::turns::model_steps;
    use crate::store::turns::turn_lifecycle::{self as turn_rows, NewTurn, TurnEnd, TurnKind, TurnPlan};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Creates a conversation of four turns that call a tool, each followed by a notification.
    fn a_talk(conn: &mut Conn) -> ConversationId {
        let phone = PhoneNumber::parse("+15550100001").unwrap();
        let user = users::ensure_user(conn, &phone, FirstContactRole::Member, at(0)).unwrap();
        let conversation = talks::start_conversation(conn, user, "A talk", at(0)).unwrap();
        for turn in 1..=4 {
            let plan = TurnPlan::for_responder(Responder::Model);
            let new = NewTurn { user, conversation, kind: TurnKind::Chat, plan: &plan };
            let id = turn_rows::create_turn(conn, new, at(10 * turn)).unwrap();
            model_steps::add_call(conn, id, "check_status", at(10 * turn)).unwrap();
            let end = TurnEnd::without_message(id, MessageOutcome::Replied);
            turn_rows::finish_turn(conn, &end, at(10 * turn + 1)).unwrap();
            let notice = NewOutboundMessage {
                key: format!("notice:{turn}"),
                user,
                turn: None,
                kind: OutboundKind::Notice,
                to: Address::new("+15550100001"),
                from: Address::new("+15550100000"),
                body: format!("after turn {turn}"),
                media: None,
                segments: 1,
            };
            outbox::queue_message(conn, &notice, at(10 * turn + 5)).unwrap();
        }
        conversation
    }

    /// Returns the turns and the notifications on a page of two turns.
    fn shown(conn: &mut Conn, conversation: ConversationId, before: i64) -> (Vec<i64>, Vec<String>) {
        let page = load_snapshot_page(conn, conversation, before, 2).unwrap();
        let notices = page.unassigned.notifications.into_iter().map(|notice| notice.body).collect();
        (page.turns.into_iter().map(|turn| turn.id.0).collect(), notices)
    }

    #[test]
    fn each_notification_is_on_the_page_of_its_preceding_turn() {
        let mut conn = scratch();
        let talk = a_talk(&mut conn);
        let notices = |turns: [i64; 2]| turns.map(|turn| format!("after turn {turn}")).to_vec();
        assert_eq!(shown(&mut conn, talk, i64::MAX), (vec![3, 4], notices([3, 4])));
        assert_eq!(shown(&mut conn, talk, 3), (vec![1, 2], notices([1, 2])));
    }

    #[test]
    fn newest_waiting_messages_are_shown_with_a_more_flag() {
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
            let told = load_snapshot(&mut conn, talk).unwrap().unassigned;
            (told.waiting.into_iter().map(|text| text.body).collect::<Vec<_>>(), told.truncated)
        };
        let bodies = |texts: std::ops::RangeInclusive<i64>| texts.map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(waits(1..=50), (bodies(1..=50), false));
        assert_eq!(waits(51..=51), (bodies(2..=51), true));
    }

    #[test]
    fn older_page_does_not_read_newer_turns() {
        let mut conn = scratch();
        let talk = a_talk(&mut conn);
        let unreadable = tool_calls::table.filter(tool_calls::turn_id.ge(3));
        diesel::update(unreadable).set(tool_calls::request.eq("7")).execute(&mut conn).unwrap();
        assert!(
            load_snapshot_page(&mut conn, talk, i64::MAX, 2).is_err(),
            "a row that cannot be read is an error"
        );
        assert_eq!(shown(&mut conn, talk, 3).0, [1, 2]);
    }
}
