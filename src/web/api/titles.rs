//! Title route: the libraries of Sonarr and Radarr.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::extract::QueryParams;
use super::requests::TitleKindJson;
use crate::tools::library_cache::overview::{OverviewQuery, TitleAvailability, TitleOverview};
use crate::tools::library_cache::query::{SortOrder, StatusFilter};
use crate::web::auth::Caller;
use crate::web::console_state::ConsoleState;
use crate::web::problem::ProblemDetails;

const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 100;

/// Order of the titles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum TitleSort {
    #[default]
    Newest,
    Oldest,
    Biggest,
    Title,
}

/// Part of a title that is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TitleAvailability)]
enum AvailabilityJson {
    Complete,
    Incomplete,
    Missing,
    Unreleased,
    NotMonitored,
}

/// Titles to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum TitleChoice {
    Missing,
    OnDisk,
}

/// Title in the library of Sonarr or Radarr.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Title)]
pub(super) struct TitleJson {
    /// Name of the instance, such as `radarr-4k`.
    instance: &'static str,
    kind: TitleKindJson,
    /// Id in the instance.
    id: i64,
    /// TMDB id of a movie, TheTVDB id of a series.
    catalog_id: i64,
    title: String,
    /// Release year. Null if it is unknown.
    year: Option<u16>,
    size_bytes: u64,
    /// Name of the quality profile.
    quality: Option<String>,
    /// Day of the addition.
    #[schema(format = Date)]
    added: Option<String>,
    availability: AvailabilityJson,
}

/// Part of the list of all titles.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TitleList {
    items: Vec<TitleJson>,
    /// Number of matching titles, and their size.
    total: usize,
    total_bytes: u64,
    /// Sentences about instances that could not be read; their titles are missing here.
    failures: Vec<String>,
}

/// Maximum number of titles to skip, as the description of the API states it.
const MAX_OFFSET: usize = 1_000_000;
/// Maximum length of the words of a title, likewise.
const MAX_QUERY_CHARS: usize = 100;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TitlesParams {
    /// Words of the title.
    #[serde(default)]
    #[param(max_length = 100)]
    query: String,
    #[param(inline)]
    kind: Option<TitleKindJson>,
    #[param(inline)]
    only: Option<TitleChoice>,
    #[serde(default)]
    #[param(inline)]
    sort: TitleSort,
    /// Number of titles to skip.
    #[serde(default)]
    #[param(maximum = 1000000)]
    offset: usize,
    /// Number of titles to return.
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<usize>,
}

/// List titles of Sonarr and Radarr
#[utoipa::path(
    get,
    path = "/titles",
    tag = "titles",
    operation_id = "list_titles",
    params(TitlesParams),
    responses((status = 200, description = "Titles", body = TitleList))
)]
pub(super) async fn list_titles(
    State(console): State<ConsoleState>,
    _caller: Caller,
    QueryParams(params): QueryParams<TitlesParams>,
) -> Result<Json<TitleList>, ProblemDetails> {
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    let refuse = |detail: String| Err(ProblemDetails::new(StatusCode::BAD_REQUEST, detail));
    if !(1..=MAX_LIMIT).contains(&limit) {
        return refuse(format!("limit must be from 1 to {MAX_LIMIT}"));
    }
    if params.offset > MAX_OFFSET {
        return refuse(format!("offset must be at most {MAX_OFFSET}"));
    }
    if params.query.chars().count() > MAX_QUERY_CHARS {
        return refuse(format!("query must have at most {MAX_QUERY_CHARS} characters"));
    }
    let query = OverviewQuery {
        text: params.query,
        kind: params.kind.map(Into::into),
        only: params.only.map(|only| match only {
            TitleChoice::Missing => StatusFilter::Missing,
            TitleChoice::OnDisk => StatusFilter::OnDisk,
        }),
        sort: match params.sort {
            TitleSort::Newest => SortOrder::Newest,
            TitleSort::Oldest => SortOrder::Oldest,
            TitleSort::Biggest => SortOrder::Biggest,
            TitleSort::Title => SortOrder::Title,
        },
        offset: params.offset,
        limit,
    };
    let page = console.engine.library.load_titles(query).await;
    Ok(Json(TitleList {
        items: page.titles.into_iter().map(TitleJson::from).collect(),
        total: page.total,
        total_bytes: page.total_bytes,
        failures: page.failures,
    }))
}

impl From<TitleOverview> for TitleJson {
    fn from(title: TitleOverview) -> Self {
        Self {
            instance: title.id.instance,
            kind: title.id.kind.into(),
            id: title.id.id,
            catalog_id: title.catalog_id,
            title: title.title,
            year: Some(title.year).filter(|year| *year > 0),
            size_bytes: title.size_bytes,
            quality: title.quality,
            added: title.added.map(|day| day.to_string()),
            availability: match title.availability {
                TitleAvailability::Complete => AvailabilityJson::Complete,
                TitleAvailability::Episodes { .. } => AvailabilityJson::Incomplete,
                TitleAvailability::Missing => AvailabilityJson::Missing,
                TitleAvailability::Unreleased => AvailabilityJson::Unreleased,
                TitleAvailability::NotMonitored => AvailabilityJson::NotMonitored,
            },
        }
    }
}
