//! The texts of a thread, in and out, with what is shown on them.

use std::collections::HashMap;

use diesel::prelude::*;
use jiff::Timestamp;

use super::head::Head;
use super::{ByTurn, Turn, by_turn};
use crate::conversation::origin::Origin;
use crate::conversation::transcript::{ChannelKind, EventId, Media, OutboxId, UserId, Via};
use crate::conversation::way::Way;
use crate::store::access;
use crate::store::codec::{channel, media, ms, number, time, unreadable, via};
use crate::store::console::fate::{self, Fate, Why};
use crate::store::ledger::PENDING;
use crate::store::schema::{inbound_events, outbox, reactions};
use crate::store::{Conn, QueryResult};

/// Texts without a turn that one page shows at most, of each kind.
const ASIDES: i64 = 50;

/// A text of theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    pub id: EventId,
    pub body: String,
    pub media: Vec<Media>,
    pub channel: ChannelKind,
    pub via: Via,
    pub by: Writer,
    pub at: Timestamp,
    /// Why it got no answer.
    pub skipped: Option<String>,
    /// What we reacted with.
    pub reactions: Vec<String>,
}

/// Who wrote a text of theirs down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Writer {
    Sender,
    /// The operator, as a test user.
    Typed,
    /// A button that the operator pressed.
    Button,
    /// A program, with the API key of this name.
    Key(String),
    /// The API, from a browser that is signed in.
    Session,
}

/// A text of ours.
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
    let mut given = reactions_on(conn, On::Theirs, rows.iter().map(|row| row.id).collect())?;
    by_turn(rows.into_iter().map(|row| {
        let turn = row.turn_id.unwrap_or_default();
        let reactions = given.remove(&row.id).unwrap_or_default();
        Ok((turn, row.read(conn, reactions)?))
    }))
}

pub(super) fn sent(conn: &mut Conn, turns: &[i64]) -> QueryResult<ByTurn<Sent>> {
    let rows: Vec<OutRow> = outbox::table
        .filter(outbox::turn_id.eq_any(turns.iter().map(|id| Some(*id))))
        .order(outbox::id)
        .select(OutRow::as_select())
        .load(conn)?;
    let mut given = reactions_on(conn, On::Ours, rows.iter().map(|row| row.id).collect())?;
    by_turn(rows.into_iter().map(|row| {
        let turn = row.turn_id.unwrap_or_default();
        let reactions = given.remove(&row.id).unwrap_or_default();
        Ok((turn, row.read(conn, reactions)?))
    }))
}

/// Where texts without a turn belong to a page: between its first and its last text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    user: UserId,
    since: Timestamp,
    received: (i64, i64),
    sent: (i64, i64),
}

impl Span {
    /// The newest page of an open conversation has no end.
    pub(super) fn of(head: &Head, turns: &[Turn], before: i64) -> Self {
        let goes_on = head.end.is_none() && before == i64::MAX;
        let span = |ids: Vec<i64>| {
            let first = ids.iter().min().copied();
            let last = if goes_on { Some(i64::MAX) } else { ids.iter().max().copied() };
            (first.unwrap_or(0), last.unwrap_or(0))
        };
        let received = turns.iter().flat_map(|turn| &turn.received).map(|text| text.id.0).collect();
        let sent = turns.iter().flat_map(|turn| &turn.sent).map(|text| text.id.0).collect();
        Self { user: head.user, since: head.started_at, received: span(received), sent: span(sent) }
    }
}

pub(super) fn notices(conn: &mut Conn, span: &Span) -> QueryResult<Vec<Sent>> {
    let rows: Vec<OutRow> = outbox::table
        .filter(outbox::user_id.eq(span.user.0).and(outbox::turn_id.is_null()))
        .filter(outbox::id.ge(span.sent.0).and(outbox::id.le(span.sent.1)))
        .filter(outbox::created_at.ge(ms(span.since)))
        .order(outbox::id.desc())
        .limit(ASIDES)
        .select(OutRow::as_select())
        .load(conn)?;
    with_reactions(conn, rows)
}

/// One text of ours that no turn stands behind.
pub fn notice(conn: &mut Conn, id: OutboxId) -> QueryResult<Option<Sent>> {
    let row: Option<OutRow> = outbox::table.find(id.0).select(OutRow::as_select()).first(conn).optional()?;
    Ok(with_reactions(conn, row.into_iter().collect())?.pop())
}

fn with_reactions(conn: &mut Conn, rows: Vec<OutRow>) -> QueryResult<Vec<Sent>> {
    let mut given = reactions_on(conn, On::Ours, rows.iter().map(|row| row.id).collect())?;
    let read = |row: OutRow| {
        let reactions = given.remove(&row.id).unwrap_or_default();
        row.read(conn, reactions)
    };
    rows.into_iter().map(read).collect()
}

pub(super) fn unanswered(conn: &mut Conn, span: &Span) -> QueryResult<Vec<Received>> {
    let rows: Vec<InRow> = inbound_events::table
        .filter(inbound_events::user_id.eq(span.user.0).and(inbound_events::turn_id.is_null()))
        .filter(inbound_events::id.ge(span.received.0).and(inbound_events::id.le(span.received.1)))
        .filter(inbound_events::received_at.ge(ms(span.since)).and(inbound_events::outcome.is_not_null()))
        .order(inbound_events::id.desc())
        .limit(ASIDES)
        .select(InRow::as_select())
        .load(conn)?;
    rows.into_iter().map(|row| row.read(conn, Vec::new())).collect()
}

/// One text of theirs that got no turn.
pub fn unanswered_text(conn: &mut Conn, id: EventId) -> QueryResult<Option<Received>> {
    let over = inbound_events::turn_id.is_null().and(inbound_events::outcome.is_not_null());
    let row: Option<InRow> =
        inbound_events::table.find(id.0).filter(over).select(InRow::as_select()).first(conn).optional()?;
    row.map(|row| row.read(conn, Vec::new())).transpose()
}

/// A user's texts that no turn has taken up yet.
pub(super) fn waiting(conn: &mut Conn, user: UserId) -> QueryResult<Vec<Received>> {
    let rows: Vec<InRow> = inbound_events::table
        .filter(inbound_events::user_id.eq(user.0).and(PENDING))
        .order((inbound_events::provider_at, inbound_events::id))
        .limit(ASIDES)
        .select(InRow::as_select())
        .load(conn)?;
    rows.into_iter().map(|row| row.read(conn, Vec::new())).collect()
}

impl InRow {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    Theirs,
    Ours,
}

/// The reactions that stand on texts, by text.
fn reactions_on(conn: &mut Conn, on: On, texts: Vec<i64>) -> QueryResult<HashMap<i64, Vec<String>>> {
    let stands = reactions::removed_at.is_null();
    let texts: Vec<Option<i64>> = texts.into_iter().map(Some).collect();
    let rows: Vec<(Option<i64>, Option<String>)> = match on {
        On::Theirs => reactions::table
            .filter(reactions::event_id.eq_any(texts).and(stands))
            .order(reactions::id)
            .select((reactions::event_id, reactions::emoji))
            .load(conn)?,
        On::Ours => reactions::table
            .filter(reactions::outbox_id.eq_any(texts).and(stands))
            .order(reactions::id)
            .select((reactions::outbox_id, reactions::emoji))
            .load(conn)?,
    };
    let mut given: HashMap<i64, Vec<String>> = HashMap::new();
    for (text, emoji) in rows {
        let text = text.ok_or_else(|| unreadable("reaction"))?;
        given.entry(text).or_default().push(emoji.unwrap_or_else(|| "sticker".to_owned()));
    }
    Ok(given)
}
