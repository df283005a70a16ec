//! Dialarr's number at Twilio: the address to which Twilio delivers messages, and the fallback address.

use super::setting_diff::SettingDiff;
use super::{SetupOutcome, SetupRequest};
use crate::conversation::transcript::PhoneNumber;
use crate::messaging::twilio::{Twilio, WEBHOOK_PATH};
use crate::messaging::twilio_account::{AccountError, IncomingPhoneNumber, MessagingService};

/// URL fragment for Twilio, which removes it before the request: by default Twilio retries only if it cannot connect,
/// and only once. All tries share 15 s, so a single try without a response must not use up all of them.
const RETRIES: &str = "#rc=3&rp=5xx,ct,rt&rt=5000";

/// Addresses to which a number should deliver messages.
pub(crate) struct WebhookAddresses {
    webhook: String,
    fallback: String,
}

impl WebhookAddresses {
    pub(crate) fn from_public_url(public_url: &str) -> Self {
        let fallback = format!("{}{WEBHOOK_PATH}", public_url.trim_end_matches('/'));
        Self { webhook: format!("{fallback}{RETRIES}"), fallback }
    }

    /// Returns the settings of the number that differ from their targets.
    pub(crate) fn setting_diffs(&self, number: &IncomingPhoneNumber) -> Vec<SettingDiff> {
        let application = if number.sms_application_sid.is_empty() { "" } else { "a TwiML app" };
        [
            SettingDiff::of_address("webhook", &number.sms_url, &self.webhook),
            SettingDiff::between("method", &number.sms_method, "POST"),
            SettingDiff::of_address("fallback", &number.sms_fallback_url, &self.fallback),
            SettingDiff::between("fallback method", &number.sms_fallback_method, "POST"),
            SettingDiff::between("texts go to", application, ""),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Returns the differing settings of the messaging service that contains the number. A service that leads here
    /// itself is not changed.
    pub(crate) fn service_changes(&self, service: &MessagingService) -> Vec<SettingDiff> {
        let leads_here = service.inbound_request_url.split('#').next() == Some(&self.fallback);
        if service.use_inbound_webhook_on_number || leads_here {
            return Vec::new();
        }
        let now = match super::setting_diff::without_secrets(&service.inbound_request_url) {
            nowhere if nowhere.is_empty() => "nowhere".to_owned(),
            address => address,
        };
        vec![SettingDiff::new("texts go to", now, "the webhook of each of its numbers")]
    }
}

pub(crate) async fn set_up(
    twilio: &Twilio,
    phone: &PhoneNumber,
    addresses: &WebhookAddresses,
    work: SetupRequest,
) -> SetupOutcome {
    let number = match find_number(twilio, phone).await {
        Ok(number) => number,
        Err(outcome) => return outcome,
    };
    let changes = addresses.setting_diffs(&number);
    if changes.is_empty() || !work.applies() {
        return SetupOutcome::planned(changes);
    }
    let fields = [
        ("SmsUrl", addresses.webhook.as_str()),
        ("SmsMethod", "POST"),
        ("SmsFallbackUrl", &addresses.fallback),
        ("SmsFallbackMethod", "POST"),
        // While an application is set, Twilio ignores the addresses.
        ("SmsApplicationSid", ""),
    ];
    // The error of a failed change does not show its outcome; reading the number back does.
    let changed = twilio.update_number(&number.sid, &fields).await;
    match (find_number(twilio, phone).await, changed) {
        (Ok(number), changed) => match (addresses.setting_diffs(&number), changed) {
            (left, _) if left.is_empty() => SetupOutcome::Done(changes),
            (_, Err(error)) => failed_outcome(changes, &error),
            (left, Ok(())) => SetupOutcome::unchanged(changes, &left),
        },
        (Err(_), Err(error)) => failed_outcome(changes, &error),
        (Err(outcome), Ok(())) => outcome,
    }
}

pub(crate) async fn set_up_service(
    twilio: &Twilio,
    addresses: &WebhookAddresses,
    work: SetupRequest,
) -> Option<SetupOutcome> {
    let service = match twilio.fetch_messaging_service().await {
        Ok(service) => service?,
        Err(error) => return Some(failed_outcome(Vec::new(), &error)),
    };
    let changes = addresses.service_changes(&service);
    if changes.is_empty() || !work.applies() {
        return Some(SetupOutcome::planned(changes));
    }
    let changed = twilio.defer_webhooks_to_numbers().await;
    Some(match (twilio.fetch_messaging_service().await, changed) {
        (Ok(Some(service)), changed) => match (addresses.service_changes(&service), changed) {
            (left, _) if left.is_empty() => SetupOutcome::Done(changes),
            (_, Err(error)) => failed_outcome(changes, &error),
            (left, Ok(())) => SetupOutcome::unchanged(changes, &left),
        },
        (_, Err(error)) | (Err(error), Ok(())) => failed_outcome(changes, &error),
        // The number existed a moment ago, and the configuration has not changed since.
        (Ok(None), Ok(())) => SetupOutcome::Done(changes),
    })
}

async fn find_number(twilio: &Twilio, phone: &PhoneNumber) -> Result<IncomingPhoneNumber, SetupOutcome> {
    match twilio.fetch_number(phone).await {
        Ok(Some(number)) => Ok(number),
        Ok(None) => Err(SetupOutcome::Failed {
            changes: Vec::new(),
            why: "find the number in the account".to_owned(),
            hint: "check TWILIO_PHONE_NUMBER and TWILIO_ACCOUNT_SID".to_owned(),
        }),
        Err(error) => Err(failed_outcome(Vec::new(), &error)),
    }
}

fn failed_outcome(changes: Vec<SettingDiff>, error: &AccountError) -> SetupOutcome {
    SetupOutcome::Failed { changes, why: error.to_string(), hint: account_advice(error).to_owned() }
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
            "set the webhook of the number by hand, as docs/OPERATIONS.md describes"
        }
    }
}
