//! Twilio's status callbacks for messages that it accepted from us.

use axum::extract::{Request, State};
use axum::http::StatusCode;

use super::Webhooks;
use super::twilio::{Refusal, SignedForm, trusted_form};
use crate::messaging::webhook::{self, CallbackQuery};
use crate::store::deliveries::{self, Recorded};

pub(super) async fn receive(
    State(webhooks): State<Webhooks>,
    request: Request,
) -> Result<StatusCode, Refusal> {
    let outcome = record(&webhooks, request).await;
    if let Err(refusal) = &outcome {
        webhooks.metrics.webhook_refused("status", refusal.label());
        tracing::warn!(%refusal, "status callback refused");
    }
    outcome.map(|()| StatusCode::NO_CONTENT)
}

async fn record(webhooks: &Webhooks, request: Request) -> Result<(), Refusal> {
    let query = CallbackQuery::from_query(request.uri().query().unwrap_or_default());
    let SignedForm { form, trust } = trusted_form(webhooks, request).await?;
    let report = webhook::parse_report(&form, query, &trust.account_sid)?;
    let (now, terms) = (webhooks.clock.now(), webhooks.terms.clone());
    let recorded =
        webhooks.db.write_or_busy(move |conn| deliveries::record(conn, &report, &terms, now)).await;
    match recorded {
        Ok(Recorded::New(acceptance, fate)) => {
            webhooks.metrics.text_accepted(acceptance);
            if let Some(fate) = fate {
                webhooks.metrics.text_over(fate);
            }
        }
        Ok(Recorded::Known) => {}
        // Twilio behaved correctly, so this is not an error on its side: late callbacks for a message that was erased,
        // or sent before a restore, arrive in this form.
        Ok(Recorded::Unbound) => {
            webhooks.metrics.webhook_refused("status", "unbound");
            tracing::warn!("a status callback names no message of ours");
        }
        Err(error) => {
            tracing::error!(%error, "a status callback could not be stored");
            return Err(Refusal::NotStored);
        }
    }
    Ok(())
}
