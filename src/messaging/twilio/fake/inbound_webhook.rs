//! Inbound messages as signed requests to our webhook.

use bytes::Bytes;
use http::Request;
use http::header::{CONTENT_TYPE, USER_AGENT};
use jiff::SignedDuration;

use super::carrier::{FakeAccount, FakeTwilio};
use super::message_log::{FakeMessage, MessageDirection};
use crate::conversation::routing::inbound_message::MessageMedia;
use crate::conversation::text::segments::SegmentCount;
use crate::conversation::transcript::Address;
use crate::messaging::twilio::WEBHOOK_PATH;
use crate::messaging::twilio::signature::{SIGNATURE_HEADER, sign_form};

/// Form of a message from a user.
#[derive(Debug, Clone)]
pub struct InboundForm {
    carrier: FakeTwilio,
    from: Address,
    to: Address,
    body: String,
    media: Vec<MessageMedia>,
    sid: Option<String>,
    listing_delay: SignedDuration,
    extra_fields: Vec<(&'static str, String)>,
}

impl InboundForm {
    pub(super) fn new(carrier: FakeTwilio, from: &str, body: &str) -> Self {
        let to = carrier.account.number.clone();
        let (from, body) = (Address::new(from), body.to_owned());
        Self {
            carrier,
            from,
            to,
            body,
            media: vec![],
            sid: None,
            listing_delay: SignedDuration::ZERO,
            extra_fields: vec![],
        }
    }

    pub fn with_media(mut self, url: &str, content_type: &str) -> Self {
        self.media.push(MessageMedia { url: url.to_owned(), content_type: content_type.to_owned() });
        self
    }

    /// Sets the SID instead of a generated one.
    pub fn with_sid(mut self, sid: &str) -> Self {
        self.sid = Some(sid.to_owned());
        self
    }

    /// Sets the delay until the message list and the message resource show the message.
    pub fn with_listing_delay(mut self, delay: SignedDuration) -> Self {
        self.listing_delay = delay;
        self
    }

    /// Adds a channel prefix, `whatsapp:` or `rcs:`, to both addresses.
    pub fn with_channel_prefix(mut self, prefix: &str) -> Self {
        self.from = Address::new(format!("{prefix}{}", self.from.as_str()));
        self.to = Address::new(format!("{prefix}{}", self.to.as_str()));
        self
    }

    /// Adds a field to the form, e.g. `OptOutType`.
    pub fn with_field(mut self, name: &'static str, value: &str) -> Self {
        self.extra_fields.push((name, value.to_owned()));
        self
    }

    /// Adds the message to the carrier's log, applies keywords, and returns the request to our webhook. Dropping the
    /// request simulates a missed webhook, and sending a clone simulates a retry.
    pub fn into_signed_request(self) -> Result<Request<Bytes>, http::Error> {
        let sid = self.store_in_log();
        let account = &self.carrier.account;
        let url = format!("{}{WEBHOOK_PATH}", account.public_url.trim_end_matches('/'));
        let media_count = self.media.len().to_string();
        let segment_count = SegmentCount::from_text(&self.body).count.to_string();
        let numbered_names =
            |name: &str| (0..self.media.len()).map(|index| format!("{name}{index}")).collect::<Vec<_>>();
        let (urls, types) = (numbered_names("MediaUrl"), numbered_names("MediaContentType"));
        // The fields have the order of captured requests.
        let mut fields = vec![
            ("ToCountry", "US"),
            ("ToState", "CA"),
            ("SmsMessageSid", &sid),
            ("NumMedia", &media_count),
            ("ToCity", ""),
            ("FromZip", "94107"),
            ("SmsSid", &sid),
            ("FromState", "CA"),
            ("SmsStatus", "received"),
            ("FromCity", "SAN FRANCISCO"),
            ("Body", &self.body),
            ("FromCountry", "US"),
            ("To", self.to.as_str()),
            ("ToZip", ""),
            ("NumSegments", &segment_count),
            ("MessageSid", &sid),
            ("AccountSid", &account.account_sid),
            ("From", self.from.as_str()),
            ("ApiVersion", "2010-04-01"),
        ];
        for ((medium, url), content_type) in self.media.iter().zip(&urls).zip(&types) {
            fields.extend([(url.as_str(), medium.url.as_str()), (content_type, &medium.content_type)]);
        }
        fields.extend(self.extra_fields.iter().map(|(name, value)| (*name, value.as_str())));
        signed_form(account, &url, &fields)
    }

    /// Adds the message to the carrier's log unless it is there already, and returns its SID.
    fn store_in_log(&self) -> String {
        let at = self.carrier.clock.now();
        let mut state = self.carrier.lock_state();
        let sid = match &self.sid {
            Some(sid) => sid.clone(),
            None => state.generate_sid(if self.media.is_empty() { "SM" } else { "MM" }),
        };
        if state.messages.find(&sid).is_none() {
            state.apply_keyword(&self.from, &self.body);
            state.messages.add(FakeMessage {
                sid: sid.clone(),
                from: self.from.clone(),
                to: self.to.clone(),
                body: self.body.clone(),
                at,
                listed_at: at + self.listing_delay,
                direction: MessageDirection::Inbound { media: self.media.len() },
            });
        }
        sid
    }
}

/// Builds a form request like Twilio's, signed with the auth token.
pub(super) fn signed_form(
    account: &FakeAccount,
    url: &str,
    fields: &[(&str, &str)],
) -> Result<Request<Bytes>, http::Error> {
    let form: Vec<(String, String)> =
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&form).finish();
    Request::post(url)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded; charset=utf-8")
        .header(USER_AGENT, "TwilioProxy/1.1")
        .header(SIGNATURE_HEADER, sign_form(&account.auth_token, url, &form))
        .body(body.into())
}
