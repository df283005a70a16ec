//! Quotas of users, and the recent additions that count towards them.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::making_room::ProposedTitle;
use crate::conversation::transcript::{CallRow, QuotaKind, QuotaUse, UserId};
use crate::store::Conn;
use crate::store::codec::{convert_integer, ms};
use crate::store::schema::{additions, requests, users};

/// Counts the additions of a tool call. A second count for the same call has no effect.
pub fn count_additions(
    conn: &mut Conn,
    user: UserId,
    call: CallRow,
    usage: QuotaUse,
    now: Timestamp,
) -> QueryResult<()> {
    insert_addition(conn, user, Some(call), usage, now)
}

/// Counts additions that no tool call is known for.
pub fn count_additions_without_call(
    conn: &mut Conn,
    user: UserId,
    usage: QuotaUse,
    now: Timestamp,
) -> QueryResult<()> {
    insert_addition(conn, user, None, usage, now)
}

fn insert_addition(
    conn: &mut Conn,
    user: UserId,
    call: Option<CallRow>,
    usage: QuotaUse,
    now: Timestamp,
) -> QueryResult<()> {
    if usage.amount == 0 {
        return Ok(());
    }
    diesel::insert_into(additions::table)
        .values((
            additions::user_id.eq(user),
            additions::kind.eq(usage.kind),
            additions::amount.eq(i64::from(usage.amount)),
            additions::tool_call_id.eq(call),
            additions::at.eq(ms(now)),
        ))
        .on_conflict_do_nothing()
        .execute(conn)
        .map(drop)
}

/// Gives the quota for a title back to the users who asked for it.
pub(super) fn give_back_additions(conn: &mut Conn, title: &ProposedTitle) -> QueryResult<()> {
    let calls = requests::table
        .filter(requests::kind.eq(title.kind).and(requests::catalog_id.eq(title.catalog_id)))
        .filter(requests::instance.eq(&title.instance).and(requests::tool_call_id.is_not_null()))
        .select(requests::tool_call_id);
    diesel::delete(additions::table.filter(additions::tool_call_id.eq_any(calls))).execute(conn).map(drop)
}

/// Loads the counted additions of one kind after `since`, oldest first.
pub fn load_counted_additions(
    conn: &mut Conn,
    user: UserId,
    kind: QuotaKind,
    since: Timestamp,
) -> QueryResult<Vec<(Timestamp, u32)>> {
    let rows: Vec<(Timestamp, i64)> = additions::table
        .filter(additions::user_id.eq(user).and(additions::kind.eq(kind)))
        .filter(additions::at.gt(ms(since)))
        .order(additions::at)
        .select((additions::at, additions::amount))
        .load(conn)?;
    rows.into_iter().map(|(at, amount)| Ok((at, convert_integer(amount)?))).collect()
}

/// Quota of one user in place of the household's quota; `None` applies the household's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuotaOverride {
    pub movies: Option<u32>,
    pub seasons: Option<u32>,
    /// Gigabytes that the titles of the user may hold.
    pub space_gb: Option<u32>,
}

pub fn load_quota_override(conn: &mut Conn, user: UserId) -> QueryResult<QuotaOverride> {
    let (movies, seasons, space): (Option<i64>, Option<i64>, Option<i64>) = users::table
        .find(user)
        .select((users::movie_limit, users::season_limit, users::space_limit))
        .first(conn)?;
    Ok(QuotaOverride {
        movies: movies.map(convert_integer).transpose()?,
        seasons: seasons.map(convert_integer).transpose()?,
        space_gb: space.map(convert_integer).transpose()?,
    })
}

pub fn store_quota_override(
    conn: &mut Conn,
    user: UserId,
    quota: QuotaOverride,
    now: Timestamp,
) -> QueryResult<()> {
    diesel::update(users::table.find(user))
        .set((
            users::movie_limit.eq(quota.movies.map(i64::from)),
            users::season_limit.eq(quota.seasons.map(i64::from)),
            users::space_limit.eq(quota.space_gb.map(i64::from)),
            users::updated_at.eq(ms(now)),
        ))
        .execute(conn)
        .map(drop)
}
