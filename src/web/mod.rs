//! Routes of both listeners: the webhooks, and the console with the API.

mod api;
mod arr_webhook;
pub mod auth;
mod channel_webhook;
mod client_shares;
pub mod console;
pub mod console_state;
mod event_stream;
pub mod health;
pub mod http_server;
mod idle_connections;
mod lingering;
mod mcp;
mod metrics;
pub mod posters;
mod problem;
pub mod seerr_webhook;
mod sse;
mod sse_events;
mod sse_snapshot;
mod sse_states;
pub mod stream_limit;
#[cfg(test)]
mod webhook_property_tests;

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
use crate::engine::gestures::recorder::GestureRecorder;
use crate::engine::inbound::admission::Admission;
use crate::engine::notifications::arr_event_intake::ArrEventIntake;
use crate::http::InProcess;
use crate::live::Live;
use crate::messaging::channel_ports::ChannelPorts;
use crate::metrics::Metrics;
use crate::store::database::db::Db;
use crate::store::queue::delivery_reports::AcceptancePolicy;
use auth::request_guard::GuardState;
use console::health as health_page;
use console::{
    api_page, assets, audit, conversation, deliveries, facts, home, keys, library, making_room, memory, more,
    requests, rooms, settings, setup_assistant, setup_texting, setup_webhooks, sign_in, spend, user,
    user_addresses, user_settings, users, viewer_accounts,
};
use console_state::ConsoleState;
use health::HealthChecker;
pub use mcp::AGENT_PATH;

/// Time limit of a webhook request; Twilio gives up after 15 s. For Sonarr and Radarr, which are authenticated by a
/// header, the limit includes the body.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(14);
/// Largest body that the console accepts.
const MAX_FORM_BYTES: usize = 64 * 1024;
/// Time limit for receiving a form.
const MAX_FORM_TIME: Duration = Duration::from_secs(10);

/// Dependencies of the webhooks.
#[derive(Clone)]
pub struct WebhookState {
    pub admission: Arc<Admission>,
    pub gestures: Arc<GestureRecorder>,
    pub arr_events: Arc<ArrEventIntake>,
    pub db: Db,
    pub clock: Clock,
    pub settings: Live<WebhookSettings>,
    pub metrics: Metrics,
    pub health: HealthChecker,
}

/// Settings of the webhooks, which a change of the configuration replaces.
pub struct WebhookSettings {
    /// Policy for messages that a status callback proves to be accepted.
    pub acceptance_policy: AcceptancePolicy,
    /// Channels that authenticate and parse their requests.
    pub channels: ChannelPorts,
    /// Secret that Sonarr and Radarr must send. With `None`, all of their events are refused.
    pub arr_secret: Option<SecretString>,
}

pub fn webhook_router(webhooks: WebhookState) -> Router {
    Router::new()
        .merge(channel_webhook::channel_routes())
        .route("/webhook/{library}", post(arr_webhook::receive_arr_event).put(arr_webhook::receive_arr_event))
        .route("/webhooks/seerr", post(seerr_webhook::receive_hint))
        .route("/health", get(health::report_liveness))
        .route("/ready", get(health::report_readiness))
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, REQUEST_TIMEOUT))
        .layer(CatchPanicLayer::new())
        .layer(from_fn_with_state(webhooks.metrics.clone(), metrics::count_response))
        .layer(map_response(auth::headers::add_security_headers))
        // Each request clones the state.
        .with_state(Arc::new(webhooks))
}

/// Builds the router of the console pages and the API. They have their own listener, so that the public address of the
/// webhooks does not expose them.
pub fn console_router(console: ConsoleState) -> Router {
    let api = api::build_api();
    let guard = GuardState { console: console.clone(), scopes: Arc::new(api.scopes) };
    Router::new()
        .merge(asset_routes())
        .merge(user_routes())
        .route("/sign-in", get(sign_in::show_sign_in).post(sign_in::submit_password))
        .route(auth::LINK_PATH, get(sign_in::show_link).post(sign_in::use_link))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/", get(home::page::show_home))
        .route("/live", get(home::live::follow_home))
        .route("/more", get(more::show_more))
        .route("/conversations", get(conversation::list::list_conversations))
        .route("/conversations/new", post(conversation::actions::begin_test_conversation))
        .route("/conversations/{id}", get(conversation::page::show_conversation))
        .route("/conversations/{id}/live", get(conversation::live::follow_page))
        .route("/conversations/{id}/texts", post(conversation::actions::send_message))
        .route("/conversations/{id}/question", post(conversation::actions::answer_prompt))
        .route("/conversations/{id}/reopen", post(conversation::actions::reopen_conversation))
        .route("/turns/{id}/cancel", post(conversation::actions::cancel_turn))
        .route("/turns/{id}/resume", post(conversation::actions::resume_turn))
        .route("/settings", get(settings::show_settings).post(settings::change_settings))
        .route("/settings/same-server", post(settings::confirm_same_server))
        .route("/settings/other-server", post(settings::confirm_other_server))
        .route("/setup", get(setup_assistant::show_setup).post(setup_assistant::save_step))
        .route("/setup/test-text", post(setup_texting::send_test_text))
        .route("/setup/webhooks", post(setup_webhooks::install_webhooks))
        .route("/keys", get(keys::show_keys).post(keys::create_key))
        .route("/keys/agents", post(keys::create_agent_key))
        .route("/keys/{id}/revoke", post(keys::revoke_key))
        .route("/api", get(api_page::show_api))
        .merge(api.router)
        .route(AGENT_PATH, post(mcp::answer_agent))
        .route("/health", get(health::report_liveness))
        .route("/resume", post(home::actions::resume_from_pause))
        .route("/wishes/{id}/approve", post(requests::approve_removal))
        .route("/wishes/{id}/deny", post(requests::deny_removal))
        .route("/requests", get(requests::show_requests))
        .route("/requests/{id}/decline", post(requests::decline_request))
        .route("/library", get(library::show_library))
        .route("/make-room", get(making_room::show_making_room))
        .route("/library/search", post(requests::search_again))
        .route("/library/delete", post(library::request_deletion))
        .route("/posters/{instance}/{id}", get(posters::show_poster))
        .route("/deliveries", get(deliveries::show_deliveries))
        .route("/deliveries/{id}/again", post(deliveries::resend_message))
        .route("/spend", get(spend::show_spend))
        .route("/memory", get(memory::show_memory))
        .route("/memory/process", post(memory::index_waiting_answers))
        .route("/memory/{id}/share", post(memory::share_answer))
        .route("/memory/{id}/keep", post(memory::keep_answer_private))
        .route("/memory/{id}/forget", post(memory::forget_answer))
        .route("/audit", get(audit::show_audit))
        .route("/health-checks", get(health_page::show_health).post(health_page::check_connection))
        .fallback(console::show_not_found)
        // The layers that follow apply to the routes above them, and only to those.
        .layer(api.description)
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
        .layer(RequestBodyDeadlineLayer::new(MAX_FORM_TIME))
        .layer(from_fn_with_state(guard, auth::request_guard::guard_request))
        .layer(CatchPanicLayer::new())
        .layer(map_response(auth::headers::add_security_headers))
        .with_state(console)
}

/// Returns the files that pages refer to. They need no sign-in.
fn asset_routes() -> Router<ConsoleState> {
    Router::new()
        .route("/assets/style.css", get(assets::serve_style))
        .route("/assets/live.js", get(assets::serve_script))
        .route("/assets/icon.svg", get(assets::serve_icon))
        .route("/assets/icon-192.png", get(assets::serve_small_icon))
        .route("/assets/icon-512.png", get(assets::serve_large_icon))
        .route("/assets/apple-touch-icon.png", get(assets::serve_touch_icon))
        .route("/assets/manifest.webmanifest", get(assets::serve_manifest))
}

/// Returns the pages and forms about users.
fn user_routes() -> Router<ConsoleState> {
    Router::new()
        .route("/users", get(users::show_users))
        .route("/users/admin-code", post(users::create_admin_code))
        .route("/users/invite", post(users::invite_person))
        .route("/users/{id}", get(user::show_user))
        .route("/viewer-accounts", get(viewer_accounts::show_accounts))
        .route("/viewer-accounts/link", post(viewer_accounts::link_account))
        .route("/viewer-accounts/unlink", post(viewer_accounts::unlink_account))
        .route("/rooms/{id}", post(rooms::change_room))
        .route("/rooms/{id}/approve", post(rooms::approve_room))
        .route("/rooms/{id}/block", post(rooms::block_room))
        .route("/users/{id}/approve", post(user_settings::approve_user))
        .route("/users/{id}/block", post(user_settings::block_user))
        .route("/users/{id}/lift-suspension", post(user_settings::lift_suspension))
        .route("/users/{id}/addresses", post(user_addresses::link_address))
        .route("/users/{id}/addresses/unlink", post(user_addresses::unlink_address))
        .route("/users/{id}/merge", get(user_addresses::show_merge).post(user_addresses::merge_users))
        .route("/users/{id}/settings", post(user_settings::change_settings))
        .route("/users/{id}/forget", post(user_settings::erase_user))
        .route("/users/{id}/export", post(user_settings::export_user))
        .route("/users/{id}/facts", post(facts::add_fact))
        .route("/users/{id}/facts/forget", post(facts::forget_fact))
        .route("/users/{id}/facts/keep", post(facts::accept_suggestion))
        .route("/users/{id}/facts/dismiss", post(facts::dismiss_suggestion))
}

/// Serves a router in-process, without a socket, for simulations.
pub fn in_process(router: Router) -> InProcess {
    Arc::new(move |request: axum::http::Request<Bytes>| {
        let router = router.clone();
        Box::pin(async move {
            let Ok(response) = router.oneshot(request.map(Body::from)).await;
            let (head, body) = response.into_parts();
            // All response bodies are in memory, so reading one cannot fail.
            let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
            axum::http::Response::from_parts(head, body)
        })
    })
}
