//! Messages of a conversation, inbound and outbound: those of its turns, those without a turn, and those that wait for
//! one.

use diesel::prelude::*;
use jiff::Timestamp;

use super::reading::delivery;
use super::snapshot::{Grouped, grouped};
use crate::conversation::stream::Delivery;
use crate::conversation::transcript::{EventId, OutboxId, UserId};
use crate::store::codec::{number, time};
use crate::store::ledger::PENDING;
use crate::store::reactions::{self, On, Standing};
use crate::store::schema::{inbound_events, outbox};
use crate::store::span::{self, Time, Turns};
use crate::store::{Conn, QueryResult};

/// Maximum number of messages without a turn in a snapshot, of each kind: the newest.
pub const ASIDES: i64 = 50;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    pub id: EventId,
    pub body: String,
    pub at: Timestamp,
    pub reactions: Vec<Standing>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub id: OutboxId,
    pub body: String,
    pub segments: u32,
    pub delivery: Delivery,
    pub at: Timestamp,
    pub reactions: Vec<Standing>,
}

/// Messages of a conversation outside its turns, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asides {
    /// Outbound messages without a turn.
    pub notices: Vec<Sent>,
    /// Inbound messages that got no turn.
    pub unanswered: Vec<Received>,
    /// Messages that no turn has processed yet; none once the conversation has ended.
    pub waiting: Vec<Received>,
    /// True if there are older messages of some kind.
    pub cut: bool,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = inbound_events)]
struct InRow {
    id: i64,
    turn_id: Option<i64>,
    body: String,
    received_at: i64,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = outbox)]
struct OutRow {
    id: i64,
    turn_id: Option<i64>,
    body: String,
    segments: i64,
    state: String,
    delivery: Option<String>,
    created_at: i64,
}

impl InRow {
    fn read_all(conn: &mut Conn, rows: Vec<Self>) -> QueryResult<Vec<Received>> {
        let mut given = reactions::standing(conn, On::Theirs, rows.iter().map(|row| row.id).collect())?;
        let read = |row: Self| {
            let reactions = given.remove(&row.id).unwrap_or_default();
            Ok(Received { id: EventId(row.id), body: row.body, at: time(row.received_at)?, reactions })
        };
        rows.into_iter().map(read).collect()
    }
}

impl OutRow {
    fn read_all(conn: &mut Conn, rows: Vec<Self>) -> QueryResult<Vec<Sent>> {
        let mut given = reactions::standing(conn, On::Ours, rows.iter().map(|row| row.id).collect())?;
        let read = |row: Self| {
            // Once the carrier has accepted the message, the status it reports takes precedence.
            let word = row.delivery.filter(|_| row.state == "accepted").unwrap_or(row.state);
            Ok(Sent {
                id: OutboxId(row.id),
                body: row.body,
                segments: number(row.segments)?,
                delivery: delivery(&word)?,
                at: time(row.created_at)?,
                reactions: given.remove(&row.id).unwrap_or_default(),
            })
        };
        rows.into_iter().map(read).collect()
    }
}

pub(super) fn received(conn: &mut Conn, turns: Turns) -> QueryResult<Grouped<Received>> {
    let rows: Vec<InRow> = inbound_events::table
        .filter(inbound_events::turn_id.eq_any(span::ids(turns).nullable()))
        .order((inbound_events::provider_at, inbound_events::id))
        .select(InRow::as_select())
        .load(conn)?;
    let turns: Vec<i64> = rows.iter().filter_map(|row| row.turn_id).collect();
    grouped(turns.into_iter().zip(InRow::read_all(conn, rows)?).map(Ok))
}

pub(super) fn sent(conn: &mut Conn, turns: Turns) -> QueryResult<Grouped<Sent>> {
    let rows: Vec<OutRow> = outbox::table
        .filter(outbox::turn_id.eq_any(span::ids(turns).nullable()))
        .order(outbox::id)
        .select(OutRow::as_select())
        .load(conn)?;
    let turns: Vec<i64> = rows.iter().filter_map(|row| row.turn_id).collect();
    grouped(turns.into_iter().zip(OutRow::read_all(conn, rows)?).map(Ok))
}

/// Loads the messages without a turn. `waits` is the user whose messages may still be processed; `None` once the
/// conversation has ended.
pub(super) fn asides(conn: &mut Conn, time: Time, waits: Option<UserId>) -> QueryResult<Asides> {
    let mut notices: Vec<OutRow> = outbox::table
        .filter(outbox::conversation_id.eq(time.conversation.0))
        .filter(outbox::created_at.ge(time.from).and(outbox::created_at.lt(time.to)))
        .order(outbox::id.desc())
        .limit(ASIDES + 1)
        .select(OutRow::as_select())
        .load(conn)?;
    let mut unanswered: Vec<InRow> = inbound_events::table
        .filter(inbound_events::conversation_id.eq(time.conversation.0))
        .filter(inbound_events::received_at.ge(time.from).and(inbound_events::received_at.lt(time.to)))
        .order(inbound_events::id.desc())
        .limit(ASIDES + 1)
        .select(InRow::as_select())
        .load(conn)?;
    let mut waiting = match waits {
        Some(user) => pending(conn, user)?,
        None => Vec::new(),
    };
    let cut =
        [turn_round(&mut notices), turn_round(&mut unanswered), turn_round(&mut waiting)].contains(&true);
    Ok(Asides {
        notices: OutRow::read_all(conn, notices)?,
        unanswered: InRow::read_all(conn, unanswered)?,
        waiting: InRow::read_all(conn, waiting)?,
        cut,
    })
}

/// Loads the waiting messages of a user, the most recently sent first.
fn pending(conn: &mut Conn, user: UserId) -> QueryResult<Vec<InRow>> {
    inbound_events::table
        .filter(inbound_events::user_id.eq(user.0).and(PENDING))
        .order((inbound_events::provider_at.desc(), inbound_events::id.desc()))
        .limit(ASIDES + 1)
        .select(InRow::as_select())
        .load(conn)
}

/// Reverses a list to oldest first, and drops the extra row beyond the limit; returns whether there was one.
fn turn_round<T>(newest_first: &mut Vec<T>) -> bool {
    let most = usize::try_from(ASIDES).unwrap_or(usize::MAX);
    let cut = newest_first.len() > most;
    newest_first.truncate(most);
    newest_first.reverse();
    cut
}
