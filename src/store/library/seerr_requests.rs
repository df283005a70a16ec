//! Title requests that a Seerr decides on.

use diesel::prelude::*;

use super::title_attributions;
use super::title_requests::RequestState;
use crate::conversation::title_requests::RequestedTitle;
use crate::conversation::transcript::{CallRow, MediaKind, UserId};
use crate::store::Conn;
use crate::store::codec::{convert_integer, from_json, none_if_unreadable, unreadable_column};
use crate::store::column_types::stored_enum;
use crate::store::database::literal_sql::literal_sql;
use crate::store::schema::requests;

stored_enum! {
    /// State of a request at a Seerr, as the user knows it.
    pub enum SeerrState {
        /// An admin has to decide.
        Pending = "pending",
        Approved = "approved",
        Declined = "declined",
        /// Sonarr or Radarr did not take the title.
        Failed = "failed",
        Completed = "completed",
        /// The request was withdrawn at the Seerr.
        Gone = "gone",
    }
}

literal_sql! {
    /// Condition of requests whose state at the Seerr may change, matched by a partial index.
    const OPEN = "(requests.seerr_state = 'pending' OR requests.seerr_state = 'approved')";
}

/// Open request at a Seerr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSeerrRequest {
    pub id: i64,
    pub user: UserId,
    /// Id of the request at the Seerr.
    pub seerr_request: i64,
    pub state: SeerrState,
    pub title: RequestedTitle,
}

/// Records the request at the Seerr of the title request that a call made. Earlier title requests with the same request
/// there are closed, so that the user is told of it once.
pub fn track_request(
    conn: &mut Conn,
    call: CallRow,
    seerr_request: i64,
    is_pending: bool,
) -> QueryResult<()> {
    let earlier = requests::table.filter(OPEN).filter(requests::seerr_request.eq(seerr_request));
    diesel::update(earlier).set(requests::seerr_state.eq(None::<SeerrState>)).execute(conn)?;
    let state = if is_pending { SeerrState::Pending } else { SeerrState::Approved };
    diesel::update(requests::table.filter(requests::tool_call_id.eq(call)))
        .set((requests::seerr_request.eq(seerr_request), requests::seerr_state.eq(state)))
        .execute(conn)
        .map(drop)
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = requests)]
struct OpenRequestRow {
    id: i64,
    user_id: UserId,
    seerr_request: Option<i64>,
    seerr_state: Option<SeerrState>,
    instance: String,
    kind: MediaKind,
    catalog_id: i64,
    title: String,
    year: i64,
    seasons: Option<String>,
}

impl OpenRequestRow {
    fn into_request(self) -> QueryResult<OpenSeerrRequest> {
        let missing = || unreadable_column("request");
        Ok(OpenSeerrRequest {
            id: self.id,
            user: self.user_id,
            seerr_request: self.seerr_request.ok_or_else(missing)?,
            state: self.seerr_state.ok_or_else(missing)?,
            title: RequestedTitle {
                instance: self.instance,
                kind: self.kind,
                catalog_id: self.catalog_id,
                title: self.title,
                year: convert_integer(self.year)?,
                seasons: self.seasons.as_deref().map(|text| from_json("seasons", text)).transpose()?,
            },
        })
    }
}

/// Loads the requests whose state at the Seerr may change, oldest first.
pub fn load_open_requests(conn: &mut Conn) -> QueryResult<Vec<OpenSeerrRequest>> {
    let rows: Vec<OpenRequestRow> =
        requests::table.filter(OPEN).order(requests::id).select(OpenRequestRow::as_select()).load(conn)?;
    rows.into_iter().filter_map(|row| none_if_unreadable(row.into_request()).transpose()).collect()
}

/// Outcome of recording a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordStateOutcome {
    Recorded,
    /// The request has another state by now, or was erased.
    NotOpen,
}

/// Records the next state of an open request. A declined request is given up.
pub fn record_state(
    conn: &mut Conn,
    open: &OpenSeerrRequest,
    state: SeerrState,
) -> QueryResult<RecordStateOutcome> {
    let row = requests::table.find(open.id).filter(requests::seerr_state.eq(open.state));
    let updated = match state {
        SeerrState::Declined => {
            let updated = diesel::update(row)
                .set((requests::seerr_state.eq(state), requests::state.eq(RequestState::GivenUp)))
                .execute(conn)?;
            title_attributions::drop_unrequested_title(conn, open.user, &open.title)?;
            updated
        }
        SeerrState::Pending
        | SeerrState::Approved
        | SeerrState::Failed
        | SeerrState::Completed
        | SeerrState::Gone => diesel::update(row).set(requests::seerr_state.eq(state)).execute(conn)?,
    };
    Ok(if updated == 1 { RecordStateOutcome::Recorded } else { RecordStateOutcome::NotOpen })
}
