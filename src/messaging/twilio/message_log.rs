//! Twilio's message list: the only record of messages whose response was lost, and of messages that users sent while we
//! were offline.

use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Request, Response, StatusCode};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::client::Twilio;
use super::webhook::is_sid;
use crate::conversation::channel_list;
use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::routing::inbound_message::{MessageMedia, MessageSource, ReceivedMessage};
use crate::conversation::routing::verification::{FieldAuthority, MessageFields};
use crate::conversation::transcript::{Address, PhoneNumber};
use crate::messaging::{CarrierReceipt, LookupError, OutboundMessage};
use crate::telemetry;

const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of pages that are read, so that an endless list does not block us.
const MAX_PAGES: usize = 20;
const PAGE_SIZE: &str = "100";
/// Prefix of every message from a trial account.
const TRIAL_PREFIX: &str = "Sent from your Twilio trial account - ";
/// Maximum difference between Twilio's clock and ours.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(60);

/// Entry of the list. Any field may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LogEntry {
    sid: String,
    direction: String,
    status: String,
    from: Option<String>,
    to: Option<String>,
    body: Option<String>,
    num_media: Option<String>,
    date_created: Option<String>,
    uri: Option<String>,
    error_code: Option<u32>,
    #[serde(skip)]
    created_at: Option<Timestamp>,
}

impl LogEntry {
    fn parse_date_created(&self) -> Option<Timestamp> {
        DateTimeParser::new().parse_timestamp(self.date_created.as_deref()?).ok()
    }
}

#[derive(Debug, Deserialize)]
struct LogPage {
    messages: Vec<LogEntry>,
    #[serde(default)]
    next_page_uri: Option<String>,
}

/// Listed delivery status of an outbound message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedDelivery {
    /// `None` for an unknown status.
    pub status: Option<DeliveryStatus>,
    pub error_code: Option<u32>,
    pub at: Option<Timestamp>,
}

impl Twilio {
    /// Fetches the delivery statuses of the newest page of messages from `number`, newest first.
    pub async fn fetch_recent_deliveries(
        &self,
        number: &PhoneNumber,
    ) -> Result<Vec<ListedDelivery>, LookupError> {
        let query = [("From", number.as_str()), ("PageSize", PAGE_SIZE)];
        let query = serde_urlencoded::to_string(query).map_err(|error| LookupError(error.to_string()))?;
        let page = self.read_page(&format!("{}?{query}", self.messages_url())).await?;
        let outbound = page.messages.into_iter().filter(|entry| entry.direction.starts_with("outbound"));
        let into_delivery = |entry: LogEntry| ListedDelivery {
            status: DeliveryStatus::from_carrier_status(&entry.status),
            error_code: entry.error_code,
            at: entry.parse_date_created(),
        };
        Ok(outbound.map(into_delivery).collect())
    }

    /// Returns the listed messages that may be `message`: outbound, to the same recipient, with the same body, and not
    /// older than `since`, apart from the clock skew. An entry without a valid date is included.
    pub(super) async fn find_candidates(
        &self,
        message: &OutboundMessage,
        since: Timestamp,
    ) -> Result<Vec<CarrierReceipt>, LookupError> {
        let mut filter = vec![("To", message.to.as_str())];
        if let Some(from) = self.sender_address(message) {
            filter.push(("From", from));
        }
        // The query has no date filter, which would exclude messages that Twilio has not sent yet.
        let oldest = since - MAX_CLOCK_SKEW;
        let entries = self.read_list(&filter, |entry| entry.created_at.is_some_and(|at| at < oldest)).await?;
        let body = message.body.trim();
        Ok(entries
            .into_iter()
            .filter(|entry| entry.direction.starts_with("outbound"))
            .filter(|entry| entry.created_at.is_none_or(|at| at >= oldest))
            .filter(|entry| sent_body(entry) == body)
            .map(|entry| CarrierReceipt { sid: entry.sid, created_at: entry.created_at, poll: None })
            .collect())
    }

    /// Fetches the messages that users sent to `number` at or after `since`, oldest first.
    pub async fn fetch_received_since(
        &self,
        number: &Address,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<ReceivedMessage>, LookupError> {
        let day = since.to_zoned(TimeZone::UTC).date().to_string();
        let filter = [("To", number.as_str()), ("DateSent>", &day)];
        let entries = self.read_list(&filter, |entry| entry.created_at.is_some_and(|at| at < since)).await?;
        let mut messages: Vec<ReceivedMessage> = entries
            .into_iter()
            .filter(|entry| entry.direction == "inbound" && entry.status == "received")
            .filter(|entry| entry.created_at.is_some_and(|at| at >= since))
            .filter_map(|entry| into_received(entry, now))
            .collect();
        messages.sort_by(|a, b| (a.provider_at, &a.external_id).cmp(&(b.provider_at, &b.external_id)));
        Ok(messages)
    }

    /// Fetches Twilio's record of one inbound message; `None` if there is none with this id.
    pub(super) async fn fetch_inbound_record(&self, sid: &str) -> Result<Option<MessageFields>, LookupError> {
        if !is_sid(sid) {
            return Err(LookupError("the message id is malformed".to_owned()));
        }
        let response = self.send_get(&self.account_url(&format!("Messages/{sid}.json"))).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let entry: LogEntry = read_json(&response)?;
        if entry.sid != sid || entry.direction != "inbound" {
            return Ok(None);
        }
        let field = |value: Option<String>, name| {
            value.ok_or_else(|| LookupError(format!("the record of a message has no {name}")))
        };
        let count = field(entry.num_media, "num_media")?.parse();
        Ok(Some(MessageFields {
            from: Address::new(field(entry.from, "from")?),
            to: Address::new(field(entry.to, "to")?),
            body: replace_nul(entry.body),
            media_count: count
                .map_err(|_| LookupError("the record of a message has a malformed media count".to_owned()))?,
        }))
    }

    /// Reads the list, newest first, up to the first entry for which `is_past_end` returns true.
    async fn read_list(
        &self,
        filter: &[(&str, &str)],
        is_past_end: impl Fn(&LogEntry) -> bool,
    ) -> Result<Vec<LogEntry>, LookupError> {
        let filter: Vec<(&str, &str)> = filter.iter().copied().chain([("PageSize", PAGE_SIZE)]).collect();
        let query = serde_urlencoded::to_string(filter).map_err(|error| LookupError(error.to_string()))?;
        let mut url = format!("{}?{query}", self.messages_url());
        let mut entries = Vec::new();
        for _ in 0..MAX_PAGES {
            let LogPage { messages, next_page_uri } = self.read_page(&url).await?;
            let is_empty_page = messages.is_empty();
            for mut entry in messages {
                // An entry without a valid time is included, because it may be the searched message.
                entry.created_at = entry.parse_date_created();
                if is_past_end(&entry) {
                    return Ok(entries);
                }
                entries.push(entry);
            }
            match next_page_uri {
                Some(next) if !is_empty_page => url = self.absolute_url(&next)?,
                _ => return Ok(entries),
            }
        }
        tracing::warn!(pages = MAX_PAGES, "stopped reading the carrier's message list before its end");
        Ok(entries)
    }

    async fn read_page(&self, url: &str) -> Result<LogPage, LookupError> {
        read_json(&self.send_get(url).await?)
    }

    async fn send_get(&self, url: &str) -> Result<Response<Bytes>, LookupError> {
        let request = Request::get(url)
            .header(AUTHORIZATION, self.authorization_header())
            .body(Bytes::new())
            .map_err(|error| LookupError(error.to_string()))?;
        let response = self.exchange(request, LIST_TIMEOUT).await;
        response.map_err(|error| LookupError(telemetry::error_chain(&error)))
    }
}

fn read_json<T: DeserializeOwned>(response: &Response<Bytes>) -> Result<T, LookupError> {
    if !response.status().is_success() {
        return Err(LookupError(format!("status {}", response.status())));
    }
    serde_json::from_slice(response.body()).map_err(|error| LookupError(error.to_string()))
}

/// Replaces NUL characters, which end a string in SQLite's C interface.
fn replace_nul(body: Option<String>) -> String {
    body.unwrap_or_default().replace('\0', "\u{fffd}")
}

/// Returns the body of an entry as we sent it, without the prefix of trial accounts.
fn sent_body(entry: &LogEntry) -> &str {
    let body = entry.body.as_deref().unwrap_or_default().trim();
    body.strip_prefix(TRIAL_PREFIX.trim_end()).map_or(body, str::trim)
}

/// Converts an entry into an inbound message; `None` if its sender is not a phone number, so that no reply is possible,
/// or if its recipient or date is missing.
fn into_received(entry: LogEntry, now: Timestamp) -> Option<ReceivedMessage> {
    let from = Address::new(entry.from?).phone().ok()?;
    let count: usize = entry.num_media.as_deref().and_then(|count| count.parse().ok()).unwrap_or(0);
    // The list has no media URLs. Media are never fetched, so only their count matters.
    let url = entry.uri.unwrap_or_default();
    let media = (0..count.min(10)).map(|_| MessageMedia { url: url.clone(), content_type: String::new() });
    Some(ReceivedMessage {
        channel: channel_list::TWILIO,
        external_id: entry.sid,
        from: from.into(),
        to: Address::new(entry.to?),
        body: replace_nul(entry.body),
        media: media.collect(),
        via: MessageSource::Recovery,
        authority: FieldAuthority::Certain,
        carrier_word: None,
        pressed: None,
        room: None,
        provider_at: entry.created_at?,
        received_at: now,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use futures_util::FutureExt;
    use http::uri::Authority;
    use http::{Response, Uri};
    use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
    use serde_json::{Value, json};

    use super::*;
    use crate::http::HttpClient;
    use crate::messaging::twilio::{TwilioAccount, TwilioCredentials, TwilioSender};

    const SINCE: i64 = 1_700_000_000;
    const NOW: i64 = 1_800_000_000;

    fn time_at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Reads a list of these pages, the last of which repeats. Returns the received messages and the requested URLs.
    fn read_pages(pages: Vec<String>) -> (Result<Vec<ReceivedMessage>, String>, Vec<Uri>) {
        let requested = Arc::new(Mutex::new(Vec::new()));
        let requested_urls = requested.clone();
        let peer = move |request: Request<Bytes>| {
            let mut requested = requested_urls.lock().unwrap();
            let page = pages[requested.len().min(pages.len() - 1)].clone();
            requested.push(request.uri().clone());
            async move { Response::new(Bytes::from(page)) }.boxed()
        };
        let account = TwilioAccount {
            api_url: "https://api.twilio.invalid".to_owned(),
            account_sid: "AC0".to_owned(),
            credentials: TwilioCredentials::AuthToken("token".into()),
            sender: TwilioSender::Number,
            public_url: "https://sms.example.org".to_owned(),
        };
        let twilio = Twilio::new(account, HttpClient::in_process(Arc::new(peer)));
        let number = Address::new("+15550100000");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let received = runtime.block_on(twilio.fetch_received_since(&number, time_at(SINCE), time_at(NOW)));
        let requested = requested.lock().unwrap().clone();
        (received.map_err(|error| error.to_string()), requested)
    }

    #[test]
    fn next_page_link_to_another_host_is_not_followed() {
        for next in ["@other.invalid/", ".other.invalid/", ":1@other.invalid/", "https://other.invalid/"] {
            let entry = json!({ "direction": "inbound" });
            let page = json!({ "messages": [entry], "next_page_uri": next }).to_string();
            let (received, requested) = read_pages(vec![page]);
            let hosts: Vec<_> = requested.iter().filter_map(Uri::host).collect();
            assert_eq!(hosts, ["api.twilio.invalid"], "{next}");
            assert_eq!(
                received.unwrap_err(),
                "read the carrier's list of messages: the link to the next page is not a path"
            );
        }
    }

    fn inbound_entry() -> impl Strategy<Value = Value> {
        let body = prop_oneof![Just(Value::Null), any::<String>().prop_map(Value::from)];
        let date = prop_oneof![
            Just(json!("not a date")),
            // The times range from years before the request to the last year with four digits.
            (0..253_402_300_799_i64).prop_map(|at| {
                json!(time_at(at).to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S +0000").to_string())
            }),
        ];
        let from = prop_oneof![Just("+15550100101"), Just("whatsapp:+15550100102"), Just("NETFLIX")];
        (body, date, from, "[0-9]{0,3}").prop_map(|(body, date, from, media)| {
            json!({ "sid": "SM1", "direction": "inbound", "status": "received", "from": from,
                    "to": "+15550100000", "body": body, "num_media": media, "date_created": date })
        })
    }

    proptest! {
        #[test]
        fn received_messages_are_sorted_and_not_older_than_requested(
            pages in proptest::collection::vec(proptest::collection::vec(inbound_entry(), 0..4), 1..4),
            has_next_page in any::<bool>(),
        ) {
            let next = if has_next_page { json!("/2010-04-01/next") } else { Value::Null };
            let page = |messages| json!({ "messages": messages, "next_page_uri": next }).to_string();
            let (received, requested) = read_pages(pages.into_iter().map(page).collect());
            assert!((1..=MAX_PAGES).contains(&requested.len()));
            let received = received.unwrap();
            assert!(received.is_sorted_by_key(|message| message.provider_at));
            for message in received {
                assert!(message.provider_at >= time_at(SINCE) && message.received_at == time_at(NOW));
                assert!(!message.body.contains('\0') && message.media.len() <= 10);
                assert_eq!(PhoneNumber::parse(message.from.name()).map(Into::into), Ok(message.from));
            }
        }

        #[test]
        fn malformed_page_causes_no_request_to_another_host(
            next in prop_oneof!["[@.:/\\\\?#a-z0-9 ]{0,30}", "/[@.:/\\\\?#%a-z0-9]{0,30}", any::<String>()],
            messages in proptest::collection::vec(prop_oneof![4 => inbound_entry(), 1 => Just(json!([7, null]))], 1..4),
            length in prop_oneof![3 => Just(usize::MAX), 1 => 0..400_usize],
        ) {
            let page = json!({ "messages": messages, "next_page_uri": next }).to_string();
            let (_, requested) = read_pages(vec![page.chars().take(length).collect()]);
            assert!((1..=MAX_PAGES).contains(&requested.len()));
            let expected = Some("api.twilio.invalid");
            let other = requested.iter().find(|uri| uri.authority().map(Authority::as_str) != expected);
            assert_eq!(other, None);
        }
    }
}
