//! Access control of the console and the API. `request_guard` admits or refuses each request; the extractors here
//! return its sender.

mod cookie;
pub(super) mod headers;
pub(super) mod keys;
mod links;
mod password;
pub(super) mod request_guard;
pub(super) mod route_scopes;
mod same_origin;
pub(super) mod sign_in;
mod throttle;
mod token;

use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use jiff::Timestamp;
use secrecy::SecretString;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::console_state::ConsoleState;
use super::problem::ProblemDetails;
use crate::access_rules::{AccessRules, SignIn};
use crate::conversation::routing::message_origin::MessageOrigin;
use crate::engine::agents::AgentKey;
use crate::live::Live;
use crate::store::audit::Actor;
use crate::store::database::db::Db;
pub use keys::create_key;
pub use links::{LINK_PATH, create_link};
use password::HashingQueue;
pub use password::PasswordError;
use request_guard::RequestSender;
use throttle::PasswordThrottle;
use token::SecretToken;

/// Access control of the console, for the lifetime of the program.
#[derive(Debug)]
pub struct ConsoleAccess {
    rules: Live<AccessRules>,
    hashing: HashingQueue,
    throttle: Mutex<PasswordThrottle>,
    /// Seed of the CSRF token if the console requires no sign-in.
    form_seed: SecretToken,
}

impl ConsoleAccess {
    /// Creates the access control, and replaces the stored password with the configured one.
    pub(crate) async fn from_rules(
        rules: AccessRules,
        db: &Db,
        now: Timestamp,
    ) -> Result<Self, PasswordError> {
        let hashing = HashingQueue::default();
        password::store_configured_password(db, &hashing, &rules.sign_in, now).await?;
        Ok(Self {
            rules: Live::new(rules),
            hashing,
            throttle: Mutex::default(),
            form_seed: SecretToken::random(),
        })
    }

    /// Replaces the rules, and the stored password with the configured one.
    pub(crate) async fn apply_rules(
        &self,
        rules: AccessRules,
        db: &Db,
        now: Timestamp,
    ) -> Result<(), PasswordError> {
        password::store_configured_password(db, &self.hashing, &rules.sign_in, now).await?;
        self.rules.replace(rules);
        Ok(())
    }

    pub(super) fn has_password(&self) -> bool {
        matches!(self.rules.current().sign_in, SignIn::Password(_))
    }

    fn lock_throttle(&self) -> MutexGuard<'_, PasswordThrottle> {
        self.throttle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates a random secret that fits into a request header.
pub(super) fn random_secret() -> SecretString {
    SecretToken::random().as_str().into()
}

/// Operator who is signed in to the console.
#[derive(Debug, Clone)]
pub(super) struct Operator {
    form_token: String,
    sign_out_support: SignOutSupport,
}

/// Whether there is a session to sign out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignOutSupport {
    Supported,
    NoSession,
}

impl Operator {
    /// Returns the CSRF token that forms must send back.
    pub(super) fn form_token(&self) -> &str {
        &self.form_token
    }

    pub(super) fn sign_out_support(&self) -> SignOutSupport {
        self.sign_out_support
    }
}

impl FromRequestParts<ConsoleState> for Operator {
    type Rejection = Redirect;

    async fn from_request_parts(parts: &mut Parts, console: &ConsoleState) -> Result<Self, Redirect> {
        let sign_out_support = match console.access.rules.current().sign_in {
            SignIn::Open => SignOutSupport::NoSession,
            SignIn::Links | SignIn::Password(_) => SignOutSupport::Supported,
        };
        match parts.extensions.get::<RequestSender>() {
            Some(RequestSender::Operator { form_token }) => {
                Ok(Self { form_token: form_token.clone(), sign_out_support })
            }
            Some(
                RequestSender::Program { .. }
                | RequestSender::Agent(_)
                | RequestSender::Anonymous
                | RequestSender::Forwarded,
            )
            | None => Err(Redirect::to("/sign-in")),
        }
    }
}

/// Form of one of our own pages, sent by a signed-in operator and verified by its CSRF token.
#[derive(Debug, Clone)]
pub(super) struct SignedForm<T>(pub(super) T);

#[derive(Deserialize)]
struct FormToken {
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
        let has_valid_token = serde_urlencoded::from_bytes::<FormToken>(&form)
            .is_ok_and(|form| token::constant_time_eq(&form.token, &operator.form_token));
        if !has_valid_token {
            let message =
                "This form belongs to a session that has ended. Go back, reload the page and try again.\n";
            return Err((StatusCode::FORBIDDEN, message).into_response());
        }
        let form = serde_urlencoded::from_bytes(&form)
            .map_err(|_| (StatusCode::UNPROCESSABLE_ENTITY, "This form is incomplete.\n").into_response())?;
        Ok(Self(form))
    }
}

/// Caller of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    /// Operator who is signed in to the console.
    Operator,
    /// Program with the API key of this id.
    Program(i64),
}

impl Caller {
    /// Returns the actor of the caller's changes in the audit log.
    pub(super) fn actor(self) -> Actor {
        match self {
            Self::Operator => Actor::Console,
            Self::Program(key) => Actor::Key(key),
        }
    }

    /// Returns the origin of messages that the caller sends in the name of a user.
    pub(super) fn message_origin(self) -> MessageOrigin {
        match self {
            Self::Operator => MessageOrigin::Session,
            Self::Program(key) => MessageOrigin::ApiKey(key),
        }
    }
}

impl FromRequestParts<ConsoleState> for Caller {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, _console: &ConsoleState) -> Result<Self, ProblemDetails> {
        match parts.extensions.get::<RequestSender>() {
            Some(RequestSender::Operator { .. }) => Ok(Self::Operator),
            Some(RequestSender::Program { key, .. }) => Ok(Self::Program(*key)),
            Some(RequestSender::Agent(_) | RequestSender::Anonymous | RequestSender::Forwarded) | None => {
                Err(ProblemDetails::new(
                    StatusCode::UNAUTHORIZED,
                    "An API key or a console session is required.",
                ))
            }
        }
    }
}

/// Returns the key of the agent that sent a request.
pub(super) fn find_agent_key(extensions: &Extensions) -> Option<AgentKey> {
    match extensions.get::<RequestSender>()? {
        RequestSender::Agent(key) => Some(key.clone()),
        RequestSender::Operator { .. }
        | RequestSender::Program { .. }
        | RequestSender::Anonymous
        | RequestSender::Forwarded => None,
    }
}
