//! Who may use the console and the API.

use std::convert::Infallible;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;

use super::console::Console;
use super::problem::Problem;

/// Somebody who is signed in to the console.
#[derive(Debug, Clone)]
pub(super) struct Operator {
    form_token: String,
}

impl Operator {
    /// What forms must send back.
    pub(super) fn form_token(&self) -> &str {
        &self.form_token
    }
}

impl FromRequestParts<Console> for Operator {
    type Rejection = Infallible;

    async fn from_request_parts(_parts: &mut Parts, _console: &Console) -> Result<Self, Infallible> {
        Ok(Self { form_token: String::new() })
    }
}

/// A form of one of our own pages, sent by somebody who is signed in.
#[derive(Debug, Clone)]
pub(super) struct SignedForm<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Console> for SignedForm<T> {
    type Rejection = Response;

    async fn from_request(request: Request, console: &Console) -> Result<Self, Response> {
        let axum::Form(form) = axum::Form::from_request(request, console)
            .await
            .map_err(|_| StatusCode::UNPROCESSABLE_ENTITY.into_response())?;
        Ok(Self(form))
    }
}

/// A program with an API key, or somebody who is signed in.
#[derive(Debug, Clone)]
pub(super) struct Caller;

impl FromRequestParts<Console> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(_parts: &mut Parts, _console: &Console) -> Result<Self, Problem> {
        Ok(Self)
    }
}
