//! Webhook for Twilio's inbound messages: authenticates, parses, stores and acknowledges them. The response
//! waits for nothing else.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{OriginalUri, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use tokio::time::timeout;

use super::client_shares::{ConnectionSlot, SlotOutcome};
use super::{TwilioVerification, WebhookState};
use crate::failpoint;
use crate::messaging::signature::{self, ClaimedSignature, SETTINGS_HEADER, SIGNATURE_HEADER};
use crate::messaging::webhook::{self, FormFault};

/// Largest body. Twilio's own limit is 64 kB; a message has at most 1,600 characters.
const MAX_BODY_BYTES: usize = 64 << 10;
/// Time limit for the body. Twilio sends it together with the header, and the sender is authenticated only by the
/// signature of the body.
const MAX_BODY_TIME: Duration = Duration::from_secs(3);
/// Empty TwiML document. Any text in it would be sent to the user.
const EMPTY_TWIML: &str = r#"<?xml version="1.0" encoding="UTF-8"?><Response/>"#;

/// Reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum TwilioWebhookError {
    #[error("accept the request: no Twilio account is configured")]
    NoAccount,
    #[error("accept a body over 64 KiB")]
    TooLarge,
    #[error("receive the body within 3 s")]
    TooSlow,
    #[error("finish a request whose connection slot went to another client")]
    Displaced,
    #[error("verify Twilio's signature")]
    Unsigned,
    #[error("parse the body as a form")]
    NoForm,
    #[error("parse the form: {0}")]
    Malformed(#[from] FormFault),
    #[error("store the message")]
    NotStored,
}

impl TwilioWebhookError {
    /// Label of the refusal in metrics.
    pub(super) fn metric_label(self) -> &'static str {
        match self {
            Self::NoAccount => "no_account",
            Self::TooLarge => "too_large",
            Self::TooSlow => "too_slow",
            Self::Displaced => "displaced",
            Self::Unsigned => "unsigned",
            Self::NoForm => "no_form",
            Self::Malformed(fault) => fault.label(),
            Self::NotStored => "not_stored",
        }
    }
}

impl IntoResponse for TwilioWebhookError {
    fn into_response(self) -> Response {
        let status = match self {
            Self::NoAccount | Self::NotStored | Self::Displaced => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Unsigned => StatusCode::FORBIDDEN,
            Self::NoForm | Self::Malformed(_) => StatusCode::BAD_REQUEST,
        };
        status.into_response()
    }
}

pub(super) async fn receive_message(
    State(webhooks): State<WebhookState>,
    request: Request,
) -> Result<Response, TwilioWebhookError> {
    let outcome = accept_message(&webhooks, request).await;
    if let Err(refusal) = &outcome {
        webhooks.metrics.webhook_refused("texts", refusal.metric_label());
        tracing::warn!(%refusal, "refused an inbound message");
    }
    outcome.map(|()| ([(header::CONTENT_TYPE, "text/xml; charset=utf-8")], EMPTY_TWIML).into_response())
}

async fn accept_message(webhooks: &WebhookState, request: Request) -> Result<(), TwilioWebhookError> {
    let TwilioForm { form, verification } = parse_trusted_form(webhooks, request).await?;
    let received = webhook::parse_inbound_message(&form, &verification.account_sid, webhooks.clock.now())?;
    match webhooks.admission.admit_message(received).await {
        Ok(admission) => {
            failpoint::reached("admit.stored");
            tracing::info!(?admission, "received an inbound message");
            Ok(())
        }
        Err(error) => {
            tracing::error!(
                error = format!("{:#}", anyhow::Error::from(error)),
                "failed to store an inbound message"
            );
            Err(TwilioWebhookError::NotStored)
        }
    }
}

/// Decoded form of a request that Twilio signed.
pub(super) struct TwilioForm {
    pub(super) form: Vec<(String, String)>,
    pub(super) verification: Arc<TwilioVerification>,
}

/// Parses the form of a request that Twilio signed. The cheapest checks come first.
pub(super) async fn parse_trusted_form(
    webhooks: &WebhookState,
    request: Request,
) -> Result<TwilioForm, TwilioWebhookError> {
    let verification = webhooks.settings.current().twilio.clone().ok_or(TwilioWebhookError::NoAccount)?;
    let (parts, body) = request.into_parts();
    if declared_length(&parts.headers).is_some_and(|length| length > MAX_BODY_BYTES) {
        return Err(TwilioWebhookError::TooLarge);
    }
    if !parts.headers.contains_key(SIGNATURE_HEADER) {
        return Err(TwilioWebhookError::Unsigned);
    }
    let target = match parts.extensions.get::<OriginalUri>() {
        Some(OriginalUri(uri)) => uri.path_and_query().map(ToString::to_string),
        None => parts.uri.path_and_query().map(ToString::to_string),
    };
    let body = read_body(body).await?;
    let form: Vec<(String, String)> =
        serde_urlencoded::from_bytes(&body).map_err(|_| TwilioWebhookError::NoForm)?;
    verify_signature(&verification, &parts.headers, &target.unwrap_or_default(), &form)?;
    match parts.extensions.get::<Arc<ConnectionSlot>>().map(|slot| slot.prove_sender()) {
        None | Some(SlotOutcome::Granted) => Ok(TwilioForm { form, verification }),
        Some(SlotOutcome::Refused) => Err(TwilioWebhookError::Displaced),
    }
}

async fn read_body(body: Body) -> Result<Bytes, TwilioWebhookError> {
    let body = timeout(MAX_BODY_TIME, to_bytes(body, MAX_BODY_BYTES)).await;
    body.map_err(|_| TwilioWebhookError::TooSlow)?.map_err(|_| TwilioWebhookError::TooLarge)
}

fn declared_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn verify_signature(
    verification: &TwilioVerification,
    headers: &HeaderMap,
    target: &str,
    form: &[(String, String)],
) -> Result<(), TwilioWebhookError> {
    let header = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let claim = ClaimedSignature {
        signature: header(SIGNATURE_HEADER).ok_or(TwilioWebhookError::Unsigned)?,
        settings: header(SETTINGS_HEADER),
    };
    let url = signature::signed_url(&verification.public_url, target);
    verification
        .verifier
        .verify(&url, signature::SignedBody::Form(form), claim)
        .map_err(|_| TwilioWebhookError::Unsigned)
}
