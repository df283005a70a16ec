//! State of the simulated carrier, with fault injection for tests.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use jiff::Timestamp;
use secrecy::SecretString;
use sha2::{Digest, Sha256};
use tokio::sync::broadcast;
use tokio::sync::mpsc::UnboundedReceiver;

use super::inbound_webhook::{InboundForm, signed_form};
use super::message_log::{FakeMessage, MessageDirection, MessageLog};
use super::number_settings::NumberSettings;
use crate::clock::Clock;
use crate::conversation::transcript::Address;
use crate::http::{HttpClient, HttpError};
use crate::messaging::twilio::{TwilioAccount, TwilioCredentials, TwilioSender};

/// Time limit of a webhook, as at Twilio.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum number of messages that a slow subscriber may lag behind.
const SUBSCRIBER_BACKLOG: usize = 1024;

/// Only account of the carrier, with its only number.
#[derive(Debug, Clone)]
pub struct FakeAccount {
    pub account_sid: String,
    pub auth_token: SecretString,
    pub number: Address,
    /// Base URL of the webhooks, which their signatures cover.
    pub public_url: String,
}

/// Simulated carrier. Clones share their state.
#[derive(Debug, Clone)]
pub struct FakeTwilio {
    pub(super) account: Arc<FakeAccount>,
    pub(super) clock: Clock,
    state: Arc<Mutex<CarrierState>>,
    pub(super) accepted: broadcast::Sender<SentMessage>,
}

/// Outbound message that the carrier accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentMessage {
    pub sid: String,
    pub to: Address,
    pub from: Address,
    pub body: String,
    pub media: Vec<String>,
    pub callback: Option<String>,
    pub accepted_at: Timestamp,
}

/// Delivery status in a status callback. A failure contains its error code.
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
        let (accepted, _) = broadcast::channel(SUBSCRIBER_BACKLOG);
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
    pub fn sent_messages(&self) -> Vec<SentMessage> {
        let outbound = |message: &FakeMessage| match &message.direction {
            MessageDirection::Inbound { .. } => None,
            MessageDirection::Outbound { sent, .. } => Some(sent.clone()),
        };
        self.lock_state().messages.iter().filter_map(outbound).collect()
    }

    /// Returns a receiver of each message that is accepted from now on. A receiver that lags far behind misses the oldest
    /// messages.
    pub fn subscribe(&self) -> broadcast::Receiver<SentMessage> {
        self.accepted.subscribe()
    }

    /// Returns a receiver of each message to `recipient` that is accepted from now on. It misses none.
    pub fn subscribe_to(&self, recipient: &str) -> UnboundedReceiver<SentMessage> {
        self.lock_state().messages.subscribe(recipient)
    }

    /// Creates the form of a message from a user to our number. [`InboundForm::into_signed_request`] adds the message to
    /// the carrier's log.
    pub fn inbound_form(&self, from: &str, body: &str) -> InboundForm {
        InboundForm::new(self.clone(), from, body)
    }

    /// Makes one attempt to send a signed request to our webhook.
    pub async fn deliver_request(
        request: Request<Bytes>,
        webhook: &HttpClient,
    ) -> Result<Response<Bytes>, HttpError> {
        webhook.send(request, WEBHOOK_TIMEOUT).await
    }

    /// Updates the status of a message and builds the signed status callback; `None` if the message has no callback URL.
    pub fn status_callback(
        &self,
        sent: &SentMessage,
        delivery: FakeDelivery,
    ) -> Result<Option<Request<Bytes>>, http::Error> {
        if let Some(message) = self.lock_state().messages.find_mut(&sent.sid)
            && let MessageDirection::Outbound { delivery: current, .. } = &mut message.direction
        {
            *current = delivery;
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

    /// Rejects the next message with this HTTP status and error code.
    pub fn fail_next(&self, status: u16, code: u32) {
        self.lock_state().faults.push_back(SendFault::Reject { status, code });
    }

    /// Rejects every later message with media, with this HTTP status and error code.
    pub fn reject_media(&self, status: u16, code: u32) {
        self.lock_state().media_rejection = Some((status, code));
    }

    /// Neither creates the next message nor responds to its request.
    pub fn hang_next(&self) {
        self.lock_state().faults.push_back(SendFault::Hang);
    }

    /// Creates the next message, but does not respond to its request.
    pub fn lose_next_answer(&self) {
        self.lock_state().faults.push_back(SendFault::LoseResponse);
    }

    /// Adds a link to a next page to every later page of the message list.
    pub fn make_list_endless(&self) {
        self.lock_state().has_endless_list = true;
    }

    /// Sets whether reads of messages, by id or as a list, fail with status 503.
    pub fn fail_reads(&self, fails: bool) {
        self.lock_state().fails_reads = fails;
    }

    /// Sets the latency of message creation. A manual clock advances by it, and a system clock waits for it.
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
    pub messages: MessageLog,
    pub faults: VecDeque<SendFault>,
    pub latency: Duration,
    pub has_endless_list: bool,
    pub fails_reads: bool,
    pub media_rejection: Option<(u16, u32)>,
    pub settings: NumberSettings,
    opted_out: BTreeSet<String>,
    sid_count: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendFault {
    Reject { status: u16, code: u32 },
    Hang,
    LoseResponse,
}

impl CarrierState {
    /// Returns a new SID of a prefix and 32 hexadecimal digits, which are the same in every run.
    pub fn generate_sid(&mut self, prefix: &str) -> String {
        self.sid_count += 1;
        let digest = Sha256::digest(self.sid_count.to_be_bytes());
        let digits: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("{prefix}{digits}")
    }

    /// Applies an opt-out or opt-in keyword. WhatsApp has different rules.
    pub fn apply_keyword(&mut self, from: &Address, body: &str) {
        let Some(key) = opt_out_key(from) else { return };
        match body.to_ascii_uppercase().as_str() {
            "STOP" | "STOPALL" | "UNSUBSCRIBE" | "CANCEL" | "END" | "QUIT" | "REVOKE" | "OPTOUT" => {
                self.opted_out.insert(key);
            }
            "START" | "YES" | "UNSTOP" => {
                self.opted_out.remove(&key);
            }
            _ => {}
        }
    }

    pub fn is_opted_out(&self, to: &Address) -> bool {
        opt_out_key(to).is_some_and(|key| self.opted_out.contains(&key))
    }
}

fn opt_out_key(address: &Address) -> Option<String> {
    match (address.prefix(), address.phone()) {
        ("" | "rcs:", Ok(phone)) => Some(phone.as_str().to_owned()),
        _ => None,
    }
}
