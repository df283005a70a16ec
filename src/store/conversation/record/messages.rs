//! Records of inbound and outbound messages: of turns, without a turn, and waiting for a turn.

use diesel::prelude::*;
use jiff::Timestamp;
use serde::Serialize;

use super::delivery::{DeliveryColumns, DeliveryFailure};
use crate::conversation::channel::Channel;
use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::routing::inbound_message::{MessageMedia, MessageSource};
use crate::conversation::routing::message_origin::MessageOrigin;
use crate::conversation::transcript::{Address, EventId, OutboxId, TurnId, UserId};
use crate::store::codec::parse_media;
use crate::store::column_types::{StoredCount, StoredJson};
use crate::store::conversation::record::turn_range::{MessageTimeRange, TurnRange, select_turn_ids};
use crate::store::conversation::record::turns::HIDDEN_ANSWER;
use crate::store::people::rooms;
use crate::store::queue::inbound_messages::{InboundOutcome, InboundState, PENDING};
use crate::store::queue::notifications;
use crate::store::queue::outbox::OutboundKind;
use crate::store::schema::{inbound_events, outbox};
use crate::store::{Conn, QueryResult};

/// Text that replaces a notification which mentions what its user has watched. Only the user reads it.
const HIDDEN_NOTIFICATION: &str = "(A message about what somebody has watched.)";
/// Maximum number of unassigned messages of each kind on a page.
const MAX_UNASSIGNED: usize = 50;

/// Inbound message.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Serialize)]
#[diesel(table_name = inbound_events)]
pub struct InboundRecord {
    pub id: EventId,
    #[serde(skip)]
    #[diesel(column_name = turn_id)]
    pub turn: Option<TurnId>,
    pub channel: Channel,
    #[diesel(column_name = external_id)]
    carrier_id: String,
    #[diesel(column_name = to_addr)]
    to: String,
    pub body: String,
    media: Option<StoredJson>,
    #[diesel(column_name = provider_at)]
    sent_at: Timestamp,
    pub received_at: Timestamp,
    pub via: MessageSource,
    state: InboundState,
    outcome: Option<InboundOutcome>,
    #[diesel(column_name = outcome_reason)]
    reason: Option<String>,
    /// Name of the author, for a message in a room.
    #[serde(skip)]
    #[diesel(select_expression = rooms::author_in_room())]
    pub author: Option<String>,
}

impl InboundRecord {
    pub fn origin(&self) -> MessageOrigin {
        MessageOrigin::from_message_id(self.channel, &self.carrier_id)
    }

    pub fn media(&self) -> QueryResult<Vec<MessageMedia>> {
        parse_media(self.media.as_ref().map(StoredJson::as_str))
    }

    /// Returns the reason why the message got no answer.
    pub fn skip_reason(&self) -> Option<&str> {
        self.reason.as_deref().filter(|_| self.outcome == Some(InboundOutcome::Skipped))
    }
}

/// Outbound message.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Serialize)]
#[diesel(table_name = outbox)]
pub struct OutboundRecord {
    pub id: OutboxId,
    #[serde(skip)]
    #[diesel(column_name = user_id)]
    pub user: UserId,
    #[serde(skip)]
    #[diesel(column_name = turn_id)]
    pub turn: Option<TurnId>,
    kind: OutboundKind,
    #[diesel(column_name = provider_sid)]
    carrier_id: Option<String>,
    #[diesel(column_name = to_addr)]
    to: String,
    #[diesel(column_name = from_addr)]
    from: String,
    pub body: String,
    #[diesel(column_name = media_url)]
    pub picture: Option<String>,
    #[diesel(deserialize_as = StoredCount)]
    pub segments: u32,
    #[serde(flatten)]
    #[diesel(embed)]
    delivery: DeliveryColumns,
    #[diesel(column_name = created_at)]
    pub written_at: Timestamp,
    accepted_at: Option<Timestamp>,
    #[serde(skip)]
    #[diesel(column_name = dedupe_key)]
    key: String,
}

impl OutboundRecord {
    /// Replaces the text of a message without a turn if it mentions what its user has watched.
    pub(in crate::store) fn hide_viewing(&mut self) {
        if notifications::is_about_viewing(&self.key) && !self.body.is_empty() {
            HIDDEN_NOTIFICATION.clone_into(&mut self.body);
        }
    }

    /// Replaces the text, which mentions what somebody has watched.
    pub(in crate::store) fn hide_body(&mut self) {
        if !self.body.is_empty() {
            HIDDEN_ANSWER.clone_into(&mut self.body);
        }
    }

    pub fn channel(&self) -> Channel {
        Address::new(&self.from).channel()
    }

    pub fn status(&self) -> DeliveryStatus {
        self.delivery.status(self.channel())
    }

    /// Returns the reason why the message has failed or is delayed.
    pub fn failure(&self) -> QueryResult<DeliveryFailure> {
        self.delivery.failure()
    }
}

/// Loads the inbound messages of turns, in the order they were sent.
pub(super) fn load_inbound_of_turns(conn: &mut Conn, turns: TurnRange) -> QueryResult<Vec<InboundRecord>> {
    inbound_events::table
        .filter(inbound_events::turn_id.eq_any(select_turn_ids(turns).nullable()))
        .order((inbound_events::provider_at, inbound_events::id))
        .select(InboundRecord::as_select())
        .load(conn)
}

/// Loads the outbound messages of turns.
pub(super) fn load_outbound_of_turns(conn: &mut Conn, turns: TurnRange) -> QueryResult<Vec<OutboundRecord>> {
    outbox::table
        .filter(outbox::turn_id.eq_any(select_turn_ids(turns).nullable()))
        .order(outbox::id)
        .select(OutboundRecord::as_select())
        .load(conn)
}

/// Messages of a conversation outside its turns, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnassignedMessages {
    /// Outbound messages without a turn.
    pub notifications: Vec<OutboundRecord>,
    /// Inbound messages that got no turn.
    pub unanswered: Vec<InboundRecord>,
    /// Messages that no turn has processed yet; none once the conversation has ended.
    pub waiting: Vec<InboundRecord>,
    /// True if there are older messages of any kind.
    pub truncated: bool,
}

impl UnassignedMessages {
    /// Loads the messages of a page. `waiting_user` is the user whose waiting messages are included; `None` once the
    /// conversation has ended.
    pub(super) fn load_for_page(
        conn: &mut Conn,
        range: MessageTimeRange,
        waiting_user: Option<UserId>,
    ) -> QueryResult<Self> {
        let mut page = Self {
            notifications: outbox::table
                .filter(outbox::conversation_id.eq(range.conversation))
                .filter(outbox::created_at.ge(range.from).and(outbox::created_at.lt(range.to)))
                .order(outbox::id.desc())
                .limit(UNASSIGNED_QUERY_LIMIT)
                .select(OutboundRecord::as_select())
                .load(conn)?,
            unanswered: inbound_events::table
                .filter(inbound_events::conversation_id.eq(range.conversation))
                .filter(
                    inbound_events::received_at.ge(range.from).and(inbound_events::received_at.lt(range.to)),
                )
                .order(inbound_events::id.desc())
                .limit(UNASSIGNED_QUERY_LIMIT)
                .select(InboundRecord::as_select())
                .load(conn)?,
            ..Self::default()
        };
        page.truncated =
            reverse_and_truncate(&mut page.notifications) | reverse_and_truncate(&mut page.unanswered);
        if let Some(user) = waiting_user {
            page.load_waiting(conn, user)?;
        }
        Ok(page)
    }

    /// Loads the messages to a user's conversation, or to that of a room, that no turn has processed yet, in the order they
    /// were sent.
    pub(super) fn load_waiting(&mut self, conn: &mut Conn, owner: UserId) -> QueryResult<()> {
        self.waiting = inbound_events::table
            .filter(rooms::owner_of_message().eq(owner).and(PENDING))
            .order((inbound_events::provider_at.desc(), inbound_events::id.desc()))
            .limit(UNASSIGNED_QUERY_LIMIT)
            .select(InboundRecord::as_select())
            .load(conn)?;
        self.truncated |= reverse_and_truncate(&mut self.waiting);
        Ok(())
    }
}

/// Number of rows to query: one more than the maximum, to detect older messages.
const UNASSIGNED_QUERY_LIMIT: i64 = MAX_UNASSIGNED as i64 + 1;

/// Reverses a list to oldest first, and drops the row beyond the maximum; returns whether there was one.
fn reverse_and_truncate<T>(newest_first: &mut Vec<T>) -> bool {
    let has_more = newest_first.len() > MAX_UNASSIGNED;
    newest_first.truncate(MAX_UNASSIGNED);
    newest_first.reverse();
    has_more
}

/// Loads one outbound message.
pub(super) fn load_outbound(conn: &mut Conn, id: OutboxId) -> QueryResult<Option<OutboundRecord>> {
    outbox::table.find(id).select(OutboundRecord::as_select()).first(conn).optional()
}

/// Loads one inbound message if it was finished without a turn.
pub(super) fn load_unanswered(conn: &mut Conn, id: EventId) -> QueryResult<Option<InboundRecord>> {
    inbound_events::table
        .find(id)
        .filter(inbound_events::turn_id.is_null().and(inbound_events::outcome.is_not_null()))
        .select(InboundRecord::as_select())
        .first(conn)
        .optional()
}

/// Loads the inbound and outbound messages of a user that belong to no turn, oldest first.
pub(in crate::store) fn load_user_messages_without_turn(
    conn: &mut Conn,
    user: UserId,
) -> QueryResult<(Vec<InboundRecord>, Vec<OutboundRecord>)> {
    let received = inbound_events::table
        .filter(inbound_events::user_id.eq(user).and(inbound_events::turn_id.is_null()))
        .order(inbound_events::id)
        .select(InboundRecord::as_select())
        .load(conn)?;
    let sent = outbox::table
        .filter(outbox::user_id.eq(user).and(outbox::turn_id.is_null()))
        .order(outbox::id)
        .select(OutboundRecord::as_select())
        .load(conn)?;
    Ok((received, sent))
}
