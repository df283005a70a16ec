//! Twilio channel: sends one message per request, and classifies the response.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, Request, Response, StatusCode};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::error_codes::{ErrorCodeClass, classify_status, look_up_error_code};
use super::receiving::{EMPTY_TWIML, TwilioReceiving};
use super::signature::SIGNATURE_HEADER;
use crate::conversation::channel::Channel;
use crate::conversation::channel_list;
use crate::conversation::routing::inbound_message::ReceivedMessage;
use crate::conversation::routing::verification::MessageFields;
use crate::http::{HttpClient, HttpError};
use crate::messaging::{
    CarrierReceipt, ChannelPort, InboundPage, LookupError, OutboundMessage, Poll, SendError, WebhookContent,
    WebhookRefusal, WebhookRequest,
};
use crate::store::queue::callbacks::CallbackKey;
use crate::telemetry;

/// Paths of the webhooks for inbound messages and status callbacks, below the public URL.
pub const WEBHOOK_PATH: &str = "/webhook/twilio";
pub const STATUS_PATH: &str = "/webhook/twilio/status";

const SEND_TIMEOUT: Duration = Duration::from_secs(15);
/// Retry delay after a daily limit. Twilio does not say in which time zone the day ends.
const DAILY_LIMIT_RETRY_DELAY: Duration = Duration::from_hours(1);

/// Settings of our Twilio account.
#[derive(Debug, Clone)]
pub struct TwilioAccount {
    /// Base URL of the API, e.g. `https://api.twilio.com`.
    pub api_url: String,
    pub account_sid: String,
    pub credentials: TwilioCredentials,
    pub sender: TwilioSender,
    /// Base URL at which Twilio reaches our webhooks.
    pub public_url: String,
}

#[derive(Debug, Clone)]
pub enum TwilioCredentials {
    AuthToken(SecretString),
    ApiKey { sid: String, secret: SecretString },
}

/// Sender that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TwilioSender {
    /// Our number, in the message's `from` address.
    Number,
    /// Messaging service with this SID, which chooses one of its numbers.
    MessagingService(String),
}

/// Client for Twilio's API, and the channel for messages to phones.
#[derive(Debug)]
pub struct Twilio {
    account: TwilioAccount,
    http: HttpClient,
    /// `None` for an account that only sends.
    receiving: Option<TwilioReceiving>,
    /// Whether the account was usable in the last request; `None` before the first one.
    last_outcome: Mutex<Option<Result<(), String>>>,
    /// Ids of the listed messages that were too recent at the last poll. At the next poll they count as missed,
    /// regardless of our clock.
    deferred_ids: Mutex<HashSet<String>>,
}

impl Twilio {
    pub fn new(account: TwilioAccount, http: HttpClient) -> Self {
        Self {
            account,
            http,
            receiving: None,
            last_outcome: Mutex::new(None),
            deferred_ids: Mutex::default(),
        }
    }

    /// Adds the receiving side of the account.
    #[must_use]
    pub fn with_receiving(self, receiving: TwilioReceiving) -> Self {
        Self { receiving: Some(receiving), ..self }
    }

    /// Sends a request to the API, and records whether the account is usable.
    pub(super) async fn exchange(
        &self,
        request: Request<Bytes>,
        timeout: Duration,
    ) -> Result<Response<Bytes>, HttpError> {
        let response = self.http.send(request, timeout).await;
        self.record_outcome(match &response {
            Ok(response) if is_unusable(response.status()) => {
                Err(format!("use the Twilio account: {}", parse_error_response(response).1))
            }
            Ok(_) => Ok(()),
            Err(error) => Err(format!("reach Twilio: {}", telemetry::error_chain(error))),
        });
        response
    }

    fn record_outcome(&self, outcome: Result<(), String>) {
        *self.last_outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }

    pub(super) fn account_sid(&self) -> &str {
        &self.account.account_sid
    }

    /// Returns the base URL that Twilio signs.
    pub(super) fn public_url(&self) -> &str {
        &self.account.public_url
    }

    pub(super) fn lock_deferred(&self) -> MutexGuard<'_, HashSet<String>> {
        self.deferred_ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn messages_url(&self) -> String {
        self.account.resource_url("Messages.json")
    }

    /// Returns the URL of a resource of the account.
    pub(super) fn account_url(&self, resource: &str) -> String {
        self.account.resource_url(resource)
    }

    /// Returns the base URL of the messaging services API, which has its own host unless a proxy or a test is configured.
    pub(super) fn messaging_url(&self) -> String {
        self.account.api_url.trim_end_matches('/').replacen("//api.", "//messaging.", 1)
    }

    pub(super) fn sender(&self) -> &TwilioSender {
        &self.account.sender
    }

    pub(super) fn authorization_header(&self) -> String {
        self.account.authorization_header()
    }

    /// Returns the absolute URL of a link from a response. Any link other than an absolute path is rejected, because it
    /// could change the host and leak our credentials.
    pub(super) fn absolute_url(&self, path: &str) -> Result<String, LookupError> {
        if !path.starts_with('/') {
            return Err(LookupError("the link to the next page is not a path".to_owned()));
        }
        Ok(format!("{}{path}", self.account.api_url.trim_end_matches('/')))
    }

    /// Returns the sender address in Twilio's record of a message; `None` if a messaging service chooses it.
    pub(super) fn sender_address<'a>(&self, message: &'a OutboundMessage) -> Option<&'a str> {
        match self.account.sender {
            TwilioSender::Number => Some(message.from.as_str()),
            TwilioSender::MessagingService(_) => None,
        }
    }

    fn send_request(&self, message: &OutboundMessage) -> Result<Request<Bytes>, SendError> {
        let account = &self.account;
        let callback = account.status_callback_url(message);
        let sender = match &account.sender {
            TwilioSender::Number => ("From", message.from.as_str()),
            TwilioSender::MessagingService(sid) => ("MessagingServiceSid", sid.as_str()),
        };
        let mut form = vec![("To", message.to.as_str()), sender, ("StatusCallback", &callback)];
        if !message.body.is_empty() {
            form.push(("Body", &message.body));
        }
        form.extend(message.media.iter().map(|url| ("MediaUrl", url.as_str())));
        let form = serde_urlencoded::to_string(form)
            .map_err(|error| SendError::Permanent { code: None, meaning: error.to_string() })?;
        Request::post(account.resource_url("Messages.json"))
            .header(AUTHORIZATION, account.authorization_header())
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form.into())
            .map_err(|error| SendError::Misconfigured { code: None, meaning: error.to_string() })
    }
}

#[async_trait]
impl ChannelPort for Twilio {
    fn channel(&self) -> Channel {
        channel_list::TWILIO
    }

    fn source(&self) -> Option<String> {
        self.receiving.as_ref().map(|receiving| format!("twilio:{}", receiving.number.as_str()))
    }

    async fn poll_received(&self, poll: &Poll) -> Result<InboundPage, LookupError> {
        match &self.receiving {
            Some(receiving) => self.poll_number(&receiving.number, poll).await,
            None => Err(LookupError("the account only sends".to_owned())),
        }
    }

    fn claims_authenticity(&self, headers: &HeaderMap) -> bool {
        headers.contains_key(SIGNATURE_HEADER)
    }

    fn read_webhook(&self, request: &WebhookRequest<'_>) -> Result<WebhookContent, WebhookRefusal> {
        match &self.receiving {
            Some(receiving) => self.read_request(receiving, request),
            None => Err(WebhookRefusal::Unsigned),
        }
    }

    fn acknowledgement(&self, _message: &ReceivedMessage) -> Option<(&'static str, Cow<'static, str>)> {
        Some(("text/xml; charset=utf-8", Cow::Borrowed(EMPTY_TWIML)))
    }

    fn record_timeout(&self) {
        self.record_outcome(Err("reach Twilio: get a response in time".to_owned()));
    }

    fn account_identity(&self) -> Option<String> {
        Some(self.account.resource_url(""))
    }

    fn last_outcome(&self) -> Option<Result<(), String>> {
        self.last_outcome.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn send(&self, message: &OutboundMessage) -> Result<CarrierReceipt, SendError> {
        match self.exchange(self.send_request(message)?, SEND_TIMEOUT).await {
            Ok(response) if response.status().is_success() => parse_receipt(&response),
            Ok(response) => Err(send_error(&response)),
            Err(error @ HttpError::NotSent(_)) => {
                Err(SendError::Later { retry_after: None, reason: telemetry::error_chain(&error) })
            }
            Err(error @ (HttpError::TimedOut(_) | HttpError::Broken(_))) => {
                Err(SendError::Unknown(telemetry::error_chain(&error)))
            }
        }
    }

    async fn find_accepted(
        &self,
        message: &OutboundMessage,
        since: Timestamp,
    ) -> Result<Vec<CarrierReceipt>, LookupError> {
        self.find_candidates(message, since).await
    }

    async fn fetch_received(&self, sid: &str) -> Result<Option<MessageFields>, LookupError> {
        self.fetch_inbound_record(sid).await
    }
}

impl TwilioAccount {
    fn resource_url(&self, resource: &str) -> String {
        let api_url = self.api_url.trim_end_matches('/');
        format!("{api_url}/2010-04-01/Accounts/{}/{resource}", self.account_sid)
    }

    fn authorization_header(&self) -> String {
        let (name, secret) = match &self.credentials {
            TwilioCredentials::AuthToken(token) => (&self.account_sid, token),
            TwilioCredentials::ApiKey { sid, secret } => (sid, secret),
        };
        format!("Basic {}", STANDARD.encode(format!("{name}:{}", secret.expose_secret())))
    }

    /// Returns a callback URL that is unique to the attempt, so that a callback identifies the message even if the
    /// response with its SID was lost.
    fn status_callback_url(&self, message: &OutboundMessage) -> String {
        let public_url = self.public_url.trim_end_matches('/');
        let key = CallbackKey {
            outbox: message.id,
            attempt: message.attempt,
            token: message.callback_token.clone(),
        };
        format!("{public_url}{STATUS_PATH}?{}", key.to_query())
    }
}

#[derive(Deserialize)]
struct CreatedMessage {
    sid: String,
    date_created: Option<String>,
}

fn parse_receipt(response: &Response<Bytes>) -> Result<CarrierReceipt, SendError> {
    let created: CreatedMessage = serde_json::from_slice(response.body()).map_err(|error| {
        SendError::Unknown(format!("{} with an unreadable body: {error}", response.status()))
    })?;
    if created.sid.is_empty() {
        return Err(SendError::Unknown(format!("{} without an id", response.status())));
    }
    // The message is accepted even if its time is missing or malformed.
    let created_at = created.date_created.and_then(|date| parse_date(&date).ok());
    Ok(CarrierReceipt { sid: created.sid, created_at, poll: None })
}

fn parse_date(text: &str) -> Result<Timestamp, jiff::Error> {
    DateTimeParser::new().parse_timestamp(text)
}

#[derive(Default, Deserialize)]
struct ErrorBody {
    code: Option<u32>,
    message: Option<String>,
}

/// Returns the error code of an error response, and its meaning without phone numbers.
pub(super) fn parse_error_response(response: &Response<Bytes>) -> (Option<u32>, String) {
    // An empty body or a proxy's HTML page adds nothing to the status.
    let ErrorBody { code, message } = serde_json::from_slice(response.body()).unwrap_or_default();
    let meaning = match (code.and_then(look_up_error_code), message) {
        (Some(known), _) => known.meaning.to_owned(),
        // The message may contain a phone number.
        (None, Some(message)) => message.replace(|character: char| character.is_ascii_digit(), "*"),
        (None, None) => format!("HTTP {}", response.status()),
    };
    (code, meaning)
}

/// Returns whether a status concerns all requests of the account.
fn is_unusable(status: StatusCode) -> bool {
    status.is_server_error() || [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status)
}

fn send_error(response: &Response<Bytes>) -> SendError {
    let status = response.status();
    let (code, meaning) = parse_error_response(response);
    let known = code.and_then(look_up_error_code);
    let class = match known {
        // Regardless of the code, the server may have created the message before it failed.
        _ if status.is_server_error() => ErrorCodeClass::Ambiguous,
        Some(known) if known.class == ErrorCodeClass::NextDay => ErrorCodeClass::NextDay,
        _ if status == StatusCode::TOO_MANY_REQUESTS => ErrorCodeClass::Later,
        Some(known) => known.class,
        None => classify_status(status.as_u16()),
    };
    match class {
        ErrorCodeClass::Later | ErrorCodeClass::Once => {
            SendError::Later { retry_after: retry_after(response.headers()), reason: meaning }
        }
        ErrorCodeClass::NextDay => {
            SendError::Later { retry_after: Some(DAILY_LIMIT_RETRY_DELAY), reason: meaning }
        }
        ErrorCodeClass::Ambiguous => SendError::Unknown(meaning),
        ErrorCodeClass::OptedOut => SendError::OptedOut,
        ErrorCodeClass::Misconfigured => SendError::Misconfigured { code, meaning },
        ErrorCodeClass::Permanent | ErrorCodeClass::OurWebhook => SendError::Permanent { code, meaning },
    }
}

/// Parses a `Retry-After` header in seconds. Twilio does not document its format.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    // Without a valid value, the outbox uses its own delays.
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use bytes::Bytes;
    use futures_util::FutureExt;
    use http::{Request, Response};
    use jiff::Timestamp;

    use super::{Twilio, TwilioAccount, TwilioCredentials, TwilioSender};
    use crate::conversation::transcript::{Address, OutboxId};
    use crate::http::HttpClient;
    use crate::messaging::{CarrierReceipt, ChannelPort, OutboundMessage};
    use crate::store::queue::callbacks::CallbackToken;

    fn account(sender: TwilioSender, credentials: TwilioCredentials) -> TwilioAccount {
        TwilioAccount {
            api_url: "https://api.example/".into(),
            account_sid: "AC1".into(),
            credentials,
            sender,
            public_url: "https://sms.example/bot/".into(),
        }
    }

    fn token() -> TwilioCredentials {
        TwilioCredentials::AuthToken("secret".into())
    }

    fn sample_message() -> OutboundMessage {
        OutboundMessage {
            id: OutboxId(7),
            attempt: 2,
            to: Address::new("+15550100001"),
            from: Address::new("+15550100000"),
            body: "Added Dune & more".into(),
            media: vec![],
            reacts_to: None,
            quotes: None,
            poll: None,
            buttons: Vec::new(),
            valid_for: Duration::from_secs(3600),
            callback_token: CallbackToken::from_stored("0123"),
        }
    }

    fn client_with_response(status: u16, headers: &'static [(&str, &str)], body: &'static str) -> HttpClient {
        HttpClient::in_process(Arc::new(move |_| {
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(*name, *value);
            }
            let response = response.body(Bytes::from(body)).unwrap();
            async { response }.boxed()
        }))
    }

    async fn send_outcome(status: u16, headers: &'static [(&str, &str)], body: &'static str) -> String {
        let twilio =
            Twilio::new(account(TwilioSender::Number, token()), client_with_response(status, headers, body));
        format!("{:?}", twilio.send(&sample_message()).await)
    }

    #[tokio::test]
    async fn accepted_message_has_a_sid_and_a_time() {
        let body = r#"{"sid":"SM1","status":"queued","date_created":"Thu, 24 Aug 2023 05:01:45 +0000"}"#;
        let twilio =
            Twilio::new(account(TwilioSender::Number, token()), client_with_response(201, &[], body));
        let created_at: Timestamp = "2023-08-24T05:01:45Z".parse().unwrap();
        let expected = CarrierReceipt { sid: "SM1".into(), created_at: Some(created_at), poll: None };
        assert_eq!(twilio.send(&sample_message()).await.unwrap(), expected);
    }

    #[tokio::test]
    async fn malformed_time_does_not_discard_the_sid() {
        let outcome = send_outcome(201, &[], r#"{"sid":"SM1","date_created":"soon"}"#).await;
        assert_eq!(outcome, r#"Ok(CarrierReceipt { sid: "SM1", created_at: None, poll: None })"#);
    }

    #[tokio::test]
    async fn error_responses_are_classified_by_code_and_status() {
        insta::assert_snapshot!(
            [
                send_outcome(400, &[], r#"{"code":21610,"message":"x","status":400}"#).await,
                send_outcome(401, &[], r#"{"code":20003,"message":"x","status":401}"#).await,
                send_outcome(400, &[], r#"{"code":21211,"message":"x","status":400}"#).await,
                send_outcome(400, &[], r#"{"code":63038,"message":"x","status":400}"#).await,
                send_outcome(429, &[("retry-after", "7")], r#"{"code":20429,"message":"x","status":429}"#).await,
                send_outcome(429, &[("retry-after", "soon")], "slow down").await,
                send_outcome(400, &[], r#"{"code":99999,"message":"No such thing as +15550100001","status":400}"#).await,
                send_outcome(302, &[], "").await,
                send_outcome(503, &[], r#"{"code":21211,"message":"x","status":503}"#).await,
                send_outcome(502, &[], "<html>").await,
                send_outcome(201, &[], "{").await,
                send_outcome(201, &[], r#"{"sid":""}"#).await,
            ]
            .join("\n"),
            @r#"
            Err(OptedOut)
            Err(Misconfigured { code: Some(20003), meaning: "Twilio refused the account's credentials" })
            Err(Permanent { code: Some(21211), meaning: "the number to text is not valid" })
            Err(Later { retry_after: Some(3600s), reason: "the account's daily limit is reached" })
            Err(Later { retry_after: Some(7s), reason: "too many requests at once" })
            Err(Later { retry_after: None, reason: "HTTP 429 Too Many Requests" })
            Err(Permanent { code: Some(99999), meaning: "No such thing as +***********" })
            Err(Misconfigured { code: None, meaning: "HTTP 302 Found" })
            Err(Unknown("the number to text is not valid"))
            Err(Unknown("HTTP 502 Bad Gateway"))
            Err(Unknown("201 Created with an unreadable body: EOF while parsing an object at line 1 column 1"))
            Err(Unknown("201 Created without an id"))
            "#
        );
    }

    #[tokio::test]
    async fn send_error_contains_the_twilio_code() {
        let body = r#"{"code":20003,"message":"x","status":401}"#;
        let twilio =
            Twilio::new(account(TwilioSender::Number, token()), client_with_response(401, &[], body));
        assert_eq!(
            twilio.send(&sample_message()).await.unwrap_err().to_string(),
            "send the message without operator action: Twilio refused the account's credentials (20003)"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn message_without_a_response_has_unknown_status() {
        let unresponsive = HttpClient::in_process(Arc::new(|_| futures_util::future::pending().boxed()));
        let twilio = Twilio::new(account(TwilioSender::Number, token()), unresponsive);
        let started = tokio::time::Instant::now();
        let outcome = format!("{:?}", twilio.send(&sample_message()).await);
        assert_eq!(outcome, r#"Err(Unknown("get a response within 15 s"))"#);
        assert_eq!(started.elapsed(), Duration::from_secs(15));
    }

    #[tokio::test]
    async fn unreachable_server_causes_a_later_retry() {
        // No server listens on port 1 of this machine.
        let account =
            TwilioAccount { api_url: "http://127.0.0.1:1".into(), ..account(TwilioSender::Number, token()) };
        rustls::crypto::ring::default_provider().install_default().ok();
        let outcome = Twilio::new(account, HttpClient::network().unwrap()).send(&sample_message()).await;
        assert!(
            matches!(outcome, Err(crate::messaging::SendError::Later { retry_after: None, .. })),
            "{outcome:?}"
        );
    }

    /// Sends a message, and returns the URL, the credentials and the form of the request.
    async fn captured_request(account: TwilioAccount, message: OutboundMessage) -> [String; 3] {
        let captured = Arc::new(Mutex::new(None));
        let peer = HttpClient::in_process({
            let captured = Arc::clone(&captured);
            Arc::new(move |request: Request<Bytes>| {
                *captured.lock().unwrap() = Some(request);
                async { Response::new(Bytes::from_static(br#"{"sid":"SM1"}"#)) }.boxed()
            })
        });
        Twilio::new(account, peer).send(&message).await.unwrap();
        let request = captured.lock().unwrap().take().unwrap();
        [
            format!("{} {}", request.method(), request.uri()),
            request.headers()["authorization"].to_str().unwrap().to_owned(),
            String::from_utf8(request.body().to_vec()).unwrap(),
        ]
    }

    #[tokio::test]
    async fn request_with_number_and_auth_token() {
        assert_eq!(
            captured_request(account(TwilioSender::Number, token()), sample_message()).await,
            [
                "POST https://api.example/2010-04-01/Accounts/AC1/Messages.json",
                "Basic QUMxOnNlY3JldA==",
                "To=%2B15550100001&From=%2B15550100000&StatusCallback=https%3A%2F%2Fsms.example%2Fbot%2Fwebhook%2Ftwilio%2Fstatus%3Fout%3D7%26n%3D2%26word%3D0123&Body=Added+Dune+%26+more",
            ]
        );
    }

    #[tokio::test]
    async fn request_with_messaging_service_api_key_and_media() {
        let key = TwilioCredentials::ApiKey { sid: "SK1".into(), secret: "key".into() };
        let poster = "https://sms.example/poster.jpg".to_owned();
        let media =
            OutboundMessage { body: String::new(), media: vec![poster.clone(), poster], ..sample_message() };
        let [_, authorization, form] =
            captured_request(account(TwilioSender::MessagingService("MG1".into()), key), media).await;
        assert_eq!(authorization, "Basic U0sxOmtleQ==");
        assert_eq!(
            form,
            "To=%2B15550100001&MessagingServiceSid=MG1&StatusCallback=https%3A%2F%2Fsms.example%2Fbot%2Fwebhook%2Ftwilio%2Fstatus%3Fout%3D7%26n%3D2%26word%3D0123&MediaUrl=https%3A%2F%2Fsms.example%2Fposter.jpg&MediaUrl=https%3A%2F%2Fsms.example%2Fposter.jpg"
        );
    }

    #[test]
    fn debug_output_hides_secrets() {
        let account = account(TwilioSender::Number, token());
        assert!(!format!("{account:?}").contains("secret\""));
    }
}
