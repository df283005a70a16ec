//! Row of a received message, as loaded for routing.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::channel::Channel;
use crate::conversation::grammar::triage::TriageDecision;
use crate::conversation::routing::button_press::ButtonPress;
use crate::conversation::routing::inbound_message::{InboundEvent, MessageSource};
use crate::conversation::routing::message_origin::MessageOrigin;
use crate::conversation::routing::verification::FieldAuthority;
use crate::conversation::transcript::{
    Address, AddressId, EventId, OptKeyword, OutboxId, UserAddress, UserId,
};
use crate::store::codec::{parse_media, unreadable_column};
use crate::store::schema::{inbound_events, user_addresses};

#[derive(Queryable, Selectable)]
#[diesel(table_name = inbound_events)]
pub(super) struct InboundMessageRow {
    id: EventId,
    pub(super) channel: Channel,
    pub(super) external_id: String,
    #[diesel(embed)]
    pub(super) from: SenderRow,
    pub(super) to_addr: Address,
    pub(super) body: String,
    pub(super) media: Option<String>,
    via: MessageSource,
    authority: FieldAuthority,
    carrier_word: Option<String>,
    pressed_message: Option<OutboxId>,
    provider_at: Timestamp,
    received_at: Timestamp,
    wants_answer: bool,
    #[diesel(column_name = room_id)]
    room: Option<UserId>,
    addressed: bool,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = inbound_events)]
pub(super) struct SenderRow {
    address_id: Option<AddressId>,
    #[diesel(select_expression = sender_address())]
    address: Option<UserAddress>,
}

#[diesel::dsl::auto_type]
fn sender_address() -> _ {
    user_addresses::table
        .filter(user_addresses::id.nullable().eq(inbound_events::address_id))
        .select(user_addresses::address)
        .single_value()
}

impl SenderRow {
    pub(super) fn into_sender(self) -> Option<(AddressId, UserAddress)> {
        self.address_id.zip(self.address)
    }
}

/// Returns the value of the column `carrier_word`. Carriers report only these three keywords.
pub(super) fn carrier_word_column_value(keyword: Option<OptKeyword>) -> Option<&'static str> {
    match keyword? {
        OptKeyword::Out => Some("stop"),
        OptKeyword::In => Some("start"),
        OptKeyword::Help => Some("help"),
        OptKeyword::Yes => None,
    }
}

/// Value of the column `pressed_message` for a button below no current message.
const VOID_BUTTON: OutboxId = OutboxId(0);

/// Returns the value of the column `pressed_message`.
pub(super) fn press_column_value(press: ButtonPress) -> OutboxId {
    match press {
        ButtonPress::On(message) => message,
        ButtonPress::Void => VOID_BUTTON,
    }
}

fn parse_press(message: OutboxId) -> ButtonPress {
    if message == VOID_BUTTON { ButtonPress::Void } else { ButtonPress::On(message) }
}

impl InboundMessageRow {
    pub(super) fn into_events(rows: Vec<Self>) -> QueryResult<Vec<InboundEvent>> {
        rows.into_iter().map(Self::into_event).collect()
    }

    pub(super) fn into_event(self) -> QueryResult<InboundEvent> {
        Ok(InboundEvent {
            id: self.id,
            channel: self.channel,
            from: self.from.into_sender(),
            origin: MessageOrigin::from_message_id(self.channel, &self.external_id),
            external_id: self.external_id,
            to: self.to_addr,
            body: self.body,
            media: parse_media(self.media.as_deref())?,
            via: self.via,
            authority: self.authority,
            carrier_word: match self.carrier_word.as_deref() {
                None => None,
                Some("stop") => Some(OptKeyword::Out),
                Some("start") => Some(OptKeyword::In),
                Some("help") => Some(OptKeyword::Help),
                Some(_) => return Err(unreadable_column("carrier word")),
            },
            press: self.pressed_message.map(parse_press),
            sent_at: self.provider_at,
            received_at: self.received_at,
            room: self.room,
            is_addressed: self.addressed,
            triage: if self.wants_answer { TriageDecision::Answer } else { TriageDecision::NoAnswer },
        })
    }
}
