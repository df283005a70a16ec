//! Webhooks of the channels: each request is authenticated and parsed by the port of its channel, then stored and
//! acknowledged. The response waits for nothing else.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{OriginalUri, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use tokio::time::timeout;

use super::WebhookState;
use super::client_shares::{ConnectionSlot, SlotOutcome};
use crate::conversation::channel::Channel;
use crate::conversation::channel_list::CHANNELS;
use crate::conversation::routing::inbound_message::ReceivedMessage;
use crate::failpoint;
use crate::messaging::{ChannelPort, WebhookContent, WebhookKind, WebhookRefusal, WebhookRequest};
use crate::store::queue::delivery_reports::{self, DeliveryReport, ReportOutcome};

/// Largest body. Twilio's own limit is 64 kB; a message has at most 1,600 characters.
const MAX_BODY_BYTES: usize = 64 << 10;
/// Time limit for the body. A carrier sends it together with the header, and the sender is authenticated only by the
/// signature of the body.
const MAX_BODY_TIME: Duration = Duration::from_secs(3);

/// Reason why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum ChannelWebhookError {
    #[error("accept the request: its channel is not configured")]
    NoAccount,
    #[error("accept a body over 64 KiB")]
    TooLarge,
    #[error("receive the body within 3 s")]
    TooSlow,
    #[error("finish a request whose connection slot went to another client")]
    Displaced,
    #[error(transparent)]
    Refused(#[from] WebhookRefusal),
    #[error("store the message")]
    NotStored,
}

impl ChannelWebhookError {
    /// Label of the refusal in metrics.
    fn metric_label(&self) -> &'static str {
        match self {
            Self::NoAccount => "no_account",
            Self::TooLarge => "too_large",
            Self::TooSlow => "too_slow",
            Self::Displaced => "displaced",
            Self::Refused(WebhookRefusal::Unsigned) => "unsigned",
            Self::Refused(WebhookRefusal::NoForm) => "no_form",
            Self::Refused(WebhookRefusal::Malformed { label, .. }) => label,
            Self::NotStored => "not_stored",
        }
    }
}

impl IntoResponse for ChannelWebhookError {
    fn into_response(self) -> Response {
        let status = match self {
            Self::NoAccount | Self::NotStored | Self::Displaced => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Refused(WebhookRefusal::Unsigned) => StatusCode::FORBIDDEN,
            Self::Refused(WebhookRefusal::NoForm | WebhookRefusal::Malformed { .. }) => {
                StatusCode::BAD_REQUEST
            }
        };
        status.into_response()
    }
}

/// Builds the routes of all channels that receive webhooks, configured or not.
pub(super) fn channel_routes() -> Router<Arc<WebhookState>> {
    let with_webhooks = CHANNELS.into_iter().filter(|channel| channel.profile().receiving.webhook);
    with_webhooks.fold(Router::new(), |router, channel| {
        let route = |kind| {
            post(move |State(webhooks): State<Arc<WebhookState>>, request: Request| async move {
                receive_request(&webhooks, (channel, kind), request).await
            })
        };
        let path = format!("/webhook/{}", channel.word());
        router
            .route(&path, route(WebhookKind::Messages))
            .route(&format!("{path}/status"), route(WebhookKind::Reports))
    })
}

async fn receive_request(
    webhooks: &WebhookState,
    (channel, kind): (Channel, WebhookKind),
    request: Request,
) -> Result<Response, ChannelWebhookError> {
    let outcome = accept_request(webhooks, (channel, kind), request).await;
    if let Err(refusal) = &outcome {
        let webhook = match kind {
            WebhookKind::Messages => "texts",
            WebhookKind::Reports => "status",
        };
        webhooks.metrics.webhook_refused(webhook, refusal.metric_label());
        tracing::warn!(?channel, webhook, %refusal, "refused a request of a channel");
    }
    outcome
}

async fn accept_request(
    webhooks: &WebhookState,
    (channel, kind): (Channel, WebhookKind),
    request: Request,
) -> Result<Response, ChannelWebhookError> {
    let port = webhooks.settings.current().channels.get(channel).ok_or(ChannelWebhookError::NoAccount)?;
    match read_content(webhooks, port.as_ref(), kind, request).await? {
        WebhookContent::Message(message) => {
            let acknowledgement = port.acknowledgement(&message);
            store_message(webhooks, *message).await?;
            Ok(match acknowledgement {
                Some((media_type, body)) => ([(header::CONTENT_TYPE, media_type)], body).into_response(),
                None => StatusCode::OK.into_response(),
            })
        }
        WebhookContent::Gesture(gesture) => {
            let outcome = webhooks.gestures.record(gesture).await.map_err(|error| {
                tracing::error!(%error, "failed to store a gesture");
                ChannelWebhookError::NotStored
            })?;
            tracing::info!(?outcome, "received a gesture");
            Ok(StatusCode::OK.into_response())
        }
        WebhookContent::Nothing => Ok(StatusCode::OK.into_response()),
        WebhookContent::Report(report) => {
            store_report(webhooks, *report).await?;
            Ok(StatusCode::NO_CONTENT.into_response())
        }
    }
}

/// Reads the content of an authentic request. The cheapest checks come first.
async fn read_content(
    webhooks: &WebhookState,
    port: &dyn ChannelPort,
    kind: WebhookKind,
    request: Request,
) -> Result<WebhookContent, ChannelWebhookError> {
    let (parts, body) = request.into_parts();
    if declared_length(&parts.headers).is_some_and(|length| length > MAX_BODY_BYTES) {
        return Err(ChannelWebhookError::TooLarge);
    }
    if !port.claims_authenticity(&parts.headers) {
        return Err(WebhookRefusal::Unsigned.into());
    }
    let target = match parts.extensions.get::<OriginalUri>() {
        Some(OriginalUri(uri)) => uri.path_and_query().map(ToString::to_string),
        None => parts.uri.path_and_query().map(ToString::to_string),
    };
    let body = read_body(body).await?;
    let (target, now) = (target.unwrap_or_default(), webhooks.clock.now());
    let request = WebhookRequest { kind, target: &target, headers: &parts.headers, body: &body, now };
    let content = port.read_webhook(&request);
    if let Err(refusal @ (WebhookRefusal::Unsigned | WebhookRefusal::NoForm)) = content {
        return Err(refusal.into());
    }
    match parts.extensions.get::<Arc<ConnectionSlot>>().map(|slot| slot.prove_sender()) {
        None | Some(SlotOutcome::Granted) => Ok(content?),
        Some(SlotOutcome::Refused) => Err(ChannelWebhookError::Displaced),
    }
}

async fn read_body(body: Body) -> Result<Bytes, ChannelWebhookError> {
    let body = timeout(MAX_BODY_TIME, to_bytes(body, MAX_BODY_BYTES)).await;
    body.map_err(|_| ChannelWebhookError::TooSlow)?.map_err(|_| ChannelWebhookError::TooLarge)
}

fn declared_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn store_message(webhooks: &WebhookState, message: ReceivedMessage) -> Result<(), ChannelWebhookError> {
    match webhooks.admission.admit_message(message).await {
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
            Err(ChannelWebhookError::NotStored)
        }
    }
}

async fn store_report(webhooks: &WebhookState, report: DeliveryReport) -> Result<(), ChannelWebhookError> {
    let (now, policy) = (webhooks.clock.now(), webhooks.settings.current().acceptance_policy.clone());
    let outcome = webhooks
        .db
        .write_or_busy(move |conn| delivery_reports::record_delivery_report(conn, &report, &policy, now))
        .await;
    match outcome {
        Ok(ReportOutcome::Recorded(acceptance, delivery)) => {
            webhooks.metrics.text_accepted(acceptance);
            if let Some(delivery) = delivery {
                webhooks.metrics.text_delivery_ended(delivery);
            }
            Ok(())
        }
        // Not an error of the carrier: the message may have been erased, or sent before a backup was restored.
        Ok(ReportOutcome::Unbound) => {
            webhooks.metrics.webhook_refused("status", "unbound");
            tracing::warn!("status callback matches no outbound message");
            Ok(())
        }
        Err(error) => {
            tracing::error!(%error, "failed to store a status callback");
            Err(ChannelWebhookError::NotStored)
        }
    }
}
