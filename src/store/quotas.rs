//! Recent additions by members, counted towards their quota.

use diesel::prelude::*;
use jiff::Timestamp;

use super::Conn;
use super::codec::{ms, number, time};
use super::schema::{additions, users};
use crate::conversation::transcript::{Added, CallRow, Counted, UserId};

fn word(counted: Counted) -> &'static str {
    match counted {
        Counted::Movies => "movie",
        Counted::Seasons => "season",
    }
}

/// Counts the additions of a call; a call counts once.
pub fn count(conn: &mut Conn, user: UserId, call: CallRow, added: Added, now: Timestamp) -> QueryResult<()> {
    insert(conn, user, Some(call), added, now)
}

/// Counts additions for which no call is known.
pub fn count_unnamed(conn: &mut Conn, user: UserId, added: Added, now: Timestamp) -> QueryResult<()> {
    insert(conn, user, None, added, now)
}

fn insert(
    conn: &mut Conn,
    user: UserId,
    call: Option<CallRow>,
    added: Added,
    now: Timestamp,
) -> QueryResult<()> {
    if added.amount == 0 {
        return Ok(());
    }
    diesel::insert_into(additions::table)
        .values((
            additions::user_id.eq(user.0),
            additions::kind.eq(word(added.what)),
            additions::amount.eq(i64::from(added.amount)),
            additions::tool_call_id.eq(call.map(|call| call.0)),
            additions::at.eq(ms(now)),
        ))
        .on_conflict_do_nothing()
        .execute(conn)
        .map(drop)
}

/// Loads the additions after `since`, oldest first.
pub fn counted(
    conn: &mut Conn,
    user: UserId,
    what: Counted,
    since: Timestamp,
) -> QueryResult<Vec<(Timestamp, u32)>> {
    let rows: Vec<(i64, i64)> = additions::table
        .filter(additions::user_id.eq(user.0).and(additions::kind.eq(word(what))))
        .filter(additions::at.gt(ms(since)))
        .order(additions::at)
        .select((additions::at, additions::amount))
        .load(conn)?;
    rows.into_iter().map(|(at, amount)| Ok((time(at)?, number(amount)?))).collect()
}

/// Limits of one user in place of the household's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Own {
    pub movies: Option<u32>,
    pub seasons: Option<u32>,
}

pub fn own(conn: &mut Conn, user: UserId) -> QueryResult<Own> {
    let (movies, seasons): (Option<i64>, Option<i64>) =
        users::table.find(user.0).select((users::movie_limit, users::season_limit)).first(conn)?;
    Ok(Own { movies: movies.map(number).transpose()?, seasons: seasons.map(number).transpose()? })
}

pub fn set_own(conn: &mut Conn, user: UserId, own: Own, now: Timestamp) -> QueryResult<()> {
    diesel::update(users::table.find(user.0))
        .set((
            users::movie_limit.eq(own.movies.map(i64::from)),
            users::season_limit.eq(own.seasons.map(i64::from)),
            users::updated_at.eq(ms(now)),
        ))
        .execute(conn)
        .map(drop)
}
