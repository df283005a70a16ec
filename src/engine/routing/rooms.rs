//! Messages in rooms that are not answered there.

use super::turn_start::{RoomCheck, TurnStart, TurnStartOutcome};
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::routing::rooms::{RoomMode, SENT_PRIVATELY};
use crate::conversation::transcript::{User, UserStatus};
use crate::engine::reply_address::ReplyAddress;
use crate::store::QueryResult;
use crate::store::people::rooms::{self, Room};
use crate::store::people::{addresses, users};
use crate::store::queue::outbox::{self, NewOutboundMessage};

/// Reply in a room if the private chat is needed and has been stopped.
const STOPPED_PRIVATELY: &str = "I can't write to you in private. Send me START in our private chat first.";

impl TurnStart<'_> {
    pub(super) fn check_room(&mut self, user: &User, event: &InboundEvent) -> QueryResult<RoomCheck> {
        let Some(id) = event.room else { return Ok(RoomCheck::Answered { also_unaddressed: false }) };
        // An admin may have blocked the room or its author since the message was received.
        let room = rooms::load_room(self.conn, id)?.filter(Room::is_open);
        match room.filter(|_| user.status == UserStatus::Active) {
            Some(room) => Ok(RoomCheck::Answered { also_unaddressed: room.mode == RoomMode::Ai }),
            None => self.skip_message(event, "room_off").map(RoomCheck::Ended),
        }
    }

    /// Lets a message in a room be processed as one of the private chat, and reports that in the room.
    pub(super) fn move_to_private_chat(
        &mut self,
        user: &User,
        event: &InboundEvent,
    ) -> QueryResult<TurnStartOutcome> {
        let addresses = addresses::load_addresses(self.conn, user.id)?;
        let private = addresses.iter().find(|stored| stored.address.is_on(event.channel));
        let Some(private) = private.filter(|stored| stored.opted_out_at.is_none()) else {
            let notice = self.room_message(user, event, STOPPED_PRIVATELY)?;
            outbox::queue_message(self.conn, &notice, self.now)?;
            return self.skip_message(event, "no_private_chat");
        };
        let message = (event.id, user.id, event.conversation_owner(user.id));
        rooms::move_to_private_chat(self.conn, message, private.id, self.now)?;
        let notice = self.room_message(user, event, SENT_PRIVATELY)?;
        outbox::queue_message(self.conn, &notice, self.now)?;
        Ok(TurnStartOutcome::Answered)
    }

    /// Creates a message to the room of `event` that belongs to no turn. Its user is the room.
    fn room_message(
        &mut self,
        author: &User,
        event: &InboundEvent,
        text: &str,
    ) -> QueryResult<NewOutboundMessage> {
        let message = ReplyAddress::from_message(author, event).reply_message(text.to_owned());
        let room = users::load_user(self.conn, event.conversation_owner(author.id))?;
        Ok(NewOutboundMessage { user: room.id, key: format!("{}:room", message.key), ..message })
    }
}
