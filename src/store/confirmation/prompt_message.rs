//! Outbound message with which a pending action was last asked.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::channel::Channel;
use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::transcript::{Address, AddressId, OutboxId};
use crate::store::Conn;
use crate::store::schema::outbox;

/// Message that contains a confirmation prompt.
#[derive(Queryable, Selectable)]
#[diesel(table_name = outbox)]
pub(super) struct PromptMessage {
    from_addr: Address,
    pub(super) address_id: Option<AddressId>,
    pub(super) accepted_at: Option<Timestamp>,
    provider_created_at: Option<Timestamp>,
    delivery: Option<DeliveryStatus>,
}

impl PromptMessage {
    pub(super) fn load(conn: &mut Conn, id: OutboxId) -> QueryResult<Self> {
        outbox::table.find(id).select(Self::as_select()).first(conn)
    }

    pub(super) fn channel(&self) -> Channel {
        self.from_addr.channel()
    }

    /// Returns the time of the message by the clock that also dates the user's messages; `None` if there is no such clock.
    pub(super) fn dated_at(&self) -> Option<Timestamp> {
        self.provider_created_at.filter(|_| self.channel().dates_both_sides())
    }

    /// Returns whether the user may have read the message. On some channels, an accepted message waits until it is sent; a
    /// repeated prompt that waits cannot be answered, even if the first prompt was sent.
    pub(super) fn is_readable(&self) -> bool {
        let was_sent =
            self.delivery.is_some_and(|status| status >= DeliveryStatus::Sent && !status.has_failed());
        was_sent || !self.channel().opens_prompts_when_sent()
    }
}
