//! Client of the gateway, and the port of its channel.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::inbox::PollState;
use super::webhook::SIGNATURE_HEADER;
use super::wire::{GatewayMessage, GatewayText, NewGatewayMessage};
use crate::conversation::channel::Channel;
use crate::conversation::channel_list;
use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::transcript::{Address, PhoneNumber};
use crate::http::{HttpClient, HttpError};
use crate::messaging::{
    CarrierReceipt, ChannelPort, InboundPage, LookupError, OutboundMessage, Poll, SendError, WebhookContent,
    WebhookRefusal, WebhookRequest,
};
use crate::telemetry;

/// Time limit of a request. The phone is in the same network.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(8);
/// Number of messages that are searched for one whose id is not known.
const SEARCH_LIMIT: usize = 100;
/// Time for which a message of an earlier client can wait in the phone.
const MAX_WAITING_TIME: Duration = Duration::from_secs(3600);
/// Delay before a message is tried again that waits for an earlier one to the same recipient.
const ORDER_DELAY: Duration = Duration::from_secs(10);

/// Phone with the gateway, and how to reach it.
#[derive(Debug, Clone)]
pub struct SmsGateAccount {
    /// Base URL of the gateway, e.g. `http://192.168.1.20:8080`.
    pub url: String,
    pub credentials: GatewayCredentials,
    /// Number of the phone.
    pub number: PhoneNumber,
    /// SIM with this number, counted from 1; `None` if the phone has one SIM.
    pub sim: Option<u8>,
    /// Key of the signatures of webhooks; without it, they are refused.
    pub signing_key: Option<SecretString>,
}

#[derive(Debug, Clone)]
pub enum GatewayCredentials {
    Password { user: String, password: SecretString },
    Token(SecretString),
}

/// Client of the gateway, and the channel of messages through the phone.
#[derive(Debug)]
pub struct SmsGate {
    pub(super) account: SmsGateAccount,
    http: HttpClient,
    /// Whether the gateway was usable in the last request; `None` before the first one.
    last_outcome: Mutex<Option<Result<(), String>>>,
    poll_state: Mutex<PollState>,
    /// Messages that wait in the phone, by recipient; `None` before the phone was asked for those of earlier clients.
    waiting: Mutex<Option<BTreeMap<String, WaitingMessage>>>,
}

/// Message that the phone has accepted and not sent yet.
#[derive(Debug)]
struct WaitingMessage {
    id: String,
    /// Time after which the phone does not send it any more.
    valid_until: Instant,
}

/// Outcome of a request to send a message.
enum HandOver {
    Accepted,
    /// The gateway has a message with this id.
    Known,
    /// The request may have arrived.
    Lost(String),
}

impl SmsGate {
    pub fn new(account: SmsGateAccount, http: HttpClient) -> Self {
        Self {
            account,
            http,
            last_outcome: Mutex::default(),
            poll_state: Mutex::default(),
            waiting: Mutex::default(),
        }
    }

    /// Returns our address on the channel.
    pub fn address(&self) -> Address {
        Address::new(format!("{}{}", channel_list::SMSGATE_PREFIX, self.account.number.as_str()))
    }

    pub(super) fn lock_poll_state(&self) -> MutexGuard<'_, PollState> {
        self.poll_state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the difference between the clock of the phone and ours, as last measured.
    pub fn clock_skew(&self) -> Option<SignedDuration> {
        self.lock_poll_state().clock_skew
    }

    /// Sends a request to the gateway, and records whether the gateway is usable.
    pub(super) async fn exchange(
        &self,
        method: Method,
        path_and_query: &str,
        body: Bytes,
    ) -> Result<Response<Bytes>, HttpError> {
        let authorization = match &self.account.credentials {
            GatewayCredentials::Password { user, password } => {
                format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.expose_secret())))
            }
            GatewayCredentials::Token(token) => format!("Bearer {}", token.expose_secret()),
        };
        let url = format!("{}{path_and_query}", self.account.url.trim_end_matches('/'));
        let mut request = Request::builder().method(method).uri(url).header(AUTHORIZATION, authorization);
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.body(body).map_err(|error| HttpError::NotSent(error.into()))?;
        let response = self.http.send(request, REQUEST_TIMEOUT).await;
        self.record_outcome(match &response {
            Ok(response) if is_refused(response.status()) => {
                Err("use the phone: it refuses the user name or password shown in the app".to_owned())
            }
            Ok(_) => Ok(()),
            Err(error) => Err(format!("reach the phone: {}", telemetry::error_chain(error))),
        });
        response
    }

    fn record_outcome(&self, outcome: Result<(), String>) {
        *self.last_outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }

    /// Fetches JSON and the headers of its response.
    pub(super) async fn fetch_json<T: DeserializeOwned>(
        &self,
        path_and_query: &str,
    ) -> Result<(T, HeaderMap), LookupError> {
        let response = self.exchange(Method::GET, path_and_query, Bytes::new()).await;
        let response = response.map_err(|error| LookupError(telemetry::error_chain(&error)))?;
        if !response.status().is_success() {
            return Err(LookupError(format!("status {}", response.status())));
        }
        let json = serde_json::from_slice(response.body()).map_err(|error| LookupError(error.to_string()))?;
        Ok((json, response.headers().clone()))
    }

    /// Fetches a message; `None` if the gateway has none with this id.
    pub(super) async fn fetch_message(&self, id: &str) -> Result<Option<GatewayMessage>, LookupError> {
        let response = self.exchange(Method::GET, &format!("/messages/{id}"), Bytes::new()).await;
        let response = response.map_err(|error| LookupError(telemetry::error_chain(&error)))?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(None),
            status if status.is_success() => serde_json::from_slice(response.body())
                .map(Some)
                .map_err(|error| LookupError(error.to_string())),
            status => Err(LookupError(format!("status {status}"))),
        }
    }

    fn lock_waiting(&self) -> MutexGuard<'_, Option<BTreeMap<String, WaitingMessage>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the phone once for the messages that wait in it since an earlier run or configuration.
    async fn learn_waiting(&self) -> Result<(), LookupError> {
        if self.lock_waiting().is_some() {
            return Ok(());
        }
        let path = format!("/messages?state=Pending&limit={SEARCH_LIMIT}&offset=0");
        let (stored, _) = self.fetch_json::<Vec<GatewayMessage>>(&path).await?;
        let valid_until = Instant::now() + MAX_WAITING_TIME;
        let waiting = stored.into_iter().filter_map(|stored| {
            let recipient = stored.recipient()?.to_owned();
            Some((recipient, WaitingMessage { id: stored.id, valid_until }))
        });
        self.lock_waiting().get_or_insert_with(|| waiting.collect());
        Ok(())
    }

    /// Returns whether an earlier message to the same recipient waits in the phone, which may send the newest one first.
    fn must_wait(&self, message: &OutboundMessage) -> bool {
        let waiting = self.lock_waiting();
        let earlier = waiting.as_ref().and_then(|waiting| waiting.get(recipient(message)));
        earlier.is_some_and(|earlier| {
            earlier.id != message.callback_token.as_str() && earlier.valid_until > Instant::now()
        })
    }

    fn record_waiting(&self, message: &OutboundMessage) {
        let id = message.callback_token.as_str().to_owned();
        let waiting = WaitingMessage { id, valid_until: Instant::now() + message.valid_for };
        self.lock_waiting().get_or_insert_default().insert(recipient(message).to_owned(), waiting);
    }

    /// Records that a message does not wait in the phone any more.
    pub(super) fn record_left(&self, id: &str) {
        if let Some(waiting) = self.lock_waiting().as_mut() {
            waiting.retain(|_, waiting| waiting.id != id);
        }
    }

    /// Hands a message to the gateway. The id is the random token of the row, which every attempt repeats, so the gateway
    /// stores the message once.
    async fn hand_over(&self, message: &OutboundMessage) -> Result<HandOver, SendError> {
        let request = NewGatewayMessage {
            id: message.callback_token.as_str(),
            text_message: GatewayText { text: message.body.clone() },
            phone_numbers: [recipient(message)],
            sim_number: self.account.sim,
            ttl: message.valid_for.as_secs(),
            with_delivery_report: true,
        };
        let body = serde_json::to_vec(&request)
            .map_err(|error| SendError::Permanent { code: None, meaning: error.to_string() })?;
        // Otherwise the phone rejects numbers that it takes for fixed lines.
        let path = "/messages?skipPhoneValidation=true";
        match self.exchange(Method::POST, path, body.into()).await {
            Ok(response) => parse_hand_over(&response),
            Err(error @ HttpError::NotSent(_)) => {
                Err(SendError::Later { retry_after: None, reason: telemetry::error_chain(&error) })
            }
            Err(error @ (HttpError::TimedOut(_) | HttpError::Broken(_))) => {
                Ok(HandOver::Lost(telemetry::error_chain(&error)))
            }
        }
    }

    /// Returns the receipt of a message that the gateway has under the id of this message, if it is this message.
    async fn confirm_known(&self, message: &OutboundMessage) -> Result<CarrierReceipt, SendError> {
        match self.fetch_message(message.callback_token.as_str()).await {
            Ok(Some(stored)) if stored.is_to(recipient(message), &message.body) => Ok(receipt(stored)),
            Ok(Some(_)) => {
                let meaning = "the phone has another message under this id".to_owned();
                Err(SendError::Permanent { code: None, meaning })
            }
            Ok(None) => Err(SendError::Unknown("the phone does not show a message that it knows".to_owned())),
            Err(LookupError(reason)) => Err(SendError::Unknown(reason)),
        }
    }

    /// Searches for a message that was sent under an id that this database does not know, e.g. before a restore.
    async fn search_message(
        &self,
        message: &OutboundMessage,
        since: Timestamp,
    ) -> Result<Vec<CarrierReceipt>, LookupError> {
        let from = since - SignedDuration::from_mins(1);
        let path = format!("/messages?from={from}&limit={SEARCH_LIMIT}&includeContent=true");
        let (stored, _) = self.fetch_json::<Vec<GatewayMessage>>(&path).await?;
        let was_sent = |stored: &GatewayMessage| stored.delivery() != Some(DeliveryStatus::Failed);
        let is_same =
            |stored: &GatewayMessage| stored.is_to(recipient(message), &message.body) && was_sent(stored);
        Ok(stored.into_iter().filter(is_same).map(receipt).collect())
    }
}

#[async_trait]
impl ChannelPort for SmsGate {
    fn channel(&self) -> Channel {
        channel_list::SMSGATE
    }

    /// Hands a message over. After a lost answer, the same request is repeated once: the gateway then either accepts the
    /// message or knows it.
    async fn send(&self, message: &OutboundMessage) -> Result<CarrierReceipt, SendError> {
        if message.body.is_empty() {
            let meaning = "the phone sends no pictures".to_owned();
            return Err(SendError::Permanent { code: None, meaning });
        }
        if let Err(LookupError(reason)) = self.learn_waiting().await {
            return Err(SendError::Later { retry_after: None, reason });
        }
        if self.must_wait(message) {
            let reason = "an earlier text to the same person waits in the phone".to_owned();
            return Err(SendError::Later { retry_after: Some(ORDER_DELAY), reason });
        }
        let outcome = match self.hand_over(message).await? {
            // Whatever the answer to the repeated request, the first one may have arrived.
            HandOver::Lost(_) => match self.hand_over(message).await {
                Ok(outcome) => outcome,
                Err(error) => HandOver::Lost(error.to_string()),
            },
            outcome => outcome,
        };
        match outcome {
            HandOver::Accepted => {
                self.record_waiting(message);
                Ok(CarrierReceipt {
                    sid: message.callback_token.as_str().to_owned(),
                    created_at: None,
                    poll: None,
                })
            }
            HandOver::Known => self.confirm_known(message).await,
            HandOver::Lost(reason) => Err(SendError::Unknown(reason)),
        }
    }

    async fn find_accepted(
        &self,
        message: &OutboundMessage,
        since: Timestamp,
    ) -> Result<Vec<CarrierReceipt>, LookupError> {
        let id = message.callback_token.as_str();
        let known = if id.is_empty() { None } else { self.fetch_message(id).await? };
        match known {
            Some(stored) if stored.is_to(recipient(message), &message.body) => Ok(vec![receipt(stored)]),
            Some(_) | None => self.search_message(message, since).await,
        }
    }

    fn source(&self) -> Option<String> {
        Some(self.address().as_str().to_owned())
    }

    async fn poll_received(&self, poll: &Poll) -> Result<InboundPage, LookupError> {
        self.poll_phone(poll).await
    }

    fn claims_authenticity(&self, headers: &HeaderMap) -> bool {
        headers.contains_key(SIGNATURE_HEADER)
    }

    fn read_webhook(&self, request: &WebhookRequest<'_>) -> Result<WebhookContent, WebhookRefusal> {
        self.read_event(request)
    }

    fn record_timeout(&self) {
        self.record_outcome(Err("reach the phone: get a response in time".to_owned()));
    }

    fn last_outcome(&self) -> Option<Result<(), String>> {
        self.last_outcome.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn account_identity(&self) -> Option<String> {
        Some(format!("{} {}", self.account.url.trim_end_matches('/'), self.account.number.as_str()))
    }
}

fn is_refused(status: StatusCode) -> bool {
    [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status)
}

fn parse_hand_over(response: &Response<Bytes>) -> Result<HandOver, SendError> {
    let status = response.status();
    match status {
        StatusCode::CONFLICT => Ok(HandOver::Known),
        _ if status.is_success() => Ok(HandOver::Accepted),
        _ if is_refused(status) => {
            let meaning = "the phone refuses the user name or password".to_owned();
            Err(SendError::Misconfigured { code: None, meaning })
        }
        StatusCode::TOO_MANY_REQUESTS => {
            Err(SendError::Later { retry_after: None, reason: format!("status {status}") })
        }
        // The server may have stored the message before it failed.
        _ if status.is_server_error() => Ok(HandOver::Lost(format!("status {status}"))),
        _ => Err(SendError::Permanent { code: None, meaning: format!("the phone rejects it: {status}") }),
    }
}

/// Returns the number to which a message is sent, without the prefix of the channel.
fn recipient(message: &OutboundMessage) -> &str {
    &message.to.as_str()[message.to.prefix().len()..]
}

fn receipt(stored: GatewayMessage) -> CarrierReceipt {
    CarrierReceipt { sid: stored.id, created_at: None, poll: None }
}
