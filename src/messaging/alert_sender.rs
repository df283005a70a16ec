//! Requests that send an alert to ntfy, Pushover or a webhook.

use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Request, StatusCode};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use sha2::Sha256;

use super::alert_targets::AlertTargets;
use crate::http::{HttpClient, HttpError};
use crate::store::queue::alerts::AlertTarget;

/// Header of webhook requests with the HMAC-SHA256 of the body, such as `sha256=01ab…`.
pub const SIGNATURE_HEADER: &str = "x-dialarr-signature";
const PUSHOVER_URL: &str = "https://api.pushover.net/1/messages.json";
const TITLE: &str = "Dialarr";
const TIMEOUT: Duration = Duration::from_secs(10);

/// Content of an alert. Its JSON is the body of the webhook request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AlertMessage<'a> {
    /// Id of the alert, which is the same in repeated requests. `None` for a test.
    pub id: Option<i64>,
    /// Kind of the alert, or `test`.
    pub event: &'a str,
    pub message: &'a str,
    pub created_at: Timestamp,
}

/// Error of a request that sends an alert. Its text contains no URL, which may be secret.
#[derive(Debug, thiserror::Error)]
pub enum AlertError {
    #[error("build the request")]
    Request(#[from] http::Error),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("get status 200: the status is {}", .0.as_u16())]
    Status(StatusCode),
    #[error("find its settings")]
    NotConfigured,
    #[error("send it within a day")]
    TooOld,
}

impl AlertError {
    /// Returns whether a later attempt may succeed.
    pub fn is_retriable(&self) -> bool {
        match self {
            Self::Http(_) => true,
            Self::Status(status) => {
                status.is_server_error()
                    || [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(status)
            }
            Self::Request(_) | Self::NotConfigured | Self::TooOld => false,
        }
    }
}

/// Sender of alerts to the configured targets.
#[derive(Debug, Clone)]
pub struct AlertSender {
    targets: AlertTargets,
    http: HttpClient,
}

impl AlertSender {
    pub fn new(targets: AlertTargets, http: HttpClient) -> Self {
        Self { targets, http }
    }

    /// Returns the configured targets.
    pub fn targets(&self) -> Vec<AlertTarget> {
        let AlertTargets { ntfy, pushover, webhook } = &self.targets;
        let configured = [
            (AlertTarget::Ntfy, ntfy.is_some()),
            (AlertTarget::Pushover, pushover.is_some()),
            (AlertTarget::Webhook, webhook.is_some()),
        ];
        configured.into_iter().filter(|(_, is_set)| *is_set).map(|(target, _)| target).collect()
    }

    /// Sends a test alert.
    pub async fn send_test(&self, target: AlertTarget, now: Timestamp) -> Result<(), AlertError> {
        let message = "Test: alerts of Dialarr arrive here.";
        self.send_alert(target, &AlertMessage { id: None, event: "test", message, created_at: now }).await
    }

    /// Sends an alert once.
    pub async fn send_alert(
        &self,
        target: AlertTarget,
        message: &AlertMessage<'_>,
    ) -> Result<(), AlertError> {
        let request = self.build_request(target, message)?;
        let status = self.http.send(request, TIMEOUT).await?.status();
        if status.is_success() { Ok(()) } else { Err(AlertError::Status(status)) }
    }

    fn build_request(
        &self,
        target: AlertTarget,
        message: &AlertMessage<'_>,
    ) -> Result<Request<Bytes>, AlertError> {
        let AlertTargets { ntfy, pushover, webhook } = &self.targets;
        let request = match target {
            AlertTarget::Ntfy => {
                let ntfy = ntfy.as_ref().ok_or(AlertError::NotConfigured)?;
                let mut request = Request::post(ntfy.url.as_str()).header("title", TITLE);
                if let Some(token) = &ntfy.token {
                    request = request.header(AUTHORIZATION, format!("Bearer {}", token.expose_secret()));
                }
                request.body(Bytes::from(message.message.to_owned()))?
            }
            AlertTarget::Pushover => {
                let pushover = pushover.as_ref().ok_or(AlertError::NotConfigured)?;
                let form = [
                    ("token", pushover.token.expose_secret()),
                    ("user", pushover.user.expose_secret()),
                    ("title", TITLE),
                    ("message", message.message),
                ];
                let body: String =
                    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
                Request::post(PUSHOVER_URL)
                    .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                    .body(Bytes::from(body))?
            }
            AlertTarget::Webhook => {
                let webhook = webhook.as_ref().ok_or(AlertError::NotConfigured)?;
                let body = serde_json::json!(message).to_string();
                let mut request =
                    Request::post(webhook.url.as_str()).header(CONTENT_TYPE, "application/json");
                if let Some(secret) = &webhook.secret {
                    request = request.header(SIGNATURE_HEADER, sign_body(secret, body.as_bytes()));
                }
                request.body(Bytes::from(body))?
            }
        };
        Ok(request)
    }
}

/// Returns the value of the signature header.
pub fn sign_body(secret: &SecretString, body: &[u8]) -> String {
    // HMAC accepts keys of any length, so the empty default is never used.
    let mut signature = "sha256=".to_owned();
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes()) {
        mac.update(body);
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
    fn signature_is_the_hmac_of_the_body() {
        // Test case 2 of RFC 4231.
        let signature = sign_body(&SecretString::from("Jefe"), b"what do ya want for nothing?");
        let expected = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signature, expected);
    }

    #[test]
    fn only_temporary_failures_are_retried() {
        let is_retried =
            |status: u16| AlertError::Status(StatusCode::from_u16(status).unwrap()).is_retriable();
        assert_eq!([408, 429, 500, 503].map(is_retried), [true; 4]);
        assert_eq!([302, 400, 401, 403, 404].map(is_retried), [false; 5]);
    }
}
