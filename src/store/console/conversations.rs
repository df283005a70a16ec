//! List of conversations, newest first.

use diesel::prelude::*;

use super::talks::{Row, Talk, columns, read};
use super::{Listed, one_more};
use crate::store::conversations::OPEN;
use crate::store::schema::{conversations, users};
use crate::store::{Conn, QueryResult};

/// Number of conversations on one page.
pub const LISTED: usize = 30;
/// Maximum number of open conversations listed. There are few, at most one per user, and they are listed together on
/// one page.
const MOST_OPEN: i64 = 300;

/// Filter for the list of conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    All,
    Open,
    Ended,
    /// Conversations of test users.
    Test,
}

/// Loads the conversations that began below `before`.
pub fn list(conn: &mut Conn, which: Which, before: i64) -> QueryResult<Listed<Talk>> {
    let rows: Vec<Row> = match which {
        Which::All => {
            let all = conversations::table.inner_join(users::table.on(users::id.eq(conversations::user_id)));
            let below = all.filter(conversations::id.lt(before)).order(conversations::id.desc());
            below.limit(one_more(LISTED)).select(columns()).load(conn)?
        }
        Which::Open => {
            let all = conversations::table.inner_join(users::table.on(users::id.eq(conversations::user_id)));
            let open = all.filter(OPEN.and(conversations::last_activity_at.lt(i64::MAX)));
            let open = open.order(conversations::last_activity_at.desc());
            let talks: Vec<Row> = open.limit(MOST_OPEN).select(columns()).load(conn)?;
            let talks = talks.into_iter().map(|row| read(conn, row)).collect::<QueryResult<_>>()?;
            return Ok(Listed { rows: talks, older: None });
        }
        Which::Ended => {
            let all = conversations::table.inner_join(users::table.on(users::id.eq(conversations::user_id)));
            let ended = all.filter(conversations::id.lt(before).and(conversations::ended_at.is_not_null()));
            ended.order(conversations::id.desc()).limit(one_more(LISTED)).select(columns()).load(conn)?
        }
        Which::Test => {
            // There are at most a hundred test users.
            let test: Vec<i64> = users::table.filter(users::test.eq(1)).select(users::id).load(conn)?;
            let all = conversations::table.inner_join(users::table.on(users::id.eq(conversations::user_id)));
            let theirs = all.filter(conversations::id.lt(before).and(conversations::user_id.eq_any(test)));
            theirs.order(conversations::id.desc()).limit(one_more(LISTED)).select(columns()).load(conn)?
        }
    };
    let talks: Vec<Talk> = rows.into_iter().map(|row| read(conn, row)).collect::<QueryResult<_>>()?;
    Ok(Listed::of(talks, LISTED, |talk| talk.id.0))
}
