//! Triage: the decision whether a message needs an answer. Thanks and bare emoji need none; if in doubt, a message gets
//! one.

use super::keyword_grammar;
use super::requests::parser::parse_line;
use super::requests::request::Request;
use crate::conversation::text::normalization::normalize_title;

/// Decision whether a message gets an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriageDecision {
    Answer,
    /// The message is only stored: the party that submitted it answers it elsewhere.
    NoAnswer,
}

/// Level of triage: the messages that may stay unanswered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriageLevel {
    /// None.
    Off,
    /// Messages that are obviously small talk.
    Heuristic,
    /// Also the messages that the model classifies as small talk.
    Ai,
}

/// Hint from the words of a message alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriageHint {
    Respond,
    /// Thanks, an emoji, a laugh.
    SmallTalk,
    None,
}

/// Reply of the model for a message that needs no answer; any other reply means that the message needs one.
pub const SKIP_REPLY: &str = "SKIP";

/// System prompt of the call that asks the model whether a message needs an answer.
pub const TRIAGE_INSTRUCTIONS: &str = "\
You see the last message of an assistant for a home media server and the text that its user sent after it. Decide \
whether the text wants any answer or action. Thanks, laughter, praise and remarks to nobody want none. Requests, \
questions, titles, complaints and anything unclear want one. Reply with one word: RESPOND or SKIP.";

/// Addition to [`TRIAGE_INSTRUCTIONS`] for a text in a group chat that nobody addressed to the assistant.
pub const UNADDRESSED_INSTRUCTIONS: &str = " The text is from a group chat and was not addressed to the assistant: \
reply RESPOND only if it asks for a movie or show to be found, added, removed or explained, and SKIP if you are unsure.";

/// Classifies a message by its words alone.
pub fn triage_hint(text: &str) -> TriageHint {
    let has_words = text.chars().any(char::is_alphanumeric);
    if !has_words {
        // "?" is a command; other messages without a letter or digit are emoji and dots.
        return if text.contains('?') { TriageHint::Respond } else { TriageHint::SmallTalk };
    }
    let normalized = normalize_title(text);
    let words: Vec<&str> = normalized.split(' ').collect();
    let is_filler_or_courtesy = |word: &&str| FILLERS.contains(word) || is_courtesy(word);
    if !text.contains('?')
        && words.len() <= MAX_COURTESY_WORDS
        && words.iter().any(|word| is_courtesy(word))
        && words.iter().all(is_filler_or_courtesy)
    {
        return TriageHint::SmallTalk;
    }
    let needs_reply = text.contains('?')
        || words.len() > MAX_REMARK_WORDS
        || text.chars().any(|c| c.is_ascii_digit())
        || keyword_grammar::parse_command(text).is_some()
        || words.iter().any(|word| REQUEST_WORDS.contains(word))
        || parse_line(text).requests.iter().any(|request| *request != Request::Thanks);
    if needs_reply { TriageHint::Respond } else { TriageHint::None }
}

/// Maximum number of words of a message that is only a courtesy.
const MAX_COURTESY_WORDS: usize = 7;
/// Maximum number of words of a remark; a longer message needs a reply.
const MAX_REMARK_WORDS: usize = 14;

const COURTESIES: [&str; 34] = [
    "thanks",
    "thank",
    "thx",
    "thnx",
    "ty",
    "tysm",
    "tyvm",
    "cheers",
    "ok",
    "okay",
    "okey",
    "k",
    "kk",
    "cool",
    "great",
    "nice",
    "awesome",
    "perfect",
    "amazing",
    "excellent",
    "sweet",
    "yay",
    "wow",
    "lol",
    "lmao",
    "rofl",
    "haha",
    "hehe",
    "gotcha",
    "alright",
    "gracias",
    "merci",
    "danke",
    "welcome",
];

/// Words that may accompany a courtesy without adding a request.
const FILLERS: [&str; 36] = [
    "you", "u", "so", "much", "very", "a", "lot", "ton", "bunch", "got", "it", "sounds", "good", "thats",
    "that", "s", "is", "all", "again", "man", "dude", "mate", "buddy", "the", "best", "are", "youre", "oh",
    "ah", "well", "done", "for", "now", "just", "really", "and",
];

/// Words that indicate a request.
const REQUEST_WORDS: [&str; 24] = [
    "add", "get", "find", "search", "download", "remove", "delete", "want", "need", "can", "could", "please",
    "pls", "what", "whats", "when", "where", "which", "who", "why", "how", "is", "are", "do",
];

/// Returns whether the word is a courtesy, possibly stretched: "thankss", "hahahaha", "cooool".
fn is_courtesy(word: &str) -> bool {
    COURTESIES.iter().any(|courtesy| collapse_repeats(courtesy).eq(collapse_repeats(word)))
        || (word.len() >= 4 && word.chars().all(|c| matches!(c, 'h' | 'a')))
        || (word.len() >= 4 && word.chars().all(|c| matches!(c, 'h' | 'e')) && word.contains('h'))
}

/// Returns the letters of the word, with each run of a letter reduced to one letter.
fn collapse_repeats(word: &str) -> impl Iterator<Item = char> {
    let mut last = None;
    word.chars().filter(move |letter| last.replace(*letter) != Some(*letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(texts: &[&str], expected: TriageHint) {
        for text in texts {
            assert_eq!(triage_hint(text), expected, "{text:?}");
        }
    }

    #[test]
    fn thanks_laughter_and_emoji_are_small_talk() {
        check(
            &[
                "thanks",
                "Thanks!",
                "thank you so much",
                "ok",
                "OK cool",
                "ok thanks",
                "thx 🙏",
                "👍",
                "❤️❤️",
                "🎉!!",
                "...",
                "lol",
                "hahahaha",
                "cooool",
                "Great, thanks a lot",
                "awesome!!",
                "perfect",
                "got it thanks",
                "thankssss man",
                "Danke",
            ],
            TriageHint::SmallTalk,
        );
    }

    #[test]
    fn requests_questions_and_long_messages_need_a_reply() {
        check(
            &[
                "?",
                "add dune",
                "thanks, add heat too",
                "is it ready?",
                "what about dune",
                "can you get heat",
                "2",
                "status",
                "ok and dune 2",
                "I want the new one",
                "thanks?",
                "👍?",
            ],
            TriageHint::Respond,
        );
    }

    #[test]
    fn ambiguous_messages_have_no_hint() {
        check(&["the bear", "that movie was fun", "no way", "yes", "good", "we loved it"], TriageHint::None);
    }
}
