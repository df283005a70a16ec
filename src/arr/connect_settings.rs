//! Connect settings of an instance: the targets that it notifies of events. Editing an entry preserves its unknown
//! fields.

use http::Method;
use serde_json::{Map, Value, json};

use super::ArrError;
use super::common_api::CommonApi;

/// Placeholder that the API returns instead of a secret. In a write, it leaves the secret unchanged.
const MASK: &str = "********";

/// Connect entry. It does not implement `Debug`, because a header may contain a secret in clear text.
#[derive(Clone)]
pub struct ConnectEntry(Map<String, Value>);

/// Secret of an entry, as far as the API reveals it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VisibleSecret<'a> {
    Missing,
    /// Secret that is set, but that the API does not reveal.
    Masked,
    Plain(&'a str),
}

impl CommonApi<'_> {
    pub async fn fetch_connect_entries(self) -> Result<Vec<ConnectEntry>, ArrError> {
        self.0.get_list::<Map<String, Value>, _>("notification", &[]).await
    }

    /// Fetches the webhook template of this version of the instance. Returns `None` if the instance does not support
    /// webhooks.
    pub async fn fetch_webhook_template(self) -> Result<Option<ConnectEntry>, ArrError> {
        let templates: Vec<ConnectEntry> =
            self.0.get_list::<Map<String, Value>, _>("notification/schema", &[]).await?;
        Ok(templates.into_iter().find(ConnectEntry::is_webhook))
    }

    /// Makes the instance send a test event to the URL of a stored entry, with its stored secret.
    pub async fn try_connect_entry(self, entry: &ConnectEntry) -> Result<(), ArrError> {
        self.0.write_json(Method::POST, "notification/test", &entry.body()).await
    }

    /// Creates or replaces an entry. The instance first sends a test event to its URL, and rejects an entry that fails
    /// the test.
    pub async fn save_connect_entry(self, entry: &ConnectEntry) -> Result<(), ArrError> {
        let body = entry.body();
        match entry.id() {
            Some(id) => self.0.write_json(Method::PUT, &format!("notification/{id}"), &body).await,
            None => self.0.write_json(Method::POST, "notification", &body).await,
        }
    }
}

impl ConnectEntry {
    /// Returns the id of the entry. Returns `None` for an entry that is not saved yet.
    pub fn id(&self) -> Option<i64> {
        self.0.get("id").and_then(Value::as_i64).filter(|&id| id > 0)
    }

    pub fn name(&self) -> &str {
        self.0.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    pub fn is_webhook(&self) -> bool {
        self.0.get("implementation").and_then(Value::as_str) == Some("Webhook")
    }

    /// Returns the names of the events that the entry is notified of, such as `onDownload`.
    pub fn events(&self) -> Vec<&str> {
        let events =
            self.0.iter().filter(|(name, value)| is_event(name, value) && value.as_bool() == Some(true));
        events.map(|(name, _)| name.as_str()).collect()
    }

    /// Returns whether this version of the instance can notify the entry of the event.
    pub fn supports_event(&self, event: &str) -> bool {
        let flag = event.strip_prefix("on").map(|name| format!("supportsOn{name}"));
        let unsupported = flag.and_then(|flag| self.0.get(&flag)).and_then(Value::as_bool) == Some(false);
        self.0.get(event).is_some_and(Value::is_boolean) && !unsupported
    }

    /// Returns the number of tags that restrict the notifications of the entry.
    pub fn tag_count(&self) -> usize {
        self.0.get("tags").and_then(Value::as_array).map_or(0, Vec::len)
    }

    pub fn text_field(&self, field: &str) -> Option<&str> {
        self.field(field).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    pub fn number_field(&self, field: &str) -> Option<i64> {
        self.field(field).and_then(Value::as_i64)
    }

    pub fn visible_secret(&self, field: &str) -> VisibleSecret<'_> {
        secret_from_value(self.text_field(field))
    }

    /// Returns the value of a header that is sent with each event.
    pub fn visible_header(&self, name: &str) -> VisibleSecret<'_> {
        let headers = self.field("headers").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let header = headers
            .iter()
            .find(|header| header["key"].as_str().is_some_and(|key| key.eq_ignore_ascii_case(name)));
        secret_from_value(
            header.and_then(|header| header["value"].as_str()).filter(|value| !value.is_empty()),
        )
    }

    pub fn rename(&mut self, name: &str) {
        self.0.insert("name".to_owned(), json!(name));
    }

    /// Limits the notifications to the given events, and removes the limit to tagged titles.
    pub fn limit_events(&mut self, events: &[&str]) {
        for (name, value) in &mut self.0 {
            if is_event(name, value) {
                *value = json!(events.contains(&name.as_str()));
            }
        }
        self.0.insert("tags".to_owned(), json!([]));
    }

    pub fn set_field(&mut self, field: &str, value: &Value) {
        let Some(fields) = self.0.get_mut("fields").and_then(Value::as_array_mut) else { return };
        match fields.iter_mut().find(|existing| existing["name"].as_str() == Some(field)) {
            Some(existing) => existing["value"] = value.clone(),
            None => fields.push(json!({ "name": field, "value": value })),
        }
    }

    fn body(&self) -> Value {
        Value::Object(self.0.clone())
    }

    fn field(&self, name: &str) -> Option<&Value> {
        let fields = self.0.get("fields")?.as_array()?;
        fields.iter().find(|field| field["name"].as_str() == Some(name))?.get("value")
    }
}

impl From<Map<String, Value>> for ConnectEntry {
    fn from(wire: Map<String, Value>) -> Self {
        Self(wire)
    }
}

fn is_event(name: &str, value: &Value) -> bool {
    let event = name.strip_prefix("on");
    event.is_some_and(|event| event.starts_with(|letter: char| letter.is_ascii_uppercase()))
        && value.is_boolean()
}

fn secret_from_value(text: Option<&str>) -> VisibleSecret<'_> {
    match text {
        None => VisibleSecret::Missing,
        Some(MASK) => VisibleSecret::Masked,
        Some(text) => VisibleSecret::Plain(text),
    }
}
