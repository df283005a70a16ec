//! Test users: fictional users with fictional phone numbers, created in the console to try out conversations.

use diesel::prelude::*;
use jiff::Timestamp;

use super::addresses;
use super::users::{self as user_rows, FirstContactRole};
use crate::conversation::transcript::{UserAddress, UserId, UserStatus};
use crate::store::Conn;
use crate::store::schema::{conversations, users};

/// Last two digits of the fictional numbers `+1 555 010 0110` to `0199`. The demo uses the numbers before them.
const NUMBER_SUFFIXES: std::ops::Range<u8> = 10..100;

/// Returns a test user without an open conversation, and creates one if there is none; `None` if all numbers are in
/// use.
pub fn find_free_test_user(conn: &mut Conn, now: Timestamp) -> QueryResult<Option<UserId>> {
    let open_conversation = conversations::table
        .filter(conversations::user_id.eq(users::id).and(conversations::ended_at.is_null()))
        .select(conversations::id);
    let free: Option<UserId> = users::table
        .filter(users::test.eq(true).and(users::status.eq(UserStatus::Active)))
        .filter(users::forgotten_at.is_null().and(diesel::dsl::not(addresses::is_opted_out())))
        .filter(diesel::dsl::not(diesel::dsl::exists(open_conversation)))
        .order(users::id)
        .select(users::id)
        .first(conn)
        .optional()?;
    match free {
        Some(id) => Ok(Some(id)),
        None => create_test_user(conn, now),
    }
}

/// Creates a test user with permission to add and delete; `None` if all numbers are in use.
fn create_test_user(conn: &mut Conn, now: Timestamp) -> QueryResult<Option<UserId>> {
    for (index, suffix) in (1..).zip(NUMBER_SUFFIXES) {
        let number = format!("+155501001{suffix:02}");
        let Some(address) = UserAddress::parse(&number) else { continue };
        if addresses::find_address(conn, &address)?.is_some() {
            continue;
        }
        let user = user_rows::insert_user(conn, FirstContactRole::Member, now)?;
        diesel::update(users::table.find(user))
            .set((
                users::display_name.eq(format!("Test user {index}")),
                users::can_delete.eq(true),
                users::test.eq(true),
            ))
            .execute(conn)?;
        addresses::insert_address(conn, user, &address, now)?;
        return Ok(Some(user));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::transcript::{PhoneNumber, UserRole};
    use crate::store::conversation::conversations::start_conversation;
    use crate::store::scratch;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn free_test_user_is_reused_and_a_real_users_number_is_skipped() {
        let mut conn = scratch();
        let real = PhoneNumber::parse("+15550100110").unwrap();
        user_rows::ensure_user(&mut conn, &real, FirstContactRole::Admin, NOW).unwrap();
        let first = find_free_test_user(&mut conn, NOW).unwrap().unwrap();
        assert_eq!(find_free_test_user(&mut conn, NOW).unwrap(), Some(first));
        let user = user_rows::load_user(&mut conn, first).unwrap();
        assert_eq!(
            (user.address, user.name.as_deref(), user.test),
            (UserAddress::parse("+15550100111"), Some("Test user 2"), true)
        );
        start_conversation(&mut conn, first, "Nov 20", NOW).unwrap();
        let second = find_free_test_user(&mut conn, NOW).unwrap().unwrap();
        assert_ne!(second, first);
    }

    #[test]
    fn admin_role_does_not_apply_to_test_users() {
        let mut conn = scratch();
        let id = find_free_test_user(&mut conn, NOW).unwrap().unwrap();
        diesel::update(users::table).set(users::role.eq(UserRole::Admin)).execute(&mut conn).unwrap();
        assert_eq!(user_rows::load_user(&mut conn, id).unwrap().rights.role, UserRole::Member);
        assert_eq!(user_rows::load_admins(&mut conn).unwrap(), []);
    }

    #[test]
    fn no_test_user_is_found_when_all_numbers_are_in_use() {
        let mut conn = scratch();
        for _ in NUMBER_SUFFIXES {
            let user = find_free_test_user(&mut conn, NOW).unwrap().unwrap();
            start_conversation(&mut conn, user, "Nov 20", NOW).unwrap();
        }
        assert_eq!(find_free_test_user(&mut conn, NOW).unwrap(), None);
    }
}
