//! Users, one row per phone number.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::people::naming::UserName;
use crate::conversation::transcript::{Address, PhoneNumber, User, UserId, UserRights, UserRole, UserStatus};
use crate::store::Conn;
use crate::store::codec::{ms, role, role_word, status, status_word, unreadable_column};
use crate::store::library::title_requests;
use crate::store::schema::{inbound_events, users};

#[derive(Queryable, Selectable)]
#[diesel(table_name = users)]
struct UserRow {
    id: i64,
    phone: String,
    display_name: Option<String>,
    status: String,
    role: String,
    can_add: i64,
    can_delete: i64,
    can_4k: i64,
    opted_out_at: Option<i64>,
    test: i64,
}

impl UserRow {
    fn into_user(self) -> QueryResult<User> {
        Ok(User {
            id: UserId(self.id),
            phone: PhoneNumber::parse(&self.phone).map_err(|_| unreadable_column("phone number"))?,
            name: self.display_name,
            status: status(&self.status)?,
            rights: UserRights {
                // A test user is always a member, even if another role is stored: a fictional user must not decide
                // anything for real users.
                role: if self.test == 1 { UserRole::Member } else { role(&self.role)? },
                add: self.can_add == 1,
                delete: self.can_delete == 1,
                four_k: self.can_4k == 1,
            },
            opted_out: self.opted_out_at.is_some(),
            test: self.test == 1,
        })
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
    users::table.find(id.0).select(UserRow::as_select()).first(conn).and_then(UserRow::into_user)
}

pub fn find_user_by_phone(conn: &mut Conn, phone: &PhoneNumber) -> QueryResult<Option<User>> {
    users::table
        .filter(users::phone.eq(phone.as_str()))
        .select(UserRow::as_select())
        .first(conn)
        .optional()?
        .map(UserRow::into_user)
        .transpose()
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
            users::status.eq(status_word(status)),
            users::role.eq(role_word(role)),
            users::can_add.eq(1),
            users::can_delete.eq(0),
            users::can_4k.eq(0),
            users::created_at.eq(ms(now)),
            users::updated_at.eq(ms(now)),
        ))
        .returning(users::id)
        .get_result(conn)
        .map(UserId)
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
    rows.into_iter().map(UserRow::into_user).collect()
}

/// Loads the active admins, longest known first.
pub fn load_admins(conn: &mut Conn) -> QueryResult<Vec<User>> {
    let rows: Vec<UserRow> = users::table
        .filter(users::role.eq("admin").and(users::status.eq("active")).and(users::test.eq(0)))
        .order(users::id)
        .select(UserRow::as_select())
        .load(conn)?;
    rows.into_iter().map(UserRow::into_user).collect()
}

/// Returns whether this user is the only admin who can let users in.
pub fn is_last_admin(conn: &mut Conn, id: UserId) -> QueryResult<bool> {
    let admins = load_admins(conn)?;
    Ok(matches!(admins.as_slice(), [only] if only.id == id))
}

/// Returns Dialarr's number to which the user last sent a message by phone: messages to the user are sent from it.
pub fn load_last_address(conn: &mut Conn, id: UserId) -> QueryResult<Option<Address>> {
    let address: Option<String> = inbound_events::table
        .filter(inbound_events::user_id.eq(id.0).and(inbound_events::channel.eq("twilio")))
        .order(inbound_events::id.desc())
        .select(inbound_events::to_addr)
        .first(conn)
        .optional()?;
    Ok(address.map(Address::new))
}

fn find_user_id(conn: &mut Conn, phone: &PhoneNumber) -> QueryResult<Option<UserId>> {
    let id: Option<i64> =
        users::table.filter(users::phone.eq(phone.as_str())).select(users::id).first(conn).optional()?;
    Ok(id.map(UserId))
}

pub fn set_name(conn: &mut Conn, id: UserId, name: &UserName, now: Timestamp) -> QueryResult<()> {
    diesel::update(users::table.find(id.0))
        .set((users::display_name.eq(name.as_str()), users::updated_at.eq(ms(now))))
        .execute(conn)
        .map(drop)
}

pub fn set_rights(conn: &mut Conn, id: UserId, rights: UserRights, now: Timestamp) -> QueryResult<()> {
    diesel::update(users::table.find(id.0))
        .set((
            users::role.eq(role_word(rights.role)),
            users::can_add.eq(i64::from(rights.add)),
            users::can_delete.eq(i64::from(rights.delete)),
            users::can_4k.eq(i64::from(rights.four_k)),
            users::updated_at.eq(ms(now)),
        ))
        .execute(conn)
        .map(drop)
}

pub fn set_status(conn: &mut Conn, id: UserId, status: UserStatus, now: Timestamp) -> QueryResult<()> {
    diesel::update(users::table.find(id.0))
        .set((users::status.eq(status_word(status)), users::updated_at.eq(ms(now))))
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
    let change = set_opted_out(conn, id, Some(ms(now)), (said_at, now))?;
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
    at: Option<i64>,
    (said_at, now): (Timestamp, Timestamp),
) -> QueryResult<OptOutcome> {
    // The sender's time comes from the carrier. If Dialarr's clock is behind it, later keywords would count as earlier
    // ones.
    let said_at = ms(said_at.min(now));
    let latest = users::opt_word_at.is_null().or(users::opt_word_at.le(said_at));
    let changed = diesel::update(users::table.find(id.0).filter(latest))
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
