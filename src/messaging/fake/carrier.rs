//! State of the simulated carrier, and the settings by which a test makes it misbehave.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use jiff::Timestamp;
use secrecy::SecretString;
use sha2::{Digest, Sha256};
use tokio::sync::broadcast;

use super::inbound_webhook::{InboundForm, signed_form};
use super::phone_numbers::NumberSettings;
use crate::clock::Clock;
use crate::conversation::transcript::Address;
use crate::http::{HttpClient, HttpError};
use crate::messaging::twilio::{TwilioAccount, TwilioCredentials, TwilioSender};

/// Time that Twilio waits for a webhook.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(15);
/// Messages by which a slow subscriber may be behind.
const BACKLOG: usize = 1024;

/// Only account of the carrier, with its only number.
#[derive(Debug, Clone)]
pub struct FakeAccount {
    pub account_sid: String,
    pub auth_token: SecretString,
    pub number: Address,
    /// Base URL of the configured webhooks; their signatures use it.
    pub public_url: String,
}

/// Simulated carrier. Clones share one state.
#[derive(Debug, Clone)]
pub struct FakeTwilio {
    pub(super) account: Arc<FakeAccount>,
    pub(super) clock: Clock,
    state: Arc<Mutex<CarrierState>>,
    pub(super) accepted: broadcast::Sender<SentText>,
}

/// Message that we sent and the carrier accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentText {
    pub sid: String,
    pub to: Address,
    pub from: Address,
    pub body: String,
    pub media: Vec<String>,
    pub callback: Option<String>,
    pub accepted_at: Timestamp,
}

/// Status of a status callback; failures contain their code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FakeDelivery {
    Queued,
    Sending,
    Sent,
    Delivered,
    Undelivered(u32),
    Failed(u32),
}

impl FakeTwilio {
    pub fn new(account: FakeAccount, clock: Clock) -> Self {
        let (accepted, _) = broadcast::channel(BACKLOG);
        Self { account: Arc::new(account), clock, state: Arc::default(), accepted }
    }

    /// Returns the settings with which a client connects to this carrier.
    pub fn client_account(&self, api_url: &str) -> TwilioAccount {
        TwilioAccount {
            api_url: api_url.to_owned(),
            account_sid: self.account.account_sid.clone(),
            credentials: TwilioCredentials::AuthToken(self.account.auth_token.clone()),
            sender: TwilioSender::Number,
            public_url: self.account.public_url.clone(),
        }
    }

    /// Returns every message accepted so far, oldest first.
    pub fn sent_messages(&self) -> Vec<SentText> {
        let outbound = |message: &FakeMessage| match &message.direction {
            MessageDirection::Inbound { .. } => None,
            MessageDirection::Outbound { text, .. } => Some(text.clone()),
        };
        self.lock_state().messages.iter().filter_map(outbound).collect()
    }

    /// Returns a receiver of each message accepted from now on, at the moment of acceptance. A receiver that falls far
    /// behind misses the oldest.
    pub fn subscribe(&self) -> broadcast::Receiver<SentText> {
        self.accepted.subscribe()
    }

    /// Creates a message from a user to our number. The carrier does not have the message before
    /// [`InboundForm::into_signed_request`].
    pub fn inbound_form(&self, from: &str, body: &str) -> InboundForm {
        InboundForm::new(self.clone(), from, body)
    }

    /// Sends a signed request to our webhook, once.
    pub async fn deliver_request(
        request: Request<Bytes>,
        webhook: &HttpClient,
    ) -> Result<Response<Bytes>, HttpError> {
        webhook.send(request, WEBHOOK_TIMEOUT).await
    }

    /// Updates a message's status and builds the signed callback that reports it; none for a message sent without a
    /// callback URL.
    pub fn status_callback(
        &self,
        sent: &SentText,
        delivery: FakeDelivery,
    ) -> Result<Option<Request<Bytes>>, http::Error> {
        for message in self.lock_state().messages.iter_mut().filter(|message| message.sid == sent.sid) {
            if let MessageDirection::Outbound { delivery: known, .. } = &mut message.direction {
                *known = delivery;
            }
        }
        let mut fields = vec![
            ("MessageSid", sent.sid.as_str()),
            ("SmsSid", &sent.sid),
            ("MessageStatus", delivery.name()),
            ("SmsStatus", delivery.name()),
            ("To", sent.to.as_str()),
            ("From", sent.from.as_str()),
            ("AccountSid", &self.account.account_sid),
            ("ApiVersion", "2010-04-01"),
        ];
        let code = delivery.error_code().map(|code| code.to_string());
        fields.extend(code.as_deref().map(|code| ("ErrorCode", code)));
        sent.callback.as_deref().map(|url| signed_form(&self.account, url, &fields)).transpose()
    }

    /// Refuses the next message with this status and code; nothing is created.
    pub fn fail_next(&self, status: u16, code: u32) {
        self.lock_state().faults.push_back(SendFault::Refuse { status, code });
    }

    /// Refuses every later message with a picture, with this status and code.
    pub fn refuse_pictures(&self, status: u16, code: u32) {
        self.lock_state().no_pictures = Some((status, code));
    }

    /// Leaves the next message without a response; nothing is created.
    pub fn hang_next(&self) {
        self.lock_state().faults.push_back(SendFault::Hang);
    }

    /// Accepts the next message, but its response never arrives.
    pub fn lose_next_answer(&self) {
        self.lock_state().faults.push_back(SendFault::LoseAnswer);
    }

    /// Makes every later page of the list name another one.
    pub fn list_never_ends(&self) {
        self.lock_state().endless = true;
    }

    /// Sets whether reads of messages, by id or as a list, are refused with 503.
    pub fn refuse_reads(&self, refused: bool) {
        self.lock_state().reads_refused = refused;
    }

    /// Sets the time until each message is accepted: a manual clock advances by it, a system clock waits.
    pub fn set_latency(&self, latency: Duration) {
        self.lock_state().latency = latency;
    }

    pub(super) fn lock_state(&self) -> MutexGuard<'_, CarrierState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FakeDelivery {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Delivered => "delivered",
            Self::Undelivered(_) => "undelivered",
            Self::Failed(_) => "failed",
        }
    }

    pub(super) fn error_code(self) -> Option<u32> {
        match self {
            Self::Queued | Self::Sending | Self::Sent | Self::Delivered => None,
            Self::Undelivered(code) | Self::Failed(code) => Some(code),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct CarrierState {
    /// Messages in order of arrival.
    pub messages: Vec<FakeMessage>,
    pub faults: VecDeque<SendFault>,
    pub latency: Duration,
    pub endless: bool,
    pub reads_refused: bool,
    pub no_pictures: Option<(u16, u32)>,
    pub settings: NumberSettings,
    opted_out: BTreeSet<String>,
    minted: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendFault {
    Refuse { status: u16, code: u32 },
    Hang,
    LoseAnswer,
}

/// One entry of the carrier's log.
#[derive(Debug, Clone)]
pub(super) struct FakeMessage {
    pub sid: String,
    pub from: Address,
    pub to: Address,
    pub body: String,
    pub at: Timestamp,
    /// Time from which the list shows the message.
    pub listed_at: Timestamp,
    pub direction: MessageDirection,
}

#[derive(Debug, Clone)]
pub(super) enum MessageDirection {
    Inbound { media: usize },
    Outbound { text: SentText, delivery: FakeDelivery },
}

impl CarrierState {
    /// Returns a new SID: `SM` or `MM` and 32 hexadecimal digits, the same in every run.
    pub fn mint_sid(&mut self, prefix: &str) -> String {
        self.minted += 1;
        let digest = Sha256::digest(self.minted.to_be_bytes());
        let digits: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("{prefix}{digits}")
    }

    /// Applies a keyword to the pair of user and number, of which there is one number here. WhatsApp has different
    /// rules.
    pub fn note_keyword(&mut self, from: &Address, body: &str) {
        let Some(person) = opt_out_key(from) else { return };
        match body.to_ascii_uppercase().as_str() {
            "STOP" | "STOPALL" | "UNSUBSCRIBE" | "CANCEL" | "END" | "QUIT" | "REVOKE" | "OPTOUT" => {
                self.opted_out.insert(person);
            }
            "START" | "YES" | "UNSTOP" => {
                self.opted_out.remove(&person);
            }
            _ => {}
        }
    }

    pub fn is_opted_out(&self, to: &Address) -> bool {
        opt_out_key(to).is_some_and(|person| self.opted_out.contains(&person))
    }
}

fn opt_out_key(address: &Address) -> Option<String> {
    match (address.prefix(), address.phone()) {
        ("" | "rcs:", Ok(phone)) => Some(phone.as_str().to_owned()),
        _ => None,
    }
}
