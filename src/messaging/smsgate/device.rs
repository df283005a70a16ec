//! State of the phone and settings of the app, for the doctor and the setup.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use serde::Deserialize;

use super::client::SmsGate;
use super::wire::InboxEntry;
use crate::http::HttpError;
use crate::telemetry;

/// Failure to ask the phone.
#[derive(Debug, thiserror::Error)]
pub enum PhoneError {
    #[error("reach the phone: {0}")]
    Unreachable(String),
    /// User name, password or token.
    #[error("sign in at the phone")]
    Refused,
    #[error("use the phone: {0}")]
    Unusable(String),
}

/// State of the phone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhoneState {
    pub version: Option<String>,
    /// Charge of the battery in percent.
    pub battery: Option<i64>,
    /// Number of recent messages that were not sent.
    pub failed_messages: Option<i64>,
    /// Numbers of the SIMs, counted from 1.
    pub sims: Vec<u8>,
    /// Order in which waiting messages leave.
    pub order: Option<String>,
    /// Number of messages that wait in the phone.
    pub waiting: usize,
    /// Time of the newest text in the inbox.
    pub last_received_at: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Health {
    version: Option<String>,
    #[serde(default)]
    checks: BTreeMap<String, HealthCheck>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HealthCheck {
    observed_value: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Device {
    #[serde(default)]
    sim_cards: Vec<SimCard>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SimCard {
    sim_number: u8,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Settings {
    messages: MessageSettings,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MessageSettings {
    processing_order: Option<String>,
}

#[derive(Deserialize)]
struct WaitingMessage {}

impl SmsGate {
    /// Asks the phone for its state. The app reports a failure as a whole on a phone without the internet, although
    /// texting works, so the single values are read.
    pub async fn fetch_phone_state(&self) -> Result<PhoneState, PhoneError> {
        let health: Health = self.ask("/health").await?;
        let waiting: Vec<WaitingMessage> = self.ask("/messages?state=Pending&limit=100&offset=0").await?;
        let devices: Vec<Device> = self.ask("/device").await?;
        let settings: Settings = self.ask("/settings").await?;
        let newest: Vec<InboxEntry> = self.ask("/inbox?limit=1&offset=0").await?;
        let observed = |name: &str| health.checks.get(name).and_then(|check| check.observed_value);
        Ok(PhoneState {
            battery: observed("battery:level"),
            failed_messages: observed("messages:failed"),
            version: health.version.clone(),
            sims: devices.iter().flat_map(|device| &device.sim_cards).map(|sim| sim.sim_number).collect(),
            order: settings.messages.processing_order,
            waiting: waiting.len(),
            last_received_at: newest.first().map(|entry| entry.created_at),
        })
    }

    /// Sets the order in which waiting messages leave to that of their arrival.
    pub async fn set_first_in_first_out(&self) -> Result<(), PhoneError> {
        let body = Bytes::from_static(br#"{"messages":{"processing_order":"FIFO"}}"#);
        let response = self.exchange(Method::PATCH, "/settings", body).await.map_err(unreachable)?;
        if response.status().is_success() {
            Ok(())
        } else {
            Err(PhoneError::Unusable(format!("status {}", response.status())))
        }
    }

    /// Returns the URL of the gateway.
    pub fn url(&self) -> &str {
        &self.account.url
    }

    pub fn sim(&self) -> Option<u8> {
        self.account.sim
    }

    async fn ask<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<T, PhoneError> {
        let response = self.exchange(Method::GET, path, Bytes::new()).await.map_err(unreachable)?;
        let status = response.status();
        // The state of health has the status 500 if one of its checks fails.
        match serde_json::from_slice(response.body()) {
            Ok(json) if status.is_success() || path == "/health" => Ok(json),
            _ if status == 401 || status == 403 => Err(PhoneError::Refused),
            Ok(_) => Err(PhoneError::Unusable(format!("{path} has status {status}"))),
            Err(error) => Err(PhoneError::Unusable(format!("{path}: {error}"))),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "a function for map_err")]
fn unreachable(error: HttpError) -> PhoneError {
    PhoneError::Unreachable(telemetry::error_chain(&error))
}
