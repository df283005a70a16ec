//! Receiving side of Twilio: verification of its requests, and the poll of its list for messages whose request never
//! reached our webhook.

use std::collections::HashSet;

use http::HeaderMap;
use jiff::SignedDuration;

use super::client::Twilio;
use super::signature::{
    self, ClaimedSignature, SETTINGS_HEADER, SIGNATURE_HEADER, SignatureVerifier, SignedBody,
};
use super::webhook::{self, CallbackQuery, FormFault};
use crate::conversation::routing::inbound_message::ReceivedMessage;
use crate::conversation::transcript::Address;
use crate::messaging::{
    InboundPage, LookupError, Poll, PollDelay, WebhookContent, WebhookKind, WebhookRefusal, WebhookRequest,
};

/// Period before the cursor that is read again, because the carrier may list a message late.
const OVERLAP: SignedDuration = SignedDuration::from_hours(1);
/// Empty TwiML document, with which a message is acknowledged. Any text in it would be sent to the user.
pub(super) const EMPTY_TWIML: &str = r#"<?xml version="1.0" encoding="UTF-8"?><Response/>"#;

/// Receiving side of an account.
#[derive(Debug)]
pub struct TwilioReceiving {
    /// Our number, whose received messages are listed.
    pub number: Address,
    /// Verifier of the signatures of Twilio's requests.
    pub verifier: SignatureVerifier,
}

impl From<FormFault> for WebhookRefusal {
    fn from(fault: FormFault) -> Self {
        Self::Malformed { label: fault.label(), description: fault.to_string() }
    }
}

impl Twilio {
    /// Authenticates and parses a request. A Host header is never trusted: the signature covers the public URL.
    pub(super) fn read_request(
        &self,
        receiving: &TwilioReceiving,
        request: &WebhookRequest<'_>,
    ) -> Result<WebhookContent, WebhookRefusal> {
        let form: Vec<(String, String)> =
            serde_urlencoded::from_bytes(request.body).map_err(|_| WebhookRefusal::NoForm)?;
        self.verify_signature(receiving, request, &form)?;
        let account_sid = self.account_sid();
        Ok(match request.kind {
            WebhookKind::Messages => {
                let message = webhook::parse_inbound_message(&form, account_sid, request.now)?;
                WebhookContent::Message(Box::new(message))
            }
            WebhookKind::Reports => {
                let query = request.target.split_once('?').map_or("", |(_, query)| query);
                let query = CallbackQuery::from_query(query);
                WebhookContent::Report(Box::new(webhook::parse_status_callback(&form, query, account_sid)?))
            }
        })
    }

    fn verify_signature(
        &self,
        receiving: &TwilioReceiving,
        request: &WebhookRequest<'_>,
        form: &[(String, String)],
    ) -> Result<(), WebhookRefusal> {
        let header = |name| header_text(request.headers, name);
        let claim = ClaimedSignature {
            signature: header(SIGNATURE_HEADER).ok_or(WebhookRefusal::Unsigned)?,
            settings: header(SETTINGS_HEADER),
        };
        let url = signature::signed_url(self.public_url(), request.target);
        receiving.verifier.verify(&url, SignedBody::Form(form), claim).map_err(|_| WebhookRefusal::Unsigned)
    }

    /// Polls the list for messages to our number. The first poll of a number only returns a cursor.
    pub(super) async fn poll_number(
        &self,
        number: &Address,
        poll: &Poll,
    ) -> Result<InboundPage, LookupError> {
        let mut cursor = poll.start_cursor();
        if poll.cursor.is_none() {
            // Messages from before the first start were not meant for this program.
            return Ok(InboundPage::empty(cursor, PollDelay::Later));
        }
        let listed = self.fetch_received_since(number, cursor.read_until - OVERLAP, poll.now).await?;
        let (messages, recent) = self.split_off_recent(listed, poll);
        let read_until = messages.iter().map(|message| message.provider_at).fold(cursor.read_until, Ord::max);
        cursor.read_until = read_until.min(poll.now);
        let next = if recent.is_empty() { PollDelay::Later } else { PollDelay::Soon };
        Ok(InboundPage { messages, ..InboundPage::empty(cursor, next) })
    }

    /// Splits the listed messages into missed ones, and ones that are too recent and are deferred.
    fn split_off_recent(
        &self,
        listed: Vec<ReceivedMessage>,
        poll: &Poll,
    ) -> (Vec<ReceivedMessage>, Vec<ReceivedMessage>) {
        let mut deferred = self.lock_deferred();
        let (missed, recent): (Vec<_>, Vec<_>) = listed.into_iter().partition(|message| {
            message.provider_at <= poll.now - poll.min_age || deferred.contains(&message.external_id)
        });
        *deferred = recent.iter().map(|message| message.external_id.clone()).collect::<HashSet<_>>();
        (missed, recent)
    }
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or_default())
}
