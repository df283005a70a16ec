//! Connect settings: the entries for the targets that an instance notifies of events, and editing one of them. Unknown
//! fields of an entry stay unchanged.

use http::Method;
use serde_json::{Map, Value, json};

use super::ArrError;
use super::common_api::CommonApi;

/// Placeholder that the instances show instead of a secret, and accept as "leave the secret unchanged".
const MASK: &str = "********";

/// Connect entry. The type has no debug output, since a header may hold a secret in clear text.
#[derive(Clone)]
pub struct ConnectEntry(Map<String, Value>);

/// Secret as far as it is visible from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VisibleSecret<'a> {
    Nothing,
    /// Secret that exists, but that the API does not reveal.
    Masked,
    Plain(&'a str),
}

impl CommonApi<'_> {
    pub async fn fetch_connect_entries(self) -> Result<Vec<ConnectEntry>, ArrError> {
        self.0.get_list::<Map<String, Value>, _>("notification", &[]).await
    }

    /// Fetches the webhook template of this version of the instance. Returns `None` if the instance does not support
    /// webhooks.
    pub async fn blank_webhook(self) -> Result<Option<ConnectEntry>, ArrError> {
        let kinds: Vec<ConnectEntry> =
            self.0.get_list::<Map<String, Value>, _>("notification/schema", &[]).await?;
        Ok(kinds.into_iter().find(ConnectEntry::is_webhook))
    }

    /// Makes the instance send a test to the address of a stored entry, with its stored secret.
    pub async fn try_connect_entry(self, connection: &ConnectEntry) -> Result<(), ArrError> {
        self.0.write_json(Method::POST, "notification/test", &connection.body()).await
    }

    /// Creates or replaces an entry. The instance first sends a test to its address, and refuses an entry that fails
    /// the test.
    pub async fn save_connect_entry(self, connection: &ConnectEntry) -> Result<(), ArrError> {
        let body = connection.body();
        match connection.id() {
            Some(id) => self.0.write_json(Method::PUT, &format!("notification/{id}"), &body).await,
            None => self.0.write_json(Method::POST, "notification", &body).await,
        }
    }
}

impl ConnectEntry {
    /// Returns the id of the entry. Returns `None` for an entry that was not saved yet.
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
        let supports = event.strip_prefix("on").map(|rest| format!("supportsOn{rest}"));
        let unsupported = supports.and_then(|name| self.0.get(&name)).and_then(Value::as_bool) == Some(false);
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
        visible_secret_of(self.text_field(field))
    }

    /// Returns the value of a header that is sent with each event.
    pub fn visible_header(&self, name: &str) -> VisibleSecret<'_> {
        let headers = self.field("headers").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let named = headers
            .iter()
            .find(|header| header["key"].as_str().is_some_and(|key| key.eq_ignore_ascii_case(name)));
        visible_secret_of(named.and_then(|header| header["value"].as_str()).filter(|value| !value.is_empty()))
    }

    pub fn rename(&mut self, name: &str) {
        self.0.insert("name".to_owned(), json!(name));
    }

    /// Limits the notifications to these events and no others, for everything in the library.
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
        match fields.iter_mut().find(|known| known["name"].as_str() == Some(field)) {
            Some(known) => known["value"] = value.clone(),
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
    let rest = name.strip_prefix("on");
    rest.is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_uppercase()))
        && value.is_boolean()
}

fn visible_secret_of(text: Option<&str>) -> VisibleSecret<'_> {
    match text {
        None => VisibleSecret::Nothing,
        Some(MASK) => VisibleSecret::Masked,
        Some(text) => VisibleSecret::Plain(text),
    }
}
