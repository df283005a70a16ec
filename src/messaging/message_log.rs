//! Twilio's list of messages: the only record of the messages that it accepted from us and of those that users sent
//! during an outage of ours.

use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Request, Response, StatusCode};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::twilio::Twilio;
use super::webhook::is_sid;
use super::{CarrierReceipt, LookError, OutboundMessage};
use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::routing::inbound_message::{MessageMedia, MessageSource, ReceivedMessage};
use crate::conversation::routing::verification::{FieldAuthority, MessageFields};
use crate::conversation::transcript::{Address, ChannelKind, PhoneNumber};
use crate::telemetry;

const TIMEOUT: Duration = Duration::from_secs(10);
/// Most pages that are read of one list; a list whose next page never ends must not block us.
const MAX_PAGES: usize = 20;
const PAGE_SIZE: &str = "100";
/// Prefix of every message from a trial account.
const TRIAL_PREFIX: &str = "Sent from your Twilio trial account - ";
/// Largest difference between the clocks of Twilio and of this machine.
const CLOCK_SKEW: Duration = Duration::from_secs(60);

/// One entry of the list. Any field may be missing.
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
    fn created_at(&self) -> Option<Timestamp> {
        DateTimeParser::new().parse_timestamp(self.date_created.as_deref()?).ok()
    }
}

#[derive(Debug, Deserialize)]
struct LogPage {
    messages: Vec<LogEntry>,
    #[serde(default)]
    next_page_uri: Option<String>,
}

/// Delivery of an outbound message, as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedDelivery {
    /// `None` for a status that is not known here.
    pub status: Option<DeliveryStatus>,
    pub error_code: Option<u32>,
    pub at: Option<Timestamp>,
}

impl Twilio {
    /// Fetches the deliveries of the last messages from `number`, one page, newest first.
    pub async fn fetch_recent_deliveries(
        &self,
        number: &PhoneNumber,
    ) -> Result<Vec<ListedDelivery>, LookError> {
        let query = [("From", number.as_str()), ("PageSize", PAGE_SIZE)];
        let query = serde_urlencoded::to_string(query).map_err(|error| LookError(error.to_string()))?;
        let page = self.read_page(&format!("{}?{query}", self.messages_url())).await?;
        let ours = page.messages.into_iter().filter(|entry| entry.direction.starts_with("outbound"));
        let delivery = |entry: LogEntry| ListedDelivery {
            status: DeliveryStatus::from_carrier_status(&entry.status),
            error_code: entry.error_code,
            at: entry.created_at(),
        };
        Ok(ours.map(delivery).collect())
    }

    /// Returns messages to the recipient of `text` that could be the same message: outbound, with its body, no older
    /// than its first attempt.
    pub(super) async fn find_candidates(
        &self,
        text: &OutboundMessage,
        since: Timestamp,
    ) -> Result<Vec<CarrierReceipt>, LookError> {
        let mut filter = vec![("To", text.to.as_str())];
        if let Some(from) = self.sends_from(text) {
            filter.push(("From", from));
        }
        // The query has no date: a message still in Twilio's queue has no date yet and would be filtered out.
        let oldest = since - CLOCK_SKEW;
        let entries = self.read_list(&filter, |entry| entry.created_at.is_some_and(|at| at < oldest)).await?;
        let wanted = text.body.trim();
        Ok(entries
            .into_iter()
            .filter(|entry| entry.direction.starts_with("outbound"))
            .filter(|entry| entry.created_at.is_none_or(|at| at >= oldest))
            .filter(|entry| entry_text(entry) == wanted)
            .map(|entry| CarrierReceipt { sid: entry.sid, created_at: entry.created_at })
            .collect())
    }

    /// Returns messages that users sent to `number` at or after `since`, oldest first.
    pub async fn received_since(
        &self,
        number: &Address,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<ReceivedMessage>, LookError> {
        let day = since.to_zoned(TimeZone::UTC).date().to_string();
        let filter = [("To", number.as_str()), ("DateSent>", &day)];
        let entries = self.read_list(&filter, |entry| entry.created_at.is_some_and(|at| at < since)).await?;
        let mut texts: Vec<ReceivedMessage> = entries
            .into_iter()
            .filter(|entry| entry.direction == "inbound" && entry.status == "received")
            .filter(|entry| entry.created_at.is_some_and(|at| at >= since))
            .filter_map(|entry| into_received(entry, now))
            .collect();
        texts.sort_by(|a, b| (a.provider_at, &a.external_id).cmp(&(b.provider_at, &b.external_id)));
        Ok(texts)
    }

    /// Fetches Twilio's record of one inbound message; `None` if there is none with this id.
    pub(super) async fn received_record(&self, sid: &str) -> Result<Option<MessageFields>, LookError> {
        if !is_sid(sid) {
            return Err(LookError("no message has such an id".to_owned()));
        }
        let response = self.get_log(&self.account_url(&format!("Messages/{sid}.json"))).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let entry: LogEntry = read_json(&response)?;
        if entry.sid != sid || entry.direction != "inbound" {
            return Ok(None);
        }
        let field = |value: Option<String>, name| {
            value.ok_or_else(|| LookError(format!("the record of a text has no {name}")))
        };
        let count = field(entry.num_media, "num_media")?.parse();
        Ok(Some(MessageFields {
            from: Address::new(field(entry.from, "from")?),
            to: Address::new(field(entry.to, "to")?),
            body: without_nul(entry.body),
            media_count: count.map_err(|_| LookError("the record of a text counts no media".to_owned()))?,
        }))
    }

    /// Reads the list, newest first, up to the first entry that is `far_enough`.
    async fn read_list(
        &self,
        filter: &[(&str, &str)],
        far_enough: impl Fn(&LogEntry) -> bool,
    ) -> Result<Vec<LogEntry>, LookError> {
        let filter: Vec<(&str, &str)> = filter.iter().copied().chain([("PageSize", PAGE_SIZE)]).collect();
        let query = serde_urlencoded::to_string(filter).map_err(|error| LookError(error.to_string()))?;
        let mut url = format!("{}?{query}", self.messages_url());
        let mut entries = Vec::new();
        for _ in 0..MAX_PAGES {
            let LogPage { messages, next_page_uri } = self.read_page(&url).await?;
            let over = messages.is_empty();
            for mut entry in messages {
                // An entry without a readable time is included: it may be the message that is searched for.
                entry.created_at = entry.created_at();
                if far_enough(&entry) {
                    return Ok(entries);
                }
                entries.push(entry);
            }
            match next_page_uri {
                Some(next) if !over => url = self.absolute_url(&next)?,
                _ => return Ok(entries),
            }
        }
        tracing::warn!(pages = MAX_PAGES, "stopped reading the carrier's message list before its end");
        Ok(entries)
    }

    async fn read_page(&self, url: &str) -> Result<LogPage, LookError> {
        read_json(&self.get_log(url).await?)
    }

    async fn get_log(&self, url: &str) -> Result<Response<Bytes>, LookError> {
        let request = Request::get(url)
            .header(AUTHORIZATION, self.authorization_header())
            .body(Bytes::new())
            .map_err(|error| LookError(error.to_string()))?;
        let response = self.http().send(request, TIMEOUT).await;
        response.map_err(|error| LookError(telemetry::error_chain(&error)))
    }
}

fn read_json<T: DeserializeOwned>(response: &Response<Bytes>) -> Result<T, LookError> {
    if !response.status().is_success() {
        return Err(LookError(format!("status {}", response.status())));
    }
    serde_json::from_slice(response.body()).map_err(|error| LookError(error.to_string()))
}

/// Replaces NUL characters: SQLite and the C libraries around it end a string at a NUL.
fn without_nul(body: Option<String>) -> String {
    body.unwrap_or_default().replace('\0', "\u{fffd}")
}

/// Returns the body of an entry as we sent it.
fn entry_text(entry: &LogEntry) -> &str {
    let body = entry.body.as_deref().unwrap_or_default().trim();
    body.strip_prefix(TRIAL_PREFIX.trim_end()).map_or(body, str::trim)
}

/// Parses an inbound message; `None` for a sender that is not a phone number: no reply could be sent.
fn into_received(entry: LogEntry, now: Timestamp) -> Option<ReceivedMessage> {
    let from = Address::new(entry.from?).phone().ok()?;
    let count: usize = entry.num_media.as_deref().and_then(|count| count.parse().ok()).unwrap_or(0);
    // The list has no addresses of media, and media is never fetched: only its presence matters.
    let place = entry.uri.unwrap_or_default();
    let media = (0..count.min(10)).map(|_| MessageMedia { url: place.clone(), content_type: String::new() });
    Some(ReceivedMessage {
        channel: ChannelKind::Twilio,
        external_id: entry.sid,
        from,
        to: Address::new(entry.to?),
        body: without_nul(entry.body),
        media: media.collect(),
        via: MessageSource::Recovery,
        authority: FieldAuthority::Certain,
        carrier_word: None,
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

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Reads a list of these pages, the last of which repeats; returns the received messages and the requested
    /// addresses.
    fn read(pages: Vec<String>) -> (Result<Vec<ReceivedMessage>, String>, Vec<Uri>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = asked.clone();
        let peer = move |request: Request<Bytes>| {
            let mut asked = noted.lock().unwrap();
            let page = pages[asked.len().min(pages.len() - 1)].clone();
            asked.push(request.uri().clone());
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
        let received = runtime.block_on(twilio.received_since(&number, second(SINCE), second(NOW)));
        let asked = asked.lock().unwrap().clone();
        (received.map_err(|error| error.to_string()), asked)
    }

    #[test]
    fn next_page_that_is_no_path_gets_no_credentials() {
        for next in ["@other.invalid/", ".other.invalid/", ":1@other.invalid/", "https://other.invalid/"] {
            let entry = json!({ "direction": "inbound" });
            let page = json!({ "messages": [entry], "next_page_uri": next }).to_string();
            let (received, asked) = read(vec![page]);
            let hosts: Vec<_> = asked.iter().filter_map(Uri::host).collect();
            assert_eq!(hosts, ["api.twilio.invalid"], "{next}");
            assert_eq!(
                received.unwrap_err(),
                "read the carrier's list of messages: the next page is no path"
            );
        }
    }

    fn text() -> impl Strategy<Value = Value> {
        let word = prop_oneof![Just(Value::Null), any::<String>().prop_map(Value::from)];
        let date = prop_oneof![
            Just(json!("not a date")),
            // The times range from years before the request to the last year with four digits.
            (0..253_402_300_799_i64).prop_map(|at| {
                json!(second(at).to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S +0000").to_string())
            }),
        ];
        let from = prop_oneof![Just("+15550100101"), Just("whatsapp:+15550100102"), Just("NETFLIX")];
        (word, date, from, "[0-9]{0,3}").prop_map(|(body, date, from, media)| {
            json!({ "sid": "SM1", "direction": "inbound", "status": "received", "from": from,
                    "to": "+15550100000", "body": body, "num_media": media, "date_created": date })
        })
    }

    proptest! {
        #[test]
        fn listed_messages_are_in_order_and_not_too_old(
            pages in proptest::collection::vec(proptest::collection::vec(text(), 0..4), 1..4),
            links in any::<bool>(),
        ) {
            let next = if links { json!("/2010-04-01/next") } else { Value::Null };
            let page = |messages| json!({ "messages": messages, "next_page_uri": next }).to_string();
            let (received, asked) = read(pages.into_iter().map(page).collect());
            assert!((1..=MAX_PAGES).contains(&asked.len()));
            let received = received.unwrap();
            assert!(received.is_sorted_by_key(|text| text.provider_at));
            for text in received {
                assert!(text.provider_at >= second(SINCE) && text.received_at == second(NOW));
                assert!(!text.body.contains('\0') && text.media.len() <= 10);
                assert_eq!(PhoneNumber::parse(text.from.as_str()), Ok(text.from));
            }
        }

        #[test]
        fn malformed_page_causes_no_request_to_another_host(
            next in prop_oneof!["[@.:/\\\\?#a-z0-9 ]{0,30}", "/[@.:/\\\\?#%a-z0-9]{0,30}", any::<String>()],
            messages in proptest::collection::vec(prop_oneof![4 => text(), 1 => Just(json!([7, null]))], 1..4),
            length in prop_oneof![3 => Just(usize::MAX), 1 => 0..400_usize],
        ) {
            let page = json!({ "messages": messages, "next_page_uri": next }).to_string();
            let (_, asked) = read(vec![page.chars().take(length).collect()]);
            assert!((1..=MAX_PAGES).contains(&asked.len()));
            let carrier = Some("api.twilio.invalid");
            let elsewhere = asked.iter().find(|uri| uri.authority().map(Authority::as_str) != carrier);
            assert_eq!(elsewhere, None);
        }
    }
}
