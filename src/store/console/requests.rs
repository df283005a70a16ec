//! Title requests of all users.

use diesel::prelude::*;
use jiff::Timestamp;

use super::user_ref::{self, UserRef};
use super::{ResultPage, query_limit};
use crate::conversation::title_requests::RequestedTitle;
use crate::conversation::transcript::{MediaKind, UserId};
use crate::store::codec::{convert_integer, from_json};
use crate::store::library::seerr_requests::SeerrState;
use crate::store::library::title_requests::RequestState;
use crate::store::schema::requests;
use crate::store::{Conn, QueryResult, skip_unreadable};

/// Maximum number of requests of one title whose users are listed.
const MAX_REQUESTERS: i64 = 20;

/// Filter for the list of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestFilter {
    All,
    /// Requests whose addition is retried.
    Waiting,
    By(UserId),
}

/// Title request, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestSummary {
    pub id: i64,
    pub user: UserRef,
    pub title: RequestedTitle,
    pub state: RequestState,
    pub requested_at: Timestamp,
    /// Time of the next attempt to add the title.
    pub next_try_at: Option<Timestamp>,
    /// State of the request at the Seerr, if the title was requested there.
    pub seerr_state: Option<SeerrState>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = requests)]
struct RequestRow {
    id: i64,
    user_id: UserId,
    instance: String,
    kind: MediaKind,
    catalog_id: i64,
    title: String,
    year: i64,
    seasons: Option<String>,
    state: RequestState,
    created_at: Timestamp,
    next_try_at: Option<Timestamp>,
    seerr_state: Option<SeerrState>,
}

/// Loads the requests below `before`, newest first. A request that cannot be read is left out.
pub fn load_request_summaries(
    conn: &mut Conn,
    filter: RequestFilter,
    before: i64,
    page_size: usize,
) -> QueryResult<ResultPage<RequestSummary>> {
    let mut query = requests::table
        .filter(requests::id.lt(before))
        .order(requests::id.desc())
        .limit(query_limit(page_size))
        .select(RequestRow::as_select())
        .into_boxed();
    query = match filter {
        RequestFilter::All => query,
        RequestFilter::Waiting => query.filter(requests::next_try_at.is_not_null()),
        RequestFilter::By(user) => query.filter(requests::user_id.eq(user)),
    };
    let page = ResultPage::from_rows(query.load(conn)?, page_size, |row: &RequestRow| row.id);
    let mut rows = Vec::with_capacity(page.rows.len());
    for row in page.rows {
        let user = user_ref::load_user_ref(conn, row.user_id)?;
        rows.extend(skip_unreadable(row.into_summary(user)));
    }
    Ok(ResultPage { rows, older: page.older })
}

impl RequestRow {
    fn into_summary(self, user: UserRef) -> QueryResult<RequestSummary> {
        Ok(RequestSummary {
            id: self.id,
            user,
            title: RequestedTitle {
                seasons: self.seasons.as_deref().map(|text| from_json("seasons", text)).transpose()?,
                instance: self.instance,
                kind: self.kind,
                catalog_id: self.catalog_id,
                title: self.title,
                year: convert_integer(self.year)?,
            },
            state: self.state,
            requested_at: self.created_at,
            next_try_at: self.next_try_at,
            seerr_state: self.seerr_state,
        })
    }
}

/// Users who requested a title, the first one first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestedBy {
    pub users: Vec<UserRef>,
}

/// Loads the users who requested each title, in the order of `titles`: instance, kind and catalog id.
pub fn load_requesters(
    conn: &mut Conn,
    titles: &[(String, MediaKind, i64)],
) -> QueryResult<Vec<RequestedBy>> {
    let load = |(instance, kind, catalog_id): &(String, MediaKind, i64)| {
        let ids: Vec<UserId> = requests::table
            .filter(requests::kind.eq(*kind).and(requests::catalog_id.eq(catalog_id)))
            .filter(requests::instance.eq(instance).and(requests::state.ne(RequestState::GivenUp)))
            .order(requests::id)
            .limit(MAX_REQUESTERS)
            .select(requests::user_id)
            .load(conn)?;
        let mut users: Vec<UserRef> = Vec::new();
        for id in ids {
            if !users.iter().any(|known| known.id == id) {
                users.push(user_ref::load_user_ref(conn, id)?);
            }
        }
        Ok(RequestedBy { users })
    };
    titles.iter().map(load).collect()
}
