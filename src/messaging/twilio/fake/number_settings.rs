//! REST resources of the simulated carrier's number and messaging service, with their settings.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};
use url::form_urlencoded;

use super::carrier::FakeTwilio;

/// SID of the account's only number.
const NUMBER_SID: &str = "PN00000000000000000000000000000000";

/// Settings by their names in responses.
#[derive(Debug, Default)]
pub(super) struct NumberSettings {
    number: BTreeMap<String, String>,
    service: BTreeMap<String, String>,
    /// Number of requests that changed settings.
    changes: usize,
}

impl FakeTwilio {
    /// Sets a field of the number, such as `sms_url`, like a user of Twilio's console.
    pub fn set_number_field(&self, field: &str, value: &str) {
        self.lock_state().settings.number.insert(field.to_owned(), value.to_owned());
    }

    /// Sets a field of the messaging service, like a user of Twilio's console.
    pub fn set_service_field(&self, field: &str, value: &str) {
        self.lock_state().settings.service.insert(field.to_owned(), value.to_owned());
    }

    /// Returns the fields of the number that were set, as `name=value`.
    pub fn number_fields(&self) -> Vec<String> {
        self.lock_state().settings.number.iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    pub fn service_fields(&self) -> Vec<String> {
        self.lock_state().settings.service.iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    /// Returns the number of requests that changed the settings.
    pub fn setting_change_count(&self) -> usize {
        self.lock_state().settings.changes
    }

    /// Handles paths below `IncomingPhoneNumbers`.
    pub(super) fn number_resource(
        &self,
        path: &str,
        request: &Request<Bytes>,
    ) -> Result<(u16, Value), (u16, u32)> {
        let number_path = format!("/{NUMBER_SID}.json");
        let query = request.uri().query().unwrap_or_default();
        let filter = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "PhoneNumber");
        let number = self.account.number.as_str();
        match (path, request.method()) {
            (".json", &Method::GET) => {
                let matches = filter.is_none_or(|(_, filter)| number.contains(filter.as_ref()));
                let numbers: Vec<Value> = if matches { vec![self.number_json()] } else { Vec::new() };
                Ok((200, json!({ "incoming_phone_numbers": numbers, "page": 0, "next_page_uri": null })))
            }
            (path, &Method::GET) if path == number_path => Ok((200, self.number_json())),
            (path, &Method::POST) if path == number_path => {
                let fields = form_fields(request.body());
                let mut state = self.lock_state();
                state.settings.changes += 1;
                state.settings.number.extend(fields);
                drop(state);
                Ok((200, self.number_json()))
            }
            _ => Err((404, 20404)),
        }
    }

    /// Handles requests to any messaging service, which is assumed to exist.
    pub(super) fn service_resource(&self, sid: &str, request: &Request<Bytes>) -> (u16, Value) {
        if request.method() == Method::POST {
            let fields = form_fields(request.body());
            let mut state = self.lock_state();
            state.settings.changes += 1;
            state.settings.service.extend(fields);
        }
        let settings = &self.lock_state().settings.service;
        let value = |name: &str| settings.get(name).filter(|value| !value.is_empty());
        let defers_to_numbers = value("use_inbound_webhook_on_number").is_some_and(|value| value == "true");
        let service = json!({
            "sid": sid,
            "account_sid": self.account.account_sid,
            "friendly_name": "Household",
            "inbound_request_url": value("inbound_request_url"),
            "inbound_method": "POST",
            "fallback_url": value("fallback_url"),
            "use_inbound_webhook_on_number": defers_to_numbers,
        });
        (200, service)
    }

    fn number_json(&self) -> Value {
        let settings = &self.lock_state().settings.number;
        let value = |name: &str| settings.get(name).map_or("", String::as_str);
        let has_capability = |name: &str| settings.get(name).is_none_or(|value| value == "true");
        json!({
            "sid": NUMBER_SID,
            "account_sid": self.account.account_sid,
            "phone_number": self.account.number.as_str(),
            "capabilities": { "voice": true, "sms": has_capability("sms"), "mms": has_capability("mms"), "fax": false },
            "sms_url": value("sms_url"),
            "sms_method": settings.get("sms_method").map_or("POST", String::as_str),
            "sms_fallback_url": value("sms_fallback_url"),
            "sms_fallback_method": settings.get("sms_fallback_method").map_or("POST", String::as_str),
            "sms_application_sid": value("sms_application_sid"),
        })
    }
}

/// Parses the fields of a form, with their names in snake case: `SmsUrl` becomes `sms_url`.
fn form_fields(form: &[u8]) -> Vec<(String, String)> {
    let to_snake_case = |name: &str| {
        let mut snake_case = String::new();
        for letter in name.chars() {
            if letter.is_ascii_uppercase() && !snake_case.is_empty() {
                snake_case.push('_');
            }
            snake_case.push(letter.to_ascii_lowercase());
        }
        snake_case
    };
    form_urlencoded::parse(form).map(|(name, value)| (to_snake_case(&name), value.into_owned())).collect()
}
