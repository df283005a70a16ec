//! Parser of replies to the open confirmation prompt. An unclear reply is never a yes. Reactions are filtered out
//! beforehand, by module `reaction`.

use std::fmt;

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::UnicodeNormalization;

/// Meaning of a message as the reply to a confirmation prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfirmationReply {
    Yes,
    No,
    /// A reply that resembles a yes but does not count as one: the confirmation prompt is repeated.
    UnclearYes(UnclearYes),
    /// Not a reply to the prompt.
    Unrelated,
}

/// Reason why a reply that resembles a yes does not count as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnclearYes {
    /// "ok thanks" may only acknowledge the prompt.
    OkThanks,
    ThumbsUp,
    MissingCode,
    WrongCode,
}

/// Code that the confirming reply must contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfirmationCode {
    number: u16,
    digits: usize,
}

impl ConfirmationCode {
    /// Parses four digits, as codes are generated, or the two or three digits of an older or a test prompt; returns
    /// `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let is_code = matches!(text.len(), 2..=4) && text.bytes().all(|byte| byte.is_ascii_digit());
        Some(Self { number: text.parse().ok().filter(|_| is_code)?, digits: text.len() })
    }
}

impl fmt::Display for ConfirmationCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0width$}", self.number, width = self.digits)
    }
}

/// Language whose words are accepted in addition to the English words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyLanguage {
    Spanish,
    French,
    German,
    Portuguese,
    Italian,
    Dutch,
}

impl ReplyLanguage {
    /// Parses a two-letter code such as `es`.
    pub fn parse(code: &str) -> Option<Self> {
        match code {
            "es" => Some(Self::Spanish),
            "fr" => Some(Self::French),
            "de" => Some(Self::German),
            "pt" => Some(Self::Portuguese),
            "it" => Some(Self::Italian),
            "nl" => Some(Self::Dutch),
            _ => None,
        }
    }

    fn yes_words(self) -> &'static [&'static str] {
        match self {
            Self::Spanish => &["si", "sí", "vale", "claro"],
            Self::French => &["oui", "ouais", "d'accord"],
            Self::German => &["ja", "jawohl"],
            Self::Portuguese => &["sim"],
            Self::Italian => &["sì", "si"],
            Self::Dutch => &["ja"],
        }
    }

    fn no_words(self) -> &'static [&'static str] {
        match self {
            Self::Spanish => &["no", "cancelar"],
            Self::French => &["non", "annuler"],
            Self::German => &["nein", "abbrechen"],
            Self::Portuguese => &["não", "nao"],
            Self::Italian => &["no", "annulla"],
            Self::Dutch => &["nee"],
        }
    }
}

/// Parses the whole of `text` as the reply to a prompt that required `code`, if any.
pub fn parse_confirmation_reply(
    text: &str,
    code: Option<ConfirmationCode>,
    languages: &[ReplyLanguage],
) -> ConfirmationReply {
    let text = normalize_reply(text);
    let is_quote = |c| matches!(c, '\u{201C}' | '\u{201D}' | '\u{201E}' | '«' | '»' | '"');
    if text.is_empty() || text.starts_with('>') || text.contains(|c| is_quote(c) || c == '?' || c == '\n') {
        return ConfirmationReply::Unrelated;
    }
    if text.chars().all(|c| c.is_whitespace() || YES_EMOJI.contains(&c)) {
        return ConfirmationReply::UnclearYes(UnclearYes::ThumbsUp);
    }
    if text.chars().all(|c| c.is_whitespace() || NO_EMOJI.contains(&c)) {
        return ConfirmationReply::No;
    }
    let unpunctuated: String = text
        .chars()
        .filter(|c| !YES_EMOJI.contains(c))
        .map(|c| if PUNCTUATION.contains(&c) { ' ' } else { c })
        .collect();
    let lexicon = ReplyLexicon::from_languages(languages);
    if unpunctuated.contains(|c: char| c.is_ascii_digit()) {
        return parse_reply_with_digits(&unpunctuated, code, &lexicon);
    }
    match (parse_reply_words(&unpunctuated, &lexicon), code) {
        (ConfirmationReply::Yes, Some(_)) => ConfirmationReply::UnclearYes(UnclearYes::MissingCode),
        (reply, _) => reply,
    }
}

const YES_PHRASES: [&str; 12] =
    ["yes", "y", "confirm", "confirmed", "do it", "go ahead", "ok", "okay", "sure", "yeah", "yep", "yup"];
const NO_PHRASES: [&str; 12] = [
    "no",
    "n",
    "cancel",
    "stop",
    "nevermind",
    "never mind",
    "nah",
    "nope",
    "dont",
    "don't",
    "do not",
    "no way",
];
/// Phrases that may accompany a yes, but do not count as a yes alone.
const DELETE_PHRASES: [&str; 4] = ["delete it", "remove it", "delete them", "remove them"];
const WEAK_YES: [&str; 3] = ["ok", "okay", "sure"];
const PLEASE: [&str; 3] = ["please", "pls", "plz"];
const THANKS: [&str; 4] = ["thanks", "thank you", "thx", "ty"];
/// Words that users stretch ("yesss"). None of them contains a double letter.
const STRETCHABLE_WORDS: [&str; 8] = ["yes", "yep", "yeah", "yup", "ok", "no", "nope", "nah"];
const YES_EMOJI: [char; 5] = ['👍', '👌', '✅', '🆗', '✔'];
const NO_EMOJI: [char; 4] = ['👎', '❌', '🚫', '🛑'];
const PUNCTUATION: [char; 14] =
    ['!', '.', ',', ';', ':', '~', '*', '_', '\u{2026}', ')', '(', '-', '\u{2013}', '\u{2014}'];
/// Maximum number of words of a reply; more words are a sentence.
const MAX_REPLY_WORDS: usize = 4;

/// Phrases that retract the request, although none of their words is a no alone.
const RETRACTIONS: [&str; 6] = ["forget it", "cancel it", "cancel that", "stop it", "stop that", "nvm"];
/// Pronouns that a request to keep the items may name.
const KEEP_OBJECTS: [&str; 7] = ["it", "them", "that", "this", "those", "both", "all"];

/// Returns whether the whole of `text` asks to keep the items of the prompt, other than by a plain no.
pub fn asks_to_keep(text: &str) -> bool {
    let text = normalize_reply(text);
    let unpunctuated: String = text.chars().map(|c| if PUNCTUATION.contains(&c) { ' ' } else { c }).collect();
    let words: Vec<&str> = unpunctuated.split_whitespace().collect();
    let (words, _) = strip_courtesy(&words);
    !text.contains(['?', '\n']) && is_keep_phrase(words)
}

/// Matches "keep it", "no, leave them", "please don't delete it" and "forget it".
fn is_keep_phrase(words: &[&str]) -> bool {
    let is_object = |rest: &[&str]| matches!(rest, [object] if KEEP_OBJECTS.contains(object));
    let words = match words {
        [first, rest @ ..] if PLEASE.contains(first) || matches!(*first, "no" | "nope" | "nah") => rest,
        all => all,
    };
    match words {
        ["don't" | "dont", "delete" | "remove", rest @ ..]
        | ["do", "not", "delete" | "remove", rest @ ..]
        | ["keep", rest @ ..] => rest.is_empty() || is_object(rest),
        ["leave", rest @ ..] => is_object(rest),
        _ => RETRACTIONS.contains(&words.join(" ").as_str()),
    }
}

/// Words and phrases that mean yes or no in the enabled languages.
struct ReplyLexicon {
    yes: Vec<&'static str>,
    no: Vec<&'static str>,
}

impl ReplyLexicon {
    /// Builds the lexicon. A word that means yes in one language and no in another counts as a no.
    fn from_languages(languages: &[ReplyLanguage]) -> Self {
        let no: Vec<_> = NO_PHRASES
            .into_iter()
            .chain(languages.iter().flat_map(|language| language.no_words()).copied())
            .collect();
        let yes = YES_PHRASES
            .into_iter()
            .chain(languages.iter().flat_map(|language| language.yes_words()).copied());
        Self { yes: yes.filter(|word| !no.contains(word)).collect(), no }
    }
}

/// Returns one spelling for strings that look alike: normalizes full-width letters, apostrophes and case, and removes
/// invisible characters and skin tones.
fn normalize_reply(text: &str) -> String {
    let visible = text.nfkc().filter(|&c| match get_general_category(c) {
        GeneralCategory::Format => false,
        GeneralCategory::Control => matches!(c, '\n' | '\t'),
        _ => !matches!(c, '\u{FE00}'..='\u{FE0F}' | '\u{1F3FB}'..='\u{1F3FF}'),
    });
    let text: String = visible.map(|c| if matches!(c, '’' | '‘' | '`') { '\'' } else { c }).collect();
    text.to_lowercase().trim().to_owned()
}

/// Parses a reply with digits: a yes with one number, or the number alone, answers a prompt that required a code.
fn parse_reply_with_digits(
    text: &str,
    code: Option<ConfirmationCode>,
    lexicon: &ReplyLexicon,
) -> ConfirmationReply {
    let Some(code) = code else { return ConfirmationReply::Unrelated };
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    let (Some(number), None) = (numbers.next(), numbers.next()) else { return ConfirmationReply::Unrelated };
    let words = text.replace(|c: char| c.is_ascii_digit(), " ");
    let words = words.split_whitespace().map(unstretch_word).collect::<Vec<_>>().join(" ");
    if !words.is_empty() && !lexicon.yes.contains(&words.as_str()) {
        return ConfirmationReply::Unrelated;
    }
    if number == code.to_string() {
        ConfirmationReply::Yes
    } else {
        ConfirmationReply::UnclearYes(UnclearYes::WrongCode)
    }
}

fn parse_reply_words(text: &str, lexicon: &ReplyLexicon) -> ConfirmationReply {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (words, has_thanks) = strip_courtesy(&words);
    if words.len() > MAX_REPLY_WORDS {
        return ConfirmationReply::Unrelated;
    }
    let words: Vec<&str> = words.iter().map(|word| unstretch_word(word)).collect();
    let phrase = words.join(" ");
    if lexicon.no.contains(&phrase.as_str()) || is_keep_phrase(&words) {
        return ConfirmationReply::No;
    }
    if words.iter().any(|word| lexicon.no.contains(word)) {
        return ConfirmationReply::Unrelated;
    }
    if has_thanks && WEAK_YES.contains(&phrase.as_str()) {
        return ConfirmationReply::UnclearYes(UnclearYes::OkThanks);
    }
    if is_yes_phrase(&words, lexicon) { ConfirmationReply::Yes } else { ConfirmationReply::Unrelated }
}

/// Returns the words without one "please" or "thanks" at the end, and whether the removed word was thanks.
fn strip_courtesy<'w, 'a>(words: &'w [&'a str]) -> (&'w [&'a str], bool) {
    let courtesies =
        PLEASE.map(|phrase| (phrase, false)).into_iter().chain(THANKS.map(|phrase| (phrase, true)));
    for (phrase, is_thanks) in courtesies {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        if let Some(rest) = words.strip_suffix(phrase.as_slice())
            && !rest.is_empty()
        {
            return (rest, is_thanks);
        }
    }
    (words, false)
}

/// Matches "yes do it" and "yes delete it": a sequence of such phrases, at least one of which is a yes.
fn is_yes_phrase(words: &[&str], lexicon: &ReplyLexicon) -> bool {
    let matched_len = |phrases: &[&str], words: &[&str]| {
        phrases
            .iter()
            .map(|phrase| phrase.split(' ').collect::<Vec<_>>())
            .find_map(|phrase| words.starts_with(&phrase).then_some(phrase.len()))
    };
    let (mut rest, mut found_yes) = (words, false);
    while !rest.is_empty() {
        let length = if let Some(length) = matched_len(&lexicon.yes, rest) {
            found_yes = true;
            length
        } else if let Some(length) = matched_len(&DELETE_PHRASES, rest) {
            length
        } else {
            return false;
        };
        rest = &rest[length..];
    }
    found_yes
}

/// Returns the base word of a stretched word such as "yesss" and "noo"; any other word is returned unchanged.
fn unstretch_word(word: &str) -> &str {
    STRETCHABLE_WORDS.into_iter().find(|base| is_stretched(word, base)).unwrap_or(word)
}

fn is_stretched(word: &str, base: &str) -> bool {
    let mut runs: Vec<(char, usize)> = Vec::new();
    for letter in word.chars() {
        match runs.last_mut() {
            Some((last, count)) if *last == letter => *count += 1,
            _ => runs.push((letter, 1)),
        }
    }
    let stretched_at_end = runs.iter().rev().skip(1).all(|&(_, count)| count == 1);
    let stretched_slightly =
        runs.iter().all(|&(_, count)| count <= 4) && word.chars().count() <= base.chars().count() + 4;
    runs.iter().map(|&(letter, _)| letter).eq(base.chars()) && (stretched_at_end || stretched_slightly)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
    use serde::Deserialize;

    use super::super::reaction::looks_like_reaction;
    use super::*;

    fn two_digits(number: u8) -> Option<ConfirmationCode> {
        ConfirmationCode::parse(&format!("{number:02}"))
    }

    #[track_caller]
    fn check(text: &str, code: Option<u8>, expected: ConfirmationReply) {
        assert_eq!(parse_confirmation_reply(text, code.and_then(two_digits), &[]), expected, "{text:?}");
    }

    #[derive(Deserialize)]
    struct RecordedReply {
        text: String,
        code: Option<u8>,
        langs: Vec<String>,
        kind: String,
    }

    #[test]
    fn every_recorded_reply_is_parsed() {
        let cases: Vec<RecordedReply> =
            serde_json::from_str(include_str!("../../../tests/data/confirm_cases.json")).unwrap();
        for case in cases {
            let code = case.code.and_then(two_digits);
            let languages: Vec<_> = case.langs.iter().filter_map(|code| ReplyLanguage::parse(code)).collect();
            let kind = match parse_confirmation_reply(&case.text, code, &languages) {
                _ if looks_like_reaction(&case.text) => "REACTION",
                ConfirmationReply::Yes => "CONFIRM",
                ConfirmationReply::No => "DENY",
                ConfirmationReply::UnclearYes(_) => "SOFT",
                ConfirmationReply::Unrelated => "OTHER",
            };
            assert_eq!(kind, case.kind, "{:?}", case.text);
        }
    }

    #[test]
    fn yes_without_the_right_code_is_unclear() {
        check("yes", Some(47), ConfirmationReply::UnclearYes(UnclearYes::MissingCode));
        check("yes delete them", Some(47), ConfirmationReply::UnclearYes(UnclearYes::MissingCode));
        check("yes 48", Some(47), ConfirmationReply::UnclearYes(UnclearYes::WrongCode));
        check("yes 7", Some(7), ConfirmationReply::UnclearYes(UnclearYes::WrongCode));
    }

    #[test]
    fn code_alone_or_after_a_yes_is_a_yes() {
        for text in ["47", "47.", "yes 47", "YES47", "yess 47!", "ok, 47", "４７"] {
            check(text, Some(47), ConfirmationReply::Yes);
        }
        check("yes 07", Some(7), ConfirmationReply::Yes);
        check("00", Some(0), ConfirmationReply::Yes);
    }

    #[test]
    fn code_is_compared_with_all_digits() {
        for (code, right_reply, wrong_reply) in
            [("0047", "yes 0047", "yes 47"), ("47", "47", "yes 0047"), ("4821", "4821", "482")]
        {
            let code = ConfirmationCode::parse(code);
            assert_eq!(
                parse_confirmation_reply(right_reply, code, &[]),
                ConfirmationReply::Yes,
                "{right_reply:?}"
            );
            assert_eq!(
                parse_confirmation_reply(wrong_reply, code, &[]),
                ConfirmationReply::UnclearYes(UnclearYes::WrongCode),
                "{wrong_reply:?}"
            );
        }
        assert_eq!(["", "7", "48213", "4 21", "+421", "-821"].map(ConfirmationCode::parse), [None; 6]);
        assert_eq!(ConfirmationCode::parse("0047").map(|code| code.to_string()).as_deref(), Some("0047"));
    }

    #[test]
    fn unrequested_number_is_unrelated() {
        check("yes 47", None, ConfirmationReply::Unrelated);
        check("47", None, ConfirmationReply::Unrelated);
        check("no 47", Some(47), ConfirmationReply::Unrelated);
        check("4 7", Some(47), ConfirmationReply::Unrelated);
        check("season 47", Some(47), ConfirmationReply::Unrelated);
    }

    #[test]
    fn acknowledgments_and_emoji_are_unclear() {
        for text in ["ok thanks", "Okay, thank you!", "sure thx"] {
            check(text, None, ConfirmationReply::UnclearYes(UnclearYes::OkThanks));
        }
        for text in ["👍", "👍🏽👍🏽", "✅", "✔️"] {
            check(text, None, ConfirmationReply::UnclearYes(UnclearYes::ThumbsUp));
        }
    }

    #[test]
    fn no_needs_no_code_and_allows_any_spelling() {
        for text in ["no", "NO.", "noooo", "don’t", "Never mind!", "no thank you", "👎👎", "stop"] {
            check(text, Some(47), ConfirmationReply::No);
        }
    }

    #[test]
    fn keep_request_is_a_no_only_as_whole_reply() {
        for text in [
            "keep it",
            "Keep them!",
            "don\u{2019}t delete it",
            "dont remove that",
            "no, keep it",
            "nvm",
            "Forget it.",
        ] {
            assert!(asks_to_keep(text), "{text:?}");
            check(text, None, ConfirmationReply::No);
            check(text, Some(47), ConfirmationReply::No);
        }
        for text in [
            "no",
            "keep season 1",
            "keep it?",
            "keep the files",
            "don't delete season 2",
            "leave",
            "yes keep it",
        ] {
            assert!(!asks_to_keep(text), "{text:?}");
        }
        for text in ["keep season 1", "don't delete season 2", "yes keep it", "keep it 47"] {
            check(text, Some(47), ConfirmationReply::Unrelated);
        }
    }

    #[test]
    fn bare_delete_phrase_or_mixed_reply_is_unrelated() {
        for text in
            ["delete it", "ok no", "yes don't", "thanks", "please", "y e s", "yes yes yes yes yes", ""]
        {
            check(text, None, ConfirmationReply::Unrelated);
        }
    }

    #[test]
    fn foreign_yes_and_no_are_recognized() {
        let all = ["es", "fr", "de", "pt", "it", "nl"].map(|code| ReplyLanguage::parse(code).unwrap());
        for (text, expected) in [
            ("ja", ConfirmationReply::Yes),
            ("no", ConfirmationReply::No),
            ("Nee", ConfirmationReply::No),
            ("D'accord", ConfirmationReply::Yes),
        ] {
            assert_eq!(parse_confirmation_reply(text, None, &all), expected, "{text:?}");
        }
        assert_eq!(ReplyLanguage::parse("en"), None);
    }

    /// Replies that combine words of common replies with words that invalidate a yes.
    fn reply_text() -> impl Strategy<Value = String> {
        let words = [
            "yes",
            "Yes!",
            "ok",
            "do it",
            "sure",
            "please",
            "thanks",
            "y",
            "\u{1F44D}",
            "42",
            "07",
            "7",
            "si",
            "ja",
            "no",
            "not",
            "don't",
            "Don\u{2019}t",
            "never",
            "cancel",
            "n",
            "stop",
            "wait",
            "?",
            "\u{201C}",
            "delete it",
            "\u{200B}",
        ];
        proptest::collection::vec(proptest::sample::select(words.to_vec()), 1..6)
            .prop_map(|words| words.join(" "))
    }

    proptest! {
        #[test]
        fn yes_contains_no_refusal_and_ignores_case(
            text in prop_oneof![reply_text(), any::<String>()],
            code in prop_oneof![Just(None), Just(two_digits(42)), Just(two_digits(7))],
        ) {
            let all = ["es", "fr", "de", "pt", "it", "nl"].map(|code| ReplyLanguage::parse(code).unwrap());
            for languages in [&[][..], &all] {
                let reply = parse_confirmation_reply(&text, code, languages);
                assert_eq!(parse_confirmation_reply(&text.to_ascii_uppercase(), code, languages), reply);
                assert_eq!(parse_confirmation_reply(&format!(" {text} "), code, languages), reply);
                if reply == ConfirmationReply::Yes {
                    let no_words = ["no", "not", "don't", "don\u{2019}t", "never", "cancel", "n", "stop", "wait"];
                    let lower = text.to_lowercase();
                    assert!(!lower.split_whitespace().any(|word| no_words.contains(&word)), "{text:?}");
                    assert!(!text.contains(['?', '\u{201C}']), "{text:?}");
                    assert!(code.is_some() || !text.contains("42"), "{text:?}");
                    assert!(!looks_like_reaction(&text), "{text:?}");
                }
            }
        }

        #[test]
        fn yes_has_exactly_the_code_and_no_works_without_it(
            text in prop_oneof![reply_text(), any::<String>(), "(yes|ok|no)? ?[0-9]{0,3} ?(yes|[0-9]{1,2})?"],
            code in prop_oneof![Just(42), Just(7), 0..100_u8],
        ) {
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            let without_code = parse_confirmation_reply(&text, None, &[]);
            assert!(without_code != ConfirmationReply::Yes || digits.is_empty(), "{text:?}");
            let with_code = parse_confirmation_reply(&text, two_digits(code), &[]);
            if with_code == ConfirmationReply::Yes {
                // Digits of other scripts count as digits, but are missing from `digits`.
                let expected = format!("{code:02}");
                assert!(if text.is_ascii() { digits == expected } else { expected.contains(&digits) }, "{text:?} for {expected}");
                assert_ne!(parse_confirmation_reply(&text, two_digits((code + 1) % 100), &[]), ConfirmationReply::Yes, "{text:?} with any code");
            }
            assert!(with_code != ConfirmationReply::No || without_code == ConfirmationReply::No, "{text:?}");
        }
    }
}
