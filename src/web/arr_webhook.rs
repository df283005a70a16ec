//! Webhook for events from Sonarr and Radarr: authenticates, parses, stores and acknowledges them. Both wait for the
//! response during an import and never retry, so nothing else is done here.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::WebhookState;
use super::client_shares::{ConnectionSlot, SlotOutcome};
use crate::arr::connect_events;

/// Largest body. The event of a season pack has a few kilobytes for each of its files.
const MAX_BODY_BYTES: usize = 1 << 20;
const TOKEN_HEADER: &str = "x-dialarr-token";

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ArrWebhookError {
    #[error("accept an arr event: NOTIFICATION_SECRET is not set")]
    NoSecret,
    #[error("accept an arr event: the instance is not configured")]
    UnknownInstance,
    #[error("accept an arr event without the correct secret")]
    WrongSecret,
    #[error("accept an arr event over 1 MiB")]
    TooLarge,
    #[error("finish a request whose connection slot went to another client")]
    Displaced,
    #[error("parse the arr event")]
    Malformed,
    #[error("store the arr event")]
    NotStored,
}

impl IntoResponse for ArrWebhookError {
    fn into_response(self) -> Response {
        match self {
            Self::NoSecret => {
                (StatusCode::SERVICE_UNAVAILABLE, "NOTIFICATION_SECRET is not set\n").into_response()
            }
            Self::UnknownInstance => StatusCode::NOT_FOUND.into_response(),
            Self::WrongSecret => StatusCode::UNAUTHORIZED.into_response(),
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE.into_response(),
            Self::Malformed => StatusCode::BAD_REQUEST.into_response(),
            Self::NotStored | Self::Displaced => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        }
    }
}

pub(super) async fn receive_arr_event(
    State(webhooks): State<Arc<WebhookState>>,
    Path(instance): Path<String>,
    request: Request,
) -> Result<StatusCode, ArrWebhookError> {
    let outcome = accept_event(&webhooks, &instance, request).await;
    if let Err(refusal) = &outcome {
        tracing::warn!(%refusal, "refused an arr event");
    }
    outcome.map(|()| StatusCode::OK)
}

async fn accept_event(
    webhooks: &WebhookState,
    instance: &str,
    request: Request,
) -> Result<(), ArrWebhookError> {
    let settings = webhooks.settings.current();
    let secret = settings.arr_secret.as_ref().ok_or(ArrWebhookError::NoSecret)?;
    let instance =
        webhooks.arr_events.find_reporting_instance(instance).ok_or(ArrWebhookError::UnknownInstance)?;
    let (parts, body) = request.into_parts();
    if !presents_secret(&parts.headers, secret) {
        return Err(ArrWebhookError::WrongSecret);
    }
    let slot = parts.extensions.get::<Arc<ConnectionSlot>>();
    if slot.is_some_and(|slot| slot.prove_sender() == SlotOutcome::Refused) {
        return Err(ArrWebhookError::Displaced);
    }
    let body = to_bytes(body, MAX_BODY_BYTES).await.map_err(|_| ArrWebhookError::TooLarge)?;
    let events =
        connect_events::parse_events(&body, webhooks.clock.now()).map_err(|_| ArrWebhookError::Malformed)?;
    webhooks.arr_events.store_arr_events(instance, events).await.map_err(|error| {
        tracing::error!(error = format!("{:#}", anyhow::Error::from(error)), "failed to store an arr event");
        ArrWebhookError::NotStored
    })
}

/// Returns whether the request contains the secret, in its own header or as the password of Basic authentication.
fn presents_secret(headers: &HeaderMap, secret: &SecretString) -> bool {
    let token = headers.get(TOKEN_HEADER).map(|value| value.as_bytes().to_vec());
    [token, basic_password(headers)].into_iter().flatten().any(|presented| matches_secret(&presented, secret))
}

fn basic_password(headers: &HeaderMap) -> Option<Vec<u8>> {
    let (scheme, credentials) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let credentials = STANDARD.decode(credentials.trim()).ok()?;
    let colon = credentials.iter().position(|byte| *byte == b':')?;
    Some(credentials[colon + 1..].to_vec())
}

/// Compares hashes in constant time, so that the duration reveals neither a character nor the length of the secret.
pub(super) fn matches_secret(presented: &[u8], secret: &SecretString) -> bool {
    let [presented, expected] = [presented, secret.expose_secret().as_bytes()].map(Sha256::digest);
    bool::from(presented.as_slice().ct_eq(expected.as_slice()))
}
