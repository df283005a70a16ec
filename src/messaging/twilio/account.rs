//! Settings of our Twilio number and of its messaging service: capabilities and webhook URLs.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::form_urlencoded;

use super::client::{Twilio, TwilioSender, parse_error_response};
use crate::conversation::transcript::PhoneNumber;
use crate::http::HttpError;

const ACCOUNT_TIMEOUT: Duration = Duration::from_secs(10);

/// Failure to read or change Twilio settings.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error("reach Twilio: {0}")]
    Unreachable(#[from] HttpError),
    /// Error response. The meaning is for users; the code is Twilio's.
    #[error("use the Twilio account: {meaning}")]
    Rejected { code: Option<u32>, meaning: String },
    #[error("parse Twilio's response: {0}")]
    MalformedResponse(String),
}

/// Phone number of the account. An empty field is not set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct IncomingPhoneNumber {
    pub sid: String,
    #[serde(default)]
    phone_number: String,
    #[serde(default)]
    pub capabilities: NumberCapabilities,
    /// Webhook URL.
    #[serde(default, deserialize_with = "null_as_empty")]
    pub sms_url: String,
    #[serde(default, deserialize_with = "null_as_empty")]
    pub sms_method: String,
    #[serde(default, deserialize_with = "null_as_empty")]
    pub sms_fallback_url: String,
    #[serde(default, deserialize_with = "null_as_empty")]
    pub sms_fallback_method: String,
    /// While this is set, Twilio ignores the URLs above.
    #[serde(default, deserialize_with = "null_as_empty")]
    pub sms_application_sid: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NumberCapabilities {
    #[serde(alias = "SMS")]
    pub sms: bool,
    #[serde(alias = "MMS")]
    pub mms: bool,
}

/// Messaging service at Twilio. Its webhook URL applies to all of its numbers, unless it defers to them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct MessagingService {
    #[serde(default, deserialize_with = "null_as_empty")]
    pub inbound_request_url: String,
    #[serde(default)]
    pub use_inbound_webhook_on_number: bool,
}

#[derive(Deserialize)]
struct NumberPage {
    incoming_phone_numbers: Vec<IncomingPhoneNumber>,
}

impl Twilio {
    /// Fetches the number; `None` if the account has no such number.
    pub async fn fetch_number(
        &self,
        number: &PhoneNumber,
    ) -> Result<Option<IncomingPhoneNumber>, AccountError> {
        let query = encode_form(&[("PhoneNumber", number.as_str())]);
        let url = format!("{}?{query}", self.account_url("IncomingPhoneNumbers.json"));
        let page: NumberPage = self.exchange_json(Method::GET, &url, String::new()).await?;
        // Twilio's filter also matches parts of numbers.
        let is_ours = |listed: &IncomingPhoneNumber| listed.phone_number == number.as_str();
        Ok(page.incoming_phone_numbers.into_iter().find(is_ours))
    }

    /// Sets these fields of a number; other fields do not change.
    pub async fn update_number(&self, sid: &str, fields: &[(&str, &str)]) -> Result<(), AccountError> {
        let url = self.account_url(&format!("IncomingPhoneNumbers/{sid}.json"));
        self.exchange_json::<IncomingPhoneNumber>(Method::POST, &url, encode_form(fields)).await.map(drop)
    }

    /// Fetches the messaging service; `None` if none is configured.
    pub async fn fetch_messaging_service(&self) -> Result<Option<MessagingService>, AccountError> {
        match self.service_url() {
            Some(url) => self.exchange_json(Method::GET, &url, String::new()).await.map(Some),
            None => Ok(None),
        }
    }

    /// Configures the messaging service to send inbound messages to the webhook URLs of its numbers.
    pub async fn defer_webhooks_to_numbers(&self) -> Result<(), AccountError> {
        let Some(url) = self.service_url() else { return Ok(()) };
        let fields = encode_form(&[("UseInboundWebhookOnNumber", "true")]);
        self.exchange_json::<MessagingService>(Method::POST, &url, fields).await.map(drop)
    }

    fn service_url(&self) -> Option<String> {
        match self.sender() {
            TwilioSender::Number => None,
            TwilioSender::MessagingService(sid) => {
                Some(format!("{}/v1/Services/{sid}", self.messaging_url()))
            }
        }
    }

    async fn exchange_json<T: DeserializeOwned>(
        &self,
        method: Method,
        url: &str,
        body: String,
    ) -> Result<T, AccountError> {
        let request = Request::builder()
            .method(method)
            .uri(url)
            .header(AUTHORIZATION, self.authorization_header())
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Bytes::from(body))
            .map_err(|error| HttpError::NotSent(error.into()))?;
        let response = self.exchange(request, ACCOUNT_TIMEOUT).await?;
        if !response.status().is_success() {
            let (code, meaning) = parse_error_response(&response);
            return Err(AccountError::Rejected { code, meaning });
        }
        serde_json::from_slice(response.body())
            .map_err(|error| AccountError::MalformedResponse(error.to_string()))
    }
}

fn encode_form(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

fn null_as_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.unwrap_or_default())
}
