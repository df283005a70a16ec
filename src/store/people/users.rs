//! Users, one row per phone number.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::channel_list;
use crate::conversation::people::naming::UserName;
use crate::conversation::transcript::{
    Address, PhoneNumber, TurnId, User, UserId, UserRights, UserRole, UserStatus,
};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::library::title_requests;
use crate::store::schema::{inbound_events, turns, users};

#[derive(Queryable, Selectable)]
#[diesel(table_name = users)]
struct UserRow {
    id: UserId,
    phone: PhoneNumber,
    display_name: Option<String>,
    status: UserStatus,
    role: UserRole,
    can_add: bool,
    can_delete: bool,
    can_4k: bool,
    opted_out_at: Option<Timestamp>,
    test: bool,
}

impl From<UserRow> for User {
    fn from(row: UserRow) -> Self {
        Self {
            id: row.id,
            phone: row.phone,
            name: row.display_name,
            status: row.status,
            rights: UserRights {
                // A test user is always a member, whatever role is stored, because a fictional user must not make
                // decisions for real users.
                role: if row.test { UserRole::Member } else { row.role },
                add: row.can_add,
                delete: row.can_delete,
                four_k: row.can_4k,
            },
            opted_out: row.opted_out_at.is_some(),
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

/// Loads the user of a turn, and returns whether the cancellation of the turn was requested.
pub fn load_turn_user(conn: &mut Conn, turn: TurnId) -> QueryResult<(User, bool)> {
    let (user, cancel_requested): (UserRow, bool) = turns::table
        .find(turn)
        .inner_join(users::table)
        .select((UserRow::as_select(), turns::cancel_requested_at.is_not_null()))
        .first(conn)?;
    Ok((user.into(), cancel_requested))
}

pub fn find_user_by_phone(conn: &mut Conn, phone: &PhoneNumber) -> QueryResult<Option<User>> {
    let user = users::table.filter(users::phone.eq(phone.as_str())).select(UserRow::as_select());
    Ok(user.first(conn).optional()?.map(User::from))
}

/// Returns the user with this number, and creates the user if the number is unknown. The role and status of an existing
/// user do not change.
pub fn ensure_user(
    conn: &mut Conn,
    phone: &PhoneNumber,
    role: FirstContactRole,
    now: Timestamp,
) -> QueryResult<UserId> {
    // Nearly every sender exists, which needs one query and no write.
    if let Some(id) = find_user_id(conn, phone)? {
        return Ok(id);
    }
    let (status, role) = match role {
        FirstContactRole::Newcomer => (UserStatus::Pending, UserRole::Member),
        FirstContactRole::Member => (UserStatus::Active, UserRole::Member),
        FirstContactRole::Admin => (UserStatus::Active, UserRole::Admin),
    };
    diesel::insert_into(users::table)
        .values((
            users::phone.eq(phone.as_str()),
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
    let names: Vec<Option<String>> =
        users::table.filter(users::display_name.is_not_null()).select(users::display_name).load(conn)?;
    Ok(names.into_iter().flatten().collect())
}

/// Loads all users who are not forgotten, longest known first.
pub fn load_known_users(conn: &mut Conn) -> QueryResult<Vec<User>> {
    let rows: Vec<UserRow> = users::table
        .filter(users::forgotten_at.is_null())
        .order(users::id)
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
                .and(users::test.eq(false)),
        )
        .order(users::id)
        .select(UserRow::as_select())
        .load(conn)?;
    Ok(rows.into_iter().map(User::from).collect())
}

/// Returns whether this user is the only active admin.
pub fn is_last_admin(conn: &mut Conn, id: UserId) -> QueryResult<bool> {
    let admins = load_admins(conn)?;
    Ok(matches!(admins.as_slice(), [only] if only.id == id))
}

/// Returns Dialarr's number to which the user last sent a message by phone. Messages to the user are sent from it.
pub fn load_last_address(conn: &mut Conn, id: UserId) -> QueryResult<Option<Address>> {
    inbound_events::table
        .filter(inbound_events::user_id.eq(id))
        .filter(inbound_events::channel.ne(channel_list::CONSOLE))
        .filter(inbound_events::channel.ne(channel_list::TERMINAL))
        .order(inbound_events::id.desc())
        .select(inbound_events::to_addr)
        .first(conn)
        .optional()
}

fn find_user_id(conn: &mut Conn, phone: &PhoneNumber) -> QueryResult<Option<UserId>> {
    users::table.filter(users::phone.eq(phone.as_str())).select(users::id).first(conn).optional()
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

/// Outcome of applying an opt-out or opt-in keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptOutcome {
    Changed,
    /// A keyword that was sent later has already been applied.
    Overtaken,
}

/// Opts a user out, and withdraws the user's deferred additions. `sent_at` is the time at which the keyword was sent,
/// which may be long before it was received.
pub fn opt_out(conn: &mut Conn, id: UserId, sent_at: Timestamp, now: Timestamp) -> QueryResult<OptOutcome> {
    let outcome = set_opted_out(conn, id, Some(now), (sent_at, now))?;
    if outcome == OptOutcome::Changed {
        title_requests::withdraw_additions(conn, id, now)?;
    }
    Ok(outcome)
}

pub fn opt_in(conn: &mut Conn, id: UserId, sent_at: Timestamp, now: Timestamp) -> QueryResult<OptOutcome> {
    set_opted_out(conn, id, None, (sent_at, now))
}

fn set_opted_out(
    conn: &mut Conn,
    id: UserId,
    opted_out_at: Option<Timestamp>,
    (sent_at, now): (Timestamp, Timestamp),
) -> QueryResult<OptOutcome> {
    // The sent time comes from the carrier. It is limited to `now`, because keywords received after one with a future
    // time would otherwise count as older.
    let sent_at = ms(sent_at.min(now));
    let is_latest = users::opt_word_at.is_null().or(users::opt_word_at.le(sent_at));
    let updated_rows = diesel::update(users::table.find(id).filter(is_latest))
        .set((
            users::opted_out_at.eq(opted_out_at),
            users::opt_word_at.eq(sent_at),
            users::updated_at.eq(ms(now)),
        ))
        .execute(conn)?;
    Ok(if updated_rows == 1 { OptOutcome::Changed } else { OptOutcome::Overtaken })
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::store::scratch;

    #[test]
    fn keyword_with_a_future_time_is_overridden_by_the_next() {
        let mut conn = scratch();
        let phone = PhoneNumber::parse("+15550100001").unwrap();
        let now = Timestamp::UNIX_EPOCH;
        let ann = ensure_user(&mut conn, &phone, FirstContactRole::Member, now).unwrap();
        let (ahead, later) = (now + SignedDuration::from_hours(8), now + SignedDuration::from_secs(1));

        assert_eq!(opt_out(&mut conn, ann, ahead, now), Ok(OptOutcome::Changed));

        assert_eq!(opt_in(&mut conn, ann, later, later), Ok(OptOutcome::Changed));
        assert!(!load_user(&mut conn, ann).unwrap().opted_out);
    }

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
