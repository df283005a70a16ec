//! Lists in pages, newest first: each names the cursor of the next.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::store::console::{NEWEST, ResultPage};
use crate::web::problem::ProblemDetails;

const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 100;

/// Requested part of a list.
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

/// Position of a page in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageCursor {
    pub(super) before: i64,
    pub(super) fits: usize,
}

impl PageCursor {
    pub(super) fn from_params(before: Option<i64>, limit: Option<usize>) -> Result<Self, ProblemDetails> {
        let fits = limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&fits) {
            return Err(ProblemDetails::new(
                StatusCode::BAD_REQUEST,
                format!("limit is a number from 1 to {MAX_LIMIT}"),
            ));
        }
        Ok(Self { before: before.unwrap_or(NEWEST), fits })
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
    pub(super) fn from_listed<R>(listed: ResultPage<R>, wire: impl Fn(R) -> T) -> Self {
        Self { items: listed.rows.into_iter().map(wire).collect(), next: listed.older }
    }
}
