//! Recent additions by members, counted towards their quota.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::transcript::{CallRow, QuotaKind, QuotaUse, UserId};
use crate::store::Conn;
use crate::store::codec::{convert_integer, ms};
use crate::store::schema::{additions, users};

/// Counts the additions of a call. A repeated count of the same call has no effect.
pub fn count_additions(
    conn: &mut Conn,
    user: UserId,
    call: CallRow,
    added: QuotaUse,
    now: Timestamp,
) -> QueryResult<()> {
    insert_addition(conn, user, Some(call), added, now)
}

/// Counts additions for which no call is known.
pub fn count_additions_without_call(
    conn: &mut Conn,
    user: UserId,
    added: QuotaUse,
    now: Timestamp,
) -> QueryResult<()> {
    insert_addition(conn, user, None, added, now)
}

fn insert_addition(
    conn: &mut Conn,
    user: UserId,
    call: Option<CallRow>,
    added: QuotaUse,
    now: Timestamp,
) -> QueryResult<()> {
    if added.amount == 0 {
        return Ok(());
    }
    diesel::insert_into(additions::table)
        .values((
            additions::user_id.eq(user),
            additions::kind.eq(added.kind),
            additions::amount.eq(i64::from(added.amount)),
            additions::tool_call_id.eq(call),
            additions::at.eq(ms(now)),
        ))
        .on_conflict_do_nothing()
        .execute(conn)
        .map(drop)
}

/// Loads the additions after `since`, oldest first.
pub fn load_counted_additions(
    conn: &mut Conn,
    user: UserId,
    what: QuotaKind,
    since: Timestamp,
) -> QueryResult<Vec<(Timestamp, u32)>> {
    let rows: Vec<(Timestamp, i64)> = additions::table
        .filter(additions::user_id.eq(user).and(additions::kind.eq(what)))
        .filter(additions::at.gt(ms(since)))
        .order(additions::at)
        .select((additions::at, additions::amount))
        .load(conn)?;
    rows.into_iter().map(|(at, amount)| Ok((at, convert_integer(amount)?))).collect()
}

/// Quota of one user, which replaces the household's quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuotaOverride {
    pub movies: Option<u32>,
    pub seasons: Option<u32>,
}

pub fn load_quota_override(conn: &mut Conn, user: UserId) -> QueryResult<QuotaOverride> {
    let (movies, seasons): (Option<i64>, Option<i64>) =
        users::table.find(user).select((users::movie_limit, users::season_limit)).first(conn)?;
    Ok(QuotaOverride {
        movies: movies.map(convert_integer).transpose()?,
        seasons: seasons.map(convert_integer).transpose()?,
    })
}

pub fn store_quota_override(
    conn: &mut Conn,
    user: UserId,
    own: QuotaOverride,
    now: Timestamp,
) -> QueryResult<()> {
    diesel::update(users::table.find(user))
        .set((
            users::movie_limit.eq(own.movies.map(i64::from)),
            users::season_limit.eq(own.seasons.map(i64::from)),
            users::updated_at.eq(ms(now)),
        ))
        .execute(conn)
        .map(drop)
}
