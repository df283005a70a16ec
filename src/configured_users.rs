//! Users that the configuration names: the operator and the members.

use jiff::Timestamp;

use crate::conversation::routing::senders::Senders;
use crate::conversation::transcript::PhoneNumber;
use crate::engine::approvals::user_access::change_operator_number;
use crate::store::people::users::{self, FirstContactRole};
use crate::store::{Conn, QueryResult};

/// Configured users, by their phone numbers.
#[derive(Clone, Copy)]
pub(crate) struct ConfiguredUsers<'a> {
    pub(crate) admin: Option<&'a PhoneNumber>,
    pub(crate) members: &'a [PhoneNumber],
}

/// Registers the configured users who are not known.
pub(crate) fn register_users(
    conn: &mut Conn,
    configured: ConfiguredUsers<'_>,
    now: Timestamp,
) -> QueryResult<()> {
    if let Some(phone) = configured.admin {
        users::ensure_user(conn, phone, FirstContactRole::Admin, now)?;
    }
    for phone in configured.members {
        users::ensure_user(conn, phone, FirstContactRole::Member, now)?;
    }
    Ok(())
}

/// Applies a change of the operator's number. An earlier number that is listed as a member keeps its role.
pub(crate) fn change_admin(
    conn: &mut Conn,
    earlier: Option<&PhoneNumber>,
    configured: ConfiguredUsers<'_>,
    senders: &Senders,
    now: Timestamp,
) -> QueryResult<()> {
    let ConfiguredUsers { admin, members } = configured;
    let Some(number) = admin.filter(|number| earlier != Some(number)) else { return Ok(()) };
    let earlier = earlier.filter(|earlier| !members.contains(earlier));
    change_operator_number(conn, (earlier, number), senders, now)
}
