//! Error responses and redirects of the pages, and extractors for paths and queries.

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use serde::de::DeserializeOwned;

use super::error_page::error_response;
use super::flash::FlashMessage;
use super::layout::render_page;
use crate::settings::ChangeError;
use crate::store::database::db::DbError;

/// Reason why a page cannot be shown.
#[derive(Debug)]
pub(in crate::web) enum PageError {
    /// The URL identifies no page.
    NotFound,
    Failed(anyhow::Error),
}

pub(in crate::web) type PageResult = Result<Response, PageError>;

#[derive(Template)]
#[template(path = "not_found.html")]
struct NotFoundPage;

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        match self {
            Self::NotFound => (StatusCode::NOT_FOUND, render_page(&NotFoundPage)).into_response(),
            Self::Failed(error) => error_response(error),
        }
    }
}

impl From<DbError> for PageError {
    fn from(error: DbError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<ChangeError> for PageError {
    fn from(error: ChangeError) -> Self {
        Self::Failed(error.into())
    }
}

/// Id in the path of a URL. Any other value is answered with 404.
#[derive(Debug, Clone, Copy)]
pub(in crate::web) struct PageId(pub(in crate::web) i64);

impl<S: Send + Sync> FromRequestParts<S> for PageId {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, PageError> {
        let path: Result<Path<i64>, PathRejection> = Path::from_request_parts(parts, state).await;
        path.map(|Path(id)| Self(id)).map_err(|_| PageError::NotFound)
    }
}

/// Query parameters of a page.
#[derive(Debug, Clone, Copy)]
pub(in crate::web) struct PageParams<T>(pub(in crate::web) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for PageParams<T> {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, PageError> {
        let query: Result<Query<T>, QueryRejection> = Query::from_request_parts(parts, state).await;
        query.map(|Query(params)| Self(params)).map_err(|_| PageError::NotFound)
    }
}

/// Redirects after a form to a page that shows the outcome, so that a reload does not resubmit the form.
pub(in crate::web) fn redirect_with_flash(path: &str, flash: FlashMessage) -> Response {
    Redirect::to(&flash.with_path(path)).into_response()
}
