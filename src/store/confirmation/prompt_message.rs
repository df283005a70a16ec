//! Outbound message with which a pending action was last asked.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::channel::Channel;
use crate::conversation::channel_list;
use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::transcript::{Address, AddressId, OutboxId, UserId};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::queue::outbox::{OutboundKind, OutboxState};
use crate::store::schema::outbox;

/// Message that contains a confirmation prompt.
#[derive(Queryable, Selectable)]
#[diesel(table_name = outbox)]
pub(super) struct PromptMessage {
    id: OutboxId,
    from_addr: Address,
    pub(super) address_id: Option<AddressId>,
    pub(super) accepted_at: Option<Timestamp>,
    provider_created_at: Option<Timestamp>,
    delivery: Option<DeliveryStatus>,
    /// Room to which it was sent; `None` for a private chat.
    #[diesel(column_name = room_id)]
    pub(super) room: Option<UserId>,
}

impl PromptMessage {
    pub(super) fn load(conn: &mut Conn, id: OutboxId) -> QueryResult<Self> {
        outbox::table.find(id).select(Self::as_select()).first(conn)
    }

    /// Returns whether another message was sent to the same chat after the prompt. In a room, the messages to others count
    /// as well, in the order in which they arrived: one that was written earlier may be late. What only the console shows,
    /// such as the answer to a program, follows no prompt that was sent.
    pub(super) fn was_followed(&self, conn: &mut Conn, user: UserId) -> QueryResult<bool> {
        let others = outbox::table.filter(outbox::id.ne(self.id)).into_boxed();
        let others = match self.room {
            None => others
                .filter(outbox::id.gt(self.id).and(outbox::user_id.eq(user)).and(outbox::room_id.is_null())),
            Some(room) => {
                let is_open = outbox::accepted_at.is_null();
                let arrived_later = outbox::accepted_at.ge(self.accepted_at.map(ms));
                others
                    .filter(outbox::room_id.eq(room))
                    .filter(outbox::id.gt(self.id).or(is_open).or(arrived_later.assume_not_null()))
            }
        };
        let others = match self.channel() == channel_list::CONSOLE {
            true => others,
            false => others.filter(outbox::from_addr.ne(Address::console().as_str().to_owned())),
        };
        let sent: i64 = others
            .filter(outbox::state.ne_all([OutboxState::Failed, OutboxState::Suppressed]))
            // A queued notification waits for the reply, so it was not sent after the prompt.
            .filter(outbox::kind.ne(OutboundKind::Notice).or(outbox::state.ne(OutboxState::Queued)))
            .count()
            .get_result(conn)?;
        Ok(sent > 0)
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
