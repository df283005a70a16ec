//! REST API of the simulated carrier: creation of messages, the message resource, and the message list.

use std::sync::Arc;

use axum::Router;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::FutureExt;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::carrier::{FakeDelivery, FakeTwilio, SendFault, SentMessage};
use super::message_log::{FakeMessage, MessageDirection};
use crate::conversation::text::segments::SegmentCount;
use crate::conversation::transcript::Address;
use crate::http::InProcess;
use crate::messaging::twilio::error_codes::look_up_error_code;

const MAX_BODY_UNITS: usize = 1600;
const MAX_MEDIA: usize = 10;
const DEFAULT_PAGE_SIZE: usize = 50;
const MAX_PAGE_SIZE: usize = 1000;

/// Error response: HTTP status and Twilio's error code.
type RestError = (u16, u32);

impl FakeTwilio {
    /// Returns the carrier as an in-process server, which needs no socket.
    pub fn in_process(&self) -> InProcess {
        let carrier = self.clone();
        Arc::new(move |request| {
            let carrier = carrier.clone();
            async move { carrier.handle_request(&request).await }.boxed()
        })
    }

    /// Returns the carrier as a router, for use behind a socket.
    pub fn router(&self) -> Router {
        let carrier = self.clone();
        Router::new().fallback(move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| async move {
            let mut request = Request::new(body);
            (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
            carrier.handle_request(&request).await.map(axum::body::Body::from)
        })
    }

    async fn handle_request(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let result = match self.resource_path(request) {
            Err(error) => Err(error),
            Ok("Messages.json") if request.method() == Method::POST => {
                self.create_message(request.body()).await
            }
            Ok("Messages.json") if request.method() == Method::GET => self.list_messages(request.uri()),
            Ok(path) if let Some(subpath) = path.strip_prefix("IncomingPhoneNumbers") => {
                self.number_resource(subpath, request)
            }
            Ok(path) if let Some(sid) = path.strip_prefix("Services/") => {
                Ok(self.service_resource(sid, request))
            }
            Ok(path) if request.method() == Method::GET => self.fetch_message(path),
            Ok(_) => Err((405, 20004)),
        };
        match result {
            Ok((status, resource)) => json_response(status, &resource),
            Err((status, code)) => {
                let message = look_up_error_code(code).map_or("", |known| known.meaning);
                let more_info = format!("https://www.twilio.com/docs/errors/{code}");
                let error =
                    json!({ "code": code, "message": message, "more_info": more_info, "status": status });
                json_response(status, &error)
            }
        }
    }

    /// Checks the credentials of a request, and returns its path below the account.
    fn resource_path<'a>(&self, request: &'a Request<Bytes>) -> Result<&'a str, RestError> {
        let account = &self.account;
        let (sid, token) = (&account.account_sid, account.auth_token.expose_secret());
        let expected = format!("Basic {}", STANDARD.encode(format!("{sid}:{token}")));
        if request.headers().get(AUTHORIZATION).is_none_or(|given| given.as_bytes() != expected.as_bytes()) {
            return Err((401, 20003));
        }
        let account_path = format!("/2010-04-01/Accounts/{sid}/");
        let path = request.uri().path();
        // Messaging services belong to a separate API.
        path.strip_prefix(&account_path).or_else(|| path.strip_prefix("/v1/")).ok_or((404, 20404))
    }

    async fn create_message(&self, form: &[u8]) -> Result<(u16, Value), RestError> {
        let fault = self.lock_state().faults.pop_front();
        match fault {
            Some(SendFault::Reject { status, code }) => return Err((status, code)),
            Some(SendFault::Hang) => return std::future::pending().await,
            Some(SendFault::LoseResponse) | None => {}
        }
        let new_message = self.parse_new_message(form)?;
        let latency = self.lock_state().latency;
        self.clock.sleep(latency).await;
        let message = self.store_message(new_message);
        match fault {
            Some(SendFault::LoseResponse) => std::future::pending().await,
            Some(SendFault::Reject { .. } | SendFault::Hang) | None => Ok((201, self.message_json(&message))),
        }
    }

    fn parse_new_message(&self, form: &[u8]) -> Result<NewFakeMessage, RestError> {
        let fields: Vec<(String, String)> = form_urlencoded::parse(form).into_owned().collect();
        let values = |name: &'static str| {
            let nonempty = fields.iter().filter(move |(field, value)| field == name && !value.is_empty());
            nonempty.map(|(_, value)| value.clone())
        };
        let field = |name| values(name).next();
        let to = Address::new(field("To").ok_or((400, 21604))?);
        let our_number = &self.account.number;
        let from = match (field("From"), field("MessagingServiceSid")) {
            (Some(from), _) => Address::new(from),
            (None, Some(_)) => our_number.clone(),
            (None, None) => return Err((400, 21603)),
        };
        let body = field("Body").unwrap_or_default();
        let media: Vec<String> = values("MediaUrl").collect();
        let callback = field("StatusCallback");
        let is_url = |url: &String| url.parse::<Uri>().is_ok_and(|url| url.host().is_some());
        if from.phone() != our_number.phone() {
            Err((400, 21606))
        } else if to.phone().is_err() || to.phone() == our_number.phone() {
            Err((400, 21211))
        } else if body.is_empty() && media.is_empty() {
            Err((400, 21619))
        } else if body.encode_utf16().count() > MAX_BODY_UNITS {
            Err((400, 21617))
        } else if let (Some(error), false) = (self.lock_state().media_rejection, media.is_empty()) {
            Err(error)
        } else if media.len() > MAX_MEDIA {
            Err((400, 21623))
        } else if !callback.iter().all(is_url) {
            Err((400, 21609))
        } else if self.lock_state().is_opted_out(&to) {
            Err((400, 21610))
        } else {
            Ok(NewFakeMessage { to, from, body, media, callback })
        }
    }

    fn store_message(&self, new_message: NewFakeMessage) -> FakeMessage {
        let NewFakeMessage { to, from, body, media, callback } = new_message;
        let at = self.clock.now();
        let mut state = self.lock_state();
        let sid = state.generate_sid(if media.is_empty() { "SM" } else { "MM" });
        let sent = SentMessage { sid, to, from, body, media, callback, accepted_at: at };
        let message = FakeMessage {
            sid: sent.sid.clone(),
            from: sent.from.clone(),
            to: sent.to.clone(),
            body: sent.body.clone(),
            at,
            listed_at: at,
            direction: MessageDirection::Outbound { sent: sent.clone(), delivery: FakeDelivery::Queued },
        };
        state.messages.add(message.clone());
        // Sending fails if there is no subscriber.
        let _ = self.accepted.send(sent);
        message
    }

    fn fetch_message(&self, path: &str) -> Result<(u16, Value), RestError> {
        let sid = path.strip_prefix("Messages/").and_then(|path| path.strip_suffix(".json"));
        let (state, now) = (self.lock_state(), self.clock.now());
        if state.fails_reads {
            return Err((503, 20500));
        }
        let found = sid.and_then(|sid| state.messages.find(sid)).filter(|message| message.listed_at <= now);
        found.map(|message| (200, self.message_json(message))).ok_or((404, 20404))
    }

    /// Returns one page of messages, newest first, filtered by address and by day in UTC.
    fn list_messages(&self, uri: &Uri) -> Result<(u16, Value), RestError> {
        let query = uri.query().unwrap_or_default();
        let query: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let field = |name| query.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str());
        let page_size = field("PageSize").and_then(|size| size.parse().ok()).unwrap_or(DEFAULT_PAGE_SIZE);
        if page_size > MAX_PAGE_SIZE || page_size == 0 {
            return Err((400, 20007));
        }
        let page: usize = field("Page").and_then(|page| page.parse().ok()).unwrap_or_default();
        let now = self.clock.now();
        let state = self.lock_state();
        if state.fails_reads {
            return Err((503, 20500));
        }
        let mut matching: Vec<&FakeMessage> = state
            .messages
            .iter()
            .rev()
            // A message with a future time was stored before the clock was set back.
            .filter(|message| message.listed_at <= now || message.at > now)
            .filter(|message| query.iter().all(|filter| passes_filter(message, filter)))
            .collect();
        // Newest first. Messages with the same time are already in reverse order of arrival.
        matching.sort_by_key(|message| std::cmp::Reverse(message.at));
        let token = field("PageToken").and_then(|token| token.strip_prefix("PA"));
        let start = token
            .and_then(|last| matching.iter().position(|message| message.sid == last))
            .map_or(0, |last| last + 1);
        let page_messages = &matching[start..matching.len().min(start + page_size)];
        let has_more = state.has_endless_list || start + page_messages.len() < matching.len();
        let next = page_messages.last().filter(|_| has_more).map(|last| {
            let filters = query.iter().filter(|(name, _)| name != "Page" && name != "PageToken");
            let query = form_urlencoded::Serializer::new(String::new())
                .extend_pairs(filters)
                .append_pair("Page", &(page + 1).to_string())
                .append_pair("PageToken", &format!("PA{}", last.sid))
                .finish();
            format!("{}?{query}", uri.path())
        });
        let messages: Vec<Value> = page_messages.iter().map(|message| self.message_json(message)).collect();
        let list = json!({
            "messages": messages,
            "page": page,
            "page_size": page_size,
            "start": page * page_size,
            "end": (page * page_size + page_messages.len()).saturating_sub(1),
            "uri": uri.path_and_query().map(http::uri::PathAndQuery::as_str),
            "next_page_uri": next,
        });
        Ok((200, list))
    }

    fn message_json(&self, message: &FakeMessage) -> Value {
        let account_sid = &self.account.account_sid;
        let (direction, status, error_code, num_media) = match &message.direction {
            MessageDirection::Inbound { media } => ("inbound", "received", None, *media),
            MessageDirection::Outbound { sent, delivery } => {
                ("outbound-api", delivery.name(), delivery.error_code(), sent.media.len())
            }
        };
        let date = format_date(message.at);
        let date_sent = if status == "queued" { None } else { date.clone() };
        let path = format!("/2010-04-01/Accounts/{account_sid}/Messages/{}", message.sid);
        json!({
            "account_sid": account_sid,
            "api_version": "2010-04-01",
            "body": message.body,
            "date_created": date,
            "date_sent": date_sent,
            "date_updated": date,
            "direction": direction,
            "error_code": error_code,
            "error_message": null,
            "from": message.from.as_str(),
            "messaging_service_sid": null,
            "num_media": num_media.to_string(),
            "num_segments": SegmentCount::from_text(&message.body).count.to_string(),
            "price": null,
            "price_unit": "USD",
            "sid": message.sid,
            "status": status,
            "subresource_uris": { "media": format!("{path}/Media.json") },
            "to": message.to.as_str(),
            "uri": format!("{path}.json"),
        })
    }
}

/// Valid request to create a message.
struct NewFakeMessage {
    to: Address,
    from: Address,
    body: String,
    media: Vec<String>,
    callback: Option<String>,
}

fn passes_filter(message: &FakeMessage, (filter, value): &(String, String)) -> bool {
    let sent_on = message.at.to_zoned(TimeZone::UTC).date().to_string();
    let day = value.get(..sent_on.len()).unwrap_or(value);
    match filter.as_str() {
        "To" => message.to.as_str() == value,
        "From" => message.from.as_str() == value,
        "DateSent" => sent_on == day,
        "DateSent>" => sent_on.as_str() >= day,
        "DateSent<" => sent_on.as_str() <= day,
        _ => true,
    }
}

/// Formats a time as RFC 2822; `None` for years before 0, which RFC 2822 cannot express.
fn format_date(at: Timestamp) -> Option<String> {
    rfc2822::to_string(&at.to_zoned(TimeZone::UTC)).ok()
}

fn json_response(status: u16, json: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(json.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
