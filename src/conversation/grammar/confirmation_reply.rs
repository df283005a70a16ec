//! Parser of replies to the open confirmation prompt. An unclear reply is never a yes. Reactions are filtered out
//! beforehand, by module `reaction`.

use std::fmt;

use crate::conversation::text::normalization::{normalize_title, strip_article};
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
    /// "yse" is one typing error away from a yes.
    Misspelled,
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
    /// Returns whether the code has more digits than a number.
    fn is_longer_than(&self, number: &str) -> bool {
        self.digits > number.len()
    }

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
    pub const ALL: [Self; 6] =
        [Self::Spanish, Self::French, Self::German, Self::Portuguese, Self::Italian, Self::Dutch];

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
    let lexicon = ReplyLexicon(languages);
    if unpunctuated.contains(|c: char| c.is_ascii_digit()) {
        return parse_reply_with_digits(&unpunctuated, code, lexicon);
    }
    match (parse_reply_words(&unpunctuated, lexicon), code) {
        (ConfirmationReply::Yes, Some(_)) => ConfirmationReply::UnclearYes(UnclearYes::MissingCode),
        (reply, _) => reply,
    }
}

const YES_PHRASES: [&str; 38] = [
    "yes",
    "y",
    "confirm",
    "confirmed",
    "do it",
    "go ahead",
    "ok",
    "okay",
    "sure",
    "yeah",
    "yep",
    "yup",
    "yea",
    "ya",
    "yeh",
    "yah",
    "aye",
    "yessir",
    "yes sir",
    "yes maam",
    "yes ma'am",
    "sure thing",
    "go for it",
    "please do",
    "hell yes",
    "hell yeah",
    "heck yes",
    "absolutely",
    "definitely",
    "certainly",
    "of course",
    "for sure",
    "affirmative",
    "by all means",
    "i'm sure",
    "im sure",
    "i am sure",
    "correct",
];
const NO_PHRASES: [&str; 16] = [
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
    "nvm",
    "nm",
    "absolutely not",
    "definitely not",
];
/// Phrases that repeat the question. Without a prompt they are requests.
const DELETE_PHRASES: [&str; 12] = [
    "delete it",
    "remove it",
    "delete them",
    "remove them",
    "delete that",
    "remove that",
    "get rid of it",
    "get rid of them",
    "delete both",
    "remove both",
    "delete them all",
    "delete all of them",
];
/// Words that may stand between the phrases of a yes.
const CONNECTORS: [&str; 3] = ["and", "then", "just"];
const WEAK_YES: [&str; 3] = ["ok", "okay", "sure"];
const PLEASE: [&str; 3] = ["please", "pls", "plz"];
const THANKS: [&str; 4] = ["thanks", "thank you", "thx", "ty"];
/// Words that users stretch ("yesss"). None of them contains a double letter.
const STRETCHABLE_WORDS: [&str; 8] = ["yes", "yep", "yeah", "yup", "ok", "no", "nope", "nah"];
const YES_EMOJI: [char; 5] = ['👍', '👌', '✅', '🆗', '✔'];
const NO_EMOJI: [char; 4] = ['👎', '❌', '🚫', '🛑'];
const PUNCTUATION: [char; 14] =
    ['!', '.', ',', ';', ':', '~', '*', '_', '\u{2026}', ')', '(', '-', '\u{2013}', '\u{2014}'];
/// Maximum number of phrases of a yes; more of them are no clear reply.
const MAX_YES_PHRASES: usize = 3;
/// Maximum number of words of a reply; more words are a sentence.
const MAX_REPLY_WORDS: usize = 6;
/// Typing errors of a yes.
const MISSPELLED_YES: [&str; 10] = ["yse", "yez", "yed", "tes", "eys", "ues", "yrs", "yws", "yas", "yex"];

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
#[derive(Clone, Copy)]
struct ReplyLexicon<'a>(&'a [ReplyLanguage]);

impl ReplyLexicon<'_> {
    fn is_no(self, phrase: &str) -> bool {
        NO_PHRASES.contains(&phrase) || self.0.iter().any(|language| language.no_words().contains(&phrase))
    }

    /// Returns the phrases that mean yes. A word that means yes in one language and no in another counts as a no.
    fn yes_phrases(self) -> impl Iterator<Item = &'static str> {
        let foreign = self.0.iter().flat_map(|language| language.yes_words()).copied();
        YES_PHRASES.into_iter().chain(foreign.filter(move |word| !self.is_no(word)))
    }
}

/// Returns one spelling for strings that look alike: normalizes full-width letters, apostrophes and case, and removes
/// invisible characters and skin tones.
fn normalize_reply(text: &str) -> String {
    if text.is_ascii() {
        let visible = text.chars().filter(|c| !c.is_ascii_control() || matches!(c, '\n' | '\t'));
        let text: String = visible.map(|c| if c == '`' { '\'' } else { c.to_ascii_lowercase() }).collect();
        return text.trim().to_owned();
    }
    let visible = text.nfkc().filter(|&c| match get_general_category(c) {
        GeneralCategory::Format => false,
        GeneralCategory::Control => matches!(c, '\n' | '\t'),
        _ => !matches!(c, '\u{FE00}'..='\u{FE0F}' | '\u{1F3FB}'..='\u{1F3FF}'),
    });
    let text: String = visible.map(|c| if matches!(c, '’' | '‘' | '`') { '\'' } else { c }).collect();
    text.to_lowercase().trim().to_owned()
}

/// Maximum number of digits of a number that picks from a list. Two digits may be half of a code.
const MAX_LIST_NUMBER_DIGITS: usize = 1;

/// Parses a reply with digits: a yes with one number, or the number alone, answers a prompt that required a code.
fn parse_reply_with_digits(
    text: &str,
    code: Option<ConfirmationCode>,
    lexicon: ReplyLexicon<'_>,
) -> ConfirmationReply {
    let Some(code) = code else { return ConfirmationReply::Unrelated };
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    let (Some(number), None) = (numbers.next(), numbers.next()) else { return ConfirmationReply::Unrelated };
    let words = text.replace(|c: char| c.is_ascii_digit(), " ");
    if words.trim().is_empty() && code.is_longer_than(number) && number.len() <= MAX_LIST_NUMBER_DIGITS {
        // It may have been written before the prompt was read, as the answer to a list.
        return ConfirmationReply::Unrelated;
    }
    let is_yes = words.trim().is_empty() || parse_reply_words(&words, lexicon) == ConfirmationReply::Yes;
    if !is_yes {
        return ConfirmationReply::Unrelated;
    }
    if number == code.to_string() {
        ConfirmationReply::Yes
    } else {
        ConfirmationReply::UnclearYes(UnclearYes::WrongCode)
    }
}

fn parse_reply_words(text: &str, lexicon: ReplyLexicon<'_>) -> ConfirmationReply {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (words, has_thanks) = strip_courtesy(&words);
    if words.len() > MAX_REPLY_WORDS {
        return ConfirmationReply::Unrelated;
    }
    let words: Vec<&str> = words.iter().map(|word| unstretch_word(word)).collect();
    let phrase = words.join(" ");
    if lexicon.is_no(&phrase) || is_keep_phrase(&words) {
        return ConfirmationReply::No;
    }
    if words.iter().any(|word| lexicon.is_no(word)) {
        return ConfirmationReply::Unrelated;
    }
    if has_thanks && WEAK_YES.contains(&phrase.as_str()) {
        return ConfirmationReply::UnclearYes(UnclearYes::OkThanks);
    }
    if MISSPELLED_YES.contains(&phrase.as_str()) {
        return ConfirmationReply::UnclearYes(UnclearYes::Misspelled);
    }
    if is_yes_phrase(&words, lexicon) { ConfirmationReply::Yes } else { ConfirmationReply::Unrelated }
}

/// Returns the words without a leading "please" and without one "please" or "thanks" at the end, and whether the removed word was thanks.
fn strip_courtesy<'w, 'a>(words: &'w [&'a str]) -> (&'w [&'a str], bool) {
    let courtesies =
        PLEASE.map(|phrase| (phrase, false)).into_iter().chain(THANKS.map(|phrase| (phrase, true)));
    let words = match words {
        [first, rest @ ..] if PLEASE.contains(first) && !rest.is_empty() && rest != ["do"] => rest,
        all => all,
    };
    for (phrase, is_thanks) in courtesies {
        let rest_len = words.len().saturating_sub(phrase.split(' ').count());
        let (rest, end) = words.split_at(rest_len);
        if !rest.is_empty() && match_length(end, phrase).is_some() {
            return (rest, is_thanks);
        }
    }
    (words, false)
}

/// Matches "yes do it" and "go ahead and delete it": phrases of a yes or of the question, with connectors between them.
fn is_yes_phrase(words: &[&str], lexicon: ReplyLexicon<'_>) -> bool {
    let (mut rest, mut count) = (words, 0);
    while !rest.is_empty() {
        let phrase = longest_match(lexicon.yes_phrases().chain(DELETE_PHRASES), rest);
        let between = longest_match(CONNECTORS, rest).filter(|_| count > 0 && rest.len() > 1);
        let Some(length) = phrase.or(between) else { return false };
        count += usize::from(phrase.is_some());
        rest = &rest[length..];
    }
    (1..=MAX_YES_PHRASES).contains(&count)
}

/// Returns the number of words of the longest of these phrases with which `words` start.
fn longest_match(phrases: impl IntoIterator<Item = &'static str>, words: &[&str]) -> Option<usize> {
    phrases.into_iter().filter_map(|phrase| match_length(words, phrase)).max()
}

/// Returns the number of words of `phrase`, if `words` start with it.
fn match_length(words: &[&str], phrase: &str) -> Option<usize> {
    phrase
        .split(' ')
        .enumerate()
        .try_fold(0, |_, (index, part)| (words.get(index) == Some(&part)).then_some(index + 1))
}

/// Returns whether the text repeats the question of a prompt: without a prompt, it is a request.
pub fn repeats_question(text: &str) -> bool {
    let text = normalize_reply(text);
    DELETE_PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// Parses the whole of `text` as the reply to a prompt about `titles`.
pub fn parse_prompt_reply(
    text: &str,
    titles: &[String],
    code: Option<ConfirmationCode>,
    languages: &[ReplyLanguage],
) -> ConfirmationReply {
    match parse_confirmation_reply(text, code, languages) {
        ConfirmationReply::Unrelated => parse_reply_with_titles(text, titles, code, languages),
        reply => reply,
    }
}

/// Parses a reply that names the titles of the prompt, such as "yes, delete Heat". It counts as a yes if it names every
/// title, with or without its year, and nothing else.
fn parse_reply_with_titles(
    text: &str,
    titles: &[String],
    code: Option<ConfirmationCode>,
    languages: &[ReplyLanguage],
) -> ConfirmationReply {
    // The question mark and quotes would be lost by the normalization.
    if titles.is_empty() || text.contains(['?', '\n', '"', '\u{201C}', '>']) {
        return ConfirmationReply::Unrelated;
    }
    let mut rest = format!(" {} ", normalize_title(text));
    for title in titles {
        let with_year = normalize_title(title);
        let bare = normalize_title(
            title
                .strip_suffix(')')
                .and_then(|title| title.rsplit_once(" ("))
                .map_or(title.as_str(), |(bare, _)| bare),
        );
        let is_named = |name: &str| rest.contains(&format!(" {name} "));
        let names = [strip_article(&with_year), strip_article(&bare)];
        let name = if is_named(names[0]) { names[0] } else { names[1] };
        let Some(start) = rest.find(&format!(" {name} ")).filter(|_| !name.is_empty()) else {
            return ConfirmationReply::Unrelated;
        };
        rest.replace_range(start..start + name.len() + 1, "");
    }
    let is_filler =
        |word: &&str| ["the", "a", "an", "and", "both", "movie", "film", "show", "series"].contains(word);
    let words: Vec<&str> = rest.split_whitespace().filter(|word| !is_filler(word)).collect();
    // "Yes delete Heat" without the title is "yes delete it".
    let verb = words.iter().position(|word| ["delete", "remove"].contains(word));
    let mut reply = words.clone();
    if let Some(verb) = verb {
        reply.insert(verb + 1, "it");
    }
    match parse_confirmation_reply(&reply.join(" "), code, languages) {
        // A title with a verb alone is a request.
        ConfirmationReply::Yes if words.len() == usize::from(verb.is_some()) => ConfirmationReply::Unrelated,
        ConfirmationReply::No => ConfirmationReply::Unrelated,
        reply => reply,
    }
}

/// Returns the base word of a stretched word such as "yesss" and "noo"; any other word is returned unchanged.
fn unstretch_word(word: &str) -> &str {
    STRETCHABLE_WORDS.into_iter().find(|base| is_stretched(word, base)).unwrap_or(word)
}

fn is_stretched(word: &str, base: &str) -> bool {
    if word.len() < base.len() || !word.starts_with(&base[..1]) {
        return false;
    }
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

    use super::super::reaction::looks_like_reaction;
    use super::*;

    fn two_digits(number: u8) -> Option<ConfirmationCode> {
        ConfirmationCode::parse(&format!("{number:02}"))
    }

    #[track_caller]
    fn check(text: &str, code: Option<u8>, expected: ConfirmationReply) {
        assert_eq!(parse_confirmation_reply(text, code.and_then(two_digits), &[]), expected, "{text:?}");
    }

    #[test]
    fn ascii_text_is_normalized_like_other_text() {
        for c in (0_u8..128).map(char::from) {
            let (ascii, other) = (format!("a{c}B"), format!("a{c}B\u{e9}"));
            assert_eq!(normalize_reply(&ascii) + "\u{e9}", normalize_reply(&other), "{c:?}");
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
    fn number_of_a_list_is_no_wrong_code() {
        let code = ConfirmationCode::parse("4821");
        assert_eq!(parse_confirmation_reply("2", code, &[]), ConfirmationReply::Unrelated);
        let wrong = ConfirmationReply::UnclearYes(UnclearYes::WrongCode);
        assert_eq!(parse_confirmation_reply("yes 2", code, &[]), wrong);
        assert_eq!(parse_confirmation_reply("48", code, &[]), wrong);
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
    fn mixed_reply_is_unrelated() {
        for text in ["ok no", "yes don't", "thanks", "please", "y e s", "yes yes yes yes yes", ""] {
            check(text, None, ConfirmationReply::Unrelated);
        }
    }

    #[test]
    fn everyday_yes_counts_and_a_hedge_does_not() {
        for text in [
            "yea",
            "ya",
            "yeh",
            "yes sir",
            "sure thing",
            "go for it",
            "go ahead and delete it",
            "delete it",
            "please do",
            "hell yes",
            "absolutely",
            "yes i'm sure",
            "yes I’m sure",
            "yes please",
            "please delete it",
            "do it please",
        ] {
            check(text, None, ConfirmationReply::Yes);
        }
        for text in ["yse", "Yed"] {
            check(text, None, ConfirmationReply::UnclearYes(UnclearYes::Misspelled));
        }
        for text in [
            "maybe",
            "i guess",
            "yes i guess",
            "sure i guess",
            "yes but not now",
            "yes if you must",
            "i think so",
            "not sure",
            "i'm not sure",
            "yes wait",
            "yes later",
            "yes unless it is the last copy",
            "ok hold on",
            "yes and no",
            "are you sure",
            "yeah right",
            "yes maybe",
            "sure why not",
            "delete it later",
            "yes tomorrow",
            "delete the other one",
        ] {
            check(text, None, ConfirmationReply::Unrelated);
        }
        check("nvm", None, ConfirmationReply::No);
    }

    #[test]
    fn code_may_stand_in_any_yes() {
        for text in
            ["yes 4711 please", "delete them 4711", "4711 yes", "yes delete it 4711", "sure thing, 4711"]
        {
            let code = ConfirmationCode::parse("4711");
            assert_eq!(parse_confirmation_reply(text, code, &[]), ConfirmationReply::Yes, "{text:?}");
        }
        check("delete it", Some(47), ConfirmationReply::UnclearYes(UnclearYes::MissingCode));
        check("maybe 47", Some(47), ConfirmationReply::Unrelated);
    }

    #[test]
    fn yes_with_titles_names_all_of_them_and_nothing_else() {
        let parse = |text: &str, titles: &[&str]| {
            let titles: Vec<String> = titles.iter().map(|title| (*title).to_owned()).collect();
            parse_reply_with_titles(text, &titles, None, &[])
        };
        for (text, titles) in [
            ("yes delete heat", &["Heat"][..]),
            ("Yes, remove the Office please", &["The Office"]),
            ("yes heat", &["Heat"]),
            ("yes delete heat (1995)", &["Heat (1995)"]),
            ("yes delete heat", &["Heat (1995)"]),
            ("yes delete heat and dune", &["Heat", "Dune"]),
            ("go ahead and delete the movie heat", &["Heat"]),
        ] {
            assert_eq!(parse(text, titles), ConfirmationReply::Yes, "{text:?}");
        }
        for (text, titles) in [
            ("yes delete heat", &["Heat", "Dune"][..]),
            ("yes delete heat and dune", &["Heat"]),
            ("yes delete dune", &["Heat"]),
            ("delete heat", &["Heat"]),
            ("heat", &["Heat"]),
            ("yes man", &["Yes Man"]),
            ("yes delete heat?", &["Heat"]),
            ("yes delete heat later", &["Heat"]),
            ("no delete heat", &["Heat"]),
            ("yes delete heat", &[]),
        ] {
            assert_eq!(parse(text, titles), ConfirmationReply::Unrelated, "{text:?}");
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
