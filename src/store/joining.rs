//! Newcomers on their way to becoming members.

use diesel::dsl::count_star;
use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use super::approvals::{self, Matter};
use super::codec::{ms, number, status_word, time};
use super::schema::users;
use super::written::Written;
use super::{Conn, users as people};
use crate::conversation::first_request::{FirstRequest, KEPT_FOR};
use crate::conversation::naming::Name;
use crate::conversation::onboarding::{LEAVE_AFTER, Stranger, WaitingRoom};
use crate::conversation::transcript::{Status, UserId};

const DAY: SignedDuration = SignedDuration::from_hours(24);
const WAITS: Written = Written("users.waiting_since IS NOT NULL");
const ASKED_FIRST: Written = Written("users.first_request_at IS NOT NULL");
const WAS_ANSWERED: Written = Written("users.answered_at IS NOT NULL");

pub fn stranger(conn: &mut Conn, id: UserId) -> QueryResult<Stranger> {
    type Row = (Option<String>, i64, Option<i64>, Option<i64>);
    let (name, asked, waiting_since, answered_at): Row = users::table
        .find(id.0)
        .select((users::display_name, users::name_asks, users::waiting_since, users::answered_at))
        .first(conn)?;
    Ok(Stranger {
        name,
        asked: number(asked)?,
        waits: waiting_since.is_some(),
        answered_at: answered_at.map(time).transpose()?,
        askings: approvals::askings(conn, id)?,
        asking_is_open: approvals::open_about(conn, id)?.iter().any(|open| open.matter == Matter::Join),
    })
}

/// Loads the occupancy of the waiting room. Each newcomer is answered at most once a day, so the number of answers is
/// the number of newcomers who were answered.
pub fn waiting_room(conn: &mut Conn, now: Timestamp) -> QueryResult<WaitingRoom> {
    Ok(WaitingRoom {
        taken: users::table.filter(WAITS).select(count_star()).first(conn)?,
        answers: users::table
            .filter(
                WAS_ANSWERED.and(users::answered_at.gt(ms(now - DAY))).and(users::answered_at.le(ms(now))),
            )
            .select(count_star())
            .first(conn)?,
    })
}

/// Records that a newcomer was asked for their name: they have a slot from here on.
pub fn asked_name(conn: &mut Conn, id: UserId, now: Timestamp) -> QueryResult<()> {
    diesel::update(users::table.find(id.0).filter(users::waiting_since.is_null()))
        .set(users::waiting_since.eq(ms(now)))
        .execute(conn)?;
    diesel::update(users::table.find(id.0))
        .set((
            users::name_asks.eq(users::name_asks + 1),
            users::answered_at.eq(ms(now)),
            users::updated_at.eq(ms(now)),
        ))
        .execute(conn)
        .map(drop)
}

/// Stores the title request in a newcomer's first message.
pub fn keep_first_request(
    conn: &mut Conn,
    id: UserId,
    request: &FirstRequest,
    now: Timestamp,
) -> QueryResult<()> {
    diesel::update(users::table.find(id.0))
        .set((users::first_request.eq(request.as_str()), users::first_request_at.eq(ms(now))))
        .execute(conn)
        .map(drop)
}

/// Loads the title request in a newcomer's first message, as long as it is stored.
pub fn first_request(conn: &mut Conn, id: UserId, now: Timestamp) -> QueryResult<Option<FirstRequest>> {
    let title: Option<Option<String>> = users::table
        .find(id.0)
        .filter(users::first_request_at.gt(ms(now - KEPT_FOR)))
        .select(users::first_request)
        .first(conn)
        .optional()?;
    Ok(title.flatten().map(FirstRequest::from_stored))
}

/// Erases the first request of a newcomer: it was answered, or they were blocked or forgotten.
pub fn erase_first_request(conn: &mut Conn, id: UserId) -> QueryResult<()> {
    diesel::update(users::table.find(id.0))
        .set((users::first_request.eq(None::<String>), users::first_request_at.eq(None::<i64>)))
        .execute(conn)
        .map(drop)
}

/// Erases first requests that have exceeded their retention period.
pub fn erase_old_first_requests(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    diesel::update(users::table.filter(ASKED_FIRST.and(users::first_request_at.le(ms(now - KEPT_FOR)))))
        .set((users::first_request.eq(None::<String>), users::first_request_at.eq(None::<i64>)))
        .execute(conn)
        .map(drop)
}

/// Restarts a newcomer's wait when the admins are asked again.
pub fn wait_again(conn: &mut Conn, id: UserId, now: Timestamp) -> QueryResult<()> {
    diesel::update(users::table.find(id.0)).set(users::waiting_since.eq(ms(now))).execute(conn).map(drop)
}

/// Records that a newcomer has given their name and waits for an admin.
pub fn introduce(conn: &mut Conn, id: UserId, name: &Name, now: Timestamp) -> QueryResult<()> {
    people::set_name(conn, id, name, now)?;
    wait_again(conn, id, now)
}

/// Ends the wait of a newcomer, whether admitted or not.
pub fn leave_room(conn: &mut Conn, id: UserId, status: Status, now: Timestamp) -> QueryResult<()> {
    diesel::update(users::table.find(id.0))
        .set((
            users::status.eq(status_word(status)),
            users::waiting_since.eq(None::<i64>),
            users::updated_at.eq(ms(now)),
        ))
        .execute(conn)
        .map(drop)
}

/// Dismisses newcomers a week after their last contact, to make room, unless an admin is asked about them. The number
/// of times they were asked for their name is not reset.
pub fn dismiss(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    let long: Vec<i64> = users::table
        .filter(WAITS.and(users::waiting_since.le(ms(now - LEAVE_AFTER))))
        .select(users::id)
        .load(conn)?;
    for id in long {
        if approvals::open_about(conn, UserId(id))?.is_empty() {
            diesel::update(users::table.find(id))
                .set((users::waiting_since.eq(None::<i64>), users::updated_at.eq(ms(now))))
                .execute(conn)?;
        }
    }
    Ok(())
}

/// Loads the newcomers who have given their name and wait, longest wait first.
pub fn named(conn: &mut Conn) -> QueryResult<Vec<UserId>> {
    let named: Vec<i64> = users::table
        .filter(WAITS.and(users::display_name.is_not_null()).and(users::status.eq("pending")))
        .order(users::waiting_since)
        .select(users::id)
        .load(conn)?;
    Ok(named.into_iter().map(UserId).collect())
}
