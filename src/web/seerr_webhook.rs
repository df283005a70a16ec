//! Webhook of a Seerr. Its body is not read: it only lets the requests be read at once, which happens every minute
//! anyway.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};

use super::WebhookState;
use super::arr_webhook::matches_secret;

/// Accepts a hint that presents the secret as its Authorization header, with or without the word `Bearer`.
pub(super) async fn receive_hint(
    State(webhooks): State<Arc<WebhookState>>,
    headers: HeaderMap,
) -> StatusCode {
    let settings = webhooks.settings.current();
    let Some(secret) = settings.arr_secret.as_ref() else { return StatusCode::SERVICE_UNAVAILABLE };
    let presented = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let is_known = presented
        .is_some_and(|value| matches_secret(value.strip_prefix(b"Bearer ").unwrap_or(value), secret));
    if !is_known {
        tracing::warn!("refused a webhook of Seerr without the correct secret");
        return StatusCode::UNAUTHORIZED;
    }
    webhooks.arr_events.note_seerr_change();
    StatusCode::OK
}
