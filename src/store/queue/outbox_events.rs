//! Events of outbound messages.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::stream_events::StreamEventKind;
use crate::conversation::transcript::{ConversationId, OutboxId, TurnId};
use crate::store::Conn;
use crate::store::schema::outbox;
use crate::store::stream::recording::{self, EventOwner, record_event};

/// Columns of a message that changed.
#[derive(Debug, Clone, Copy, Queryable, Selectable)]
#[diesel(table_name = outbox)]
pub(in crate::store) struct ChangedMessage {
    pub(super) id: OutboxId,
    turn_id: Option<TurnId>,
    conversation_id: Option<ConversationId>,
    state: DeliveryStatus,
    delivery: Option<DeliveryStatus>,
}

impl ChangedMessage {
    /// Records the events of a message that was inserted: it was queued, and perhaps claimed.
    pub(super) fn record_insertion(self, conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
        if self.state != DeliveryStatus::Queued {
            self.record_status(conn, DeliveryStatus::Queued, now)?;
        }
        self.record_change(conn, now)
    }

    /// Records the event of the change.
    pub(in crate::store) fn record_change(self, conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
        if matches!(self.state, DeliveryStatus::Queued | DeliveryStatus::Unknown) {
            recording::record_waiting_message();
        }
        let status = match (self.state, self.delivery) {
            (DeliveryStatus::Accepted, Some(reported)) => reported,
            (state, _) => state,
        };
        self.record_status(conn, status, now)
    }

    fn record_status(self, conn: &mut Conn, status: DeliveryStatus, now: Timestamp) -> QueryResult<()> {
        let owner = EventOwner { turn: self.turn_id, conversation: self.conversation_id };
        record_event(conn, owner, now, StreamEventKind::OutboundMessage(self.id, status))
    }
}

/// Records the events of messages that changed.
pub(in crate::store) fn record_changed_messages(
    conn: &mut Conn,
    changed: Vec<ChangedMessage>,
    now: Timestamp,
) -> QueryResult<()> {
    changed.into_iter().try_for_each(|message| message.record_change(conn, now))
}
