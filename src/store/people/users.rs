//! Users. Their addresses are in [`super::addresses`].

use diesel::prelude::*;
use jiff::Timestamp;

use super::rooms::IS_PERSON;
use super::{addresses, age_limits};
use crate::conversation::people::naming::UserName;
use crate::conversation::transcript::{
    AddressId, PhoneNumber, TurnId, User, UserAddress, UserId, UserRights, UserRole, UserStatus,
};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::database::statement_cache::CacheStatement;
use crate::store::schema::{inbound_events, turns, user_addresses, users};

#[derive(Queryable, Selectable)]
#[diesel(table_name = users)]
struct UserRow {
    id: UserId,
    #[diesel(select_expression = addresses::first_address())]
    address: Option<UserAddress>,
    display_name: Option<String>,
    status: UserStatus,
    role: UserRole,
    can_add: bool,
    can_delete: bool,
    can_4k: bool,
    parent: bool,
    movie_cap: Option<i64>,
    show_cap: Option<i64>,
    #[diesel(select_expression = addresses::is_opted_out())]
    opted_out: bool,
    test: bool,
}

impl From<UserRow> for User {
    fn from(row: UserRow) -> Self {
        Self {
            id: row.id,
            address: row.address,
            name: row.display_name,
            status: row.status,
            rights: UserRights {
                // A test user is always a member, whatever role is stored, because a fictional user must not make
                // decisions for real users.
                role: if row.test { UserRole::Member } else { row.role },
                add: row.can_add,
                delete: row.can_delete,
                four_k: row.can_4k,
                parent: row.parent,
                caps: age_limits::parse_caps(row.movie_cap, row.show_cap),
            },
            opted_out: row.opted_out,
            test: row.test,
        }
    }
}

/// Role and status that a user gets at the first contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstContactRole {
    Newcomer,
    Member,
    Admin,
}

pub fn load_user(conn: &mut Conn, id: UserId) -> QueryResult<User> {
    users::table.find(id).select(UserRow::as_select()).first(conn).map(User::from)
}

/// Loads the sender of a message from an address; `None` if the address is not known.
pub fn load_sender(conn: &mut Conn, id: UserId, address: Option<AddressId>) -> QueryResult<User> {
    let opted_out = user_addresses::table
        .filter(user_addresses::id.nullable().eq(address))
        .select(user_addresses::opted_out_at.is_not_null())
        .single_value();
    let (row, opted_out): (UserRow, Option<bool>) =
        users::table.find(id).select((UserRow::as_select(), opted_out)).cached().get_result(conn)?;
    let user = User::from(row);
    Ok(User { opted_out: opted_out.unwrap_or(user.opted_out), ..user })
}

/// Loads the user of a turn, as the sender of its messages, and returns whether the cancellation of the turn was requested.
pub fn load_turn_user(conn: &mut Conn, turn: TurnId) -> QueryResult<(User, bool)> {
    let opted_out = inbound_events::table
        .inner_join(user_addresses::table)
        .filter(inbound_events::turn_id.eq(turns::id.nullable()))
        .select(user_addresses::opted_out_at.is_not_null())
        .single_value();
    let (row, cancel_requested, opted_out): (UserRow, bool, Option<bool>) = turns::table
        .find(turn)
        .inner_join(users::table)
        .select((UserRow::as_select(), turns::cancel_requested_at.is_not_null(), opted_out))
        .cached()
        .get_result(conn)?;
    let user = User::from(row);
    Ok((User { opted_out: opted_out.unwrap_or(user.opted_out), ..user }, cancel_requested))
}

pub fn find_user_by_phone(conn: &mut Conn, phone: &PhoneNumber) -> QueryResult<Option<User>> {
    let found = addresses::find_address(conn, phone)?;
    found.map(|(_, user)| load_user(conn, user)).transpose()
}

/// Returns the user with this address, and creates the user if the address is unknown. The role and status of an existing
/// user do not change.
pub fn ensure_user(
    conn: &mut Conn,
    address: impl Into<UserAddress>,
    role: FirstContactRole,
    now: Timestamp,
) -> QueryResult<UserId> {
    ensure_sender(conn, &address.into(), role, now).map(|(_, user)| user)
}

/// Like [`ensure_user`], and also returns the id of the address.
pub fn ensure_sender(
    conn: &mut Conn,
    address: &UserAddress,
    role: FirstContactRole,
    now: Timestamp,
) -> QueryResult<(AddressId, UserId)> {
    // Nearly every sender exists, which needs one query and no write.
    if let Some(known) = addresses::find_address(conn, address)? {
        return Ok(known);
    }
    let user = insert_user(conn, role, now)?;
    Ok((addresses::insert_address(conn, user, address, now)?, user))
}

/// Creates a user without an address.
pub fn insert_user(conn: &mut Conn, role: FirstContactRole, now: Timestamp) -> QueryResult<UserId> {
    let (status, role) = match role {
        FirstContactRole::Newcomer => (UserStatus::Pending, UserRole::Member),
        FirstContactRole::Member => (UserStatus::Active, UserRole::Member),
        FirstContactRole::Admin => (UserStatus::Active, UserRole::Admin),
    };
    diesel::insert_into(users::table)
        .values((
            users::status.eq(status),
            users::role.eq(role),
            users::can_add.eq(true),
            users::can_delete.eq(false),
            users::can_4k.eq(false),
            users::created_at.eq(ms(now)),
            users::updated_at.eq(ms(now)),
        ))
        .returning(users::id)
        .get_result(conn)
}

/// Loads the names of all users, by which a text about a user is recognized.
pub fn load_user_names(conn: &mut Conn) -> QueryResult<Vec<String>> {
    let names: Vec<Option<String>> = users::table
        .filter(users::display_name.is_not_null().and(IS_PERSON))
        .select(users::display_name)
        .load(conn)?;
    Ok(names.into_iter().flatten().collect())
}

/// Loads all users who are not forgotten, longest known first.
pub fn load_known_users(conn: &mut Conn) -> QueryResult<Vec<User>> {
    let rows: Vec<UserRow> = users::table
        .filter(users::forgotten_at.is_null().and(IS_PERSON))
        .order(users::id)
        .select(UserRow::as_select())
        .load(conn)?;
    Ok(rows.into_iter().map(User::from).collect())
}

/// Loads up to `limit` users who are not forgotten and are older than `before`, newest first.
pub fn load_newest_users(conn: &mut Conn, before: UserId, limit: i64) -> QueryResult<Vec<User>> {
    let rows: Vec<UserRow> = users::table
        .filter(users::forgotten_at.is_null().and(users::id.lt(before)).and(IS_PERSON))
        .order(users::id.desc())
        .limit(limit)
        .select(UserRow::as_select())
        .load(conn)?;
    Ok(rows.into_iter().map(User::from).collect())
}

/// Loads up to `limit` active users, longest known first.
pub fn load_active_users(conn: &mut Conn, limit: i64) -> QueryResult<Vec<User>> {
    let rows: Vec<UserRow> = users::table
        .filter(users::forgotten_at.is_null().and(users::status.eq(UserStatus::Active)).and(IS_PERSON))
        .order(users::id)
        .limit(limit)
        .select(UserRow::as_select())
        .load(conn)?;
    Ok(rows.into_iter().map(User::from).collect())
}

/// Loads the active admins, longest known first.
pub fn load_admins(conn: &mut Conn) -> QueryResult<Vec<User>> {
    let rows: Vec<UserRow> = users::table
        .filter(
            users::role
                .eq(UserRole::Admin)
                .and(users::status.eq(UserStatus::Active))
                .and(users::test.eq(false))
                .and(IS_PERSON),
        )
        .order(users::id)
        .select(UserRow::as_select())
        .load(conn)?;
    Ok(rows.into_iter().map(User::from).collect())
}

pub fn has_admin(conn: &mut Conn) -> QueryResult<bool> {
    load_admins(conn).map(|admins| !admins.is_empty())
}

/// Returns whether this user is the only active admin.
pub fn is_last_admin(conn: &mut Conn, id: UserId) -> QueryResult<bool> {
    let admins = load_admins(conn)?;
    Ok(matches!(admins.as_slice(), [only] if only.id == id))
}

pub fn set_name(conn: &mut Conn, id: UserId, name: &UserName, now: Timestamp) -> QueryResult<()> {
    diesel::update(users::table.find(id))
        .set((users::display_name.eq(name.as_str()), users::updated_at.eq(ms(now))))
        .execute(conn)
        .map(drop)
}

pub fn set_rights(conn: &mut Conn, id: UserId, rights: UserRights, now: Timestamp) -> QueryResult<()> {
    diesel::update(users::table.find(id))
        .set((
            users::role.eq(rights.role),
            users::can_add.eq(rights.add),
            users::can_delete.eq(rights.delete),
            users::can_4k.eq(rights.four_k),
            users::updated_at.eq(ms(now)),
        ))
        .execute(conn)
        .map(drop)
}

pub fn set_status(conn: &mut Conn, id: UserId, status: UserStatus, now: Timestamp) -> QueryResult<()> {
    diesel::update(users::table.find(id))
        .set((users::status.eq(status), users::updated_at.eq(ms(now))))
        .execute(conn)
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::scratch;

    #[test]
    fn existing_user_keeps_status_and_role_at_a_restart() {
        let mut conn = scratch();
        let phone = PhoneNumber::parse("+15550100001").unwrap();
        let now = Timestamp::UNIX_EPOCH;
        let id = ensure_user(&mut conn, &phone, FirstContactRole::Member, now).unwrap();
        set_status(&mut conn, id, UserStatus::Blocked, now).unwrap();
        assert_eq!(ensure_user(&mut conn, &phone, FirstContactRole::Admin, now).unwrap(), id);
        let user = load_user(&mut conn, id).unwrap();
        assert_eq!((user.status, user.rights.role), (UserStatus::Blocked, UserRole::Member));
    }
}
