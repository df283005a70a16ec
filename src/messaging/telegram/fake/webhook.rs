//! Webhook of the bot. Updates for it wait until a test takes them.

use serde_json::{Value, json};
use url::Url;

use super::api::Refusal;
use super::parameters::MethodParameters;
use super::server::{FakeTelegram, TelegramState};

const PORTS: [u16; 4] = [443, 80, 88, 8443];
const MAX_SECRET_LENGTH: usize = 256;
const DEFAULT_CONNECTIONS: i64 = 40;

#[derive(Debug)]
pub(super) struct FakeWebhook {
    url: String,
    secret: String,
    max_connections: i64,
}

impl FakeTelegram {
    /// Returns the URL and the secret of the webhook; `None` if none is set.
    pub fn webhook(&self) -> Option<(String, String)> {
        let state = self.lock_state();
        state.updates.webhook.as_ref().map(|webhook| (webhook.url.clone(), webhook.secret.clone()))
    }

    /// Takes the updates that wait for the webhook; none without a webhook.
    pub fn take_webhook_updates(&self) -> Vec<Value> {
        let mut state = self.lock_state();
        if state.updates.webhook.is_some() { state.updates.take_all() } else { Vec::new() }
    }

    /// Sets a webhook as another program does that uses the same bot.
    pub fn set_foreign_webhook(&self, url: &str) {
        self.change_state(|state| {
            let (url, secret) = (url.to_owned(), String::new());
            let webhook = FakeWebhook { url, secret, max_connections: DEFAULT_CONNECTIONS };
            state.updates.webhook = Some(webhook);
        });
    }

    /// Reports an error of the webhook from now on, such as `Wrong response from the webhook: 502 Bad Gateway`.
    pub fn fail_webhook(&self, error: &str) {
        self.lock_state().updates.webhook_error = Some(error.to_owned());
    }
}

impl TelegramState {
    pub(super) fn webhook_info(&self) -> Value {
        let updates = &self.updates;
        let url = updates.webhook.as_ref().map_or("", |webhook| webhook.url.as_str());
        let mut info = json!({
            "url": url, "has_custom_certificate": false, "pending_update_count": updates.unread_count(),
        });
        if let Some(webhook) = &updates.webhook {
            info["max_connections"] = webhook.max_connections.into();
        }
        if !updates.allowed_kinds.is_empty() {
            info["allowed_updates"] = updates.allowed_kinds.clone().into();
        }
        if let Some(error) = updates.webhook_error.as_ref().filter(|_| updates.webhook.is_some()) {
            info["last_error_date"] = self.date().into();
            info["last_error_message"] = error.as_str().into();
        }
        info
    }

    pub(super) fn set_webhook(&mut self, parameters: &MethodParameters) -> Result<Value, Refusal> {
        let url = parameters.text("url");
        if url.is_empty() {
            return Ok(self.delete_webhook(parameters));
        }
        check_url(url)?;
        let secret = parameters.text("secret_token");
        check_secret(secret)?;
        if let Some(kinds) = parameters.json("allowed_updates")? {
            self.updates.allowed_kinds = kinds;
        }
        self.updates.webhook = Some(FakeWebhook {
            url: url.to_owned(),
            secret: secret.to_owned(),
            max_connections: parameters.integer("max_connections").unwrap_or(DEFAULT_CONNECTIONS),
        });
        self.updates.webhook_error = None;
        if parameters.flag("drop_pending_updates", false) {
            self.updates.drop_waiting();
        }
        Ok(true.into())
    }

    pub(super) fn delete_webhook(&mut self, parameters: &MethodParameters) -> Value {
        self.updates.webhook = None;
        if parameters.flag("drop_pending_updates", false) {
            self.updates.drop_waiting();
        }
        true.into()
    }
}

fn check_url(url: &str) -> Result<(), Refusal> {
    let refuse = |reason: &str| Err(Refusal::bad_request(&format!("bad webhook: {reason}")));
    match Url::parse(url) {
        Ok(url) if url.scheme() != "https" => refuse("An HTTPS URL must be provided for webhook"),
        Ok(url) if !url.port_or_known_default().is_some_and(|port| PORTS.contains(&port)) => {
            refuse("Webhook can be set up only on ports 80, 88, 443 or 8443")
        }
        Ok(_) => Ok(()),
        Err(_) => refuse("invalid URL"),
    }
}

fn check_secret(secret: &str) -> Result<(), Refusal> {
    if secret.len() > MAX_SECRET_LENGTH {
        return Err(Refusal::bad_request("secret token is too long"));
    }
    if secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)) {
        Ok(())
    } else {
        Err(Refusal::bad_request("secret token contains unallowed characters"))
    }
}
