//! Our number at Twilio and the messaging service it may be in: their capabilities and webhook addresses.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::twilio::{Twilio, TwilioSender, parse_refusal};
use crate::conversation::transcript::PhoneNumber;
use crate::http::HttpError;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Cause of Twilio settings that could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error("reach Twilio: {0}")]
    Unreachable(#[from] HttpError),
    /// Twilio refused the request. The meaning is for users; the code is from Twilio.
    #[error("have Twilio accept it: {meaning}")]
    Refused { code: Option<u32>, meaning: String },
    #[error("read Twilio's answer: {0}")]
    Unreadable(String),
}

/// Number of the account.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AccountNumber {
    pub sid: String,
    #[serde(default)]
    phone_number: String,
    #[serde(default)]
    pub capabilities: NumberCapabilities,
    /// Webhook address. Empty if not set, like all fields below.
    #[serde(default, deserialize_with = "text_or_nothing")]
    pub sms_url: String,
    #[serde(default, deserialize_with = "text_or_nothing")]
    pub sms_method: String,
    #[serde(default, deserialize_with = "text_or_nothing")]
    pub sms_fallback_url: String,
    #[serde(default, deserialize_with = "text_or_nothing")]
    pub sms_fallback_method: String,
    /// While this is set, Twilio ignores the addresses above.
    #[serde(default, deserialize_with = "text_or_nothing")]
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

/// Twilio's messaging service. Its own addresses apply to all its numbers, unless the service defers to the numbers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SenderPool {
    #[serde(default, deserialize_with = "text_or_nothing")]
    pub inbound_request_url: String,
    #[serde(default)]
    pub use_inbound_webhook_on_number: bool,
}

#[derive(Deserialize)]
struct NumberPage {
    incoming_phone_numbers: Vec<AccountNumber>,
}

impl Twilio {
    /// Fetches the number; `None` if the account has no such number.
    pub async fn fetch_number(&self, number: &PhoneNumber) -> Result<Option<AccountNumber>, AccountError> {
        let query = encode_form(&[("PhoneNumber", number.as_str())])?;
        let url = format!("{}?{query}", self.account_url("IncomingPhoneNumbers.json"));
        let found: NumberPage = self.exchange_json(Method::GET, &url, String::new()).await?;
        // The filter also matches parts of numbers.
        let ours = |found: &AccountNumber| found.phone_number == number.as_str();
        Ok(found.incoming_phone_numbers.into_iter().find(ours))
    }

    /// Sets these fields of a number; other fields do not change.
    pub async fn set_number(&self, sid: &str, fields: &[(&str, &str)]) -> Result<(), AccountError> {
        let url = self.account_url(&format!("IncomingPhoneNumbers/{sid}.json"));
        self.exchange_json::<AccountNumber>(Method::POST, &url, encode_form(fields)?).await.map(drop)
    }

    /// Fetches the messaging service; `None` if the number itself sends the messages.
    pub async fn messaging_service(&self) -> Result<Option<SenderPool>, AccountError> {
        match self.service_url() {
            Some(url) => self.exchange_json(Method::GET, &url, String::new()).await.map(Some),
            None => Ok(None),
        }
    }

    /// Configures the messaging service to defer to its numbers: each number's inbound messages go to its own address.
    pub async fn leave_texts_to_numbers(&self) -> Result<(), AccountError> {
        let Some(url) = self.service_url() else { return Ok(()) };
        let fields = encode_form(&[("UseInboundWebhookOnNumber", "true")])?;
        self.exchange_json::<SenderPool>(Method::POST, &url, fields).await.map(drop)
    }

    fn service_url(&self) -> Option<String> {
        match self.sender() {
            TwilioSender::Number => None,
            TwilioSender::MessagingService(sid) => {
                Some(format!("{}/v1/Services/{sid}", self.messaging_host()))
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
        let response = self.http().send(request, TIMEOUT).await?;
        if !response.status().is_success() {
            let (code, meaning) = parse_refusal(&response);
            return Err(AccountError::Refused { code, meaning });
        }
        serde_json::from_slice(response.body()).map_err(|error| AccountError::Unreadable(error.to_string()))
    }
}

fn encode_form(fields: &[(&str, &str)]) -> Result<String, AccountError> {
    serde_urlencoded::to_string(fields).map_err(|error| AccountError::Unreadable(error.to_string()))
}

fn text_or_nothing<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.unwrap_or_default())
}
