//! Users, with details that only the operator needs.

use diesel::prelude::*;
use jiff::Timestamp;

use super::{ResultPage, query_limit};
use crate::conversation::rate_limit::RateLimit;
use crate::conversation::transcript::QuotaKind;
use crate::conversation::transcript::{MediaKind, UserId};
use crate::store::codec::{convert_integer, from_json, kind, timestamp_from_ms};
use crate::store::library::quotas::{self, QuotaOverride};
use crate::store::people::user_admin::{self, UserAccount};
use crate::store::schema::{requests, users};
use crate::store::{Conn, QueryResult};

/// User as shown in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSummary {
    pub account: UserAccount,
    pub is_test: bool,
    pub movies: u32,
    pub seasons: u32,
}

/// Full details of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserDetails {
    pub account: UserAccount,
    pub is_test: bool,
    pub since: Timestamp,
    pub opted_out_at: Option<Timestamp>,
    pub wants_notifications: bool,
    /// Quiet hours in the household's time zone, if the user has set them.
    pub quiet_hours: Option<(u8, u8)>,
    pub movies: u32,
    pub seasons: u32,
    pub quota_override: QuotaOverride,
}

/// Loads all users who are not forgotten, the longest known first, with the amount that each added within the period of
/// each limit.
pub fn load_user_summaries(
    conn: &mut Conn,
    (movies, seasons): (Option<RateLimit>, Option<RateLimit>),
    now: Timestamp,
) -> QueryResult<Vec<UserSummary>> {
    let test: Vec<i64> = users::table.filter(users::test.eq(1)).select(users::id).load(conn)?;
    let everyone = user_admin::load_user_accounts(conn)?;
    let mut listed = Vec::with_capacity(everyone.len());
    for person in everyone {
        let id = person.user.id;
        listed.push(UserSummary {
            is_test: test.contains(&id.0),
            movies: load_added_amount(conn, id, (QuotaKind::Movies, movies), now)?,
            seasons: load_added_amount(conn, id, (QuotaKind::Seasons, seasons), now)?,
            account: person,
        });
    }
    Ok(listed)
}

/// Returns the amount a user has added within the period of a limit; 0 if there is no limit.
fn load_added_amount(
    conn: &mut Conn,
    user: UserId,
    (what, rate): (QuotaKind, Option<RateLimit>),
    now: Timestamp,
) -> QueryResult<u32> {
    let Some(rate) = rate else { return Ok(0) };
    let counted = quotas::load_counted_additions(conn, user, what, now - rate.period)?;
    Ok(counted.iter().fold(0, |sum, (_, amount)| sum.saturating_add(*amount)))
}

/// Loads one user; `None` if the user is unknown or forgotten.
pub fn load_user_details(
    conn: &mut Conn,
    id: UserId,
    (movies, seasons): (Option<RateLimit>, Option<RateLimit>),
    now: Timestamp,
) -> QueryResult<Option<UserDetails>> {
    if user_admin::find_known_user(conn, id)?.is_none() {
        return Ok(None);
    }
    type UserDetailsRow = (i64, i64, Option<i64>, i64, Option<i64>, Option<i64>);
    let (test, since, opted_out, notify, from, to): UserDetailsRow = users::table
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
        Some((from, to)) => Some((convert_integer(from)?, convert_integer(to)?)),
        None => None,
    };
    Ok(Some(UserDetails {
        account: user_admin::load_user_account(conn, id)?,
        is_test: test == 1,
        since: timestamp_from_ms(since)?,
        opted_out_at: opted_out.map(timestamp_from_ms).transpose()?,
        wants_notifications: notify == 1,
        quiet_hours: quiet,
        movies: load_added_amount(conn, id, (QuotaKind::Movies, movies), now)?,
        seasons: load_added_amount(conn, id, (QuotaKind::Seasons, seasons), now)?,
        quota_override: quotas::load_quota_override(conn, id)?,
    }))
}

/// Title that a user requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserTitleRequest {
    pub id: i64,
    pub kind: MediaKind,
    pub title: String,
    /// Year of the title; 0 if the catalog has none.
    pub year: u16,
    /// Requested seasons; `None` means all of them.
    pub seasons: Option<Vec<u32>>,
    pub state: UserTitleRequestState,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserTitleRequestState {
    /// The title could not be added yet, and Dialarr retries it.
    Waiting,
    Added,
    GivenUp,
}

/// Loads the titles a user requested, newest first, below `before`.
pub fn load_user_title_requests(
    conn: &mut Conn,
    user: UserId,
    before: i64,
    fits: usize,
) -> QueryResult<ResultPage<UserTitleRequest>> {
    type UserTitleRequestRow = (i64, String, String, i64, Option<String>, String, i64);
    let rows: Vec<UserTitleRequestRow> = requests::table
        .filter(requests::user_id.eq(user.0).and(requests::id.lt(before)))
        .order(requests::id.desc())
        .limit(query_limit(fits))
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
    let read = |(id, word, title, year, seasons, state, at): UserTitleRequestRow| {
        Ok(UserTitleRequest {
            id,
            kind: kind(&word)?,
            title,
            year: convert_integer(year)?,
            seasons: seasons.as_deref().map(|seasons| from_json("seasons", seasons)).transpose()?,
            state: match state.as_str() {
                "added" => UserTitleRequestState::Added,
                "given_up" => UserTitleRequestState::GivenUp,
                _ => UserTitleRequestState::Waiting,
            },
            at: timestamp_from_ms(at)?,
        })
    };
    let wanted: Vec<UserTitleRequest> = rows.into_iter().map(read).collect::<QueryResult<_>>()?;
    Ok(ResultPage::from_rows(wanted, fits, |wanted| wanted.id))
}
