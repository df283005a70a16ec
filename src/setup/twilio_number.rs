//! Webhook settings of Dialarr's number and messaging service at Twilio: comparison with their target, and update.

use super::setting_diff::SettingDiff;
use super::{SetupOutcome, SetupRequest};
use crate::conversation::transcript::PhoneNumber;
use crate::messaging::twilio::account::{AccountError, IncomingPhoneNumber, MessagingService};
use crate::messaging::twilio::{Twilio, WEBHOOK_PATH};

/// URL fragment with Twilio's retry settings. By default, Twilio retries only once and only if it cannot connect. All
/// attempts share 15 s, so each gets a timeout of 5 s.
const RETRY_FRAGMENT: &str = "#rc=3&rp=5xx,ct,rt&rt=5000";

/// Target URLs of a number.
pub(crate) struct WebhookUrls {
    webhook: String,
    fallback: String,
}

impl WebhookUrls {
    pub(crate) fn from_public_url(public_url: &str) -> Self {
        let fallback = format!("{}{WEBHOOK_PATH}", public_url.trim_end_matches('/'));
        Self { webhook: format!("{fallback}{RETRY_FRAGMENT}"), fallback }
    }

    /// Returns the settings of the number that differ from their targets.
    pub(crate) fn setting_diffs(&self, number: &IncomingPhoneNumber) -> Vec<SettingDiff> {
        let application = if number.sms_application_sid.is_empty() { "" } else { "a TwiML app" };
        [
            SettingDiff::between_urls("webhook", &number.sms_url, &self.webhook),
            SettingDiff::between("method", &number.sms_method, "POST"),
            SettingDiff::between_urls("fallback", &number.sms_fallback_url, &self.fallback),
            SettingDiff::between("fallback method", &number.sms_fallback_method, "POST"),
            SettingDiff::between("texts go to", application, ""),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Returns the settings of the messaging service that differ from their targets. A service with Dialarr's URL is not
    /// changed.
    pub(crate) fn service_diffs(&self, service: &MessagingService) -> Vec<SettingDiff> {
        let points_here = service.inbound_request_url.split('#').next() == Some(&self.fallback);
        if service.use_inbound_webhook_on_number || points_here {
            return Vec::new();
        }
        let current = match super::setting_diff::without_secrets(&service.inbound_request_url) {
            url if url.is_empty() => "nowhere".to_owned(),
            url => url,
        };
        vec![SettingDiff::new("texts go to", current, "the webhook of each of its numbers")]
    }
}

pub(crate) async fn set_up(
    twilio: &Twilio,
    phone: &PhoneNumber,
    urls: &WebhookUrls,
    request: SetupRequest,
) -> SetupOutcome {
    let number = match find_number(twilio, phone).await {
        Ok(number) => number,
        Err(outcome) => return outcome,
    };
    let changes = urls.setting_diffs(&number);
    if changes.is_empty() || !request.applies() {
        return SetupOutcome::planned(changes);
    }
    let fields = [
        ("SmsUrl", urls.webhook.as_str()),
        ("SmsMethod", "POST"),
        ("SmsFallbackUrl", &urls.fallback),
        ("SmsFallbackMethod", "POST"),
        // While an application is set, Twilio ignores the URLs.
        ("SmsApplicationSid", ""),
    ];
    // A failed request may have changed the number, so the settings are fetched again.
    let result = twilio.update_number(&number.sid, &fields).await;
    match (find_number(twilio, phone).await, result) {
        (Ok(number), result) => match (urls.setting_diffs(&number), result) {
            (remaining, _) if remaining.is_empty() => SetupOutcome::Applied(changes),
            (_, Err(error)) => failed_outcome(changes, &error),
            (remaining, Ok(())) => SetupOutcome::unchanged(changes, &remaining),
        },
        (Err(_), Err(error)) => failed_outcome(changes, &error),
        (Err(outcome), Ok(())) => outcome,
    }
}

pub(crate) async fn set_up_service(
    twilio: &Twilio,
    urls: &WebhookUrls,
    request: SetupRequest,
) -> Option<SetupOutcome> {
    let service = match twilio.fetch_messaging_service().await {
        Ok(service) => service?,
        Err(error) => return Some(failed_outcome(Vec::new(), &error)),
    };
    let changes = urls.service_diffs(&service);
    if changes.is_empty() || !request.applies() {
        return Some(SetupOutcome::planned(changes));
    }
    let result = twilio.defer_webhooks_to_numbers().await;
    Some(match (twilio.fetch_messaging_service().await, result) {
        (Ok(Some(service)), result) => match (urls.service_diffs(&service), result) {
            (remaining, _) if remaining.is_empty() => SetupOutcome::Applied(changes),
            (_, Err(error)) => failed_outcome(changes, &error),
            (remaining, Ok(())) => SetupOutcome::unchanged(changes, &remaining),
        },
        (_, Err(error)) | (Err(error), Ok(())) => failed_outcome(changes, &error),
        // The service was removed in the meantime.
        (Ok(None), Ok(())) => SetupOutcome::Applied(changes),
    })
}

async fn find_number(twilio: &Twilio, phone: &PhoneNumber) -> Result<IncomingPhoneNumber, SetupOutcome> {
    match twilio.fetch_number(phone).await {
        Ok(Some(number)) => Ok(number),
        Ok(None) => Err(SetupOutcome::Failed {
            changes: Vec::new(),
            reason: "find the number in the account".to_owned(),
            hint: "check TWILIO_PHONE_NUMBER and TWILIO_ACCOUNT_SID".to_owned(),
        }),
        Err(error) => Err(failed_outcome(Vec::new(), &error)),
    }
}

fn failed_outcome(changes: Vec<SettingDiff>, error: &AccountError) -> SetupOutcome {
    SetupOutcome::Failed { changes, reason: error.to_string(), hint: account_advice(error).to_owned() }
}

pub(crate) fn account_advice(error: &AccountError) -> &'static str {
    match error {
        AccountError::Unreachable(_) => "check the network, and TWILIO_API_URL if it is set",
        AccountError::Rejected { code: Some(20003), .. } => {
            "check TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN, or the API key, which must not be restricted"
        }
        AccountError::Rejected { code: Some(20404), .. } => {
            "check TWILIO_ACCOUNT_SID and TWILIO_MESSAGING_SERVICE_SID"
        }
        AccountError::Rejected { .. } | AccountError::MalformedResponse(_) => {
            "set the webhook of the number manually as described in docs/TWILIO.md"
        }
    }
}
