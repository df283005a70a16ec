//! Inbound and outbound messages of a conversation, with their reactions.

use std::collections::HashMap;

use diesel::prelude::*;
use jiff::Timestamp;

use super::{ByTurn, by_turn};
use crate::conversation::inbound_message::{Media, Via};
use crate::conversation::origin::Origin;
use crate::conversation::transcript::{ChannelKind, EventId, OutboxId, UserId};
use crate::conversation::way::Way;
use crate::store::access;
use crate::store::codec::{channel, media, number, time, via};
use crate::store::console::fate::{self, Fate, Why};
use crate::store::ledger::PENDING;
use crate::store::reactions::{self, On, Standing};
use crate::store::schema::{inbound_events, outbox};
use crate::store::span::Time;
use crate::store::stream::texts::ASIDES;
use crate::store::{Conn, QueryResult};

/// Inbound message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    pub id: EventId,
    pub body: String,
    pub media: Vec<Media>,
    pub channel: ChannelKind,
    pub via: Via,
    pub by: Writer,
    pub at: Timestamp,
    /// Reason why the message got no answer.
    pub skipped: Option<String>,
    /// Reactions that Dialarr gave to the message.
    pub reactions: Vec<String>,
}

/// Origin of an inbound message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Writer {
    Sender,
    /// Typed by the operator, as a test user.
    Typed,
    /// Created by a button that the operator pressed.
    Button,
    /// Sent by a program with the API key of this name.
    Key(String),
    /// Sent over the API from a signed-in browser.
    Session,
}

/// Outbound message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub id: OutboxId,
    pub body: String,
    pub picture: Option<String>,
    pub segments: u32,
    pub way: Way,
    pub fate: Fate,
    pub why: Why,
    pub at: Timestamp,
    pub reactions: Vec<String>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = inbound_events)]
struct InRow {
    id: i64,
    turn_id: Option<i64>,
    channel: String,
    external_id: String,
    body: String,
    media: Option<String>,
    via: String,
    received_at: i64,
    outcome: Option<String>,
    outcome_reason: Option<String>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = outbox)]
struct OutRow {
    id: i64,
    turn_id: Option<i64>,
    body: String,
    media_url: Option<String>,
    segments: i64,
    created_at: i64,
    #[diesel(embed)]
    fate: fate::Row,
}

pub(super) fn received(conn: &mut Conn, turns: &[i64]) -> QueryResult<ByTurn<Received>> {
    let rows: Vec<InRow> = inbound_events::table
        .filter(inbound_events::turn_id.eq_any(turns.iter().map(|id| Some(*id))))
        .order((inbound_events::provider_at, inbound_events::id))
        .select(InRow::as_select())
        .load(conn)?;
    let turns: Vec<i64> = rows.iter().filter_map(|row| row.turn_id).collect();
    by_turn(turns.into_iter().zip(InRow::read_all(conn, rows)?).map(Ok))
}

pub(super) fn sent(conn: &mut Conn, turns: &[i64]) -> QueryResult<ByTurn<Sent>> {
    let rows: Vec<OutRow> = outbox::table
        .filter(outbox::turn_id.eq_any(turns.iter().map(|id| Some(*id))))
        .order(outbox::id)
        .select(OutRow::as_select())
        .load(conn)?;
    let turns: Vec<i64> = rows.iter().filter_map(|row| row.turn_id).collect();
    by_turn(turns.into_iter().zip(OutRow::read_all(conn, rows)?).map(Ok))
}

/// Loads the outbound messages on a page that have no turn.
pub(super) fn notices(conn: &mut Conn, time: Time) -> QueryResult<Vec<Sent>> {
    let rows: Vec<OutRow> = outbox::table
        .filter(outbox::conversation_id.eq(time.conversation.0))
        .filter(outbox::created_at.ge(time.from).and(outbox::created_at.lt(time.to)))
        .order(outbox::id.desc())
        .limit(ASIDES)
        .select(OutRow::as_select())
        .load(conn)?;
    OutRow::read_all(conn, rows)
}

/// Loads one outbound message that has no turn.
pub fn notice(conn: &mut Conn, id: OutboxId) -> QueryResult<Option<Sent>> {
    let row: Option<OutRow> = outbox::table.find(id.0).select(OutRow::as_select()).first(conn).optional()?;
    Ok(OutRow::read_all(conn, row.into_iter().collect())?.pop())
}

/// Loads the inbound messages on a page that got no turn.
pub(super) fn unanswered(conn: &mut Conn, time: Time) -> QueryResult<Vec<Received>> {
    let rows: Vec<InRow> = inbound_events::table
        .filter(inbound_events::conversation_id.eq(time.conversation.0))
        .filter(inbound_events::received_at.ge(time.from).and(inbound_events::received_at.lt(time.to)))
        .order(inbound_events::id.desc())
        .limit(ASIDES)
        .select(InRow::as_select())
        .load(conn)?;
    InRow::read_all(conn, rows)
}

/// Loads one inbound message that got no turn.
pub fn unanswered_text(conn: &mut Conn, id: EventId) -> QueryResult<Option<Received>> {
    let over = inbound_events::turn_id.is_null().and(inbound_events::outcome.is_not_null());
    let row: Option<InRow> =
        inbound_events::table.find(id.0).filter(over).select(InRow::as_select()).first(conn).optional()?;
    Ok(InRow::read_all(conn, row.into_iter().collect())?.pop())
}

/// Loads a user's messages that no turn has processed yet, in the order they were sent.
pub(super) fn waiting(conn: &mut Conn, user: UserId) -> QueryResult<Vec<Received>> {
    let mut rows: Vec<InRow> = inbound_events::table
        .filter(inbound_events::user_id.eq(user.0).and(PENDING))
        .order((inbound_events::provider_at.desc(), inbound_events::id.desc()))
        .limit(ASIDES)
        .select(InRow::as_select())
        .load(conn)?;
    rows.reverse();
    InRow::read_all(conn, rows)
}

impl InRow {
    fn read_all(conn: &mut Conn, rows: Vec<Self>) -> QueryResult<Vec<Received>> {
        let texts = rows.iter().map(|row| row.id).collect();
        let mut given = shown(reactions::standing(conn, On::Theirs, texts)?);
        let read = |row: Self| {
            let reactions = given.remove(&row.id).unwrap_or_default();
            row.read(conn, reactions)
        };
        rows.into_iter().map(read).collect()
    }

    fn read(self, conn: &mut Conn, reactions: Vec<String>) -> QueryResult<Received> {
        let channel = channel(&self.channel)?;
        let by = match Origin::of(channel, &self.external_id) {
            Origin::Sender => Writer::Sender,
            Origin::Typed => Writer::Typed,
            Origin::Button => Writer::Button,
            Origin::Key(key) => Writer::Key(access::key_name(conn, key)?),
            Origin::Session => Writer::Session,
        };
        Ok(Received {
            id: EventId(self.id),
            body: self.body,
            media: media(self.media.as_deref())?,
            channel,
            via: via(&self.via)?,
            by,
            at: time(self.received_at)?,
            skipped: self.outcome_reason.filter(|_| self.outcome.as_deref() == Some("skipped")),
            reactions,
        })
    }
}

impl OutRow {
    fn read_all(conn: &mut Conn, rows: Vec<Self>) -> QueryResult<Vec<Sent>> {
        let texts = rows.iter().map(|row| row.id).collect();
        let mut given = shown(reactions::standing(conn, On::Ours, texts)?);
        let read = |row: Self| {
            let reactions = given.remove(&row.id).unwrap_or_default();
            row.read(conn, reactions)
        };
        rows.into_iter().map(read).collect()
    }

    fn read(self, conn: &mut Conn, reactions: Vec<String>) -> QueryResult<Sent> {
        Ok(Sent {
            id: OutboxId(self.id),
            body: self.body,
            picture: self.media_url,
            segments: number(self.segments)?,
            way: self.fate.way(),
            fate: self.fate.fate()?,
            why: self.fate.why(conn)?,
            at: time(self.created_at)?,
            reactions,
        })
    }
}

/// Formats the reactions to display, by message.
fn shown(standing: HashMap<i64, Vec<Standing>>) -> HashMap<i64, Vec<String>> {
    let emoji = |given: Standing| given.emoji.unwrap_or_else(|| "sticker".to_owned());
    standing.into_iter().map(|(text, given)| (text, given.into_iter().map(emoji).collect())).collect()
}
