//! Users as shown to the operator: summaries, full details and title requests.

use diesel::prelude::*;
use jiff::Timestamp;

use super::{ResultPage, query_limit};
use crate::conversation::rate_limit::RateLimit;
use crate::conversation::transcript::QuotaKind;
use crate::conversation::transcript::{MediaKind, UserId};
use crate::store::codec::{convert_integer, from_json};
use crate::store::library::quotas::{self, QuotaOverride};
use crate::store::library::title_requests::RequestState;
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
    pub wants_notifications: bool,
    /// Quiet hours in the household's time zone, if the user has set them.
    pub quiet_hours: Option<(u8, u8)>,
    pub movies: u32,
    pub seasons: u32,
    pub quota_override: QuotaOverride,
}

/// Loads all users who are not erased, oldest first, with the amount that each added within the period of each limit.
pub fn load_user_summaries(
    conn: &mut Conn,
    (movies, seasons): (Option<RateLimit>, Option<RateLimit>),
    now: Timestamp,
) -> QueryResult<Vec<UserSummary>> {
    let test_users: Vec<UserId> = users::table.filter(users::test.eq(true)).select(users::id).load(conn)?;
    let accounts = user_admin::load_user_accounts(conn)?;
    let mut summaries = Vec::with_capacity(accounts.len());
    for account in accounts {
        let id = account.user.id;
        summaries.push(UserSummary {
            is_test: test_users.contains(&id),
            movies: load_added_amount(conn, id, (QuotaKind::Movies, movies), now)?,
            seasons: load_added_amount(conn, id, (QuotaKind::Seasons, seasons), now)?,
            account,
        });
    }
    Ok(summaries)
}

/// Returns the amount a user has added within the period of a limit; 0 if there is no limit.
fn load_added_amount(
    conn: &mut Conn,
    user: UserId,
    (kind, limit): (QuotaKind, Option<RateLimit>),
    now: Timestamp,
) -> QueryResult<u32> {
    let Some(limit) = limit else { return Ok(0) };
    let additions = quotas::load_counted_additions(conn, user, kind, now - limit.period)?;
    Ok(additions.iter().fold(0, |sum, (_, amount)| sum.saturating_add(*amount)))
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = users)]
struct UserDetailsRow {
    test: bool,
    created_at: Timestamp,
    notify: bool,
    quiet_from: Option<i64>,
    quiet_to: Option<i64>,
}

/// Loads one user; `None` if the user does not exist or is erased.
pub fn load_user_details(
    conn: &mut Conn,
    id: UserId,
    (movies, seasons): (Option<RateLimit>, Option<RateLimit>),
    now: Timestamp,
) -> QueryResult<Option<UserDetails>> {
    if user_admin::find_known_user(conn, id)?.is_none() {
        return Ok(None);
    }
    let row: UserDetailsRow = users::table.find(id).select(UserDetailsRow::as_select()).first(conn)?;
    let quiet_hours = match row.quiet_from.zip(row.quiet_to) {
        Some((from, to)) => Some((convert_integer(from)?, convert_integer(to)?)),
        None => None,
    };
    Ok(Some(UserDetails {
        account: user_admin::load_user_account(conn, id)?,
        is_test: row.test,
        since: row.created_at,
        wants_notifications: row.notify,
        quiet_hours,
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
    /// The title is not added yet; Dialarr retries.
    Waiting,
    Added,
    GivenUp,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = requests)]
struct UserTitleRequestRow {
    id: i64,
    kind: MediaKind,
    title: String,
    year: i64,
    seasons: Option<String>,
    state: RequestState,
    created_at: Timestamp,
}

/// Loads the titles that a user requested below `before`, newest first.
pub fn load_user_title_requests(
    conn: &mut Conn,
    user: UserId,
    before: i64,
    page_size: usize,
) -> QueryResult<ResultPage<UserTitleRequest>> {
    let rows: Vec<UserTitleRequestRow> = requests::table
        .filter(requests::user_id.eq(user).and(requests::id.lt(before)))
        .order(requests::id.desc())
        .limit(query_limit(page_size))
        .select(UserTitleRequestRow::as_select())
        .load(conn)?;
    let parse_row = |row: UserTitleRequestRow| {
        Ok(UserTitleRequest {
            id: row.id,
            kind: row.kind,
            title: row.title,
            year: convert_integer(row.year)?,
            seasons: row.seasons.as_deref().map(|seasons| from_json("seasons", seasons)).transpose()?,
            state: match row.state {
                RequestState::Added => UserTitleRequestState::Added,
                RequestState::GivenUp => UserTitleRequestState::GivenUp,
                RequestState::Queued | RequestState::Adding => UserTitleRequestState::Waiting,
            },
            at: row.created_at,
        })
    };
    let requests: Vec<UserTitleRequest> = rows.into_iter().map(parse_row).collect::<QueryResult<_>>()?;
    Ok(ResultPage::from_rows(requests, page_size, |request| request.id))
}
