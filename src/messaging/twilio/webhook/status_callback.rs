//! Parsing of status callbacks, with which Twilio reports the delivery of our messages.

use std::str::FromStr;

use super::fields::FieldFormat::{Address as AddressOf, Digits, Sid, Text, Version, Word};
use super::fields::{CheckedFields, DecodedForm, DocumentedField, FormFault, optional_field, required_field};
use crate::conversation::transcript::{Address, OutboxId};
use crate::store::queue::callbacks::{CallbackKey, CallbackToken};
use crate::store::queue::delivery_reports::{DeliveryReport, ReportKey};

/// Documented fields of a status callback
/// (<https://www.twilio.com/docs/messaging/guides/track-outbound-message-status>), with the fields of channels.
pub(super) const CALLBACK_FIELDS: [DocumentedField; 16] = [
    required_field("AccountSid", Sid),
    required_field("ApiVersion", Version),
    required_field("MessageSid", Sid),
    required_field("MessageStatus", Word),
    required_field("SmsSid", Sid),
    required_field("SmsStatus", Word),
    required_field("To", AddressOf),
    optional_field("ChannelInstallSid", Sid),
    optional_field("ChannelPrefix", Text),
    optional_field("ChannelStatusMessage", Text),
    optional_field("ChannelToAddress", Text),
    optional_field("ErrorCode", Digits),
    optional_field("EventType", Word),
    optional_field("From", AddressOf),
    optional_field("MessagingServiceSid", Sid),
    optional_field("RawDlrDoneDate", Digits),
];

/// Query of a callback URL, which identifies the message and the attempt with a random token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackQuery(Option<CallbackKey>);

impl CallbackQuery {
    /// Parses a query in exactly the form in which we write it into the URL, because the boundary between the URL and the
    /// fields is not signed either.
    pub fn from_query(query: &str) -> Self {
        Self(parse_key(query).filter(|key| key.to_query() == query))
    }
}

fn parse_key(query: &str) -> Option<CallbackKey> {
    let mut pairs = query.split('&').map(|pair| pair.split_once('='));
    let mut value =
        |name: &str| pairs.next().flatten().filter(|(key, _)| *key == name).map(|(_, value)| value);
    Some(CallbackKey {
        outbox: OutboxId(parse_number(value("out")?)?),
        attempt: parse_number(value("n")?)?,
        token: CallbackToken::from_stored(value("word")?),
    })
}

fn parse_number<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// Parses a status callback to a URL with this query.
pub fn parse_status_callback(
    form: &DecodedForm,
    query: CallbackQuery,
    account_sid: &str,
) -> Result<DeliveryReport, FormFault> {
    let fields = CheckedFields::from_form(form, &CALLBACK_FIELDS, account_sid)?;
    if fields.has("NumMedia") || fields.has("Body") {
        return Err(FormFault::WrongRoute);
    }
    let hides_error_code = |name: &str| name != "ErrorCode" && name.contains("ErrorCode");
    if fields.iter().any(|(name, value)| hides_error_code(name) || value.contains("ErrorCode")) {
        return Err(FormFault::HiddenField);
    }
    let (sid, status) = (fields.required("MessageSid")?, fields.required("MessageStatus")?);
    fields.check_equal("SmsSid", sid)?;
    fields.check_equal("SmsStatus", status)?;
    Ok(DeliveryReport {
        sid: sid.to_owned(),
        status: status.to_owned(),
        key: ReportKey::Callback(query.0),
        to: Address::new(fields.required("To")?),
        error_code: fields.get("ErrorCode").and_then(parse_number),
        error_meaning: None,
        second_attempt_after: None,
    })
}
