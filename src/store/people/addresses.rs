//! Addresses of users. An opt-out belongs to an address, and messages to the user's other addresses are still sent.

use diesel::dsl;
use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::channel_list;
use crate::conversation::transcript::{Address, AddressId, UserAddress, UserId};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::library::title_requests;
use crate::store::schema::{inbound_events, link_codes, user_addresses, users};

/// First address of the user in the row of `users`.
#[dsl::auto_type]
pub(in crate::store) fn first_address() -> _ {
    user_addresses::table
        .filter(user_addresses::user_id.eq(users::id))
        .order(user_addresses::id)
        .select(user_addresses::address)
        .single_value()
}

/// Condition that the user in the row of `users` has opted out of messages to all addresses.
#[dsl::auto_type]
pub(in crate::store) fn is_opted_out() -> _ {
    dsl::not(dsl::exists(
        user_addresses::table
            .filter(user_addresses::user_id.eq(users::id).and(user_addresses::opted_out_at.is_null())),
    ))
}

/// Address of a user, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = user_addresses)]
pub struct StoredAddress {
    pub id: AddressId,
    pub user_id: UserId,
    pub address: UserAddress,
    pub opted_out_at: Option<Timestamp>,
    /// Our address, if the user prefers notifications from it to this address.
    pub preferred_from: Option<Address>,
}

pub fn find_address(
    conn: &mut Conn,
    address: impl Into<UserAddress>,
) -> QueryResult<Option<(AddressId, UserId)>> {
    user_addresses::table
        .filter(user_addresses::address.eq(address.into().to_text()))
        .select((user_addresses::id, user_addresses::user_id))
        .first(conn)
        .optional()
}

pub fn load_address(conn: &mut Conn, id: AddressId) -> QueryResult<StoredAddress> {
    user_addresses::table.find(id).select(StoredAddress::as_select()).first(conn)
}

/// Loads the addresses of a user, oldest first.
pub fn load_addresses(conn: &mut Conn, user: UserId) -> QueryResult<Vec<StoredAddress>> {
    user_addresses::table
        .filter(user_addresses::user_id.eq(user))
        .order(user_addresses::id)
        .select(StoredAddress::as_select())
        .load(conn)
}

/// Stores an unknown address as an address of a user.
pub fn insert_address(
    conn: &mut Conn,
    user: UserId,
    address: &UserAddress,
    now: Timestamp,
) -> QueryResult<AddressId> {
    diesel::insert_into(user_addresses::table)
        .values((
            user_addresses::user_id.eq(user),
            user_addresses::address.eq(address.to_text()),
            user_addresses::created_at.eq(ms(now)),
        ))
        .returning(user_addresses::id)
        .get_result(conn)
}

/// Deletes the addresses of a user who is erased. Messages keep no reference to them.
pub(in crate::store) fn delete_addresses(conn: &mut Conn, user: UserId) -> QueryResult<()> {
    diesel::update(inbound_events::table.filter(inbound_events::user_id.eq(user)))
        .set(inbound_events::address_id.eq(None::<AddressId>))
        .execute(conn)?;
    let ids =
        user_addresses::table.filter(user_addresses::user_id.eq(user)).select(user_addresses::id.nullable());
    let is_about_user = link_codes::user_id.eq(user).or(link_codes::new_address_id.eq_any(ids));
    diesel::delete(link_codes::table.filter(is_about_user)).execute(conn)?;
    diesel::delete(user_addresses::table.filter(user_addresses::user_id.eq(user))).execute(conn).map(drop)
}

/// Route of messages that are no replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRoute {
    /// Address of ours to which the user last sent a message, or from which the user prefers notifications; `None` if the
    /// user has sent no message.
    pub our_address: Option<Address>,
    /// Address of the user; `None` for an erased user.
    pub address: Option<(AddressId, UserAddress)>,
}

/// Loads the route of messages that are no replies: the one that the user prefers, else the one that the user last used.
/// Addresses without an opt-out come first.
pub fn load_message_route(conn: &mut Conn, user: UserId) -> QueryResult<MessageRoute> {
    let mut addresses = load_addresses(conn, user)?;
    if addresses.iter().any(|address| address.opted_out_at.is_none()) {
        addresses.retain(|address| address.opted_out_at.is_none());
    }
    let identify = |address: &StoredAddress| (address.id, address.address.clone());
    if let Some(preferred) = addresses.iter().find(|address| address.preferred_from.is_some()) {
        let our_address = preferred.preferred_from.clone();
        return Ok(MessageRoute { our_address, address: Some(identify(preferred)) });
    }
    let ids: Vec<AddressId> = addresses.iter().map(|address| address.id).collect();
    let last: Option<(Address, Option<AddressId>)> = inbound_events::table
        .filter(inbound_events::user_id.eq(user))
        .filter(inbound_events::channel.ne(channel_list::CONSOLE))
        .filter(inbound_events::channel.ne(channel_list::TERMINAL))
        .filter(inbound_events::address_id.is_null().or(inbound_events::address_id.eq_any(ids)))
        .order(inbound_events::id.desc())
        .select((inbound_events::to_addr, inbound_events::address_id))
        .first(conn)
        .optional()?;
    let used = last.as_ref().and_then(|(_, used)| addresses.iter().find(|address| Some(address.id) == *used));
    Ok(MessageRoute {
        address: used.or(addresses.first()).map(identify),
        our_address: last.map(|(our_address, _)| our_address),
    })
}

/// Loads the route of messages to one address.
pub fn load_route_to(conn: &mut Conn, id: AddressId) -> QueryResult<MessageRoute> {
    let stored = load_address(conn, id)?;
    let our_address: Option<Address> = inbound_events::table
        .filter(inbound_events::user_id.eq(stored.user_id).and(inbound_events::address_id.eq(id)))
        .order(inbound_events::id.desc())
        .select(inbound_events::to_addr)
        .first(conn)
        .optional()?;
    Ok(MessageRoute { our_address, address: Some((id, stored.address)) })
}

/// Loads the addresses of ours to which a user sent the newest messages from an address, the last used first.
pub fn load_our_addresses(conn: &mut Conn, user: UserId, id: AddressId) -> QueryResult<Vec<Address>> {
    let newest: Vec<(Address, Option<AddressId>)> = inbound_events::table
        .filter(inbound_events::user_id.eq(user))
        .filter(inbound_events::channel.ne(channel_list::CONSOLE))
        .order(inbound_events::id.desc())
        .limit(NEWEST_MESSAGES)
        .select((inbound_events::to_addr, inbound_events::address_id))
        .load(conn)?;
    let mut ours: Vec<Address> = Vec::new();
    for (our_address, _) in newest.into_iter().filter(|(_, address)| *address == Some(id)) {
        if !ours.contains(&our_address) {
            ours.push(our_address);
        }
    }
    Ok(ours)
}

/// Number of newest messages of a user among which the used addresses are searched.
const NEWEST_MESSAGES: i64 = 200;

/// Returns whether a user ever sent a message from an address, and not only in the terminal or the console.
pub fn has_sent_message(conn: &mut Conn, user: UserId) -> QueryResult<bool> {
    dsl::select(dsl::exists(
        inbound_events::table
            .filter(inbound_events::user_id.eq(user))
            .filter(inbound_events::channel.ne(channel_list::CONSOLE))
            .filter(inbound_events::channel.ne(channel_list::TERMINAL)),
    ))
    .get_result(conn)
}

/// Returns whether a user ever sent a message from an address, so that the channel lets us write to it.
pub fn has_written_from(conn: &mut Conn, user: UserId, address: AddressId) -> QueryResult<bool> {
    let messages = inbound_events::table
        .filter(inbound_events::user_id.eq(user).and(inbound_events::address_id.eq(address)));
    dsl::select(dsl::exists(messages)).get_result(conn)
}

/// Makes notifications go to an address of the user from one of ours; `None` makes them go to the last used address.
pub fn set_preferred_address(
    conn: &mut Conn,
    user: UserId,
    preferred: Option<(AddressId, &Address)>,
) -> QueryResult<()> {
    diesel::update(user_addresses::table.filter(user_addresses::user_id.eq(user)))
        .set(user_addresses::preferred_from.eq(None::<String>))
        .execute(conn)?;
    let Some((id, our_address)) = preferred else { return Ok(()) };
    diesel::update(
        user_addresses::table.filter(user_addresses::id.eq(id).and(user_addresses::user_id.eq(user))),
    )
    .set(user_addresses::preferred_from.eq(our_address.as_str()))
    .execute(conn)
    .map(drop)
}

/// Outcome of applying an opt-out or opt-in keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptOutcome {
    Changed,
    /// A keyword that was sent later has already been applied.
    Overtaken,
}

/// Address to which an opt-out or opt-in keyword applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptTarget {
    pub user: UserId,
    /// `None` for all addresses of the user.
    pub address: Option<AddressId>,
}

/// Opts an address out. If the user can be reached at no other address, the user's deferred additions are withdrawn.
/// `sent_at` is the time at which the keyword was sent, which may be long before it was received.
pub fn opt_out(
    conn: &mut Conn,
    target: OptTarget,
    sent_at: Timestamp,
    now: Timestamp,
) -> QueryResult<OptOutcome> {
    let outcome = set_opted_out(conn, target, Some(now), (sent_at, now))?;
    if outcome == OptOutcome::Changed && is_user_opted_out(conn, target.user)? {
        title_requests::withdraw_additions(conn, target.user, now)?;
    }
    Ok(outcome)
}

pub fn opt_in(
    conn: &mut Conn,
    target: OptTarget,
    sent_at: Timestamp,
    now: Timestamp,
) -> QueryResult<OptOutcome> {
    set_opted_out(conn, target, None, (sent_at, now))
}

fn is_user_opted_out(conn: &mut Conn, user: UserId) -> QueryResult<bool> {
    users::table.find(user).select(is_opted_out()).first(conn)
}

fn set_opted_out(
    conn: &mut Conn,
    target: OptTarget,
    opted_out_at: Option<Timestamp>,
    (sent_at, now): (Timestamp, Timestamp),
) -> QueryResult<OptOutcome> {
    // The sent time comes from the carrier. It is limited to `now`, because keywords received after one with a future
    // time would otherwise count as older.
    let sent_at = ms(sent_at.min(now));
    let is_latest = user_addresses::opt_word_at.is_null().or(user_addresses::opt_word_at.le(sent_at));
    let addresses = load_addresses(conn, target.user)?;
    let mut updated_rows = 0;
    for stored in addresses.iter().filter(|stored| target.address.is_none_or(|id| id == stored.id)) {
        updated_rows += diesel::update(user_addresses::table.find(stored.id).filter(is_latest))
            .set((user_addresses::opted_out_at.eq(opted_out_at), user_addresses::opt_word_at.eq(sent_at)))
            .execute(conn)?;
    }
    Ok(if updated_rows == 0 { OptOutcome::Overtaken } else { OptOutcome::Changed })
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::super::users::{self, FirstContactRole};
    use super::*;
    use crate::conversation::transcript::PhoneNumber;
    use crate::store::scratch;

    #[test]
    fn keyword_with_a_future_time_is_overridden_by_the_next() {
        let mut conn = scratch();
        let phone = PhoneNumber::parse("+15550100001").unwrap();
        let now = Timestamp::UNIX_EPOCH;
        let user = users::ensure_user(&mut conn, &phone, FirstContactRole::Member, now).unwrap();
        let ann = OptTarget { user, address: None };
        let (ahead, later) = (now + SignedDuration::from_hours(8), now + SignedDuration::from_secs(1));

        assert_eq!(opt_out(&mut conn, ann, ahead, now), Ok(OptOutcome::Changed));

        assert_eq!(opt_in(&mut conn, ann, later, later), Ok(OptOutcome::Changed));
        assert!(!users::load_user(&mut conn, user).unwrap().opted_out);
    }

    #[test]
    fn opt_out_of_one_address_leaves_the_other_reachable() {
        let mut conn = scratch();
        let now = Timestamp::UNIX_EPOCH;
        let [first, second] = ["+15550100001", "+15550100009"].map(|text| UserAddress::parse(text).unwrap());
        let (first_id, ann) = users::ensure_sender(&mut conn, &first, FirstContactRole::Member, now).unwrap();
        let second_id = insert_address(&mut conn, ann, &second, now).unwrap();
        let target = |address| OptTarget { user: ann, address: Some(address) };

        assert_eq!(opt_out(&mut conn, target(first_id), now, now), Ok(OptOutcome::Changed));

        assert!(users::load_sender(&mut conn, ann, Some(first_id)).unwrap().opted_out);
        assert!(!users::load_sender(&mut conn, ann, Some(second_id)).unwrap().opted_out);
        assert!(!users::load_user(&mut conn, ann).unwrap().opted_out);
        assert_eq!(load_message_route(&mut conn, ann).unwrap().address, Some((second_id, second)));
        opt_out(&mut conn, target(second_id), now, now).unwrap();
        assert!(users::load_user(&mut conn, ann).unwrap().opted_out);
    }
}
