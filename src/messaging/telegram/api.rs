//! Requests to the Bot API, and the classes of their errors.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use secrecy::ExposeSecret;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::account::BotToken;
use super::wire::ApiAnswer;
use crate::http::{HttpClient, HttpError};
use crate::telemetry;

/// Time limit of a request that does not wait for updates.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Client of the Bot API. The token is part of every URL, so no URL is logged or part of an error.
#[derive(Clone)]
pub struct BotApi {
    api_url: String,
    token: BotToken,
    http: HttpClient,
}

/// Error of a request, classified by what the caller does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BotApiError {
    /// The request was certainly not processed.
    #[error("reach Telegram: {0}")]
    NotSent(String),
    /// The request may have been processed.
    #[error("get an answer from Telegram: {0}")]
    Lost(String),
    /// The request was not processed, because there were too many.
    #[error("send more slowly: Telegram asks to wait {} s", .0.as_secs())]
    TooMany(Duration),
    /// The group was moved to this id.
    #[error("send to a group that was moved to another id")]
    Migrated(i64),
    /// The person has blocked the bot, has not started it, or has no account any more.
    #[error("write to a person whom the bot cannot reach: {0}")]
    Unreachable(String),
    /// The bot was removed from BotFather, or its token was replaced.
    #[error("use the bot: Telegram refuses the token")]
    WrongToken,
    /// Another program polls, or a webhook is set.
    #[error("read the messages of the bot: {0}")]
    Conflict(String),
    /// Telegram will never accept the request.
    #[error("send the request: {0}")]
    Refused(String),
}

impl BotApiError {
    /// Returns the same error without a secret in its text.
    fn redact(self, secret: &str) -> Self {
        let clean = |text: String| text.replace(secret, "[token]");
        match self {
            Self::NotSent(text) => Self::NotSent(clean(text)),
            Self::Lost(text) => Self::Lost(clean(text)),
            Self::Unreachable(text) => Self::Unreachable(clean(text)),
            Self::Conflict(text) => Self::Conflict(clean(text)),
            Self::Refused(text) => Self::Refused(clean(text)),
            Self::TooMany(_) | Self::Migrated(_) | Self::WrongToken => self,
        }
    }
}

impl fmt::Debug for BotApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BotApi")
            .field("api_url", &self.api_url)
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

impl BotApi {
    pub(super) fn new(api_url: &str, token: BotToken, http: HttpClient) -> Self {
        Self { api_url: api_url.trim_end_matches('/').to_owned(), token, http }
    }

    pub(super) fn token(&self) -> &BotToken {
        &self.token
    }

    /// Calls a method, and returns its result.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &'static str,
        parameters: &impl Serialize,
    ) -> Result<T, BotApiError> {
        self.call_within(method, parameters, REQUEST_TIMEOUT).await
    }

    /// Calls a method whose answer may take this long.
    pub(super) async fn call_within<T: DeserializeOwned>(
        &self,
        method: &'static str,
        parameters: &impl Serialize,
        timeout: Duration,
    ) -> Result<T, BotApiError> {
        let outcome = self.request(method, parameters, timeout).await;
        // A server may echo the URL, which contains the token.
        outcome.map_err(|error| error.redact(self.token.secret_part()))
    }

    async fn request<T: DeserializeOwned>(
        &self,
        method: &'static str,
        parameters: &impl Serialize,
        timeout: Duration,
    ) -> Result<T, BotApiError> {
        let body = serde_json::to_vec(parameters).map_err(|error| BotApiError::Refused(error.to_string()))?;
        let url = format!("{}/bot{}/{method}", self.api_url, self.token.secret().expose_secret());
        let request = Request::builder()
            .method(Method::POST)
            .uri(url)
            .header(CONTENT_TYPE, "application/json")
            .body(Bytes::from(body))
            // The error would show the URL.
            .map_err(|_| BotApiError::NotSent("the base URL is not a URL".to_owned()))?;
        let response = self.http.send(request, timeout).await.map_err(|error| classify_http_error(&error))?;
        let status = response.status().as_u16();
        match serde_json::from_slice::<ApiAnswer<T>>(response.body()) {
            Ok(ApiAnswer { ok: true, result: Some(result), .. }) => Ok(result),
            Ok(answer) => Err(classify_refusal(answer.error_code.unwrap_or(status), answer)),
            Err(_) if status >= 500 => Err(BotApiError::Lost(format!("status {status}"))),
            Err(_) if status == 429 => Err(BotApiError::TooMany(Duration::from_secs(1))),
            Err(_) if status == 401 || status == 404 => Err(BotApiError::WrongToken),
            // An answer that cannot be read may report a success.
            Err(_) => Err(BotApiError::Lost(format!("unreadable answer with status {status}"))),
        }
    }
}

fn classify_http_error(error: &HttpError) -> BotApiError {
    let chain = telemetry::error_chain(error);
    match error {
        HttpError::NotSent(_) => BotApiError::NotSent(chain),
        HttpError::TimedOut(_) | HttpError::Broken(_) => BotApiError::Lost(chain),
    }
}

fn classify_refusal<T>(code: u16, answer: ApiAnswer<T>) -> BotApiError {
    let parameters = answer.parameters.unwrap_or_default();
    let description = answer.description.unwrap_or_default();
    match (code, parameters.migrate_to_chat_id) {
        (400, Some(chat)) => BotApiError::Migrated(chat),
        (400, None) => BotApiError::Refused(description),
        (401 | 404, _) => BotApiError::WrongToken,
        (403, _) => BotApiError::Unreachable(description),
        (409, _) => BotApiError::Conflict(description),
        (429, _) => BotApiError::TooMany(Duration::from_secs(parameters.retry_after.unwrap_or(1).max(1))),
        (500.., _) => BotApiError::Lost(format!("{code} {description}")),
        _ => BotApiError::Refused(format!("{code} {description}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::ApiAnswer;
    use super::*;

    fn classify(answer: &str) -> BotApiError {
        let answer: ApiAnswer<bool> = serde_json::from_str(answer).unwrap();
        classify_refusal(answer.error_code.unwrap(), answer)
    }

    #[test]
    fn refusal_is_classified_by_its_code_and_parameters() {
        let refused = BotApiError::Refused("Bad Request: chat not found".to_owned());
        let cases = [
            (
                r#"{"ok":false,"error_code":429,"parameters":{"retry_after":7}}"#,
                BotApiError::TooMany(Duration::from_secs(7)),
            ),
            (
                r#"{"ok":false,"error_code":400,"parameters":{"migrate_to_chat_id":-1009}}"#,
                BotApiError::Migrated(-1009),
            ),
            (r#"{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}"#, refused),
            (r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#, BotApiError::WrongToken),
            (r#"{"ok":false,"error_code":403,"description":"x"}"#, BotApiError::Unreachable("x".to_owned())),
            (r#"{"ok":false,"error_code":502,"description":"x"}"#, BotApiError::Lost("502 x".to_owned())),
        ];
        for (answer, expected) in cases {
            assert_eq!(classify(answer), expected, "{answer}");
        }
    }
}
