//! All routes of both listeners on one screen.

mod api;
pub mod auth;
mod client_shares;
pub mod console;
pub mod console_state;
pub mod health;
mod lingering;
mod metrics;
pub mod places;
mod problem;
mod reports;
pub mod serving;
pub mod sse;
mod sse_events;
mod sse_wire;
mod sse_words;
mod status;
#[cfg(test)]
mod tests;
mod twilio;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::{from_fn_with_state, map_response};
use axum::routing::{get, post};
use bytes::Bytes;
use secrecy::SecretString;
use tower::ServiceExt;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::timeout::{RequestBodyDeadlineLayer, TimeoutLayer};

use crate::clock::Clock;
use crate::engine::Engine;
use crate::http::InProcess;
use crate::messaging::signature::Verifier;
use crate::metrics::Metrics;
use crate::store::db::Db;
use crate::store::deliveries::Terms;
use console::health as checks;
use console::{
    assets, audit, changing, deliveries, facts, home, keys, memory, sign_in, spend, talk, user, users,
};
use console_state::ConsoleState;
use health::Health;

/// Longest time for which a request may keep a connection busy: Twilio gives up after 15 s. Requests of Sonarr and
/// Radarr, whose sender is known from the header, have this long for their body as well.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(14);
/// Largest body that the console accepts.
const LARGEST_FORM: usize = 64 * 1024;
/// Longest time for the arrival of a form.
const SLOWEST_FORM: Duration = Duration::from_secs(10);

/// Dependencies of the webhooks.
#[derive(Clone)]
pub struct Webhooks {
    pub engine: Engine,
    pub db: Db,
    pub clock: Clock,
    /// Policy for messages that a status callback proves to be accepted.
    pub terms: Terms,
    /// Verification of Twilio's requests. `None` without a Twilio account.
    pub twilio: Option<Arc<Trust>>,
    /// Secret that Sonarr and Radarr must send; `None`: none of their events is accepted.
    pub reports: Option<SecretString>,
    pub metrics: Metrics,
    pub health: Health,
}

/// Verification that a request comes from Twilio.
#[derive(Debug)]
pub struct Trust {
    pub verifier: Verifier,
    /// Base URL that Twilio signs; a Host header is never trusted.
    pub public_url: String,
    /// Account that every request must name.
    pub account_sid: String,
}

pub fn webhook_router(webhooks: Webhooks) -> Router {
    Router::new()
        .route(crate::messaging::twilio::WEBHOOK_PATH, post(twilio::receive))
        .route(crate::messaging::twilio::STATUS_PATH, post(status::receive))
        .route("/webhook/{library}", post(reports::receive).put(reports::receive))
        .route("/health", get(health::alive))
        .route("/ready", get(health::ready))
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, REQUEST_TIMEOUT))
        .layer(CatchPanicLayer::new())
        .layer(from_fn_with_state(webhooks.metrics.clone(), metrics::count))
        .layer(map_response(auth::headers::add))
        .with_state(webhooks)
}

/// The pages and the API. It is another listener than that of the webhooks: nothing here is reached from outside.
pub fn console_router(console: ConsoleState) -> Router {
    Router::new()
        .route("/assets/style.css", get(assets::style))
        .route("/assets/live.js", get(assets::script))
        .route("/assets/icon.svg", get(assets::icon))
        .route("/sign-in", get(sign_in::show).post(sign_in::submit))
        .route(auth::LINK_PATH, get(sign_in::show_link).post(sign_in::use_link))
        .route("/sign-out", post(sign_in::leave))
        .route("/", get(home::show))
        .route("/conversations", get(talk::list::show))
        .route("/conversations/new", post(talk::acts::begin))
        .route("/conversations/{id}", get(talk::show::show))
        .route("/conversations/{id}/live", get(talk::live::follow))
        .route("/conversations/{id}/texts", post(talk::acts::text))
        .route("/conversations/{id}/question", post(talk::acts::answer))
        .route("/conversations/{id}/reopen", post(talk::acts::reopen))
        .route("/turns/{id}/cancel", post(talk::acts::cancel))
        .route("/turns/{id}/resume", post(talk::acts::resume))
        .route("/keys", get(keys::show).post(keys::make))
        .route("/keys/{id}/revoke", post(keys::revoke))
        .merge(api::router())
        .route("/metrics", get(metrics::show))
        .route("/health", get(health::alive))
        .route("/resume", post(home::resume))
        .route("/wishes/{id}/approve", post(home::approve_wish))
        .route("/wishes/{id}/deny", post(home::deny_wish))
        .route("/users", get(users::list))
        .route("/users/{id}", get(user::show))
        .route("/users/{id}/approve", post(changing::approve))
        .route("/users/{id}/block", post(changing::block))
        .route("/users/{id}/lift-suspension", post(changing::lift_suspension))
        .route("/users/{id}/settings", post(changing::change))
        .route("/users/{id}/forget", post(changing::forget))
        .route("/users/{id}/export", post(changing::export))
        .route("/users/{id}/facts", post(facts::note))
        .route("/users/{id}/facts/forget", post(facts::forget))
        .route("/users/{id}/facts/keep", post(facts::keep))
        .route("/users/{id}/facts/dismiss", post(facts::dismiss))
        .route("/deliveries", get(deliveries::show))
        .route("/deliveries/{id}/again", post(deliveries::send_again))
        .route("/spend", get(spend::show))
        .route("/memory", get(memory::show))
        .route("/memory/process", post(memory::process))
        .route("/memory/{id}/share", post(memory::share))
        .route("/memory/{id}/keep", post(memory::keep))
        .route("/memory/{id}/forget", post(memory::forget))
        .route("/audit", get(audit::show))
        .route("/health-checks", get(checks::show).post(checks::test))
        // The layers that follow apply to the routes above them, and only to those.
        .layer(DefaultBodyLimit::max(LARGEST_FORM))
        .layer(RequestBodyDeadlineLayer::new(SLOWEST_FORM))
        .layer(from_fn_with_state(console.clone(), auth::gate::pass))
        .layer(CatchPanicLayer::new())
        .layer(map_response(auth::headers::add))
        .with_state(console)
}

/// Listener without a socket, for simulations.
pub fn in_process(router: Router) -> InProcess {
    Arc::new(move |request: axum::http::Request<Bytes>| {
        let router = router.clone();
        Box::pin(async move {
            let Ok(response) = router.oneshot(request.map(Body::from)).await;
            let (head, body) = response.into_parts();
            // Our bodies are completely in memory, so reading one cannot fail.
            let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
            axum::http::Response::from_parts(head, body)
        })
    })
}
