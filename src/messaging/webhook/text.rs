//! Inbound message, parsed from the request by which Twilio delivers it.

use jiff::Timestamp;

use super::fields::FieldShape::{Address as AddressOf, Count, Digits, OneOf, Sid, Text, Url, Version, Word};
use super::fields::{
    CheckedFields, DecodedForm, DocumentedField, FieldPresence, FormFault, optional_field, required_field,
};
use crate::conversation::routing::inbound_message::{MessageMedia, MessageSource, ReceivedMessage};
use crate::conversation::routing::verification::FieldAuthority;
use crate::conversation::transcript::{Address, ChannelKind, OptKeyword};

/// Most media that Twilio delivers with a message.
pub(super) const MAX_MEDIA: usize = 10;
/// Prefixes of media fields. Each medium has one field with either name, followed by its number.
const MEDIA_NAMES: [&str; 2] = ["MediaUrl", "MediaContentType"];

/// Documented fields of an inbound message: <https://www.twilio.com/docs/messaging/guides/webhook-request>, with the
/// fields of WhatsApp, Advanced Opt-Out and the fallback address. The media fields, which have numbers, are separate.
pub(super) const TEXT_FIELDS: [DocumentedField; 57] = [
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

/// Parses the form of an inbound message. `now` is the time of its arrival.
pub fn parse_text(
    form: &DecodedForm,
    account_sid: &str,
    now: Timestamp,
) -> Result<ReceivedMessage, FormFault> {
    let fields = CheckedFields::from_form(form, &TEXT_FIELDS, account_sid)?;
    if fields.has("MessageStatus") {
        return Err(FormFault::WrongRoute);
    }
    let external_id = fields.required("MessageSid")?;
    for name in ["SmsMessageSid", "SmsSid"] {
        fields.check_equal(name, external_id)?;
    }
    let from = Address::new(fields.required("From")?);
    let media = parse_media(&fields)?;
    // Twilio reports the error of the first URL only when it calls the second.
    let by_fallback = fields.has("ErrorUrl") || fields.has("ErrorCode");
    Ok(ReceivedMessage {
        channel: ChannelKind::Twilio,
        external_id: external_id.to_owned(),
        from: from.phone().map_err(|_| FormFault::WrongShape)?,
        to: Address::new(fields.required("To")?),
        // SQLite and the C libraries around it end a string at a NUL.
        body: fields.get("Body").unwrap_or_default().replace('\0', "\u{fffd}"),
        media,
        via: if by_fallback { MessageSource::Fallback } else { MessageSource::Webhook },
        carrier_word: parse_opt_out_type(&fields),
        authority: if is_ambiguous(&fields) { FieldAuthority::Ambiguous } else { FieldAuthority::Certain },
        provider_at: now,
        received_at: now,
    })
}

/// True if the same characters could have been signed as other fields that Twilio documents: if so, the message may not
/// act before the carrier's own record confirms it.
fn is_ambiguous(fields: &CheckedFields<'_>) -> bool {
    let undocumented = fields.iter().any(|(name, _)| !is_documented(name));
    let hides_a_name = fields.iter().any(|(_, value)| contains_documented_name(value));
    let mut constant = TEXT_FIELDS.iter().filter(|field| field.presence == FieldPresence::Always);
    let lacks_a_constant = constant.any(|field| !fields.has(field.name));
    // The text between the body and the next field of every message may be the end of the body.
    let cuts_the_body = fields.iter().any(|(name, _)| "Body" < name && name < "From");
    undocumented || hides_a_name || lacks_a_constant || cuts_the_body
}

fn is_documented(name: &str) -> bool {
    TEXT_FIELDS.iter().any(|field| field.name == name) || media_index(name).is_some()
}

fn contains_documented_name(value: &str) -> bool {
    let names = TEXT_FIELDS.iter().map(|field| field.name).chain(MEDIA_NAMES);
    // The shortest name has two characters.
    value.len() > 1 && names.into_iter().any(|name| value.contains(name))
}

/// Returns the medium that a field belongs to, if any.
fn media_index(name: &str) -> Option<usize> {
    let number = MEDIA_NAMES.iter().find_map(|stem| name.strip_prefix(stem))?;
    let one_digit = matches!(number.as_bytes(), [b'0'..=b'9']);
    if one_digit { number.parse().ok() } else { None }
}

/// Parses the media of a message: exactly as many as it announces.
fn parse_media(fields: &CheckedFields<'_>) -> Result<Vec<MessageMedia>, FormFault> {
    let count = fields.required("NumMedia")?.parse().map_err(|_| FormFault::WrongShape)?;
    let named = fields.iter().filter(|(name, _)| media_index(name).is_some()).count();
    if count > MAX_MEDIA || named != MEDIA_NAMES.len() * count {
        return Err(FormFault::WrongMedia);
    }
    (0..count)
        .map(|index| {
            let url = fields.get(&format!("MediaUrl{index}")).ok_or(FormFault::WrongMedia)?;
            let content_type = fields.get(&format!("MediaContentType{index}")).unwrap_or_default();
            if !Url.matches_value(url) {
                return Err(FormFault::WrongShape);
            }
            Ok(MessageMedia { url: url.to_owned(), content_type: content_type.to_owned() })
        })
        .collect()
}

/// Parses Twilio's interpretation of the message, in any language: numbers with Advanced Opt-Out report it
/// (<https://www.twilio.com/docs/messaging/tutorials/advanced-opt-out>).
fn parse_opt_out_type(fields: &CheckedFields<'_>) -> Option<OptKeyword> {
    match fields.get("OptOutType")? {
        "STOP" => Some(OptKeyword::Out),
        "START" => Some(OptKeyword::In),
        "HELP" => Some(OptKeyword::Help),
        _ => None,
    }
}
