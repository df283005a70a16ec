//! Who may use the console and the API. `gate` lets a request pass; the extractors here say who sent it.

mod cookie;
pub(super) mod entering;
pub(super) mod gate;
pub(super) mod headers;
pub(super) mod keys;
mod links;
mod origin;
mod password;
mod throttle;
mod token;

use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::console_state::ConsoleState;
use super::problem::Problem;
use crate::access_rules::{AccessRules, SignIn};
use crate::conversation::origin::Origin;
use crate::store::audit::By;
use crate::store::db::Db;
use gate::Visitor;
pub use links::{LINK_PATH, offer};
use password::Hashing;
pub use password::PasswordError;
use throttle::Throttle;
use token::Token;

/// The door to the console, as long as the program runs.
#[derive(Debug)]
pub struct Access {
    rules: AccessRules,
    hashing: Hashing,
    throttle: Mutex<Throttle>,
    /// What forms carry where nobody signs in.
    seed: Token,
}

impl Access {
    /// The stored password becomes the configured one.
    pub(crate) async fn prepare(rules: AccessRules, db: &Db, now: Timestamp) -> Result<Self, PasswordError> {
        let hashing = Hashing::default();
        password::adopt(db, &hashing, &rules.sign_in, now).await?;
        Ok(Self { rules, hashing, throttle: Mutex::default(), seed: Token::random() })
    }

    pub(super) fn sign_in(&self) -> &SignIn {
        &self.rules.sign_in
    }

    fn throttle(&self) -> MutexGuard<'_, Throttle> {
        self.throttle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who is signed in to the console.
#[derive(Debug, Clone)]
pub(super) struct Operator {
    form_token: String,
    leaving: Leaving,
}

/// Whether there is anything to sign out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaving {
    Possible,
    Pointless,
}

impl Operator {
    /// What forms must send back.
    pub(super) fn form_token(&self) -> &str {
        &self.form_token
    }

    pub(super) fn leaving(&self) -> Leaving {
        self.leaving
    }
}

impl FromRequestParts<ConsoleState> for Operator {
    type Rejection = Redirect;

    async fn from_request_parts(parts: &mut Parts, console: &ConsoleState) -> Result<Self, Redirect> {
        let leaving = match console.access.rules.sign_in {
            SignIn::Open => Leaving::Pointless,
            SignIn::Links | SignIn::Password(_) => Leaving::Possible,
        };
        match parts.extensions.get::<Visitor>() {
            Some(Visitor::Operator { form_token }) => Ok(Self { form_token: form_token.clone(), leaving }),
            Some(Visitor::Program(_) | Visitor::Stranger | Visitor::Forwarded) | None => {
                Err(Redirect::to("/sign-in"))
            }
        }
    }
}

/// A form of one of our own pages, sent by somebody who is signed in.
#[derive(Debug, Clone)]
pub(super) struct SignedForm<T>(pub(super) T);

#[derive(Deserialize)]
struct Signature {
    token: String,
}

impl<T: DeserializeOwned> FromRequest<ConsoleState> for SignedForm<T> {
    type Rejection = Response;

    async fn from_request(request: Request, console: &ConsoleState) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let operator = Operator::from_request_parts(&mut parts, console).await;
        let operator = operator.map_err(IntoResponse::into_response)?;
        let form = Bytes::from_request(Request::from_parts(parts, body), console).await;
        let form = form.map_err(IntoResponse::into_response)?;
        let signed = serde_urlencoded::from_bytes::<Signature>(&form)
            .is_ok_and(|signature| token::is_same(&signature.token, &operator.form_token));
        if !signed {
            let why =
                "This form belongs to a session that has ended. Go back, reload the page and try again.\n";
            return Err((StatusCode::FORBIDDEN, why).into_response());
        }
        let form = serde_urlencoded::from_bytes(&form).map_err(|_| {
            (StatusCode::UNPROCESSABLE_ENTITY, "This form was not filled in.\n").into_response()
        })?;
        Ok(Self(form))
    }
}

/// Who uses the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    /// Somebody who is signed in to the console.
    Operator,
    /// A program, with the key of this id.
    Program(i64),
}

impl Caller {
    /// In whose name changes stand in the audit log.
    pub(super) fn by(self) -> By {
        match self {
            Self::Operator => By::Console,
            Self::Program(key) => By::Key(key),
        }
    }

    /// Where a text comes from that they say for somebody.
    pub(super) fn origin(self) -> Origin {
        match self {
            Self::Operator => Origin::Session,
            Self::Program(key) => Origin::Key(key),
        }
    }
}

impl FromRequestParts<ConsoleState> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _console: &ConsoleState) -> Result<Self, Problem> {
        match parts.extensions.get::<Visitor>() {
            Some(Visitor::Operator { .. }) => Ok(Self::Operator),
            Some(Visitor::Program(key)) => Ok(Self::Program(*key)),
            Some(Visitor::Stranger | Visitor::Forwarded) | None => Err(Problem::new(
                StatusCode::UNAUTHORIZED,
                "An API key or a session of the console is needed.",
            )),
        }
    }
}
