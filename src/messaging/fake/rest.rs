//! REST interface of the simulated carrier: creating messages, one message, the list.

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

use super::carrier::{FakeDelivery, FakeMessage, FakeTwilio, MessageDirection, SendFault, SentText};
use crate::conversation::transcript::Address;
use crate::http::InProcess;
use crate::messaging::error_codes::look_up;
use crate::messaging::segments::SegmentCount;

const MAX_BODY_UNITS: usize = 1600;
const MAX_MEDIA: usize = 10;
const DEFAULT_PAGE: usize = 50;
const MAX_PAGE: usize = 1000;

/// HTTP status and Twilio's error code.
type RestRefusal = (u16, u32);

impl FakeTwilio {
    /// Returns the peer for a client that needs no socket.
    pub fn in_process(&self) -> InProcess {
        let carrier = self.clone();
        Arc::new(move |request| {
            let carrier = carrier.clone();
            async move { carrier.respond_to(&request).await }.boxed()
        })
    }

    /// Returns the same peer for use behind a socket.
    pub fn router(&self) -> Router {
        let carrier = self.clone();
        Router::new().fallback(move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| async move {
            let mut request = Request::new(body);
            (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
            carrier.respond_to(&request).await.map(axum::body::Body::from)
        })
    }

    async fn respond_to(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let answer = match self.resource_path(request) {
            Err(refusal) => Err(refusal),
            Ok("Messages.json") if request.method() == Method::POST => {
                self.create_message(request.body()).await
            }
            Ok("Messages.json") if request.method() == Method::GET => self.list_messages(request.uri()),
            Ok(path) if let Some(below) = path.strip_prefix("IncomingPhoneNumbers") => {
                self.number_resource(below, request)
            }
            Ok(path) if let Some(sid) = path.strip_prefix("Services/") => {
                Ok(self.service_resource(sid, request))
            }
            Ok(path) if request.method() == Method::GET => self.fetch_message(path),
            Ok(_) => Err((405, 20004)),
        };
        match answer {
            Ok((status, resource)) => json_response(status, &resource),
            Err((status, code)) => {
                let message = look_up(code).map_or("", |known| known.meaning);
                let more_info = format!("https://www.twilio.com/docs/errors/{code}");
                let refusal =
                    json!({ "code": code, "message": message, "more_info": more_info, "status": status });
                json_response(status, &refusal)
            }
        }
    }

    /// Returns the path after the account, for a request with the account's credentials.
    fn resource_path<'a>(&self, request: &'a Request<Bytes>) -> Result<&'a str, RestRefusal> {
        let account = &self.account;
        let (sid, token) = (&account.account_sid, account.auth_token.expose_secret());
        let expected = format!("Basic {}", STANDARD.encode(format!("{sid}:{token}")));
        if request.headers().get(AUTHORIZATION).is_none_or(|given| given.as_bytes() != expected.as_bytes()) {
            return Err((401, 20003));
        }
        let below = format!("/2010-04-01/Accounts/{sid}/");
        let path = request.uri().path();
        // Messaging services belong to a separate API.
        path.strip_prefix(&below).or_else(|| path.strip_prefix("/v1/")).ok_or((404, 20404))
    }

    async fn create_message(&self, form: &[u8]) -> Result<(u16, Value), RestRefusal> {
        let fault = self.lock_state().faults.pop_front();
        match fault {
            Some(SendFault::Refuse { status, code }) => return Err((status, code)),
            Some(SendFault::Hang) => return std::future::pending().await,
            Some(SendFault::LoseAnswer) | None => {}
        }
        let order = self.parse_order(form)?;
        let latency = self.lock_state().latency;
        self.clock.sleep(latency).await;
        let message = self.accept_order(order);
        match fault {
            Some(SendFault::LoseAnswer) => std::future::pending().await,
            Some(SendFault::Refuse { .. } | SendFault::Hang) | None => Ok((201, self.message_json(&message))),
        }
    }

    fn parse_order(&self, form: &[u8]) -> Result<MessageOrder, RestRefusal> {
        let fields: Vec<(String, String)> = form_urlencoded::parse(form).into_owned().collect();
        let all = |name: &'static str| {
            let named = fields.iter().filter(move |(field, value)| field == name && !value.is_empty());
            named.map(|(_, value)| value.clone())
        };
        let field = |name| all(name).next();
        let to = Address::new(field("To").ok_or((400, 21604))?);
        let our_number = &self.account.number;
        let from = match (field("From"), field("MessagingServiceSid")) {
            (Some(from), _) => Address::new(from),
            (None, Some(_)) => our_number.clone(),
            (None, None) => return Err((400, 21603)),
        };
        let body = field("Body").unwrap_or_default();
        let media: Vec<String> = all("MediaUrl").collect();
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
        } else if let (Some(refusal), false) = (self.lock_state().no_pictures, media.is_empty()) {
            Err(refusal)
        } else if media.len() > MAX_MEDIA {
            Err((400, 21623))
        } else if !callback.iter().all(is_url) {
            Err((400, 21609))
        } else if self.lock_state().is_opted_out(&to) {
            Err((400, 21610))
        } else {
            Ok(MessageOrder { to, from, body, media, callback })
        }
    }

    fn accept_order(&self, order: MessageOrder) -> FakeMessage {
        let MessageOrder { to, from, body, media, callback } = order;
        let at = self.clock.now();
        let mut state = self.lock_state();
        let sid = state.mint_sid(if media.is_empty() { "SM" } else { "MM" });
        let text = SentText { sid, to, from, body, media, callback, accepted_at: at };
        let message = FakeMessage {
            sid: text.sid.clone(),
            from: text.from.clone(),
            to: text.to.clone(),
            body: text.body.clone(),
            at,
            listed_at: at,
            direction: MessageDirection::Outbound { text: text.clone(), delivery: FakeDelivery::Queued },
        };
        state.messages.push(message.clone());
        // There may be no subscriber.
        let _ = self.accepted.send(text);
        message
    }

    fn fetch_message(&self, path: &str) -> Result<(u16, Value), RestRefusal> {
        let sid = path.strip_prefix("Messages/").and_then(|path| path.strip_suffix(".json"));
        let (state, now) = (self.lock_state(), self.clock.now());
        if state.reads_refused {
            return Err((503, 20500));
        }
        let is_shown = |message: &&FakeMessage| message.listed_at <= now;
        let found = state.messages.iter().filter(is_shown).find(|message| Some(message.sid.as_str()) == sid);
        found.map(|message| (200, self.message_json(message))).ok_or((404, 20404))
    }

    /// Lists messages newest first, filtered by address and by whole days in UTC, one page per response.
    fn list_messages(&self, uri: &Uri) -> Result<(u16, Value), RestRefusal> {
        let query = uri.query().unwrap_or_default();
        let query: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let field = |name| query.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str());
        let page_size = field("PageSize").and_then(|size| size.parse().ok()).unwrap_or(DEFAULT_PAGE);
        if page_size > MAX_PAGE || page_size == 0 {
            return Err((400, 20007));
        }
        let page: usize = field("Page").and_then(|page| page.parse().ok()).unwrap_or_default();
        let now = self.clock.now();
        let state = self.lock_state();
        if state.reads_refused {
            return Err((503, 20500));
        }
        let mut matching: Vec<&FakeMessage> = state
            .messages
            .iter()
            .rev()
            // A message with a time after now is older than a change that set the clock back.
            .filter(|message| message.listed_at <= now || message.at > now)
            .filter(|message| query.iter().all(|filter| passes_filter(message, filter)))
            .collect();
        // The order is newest first; of the same moment, the last one to arrive.
        matching.sort_by_key(|message| std::cmp::Reverse(message.at));
        let token = field("PageToken").and_then(|token| token.strip_prefix("PA"));
        let start = token
            .and_then(|last| matching.iter().position(|message| message.sid == last))
            .map_or(0, |last| last + 1);
        let shown = &matching[start..matching.len().min(start + page_size)];
        let goes_on = state.endless || start + shown.len() < matching.len();
        let next = shown.last().filter(|_| goes_on).map(|last| {
            let filters = query.iter().filter(|(name, _)| name != "Page" && name != "PageToken");
            let query = form_urlencoded::Serializer::new(String::new())
                .extend_pairs(filters)
                .append_pair("Page", &(page + 1).to_string())
                .append_pair("PageToken", &format!("PA{}", last.sid))
                .finish();
            format!("{}?{query}", uri.path())
        });
        let messages: Vec<Value> = shown.iter().map(|message| self.message_json(message)).collect();
        let list = json!({
            "messages": messages,
            "page": page,
            "page_size": page_size,
            "start": page * page_size,
            "end": (page * page_size + shown.len()).saturating_sub(1),
            "uri": uri.path_and_query().map(http::uri::PathAndQuery::as_str),
            "next_page_uri": next,
        });
        Ok((200, list))
    }

    fn message_json(&self, message: &FakeMessage) -> Value {
        let account_sid = &self.account.account_sid;
        let (direction, status, error_code, num_media) = match &message.direction {
            MessageDirection::Inbound { media } => ("inbound", "received", None, *media),
            MessageDirection::Outbound { text, delivery } => {
                ("outbound-api", delivery.name(), delivery.error_code(), text.media.len())
            }
        };
        let date = parse_date(message.at);
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

/// Request for a message that may be created.
struct MessageOrder {
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

/// Formats a date; none for years before 0, which RFC 2822 cannot express.
fn parse_date(at: Timestamp) -> Option<String> {
    rfc2822::to_string(&at.to_zoned(TimeZone::UTC)).ok()
}

fn json_response(status: u16, json: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(json.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
