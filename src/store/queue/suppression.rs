//! Suppression of queued messages: after an opt-out or a block, of an address that is no longer the user's, and of messages
//! whose reason is gone.

use diesel::prelude::*;
use jiff::Timestamp;

use super::outbox::{OPEN, OutboxState, SETTLED};
use super::outbox_events::{ChangedMessage, record_changed_messages};
use crate::conversation::transcript::{AddressId, OutboxId, UserId};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::database::statement_cache::cached_update;
use crate::store::people::addresses::{self, OptTarget};
use crate::store::schema::outbox;

/// Suppresses the queued messages to an address, or to all addresses of a user who opted out or was blocked.
pub fn suppress_messages_to(conn: &mut Conn, target: OptTarget, now: Timestamp) -> QueryResult<()> {
    let queued: Vec<(OutboxId, Option<AddressId>)> = outbox::table
        .filter(OPEN.and(outbox::user_id.eq(target.user)).and(outbox::state.eq(OutboxState::Queued)))
        .select((outbox::id, outbox::address_id))
        .load(conn)?;
    let is_target = |address: Option<AddressId>| {
        target.address.is_none() || address.is_none() || address == target.address
    };
    for (id, _) in queued.into_iter().filter(|(_, address)| is_target(*address)) {
        suppress_message(conn, id, now)?;
    }
    Ok(())
}

/// Suppresses the queued messages to one address that is no longer the user's.
pub(in crate::store) fn suppress_messages_to_address(
    conn: &mut Conn,
    user: UserId,
    address: AddressId,
    now: Timestamp,
) -> QueryResult<()> {
    let queued: Vec<OutboxId> = outbox::table
        .filter(OPEN.and(outbox::user_id.eq(user)).and(outbox::state.eq(OutboxState::Queued)))
        .filter(outbox::address_id.eq(address))
        .select(outbox::id)
        .load(conn)?;
    queued.into_iter().try_for_each(|id| suppress_message(conn, id, now))
}

/// Suppresses the queued messages to a room.
pub fn suppress_messages_to_room(conn: &mut Conn, room: UserId, now: Timestamp) -> QueryResult<()> {
    let queued: Vec<OutboxId> = outbox::table
        .filter(outbox::room_id.eq(room).and(outbox::state.eq(OutboxState::Queued)))
        .select(outbox::id)
        .load(conn)?;
    queued.into_iter().try_for_each(|id| suppress_message(conn, id, now))
}

/// Suppresses queued messages whose key has this prefix before a colon.
pub fn suppress_messages_by_key(conn: &mut Conn, key_prefix: &str, now: Timestamp) -> QueryResult<()> {
    let (from, to) = (format!("{key_prefix}:"), format!("{key_prefix};"));
    let has_prefix = outbox::dedupe_key.ge(from).and(outbox::dedupe_key.lt(to));
    let changed = cached_update(outbox::table.filter(has_prefix.and(outbox::state.eq(OutboxState::Queued))))
        .set((outbox::state.eq(OutboxState::Suppressed), outbox::updated_at.eq(ms(now))))
        .returning(ChangedMessage::as_returning())
        .get_results(conn)?;
    record_changed_messages(conn, changed, now)
}

/// Suppresses messages like [`suppress_messages_by_key`], and erases their text, including the text of sent messages.
pub fn withdraw_messages_by_key(conn: &mut Conn, key_prefix: &str, now: Timestamp) -> QueryResult<()> {
    suppress_messages_by_key(conn, key_prefix, now)?;
    let (from, to) = (format!("{key_prefix}:"), format!("{key_prefix};"));
    let has_prefix = outbox::dedupe_key.ge(from).and(outbox::dedupe_key.lt(to));
    let is_settled = outbox::state.eq_any(SETTLED);
    cached_update(outbox::table.filter(has_prefix.and(is_settled))).set(outbox::body.eq("")).run(conn)
}

pub(in crate::store) fn suppress_message(conn: &mut Conn, id: OutboxId, now: Timestamp) -> QueryResult<()> {
    let changed = cached_update(outbox::table.find(id).filter(outbox::state.ne(OutboxState::Accepted)))
        .set((outbox::state.eq(OutboxState::Suppressed), outbox::updated_at.eq(ms(now))))
        .returning(ChangedMessage::as_returning())
        .get_results(conn)?;
    record_changed_messages(conn, changed, now)
}

/// Records the carrier's report that the recipient has opted out.
pub fn record_carrier_opt_out(conn: &mut Conn, id: OutboxId, now: Timestamp) -> QueryResult<UserId> {
    suppress_message(conn, id, now)?;
    let (user, address) = outbox::table.find(id).select((outbox::user_id, outbox::address_id)).first(conn)?;
    let target = OptTarget { user, address };
    addresses::opt_out(conn, target, now, now)?;
    suppress_messages_to(conn, target, now)?;
    Ok(user)
}
