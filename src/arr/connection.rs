//! Settings, Connect: the entries of those whom a server tells of events, and setting one. What we do not know of an
//! entry stays as it is.

use http::Method;
use serde_json::{Map, Value, json};

use super::ArrError;
use super::server::Server;

/// What servers show in place of a secret, and take as "leave it as it is".
const MASK: &str = "********";

/// Has no debug output, since a header may hold a secret in clear.
#[derive(Clone)]
pub struct Connection(Map<String, Value>);

/// A secret as far as it can be seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen<'a> {
    Nothing,
    /// There is one, and nobody can read it.
    Masked,
    Plain(&'a str),
}

impl Server<'_> {
    pub async fn connections(self) -> Result<Vec<Connection>, ArrError> {
        self.0.list::<Map<String, Value>, _>("notification", &[]).await
    }

    /// A webhook as this version of the server begins one; `None` where it knows no webhooks.
    pub async fn blank_webhook(self) -> Result<Option<Connection>, ArrError> {
        let kinds: Vec<Connection> = self.0.list::<Map<String, Value>, _>("notification/schema", &[]).await?;
        Ok(kinds.into_iter().find(Connection::is_webhook))
    }

    /// Has the server send a test to the address of a stored entry, with its stored secret.
    pub async fn test(self, connection: &Connection) -> Result<(), ArrError> {
        self.0.write(Method::POST, "notification/test", &connection.body()).await
    }

    /// Creates or replaces it. The server first sends a test to its address, and refuses what does not pass.
    pub async fn save(self, connection: &Connection) -> Result<(), ArrError> {
        let body = connection.body();
        match connection.id() {
            Some(id) => self.0.write(Method::PUT, &format!("notification/{id}"), &body).await,
            None => self.0.write(Method::POST, "notification", &body).await,
        }
    }
}

impl Connection {
    /// `None` for one that was not saved yet.
    pub fn id(&self) -> Option<i64> {
        self.0.get("id").and_then(Value::as_i64).filter(|&id| id > 0)
    }

    pub fn name(&self) -> &str {
        self.0.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    pub fn is_webhook(&self) -> bool {
        self.0.get("implementation").and_then(Value::as_str) == Some("Webhook")
    }

    /// The names of the events that it is told of, such as `onDownload`.
    pub fn events(&self) -> Vec<&str> {
        let told =
            self.0.iter().filter(|(name, value)| is_event(name, value) && value.as_bool() == Some(true));
        told.map(|(name, _)| name.as_str()).collect()
    }

    /// Whether this version of the server can tell it of the event.
    pub fn can_be_told(&self, event: &str) -> bool {
        let supports = event.strip_prefix("on").map(|rest| format!("supportsOn{rest}"));
        let unsupported = supports.and_then(|name| self.0.get(&name)).and_then(Value::as_bool) == Some(false);
        self.0.get(event).is_some_and(Value::is_boolean) && !unsupported
    }

    /// How many tags narrow down what it is told of.
    pub fn tags(&self) -> usize {
        self.0.get("tags").and_then(Value::as_array).map_or(0, Vec::len)
    }

    pub fn text(&self, field: &str) -> Option<&str> {
        self.field(field).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    pub fn number(&self, field: &str) -> Option<i64> {
        self.field(field).and_then(Value::as_i64)
    }

    pub fn secret(&self, field: &str) -> Seen<'_> {
        seen(self.text(field))
    }

    /// The value of a header that goes along.
    pub fn header(&self, name: &str) -> Seen<'_> {
        let headers = self.field("headers").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let named = headers
            .iter()
            .find(|header| header["key"].as_str().is_some_and(|key| key.eq_ignore_ascii_case(name)));
        seen(named.and_then(|header| header["value"].as_str()).filter(|value| !value.is_empty()))
    }

    pub fn rename(&mut self, name: &str) {
        self.0.insert("name".to_owned(), json!(name));
    }

    /// It is told of these events from here on, and of no other, for everything in the library.
    pub fn tell_only(&mut self, events: &[&str]) {
        for (name, value) in &mut self.0 {
            if is_event(name, value) {
                *value = json!(events.contains(&name.as_str()));
            }
        }
        self.0.insert("tags".to_owned(), json!([]));
    }

    pub fn set(&mut self, field: &str, value: &Value) {
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

impl From<Map<String, Value>> for Connection {
    fn from(wire: Map<String, Value>) -> Self {
        Self(wire)
    }
}

fn is_event(name: &str, value: &Value) -> bool {
    let rest = name.strip_prefix("on");
    rest.is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_uppercase()))
        && value.is_boolean()
}

fn seen(text: Option<&str>) -> Seen<'_> {
    match text {
        None => Seen::Nothing,
        Some(MASK) => Seen::Masked,
        Some(text) => Seen::Plain(text),
    }
}
