//! Middleware that checks every console request before its handler: the host name (against DNS rebinding), the sender,
//! and for changes the origin (against CSRF). Every path that is not listed here as open requires access.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    ALLOW, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, ORIGIN, SET_COOKIE, WWW_AUTHENTICATE,
};
use axum::http::{Method, StatusCode, Uri, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use jiff::{SignedDuration, Timestamp};
use url::form_urlencoded;

use super::cookie::{self, CookieSecurity};
use super::route_scopes::{KeyDecision, RouteScopes};
use super::sign_in::SESSION_LIFETIME;
use super::token::SecretToken;
use super::{keys, same_origin};
use crate::access_rules::SignIn;
use crate::engine::agents::{AgentKey, AgentScope};
use crate::store::console_access::{self, KeyScope};
use crate::store::database::db::DbError;
use crate::web::AGENT_PATH;
use crate::web::console_state::ConsoleState;
use crate::web::problem::{METHOD_NOT_ALLOWED, NO_ROUTE, ProblemDetails};

const API_KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");
/// Response to a forwarded request without a sign-in: its sender may be anywhere.
const FORWARDED_MESSAGE: &str = "This request came through a proxy, and CONSOLE_AUTH=none allows only browsers on this machine. \
                         To use the console through a proxy, set CONSOLE_AUTH=password and restart Dialarr.";
/// Precision of the recorded time at which a session was last used.
const SESSION_USE_PRECISION: SignedDuration = SignedDuration::from_hours(1);
/// Precision of the recorded time at which an API key was last used.
const KEY_USE_PRECISION: SignedDuration = SignedDuration::from_mins(1);

/// Sender of a request.
#[derive(Debug, Clone)]
pub(super) enum RequestSender {
    /// Operator in a browser, with the CSRF token of the forms.
    Operator {
        form_token: String,
    },
    /// Program with an API key.
    Program {
        key: i64,
        scope: KeyScope,
    },
    /// Agent that acts for a person with a key.
    Agent(AgentKey),
    Anonymous,
    /// Sender behind a proxy while no sign-in is required. Only browsers on this machine have access then.
    Forwarded,
}

/// Area that a path belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathArea {
    /// Area open to every sender.
    Open,
    /// Area for programs with a key, and for the operator.
    Api,
    /// Area for agents with a key, and for nobody else.
    Agents,
    /// Area for the operator.
    Pages,
}

impl PathArea {
    fn from_path(path: &str) -> Self {
        // Clients of the address for agents look there for a sign-in that does not exist. A page would confuse them.
        if path.starts_with("/assets/") || path.starts_with("/.well-known/") {
            return Self::Open;
        }
        match path {
            "/sign-in" | super::links::LINK_PATH | "/health" => Self::Open,
            AGENT_PATH => Self::Agents,
            "/metrics" => Self::Api,
            path if path.starts_with("/api/") => Self::Api,
            _ => Self::Pages,
        }
    }
}

/// Dependencies of the guard.
#[derive(Clone)]
pub(in crate::web) struct GuardState {
    pub(in crate::web) console: ConsoleState,
    pub(in crate::web) scopes: Arc<RouteScopes>,
}

pub(in crate::web) async fn guard_request(
    State(GuardState { console, scopes }): State<GuardState>,
    mut request: Request,
    next: Next,
) -> Response {
    let rules = console.access.rules.current();
    if !rules.hosts.allows_request(&request, &rules.sign_in) {
        return unknown_host();
    }
    let area = PathArea::from_path(request.uri().path());
    let (sender, renewed_cookie) = match identify_sender(&console, area, request.version(), request.headers())
        .await
    {
        Ok(identified) => identified,
        Err(error) => {
            tracing::error!(%error, "failed to identify the sender of a request");
            return refusal_response(area, StatusCode::SERVICE_UNAVAILABLE, "The database is unavailable.");
        }
    };
    let is_foreign = match &sender {
        RequestSender::Program { .. } => false,
        // Agents are no browsers. A page that has got a key must be one of ours nevertheless.
        RequestSender::Agent(_) => {
            request.headers().contains_key(ORIGIN) && !same_origin::is_same_origin(request.headers())
        }
        RequestSender::Operator { .. } | RequestSender::Anonymous | RequestSender::Forwarded => {
            area != PathArea::Agents
                && same_origin::is_unsafe(request.method())
                && !same_origin::is_same_origin(request.headers())
        }
    };
    if is_foreign {
        return refusal_response(
            area,
            StatusCode::FORBIDDEN,
            "This request was not sent by a page of Dialarr.",
        );
    }
    if let Some(refusal) = refuse_access(area, &sender, &scopes, &request) {
        return refusal;
    }
    request.extensions_mut().insert(sender);
    let mut response = next.run(request).await;
    // A cookie set by the handler takes precedence: signing out deletes the session cookie.
    if let Some(cookie) = renewed_cookie
        && !response.headers().contains_key(SET_COOKIE)
        && let Ok(cookie) = HeaderValue::from_str(&cookie)
    {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

/// Returns the response to a sender who has no access to the requested route; `None` for a sender who has.
fn refuse_access(
    area: PathArea,
    sender: &RequestSender,
    scopes: &RouteScopes,
    request: &Request,
) -> Option<Response> {
    match (area, sender) {
        (PathArea::Open, _) | (PathArea::Agents, RequestSender::Agent(_)) => None,
        (PathArea::Agents, RequestSender::Program { .. }) => {
            Some(refusal_response(area, StatusCode::FORBIDDEN, "This key is not for an agent."))
        }
        (
            PathArea::Agents,
            RequestSender::Operator { .. } | RequestSender::Anonymous | RequestSender::Forwarded,
        ) => {
            let refusal = refusal_response(area, StatusCode::UNAUTHORIZED, "A key for an agent is required.");
            Some(([(WWW_AUTHENTICATE, "Bearer")], refusal).into_response())
        }
        (PathArea::Api | PathArea::Pages, RequestSender::Operator { .. }) => None,
        (PathArea::Api, RequestSender::Agent(_)) => Some(refusal_response(
            area,
            StatusCode::FORBIDDEN,
            "This key is for an agent, and opens only /mcp.",
        )),
        (PathArea::Api, RequestSender::Program { scope, .. }) => {
            let Some(path) = request.extensions().get::<MatchedPath>() else {
                return Some(ProblemDetails::new(StatusCode::NOT_FOUND, NO_ROUTE).into_response());
            };
            refuse_key(scopes.decide(*scope, request.method(), path.as_str()))
        }
        (PathArea::Api, RequestSender::Anonymous) => Some(refusal_response(
            area,
            StatusCode::UNAUTHORIZED,
            "An API key or a console session is required.",
        )),
        (PathArea::Api | PathArea::Pages, RequestSender::Forwarded) => {
            Some(refusal_response(area, StatusCode::FORBIDDEN, FORWARDED_MESSAGE))
        }
        (
            PathArea::Pages,
            RequestSender::Anonymous | RequestSender::Program { .. } | RequestSender::Agent(_),
        ) => Some(redirect_to_sign_in(request.method(), request.uri()).into_response()),
    }
}

/// Returns the response to a key that does not open the requested route; `None` for a key that does.
fn refuse_key(decision: KeyDecision) -> Option<Response> {
    let detail = match decision {
        KeyDecision::Admitted => return None,
        KeyDecision::MethodNotAllowed(allowed) => {
            let problem = ProblemDetails::new(StatusCode::METHOD_NOT_ALLOWED, METHOD_NOT_ALLOWED);
            return Some(([(ALLOW, allowed)], problem).into_response());
        }
        KeyDecision::ScopeTooLow { held, required } => {
            format!(
                "This route requires a key with the scope {}, and this key has {}.",
                required.word(),
                held.word()
            )
        }
        KeyDecision::NeedsScope => {
            "This route requires a key with a scope, and this key has none because it is older. \
                                    Create another on the page \"API keys\"."
                .to_owned()
        }
        KeyDecision::Undeclared => "No API key opens this route.".to_owned(),
    };
    Some(ProblemDetails::new(StatusCode::FORBIDDEN, detail).into_response())
}

/// Identifies the sender of a request. The second value is the cookie that extends the session in the browser, if one
/// is due.
async fn identify_sender(
    console: &ConsoleState,
    area: PathArea,
    version: Version,
    headers: &HeaderMap,
) -> Result<(RequestSender, Option<String>), DbError> {
    if area == PathArea::Agents {
        // Neither a session nor the absence of a sign-in opens it.
        return match bearer_token(headers) {
            Some(key) => Ok((identify_key(console, key).await?, None)),
            None => Ok((RequestSender::Anonymous, None)),
        };
    }
    if area == PathArea::Api
        && let Some(key) = presented_key(headers)
    {
        // A request with a wrong key must not be admitted because of its session.
        return Ok((identify_key(console, key).await?, None));
    }
    match console.access.rules.current().sign_in {
        SignIn::Open if same_origin::is_forwarded(version, headers) => {
            return Ok((RequestSender::Forwarded, None));
        }
        SignIn::Open => {
            let form_token = console.access.form_seed.form_token();
            return Ok((RequestSender::Operator { form_token }, None));
        }
        SignIn::Links | SignIn::Password(_) => {}
    }
    match cookie::parse_session(headers) {
        Some((token, security)) => identify_session(console, &token, security).await,
        None => Ok((RequestSender::Anonymous, None)),
    }
}

async fn identify_session(
    console: &ConsoleState,
    token: &SecretToken,
    security: CookieSecurity,
) -> Result<(RequestSender, Option<String>), DbError> {
    let (hash, now) = (token.hash(), console.clock.now());
    let Some(last_used_at) =
        console.db.read(move |conn| console_access::load_session_last_use(conn, hash, now)).await?
    else {
        return Ok((RequestSender::Anonymous, None));
    };
    let sender = RequestSender::Operator { form_token: token.form_token() };
    if now.duration_since(last_used_at) < SESSION_USE_PRECISION {
        return Ok((sender, None));
    }
    // A valid session is admitted even if database writes fail, so that the operator can find the cause.
    match console
        .db
        .write(move |conn| console_access::extend_session(conn, hash, now, now + SESSION_LIFETIME))
        .await
    {
        // The cookie keeps its name, because a GET request may not reveal that it came over TLS.
        Ok(()) => Ok((sender, Some(cookie::session_cookie(token, security)))),
        Err(error) => {
            tracing::warn!(%error, "failed to extend a session");
            Ok((sender, None))
        }
    }
}

async fn identify_key(console: &ConsoleState, presented: &str) -> Result<RequestSender, DbError> {
    let Some(token) = presented.strip_prefix(keys::KEY_PREFIX).and_then(SecretToken::parse) else {
        return Ok(RequestSender::Anonymous);
    };
    let hash = token.hash();
    let Some(key) = console.db.read(move |conn| console_access::load_api_key(conn, hash)).await? else {
        return Ok(RequestSender::Anonymous);
    };
    let now: Timestamp = console.clock.now();
    if key.last_used_at.is_none_or(|last| now.duration_since(last) >= KEY_USE_PRECISION) {
        let used = console.db.write(move |conn| console_access::record_api_key_use(conn, key.id, now)).await;
        if let Err(error) = used {
            tracing::warn!(%error, "failed to record the use of an API key");
        }
    }
    Ok(match key.agent_of {
        None => RequestSender::Program { key: key.id, scope: key.scope },
        Some(person) => {
            let scope = match key.scope {
                KeyScope::Write => AgentScope::Write,
                KeyScope::Read | KeyScope::Unscoped | KeyScope::Admin => AgentScope::Read,
            };
            RequestSender::Agent(AgentKey { id: key.id, name: key.name, scope, person })
        }
    })
}

/// Returns the key in `X-Api-Key`, or the bearer token. A key that is not valid text counts as a wrong key.
fn presented_key(headers: &HeaderMap) -> Option<&str> {
    if let Some(key) = headers.get(API_KEY_HEADER) {
        return Some(key.to_str().unwrap_or_default());
    }
    bearer_token(headers)
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

fn refusal_response(area: PathArea, status: StatusCode, message: &'static str) -> Response {
    match area {
        PathArea::Api | PathArea::Agents => ProblemDetails::new(status, message).into_response(),
        PathArea::Open | PathArea::Pages => (status, format!("{message}\n")).into_response(),
    }
}

fn unknown_host() -> Response {
    let message = "Dialarr does not serve this host name. If it belongs to the console, add it to CONSOLE_HOSTS, \
                   or use the console's IP address.\n";
    (StatusCode::MISDIRECTED_REQUEST, message).into_response()
}

/// Redirects to the sign-in page. After the sign-in, a GET request continues to its page; a form is not resubmitted.
fn redirect_to_sign_in(method: &Method, uri: &Uri) -> Redirect {
    match uri.path_and_query() {
        Some(target) if !same_origin::is_unsafe(method) && target.as_str() != "/" => {
            let next: String = form_urlencoded::byte_serialize(target.as_str().as_bytes()).collect();
            Redirect::to(&format!("/sign-in?next={next}"))
        }
        _ => Redirect::to("/sign-in"),
    }
}
