//! Links and unlinks of addresses by the operator.

use diesel::prelude::*;
use jiff::Timestamp;
use serde_json::json;

use super::addresses::{self, StoredAddress};
use super::users::{self as user_rows, FirstContactRole};
use crate::conversation::linking::MAX_ADDRESSES;
use crate::conversation::transcript::{AddressId, UserAddress, UserId, UserStatus};
use crate::store::Conn;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::pending_action::{self, CloseReason};
use crate::store::queue::inbound_messages::InboundState;
use crate::store::queue::suppression;
use crate::store::schema::{inbound_events, link_codes, outbox, user_addresses};
use crate::store::turns::turn_lifecycle;

/// Outcome of linking an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkOutcome {
    Linked,
    /// The address is one of the user's already.
    Known,
    /// The address belongs to this other user. Only a merge joins two users.
    OtherUser(UserId),
    /// The user has the maximum number of addresses.
    Full,
}

/// Makes an address one of a user's, on the operator's word.
pub fn link_address(
    conn: &mut Conn,
    user: UserId,
    address: &UserAddress,
    actor: Actor,
    now: Timestamp,
) -> QueryResult<LinkOutcome> {
    match addresses::find_address(conn, address)? {
        Some((_, owner)) if owner == user => return Ok(LinkOutcome::Known),
        Some((_, owner)) => return Ok(LinkOutcome::OtherUser(owner)),
        None => {}
    }
    if addresses::load_addresses(conn, user)?.len() >= MAX_ADDRESSES {
        return Ok(LinkOutcome::Full);
    }
    let id = addresses::insert_address(conn, user, address, now)?;
    record_change(conn, "link", user, (id, actor), now)?;
    Ok(LinkOutcome::Linked)
}

/// Outcome of unlinking an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnlinkOutcome {
    Unlinked,
    /// The user has no other address.
    LastAddress,
    /// A turn of the user is running, which may send its answer to the address.
    Busy,
    /// The user has no such address.
    Unknown,
}

/// Takes an address from a user. It becomes that of a newcomer, or of a blocked user if the user is blocked, and keeps its
/// opt-out. Messages that were already processed remain the user's.
pub fn unlink_address(
    conn: &mut Conn,
    user: UserId,
    id: AddressId,
    actor: Actor,
    now: Timestamp,
) -> QueryResult<UnlinkOutcome> {
    let stored = addresses::load_addresses(conn, user)?;
    if !stored.iter().any(|address: &StoredAddress| address.id == id) {
        return Ok(UnlinkOutcome::Unknown);
    }
    if stored.len() == 1 {
        return Ok(UnlinkOutcome::LastAddress);
    }
    if turn_lifecycle::load_active_turn(conn, user)?.is_some() {
        return Ok(UnlinkOutcome::Busy);
    }
    record_change(conn, "unlink", user, (id, actor), now)?;
    let prompt = pending_action::load_pending_action(conn, user)?;
    if prompt.is_some_and(|prompt| prompt.address == Some(id)) {
        pending_action::close_pending_action(conn, user, CloseReason::Dropped, now)?;
    }
    let status = user_rows::load_user(conn, user)?.status;
    let newcomer = user_rows::insert_user(conn, FirstContactRole::Newcomer, now)?;
    if status == UserStatus::Blocked {
        user_rows::set_status(conn, newcomer, UserStatus::Blocked, now)?;
    }
    suppression::suppress_messages_to_address(conn, user, id, now)?;
    let is_from_address = inbound_events::user_id.eq(user).and(inbound_events::address_id.eq(id));
    let is_waiting = inbound_events::state.eq(InboundState::Pending);
    diesel::update(inbound_events::table.filter(is_from_address.and(is_waiting)))
        .set(inbound_events::user_id.eq(newcomer))
        .execute(conn)?;
    diesel::update(inbound_events::table.filter(is_from_address))
        .set(inbound_events::address_id.eq(None::<AddressId>))
        .execute(conn)?;
    diesel::update(outbox::table.filter(outbox::user_id.eq(user).and(outbox::address_id.eq(id))))
        .set(outbox::address_id.eq(None::<AddressId>))
        .execute(conn)?;
    diesel::delete(link_codes::table.filter(link_codes::new_address_id.eq(id))).execute(conn)?;
    diesel::update(user_addresses::table.find(id))
        .set((user_addresses::user_id.eq(newcomer), user_addresses::preferred_from.eq(None::<String>)))
        .execute(conn)?;
    Ok(UnlinkOutcome::Unlinked)
}

fn record_change(
    conn: &mut Conn,
    kind: &'static str,
    user: UserId,
    (id, actor): (AddressId, Actor),
    now: Timestamp,
) -> QueryResult<()> {
    let detail = json!({ "address": id.0 });
    audit::record_change(conn, &NewAuditEntry { actor, kind, subject: AuditSubject::User(user), detail }, now)
}
