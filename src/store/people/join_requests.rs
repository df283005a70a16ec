//! Join requests of newcomers, from the first message to the decision of an admin.

use diesel::dsl::count_star;
use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use super::users::set_name;
use crate::conversation::people::first_request::{FirstRequest, RETENTION};
use crate::conversation::people::naming::UserName;
use crate::conversation::people::onboarding::{DISMISS_AFTER, Newcomer, WaitingRoom};
use crate::conversation::transcript::{UserId, UserStatus};
use crate::store::Conn;
use crate::store::codec::{convert_integer, ms};
use crate::store::confirmation::approvals::{
    self as stored_approvals, ApprovalKind, ApprovalState, StoredApprovalKind,
};
use crate::store::database::literal_sql::literal_sql;
use crate::store::schema::{approvals, users};

const DAY: SignedDuration = SignedDuration::from_hours(24);
literal_sql! {
    const WAITING = "users.waiting_since IS NOT NULL";
    const HAS_FIRST_REQUEST = "users.first_request_at IS NOT NULL";
    const ANSWERED = "users.answered_at IS NOT NULL";
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = users)]
struct NewcomerRow {
    display_name: Option<String>,
    name_asks: i64,
    waiting_since: Option<Timestamp>,
    answered_at: Option<Timestamp>,
}

/// Returns the number of join requests of this user that were sent to the admins.
fn count_join_requests(conn: &mut Conn, user: UserId) -> QueryResult<i64> {
    approvals::table
        .filter(approvals::user_id.eq(user).and(approvals::kind.eq(StoredApprovalKind::Join)))
        .filter(approvals::state.ne(ApprovalState::Replaced))
        .count()
        .get_result(conn)
}

pub fn load_newcomer(conn: &mut Conn, id: UserId) -> QueryResult<Newcomer> {
    let row: NewcomerRow = users::table.find(id).select(NewcomerRow::as_select()).first(conn)?;
    Ok(Newcomer {
        name: row.display_name,
        name_requests: convert_integer(row.name_asks)?,
        has_slot: row.waiting_since.is_some(),
        answered_at: row.answered_at,
        admin_requests: count_join_requests(conn, id)?,
        admin_request_is_open: stored_approvals::load_open_approvals_about(conn, id)?
            .iter()
            .any(|open| open.kind == ApprovalKind::Join),
    })
}

/// Loads the occupancy of the waiting room. Each newcomer is answered at most once a day, so the number of recent
/// answers equals the number of recently answered newcomers.
pub fn load_waiting_room(conn: &mut Conn, now: Timestamp) -> QueryResult<WaitingRoom> {
    Ok(WaitingRoom {
        taken_slots: users::table.filter(WAITING).select(count_star()).first(conn)?,
        recent_answers: users::table
            .filter(ANSWERED.and(users::answered_at.gt(ms(now - DAY))).and(users::answered_at.le(ms(now))))
            .select(count_star())
            .first(conn)?,
    })
}

/// Records that a newcomer was asked for their name. From then on the newcomer occupies a slot of the waiting room.
pub fn record_name_prompt(conn: &mut Conn, id: UserId, now: Timestamp) -> QueryResult<()> {
    diesel::update(users::table.find(id).filter(users::waiting_since.is_null()))
        .set(users::waiting_since.eq(ms(now)))
        .execute(conn)?;
    diesel::update(users::table.find(id))
        .set((
            users::name_asks.eq(users::name_asks + 1),
            users::answered_at.eq(ms(now)),
            users::updated_at.eq(ms(now)),
        ))
        .execute(conn)
        .map(drop)
}

/// Stores the title request in a newcomer's first message.
pub fn store_first_request(
    conn: &mut Conn,
    id: UserId,
    request: &FirstRequest,
    now: Timestamp,
) -> QueryResult<()> {
    diesel::update(users::table.find(id))
        .set((users::first_request.eq(request.as_str()), users::first_request_at.eq(ms(now))))
        .execute(conn)
        .map(drop)
}

/// Loads the title request in a newcomer's first message, if it is still stored.
pub fn load_first_request(conn: &mut Conn, id: UserId, now: Timestamp) -> QueryResult<Option<FirstRequest>> {
    let request: Option<Option<String>> = users::table
        .find(id)
        .filter(users::first_request_at.gt(ms(now - RETENTION)))
        .select(users::first_request)
        .first(conn)
        .optional()?;
    Ok(request.flatten().map(FirstRequest::from_stored))
}

/// Erases the first request of a newcomer.
pub fn erase_first_request(conn: &mut Conn, id: UserId) -> QueryResult<()> {
    diesel::update(users::table.find(id))
        .set((users::first_request.eq(None::<String>), users::first_request_at.eq(None::<Timestamp>)))
        .execute(conn)
        .map(drop)
}

/// Erases first requests that have exceeded their retention period.
pub fn erase_old_first_requests(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    diesel::update(
        users::table.filter(HAS_FIRST_REQUEST.and(users::first_request_at.le(ms(now - RETENTION)))),
    )
    .set((users::first_request.eq(None::<String>), users::first_request_at.eq(None::<Timestamp>)))
    .execute(conn)
    .map(drop)
}

/// Restarts the wait of a newcomer when the admins are asked again.
pub fn restart_wait(conn: &mut Conn, id: UserId, now: Timestamp) -> QueryResult<()> {
    diesel::update(users::table.find(id)).set(users::waiting_since.eq(ms(now))).execute(conn).map(drop)
}

/// Records the name of a newcomer, whose wait for an admin starts now.
pub fn record_introduction(conn: &mut Conn, id: UserId, name: &UserName, now: Timestamp) -> QueryResult<()> {
    set_name(conn, id, name, now)?;
    restart_wait(conn, id, now)
}

/// Ends the wait of a newcomer who was admitted or blocked.
pub fn end_wait(conn: &mut Conn, id: UserId, status: UserStatus, now: Timestamp) -> QueryResult<()> {
    diesel::update(users::table.find(id))
        .set((
            users::status.eq(status),
            users::waiting_since.eq(None::<Timestamp>),
            users::updated_at.eq(ms(now)),
        ))
        .execute(conn)
        .map(drop)
}

/// Frees the slots of newcomers whose wait is older than [`DISMISS_AFTER`], unless an approval for them is open. The
/// number of name prompts is not reset.
pub fn dismiss_idle_newcomers(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    let idle: Vec<UserId> = users::table
        .filter(WAITING.and(users::waiting_since.le(ms(now - DISMISS_AFTER))))
        .select(users::id)
        .load(conn)?;
    for id in idle {
        if stored_approvals::load_open_approvals_about(conn, id)?.is_empty() {
            diesel::update(users::table.find(id))
                .set((users::waiting_since.eq(None::<Timestamp>), users::updated_at.eq(ms(now))))
                .execute(conn)?;
        }
    }
    Ok(())
}

/// Loads the waiting newcomers whose name is known, longest wait first.
pub fn load_named_newcomers(conn: &mut Conn) -> QueryResult<Vec<UserId>> {
    users::table
        .filter(WAITING.and(users::display_name.is_not_null()).and(users::status.eq(UserStatus::Pending)))
        .order(users::waiting_since)
        .select(users::id)
        .load(conn)
}
