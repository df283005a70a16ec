//! Webhook for Twilio's status callbacks about outbound messages.

use axum::extract::{Request, State};
use axum::http::StatusCode;

use super::WebhookState;
use super::twilio_webhook::{TwilioForm, TwilioWebhookError, parse_trusted_form};
use crate::messaging::webhook::{self, CallbackQuery};
use crate::store::queue::delivery_reports::{self, ReportOutcome};

pub(super) async fn receive_status_callback(
    State(webhooks): State<WebhookState>,
    request: Request,
) -> Result<StatusCode, TwilioWebhookError> {
    let outcome = record_callback(&webhooks, request).await;
    if let Err(refusal) = &outcome {
        webhooks.metrics.webhook_refused("status", refusal.metric_label());
        tracing::warn!(%refusal, "refused a status callback");
    }
    outcome.map(|()| StatusCode::NO_CONTENT)
}

async fn record_callback(webhooks: &WebhookState, request: Request) -> Result<(), TwilioWebhookError> {
    let query = CallbackQuery::from_query(request.uri().query().unwrap_or_default());
    let TwilioForm { form, verification } = parse_trusted_form(webhooks, request).await?;
    let report = webhook::parse_status_callback(&form, query, &verification.account_sid)?;
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
        }
        // Not an error of Twilio: the message may have been erased, or sent before a backup was restored.
        Ok(ReportOutcome::Unbound) => {
            webhooks.metrics.webhook_refused("status", "unbound");
            tracing::warn!("status callback matches no outbound message");
        }
        Err(error) => {
            tracing::error!(%error, "failed to store a status callback");
            return Err(TwilioWebhookError::NotStored);
        }
    }
    Ok(())
}
