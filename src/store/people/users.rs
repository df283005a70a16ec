//! Users, one row per phone number.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::people::naming::UserName;
use crate::conversation::transcript::{
    Address, ChannelKind, PhoneNumber, User, UserId, UserRights, UserRole, UserStatus,
};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::library::title_requests;
use crate::store::schema::{inbound_events, users};

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
                // A test user is always a member, even if another role is stored: a fictional user must not decide
                // anything for real users.
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

/// Role and status of a user at the first contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstContactRole {
    Newcomer,
    Member,
    Admin,
}

pub fn load_user(conn: &mut Conn, id: UserId) -> QueryResult<User> {
    users::table.find(id).select(UserRow::as_select()).first(conn).map(User::from)
}

pub fn find_user_by_phone(conn: &mut Conn, phone: &PhoneNumber) -> QueryResult<Option<User>> {
    let user = users::table.filter(users::phone.eq(phone.as_str())).select(UserRow::as_select());
    Ok(user.first(conn).optional()?.map(User::from))
}

/// Returns the user with this number, and creates the user if the number is unknown. The role and status of a known
/// user do not change.
pub fn ensure_user(
    conn: &mut Conn,
    phone: &PhoneNumber,
    newcomer: FirstContactRole,
    now: Timestamp,
) -> QueryResult<UserId> {
    // Nearly every sender is known and needs one query and no write.
    if let Some(known) = find_user_id(conn, phone)? {
        return Ok(known);
    }
    let (status, role) = match newcomer {
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

/// Loads the names of all users who are not forgotten, to distinguish text about a user from text about no user.
pub fn load_user_names(conn: &mut Conn) -> QueryResult<Vec<String>> {
    let names: Vec<Option<String>> =
        users::table.filter(users::display_name.is_not_null()).select(users::display_name).load(conn)?;
    Ok(names.into_iter().flatten().collect())
}

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

/// Returns whether this user is the only admin who can let users in.
pub fn is_last_admin(conn: &mut Conn, id: UserId) -> QueryResult<bool> {
    let admins = load_admins(conn)?;
    Ok(matches!(admins.as_slice(), [only] if only.id == id))
}

/// Returns Dialarr's number to which the user last sent a message by phone: messages to the user are sent from it.
pub fn load_last_address(conn: &mut Conn, id: UserId) -> QueryResult<Option<Address>> {
    inbound_events::table
        .filter(inbound_events::user_id.eq(id).and(inbound_events::channel.eq(ChannelKind::Twilio)))
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

/// Outcome of applying a keyword that opts a user in or out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptOutcome {
    Changed,
    /// A keyword that was sent later was received earlier: messages can overtake each other.
    Overtaken,
}

/// Opts a user out, and gives up the user's waiting additions. `said_at` is the time at which the keyword was sent,
/// which may be long before it was received.
pub fn opt_out(conn: &mut Conn, id: UserId, said_at: Timestamp, now: Timestamp) -> QueryResult<OptOutcome> {
    let change = set_opted_out(conn, id, Some(now), (said_at, now))?;
    if change == OptOutcome::Changed {
        title_requests::withdraw_additions(conn, id, now)?;
    }
    Ok(change)
}

pub fn opt_in(conn: &mut Conn, id: UserId, said_at: Timestamp, now: Timestamp) -> QueryResult<OptOutcome> {
    set_opted_out(conn, id, None, (said_at, now))
}

fn set_opted_out(
    conn: &mut Conn,
    id: UserId,
    at: Option<Timestamp>,
    (said_at, now): (Timestamp, Timestamp),
) -> QueryResult<OptOutcome> {
    // The sender's time comes from the carrier. If Dialarr's clock is behind it, later keywords would count as earlier
    // ones.
    let said_at = ms(said_at.min(now));
    let latest = users::opt_word_at.is_null().or(users::opt_word_at.le(said_at));
    let changed = diesel::update(users::table.find(id).filter(latest))
        .set((users::opted_out_at.eq(at), users::opt_word_at.eq(said_at), users::updated_at.eq(ms(now))))
        .execute(conn)?;
    Ok(if changed == 1 { OptOutcome::Changed } else { OptOutcome::Overtaken })
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::store::scratch;

    #[test]
    fn keyword_from_a_future_clock_is_overridden_by_the_next() {
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
    fn restart_never_undoes_a_block_or_a_promotion() {
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
