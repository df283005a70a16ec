//! Signed webhooks of the phone: received texts, and states of sent messages.

use std::fmt::Write;

use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use http::HeaderMap;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::client::SmsGate;
use super::inbox::ReceivedText;
use super::sender_number::parse_sender;
use super::wire::{EventPayload, GatewayEvent};
use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::routing::inbound_message::MessageSource;
use crate::messaging::{WebhookContent, WebhookRefusal, WebhookRequest};
use crate::store::queue::delivery_reports::ReportWay;

/// Header with the signature of the body and the time.
pub const SIGNATURE_HEADER: &str = "x-signature";
/// Header with the time of the request in seconds.
pub const TIMESTAMP_HEADER: &str = "x-timestamp";
/// Difference from our clock up to which a request is accepted.
const MAX_AGE_SECONDS: u64 = 300;

impl SmsGate {
    /// Authenticates and parses an event. Events that mean nothing here are accepted without an effect.
    pub(super) fn read_event(&self, request: &WebhookRequest<'_>) -> Result<WebhookContent, WebhookRefusal> {
        let key = self.account.signing_key.as_ref().ok_or(WebhookRefusal::Unsigned)?;
        verify_signature(key, request)?;
        let event: GatewayEvent = serde_json::from_slice(request.body)
            .map_err(|error| malformed("no_event", &format!("not an event: {error}")))?;
        match event.event.as_str() {
            "sms:received" | "mms:downloaded" => self.parse_text(event.payload, request.now),
            "sms:sent" => self.parse_state(event.payload, DeliveryStatus::Sent),
            "sms:delivered" => self.parse_state(event.payload, DeliveryStatus::Delivered),
            "sms:failed" => self.parse_state(event.payload, DeliveryStatus::Failed),
            _ => Ok(WebhookContent::Nothing),
        }
    }

    fn parse_text(&self, payload: EventPayload, now: Timestamp) -> Result<WebhookContent, WebhookRefusal> {
        let sender = payload.sender.or(payload.phone_number);
        let sender = sender.ok_or_else(|| malformed("missing_field", "no sender"))?;
        let sent_at = payload.received_at.ok_or_else(|| malformed("missing_field", "no time"))?;
        let Some(from) = parse_sender(&sender, &self.account.number) else {
            return Ok(WebhookContent::Nothing);
        };
        if !self.is_own_sim(payload.sim_number) {
            return Ok(WebhookContent::Nothing);
        }
        let body = payload.message.or(payload.body).unwrap_or_default();
        // The phone repeats an event for hours, so its age decides, and not the age of the request.
        let via = match self.lock_poll_state().is_direct(sent_at, now) {
            true => MessageSource::Webhook,
            false => MessageSource::Recovery,
        };
        let content = ReceivedText { body, attachments: payload.attachments };
        let message = self.received_message(from, content, (sent_at, now), via);
        Ok(WebhookContent::Message(Box::new(message)))
    }

    fn parse_state(
        &self,
        payload: EventPayload,
        status: DeliveryStatus,
    ) -> Result<WebhookContent, WebhookRefusal> {
        let id = payload.message_id.ok_or_else(|| malformed("missing_field", "no message id"))?;
        self.record_left(&id);
        Ok(WebhookContent::Report(Box::new(self.report(
            (&id, ReportWay::Webhook),
            status,
            payload.reason.as_deref(),
        ))))
    }
}

fn malformed(label: &'static str, description: &str) -> WebhookRefusal {
    WebhookRefusal::Malformed { label, description: description.to_owned() }
}

fn verify_signature(key: &SecretString, request: &WebhookRequest<'_>) -> Result<(), WebhookRefusal> {
    let timestamp = header_text(request.headers, TIMESTAMP_HEADER).ok_or(WebhookRefusal::Unsigned)?;
    let signature = header_text(request.headers, SIGNATURE_HEADER).ok_or(WebhookRefusal::Unsigned)?;
    let seconds: i64 = timestamp.parse().map_err(|_| WebhookRefusal::Unsigned)?;
    let expected = sign_webhook(key, request.body, timestamp);
    let is_signed: bool = expected.as_bytes().ct_eq(signature.as_bytes()).into();
    let is_recent = seconds.abs_diff(request.now.as_second()) <= MAX_AGE_SECONDS;
    if is_signed && is_recent { Ok(()) } else { Err(WebhookRefusal::Unsigned) }
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Returns the signature of a body and a time.
pub fn sign_webhook(key: &SecretString, body: &[u8], timestamp: &str) -> String {
    let mut signature = String::new();
    // HMAC accepts keys of any length, so the empty default is never used.
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key.expose_secret().as_bytes()) {
        mac.update(body);
        mac.update(timestamp.as_bytes());
        for byte in mac.finalize().into_bytes() {
            // Writing to a string never fails.
            let _ = write!(signature, "{byte:02x}");
        }
    }
    signature
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_covers_the_body_and_then_the_time() {
        // Test case 2 of RFC 4231, split at an arbitrary place.
        let signature = sign_webhook(&SecretString::from("Jefe"), b"what do ya want ", "for nothing?");
        assert_eq!(signature, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
}
