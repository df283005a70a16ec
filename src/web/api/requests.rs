//! Request routes: titles that users asked for with their progress, and declining.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::database_unavailable;
use super::extract::{JsonBody, PathId, QueryParams};
use super::paging::{Page, PageCursor};
use super::users::{UserIdentifier, find_user};
use crate::conversation::text::title::clean_line;
use crate::conversation::transcript::MediaKind;
use crate::engine::operator::library::DeclineOutcome;
use crate::store::console::requests::{self, RequestFilter, RequestSummary};
use crate::store::library::seerr_requests::SeerrState;
use crate::store::library::title_requests::RequestState;
use crate::tools::library_cache::overview::{RequestIndex, RequestProgress};
use crate::web::auth::Caller;
use crate::web::console_state::ConsoleState;
use crate::web::problem::ProblemDetails;
use crate::web::sse_snapshot::format_iso;

/// Longest reason for declining a request, in characters.
const MAX_REASON_CHARS: usize = 160;

/// Kind of a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TitleKind)]
pub(super) enum TitleKindJson {
    Movie,
    Series,
}

impl From<MediaKind> for TitleKindJson {
    fn from(kind: MediaKind) -> Self {
        match kind {
            MediaKind::Movie => Self::Movie,
            MediaKind::Series => Self::Series,
        }
    }
}

impl From<TitleKindJson> for MediaKind {
    fn from(kind: TitleKindJson) -> Self {
        match kind {
            TitleKindJson::Movie => Self::Movie,
            TitleKindJson::Series => Self::Series,
        }
    }
}

/// Progress of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TitleRequestState)]
enum RequestStateJson {
    /// Not added yet; Dialarr tries again.
    Waiting,
    /// Being added, with an unknown outcome.
    Adding,
    /// Given up, declined, or taken back by the user.
    NotAdded,
    Searching,
    Downloading,
    /// A download does not continue by itself.
    Failed,
    Unreleased,
    NotMonitored,
    /// Only some of the episodes are on disk.
    Incomplete,
    Ready,
    /// No longer in the library.
    Deleted,
    /// Sonarr or Radarr does not respond.
    Unknown,
}

/// Title that a user asked for.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TitleRequest)]
pub(super) struct TitleRequestJson {
    id: i64,
    /// Id of the user.
    user: i64,
    kind: TitleKindJson,
    /// Name of the instance, such as `radarr-4k`.
    instance: String,
    /// TMDB id of a movie, TheTVDB id of a series.
    catalog_id: i64,
    title: String,
    /// Release year. Null if it is unknown.
    year: Option<u16>,
    /// Requested seasons. Null for a movie and for the whole of a series.
    seasons: Option<Vec<u32>>,
    state: RequestStateJson,
    /// Downloaded part in percent, while it is downloading.
    percent: Option<u8>,
    /// Reason of a failure.
    reason: Option<String>,
    #[schema(format = DateTime)]
    requested_at: String,
}

impl TitleRequestJson {
    fn from_summary(summary: RequestSummary, index: &RequestIndex) -> Self {
        let (state, percent, reason) = match summary.state {
            RequestState::Queued => (RequestStateJson::Waiting, None, None),
            RequestState::Adding => (RequestStateJson::Adding, None, None),
            RequestState::GivenUp => (RequestStateJson::NotAdded, None, None),
            RequestState::Added => match (index.find_progress(&summary.title), summary.seerr_state) {
                (RequestProgress::Removed, Some(state)) => (seerr_state_json(state), None, None),
                (progress, _) => progress_json(progress),
            },
        };
        Self {
            id: summary.id,
            user: summary.user.id.0,
            kind: summary.title.kind.into(),
            instance: summary.title.instance,
            catalog_id: summary.title.catalog_id,
            title: summary.title.title,
            year: Some(summary.title.year).filter(|year| *year > 0),
            seasons: summary.title.seasons,
            state,
            percent,
            reason,
            requested_at: format_iso(summary.requested_at),
        }
    }
}

/// Returns the state of a title that was requested at a Seerr and is not in the library.
fn seerr_state_json(state: SeerrState) -> RequestStateJson {
    match state {
        SeerrState::Pending | SeerrState::Approved => RequestStateJson::Waiting,
        SeerrState::Failed => RequestStateJson::Failed,
        SeerrState::Declined | SeerrState::Gone => RequestStateJson::NotAdded,
        SeerrState::Completed => RequestStateJson::Deleted,
    }
}

fn progress_json(progress: RequestProgress) -> (RequestStateJson, Option<u8>, Option<String>) {
    let state = match progress {
        RequestProgress::Downloading { percent, .. } => {
            return (RequestStateJson::Downloading, Some(percent), None);
        }
        RequestProgress::Problem(reason) => return (RequestStateJson::Failed, None, Some(reason)),
        RequestProgress::Searching => RequestStateJson::Searching,
        RequestProgress::Unreleased => RequestStateJson::Unreleased,
        RequestProgress::NotMonitored => RequestStateJson::NotMonitored,
        RequestProgress::Partial { .. } => RequestStateJson::Incomplete,
        RequestProgress::Ready => RequestStateJson::Ready,
        RequestProgress::Removed => RequestStateJson::Deleted,
        RequestProgress::Unknown => RequestStateJson::Unknown,
    };
    (state, None, None)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RequestsParams {
    /// Only requests of this user: a user's id, or a phone number (write its `+` as `%2B`).
    #[param(pattern = r"^(\+[1-9][0-9]{6,14}|[0-9]{1,18})$")]
    user: Option<String>,
    /// Only entries older than this cursor: the `next` of another page.
    before: Option<i64>,
    /// Number of entries to return.
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<usize>,
}

/// List titles that users asked for with their progress, newest first
#[utoipa::path(
    get,
    path = "/requests",
    tag = "requests",
    operation_id = "list_requests",
    params(RequestsParams),
    responses(
        (status = 200, description = "A page of requests", body = Page<TitleRequestJson>),
        (status = 404, description = "No user has this id or number"),
        (status = 422, description = "The user is neither an id nor a phone number"),
    )
)]
pub(super) async fn list_requests(
    State(console): State<ConsoleState>,
    _caller: Caller,
    QueryParams(params): QueryParams<RequestsParams>,
) -> Result<Json<Page<TitleRequestJson>>, ProblemDetails> {
    let cursor = PageCursor::from_params(params.before, params.limit)?;
    let filter = match params.user {
        None => RequestFilter::All,
        Some(user) => RequestFilter::By(find_user(&console, UserIdentifier::parse(&user)?).await?.id),
    };
    let load =
        move |conn: &mut _| requests::load_request_summaries(conn, filter, cursor.before, cursor.page_size);
    let page = console.db.read(load).await.map_err(database_unavailable)?;
    let index = console.engine.library.load_request_index().await;
    Ok(Json(Page::from_results(page, |summary| TitleRequestJson::from_summary(summary, &index))))
}

/// Reason for declining a request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Decline {
    /// Reason that the user gets.
    #[serde(default)]
    reason: Option<String>,
}

/// Request that was declined.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Declined {
    request_id: i64,
}

/// Decline a request whose title is not added yet
///
/// The user gets a text, with the reason if there is one.
#[utoipa::path(
    post,
    path = "/requests/{id}/decline",
    tag = "requests",
    operation_id = "decline_request",
    params(("id" = i64, Path, description = "A request's id")),
    request_body = Decline,
    responses(
        (status = 200, description = "The request is declined", body = Declined),
        (status = 404, description = "The id is not an integer"),
        (status = 409, description = "No request with this id waits to be added"),
    )
)]
pub(super) async fn decline_request(
    State(console): State<ConsoleState>,
    caller: Caller,
    PathId(id): PathId,
    JsonBody(decline): JsonBody<Decline>,
) -> Result<Json<Declined>, ProblemDetails> {
    let reason = decline.reason.and_then(|reason| clean_line(&reason, MAX_REASON_CHARS));
    let outcome = console.engine.library.decline_request(id, reason, caller.actor()).await;
    match outcome.map_err(database_unavailable)? {
        DeclineOutcome::Declined => Ok(Json(Declined { request_id: id })),
        DeclineOutcome::NotWaiting => {
            Err(ProblemDetails::new(StatusCode::CONFLICT, "no request with this id waits to be added"))
        }
    }
}
