//! Inbound and outbound messages of a conversation, with their reactions.

use std::collections::HashMap;

use diesel::prelude::*;
use jiff::Timestamp;

use super::{RowsByTurn, group_rows_by_turn};
use crate::conversation::routing::inbound_message::{MessageMedia, MessageSource};
use crate::conversation::routing::message_origin::MessageOrigin;
use crate::conversation::routing::transport::MessageTransport;
use crate::conversation::transcript::{ChannelKind, EventId, OutboxId, UserId};
use crate::store::codec::{channel, convert_integer, parse_media, timestamp_from_ms, via};
use crate::store::console::delivery_status::{self, DeliveryFailure, DeliveryStatus};
use crate::store::console_access;
use crate::store::conversation::reactions::{self, ActiveReaction, ReactedSide};
use crate::store::conversation::turn_range::MessageTimeRange;
use crate::store::queue::inbound_messages::PENDING;
use crate::store::schema::{inbound_events, outbox};
use crate::store::stream::messages::ASIDES;
use crate::store::{Conn, QueryResult};

/// Inbound message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboundEntry {
    pub id: EventId,
    pub body: String,
    pub media: Vec<MessageMedia>,
    pub channel: ChannelKind,
    pub via: MessageSource,
    pub author: InboundAuthor,
    pub at: Timestamp,
    /// Reason why the message got no answer.
    pub skipped: Option<String>,
    /// Reactions that Dialarr gave to the message.
    pub reactions: Vec<String>,
}

/// Origin of an inbound message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboundAuthor {
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
pub struct OutboundEntry {
    pub id: OutboxId,
    pub body: String,
    pub picture: Option<String>,
    pub segments: u32,
    pub transport: MessageTransport,
    pub status: DeliveryStatus,
    pub failure: DeliveryFailure,
    pub at: Timestamp,
    pub reactions: Vec<String>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = inbound_events)]
struct InboundEntryRow {
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
struct OutboundEntryRow {
    id: i64,
    turn_id: Option<i64>,
    body: String,
    media_url: Option<String>,
    segments: i64,
    created_at: i64,
    #[diesel(embed)]
    status_row: delivery_status::DeliveryStatusRow,
}

pub(super) fn load_inbound_by_turn(conn: &mut Conn, turns: &[i64]) -> QueryResult<RowsByTurn<InboundEntry>> {
    let rows: Vec<InboundEntryRow> = inbound_events::table
        .filter(inbound_events::turn_id.eq_any(turns.iter().map(|id| Some(*id))))
        .order((inbound_events::provider_at, inbound_events::id))
        .select(InboundEntryRow::as_select())
        .load(conn)?;
    let turns: Vec<i64> = rows.iter().filter_map(|row| row.turn_id).collect();
    group_rows_by_turn(turns.into_iter().zip(InboundEntryRow::into_entries(conn, rows)?).map(Ok))
}

pub(super) fn load_outbound_by_turn(
    conn: &mut Conn,
    turns: &[i64],
) -> QueryResult<RowsByTurn<OutboundEntry>> {
    let rows: Vec<OutboundEntryRow> = outbox::table
        .filter(outbox::turn_id.eq_any(turns.iter().map(|id| Some(*id))))
        .order(outbox::id)
        .select(OutboundEntryRow::as_select())
        .load(conn)?;
    let turns: Vec<i64> = rows.iter().filter_map(|row| row.turn_id).collect();
    group_rows_by_turn(turns.into_iter().zip(OutboundEntryRow::into_entries(conn, rows)?).map(Ok))
}

/// Loads the outbound messages on a page that have no turn.
pub(super) fn load_notification_entries(
    conn: &mut Conn,
    time: MessageTimeRange,
) -> QueryResult<Vec<OutboundEntry>> {
    let rows: Vec<OutboundEntryRow> = outbox::table
        .filter(outbox::conversation_id.eq(time.conversation.0))
        .filter(outbox::created_at.ge(time.from).and(outbox::created_at.lt(time.to)))
        .order(outbox::id.desc())
        .limit(ASIDES)
        .select(OutboundEntryRow::as_select())
        .load(conn)?;
    OutboundEntryRow::into_entries(conn, rows)
}

/// Loads one outbound message that has no turn.
pub fn load_notification_entry(conn: &mut Conn, id: OutboxId) -> QueryResult<Option<OutboundEntry>> {
    let row: Option<OutboundEntryRow> =
        outbox::table.find(id.0).select(OutboundEntryRow::as_select()).first(conn).optional()?;
    Ok(OutboundEntryRow::into_entries(conn, row.into_iter().collect())?.pop())
}

/// Loads the inbound messages on a page that got no turn.
pub(super) fn load_unanswered_entries(
    conn: &mut Conn,
    time: MessageTimeRange,
) -> QueryResult<Vec<InboundEntry>> {
    let rows: Vec<InboundEntryRow> = inbound_events::table
        .filter(inbound_events::conversation_id.eq(time.conversation.0))
        .filter(inbound_events::received_at.ge(time.from).and(inbound_events::received_at.lt(time.to)))
        .order(inbound_events::id.desc())
        .limit(ASIDES)
        .select(InboundEntryRow::as_select())
        .load(conn)?;
    InboundEntryRow::into_entries(conn, rows)
}

/// Loads one inbound message that got no turn.
pub fn load_unanswered_entry(conn: &mut Conn, id: EventId) -> QueryResult<Option<InboundEntry>> {
    let over = inbound_events::turn_id.is_null().and(inbound_events::outcome.is_not_null());
    let row: Option<InboundEntryRow> = inbound_events::table
        .find(id.0)
        .filter(over)
        .select(InboundEntryRow::as_select())
        .first(conn)
        .optional()?;
    Ok(InboundEntryRow::into_entries(conn, row.into_iter().collect())?.pop())
}

/// Loads a user's messages that no turn has processed yet, in the order they were sent.
pub(super) fn load_waiting_entries(conn: &mut Conn, user: UserId) -> QueryResult<Vec<InboundEntry>> {
    let mut rows: Vec<InboundEntryRow> = inbound_events::table
        .filter(inbound_events::user_id.eq(user.0).and(PENDING))
        .order((inbound_events::provider_at.desc(), inbound_events::id.desc()))
        .limit(ASIDES)
        .select(InboundEntryRow::as_select())
        .load(conn)?;
    rows.reverse();
    InboundEntryRow::into_entries(conn, rows)
}

impl InboundEntryRow {
    fn into_entries(conn: &mut Conn, rows: Vec<Self>) -> QueryResult<Vec<InboundEntry>> {
        let texts = rows.iter().map(|row| row.id).collect();
        let mut given =
            format_active_reactions(reactions::load_active_reactions(conn, ReactedSide::Theirs, texts)?);
        let read = |row: Self| {
            let reactions = given.remove(&row.id).unwrap_or_default();
            row.into_entry(conn, reactions)
        };
        rows.into_iter().map(read).collect()
    }

    fn into_entry(self, conn: &mut Conn, reactions: Vec<String>) -> QueryResult<InboundEntry> {
        let channel = channel(&self.channel)?;
        let by = match MessageOrigin::from_message_id(channel, &self.external_id) {
            MessageOrigin::Sender => InboundAuthor::Sender,
            MessageOrigin::TestUser => InboundAuthor::Typed,
            MessageOrigin::Button => InboundAuthor::Button,
            MessageOrigin::Key(key) => InboundAuthor::Key(console_access::load_api_key_name(conn, key)?),
            MessageOrigin::Session => InboundAuthor::Session,
        };
        Ok(InboundEntry {
            id: EventId(self.id),
            body: self.body,
            media: parse_media(self.media.as_deref())?,
            channel,
            via: via(&self.via)?,
            author: by,
            at: timestamp_from_ms(self.received_at)?,
            skipped: self.outcome_reason.filter(|_| self.outcome.as_deref() == Some("skipped")),
            reactions,
        })
    }
}

impl OutboundEntryRow {
    fn into_entries(conn: &mut Conn, rows: Vec<Self>) -> QueryResult<Vec<OutboundEntry>> {
        let texts = rows.iter().map(|row| row.id).collect();
        let mut given =
            format_active_reactions(reactions::load_active_reactions(conn, ReactedSide::Ours, texts)?);
        let read = |row: Self| {
            let reactions = given.remove(&row.id).unwrap_or_default();
            row.into_entry(conn, reactions)
        };
        rows.into_iter().map(read).collect()
    }

    fn into_entry(self, conn: &mut Conn, reactions: Vec<String>) -> QueryResult<OutboundEntry> {
        Ok(OutboundEntry {
            id: OutboxId(self.id),
            body: self.body,
            picture: self.media_url,
            segments: convert_integer(self.segments)?,
            transport: self.status_row.transport(),
            status: self.status_row.delivery_status()?,
            failure: self.status_row.load_delivery_failure(conn)?,
            at: timestamp_from_ms(self.created_at)?,
            reactions,
        })
    }
}

/// Formats the reactions to display, by message.
fn format_active_reactions(standing: HashMap<i64, Vec<ActiveReaction>>) -> HashMap<i64, Vec<String>> {
    let emoji = |given: ActiveReaction| given.emoji.unwrap_or_else(|| "sticker".to_owned());
    standing.into_iter().map(|(text, given)| (text, given.into_iter().map(emoji).collect())).collect()
}
