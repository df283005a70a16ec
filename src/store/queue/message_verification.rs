//! Verification of ambiguous messages, whose signature also matches other fields, against the record of their channel.

use diesel::prelude::*;
use jiff::Timestamp;

use super::inbound_message_row::InboundMessageRow;
use crate::conversation::channel::Channel;
use crate::conversation::routing::verification::{FieldAuthority, MessageFields, VerificationOutcome};
use crate::conversation::transcript::{Address, EventId, UserAddress};
use crate::store::Conn;
use crate::store::codec::{ms, parse_media};
use crate::store::people::addresses;
use crate::store::schema::{inbound_events, users};

/// Fields of an ambiguous message, which the record of its channel verifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedFields {
    pub channel: Channel,
    /// Id of the message on the channel.
    pub id: String,
    pub fields: MessageFields,
}

/// Loads the fields that an ambiguous message claims, with the carrier's id of the message.
pub fn load_claimed_fields(conn: &mut Conn, event: EventId) -> QueryResult<Option<ClaimedFields>> {
    let row: Option<(InboundMessageRow, Option<UserAddress>)> = inbound_events::table
        .find(event)
        .filter(inbound_events::authority.eq(FieldAuthority::Ambiguous))
        .inner_join(users::table)
        .select((InboundMessageRow::as_select(), addresses::first_address()))
        .first(conn)
        .optional()?;
    let Some((row, first_address)) = row else { return Ok(None) };
    let from = row.from.into_sender().map(|(_, address)| address).or(first_address);
    let fields = MessageFields {
        from: Address::new(from.as_ref().map_or("", UserAddress::name)),
        to: row.to_addr,
        body: row.body,
        media_count: parse_media(row.media.as_deref())?.len(),
    };
    Ok(Some(ClaimedFields { channel: row.channel, id: row.external_id, fields }))
}

/// Records the verification of an ambiguous message against the carrier's record.
pub fn record_verification(
    conn: &mut Conn,
    event: EventId,
    outcome: VerificationOutcome,
    now: Timestamp,
) -> QueryResult<()> {
    let ambiguous = inbound_events::authority.eq(FieldAuthority::Ambiguous);
    diesel::update(inbound_events::table.find(event).filter(ambiguous))
        .set((inbound_events::authority.eq(outcome.authority()), inbound_events::updated_at.eq(ms(now))))
        .execute(conn)
        .map(drop)
}
