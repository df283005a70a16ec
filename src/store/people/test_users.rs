//! Test users: fictional users that are created in the console to try things out, with numbers that no phone has.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::transcript::{UserId, UserRole, UserStatus};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::schema::{conversations, users};

/// Range of the fictional numbers: `+1 555 010 0110` to `0199`. The numbers before this range are the phones of the
/// demo.
const NUMBERS: std::ops::Range<u8> = 10..100;

/// Returns a test user who is in no conversation, and creates one if there is none; `None` if every number is in use.
pub fn find_free_test_user(conn: &mut Conn, now: Timestamp) -> QueryResult<Option<UserId>> {
    let busy = conversations::table
        .filter(conversations::user_id.eq(users::id).and(conversations::ended_at.is_null()))
        .select(conversations::id);
    let free: Option<UserId> = users::table
        .filter(users::test.eq(true).and(users::status.eq(UserStatus::Active)))
        .filter(users::forgotten_at.is_null().and(users::opted_out_at.is_null()))
        .filter(diesel::dsl::not(diesel::dsl::exists(busy)))
        .order(users::id)
        .select(users::id)
        .first(conn)
        .optional()?;
    match free {
        Some(id) => Ok(Some(id)),
        None => create_test_user(conn, now),
    }
}

/// Creates a test user with permission to add and delete, so that everything can be tried.
fn create_test_user(conn: &mut Conn, now: Timestamp) -> QueryResult<Option<UserId>> {
    for (place, number) in (1..).zip(NUMBERS) {
        let made: Option<UserId> = diesel::insert_into(users::table)
            .values((
                users::phone.eq(format!("+155501001{number:02}")),
                users::display_name.eq(format!("Test user {place}")),
                users::status.eq(UserStatus::Active),
                users::role.eq(UserRole::Member),
                users::can_add.eq(true),
                users::can_delete.eq(true),
                users::can_4k.eq(false),
                users::test.eq(true),
                users::created_at.eq(ms(now)),
                users::updated_at.eq(ms(now)),
            ))
            .on_conflict_do_nothing()
            .returning(users::id)
            .get_result(conn)
            .optional()?;
        if made.is_some() {
            return Ok(made);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::users::{self as people, FirstContactRole};
    use super::*;
    use crate::conversation::transcript::PhoneNumber;
    use crate::store::conversation::conversations as talks;
    use crate::store::scratch;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn free_test_user_is_reused_and_real_numbers_never() {
        let mut conn = scratch();
        let real = PhoneNumber::parse("+15550100110").unwrap();
        people::ensure_user(&mut conn, &real, FirstContactRole::Admin, NOW).unwrap();
        let first = find_free_test_user(&mut conn, NOW).unwrap().unwrap();
        assert_eq!(find_free_test_user(&mut conn, NOW).unwrap(), Some(first));
        let user = people::load_user(&mut conn, first).unwrap();
        assert_eq!(
            (user.phone.as_str(), user.name.as_deref(), user.test),
            ("+15550100111", Some("Test user 2"), true)
        );
        talks::start_conversation(&mut conn, first, "Nov 20", NOW).unwrap();
        let second = find_free_test_user(&mut conn, NOW).unwrap().unwrap();
        assert_ne!(second, first);
    }

    #[test]
    fn admin_role_does_not_apply_to_test_users() {
        let mut conn = scratch();
        let id = find_free_test_user(&mut conn, NOW).unwrap().unwrap();
        diesel::update(users::table).set(users::role.eq(UserRole::Admin)).execute(&mut conn).unwrap();
        assert_eq!(people::load_user(&mut conn, id).unwrap().rights.role, UserRole::Member);
        assert_eq!(people::load_admins(&mut conn).unwrap(), []);
    }

    #[test]
    fn numbers_of_test_users_run_out() {
        let mut conn = scratch();
        for _ in NUMBERS {
            let user = find_free_test_user(&mut conn, NOW).unwrap().unwrap();
            talks::start_conversation(&mut conn, user, "Nov 20", NOW).unwrap();
        }
        assert_eq!(find_free_test_user(&mut conn, NOW).unwrap(), None);
    }
}
