//! Signed webhooks of the simulated phone.

use bytes::Bytes;
use http::Request;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::phone::FakePhone;
use crate::messaging::smsgate::{SIGNATURE_HEADER, TIMESTAMP_HEADER, sign_webhook};

const WEBHOOK_PATH: &str = "/webhook/smsgate";

impl FakePhone {
    /// Puts a text into the inbox, and builds the request that reports it.
    pub fn report_text(&self, from: &str, body: &str) -> Result<Request<Bytes>, http::Error> {
        self.receive_text(from, body);
        let payload = json!({
            "messageId": "1", "sender": from, "phoneNumber": from, "recipient": null, "simNumber": 1,
            "message": body, "receivedAt": self.clock.now().to_string(),
        });
        self.sign_event("sms:received", &payload, self.clock.now())
    }

    /// Builds the request that reports a state of a message, such as `sms:sent`.
    pub fn report_state(&self, event: &str, id: &str) -> Result<Request<Bytes>, http::Error> {
        self.sign_event(event, &json!({ "messageId": id, "sender": null, "simNumber": 1 }), self.clock.now())
    }

    /// Builds a request that was signed at a time.
    pub fn sign_event(
        &self,
        event: &str,
        payload: &Value,
        signed_at: Timestamp,
    ) -> Result<Request<Bytes>, http::Error> {
        let event = json!({
            "id": "event", "webhookId": "dialarr", "deviceId": "fake-device", "event": event, "payload": payload,
        });
        let body = event.to_string();
        let timestamp = signed_at.as_second().to_string();
        let signature = sign_webhook(&self.account.signing_key, body.as_bytes(), &timestamp);
        Request::post(WEBHOOK_PATH)
            .header(SIGNATURE_HEADER, signature)
            .header(TIMESTAMP_HEADER, timestamp)
            .body(Bytes::from(body))
    }
}
