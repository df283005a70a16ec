//! API of the simulated phone: messages, inbox, health, device and settings.

use std::sync::Arc;

use axum::Router;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::FutureExt;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::phone::{FakePhone, PhoneInboxEntry, PhoneMessage, PhoneProgress};
use crate::http::InProcess;

const MAX_PAGE_SIZE: usize = 500;
const DEFAULT_PAGE_SIZE: usize = 50;
const DEVICE: &str = "fake-device";

/// Answer of the phone: a status, a JSON body or none, and the total of a list.
struct Answer {
    status: u16,
    body: Option<Value>,
    total: Option<usize>,
}

impl Answer {
    fn json(status: u16, body: Value) -> Self {
        Self { status, body: Some(body), total: None }
    }

    fn empty(status: u16) -> Self {
        Self { status, body: None, total: None }
    }

    fn error(status: u16, message: &str) -> Self {
        Self::json(status, json!({ "message": message }))
    }

    fn into_response(self) -> Response<Bytes> {
        let body = self.body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let mut response = Response::new(body);
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(total) = self.total {
            response.headers_mut().insert("x-total-count", HeaderValue::from(total));
        }
        response
    }
}

impl FakePhone {
    /// Returns the phone as an in-process server, which needs no socket.
    pub fn in_process(&self) -> InProcess {
        let phone = self.clone();
        Arc::new(move |request| {
            let phone = phone.clone();
            async move { phone.handle_request(&request).await }.boxed()
        })
    }

    /// Returns the phone as a router, for use behind a socket.
    pub fn router(&self) -> Router {
        let phone = self.clone();
        Router::new().fallback(move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| async move {
            let mut request = Request::new(body);
            (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
            phone.handle_request(&request).await.map(axum::body::Body::from)
        })
    }

    async fn handle_request(&self, request: &Request<Bytes>) -> Response<Bytes> {
        if self.lock_state().faults.is_asleep {
            return std::future::pending().await;
        }
        let path = request.uri().path().to_owned();
        self.lock_state().requests.push(format!("{} {path}", request.method()));
        if path == "/health" {
            return self.health().into_response();
        }
        if !self.is_signed_in(request.headers()) {
            return Answer::empty(401).into_response();
        }
        if let Some(status) = self.lock_state().faults.failing_status {
            return Answer::error(status, "simulated").into_response();
        }
        let now = self.clock.now();
        self.lock_state().advance(now);
        let query: Vec<(String, String)> =
            form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes())
                .into_owned()
                .collect();
        let answer = match (request.method(), path.as_str()) {
            (&Method::POST, "/messages") => match self.accept_message(request.body(), now) {
                Some(answer) => answer,
                None => return std::future::pending().await,
            },
            (&Method::GET, "/messages") => self.list_messages(&query),
            (&Method::GET, "/inbox") => self.list_inbox(&query),
            (&Method::POST, "/inbox/refresh") => Answer::empty(202),
            (&Method::GET, "/device") => Answer::json(200, device_json()),
            (&Method::GET, "/settings") => self.settings(),
            (&Method::PATCH, "/settings") => self.change_settings(request.body()),
            (&Method::GET, path) if let Some(id) = path.strip_prefix("/messages/") => self.show_message(id),
            _ => Answer::empty(404),
        };
        answer.into_response()
    }

    fn is_signed_in(&self, headers: &HeaderMap) -> bool {
        let account = &self.account;
        let expected = format!("{}:{}", account.user, account.password.expose_secret());
        let password = format!("Basic {}", STANDARD.encode(expected));
        let token = self.lock_state().token.as_ref().map(|token| format!("Bearer {token}"));
        let is_given =
            |expected: &String| headers.get(AUTHORIZATION).is_some_and(|given| given == expected.as_str());
        is_given(&password) || token.as_ref().is_some_and(is_given)
    }

    fn health(&self) -> Answer {
        // Without the internet, the app reports a failure although texting works.
        let checks = json!({
            "connection:status": { "status": "fail", "observedValue": 0, "observedUnit": "boolean" },
            "battery:level": { "status": "pass", "observedValue": 80, "observedUnit": "percent" },
            "messages:failed": { "status": "pass", "observedValue": 0, "observedUnit": "messages" },
        });
        Answer::json(500, json!({ "status": "fail", "version": "1.66.1", "releaseId": 1, "checks": checks }))
    }

    /// Accepts a message; `None` if the answer is lost.
    fn accept_message(&self, body: &[u8], now: Timestamp) -> Option<Answer> {
        let Ok(json) = serde_json::from_slice::<Value>(body) else {
            return Some(Answer::error(400, "not JSON"));
        };
        let text = json["textMessage"]["text"].as_str().unwrap_or_default();
        let (Some(id), Some([to])) =
            (json["id"].as_str(), json["phoneNumbers"].as_array().map(Vec::as_slice))
        else {
            return Some(Answer::error(400, "no id or not one number"));
        };
        if text.is_empty() || (json.get("ttl").is_some() && json.get("validUntil").is_some()) {
            return Some(Answer::error(400, "invalid message"));
        }
        let mut state = self.lock_state();
        if state.messages.iter().any(|message| message.id == id) {
            let status = state.faults.repeat_status.unwrap_or(409);
            return Some(Answer::error(status, "a message with this id exists"));
        }
        let period = json["ttl"].as_u64().unwrap_or(86_400);
        let message = PhoneMessage {
            id: id.to_owned(),
            to: to.as_str().unwrap_or_default().to_owned(),
            body: text.to_owned(),
            sim: json["simNumber"].as_u64().and_then(|sim| u8::try_from(sim).ok()),
            accepted_at: now,
            valid_until: now + SignedDuration::from_secs(i64::try_from(period).unwrap_or(86_400)),
            progress: PhoneProgress::Pending,
            is_known_to_be_sent: false,
        };
        let answer = Answer::json(202, message_json(&message, state.faults.clock_skew));
        state.messages.push(message);
        if state.faults.lost_answers > 0 {
            state.faults.lost_answers -= 1;
            return None;
        }
        Some(answer)
    }

    fn show_message(&self, id: &str) -> Answer {
        let mut state = self.lock_state();
        let skew = state.faults.clock_skew;
        let Some(message) = state.messages.iter_mut().find(|message| message.id == id) else {
            return Answer::empty(404);
        };
        message.is_known_to_be_sent = message.progress != PhoneProgress::Pending;
        Answer::json(200, message_json(message, skew))
    }

    fn list_messages(&self, query: &[(String, String)]) -> Answer {
        let state = self.lock_state();
        let from = parameter(query, "from").and_then(|from| from.parse::<Timestamp>().ok());
        let waiting_only = parameter(query, "state") == Some("Pending");
        let listed: Vec<&PhoneMessage> = state
            .messages
            .iter()
            .rev()
            .filter(|message| from.is_none_or(|from| message.accepted_at >= from))
            .filter(|message| !waiting_only || message.progress == PhoneProgress::Pending)
            .collect();
        let page = page_of(&listed, query);
        let json = page.iter().map(|message| message_json(message, state.faults.clock_skew)).collect();
        Answer { total: Some(listed.len()), ..Answer::json(200, Value::Array(json)) }
    }

    fn list_inbox(&self, query: &[(String, String)]) -> Answer {
        let mut state = self.lock_state();
        // A cheaper request for one entry only shows whether something has changed.
        if parameter(query, "limit") != Some("1") {
            state.listed_entries = state.inbox.len();
        }
        let from = parameter(query, "from").and_then(|from| from.parse::<Timestamp>().ok());
        let mut listed: Vec<&PhoneInboxEntry> =
            state.inbox.iter().filter(|entry| from.is_none_or(|from| entry.sent_at >= from)).collect();
        // The newest first, by the time at which a text was sent.
        listed.sort_by_key(|message| std::cmp::Reverse(message.sent_at));
        let page = page_of(&listed, query);
        let json = page.iter().map(|entry| entry_json(entry)).collect();
        Answer { total: Some(listed.len()), ..Answer::json(200, Value::Array(json)) }
    }

    fn settings(&self) -> Answer {
        let order = self.lock_state().settings.processing_order.clone();
        Answer::json(
            200,
            json!({
                "messages": { "processing_order": order, "send_interval_min": null, "limit_period": "Disabled" },
                "webhooks": { "internet_required": true, "retry_count": 15 },
            }),
        )
    }

    fn change_settings(&self, body: &[u8]) -> Answer {
        let Ok(json) = serde_json::from_slice::<Value>(body) else { return Answer::error(400, "not JSON") };
        let mut state = self.lock_state();
        if let Some(order) = json["messages"]["processing_order"].as_str() {
            order.clone_into(&mut state.settings.processing_order);
        }
        Answer::json(200, json!({}))
    }
}

fn parameter<'a>(query: &'a [(String, String)], name: &str) -> Option<&'a str> {
    query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn page_of<'a, T>(listed: &'a [T], query: &[(String, String)]) -> &'a [T] {
    let number = |name| parameter(query, name).and_then(|value| value.parse::<usize>().ok());
    let offset = number("offset").unwrap_or(0).min(listed.len());
    let limit = number("limit").unwrap_or(DEFAULT_PAGE_SIZE).min(MAX_PAGE_SIZE);
    &listed[offset..listed.len().min(offset + limit)]
}

fn message_json(message: &PhoneMessage, skew: SignedDuration) -> Value {
    let at = |time: Timestamp| (time + skew).to_string();
    let mut states = json!({ "Pending": at(message.accepted_at) });
    let (state, error) = match &message.progress {
        PhoneProgress::Pending => ("Pending", None),
        PhoneProgress::Sent(sent_at) => {
            states["Sent"] = at(*sent_at).into();
            ("Sent", None)
        }
        PhoneProgress::Delivered { sent_at, at: delivered_at } => {
            states["Sent"] = at(*sent_at).into();
            states["Delivered"] = at(*delivered_at).into();
            ("Delivered", None)
        }
        PhoneProgress::Failed { at: failed_at, error } => {
            states["Failed"] = at(*failed_at).into();
            ("Failed", Some(error.as_str()))
        }
    };
    let mut recipient = json!({ "phoneNumber": message.to, "state": state });
    if let Some(error) = error {
        recipient["error"] = error.into();
    }
    json!({
        "id": message.id, "deviceId": DEVICE, "state": state, "isHashed": false, "isEncrypted": false,
        "textMessage": { "text": message.body }, "recipients": [recipient], "states": states,
    })
}

fn entry_json(entry: &PhoneInboxEntry) -> Value {
    let attachment =
        |part: usize| json!({ "partId": part, "name": "photo.jpg", "size": 9, "contentType": "image/jpeg" });
    json!({
        "id": entry.id, "type": entry.kind, "sender": entry.sender, "recipient": null, "simNumber": entry.sim,
        "contentPreview": entry.body, "createdAt": entry.sent_at.to_string(),
        "attachments": (0..entry.attachments).map(attachment).collect::<Vec<_>>(),
    })
}

fn device_json() -> Value {
    json!([{
        "id": DEVICE, "name": "Simulated phone", "lastSeen": "2026-01-01T00:00:00Z",
        "simCards": [{ "slotIndex": 0, "simNumber": 1, "phoneNumber": null, "carrierName": "Simulated" }],
    }])
}
