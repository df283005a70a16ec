//! Property tests of other splits of a signed form: a split that is accepted has the same meaning, or may not act before
//! it is verified against the carrier's record.

use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::prelude::{Just, ProptestConfig, Strategy, prop_oneof, proptest};
use proptest::sample::{Index, select};

use super::fields::DocumentedField;
use super::inbound_message::INBOUND_FIELDS;
use super::status_callback::CALLBACK_FIELDS;
use super::{CallbackQuery, FormFault, parse_inbound_message, parse_status_callback};
use crate::conversation::routing::inbound_message::{MessageSource, ReceivedMessage};
use crate::conversation::routing::verification::{FieldAuthority, MessageFields};
use crate::conversation::transcript::{Address, OptKeyword, OutboxId};
use crate::messaging::twilio::STATUS_PATH;
use crate::store::queue::callbacks::{CallbackKey, CallbackToken};
use crate::store::queue::delivery_reports::ReportKey;

const ACCOUNT: &str = "AC0123456789abcdef0123456789abcdef";
const SID: &str = "SM00000000000000000000000000000001";
const OTHER_SID: &str = "SM00000000000000000000000000000002";
const ADMIN: &str = "+15550100999";
const MEMBER: &str = "+14155550199";
const OUR_NUMBER: &str = "+15550100000";
/// Maximum number of steps of one search for splits.
const MAX_STEPS: usize = 2_000;

type FormFields = Vec<(String, String)>;

fn sorted_fields(fields: &[(&str, &str)]) -> FormFields {
    let mut sorted: FormFields =
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    sorted.sort();
    sorted
}

/// Returns the characters that the signature covers.
fn signed_content(fields: &FormFields) -> String {
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort();
    sorted.dedup();
    sorted.into_iter().flat_map(|(name, value)| [name.as_str(), value]).collect()
}

fn message_form(more: &[(&str, &str)]) -> FormFields {
    let mut fields: BTreeMap<&str, &str> = BTreeMap::from([
        ("AccountSid", ACCOUNT),
        ("ApiVersion", "2010-04-01"),
        ("Body", "yes"),
        ("From", MEMBER),
        ("FromCity", "PORTLAND"),
        ("FromCountry", "US"),
        ("FromState", "OR"),
        ("FromZip", ""),
        ("MessageSid", SID),
        ("NumMedia", "0"),
        ("NumSegments", "1"),
        ("SmsMessageSid", SID),
        ("SmsSid", SID),
        ("SmsStatus", "received"),
        ("To", OUR_NUMBER),
        ("ToCity", ""),
        ("ToCountry", "US"),
    ]);
    fields.extend(more.iter().copied());
    sorted_fields(&fields.into_iter().collect::<Vec<_>>())
}

fn parse(form: &FormFields) -> Result<ReceivedMessage, FormFault> {
    parse_inbound_message(form, ACCOUNT, Timestamp::UNIX_EPOCH)
}

fn without(form: FormFields, name: &str) -> FormFields {
    form.into_iter().filter(|(key, _)| key != name).collect()
}

/// Returns the splits of `content` into valid fields of the table, in signature order.
fn find_splits(content: &str, table: &[DocumentedField]) -> Vec<FormFields> {
    let mut search = SplitSearch { table, steps: MAX_STEPS, found: Vec::new() };
    search.search_from(content, &mut Vec::new());
    search.found
}

struct SplitSearch<'a> {
    table: &'a [DocumentedField],
    /// Remaining steps, because there are too many splits to try all of them.
    steps: usize,
    found: Vec<FormFields>,
}

impl SplitSearch<'_> {
    fn search_from(&mut self, rest: &str, before: &mut FormFields) {
        if self.steps == 0 {
            return;
        }
        self.steps -= 1;
        if rest.is_empty() {
            self.found.push(before.clone());
            return;
        }
        let last = before.last().map(|(name, _)| name.clone()).unwrap_or_default();
        let table = self.table;
        for field in table.iter().filter(|field| field.name > last.as_str() && rest.starts_with(field.name)) {
            let value = &rest[field.name.len()..];
            let is_name_start = |at: usize| table.iter().any(|next| value[at..].starts_with(next.name));
            let ends = value.char_indices().map(|(at, _)| at).filter(|at| is_name_start(*at));
            for end in ends.chain([value.len()]) {
                if field.format.allows_value(&value[..end]) {
                    before.push((field.name.to_owned(), value[..end].to_owned()));
                    self.search_from(&value[end..], before);
                    before.pop();
                }
            }
        }
    }
}

/// Returns the parts of a message that cause effects.
fn acting_fields(text: &ReceivedMessage) -> (String, String, String, String, usize, Option<OptKeyword>) {
    let (from, to) = (text.from.name().to_owned(), text.to.as_str().to_owned());
    (text.external_id.clone(), from, to, text.body.clone(), text.media.len(), text.carrier_word)
}

fn carrier_record(text: &ReceivedMessage) -> MessageFields {
    MessageFields {
        from: Address::new(text.from.name()),
        to: text.to.clone(),
        body: text.body.clone(),
        media_count: text.media.len(),
    }
}

/// Fails if another split of a genuine message could act differently. Returns whether the split was accepted.
#[track_caller]
fn check_split(genuine: &ReceivedMessage, other: &FormFields) -> bool {
    let Ok(parsed) = parse(other) else { return false };
    // The carrier has no record for another id.
    let agrees = parsed.external_id == genuine.external_id
        && carrier_record(genuine).matches_fields(&carrier_record(&parsed));
    let may_act = parsed.authority == FieldAuthority::Certain || agrees;
    if may_act {
        assert_eq!(acting_fields(&parsed), acting_fields(genuine), "{other:?}");
        assert!(parsed.via == genuine.via || parsed.via == MessageSource::Fallback, "{other:?}");
    }
    true
}

fn field_text() -> impl Strategy<Value = String> {
    let names: Vec<&str> = INBOUND_FIELDS.iter().map(|field| field.name).collect();
    let words =
        vec!["yes", "no", " ", "STOP", "approve 4821", "0", "1", "true", "received", "2010-04-01", "Keep"];
    prop_oneof![
        4 => select(names).prop_map(str::to_owned),
        3 => select(words).prop_map(str::to_owned),
        1 => select(vec![ADMIN, MEMBER, OUR_NUMBER, SID, OTHER_SID, ACCOUNT]).prop_map(str::to_owned),
    ]
}

/// Values that a sender crafts so that they parse as fields.
fn crafted_value() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => proptest::collection::vec(field_text(), 0..7).prop_map(|words| words.concat()),
        1 => Just(format!("yesFrom{ADMIN}FromCity")),
        1 => Just(format!("yesFrom{ADMIN}MessageSid{OTHER_SID}NumMedia0ProfileName")),
        1 => Just("yesButtonTextCan we keep it".to_owned()),
        1 => Just("yesErrorCode11200".to_owned()),
    ]
}

fn genuine_form() -> impl Strategy<Value = FormFields> {
    let extra = select(vec![
        vec![],
        vec![("ErrorCode", "11200"), ("ErrorUrl", "https://sms.example.org/webhook/twilio")],
        vec![("MessagingServiceSid", "MG0123456789abcdef0123456789abcdef")],
        vec![("OptOutType", "STOP")],
        vec![("ProfileName", "Tom"), ("WaId", "14155550199"), ("ButtonText", "yes")],
    ]);
    (crafted_value(), crafted_value(), extra, proptest::option::of(crafted_value())).prop_map(
        |(body, city, extra, profile)| {
            let mut more = extra;
            more.extend([("Body", body.as_str()), ("FromCity", &city)]);
            more.extend(profile.as_deref().map(|name| ("ProfileName", name)));
            message_form(&more)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn documented_field_split_never_acts_as_another_message(form in genuine_form()) {
        let genuine = parse(&form).unwrap();
        for other in find_splits(&signed_content(&form), &INBOUND_FIELDS) {
            check_split(&genuine, &other);
        }
    }

    #[test]
    fn custom_field_split_never_acts_as_another_message(
        form in genuine_form(),
        (field, start, end) in (proptest::arbitrary::any::<Index>(), proptest::arbitrary::any::<Index>(), proptest::arbitrary::any::<Index>()),
    ) {
        let genuine = parse(&form).unwrap();
        let mut other = form.clone();
        let (_, value) = &mut other[field.index(form.len())];
        let (start, end) = (start.index(value.len() + 1), end.index(value.len() + 1));
        if start < end {
            let cut = (value[start..end].to_owned(), value[end..].to_owned());
            value.truncate(start);
            other.push(cut);
            if signed_content(&other) == signed_content(&form) {
                check_split(&genuine, &other);
            }
        }
    }

    #[test]
    fn callback_split_never_names_another_message(
        (out, attempt) in (1_i64..999, 1_u32..30),
        code in proptest::option::of("[1-9][0-9]{4}"),
        message in proptest::option::of(crafted_value()),
    ) {
        let key = CallbackKey { outbox: OutboxId(out), attempt, token: CallbackToken::from_stored("0123456789abcdef0123456789abcdef") };
        let mut fields = CALLBACK.to_vec();
        fields.extend(code.as_deref().map(|code| ("ErrorCode", code)));
        fields.extend(message.as_deref().map(|message| ("ChannelStatusMessage", message)));
        let form = sorted_fields(&fields);
        let parse = |query: &str, form: &FormFields| parse_status_callback(form, CallbackQuery::from_query(query), ACCOUNT);
        let genuine = parse(&key.to_query(), &form);
        let content = format!("{STATUS_PATH}?{}{}", key.to_query(), signed_content(&form));
        let start = STATUS_PATH.len() + 1;
        for border in (start..content.len()).filter(|border| content.is_char_boundary(*border)) {
            for other in find_splits(&content[border..], &CALLBACK_FIELDS) {
                let Ok(report) = parse(&content[start..border], &other) else { continue };
                if let ReportKey::Callback(Some(named)) = &report.key
                    && named.token == key.token
                {
                    assert_eq!((named, report.sid.as_str()), (&key, SID));
                    assert_eq!((report.to.as_str(), report.status.as_str()), (MEMBER, "delivered"));
                    // A form whose values contain `ErrorCode` is rejected, so no split can hide the error code.
                    assert!(genuine.is_err() || genuine.as_ref() == Ok(&report));
                }
            }
        }
    }
}

const CALLBACK: [(&str, &str); 8] = [
    ("AccountSid", ACCOUNT),
    ("ApiVersion", "2010-04-01"),
    ("From", OUR_NUMBER),
    ("MessageSid", SID),
    ("MessageStatus", "delivered"),
    ("SmsSid", SID),
    ("SmsStatus", "delivered"),
    ("To", MEMBER),
];

#[test]
fn body_that_parses_as_sender_and_city_is_ambiguous() {
    let crafted = format!("yesFrom{ADMIN}FromCity");
    let genuine = message_form(&[("Body", &crafted)]);
    let city = format!("From{MEMBER}FromCityPORTLAND");
    let other = message_form(&[("From", ADMIN), ("FromCity", &city)]);
    assert_eq!(signed_content(&genuine), signed_content(&other));
    assert!(find_splits(&signed_content(&genuine), &INBOUND_FIELDS).contains(&other));
    let forged = parse(&other).unwrap();
    assert_eq!((forged.from.name(), forged.body.as_str()), (ADMIN, "yes"));
    assert_eq!(forged.authority, FieldAuthority::Ambiguous);
    assert!(check_split(&parse(&genuine).unwrap(), &other));
}

#[test]
fn forged_admin_with_a_chosen_message_id_is_ambiguous() {
    let crafted = format!("yesFrom{ADMIN}MessageSid{OTHER_SID}NumMedia0ProfileName");
    let genuine = message_form(&[("Body", &crafted)]);
    let forged: Vec<ReceivedMessage> = find_splits(&signed_content(&genuine), &INBOUND_FIELDS)
        .iter()
        .filter_map(|other| parse(other).ok())
        .filter(|text| text.from.name() == ADMIN && text.external_id == OTHER_SID)
        .collect();
    assert!(!forged.is_empty());
    assert!(forged.iter().all(|text| text.authority == FieldAuthority::Ambiguous));
}

#[test]
fn ordinary_messages_are_certain_and_splittable_messages_are_ambiguous() {
    let service = [("MessagingServiceSid", "MG0123456789abcdef0123456789abcdef"), ("OptOutType", "STOP")];
    let media = [
        ("NumMedia", "1"),
        ("MediaUrl0", "https://api.twilio.com/2010-04-01/Accounts/AC0/Messages/MM0/Media/ME0"),
        ("MediaContentType0", "image/jpeg"),
    ];
    for more in [&[][..], &service, &media, &[("Body", "")]] {
        assert_eq!(parse(&message_form(more)).unwrap().authority, FieldAuthority::Certain, "{more:?}");
    }
    let ambiguous = [
        ("Body", "add Toy Story"),
        ("FromCity", "Toledo"),
        ("ProfileName", "Tom"),
        ("NewParameter", "1"),
        ("ButtonText", "Can we keep it"),
    ];
    for more in ambiguous {
        assert_eq!(parse(&message_form(&[more])).unwrap().authority, FieldAuthority::Ambiguous, "{more:?}");
    }
    let missing = parse(&without(message_form(&[]), "NumSegments")).unwrap();
    assert_eq!(missing.authority, FieldAuthority::Ambiguous);
}

#[test]
fn invalid_fields_are_rejected() {
    let mut duplicate = message_form(&[]);
    duplicate.push(("FromCity".to_owned(), "SALEM".to_owned()));
    let cases = [
        (duplicate, FormFault::DuplicateName),
        (message_form(&[("Can we keep it", "")]), FormFault::InvalidName),
        (message_form(&[("", "x")]), FormFault::InvalidName),
        (message_form(&[("AccountSid", "AC1123456789abcdef0123456789abcdef")]), FormFault::WrongAccount),
        (without(message_form(&[]), "AccountSid"), FormFault::MissingField),
        (without(message_form(&[]), "NumMedia"), FormFault::MissingField),
        (without(message_form(&[]), "MessageSid"), FormFault::MissingField),
        (message_form(&[("MessageSid", &format!("{SID}NumMedia0"))]), FormFault::InvalidValue),
        (message_form(&[("SmsSid", OTHER_SID)]), FormFault::MismatchedFields),
        (message_form(&[("SmsMessageSid", OTHER_SID)]), FormFault::MismatchedFields),
        (message_form(&[("NumMedia", "1")]), FormFault::WrongMedia),
        (message_form(&[("MediaUrl0", "https://a.example/1")]), FormFault::WrongMedia),
        (message_form(&[("NumMedia", "00")]), FormFault::InvalidValue),
        (message_form(&[("From", "NETFLIX")]), FormFault::InvalidValue),
        (message_form(&[("To", "our number")]), FormFault::InvalidValue),
        (message_form(&[("ErrorCode", "11200ErrorUrlhttps://a.example/")]), FormFault::InvalidValue),
        (message_form(&[("OptOutType", "stop")]), FormFault::InvalidValue),
        (message_form(&[("OptOutType", "")]), FormFault::InvalidValue),
        (message_form(&[("SmsStatus", "delivered")]), FormFault::InvalidValue),
        (message_form(&[("MessageStatus", "delivered")]), FormFault::WrongRoute),
    ];
    for (form, fault) in cases {
        assert_eq!(parse(&form), Err(fault), "{form:?}");
    }
}

#[test]
fn callbacks_with_hidden_or_invalid_fields_are_rejected() {
    let with = |more: &[(&str, &str)]| {
        let mut fields = BTreeMap::from(CALLBACK);
        fields.extend(more.iter().copied());
        sorted_fields(&fields.into_iter().collect::<Vec<_>>())
    };
    let cases = [
        (with(&[("NumMedia", "0")]), FormFault::WrongRoute),
        (with(&[("Body", "yes")]), FormFault::WrongRoute),
        (with(&[("ChannelStatusMessage", "ErrorCode30003")]), FormFault::HiddenField),
        (with(&[("ErrorCode30003RawDlrDoneDate", "2511212058")]), FormFault::HiddenField),
        (with(&[("SmsSid", OTHER_SID)]), FormFault::MismatchedFields),
        (with(&[("SmsStatus", "sent")]), FormFault::MismatchedFields),
        (with(&[("MessageStatus", "sent 2")]), FormFault::InvalidValue),
        (with(&[("7&n=1AccountSid", ACCOUNT)]), FormFault::InvalidName),
        (without(with(&[]), "To"), FormFault::MissingField),
    ];
    for (form, fault) in cases {
        assert_eq!(
            parse_status_callback(&form, CallbackQuery::from_query(""), ACCOUNT),
            Err(fault),
            "{form:?}"
        );
    }
}

#[test]
fn only_the_exact_callback_query_identifies_a_message() {
    let key = |query| {
        parse_status_callback(&sorted_fields(&CALLBACK), CallbackQuery::from_query(query), ACCOUNT)
            .unwrap()
            .key
    };
    assert_ne!(key("out=7&n=1&word=0123"), ReportKey::Callback(None));
    let others = [
        "",
        "out=7&n=1",
        "out=07&n=1&word=0123",
        "n=1&out=7&word=0123",
        "out=7&n=1&word=0123&x",
        "out=7&n=1&out=8",
    ];
    for query in others {
        assert_eq!(key(query), ReportKey::Callback(None), "{query}");
    }
}
