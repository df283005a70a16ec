//! Parsing of the webhook request for an inbound message.

use jiff::Timestamp;

use super::fields::FieldFormat::{Address as AddressOf, Count, Digits, OneOf, Sid, Text, Url, Version, Word};
use super::fields::{
    CheckedFields, DecodedForm, DocumentedField, FieldPresence, FormFault, optional_field, required_field,
};
use crate::conversation::channel_list;
use crate::conversation::routing::inbound_message::{MessageMedia, MessageSource, ReceivedMessage};
use crate::conversation::routing::verification::FieldAuthority;
use crate::conversation::transcript::{Address, OptKeyword};

/// Maximum number of media that Twilio delivers with a message.
pub(super) const MAX_MEDIA: usize = 10;
/// Prefixes of the two numbered fields of each medium, such as `MediaUrl0`.
const MEDIA_FIELD_PREFIXES: [&str; 2] = ["MediaUrl", "MediaContentType"];

/// Documented fields of an inbound message (<https://www.twilio.com/docs/messaging/guides/webhook-request>), with the
/// fields of WhatsApp, Advanced Opt-Out and the fallback URL, but without the numbered media fields.
pub(super) const INBOUND_FIELDS: [DocumentedField; 57] = [
    required_field("AccountSid", Sid),
    required_field("ApiVersion", Version),
    required_field("Body", Text),
    required_field("From", AddressOf),
    required_field("MessageSid", Sid),
    required_field("NumMedia", Count),
    required_field("NumSegments", Count),
    required_field("SmsMessageSid", Sid),
    required_field("SmsSid", Sid),
    required_field("SmsStatus", OneOf(&["received", "receiving"])),
    required_field("To", AddressOf),
    optional_field("AddOns", Text),
    optional_field("Address", Text),
    optional_field("ButtonPayload", Text),
    optional_field("ButtonText", Text),
    optional_field("ButtonType", Text),
    optional_field("ChannelInstallSid", Sid),
    optional_field("ChannelMetadata", Text),
    optional_field("ChannelPrefix", Text),
    optional_field("ChannelToAddress", Text),
    optional_field("ErrorCode", Digits),
    optional_field("ErrorUrl", Url),
    optional_field("EventType", Word),
    optional_field("ExternalUserId", Text),
    optional_field("Forwarded", OneOf(&["true", "false"])),
    optional_field("FrequentlyForwarded", OneOf(&["true", "false"])),
    optional_field("FromCity", Text),
    optional_field("FromCountry", Text),
    optional_field("FromState", Text),
    optional_field("FromZip", Text),
    optional_field("InteractiveData", Text),
    optional_field("Label", Text),
    optional_field("Latitude", Text),
    optional_field("ListId", Text),
    optional_field("ListTitle", Text),
    optional_field("Longitude", Text),
    optional_field("MessageType", Word),
    optional_field("MessagingServiceSid", Sid),
    optional_field("OptOutType", OneOf(&["STOP", "START", "HELP"])),
    optional_field("OriginalRepliedMessageSender", AddressOf),
    optional_field("OriginalRepliedMessageSid", Sid),
    optional_field("ProfileName", Text),
    optional_field("ReferralBody", Text),
    optional_field("ReferralCtwaClid", Text),
    optional_field("ReferralHeadline", Text),
    optional_field("ReferralMediaContentType", Text),
    optional_field("ReferralMediaId", Text),
    optional_field("ReferralMediaUrl", Text),
    optional_field("ReferralNumMedia", Count),
    optional_field("ReferralSourceId", Text),
    optional_field("ReferralSourceType", Text),
    optional_field("ReferralSourceUrl", Text),
    optional_field("ToCity", Text),
    optional_field("ToCountry", Text),
    optional_field("ToState", Text),
    optional_field("ToZip", Text),
    optional_field("WaId", Text),
];

/// Parses the form of an inbound message that arrived at `now`.
pub fn parse_inbound_message(
    form: &DecodedForm,
    account_sid: &str,
    now: Timestamp,
) -> Result<ReceivedMessage, FormFault> {
    let fields = CheckedFields::from_form(form, &INBOUND_FIELDS, account_sid)?;
    if fields.has("MessageStatus") {
        return Err(FormFault::WrongRoute);
    }
    let external_id = fields.required("MessageSid")?;
    for name in ["SmsMessageSid", "SmsSid"] {
        fields.check_equal(name, external_id)?;
    }
    let from = Address::new(fields.required("From")?);
    let media = parse_media(&fields)?;
    // Twilio sends the error of the webhook URL only to the fallback URL.
    let is_fallback = fields.has("ErrorUrl") || fields.has("ErrorCode");
    Ok(ReceivedMessage {
        channel: channel_list::TWILIO,
        external_id: external_id.to_owned(),
        from: from.phone().map_err(|_| FormFault::InvalidValue)?.into(),
        to: Address::new(fields.required("To")?),
        // NUL characters end a string in SQLite's C interface.
        body: fields.get("Body").unwrap_or_default().replace('\0', "\u{fffd}"),
        media,
        via: if is_fallback { MessageSource::Fallback } else { MessageSource::Webhook },
        carrier_word: parse_opt_out_type(&fields),
        pressed: None,
        room: None,
        authority: if is_ambiguous(&fields) { FieldAuthority::Ambiguous } else { FieldAuthority::Certain },
        provider_at: now,
        received_at: now,
    })
}

/// Returns whether the same characters could have been signed as other documented fields. An ambiguous message may not act
/// before it is verified against the carrier's record.
fn is_ambiguous(fields: &CheckedFields<'_>) -> bool {
    let has_undocumented_name = fields.iter().any(|(name, _)| !is_documented(name));
    let value_contains_name = fields.iter().any(|(_, value)| contains_documented_name(value));
    let mut required = INBOUND_FIELDS.iter().filter(|field| field.presence == FieldPresence::Always);
    let lacks_required_field = required.any(|field| !fields.has(field.name));
    // A field that sorts between `Body` and `From` may be the end of the body.
    let splits_body = fields.iter().any(|(name, _)| "Body" < name && name < "From");
    has_undocumented_name || value_contains_name || lacks_required_field || splits_body
}

fn is_documented(name: &str) -> bool {
    INBOUND_FIELDS.iter().any(|field| field.name == name) || media_index(name).is_some()
}

fn contains_documented_name(value: &str) -> bool {
    // Every name begins with an upper-case letter.
    let mut starts = value.match_indices(|c: char| c.is_ascii_uppercase());
    starts.any(|(start, _)| documented_names().any(|name| value[start..].starts_with(name)))
}

/// Returns the names of the documented fields, and the prefixes of the names of media.
fn documented_names() -> impl Iterator<Item = &'static str> {
    INBOUND_FIELDS.iter().map(|field| field.name).chain(MEDIA_FIELD_PREFIXES)
}

/// Returns the index of the medium that a field belongs to; `None` for other fields.
fn media_index(name: &str) -> Option<usize> {
    let number = MEDIA_FIELD_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix))?;
    let is_one_digit = matches!(number.as_bytes(), [b'0'..=b'9']);
    if is_one_digit { number.parse().ok() } else { None }
}

/// Parses the media of a message, whose number must be `NumMedia`.
fn parse_media(fields: &CheckedFields<'_>) -> Result<Vec<MessageMedia>, FormFault> {
    let count = fields.required("NumMedia")?.parse().map_err(|_| FormFault::InvalidValue)?;
    let field_count = fields.iter().filter(|(name, _)| media_index(name).is_some()).count();
    if count > MAX_MEDIA || field_count != MEDIA_FIELD_PREFIXES.len() * count {
        return Err(FormFault::WrongMedia);
    }
    (0..count)
        .map(|index| {
            let url = fields.get(&format!("MediaUrl{index}")).ok_or(FormFault::WrongMedia)?;
            let content_type = fields.get(&format!("MediaContentType{index}")).unwrap_or_default();
            if !Url.matches_value(url) {
                return Err(FormFault::InvalidValue);
            }
            Ok(MessageMedia { url: url.to_owned(), content_type: content_type.to_owned() })
        })
        .collect()
}

/// Parses Twilio's own interpretation of an opt-out keyword, which it sends for numbers with Advanced Opt-Out
/// (<https://www.twilio.com/docs/messaging/tutorials/advanced-opt-out>).
fn parse_opt_out_type(fields: &CheckedFields<'_>) -> Option<OptKeyword> {
    match fields.get("OptOutType")? {
        "STOP" => Some(OptKeyword::Out),
        "START" => Some(OptKeyword::In),
        "HELP" => Some(OptKeyword::Help),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_name_begins_with_an_upper_case_letter() {
        for name in documented_names() {
            assert!(name.starts_with(|c: char| c.is_ascii_uppercase()), "{name}");
        }
    }

    #[test]
    fn value_that_contains_a_documented_name_anywhere_is_found() {
        for name in documented_names() {
            for value in [name.to_owned(), format!("add DUNE{name}"), format!("é{name}1")] {
                assert!(contains_documented_name(&value), "{value}");
            }
        }
        assert!(!contains_documented_name("add Dune and The Thing"));
    }
}
