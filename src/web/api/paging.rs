//! Keyset pagination of lists, newest first: each page contains the cursor of the next.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::store::console::{NEWEST, ResultPage};
use crate::web::problem::ProblemDetails;

const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 100;

/// Query parameters of a paginated list.
#[derive(Debug, Clone, Copy, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PagingParams {
    /// Only entries older than this cursor: the `next` of another page.
    before: Option<i64>,
    /// Number of entries to return.
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<usize>,
}

/// Position and size of a page in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageCursor {
    pub(super) before: i64,
    pub(super) page_size: usize,
}

impl PageCursor {
    pub(super) fn from_params(before: Option<i64>, limit: Option<usize>) -> Result<Self, ProblemDetails> {
        let page_size = limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&page_size) {
            return Err(ProblemDetails::new(
                StatusCode::BAD_REQUEST,
                format!("limit must be from 1 to {MAX_LIMIT}"),
            ));
        }
        Ok(Self { before: before.unwrap_or(NEWEST), page_size })
    }
}

impl PagingParams {
    pub(super) fn page_cursor(self) -> Result<PageCursor, ProblemDetails> {
        PageCursor::from_params(self.before, self.limit)
    }
}

/// One page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Page<T> {
    items: Vec<T>,
    /// Value of `before` for the page after this one; null on the last.
    next: Option<i64>,
}

impl<T> Page<T> {
    pub(super) fn from_results<R>(results: ResultPage<R>, to_json: impl Fn(R) -> T) -> Self {
        Self { items: results.rows.into_iter().map(to_json).collect(), next: results.older }
    }
}
