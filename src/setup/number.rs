//! Our number at Twilio: where it brings texts, and where it does so when that fails.

use super::change::Change;
use super::{Outcome, Work};
use crate::conversation::transcript::PhoneNumber;
use crate::messaging::numbers::{AccountError, Number, SenderPool};
use crate::messaging::twilio::{Twilio, WEBHOOK_PATH};

/// For Twilio alone, which takes it off the address: by default it tries again only if it cannot connect, and once. All
/// tries share 15 s, so that one which gets no answer must not take them all.
const RETRIES: &str = "#rc=3&rp=5xx,ct,rt&rt=5000";

/// Where a number should bring texts.
pub(crate) struct Addresses {
    webhook: String,
    fallback: String,
}

impl Addresses {
    pub(crate) fn below(public_url: &str) -> Self {
        let fallback = format!("{}{WEBHOOK_PATH}", public_url.trim_end_matches('/'));
        Self { webhook: format!("{fallback}{RETRIES}"), fallback }
    }

    /// What about the number is not as it should be.
    pub(crate) fn changes(&self, number: &Number) -> Vec<Change> {
        let application = if number.sms_application_sid.is_empty() { "" } else { "a TwiML app" };
        [
            Change::of_address("webhook", &number.sms_url, &self.webhook),
            Change::between("method", &number.sms_method, "POST"),
            Change::of_address("fallback", &number.sms_fallback_url, &self.fallback),
            Change::between("fallback method", &number.sms_fallback_method, "POST"),
            Change::between("texts go to", application, ""),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// The same about the messaging service that the number is in. One that leads here itself is left alone.
    pub(crate) fn service_changes(&self, service: &SenderPool) -> Vec<Change> {
        let leads_here = service.inbound_request_url.split('#').next() == Some(&self.fallback);
        if service.use_inbound_webhook_on_number || leads_here {
            return Vec::new();
        }
        let now = match super::change::without_secrets(&service.inbound_request_url) {
            nowhere if nowhere.is_empty() => "nowhere".to_owned(),
            address => address,
        };
        vec![Change::new("texts go to", now, "the webhook of each of its numbers")]
    }
}

pub(crate) async fn set_up(
    twilio: &Twilio,
    phone: &PhoneNumber,
    addresses: &Addresses,
    work: Work,
) -> Outcome {
    let number = match find(twilio, phone).await {
        Ok(number) => number,
        Err(outcome) => return outcome,
    };
    let changes = addresses.changes(&number);
    if changes.is_empty() || !work.applies() {
        return Outcome::planned(changes);
    }
    let fields = [
        ("SmsUrl", addresses.webhook.as_str()),
        ("SmsMethod", "POST"),
        ("SmsFallbackUrl", &addresses.fallback),
        ("SmsFallbackMethod", "POST"),
        // While there is one, the addresses do not count.
        ("SmsApplicationSid", ""),
    ];
    // What cannot be known of a change that failed, reading tells.
    let changed = twilio.set_number(&number.sid, &fields).await;
    match (find(twilio, phone).await, changed) {
        (Ok(number), changed) => match (addresses.changes(&number), changed) {
            (left, _) if left.is_empty() => Outcome::Done(changes),
            (_, Err(error)) => failed(changes, &error),
            (left, Ok(())) => Outcome::unchanged(changes, &left),
        },
        (Err(_), Err(error)) => failed(changes, &error),
        (Err(outcome), Ok(())) => outcome,
    }
}

pub(crate) async fn set_up_service(twilio: &Twilio, addresses: &Addresses, work: Work) -> Option<Outcome> {
    let service = match twilio.messaging_service().await {
        Ok(service) => service?,
        Err(error) => return Some(failed(Vec::new(), &error)),
    };
    let changes = addresses.service_changes(&service);
    if changes.is_empty() || !work.applies() {
        return Some(Outcome::planned(changes));
    }
    let changed = twilio.leave_texts_to_numbers().await;
    Some(match (twilio.messaging_service().await, changed) {
        (Ok(Some(service)), changed) => match (addresses.service_changes(&service), changed) {
            (left, _) if left.is_empty() => Outcome::Done(changes),
            (_, Err(error)) => failed(changes, &error),
            (left, Ok(())) => Outcome::unchanged(changes, &left),
        },
        (_, Err(error)) | (Err(error), Ok(())) => failed(changes, &error),
        // It was there a moment ago, and what is configured has not changed since.
        (Ok(None), Ok(())) => Outcome::Done(changes),
    })
}

async fn find(twilio: &Twilio, phone: &PhoneNumber) -> Result<Number, Outcome> {
    match twilio.number(phone).await {
        Ok(Some(number)) => Ok(number),
        Ok(None) => Err(Outcome::Failed {
            changes: Vec::new(),
            why: "find the number in the account".to_owned(),
            hint: "check TWILIO_PHONE_NUMBER and TWILIO_ACCOUNT_SID".to_owned(),
        }),
        Err(error) => Err(failed(Vec::new(), &error)),
    }
}

fn failed(changes: Vec<Change>, error: &AccountError) -> Outcome {
    Outcome::Failed { changes, why: error.to_string(), hint: advice(error).to_owned() }
}

pub(crate) fn advice(error: &AccountError) -> &'static str {
    match error {
        AccountError::Unreachable(_) => "check the network, and TWILIO_API_URL if it is set",
        AccountError::Refused { code: Some(20003), .. } => {
            "check TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN, or the API key, which must not be restricted"
        }
        AccountError::Refused { code: Some(20404), .. } => {
            "check TWILIO_ACCOUNT_SID and TWILIO_MESSAGING_SERVICE_SID"
        }
        AccountError::Refused { .. } | AccountError::Unreadable(_) => {
            "set the webhook of the number by hand, as docs/OPERATIONS.md describes"
        }
    }
}
