//! Parameters of a request, from a JSON body or from the query of its URL.

use bytes::Bytes;
use http::Request;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::api::Refusal;

/// Parameters by name. A query has only texts, so numbers and JSON are also read from texts, as Telegram does.
#[derive(Debug, Default)]
pub(super) struct MethodParameters(Map<String, Value>);

impl MethodParameters {
    pub(super) fn from_request(request: &Request<Bytes>) -> Result<Self, Refusal> {
        let query = request.uri().query().unwrap_or_default();
        let mut parameters: Map<String, Value> = form_urlencoded::parse(query.as_bytes())
            .map(|(name, value)| (name.into_owned(), Value::String(value.into_owned())))
            .collect();
        if !request.body().is_empty() {
            let body: Map<String, Value> = serde_json::from_slice(request.body()).map_err(|error| {
                Refusal::bad_request(&format!("can't parse request JSON object: {error}"))
            })?;
            parameters.extend(body);
        }
        parameters.retain(|_, value| !value.is_null());
        Ok(Self(parameters))
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn integer(&self, name: &str) -> Option<i64> {
        match self.0.get(name)? {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        }
    }

    pub(super) fn flag(&self, name: &str, default: bool) -> bool {
        match self.0.get(name) {
            Some(Value::Bool(flag)) => *flag,
            Some(Value::String(text)) => matches!(text.to_ascii_lowercase().as_str(), "true" | "yes" | "1"),
            Some(_) | None => default,
        }
    }

    /// Returns a parameter that consists of JSON; `None` if it is missing.
    pub(super) fn json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Refusal> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let parsed = match value {
            Value::String(text) => serde_json::from_str(text),
            value => serde_json::from_value(value.clone()),
        };
        parsed.map(Some).map_err(|error| Refusal::bad_request(&format!("can't parse {name}: {error}")))
    }

    pub(super) fn chat(&self) -> Result<i64, Refusal> {
        if !self.0.contains_key("chat_id") {
            return Err(Refusal::bad_request("chat_id is empty"));
        }
        self.integer("chat_id").ok_or_else(|| Refusal::bad_request("chat not found"))
    }

    pub(super) fn message(&self) -> Result<i64, Refusal> {
        self.integer("message_id").ok_or_else(|| Refusal::bad_request("message identifier is not specified"))
    }
}
