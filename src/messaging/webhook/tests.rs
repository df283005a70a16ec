//! Other splits of the content that Twilio signed: any split that is accepted means the same, or may not act before the
//! carrier's record agrees.

use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::prelude::{Just, ProptestConfig, Strategy, prop_oneof, proptest};
use proptest::sample::{Index, select};

use super::fields::DocumentedField;
use super::report::REPORT_FIELDS;
use super::text::TEXT_FIELDS;
use super::{CallbackQuery, FormFault, parse_report, parse_text};
use crate::conversation::routing::inbound_message::{MessageSource, ReceivedMessage};
use crate::conversation::routing::verification::{FieldAuthority, MessageFields};
use crate::conversation::transcript::{Address, OptKeyword, OutboxId};
use crate::messaging::twilio::STATUS_PATH;
use crate::store::queue::callbacks::{CallbackKey, CallbackWord};

const ACCOUNT: &str = "AC0123456789abcdef0123456789abcdef";
const SID: &str = "SM00000000000000000000000000000001";
const OTHER_SID: &str = "SM00000000000000000000000000000002";
const ADMIN: &str = "+15550100999";
const MEMBER: &str = "+14155550199";
const OURS: &str = "+15550100000";
const MAX_STEPS: usize = 2_000;

type Pairs = Vec<(String, String)>;

fn pairs(fields: &[(&str, &str)]) -> Pairs {
    let mut pairs: Pairs =
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    pairs.sort();
    pairs
}

/// Returns the characters that the signature covers.
fn signed(pairs: &Pairs) -> String {
    let mut sorted: Vec<_> = pairs.iter().collect();
    sorted.sort();
    sorted.dedup();
    sorted.into_iter().flat_map(|(name, value)| [name.as_str(), value]).collect()
}

fn text_with(more: &[(&str, &str)]) -> Pairs {
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
        ("To", OURS),
        ("ToCity", ""),
        ("ToCountry", "US"),
    ]);
    fields.extend(more.iter().copied());
    pairs(&fields.into_iter().collect::<Vec<_>>())
}

fn read(form: &Pairs) -> Result<ReceivedMessage, FormFault> {
    parse_text(form, ACCOUNT, Timestamp::UNIX_EPOCH)
}

fn without(form: Pairs, name: &str) -> Pairs {
    form.into_iter().filter(|(key, _)| key != name).collect()
}

/// Returns the ways to read `rest` as fields of the table in the order of the signature, the values in their shapes.
fn splits(rest: &str, table: &[DocumentedField]) -> Vec<Pairs> {
    let mut search = SplitSearch { table, steps: MAX_STEPS, found: Vec::new() };
    search.go_on(rest, &mut Vec::new());
    search.found
}

struct SplitSearch<'a> {
    table: &'a [DocumentedField],
    /// Remaining steps: there are too many ways to try all of them.
    steps: usize,
    found: Vec<Pairs>,
}

impl SplitSearch<'_> {
    fn go_on(&mut self, rest: &str, before: &mut Pairs) {
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
            let starts_a_name = |at: usize| table.iter().any(|next| value[at..].starts_with(next.name));
            let ends = value.char_indices().map(|(at, _)| at).filter(|at| starts_a_name(*at));
            for end in ends.chain([value.len()]) {
                if field.shape.allows_value(&value[..end]) {
                    before.push((field.name.to_owned(), value[..end].to_owned()));
                    self.go_on(&value[end..], before);
                    before.pop();
                }
            }
        }
    }
}

/// Returns the parts of a message that cause effects.
fn effect(text: &ReceivedMessage) -> (String, String, String, String, usize, Option<OptKeyword>) {
    let (from, to) = (text.from.as_str().to_owned(), text.to.as_str().to_owned());
    (text.external_id.clone(), from, to, text.body.clone(), text.media.len(), text.carrier_word)
}

fn record(text: &ReceivedMessage) -> MessageFields {
    MessageFields {
        from: Address::new(text.from.as_str()),
        to: text.to.clone(),
        body: text.body.clone(),
        media_count: text.media.len(),
    }
}

/// Fails if another split of a genuine message could act as something else. Returns true if it was accepted at all.
#[track_caller]
fn check_split(genuine: &ReceivedMessage, other: &Pairs) -> bool {
    let Ok(read) = read(other) else { return false };
    // For another id, the carrier has no record.
    let agrees = read.external_id == genuine.external_id && record(genuine).matches_fields(&record(&read));
    let may_act = read.authority == FieldAuthority::Certain || agrees;
    if may_act {
        assert_eq!(effect(&read), effect(genuine), "{other:?}");
        assert!(read.via == genuine.via || read.via == MessageSource::Fallback, "{other:?}");
    }
    true
}

fn word() -> impl Strategy<Value = String> {
    let names: Vec<&str> = TEXT_FIELDS.iter().map(|field| field.name).collect();
    let words =
        vec!["yes", "no", " ", "STOP", "approve 4821", "0", "1", "true", "received", "2010-04-01", "Keep"];
    prop_oneof![
        4 => select(names).prop_map(str::to_owned),
        3 => select(words).prop_map(str::to_owned),
        1 => select(vec![ADMIN, MEMBER, OURS, SID, OTHER_SID, ACCOUNT]).prop_map(str::to_owned),
    ]
}

/// Values from a sender who wants them to be parsed as fields.
fn crafted() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => proptest::collection::vec(word(), 0..7).prop_map(|words| words.concat()),
        1 => Just(format!("yesFrom{ADMIN}FromCity")),
        1 => Just(format!("yesFrom{ADMIN}MessageSid{OTHER_SID}NumMedia0ProfileName")),
        1 => Just("yesButtonTextCan we keep it".to_owned()),
        1 => Just("yesErrorCode11200".to_owned()),
    ]
}

fn genuine_text() -> impl Strategy<Value = Pairs> {
    let extra = select(vec![
        vec![],
        vec![("ErrorCode", "11200"), ("ErrorUrl", "https://sms.example.org/webhook/twilio")],
        vec![("MessagingServiceSid", "MG0123456789abcdef0123456789abcdef")],
        vec![("OptOutType", "STOP")],
        vec![("ProfileName", "Tom"), ("WaId", "14155550199"), ("ButtonText", "yes")],
    ]);
    (crafted(), crafted(), extra, proptest::option::of(crafted())).prop_map(|(body, city, extra, profile)| {
        let mut more = extra;
        more.extend([("Body", body.as_str()), ("FromCity", &city)]);
        more.extend(profile.as_deref().map(|name| ("ProfileName", name)));
        text_with(&more)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn documented_field_split_never_acts_as_another_message(form in genuine_text()) {
        let genuine = read(&form).unwrap();
        for other in splits(&signed(&form), &TEXT_FIELDS) {
            check_split(&genuine, &other);
        }
    }

    #[test]
    fn custom_field_split_never_acts_as_another_message(
        form in genuine_text(),
        (field, start, end) in (proptest::arbitrary::any::<Index>(), proptest::arbitrary::any::<Index>(), proptest::arbitrary::any::<Index>()),
    ) {
        let genuine = read(&form).unwrap();
        let mut other = form.clone();
        let (_, value) = &mut other[field.index(form.len())];
        let (start, end) = (start.index(value.len() + 1), end.index(value.len() + 1));
        if start < end {
            let cut = (value[start..end].to_owned(), value[end..].to_owned());
            value.truncate(start);
            other.push(cut);
            if signed(&other) == signed(&form) {
                check_split(&genuine, &other);
            }
        }
    }

    #[test]
    fn callback_split_never_names_another_message(
        (out, attempt) in (1_i64..999, 1_u32..30),
        code in proptest::option::of("[1-9][0-9]{4}"),
        message in proptest::option::of(crafted()),
    ) {
        let key = CallbackKey { outbox: OutboxId(out), attempt, word: CallbackWord::from_stored("0123456789abcdef0123456789abcdef") };
        let mut fields = REPORT.to_vec();
        fields.extend(code.as_deref().map(|code| ("ErrorCode", code)));
        fields.extend(message.as_deref().map(|message| ("ChannelStatusMessage", message)));
        let form = pairs(&fields);
        let parse = |query: &str, form: &Pairs| parse_report(form, CallbackQuery::from_query(query), ACCOUNT);
        let genuine = parse(&key.to_query(), &form);
        let all = format!("{STATUS_PATH}?{}{}", key.to_query(), signed(&form));
        let start = STATUS_PATH.len() + 1;
        for border in (start..all.len()).filter(|border| all.is_char_boundary(*border)) {
            for other in splits(&all[border..], &REPORT_FIELDS) {
                let Ok(report) = parse(&all[start..border], &other) else { continue };
                if report.key.as_ref().is_some_and(|named| named.word == key.word) {
                    assert_eq!((report.key.as_ref(), report.sid.as_str()), (Some(&key), SID));
                    assert_eq!((report.to.as_str(), report.status.as_str()), (MEMBER, "delivered"));
                    // A message that names the error code is refused on arrival, so none can hide it.
                    assert!(genuine.is_err() || genuine.as_ref() == Ok(&report));
                }
            }
        }
    }
}

const REPORT: [(&str, &str); 8] = [
    ("AccountSid", ACCOUNT),
    ("ApiVersion", "2010-04-01"),
    ("From", OURS),
    ("MessageSid", SID),
    ("MessageStatus", "delivered"),
    ("SmsSid", SID),
    ("SmsStatus", "delivered"),
    ("To", MEMBER),
];

#[test]
fn body_end_parsed_as_sender_and_city_is_ambiguous() {
    let crafted = format!("yesFrom{ADMIN}FromCity");
    let genuine = text_with(&[("Body", &crafted)]);
    let city = format!("From{MEMBER}FromCityPORTLAND");
    let other = text_with(&[("From", ADMIN), ("FromCity", &city)]);
    assert_eq!(signed(&genuine), signed(&other));
    assert!(splits(&signed(&genuine), &TEXT_FIELDS).contains(&other));
    let forged = read(&other).unwrap();
    assert_eq!((forged.from.as_str(), forged.body.as_str()), (ADMIN, "yes"));
    assert_eq!(forged.authority, FieldAuthority::Ambiguous);
    assert!(check_split(&read(&genuine).unwrap(), &other));
}

#[test]
fn member_with_a_chosen_id_is_never_parsed_as_an_admin() {
    let crafted = format!("yesFrom{ADMIN}MessageSid{OTHER_SID}NumMedia0ProfileName");
    let genuine = text_with(&[("Body", &crafted)]);
    let forged: Vec<ReceivedMessage> = splits(&signed(&genuine), &TEXT_FIELDS)
        .iter()
        .filter_map(|other| read(other).ok())
        .filter(|text| text.from.as_str() == ADMIN && text.external_id == OTHER_SID)
        .collect();
    assert!(!forged.is_empty());
    assert!(forged.iter().all(|text| text.authority == FieldAuthority::Ambiguous));
}

#[test]
fn ordinary_messages_are_certain_and_splittable_ones_ambiguous() {
    let service = [("MessagingServiceSid", "MG0123456789abcdef0123456789abcdef"), ("OptOutType", "STOP")];
    let media = [
        ("NumMedia", "1"),
        ("MediaUrl0", "https://api.twilio.com/2010-04-01/Accounts/AC0/Messages/MM0/Media/ME0"),
        ("MediaContentType0", "image/jpeg"),
    ];
    for more in [&[][..], &service, &media, &[("Body", "")]] {
        assert_eq!(read(&text_with(more)).unwrap().authority, FieldAuthority::Certain, "{more:?}");
    }
    let ambiguous = [
        ("Body", "add Toy Story"),
        ("FromCity", "Toledo"),
        ("ProfileName", "Tom"),
        ("NewParameter", "1"),
        ("ButtonText", "Can we keep it"),
    ];
    for more in ambiguous {
        assert_eq!(read(&text_with(&[more])).unwrap().authority, FieldAuthority::Ambiguous, "{more:?}");
    }
    let missing = read(&without(text_with(&[]), "NumSegments")).unwrap();
    assert_eq!(missing.authority, FieldAuthority::Ambiguous);
}

#[test]
fn field_of_the_wrong_form_is_refused() {
    let mut doubled = text_with(&[]);
    doubled.push(("FromCity".to_owned(), "SALEM".to_owned()));
    let cases = [
        (doubled, FormFault::DoubledName),
        (text_with(&[("Can we keep it", "")]), FormFault::OddName),
        (text_with(&[("", "x")]), FormFault::OddName),
        (text_with(&[("AccountSid", "AC1123456789abcdef0123456789abcdef")]), FormFault::WrongAccount),
        (without(text_with(&[]), "AccountSid"), FormFault::MissingField),
        (without(text_with(&[]), "NumMedia"), FormFault::MissingField),
        (without(text_with(&[]), "MessageSid"), FormFault::MissingField),
        (text_with(&[("MessageSid", &format!("{SID}NumMedia0"))]), FormFault::WrongShape),
        (text_with(&[("SmsSid", OTHER_SID)]), FormFault::DifferentIds),
        (text_with(&[("SmsMessageSid", OTHER_SID)]), FormFault::DifferentIds),
        (text_with(&[("NumMedia", "1")]), FormFault::WrongMedia),
        (text_with(&[("MediaUrl0", "https://a.example/1")]), FormFault::WrongMedia),
        (text_with(&[("NumMedia", "00")]), FormFault::WrongShape),
        (text_with(&[("From", "NETFLIX")]), FormFault::WrongShape),
        (text_with(&[("To", "our number")]), FormFault::WrongShape),
        (text_with(&[("ErrorCode", "11200ErrorUrlhttps://a.example/")]), FormFault::WrongShape),
        (text_with(&[("OptOutType", "stop")]), FormFault::WrongShape),
        (text_with(&[("OptOutType", "")]), FormFault::WrongShape),
        (text_with(&[("SmsStatus", "delivered")]), FormFault::WrongShape),
        (text_with(&[("MessageStatus", "delivered")]), FormFault::WrongRoute),
    ];
    for (form, fault) in cases {
        assert_eq!(read(&form), Err(fault), "{form:?}");
    }
}

#[test]
fn callback_with_a_hidden_or_odd_field_is_refused() {
    let with = |more: &[(&str, &str)]| {
        let mut fields = BTreeMap::from(REPORT);
        fields.extend(more.iter().copied());
        pairs(&fields.into_iter().collect::<Vec<_>>())
    };
    let cases = [
        (with(&[("NumMedia", "0")]), FormFault::WrongRoute),
        (with(&[("Body", "yes")]), FormFault::WrongRoute),
        (with(&[("ChannelStatusMessage", "ErrorCode30003")]), FormFault::HiddenField),
        (with(&[("ErrorCode30003RawDlrDoneDate", "2511212058")]), FormFault::HiddenField),
        (with(&[("SmsSid", OTHER_SID)]), FormFault::DifferentIds),
        (with(&[("SmsStatus", "sent")]), FormFault::DifferentIds),
        (with(&[("MessageStatus", "sent 2")]), FormFault::WrongShape),
        (with(&[("7&n=1AccountSid", ACCOUNT)]), FormFault::OddName),
        (without(with(&[]), "To"), FormFault::MissingField),
    ];
    for (form, fault) in cases {
        assert_eq!(parse_report(&form, CallbackQuery::from_query(""), ACCOUNT), Err(fault), "{form:?}");
    }
}

#[test]
fn only_the_exact_callback_query_names_a_message() {
    let key = |query| parse_report(&pairs(&REPORT), CallbackQuery::from_query(query), ACCOUNT).unwrap().key;
    assert!(key("out=7&n=1&word=0123").is_some());
    let others = [
        "",
        "out=7&n=1",
        "out=07&n=1&word=0123",
        "n=1&out=7&word=0123",
        "out=7&n=1&word=0123&x",
        "out=7&n=1&out=8",
    ];
    for query in others {
        assert_eq!(key(query), None, "{query}");
    }
}
