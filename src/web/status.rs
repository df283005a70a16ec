//! What Twilio reports of a text it took from us.

use axum::extract::{Request, State};
use axum::http::StatusCode;

use super::Webhooks;
use super::twilio::{Refusal, field, trusted_form};
use crate::conversation::transcript::OutboxId;
use crate::store::deliveries::{self, Recorded, Report};

pub(super) async fn receive(
    State(webhooks): State<Webhooks>,
    request: Request,
) -> Result<StatusCode, Refusal> {
    let outcome = record(&webhooks, request).await;
    if let Err(refusal) = &outcome {
        tracing::warn!(%refusal, "status callback refused");
    }
    outcome.map(|()| StatusCode::NO_CONTENT)
}

async fn record(webhooks: &Webhooks, request: Request) -> Result<(), Refusal> {
    let query: Vec<(String, String)> =
        serde_urlencoded::from_str(request.uri().query().unwrap_or_default()).unwrap_or_default();
    let form = trusted_form(webhooks, request).await?;
    let text = |name, missing| {
        field(&form, name).filter(|value| !value.is_empty()).ok_or(Refusal::Unreadable(missing))
    };
    let report = Report {
        sid: text("MessageSid", "no MessageSid")?.to_owned(),
        status: text("MessageStatus", "no MessageStatus")?.to_owned(),
        outbox: number(field(&query, "out")).map(OutboxId),
        attempt: number(field(&query, "n")),
        error_code: number(field(&form, "ErrorCode")),
    };
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
        Err(error) => {
            tracing::error!(%error, "a status callback could not be stored");
            return Err(Refusal::NotStored);
        }
    }
    Ok(())
}

fn number<T: std::str::FromStr>(text: Option<&str>) -> Option<T> {
    text?.parse().ok()
}
