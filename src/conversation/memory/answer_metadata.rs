//! Metadata of stored answers, by which recall finds them, and its extraction without a model. Code, never the model,
//! decides which users may find an answer.

use crate::conversation::grammar::keyword_grammar::NOT_UNDERSTOOD;
use crate::conversation::grammar::triage::{self, TriageHint};
use crate::conversation::people::facts::UserFact;
use crate::conversation::text::message_format::asks_question;
use crate::conversation::text::normalization::{content_words, normalize_title};
use crate::conversation::turn::FallbackReply;

pub(super) const MAX_SUMMARY_CHARS: usize = 140;
pub(super) const MAX_TOPICS: usize = 5;
pub(super) const MAX_KEYWORDS: usize = 10;

/// Name of the tool whose answers are recommendations.
pub const RECOMMEND: &str = "recommend";

/// Type of a stored answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseType {
    Greeting,
    Explanation,
    Recommendation,
    Opinion,
    Action,
}

/// Metadata of a stored answer.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerMetadata {
    pub summary: String,
    pub topics: Vec<String>,
    pub keywords: Vec<String>,
    pub kind: ResponseType,
    /// Range: 0 to 1.
    pub importance: f32,
    /// True if the model considers the answer suitable for every user.
    pub is_shareable: bool,
    /// Facts about the user that the model suggests.
    pub facts: Vec<UserFact>,
}

/// Strongest effect of the turn of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnEffect {
    /// No tool was called.
    NoToolCall,
    /// Only the state of the moment was read, such as the downloads, which is soon outdated.
    ReadState,
    /// Other data was read.
    LookedUp,
    Recommended,
    /// Data was changed.
    Changed,
}

pub(super) fn truncate_line(text: &str, max_chars: usize) -> String {
    let printable: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = printable.split_whitespace().collect::<Vec<_>>().join(" ");
    line.char_indices().nth(max_chars).map_or(line.clone(), |(end, _)| line[..end].trim_end().to_owned())
}

/// Names of the tools that read the state of the moment.
pub const STATE_TOOLS: [&str; 6] =
    ["check_status", "server_status", "my_space", "upcoming", "recently_added", "why_missing"];

/// Returns whether an answer is worth indexing. Any change and any recommendation is. Answers to greetings, thanks and
/// a bare yes or no are not, nor are questions and reports about the state of the moment.
pub fn is_worth_indexing(question: &str, answer: &str, effect: TurnEffect) -> bool {
    let has_content =
        !content_words(question).is_empty() && triage::triage_hint(question) != TriageHint::SmallTalk;
    match effect {
        TurnEffect::Changed | TurnEffect::Recommended => true,
        TurnEffect::ReadState => false,
        TurnEffect::LookedUp | TurnEffect::NoToolCall => has_content && !asks_question(answer),
    }
}

/// Returns whether an answer reports the progress of a download.
pub fn is_progress_report(answer: &str) -> bool {
    let mut parts = answer.split('%');
    parts.next_back();
    parts.any(|before| before.ends_with(|last: char| last.is_ascii_digit()))
        || ["downloading", "min left", "h left", "stuck"].iter().any(|word| answer.contains(word))
}

/// Returns whether an answer contains more than a fallback reply.
pub fn is_informative(answer: &str) -> bool {
    !answer.contains(NOT_UNDERSTOOD)
        && !FallbackReply::ALL.iter().any(|fallback| answer.ends_with(fallback.text()))
}

/// Returns whether a question is understandable without its context: "2" and "yes" are not, "what can you do" is.
pub fn is_meaningful_question(question: &str) -> bool {
    let has_content_word = content_words(question).iter().any(|word| word.chars().any(char::is_alphabetic));
    has_content_word
        || normalize_title(question).split(' ').filter(|word| word.chars().any(char::is_alphabetic)).count()
            >= 3
}

/// Extracts the metadata of an answer without a model.
pub fn extract_without_model(question: &str, answer: &str, effect: TurnEffect) -> AnswerMetadata {
    let (kind, importance) = match effect {
        TurnEffect::Changed => (ResponseType::Action, 0.6),
        TurnEffect::Recommended => (ResponseType::Recommendation, 0.6),
        TurnEffect::ReadState | TurnEffect::LookedUp | TurnEffect::NoToolCall => {
            (ResponseType::Explanation, 0.5)
        }
    };
    let mut keywords = content_words(question);
    for word in content_words(answer) {
        if !keywords.contains(&word) {
            keywords.push(word);
        }
    }
    keywords.truncate(MAX_KEYWORDS);
    let end = answer.find(['\n', '!', '?']).unwrap_or(answer.len());
    let sentence = answer[..end].split(". ").next().unwrap_or(answer);
    AnswerMetadata {
        summary: truncate_line(sentence, MAX_SUMMARY_CHARS),
        topics: find_titles(answer),
        keywords,
        kind,
        importance,
        is_shareable: false,
        facts: Vec::new(),
    }
}

/// Finds groups of words that look like titles: at least two consecutive capitalized words, or one with a year after
/// it.
fn find_titles(text: &str) -> Vec<String> {
    let mut titles: Vec<String> = Vec::new();
    let mut group: Vec<&str> = Vec::new();
    for word in text.split_whitespace().chain([""]) {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let is_capitalized = bare.starts_with(|c: char| c.is_uppercase());
        if is_capitalized {
            group.push(bare);
        }
        let ends_group = !is_capitalized || word.ends_with(['.', ',', ':', ';', '!', '?']);
        if ends_group {
            let is_year =
                word.starts_with('(') && bare.len() == 4 && bare.bytes().all(|b| b.is_ascii_digit());
            let title = group.join(" ");
            let is_new = !title.is_empty() && !titles.contains(&title);
            if is_new && (group.len() > 1 || is_year) && titles.len() < MAX_TOPICS {
                titles.push(title);
            }
            group.clear();
        }
    }
    titles
}

/// Returns whether an answer may be proposed to an admin as a shared answer for all users: its turn called no tool, and
/// question and answer contain no digits, no addresses and no names of users.
pub fn may_be_shared(question: &str, answer: &str, effect: TurnEffect, user_names: &[String]) -> bool {
    let text = format!(" {} {} ", normalize_title(question), normalize_title(answer));
    let has_digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let has_user_name = user_names
        .iter()
        .flat_map(|name| normalize_title(name).split(' ').map(str::to_owned).collect::<Vec<_>>())
        .any(|name| name.len() > 1 && text.contains(&format!(" {name} ")));
    let has_address = [question, answer].iter().any(|text| text.contains(['@', '/', '\\']));
    effect == TurnEffect::NoToolCall && !has_digits && !has_user_name && !has_address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_extracted_without_a_model() {
        let metadata = extract_without_model(
            "recommend something for tonight",
            "Slow Horses and The Bear (2022) fit you. Want one?",
            TurnEffect::Recommended,
        );
        assert_eq!(metadata.summary, "Slow Horses and The Bear (2022) fit you");
        assert_eq!(metadata.topics, ["Slow Horses", "The Bear"]);
        assert_eq!(metadata.keywords, ["recommend", "tonight", "slow", "horses", "bear", "2022", "fit"]);
        assert_eq!(metadata.kind, ResponseType::Recommendation);
    }

    #[test]
    fn small_talk_is_indexed_only_after_an_effect() {
        for (question, effect, expected) in [
            ("hi", TurnEffect::NoToolCall, false),
            ("thanks!", TurnEffect::NoToolCall, false),
            ("yes", TurnEffect::NoToolCall, false),
            ("yes", TurnEffect::Changed, true),
            ("2", TurnEffect::Changed, true),
            ("what is dune about", TurnEffect::LookedUp, true),
            ("is dune done yet", TurnEffect::ReadState, false),
        ] {
            assert_eq!(is_worth_indexing(question, "Fine.", effect), expected, "{question}");
        }
        assert!(!is_worth_indexing("get me dune", "Which one?", TurnEffect::LookedUp));
    }

    #[test]
    fn number_alone_is_not_a_meaningful_question() {
        assert!(
            !is_meaningful_question("2")
                && !is_meaningful_question("yes")
                && !is_meaningful_question("")
                && is_meaningful_question("dune")
        );
        assert!(is_meaningful_question("what can you do"));
    }

    #[test]
    fn answers_about_users_are_not_shared() {
        let names = ["Ann Lee".to_owned()];
        let is_allowed =
            |question: &str, answer: &str, effect| may_be_shared(question, answer, effect, &names);
        assert!(is_allowed("where do i watch it", "Open Plex on your TV.", TurnEffect::NoToolCall));
        assert!(!is_allowed("where do i watch it", "Open Plex on your TV.", TurnEffect::LookedUp));
        assert!(!is_allowed("where does Ann watch", "In Plex.", TurnEffect::NoToolCall));
        assert!(!is_allowed("when", "At 10.", TurnEffect::NoToolCall));
        assert!(!is_allowed("where", "At http://plex.local/web.", TurnEffect::NoToolCall));
    }
}
