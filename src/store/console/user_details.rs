//! Users as shown to the operator: summaries and full details.

use diesel::prelude::*;
use jiff::Timestamp;

use super::{ResultPage, query_limit};
use crate::conversation::rate_limit::RateLimit;
use crate::conversation::transcript::{QuotaKind, UserId};
use crate::store::codec::convert_integer;
use crate::store::library::quotas::{self, QuotaOverride};
use crate::store::library::title_attributions::{self, TitleAttribution};
use crate::store::people::user_admin::{self, UserAccount};
use crate::store::people::users as user_rows;
use crate::store::schema::users;
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
    /// Titles that count toward the space of the user.
    pub attributions: Vec<TitleAttribution>,
}

/// Loads one page of the users who are not erased, with the amount that each added within the period of each limit.
pub fn load_user_summaries(
    conn: &mut Conn,
    (movies, seasons): (Option<RateLimit>, Option<RateLimit>),
    before: i64,
    page_size: usize,
    now: Timestamp,
) -> QueryResult<ResultPage<UserSummary>> {
    let page = load_user_account_page(conn, before, page_size)?;
    let mut summaries = Vec::with_capacity(page.rows.len());
    for account in page.rows {
        let id = account.user.id;
        summaries.push(UserSummary {
            is_test: users::table.find(id).select(users::test).first(conn)?,
            movies: load_added_amount(conn, id, (QuotaKind::Movies, movies), now)?,
            seasons: load_added_amount(conn, id, (QuotaKind::Seasons, seasons), now)?,
            account,
        });
    }
    Ok(ResultPage { rows: summaries, older: page.older })
}

/// Loads one page of the users who are not erased.
pub fn load_user_account_page(
    conn: &mut Conn,
    before: i64,
    page_size: usize,
) -> QueryResult<ResultPage<UserAccount>> {
    let users = user_rows::load_newest_users(conn, UserId(before), query_limit(page_size))?;
    let page = ResultPage::from_rows(users, page_size, |user| user.id.0);
    let accounts = page.rows.into_iter().map(|user| user_admin::load_account_details(conn, user));
    Ok(ResultPage { rows: accounts.collect::<QueryResult<_>>()?, older: page.older })
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
        attributions: title_attributions::load_attributions(conn, id)?,
    }))
}
