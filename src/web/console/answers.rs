//! Error responses of pages, and parsing of addresses.

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use serde::de::DeserializeOwned;

use super::frame::page;
use super::said::Said;
use super::trouble::trouble;
use crate::store::db::DbError;

/// Cause of a page that cannot be shown.
#[derive(Debug)]
pub(in crate::web) enum Failure {
    /// The address identifies nothing.
    Missing,
    Database(DbError),
}

pub(in crate::web) type Shown = Result<Response, Failure>;

#[derive(Template)]
#[template(path = "missing.html")]
struct Missing;

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Self::Missing => (StatusCode::NOT_FOUND, page(&Missing)).into_response(),
            Self::Database(error) => trouble(error),
        }
    }
}

impl From<DbError> for Failure {
    fn from(error: DbError) -> Self {
        Self::Database(error)
    }
}

/// Id in the path of an address.
#[derive(Debug, Clone, Copy)]
pub(in crate::web) struct Id(pub(in crate::web) i64);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let path: Result<Path<i64>, PathRejection> = Path::from_request_parts(parts, state).await;
        path.map(|Path(id)| Self(id)).map_err(|_| Failure::Missing)
    }
}

/// Query parameters of an address, after its question mark.
#[derive(Debug, Clone, Copy)]
pub(in crate::web) struct Asked<T>(pub(in crate::web) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let query: Result<Query<T>, QueryRejection> = Query::from_request_parts(parts, state).await;
        query.map(|Query(asked)| Self(asked)).map_err(|_| Failure::Missing)
    }
}

/// Redirects a form to a page that shows its outcome, so that a reload does not submit the form again.
pub(in crate::web) fn back(path: &str, said: Said) -> Response {
    Redirect::to(&said.at(path)).into_response()
}
