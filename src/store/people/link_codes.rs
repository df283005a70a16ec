//! Codes by which an address becomes a user's. A user has at most one open code, and so has the first admin.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::linking::{CODE_VALIDITY, LinkCode, MAX_MISSES};
use crate::conversation::transcript::{AddressId, UserId};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::schema::link_codes;

/// Open code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = link_codes)]
pub struct OpenLink {
    pub id: i64,
    /// User who gets the address; `None` for the code that makes its sender the first admin.
    pub user_id: Option<UserId>,
    /// Phone number that the code was sent to, if it is a second code. It is typed on an address of the user.
    pub new_address_id: Option<AddressId>,
}

/// Stores a code that replaces the open one of the user. `draw_code` is called until it returns an unused code.
pub fn create_link_code(
    conn: &mut Conn,
    user: Option<UserId>,
    new_address: Option<AddressId>,
    draw_code: &mut dyn FnMut() -> LinkCode,
    now: Timestamp,
) -> QueryResult<LinkCode> {
    delete_expired_codes(conn, now)?;
    // The code also differs from the one that it replaces, which others may know.
    let mut code = draw_code();
    while find_open_link(conn, &code, now)?.is_some() {
        code = draw_code();
    }
    match user {
        Some(user) => diesel::delete(link_codes::table.filter(link_codes::user_id.eq(user))).execute(conn)?,
        None => diesel::delete(link_codes::table.filter(link_codes::user_id.is_null())).execute(conn)?,
    };
    diesel::insert_into(link_codes::table)
        .values((
            link_codes::user_id.eq(user),
            link_codes::code.eq(code.as_str()),
            link_codes::new_address_id.eq(new_address),
            link_codes::created_at.eq(ms(now)),
            link_codes::expires_at.eq(ms(now + CODE_VALIDITY)),
        ))
        .execute(conn)?;
    Ok(code)
}

pub fn find_open_link(conn: &mut Conn, code: &LinkCode, now: Timestamp) -> QueryResult<Option<OpenLink>> {
    link_codes::table
        .filter(link_codes::code.eq(code.as_str()))
        .filter(link_codes::expires_at.gt(ms(now)).and(link_codes::created_at.le(ms(now))))
        .select(OpenLink::as_select())
        .first(conn)
        .optional()
}

pub fn delete_link(conn: &mut Conn, id: i64) -> QueryResult<()> {
    diesel::delete(link_codes::table.find(id)).execute(conn).map(drop)
}

/// Counts a wrong code against all open codes, because it may have been a guess of any of them. A code ends after
/// [`MAX_MISSES`] wrong ones.
pub fn count_miss(conn: &mut Conn) -> QueryResult<()> {
    diesel::update(link_codes::table).set(link_codes::misses.eq(link_codes::misses + 1)).execute(conn)?;
    diesel::delete(link_codes::table.filter(link_codes::misses.ge(MAX_MISSES))).execute(conn).map(drop)
}

/// Deletes the codes that can no longer be used. A code from the future was drawn before the clock was set back.
pub fn delete_expired_codes(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    let is_expired = link_codes::expires_at.le(ms(now)).or(link_codes::created_at.gt(ms(now)));
    diesel::delete(link_codes::table.filter(is_expired)).execute(conn).map(drop)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::store::scratch;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn code(number: u32) -> LinkCode {
        LinkCode::from_number(number).unwrap()
    }

    #[test]
    fn code_ends_after_its_period_or_five_wrong_codes() {
        let mut conn = scratch();
        let mut numbers = 1..;
        let mut draw = || code(numbers.next().unwrap());
        create_link_code(&mut conn, None, None, &mut draw, NOW).unwrap();
        let last_moment = NOW + CODE_VALIDITY - SignedDuration::from_millis(1);
        assert!(find_open_link(&mut conn, &code(1), last_moment).unwrap().is_some());
        assert_eq!(find_open_link(&mut conn, &code(1), NOW + CODE_VALIDITY).unwrap(), None);
        assert_eq!(find_open_link(&mut conn, &code(1), NOW - SignedDuration::from_secs(1)).unwrap(), None);

        for _ in 1..MAX_MISSES {
            count_miss(&mut conn).unwrap();
        }
        assert!(find_open_link(&mut conn, &code(1), NOW).unwrap().is_some());
        count_miss(&mut conn).unwrap();
        assert_eq!(find_open_link(&mut conn, &code(1), NOW).unwrap(), None);
    }

    #[test]
    fn new_code_replaces_the_open_one_of_its_user() {
        let mut conn = scratch();
        let mut numbers = [7, 8].into_iter();
        let mut draw = || code(numbers.next().unwrap());
        for _ in 0..2 {
            create_link_code(&mut conn, None, None, &mut draw, NOW).unwrap();
        }
        assert_eq!(find_open_link(&mut conn, &code(7), NOW).unwrap(), None);
        assert!(find_open_link(&mut conn, &code(8), NOW).unwrap().is_some());
    }
}
