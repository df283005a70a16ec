//! JSON of the gateway's API. Unknown fields are ignored.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::conversation::delivery_status::DeliveryStatus;

/// Request to send a message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewGatewayMessage<'a> {
    pub(super) id: &'a str,
    pub(super) text_message: GatewayText,
    pub(super) phone_numbers: [&'a str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sim_number: Option<u8>,
    /// Seconds after which the phone does not send the message any more.
    pub(super) ttl: u64,
    pub(super) with_delivery_report: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct GatewayText {
    pub(super) text: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct GatewayHash {
    hash: String,
}

/// Message at the gateway, with its state.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GatewayMessage {
    pub(super) id: String,
    pub(super) state: String,
    recipients: Vec<GatewayRecipient>,
    /// Times of the states, by the clock of the phone.
    #[serde(default)]
    states: BTreeMap<String, String>,
    #[serde(default)]
    text_message: Option<GatewayText>,
    /// Hash of the text, if the gateway no longer stores the text itself.
    #[serde(default)]
    hashed_message: Option<GatewayHash>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GatewayRecipient {
    phone_number: String,
    #[serde(default)]
    error: Option<String>,
}

impl GatewayMessage {
    /// Returns whether the message has this only recipient and this text.
    pub(super) fn is_to(&self, number: &str, text: &str) -> bool {
        let has_recipient = self.recipient() == Some(number);
        let has_text = match (&self.text_message, &self.hashed_message) {
            (Some(stored), _) => stored.text == text,
            (None, Some(stored)) => stored.hash.eq_ignore_ascii_case(&hash_text(text)),
            (None, None) => false,
        };
        has_recipient && has_text
    }

    /// Returns the only recipient; `None` if there are several.
    pub(super) fn recipient(&self) -> Option<&str> {
        let [recipient] = self.recipients.as_slice() else { return None };
        Some(&recipient.phone_number)
    }

    /// Returns the delivery status; `None` before the phone has given the message to its radio.
    pub(super) fn delivery(&self) -> Option<DeliveryStatus> {
        parse_state(&self.state)
    }

    /// Returns the reason of a failure.
    pub(super) fn error(&self) -> Option<&str> {
        self.recipients.iter().find_map(|recipient| recipient.error.as_deref())
    }

    /// Returns the time at which the phone accepted the message, by its clock.
    pub(super) fn accepted_at(&self) -> Option<Timestamp> {
        self.states.get("Pending")?.parse().ok()
    }
}

fn hash_text(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses a state of the gateway; `None` for one in which the message waits.
pub(super) fn parse_state(state: &str) -> Option<DeliveryStatus> {
    match state {
        "Processed" => Some(DeliveryStatus::Sending),
        "Sent" => Some(DeliveryStatus::Sent),
        "Delivered" => Some(DeliveryStatus::Delivered),
        "Failed" => Some(DeliveryStatus::Failed),
        "Cancelled" => Some(DeliveryStatus::Canceled),
        // Pending, Cancelling, and states of later versions.
        _ => None,
    }
}

/// Entry of the inbox.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InboxEntry {
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) sender: String,
    #[serde(default)]
    pub(super) sim_number: Option<u8>,
    /// Whole text of an SMS.
    pub(super) content_preview: String,
    /// Time at which the message center received the text from its sender.
    pub(super) created_at: Timestamp,
    #[serde(default)]
    pub(super) attachments: Vec<InboxAttachment>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InboxAttachment {
    pub(super) content_type: String,
}

/// Body of a webhook.
#[derive(Debug, Deserialize)]
pub(super) struct GatewayEvent {
    pub(super) event: String,
    pub(super) payload: EventPayload,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct EventPayload {
    pub(super) message_id: Option<String>,
    /// Other party in the earlier versions, which have no `sender` and `recipient`.
    pub(super) phone_number: Option<String>,
    pub(super) sender: Option<String>,
    pub(super) recipient: Option<String>,
    pub(super) sim_number: Option<u8>,
    pub(super) message: Option<String>,
    pub(super) body: Option<String>,
    pub(super) received_at: Option<Timestamp>,
    pub(super) attachments: Vec<InboxAttachment>,
    pub(super) reason: Option<String>,
}
