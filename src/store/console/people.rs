//! Users, with details that only the operator needs.

use diesel::prelude::*;
use jiff::Timestamp;

use super::{Listed, one_more};
use crate::conversation::rate::Rate;
use crate::conversation::transcript::Counted;
use crate::conversation::transcript::{MediaKind, UserId};
use crate::store::codec::{from_json, kind, number, time};
use crate::store::quotas::{self, Own};
use crate::store::roster::{self, Person};
use crate::store::schema::{requests, users};
use crate::store::{Conn, QueryResult};

/// User as shown in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    pub person: Person,
    pub is_test: bool,
    pub movies: u32,
    pub seasons: u32,
}

/// Full details of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub person: Person,
    pub is_test: bool,
    pub since: Timestamp,
    pub opted_out_at: Option<Timestamp>,
    pub wants_notices: bool,
    /// Quiet hours in the household's time zone, if the user has set them.
    pub quiet: Option<(u8, u8)>,
    pub movies: u32,
    pub seasons: u32,
    pub own: Own,
}

/// Loads all users who are not forgotten, the longest known first, with the amount that each added within the period of
/// each limit.
pub fn everyone(
    conn: &mut Conn,
    (movies, seasons): (Option<Rate>, Option<Rate>),
    now: Timestamp,
) -> QueryResult<Vec<Listing>> {
    let test: Vec<i64> = users::table.filter(users::test.eq(1)).select(users::id).load(conn)?;
    let everyone = roster::everyone(conn)?;
    let mut listed = Vec::with_capacity(everyone.len());
    for person in everyone {
        let id = person.user.id;
        listed.push(Listing {
            is_test: test.contains(&id.0),
            movies: added(conn, id, (Counted::Movies, movies), now)?,
            seasons: added(conn, id, (Counted::Seasons, seasons), now)?,
            person,
        });
    }
    Ok(listed)
}

/// Returns the amount a user has added within the period of a limit; 0 if there is no limit.
fn added(
    conn: &mut Conn,
    user: UserId,
    (what, rate): (Counted, Option<Rate>),
    now: Timestamp,
) -> QueryResult<u32> {
    let Some(rate) = rate else { return Ok(0) };
    let counted = quotas::counted(conn, user, what, now - rate.within)?;
    Ok(counted.iter().fold(0, |sum, (_, amount)| sum.saturating_add(*amount)))
}

/// Loads one user; `None` if the user is unknown or forgotten.
pub fn one(
    conn: &mut Conn,
    id: UserId,
    (movies, seasons): (Option<Rate>, Option<Rate>),
    now: Timestamp,
) -> QueryResult<Option<Known>> {
    if roster::known(conn, id)?.is_none() {
        return Ok(None);
    }
    type Row = (i64, i64, Option<i64>, i64, Option<i64>, Option<i64>);
    let (test, since, opted_out, notify, from, to): Row = users::table
        .find(id.0)
        .select((
            users::test,
            users::created_at,
            users::opted_out_at,
            users::notify,
            users::quiet_from,
            users::quiet_to,
        ))
        .first(conn)?;
    let quiet = match from.zip(to) {
        Some((from, to)) => Some((number(from)?, number(to)?)),
        None => None,
    };
    Ok(Some(Known {
        person: roster::person(conn, id)?,
        is_test: test == 1,
        since: time(since)?,
        opted_out_at: opted_out.map(time).transpose()?,
        wants_notices: notify == 1,
        quiet,
        movies: added(conn, id, (Counted::Movies, movies), now)?,
        seasons: added(conn, id, (Counted::Seasons, seasons), now)?,
        own: quotas::own(conn, id)?,
    }))
}

/// Title that a user requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub id: i64,
    pub kind: MediaKind,
    pub title: String,
    /// Year of the title; 0 if the catalog has none.
    pub year: u16,
    /// Requested seasons; `None` means all of them.
    pub seasons: Option<Vec<u32>>,
    pub state: WantedState,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedState {
    /// The title could not be added yet, and Dialarr retries it.
    Waiting,
    Added,
    GivenUp,
}

/// Loads the titles a user requested, newest first, below `before`.
pub fn wanted(conn: &mut Conn, user: UserId, before: i64, fits: usize) -> QueryResult<Listed<Wanted>> {
    type Row = (i64, String, String, i64, Option<String>, String, i64);
    let rows: Vec<Row> = requests::table
        .filter(requests::user_id.eq(user.0).and(requests::id.lt(before)))
        .order(requests::id.desc())
        .limit(one_more(fits))
        .select((
            requests::id,
            requests::kind,
            requests::title,
            requests::year,
            requests::seasons,
            requests::state,
            requests::created_at,
        ))
        .load(conn)?;
    let read = |(id, word, title, year, seasons, state, at): Row| {
        Ok(Wanted {
            id,
            kind: kind(&word)?,
            title,
            year: number(year)?,
            seasons: seasons.as_deref().map(|seasons| from_json("seasons", seasons)).transpose()?,
            state: match state.as_str() {
                "added" => WantedState::Added,
                "given_up" => WantedState::GivenUp,
                _ => WantedState::Waiting,
            },
            at: time(at)?,
        })
    };
    let wanted: Vec<Wanted> = rows.into_iter().map(read).collect::<QueryResult<_>>()?;
    Ok(Listed::of(wanted, fits, |wanted| wanted.id))
}
