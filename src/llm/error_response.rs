//! Conversion of error responses and failed requests to a `ModelError`. The HTTP status and the raw body decide the
//! variant, since every server has its own error format.

use std::time::Duration;

use async_openai::error::OpenAIError;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::ModelError;
use super::dialect::ParameterError;

/// Maximum length of a server's message after redaction.
const MAX_MESSAGE_CHARS: usize = 200;

/// Error response of the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{status}")]
pub(super) struct ErrorResponse {
    status: StatusCode,
    retry_after: Option<Duration>,
    message: String,
    param: String,
    /// Values of `code` and `type`, since servers use either of them.
    kind: String,
}

impl ErrorResponse {
    pub fn from_response(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()));
        let body = unwrap_list(&body);
        let error = body.get("error").map_or(body, unwrap_list);
        let field_text = |name: &str| match &error[name] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        Self {
            status,
            retry_after: parse_retry_after(headers),
            message: error_message(error),
            param: field_text("param"),
            kind: format!("{} {}", field_text("code"), field_text("type")),
        }
    }

    /// Returns the parameter error if the server rejected the request and may accept other fields.
    pub fn parameter_error(&self) -> Option<ParameterError<'_>> {
        let may_concern_fields = matches!(self.status.as_u16(), 400 | 422) && !self.is_context_too_long();
        may_concern_fields.then_some(ParameterError { param: &self.param, message: &self.message })
    }

    pub fn into_error(self) -> ModelError {
        let context_too_long = self.is_context_too_long();
        let quota_spent = self.is_quota_spent();
        let message = if self.message.trim().is_empty() {
            format!("HTTP {}", self.status.as_u16())
        } else {
            self.message
        };
        match self.status.as_u16() {
            _ if context_too_long => ModelError::ContextTooLong,
            // Google reports a wrong key with status 400.
            400 if reports_invalid_key(&message) => ModelError::Unauthorized(message),
            401 | 403 => ModelError::Unauthorized(message),
            402 => ModelError::QuotaSpent(message),
            429 if quota_spent => ModelError::QuotaSpent(message),
            429 => ModelError::RateLimited { retry_after: self.retry_after },
            408 => ModelError::Timeout,
            500.. => ModelError::Unavailable(message),
            _ => ModelError::Rejected(message),
        }
    }

    fn is_context_too_long(&self) -> bool {
        // Some local servers report a full context with status 500.
        matches!(self.status.as_u16(), 400 | 413 | 422 | 500)
            && (mentions_context_length(&self.kind) || mentions_context_length(&self.message))
    }

    fn is_quota_spent(&self) -> bool {
        ["insufficient_quota", "billing"].iter().any(|word| self.kind.contains(word))
            || self.message.contains("insufficient_quota")
    }
}

/// Cause of a failed attempt.
pub(super) enum AttemptError {
    /// Error response, possibly to a request that the server accepts with other fields.
    Rejected(ErrorResponse),
    Failed(ModelError),
}

impl From<ModelError> for AttemptError {
    fn from(error: ModelError) -> Self {
        Self::Failed(error)
    }
}

impl From<OpenAIError> for AttemptError {
    fn from(error: OpenAIError) -> Self {
        Self::Failed(match error {
            OpenAIError::Boxed(error) => match error.downcast::<ErrorResponse>() {
                Ok(response) => return Self::Rejected(*response),
                Err(_) => ModelError::Unavailable("the connection failed".to_owned()),
            },
            OpenAIError::Reqwest(error) if error.is_connect() => {
                ModelError::Unavailable("no connection".to_owned())
            }
            OpenAIError::Reqwest(error) if error.is_timeout() => ModelError::Timeout,
            OpenAIError::JSONDeserialize(error, _) if error.is_data() => {
                ModelError::Malformed("the response has an unexpected structure".to_owned())
            }
            OpenAIError::JSONDeserialize(..) => ModelError::Malformed("the response is not JSON".to_owned()),
            // These error texts may contain parts of the response or the URL.
            _ => ModelError::Unavailable("the connection failed".to_owned()),
        })
    }
}

/// Returns the error that a response with status 200, or a chunk of a stream, contains instead of content.
pub(super) fn error_in_response(error: &Value) -> Option<ModelError> {
    match unwrap_list(error) {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) if text.is_empty() => None,
        error => {
            let message = error_message(error);
            if mentions_context_length(&message)
                || error["code"].as_str().is_some_and(mentions_context_length)
            {
                Some(ModelError::ContextTooLong)
            } else if message.is_empty() {
                Some(ModelError::Unavailable("the server sent an error without a message".to_owned()))
            } else {
                Some(ModelError::Unavailable(message))
            }
        }
    }
}

/// Returns the error for logs and pages: the server's message is shortened to one line, and API keys are replaced.
pub(super) fn redact_error(error: ModelError, key: &str) -> ModelError {
    match error {
        ModelError::Unavailable(message) => ModelError::Unavailable(shorten_message(&message, key)),
        ModelError::Malformed(message) => ModelError::Malformed(shorten_message(&message, key)),
        ModelError::Unauthorized(message) => ModelError::Unauthorized(shorten_message(&message, key)),
        ModelError::QuotaSpent(message) => ModelError::QuotaSpent(shorten_message(&message, key)),
        ModelError::Rejected(message) => ModelError::Rejected(shorten_message(&message, key)),
        ModelError::RateLimited { .. } | ModelError::Timeout | ModelError::ContextTooLong => error,
    }
}

fn error_message(error: &Value) -> String {
    let text = match error {
        Value::String(text) => text,
        error => {
            match ["message", "detail", "error"].map(|name| &error[name]).into_iter().find(|v| !v.is_null()) {
                Some(Value::String(text)) => text,
                Some(other) => return other.to_string(),
                None if error["errors"].is_null() => return String::new(),
                None => return error_message(unwrap_list(&error["errors"])),
            }
        }
    };
    // The HTML error page of a proxy says no more than the status.
    if text.trim_start().starts_with('<') { String::new() } else { text.clone() }
}

/// Returns the first entry of a list, in which some servers wrap an error, or the value itself.
fn unwrap_list(value: &Value) -> &Value {
    match value {
        Value::Array(list) => list.first().map_or(value, unwrap_list),
        value => value,
    }
}

fn reports_invalid_key(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["api key not valid", "invalid api key", "incorrect api key"]
        .iter()
        .any(|phrase| message.contains(phrase))
}

fn shorten_message(message: &str, key: &str) -> String {
    // A key as short as "ollama" is a placeholder, and may be an ordinary part of the message.
    let message = if key.len() < 8 { message.to_owned() } else { message.replace(key, "(key)") };
    let is_api_key = |word: &str| word.trim_start_matches(|c: char| !c.is_alphanumeric()).starts_with("sk-");
    let words: Vec<&str> =
        message.split_whitespace().map(|word| if is_api_key(word) { "(key)" } else { word }).collect();
    words.join(" ").chars().take(MAX_MESSAGE_CHARS).collect()
}

fn mentions_context_length(text: &str) -> bool {
    const PHRASES: [&str; 10] = [
        "context_length",
        "context length",
        "context window",
        "context size",
        "context_size",
        "maximum context",
        // The wording of LM Studio, verbatim.
        "context the overflows",
        "prompt is too long",
        "input is too long",
        "exceeds the maximum number of tokens",
    ];
    let text = text.to_ascii_lowercase();
    PHRASES.iter().any(|phrase| text.contains(phrase))
}

fn parse_retry_after(headers: &HeaderMap) -> Option<Duration> {
    let header_number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds =
        header_number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| header_number("retry-after"))?;
    // An invalid value such as a negative number counts as absent.
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(status: u16, body: &str, expected: &ModelError) {
        let status = StatusCode::from_u16(status).unwrap();
        let error = ErrorResponse::from_response(status, &HeaderMap::new(), body.as_bytes()).into_error();
        assert_eq!(redact_error(error, "secret-key"), *expected, "{status} {body}");
    }

    fn rate_limit(headers: &[(&'static str, &'static str)]) -> ModelError {
        let headers = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), http::HeaderValue::from_static(value)))
            .collect();
        ErrorResponse::from_response(StatusCode::TOO_MANY_REQUESTS, &headers, b"slow").into_error()
    }

    #[test]
    fn error_is_parsed_from_any_envelope() {
        let message = || "no".to_owned();
        check(
            401,
            r#"{"error":{"message":"no","type":"auth","param":null,"code":null}}"#,
            &ModelError::Unauthorized(message()),
        );
        check(403, r#"{"error":"no"}"#, &ModelError::Unauthorized(message()));
        check(
            402,
            r#"{"error":{"code":402,"message":"no"},"user_id":"u"}"#,
            &ModelError::QuotaSpent(message()),
        );
        check(404, r#"{"message":"no"}"#, &ModelError::Rejected(message()));
        check(422, r#"{"detail":"no"}"#, &ModelError::Rejected(message()));
        check(400, "no", &ModelError::Rejected(message()));
        check(500, r#"{"error":{"message":"no"}}"#, &ModelError::Unavailable(message()));
        check(502, "<html>502 Bad Gateway</html>", &ModelError::Unavailable("HTTP 502".to_owned()));
        check(301, "", &ModelError::Rejected("HTTP 301".to_owned()));
        check(408, "", &ModelError::Timeout);
    }

    #[test]
    fn error_in_a_list_is_unwrapped() {
        let google = r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#;
        let reason = || "API key not valid. Please pass a valid API key.".to_owned();
        check(400, google, &ModelError::Unauthorized(reason()));
        check(404, r#"[{"error":{"message":"no"}}]"#, &ModelError::Rejected("no".to_owned()));
        check(503, r#"{"error":[{"message":"no"}]}"#, &ModelError::Unavailable("no".to_owned()));
        check(400, r#"{"errors":[{"code":7,"message":"no"}]}"#, &ModelError::Rejected("no".to_owned()));
        check(400, r#"["no"]"#, &ModelError::Rejected("no".to_owned()));
        check(400, "[]", &ModelError::Rejected("HTTP 400".to_owned()));
        let long = r#"[{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed."}}]"#;
        check(400, long, &ModelError::ContextTooLong);
        let inside = error_in_response(&json!([{ "message": "gone" }]));
        assert_eq!(inside, Some(ModelError::Unavailable("gone".to_owned())));
    }

    #[test]
    fn rate_limit_and_spent_quota_are_distinguished() {
        let quota = r#"{"error":{"message":"no","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        check(429, quota, &ModelError::QuotaSpent("no".to_owned()));
        check(429, "slow down", &ModelError::RateLimited { retry_after: None });
    }

    #[test]
    fn retry_delay_comes_from_the_response_headers() {
        let limited_for = |ms: u64| ModelError::RateLimited { retry_after: Some(Duration::from_millis(ms)) };
        let without_delay = ModelError::RateLimited { retry_after: None };
        assert_eq!(rate_limit(&[("retry-after", "40")]), limited_for(40_000));
        assert_eq!(rate_limit(&[("retry-after", "1.5")]), limited_for(1500));
        assert_eq!(rate_limit(&[("retry-after-ms", "250"), ("retry-after", "1")]), limited_for(250));
        for value in ["-1", "soon", "inf", "NaN"] {
            assert_eq!(rate_limit(&[("retry-after", value)]), without_delay, "{value}");
        }
    }

    #[test]
    fn context_overflow_is_recognized_by_its_message() {
        let by_code = json!({ "error": { "message": "no", "code": "context_length_exceeded" } });
        check(400, &by_code.to_string(), &ModelError::ContextTooLong);
        check(413, "Input is too long for this model", &ModelError::ContextTooLong);
        check(500, "the request exceeds the available context size", &ModelError::ContextTooLong);
        check(413, "too much for one minute", &ModelError::Rejected("too much for one minute".to_owned()));
    }

    #[test]
    fn only_a_rejected_request_is_a_parameter_error() {
        for (status, body, expected) in [
            (400, r#"{"error":{"message":"no","param":"max_tokens"}}"#, true),
            (400, r#"[{"error":{"message":"no","param":"max_tokens"}}]"#, true),
            (422, "max_tokens", true),
            (400, "max_tokens exceed the context window", false),
            (404, "max_tokens", false),
            (500, "max_tokens", false),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let response = ErrorResponse::from_response(status, &HeaderMap::new(), body.as_bytes());
            assert_eq!(response.parameter_error().is_some(), expected, "{status} {body}");
        }
    }

    #[test]
    fn error_message_is_shortened_and_redacted() {
        check(
            401,
            "bad key\nsecret-key or 'sk-abc123'",
            &ModelError::Unauthorized("bad key (key) or (key)".to_owned()),
        );
        check(400, &"x".repeat(1000), &ModelError::Rejected("x".repeat(200)));
    }
}
