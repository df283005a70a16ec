//! Messages of a conversation, inbound and outbound: those of its turns, those without a turn, and those that wait for
//! one.

use diesel::prelude::*;
use jiff::Timestamp;

use super::event_reader::parse_delivery;
use super::snapshot::{SnapshotsByTurn, group_by_turn};
use crate::conversation::stream_events::OutboundStatus;
use crate::conversation::transcript::{EventId, OutboxId, UserId};
use crate::store::codec::{convert_integer, timestamp_from_ms};
use crate::store::conversation::reactions::{self, ActiveReaction, ReactedSide};
use crate::store::conversation::turn_range::{self, MessageTimeRange, TurnRange};
use crate::store::queue::inbound_messages::PENDING;
use crate::store::schema::{inbound_events, outbox};
use crate::store::{Conn, QueryResult};

/// Maximum number of messages without a turn in a snapshot, of each kind: the newest.
pub const ASIDES: i64 = 50;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotInbound {
    pub id: EventId,
    pub body: String,
    pub at: Timestamp,
    pub reactions: Vec<ActiveReaction>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotOutbound {
    pub id: OutboxId,
    pub body: String,
    pub segments: u32,
    pub delivery: OutboundStatus,
    pub at: Timestamp,
    pub reactions: Vec<ActiveReaction>,
}

/// Messages of a conversation outside its turns, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnassignedMessages {
    /// Outbound messages without a turn.
    pub notifications: Vec<SnapshotOutbound>,
    /// Inbound messages that got no turn.
    pub unanswered: Vec<SnapshotInbound>,
    /// Messages that no turn has processed yet; none once the conversation has ended.
    pub waiting: Vec<SnapshotInbound>,
    /// True if there are older messages of some kind.
    pub truncated: bool,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = inbound_events)]
struct SnapshotInboundRow {
    id: i64,
    turn_id: Option<i64>,
    body: String,
    received_at: i64,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = outbox)]
struct SnapshotOutboundRow {
    id: i64,
    turn_id: Option<i64>,
    body: String,
    segments: i64,
    state: String,
    delivery: Option<String>,
    created_at: i64,
}

impl SnapshotInboundRow {
    fn into_messages(conn: &mut Conn, rows: Vec<Self>) -> QueryResult<Vec<SnapshotInbound>> {
        let mut given = reactions::load_active_reactions(
            conn,
            ReactedSide::Theirs,
            rows.iter().map(|row| row.id).collect(),
        )?;
        let read = |row: Self| {
            let reactions = given.remove(&row.id).unwrap_or_default();
            Ok(SnapshotInbound {
                id: EventId(row.id),
                body: row.body,
                at: timestamp_from_ms(row.received_at)?,
                reactions,
            })
        };
        rows.into_iter().map(read).collect()
    }
}

impl SnapshotOutboundRow {
    fn into_messages(conn: &mut Conn, rows: Vec<Self>) -> QueryResult<Vec<SnapshotOutbound>> {
        let mut given = reactions::load_active_reactions(
            conn,
            ReactedSide::Ours,
            rows.iter().map(|row| row.id).collect(),
        )?;
        let read = |row: Self| {
            // Once the carrier has accepted the message, the status it reports takes precedence.
            let word = row.delivery.filter(|_| row.state == "accepted").unwrap_or(row.state);
            Ok(SnapshotOutbound {
                id: OutboxId(row.id),
                body: row.body,
                segments: convert_integer(row.segments)?,
                delivery: parse_delivery(&word)?,
                at: timestamp_from_ms(row.created_at)?,
                reactions: given.remove(&row.id).unwrap_or_default(),
            })
        };
        rows.into_iter().map(read).collect()
    }
}

pub(super) fn load_snapshot_inbound(
    conn: &mut Conn,
    turns: TurnRange,
) -> QueryResult<SnapshotsByTurn<SnapshotInbound>> {
    let rows: Vec<SnapshotInboundRow> = inbound_events::table
        .filter(inbound_events::turn_id.eq_any(turn_range::select_turn_ids(turns).nullable()))
        .order((inbound_events::provider_at, inbound_events::id))
        .select(SnapshotInboundRow::as_select())
        .load(conn)?;
    let turns: Vec<i64> = rows.iter().filter_map(|row| row.turn_id).collect();
    group_by_turn(turns.into_iter().zip(SnapshotInboundRow::into_messages(conn, rows)?).map(Ok))
}

pub(super) fn load_snapshot_outbound(
    conn: &mut Conn,
    turns: TurnRange,
) -> QueryResult<SnapshotsByTurn<SnapshotOutbound>> {
    let rows: Vec<SnapshotOutboundRow> = outbox::table
        .filter(outbox::turn_id.eq_any(turn_range::select_turn_ids(turns).nullable()))
        .order(outbox::id)
        .select(SnapshotOutboundRow::as_select())
        .load(conn)?;
    let turns: Vec<i64> = rows.iter().filter_map(|row| row.turn_id).collect();
    group_by_turn(turns.into_iter().zip(SnapshotOutboundRow::into_messages(conn, rows)?).map(Ok))
}

/// Loads the messages without a turn. `waits` is the user whose messages may still be processed; `None` once the
/// conversation has ended.
pub(super) fn load_unassigned_messages(
    conn: &mut Conn,
    time: MessageTimeRange,
    waits: Option<UserId>,
) -> QueryResult<UnassignedMessages> {
    let mut notices: Vec<SnapshotOutboundRow> = outbox::table
        .filter(outbox::conversation_id.eq(time.conversation.0))
        .filter(outbox::created_at.ge(time.from).and(outbox::created_at.lt(time.to)))
        .order(outbox::id.desc())
        .limit(ASIDES + 1)
        .select(SnapshotOutboundRow::as_select())
        .load(conn)?;
    let mut unanswered: Vec<SnapshotInboundRow> = inbound_events::table
        .filter(inbound_events::conversation_id.eq(time.conversation.0))
        .filter(inbound_events::received_at.ge(time.from).and(inbound_events::received_at.lt(time.to)))
        .order(inbound_events::id.desc())
        .limit(ASIDES + 1)
        .select(SnapshotInboundRow::as_select())
        .load(conn)?;
    let mut waiting = match waits {
        Some(user) => load_waiting_rows(conn, user)?,
        None => Vec::new(),
    };
    let cut = [
        reverse_and_truncate(&mut notices),
        reverse_and_truncate(&mut unanswered),
        reverse_and_truncate(&mut waiting),
    ]
    .contains(&true);
    Ok(UnassignedMessages {
        notifications: SnapshotOutboundRow::into_messages(conn, notices)?,
        unanswered: SnapshotInboundRow::into_messages(conn, unanswered)?,
        waiting: SnapshotInboundRow::into_messages(conn, waiting)?,
        truncated: cut,
    })
}

/// Loads the waiting messages of a user, the most recently sent first.
fn load_waiting_rows(conn: &mut Conn, user: UserId) -> QueryResult<Vec<SnapshotInboundRow>> {
    inbound_events::table
        .filter(inbound_events::user_id.eq(user.0).and(PENDING))
        .order((inbound_events::provider_at.desc(), inbound_events::id.desc()))
        .limit(ASIDES + 1)
        .select(SnapshotInboundRow::as_select())
        .load(conn)
}

/// Reverses a list to oldest first, and drops the extra row beyond the limit; returns whether there was one.
fn reverse_and_truncate<T>(newest_first: &mut Vec<T>) -> bool {
    let most = usize::try_from(ASIDES).unwrap_or(usize::MAX);
    let cut = newest_first.len() > most;
    newest_first.truncate(most);
    newest_first.reverse();
    cut
}
