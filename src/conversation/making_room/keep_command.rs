//! Parser of answers to the question about titles that could go: "keep 1 3", "keep all", "keep heat", "free 2", "kept" and
//! "unkeep 1".

use crate::conversation::grammar::keyword_grammar;
use crate::conversation::text::normalization::normalize_title;

/// Maximum number of numbers in one answer.
const MAX_NUMBERS: usize = 10;

/// Answer about titles that could go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeepCommand {
    /// Protect these titles.
    Keep(ChosenTitles),
    /// Agree that these titles may go.
    Free(ChosenTitles),
    /// List the protected titles.
    ListKept,
    /// End the protection of these titles.
    Unkeep(ChosenTitles),
}

/// Titles of the list that an answer chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenTitles {
    All,
    /// Numbers in the list, from 1.
    Numbers(Vec<u8>),
    /// Words of a title, normalized.
    Named(String),
}

/// Parses the whole of `text`, apart from courtesy, as such an answer.
pub fn parse_keep_command(text: &str) -> Option<KeepCommand> {
    let normalized = normalize_title(keyword_grammar::strip_courtesy(text));
    if matches!(normalized.as_str(), "kept" | "what is kept" | "whats kept" | "show kept" | "kept titles") {
        return Some(KeepCommand::ListKept);
    }
    let (word, rest) = normalized.split_once(' ')?;
    let build: fn(ChosenTitles) -> KeepCommand = match word {
        "keep" => KeepCommand::Keep,
        "free" => KeepCommand::Free,
        "unkeep" => KeepCommand::Unkeep,
        _ => return None,
    };
    parse_chosen(rest).map(build)
}

fn parse_chosen(words: &str) -> Option<ChosenTitles> {
    // "Keep it" and "keep them" answer a question about a deletion.
    match words {
        "" | "it" | "them" | "that" | "this" | "those" | "these" => return None,
        "all" | "everything" | "all of them" => return Some(ChosenTitles::All),
        _ => {}
    }
    let parts = words.split([' ', ',']).filter(|part| !part.is_empty() && *part != "and");
    let numbers: Option<Vec<u8>> = parts.map(|part| part.parse().ok().filter(|number| *number > 0)).collect();
    match numbers {
        Some(numbers) if (1..=MAX_NUMBERS).contains(&numbers.len()) => Some(ChosenTitles::Numbers(numbers)),
        Some(_) => None,
        None => Some(ChosenTitles::Named(words.to_owned())),
    }
}

/// Returns the index of the only title that the words name.
pub fn find_named(words: &str, titles: &[String]) -> Option<usize> {
    let normalized: Vec<String> = titles.iter().map(|title| normalize_title(title)).collect();
    let words = words.strip_prefix("the ").unwrap_or(words);
    let is_named = |title: &str| title.strip_prefix("the ").unwrap_or(title) == words;
    let exact = normalized.iter().position(|title| is_named(title));
    let starts = |title: &str| {
        let rest = title.strip_prefix("the ").unwrap_or(title).strip_prefix(words);
        rest.is_some_and(|rest| rest.starts_with(' '))
    };
    let mut similar = (0..normalized.len()).filter(|index| starts(&normalized[*index]));
    exact.or_else(|| similar.next().filter(|_| similar.next().is_none()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::grammar::confirmation_reply::{
        ConfirmationReply, ReplyLanguage, parse_confirmation_reply,
    };

    #[test]
    fn answers_choose_titles_by_number_or_name() {
        let numbers = |all: &[u8]| ChosenTitles::Numbers(all.to_vec());
        let named = |words: &str| ChosenTitles::Named(words.to_owned());
        for (text, expected) in [
            ("KEEP 1", KeepCommand::Keep(numbers(&[1]))),
            ("keep 1, 3 and 4 please", KeepCommand::Keep(numbers(&[1, 3, 4]))),
            ("Keep all!", KeepCommand::Keep(ChosenTitles::All)),
            ("keep everything", KeepCommand::Keep(ChosenTitles::All)),
            ("keep Heat", KeepCommand::Keep(named("heat"))),
            ("free 2", KeepCommand::Free(numbers(&[2]))),
            ("FREE ALL", KeepCommand::Free(ChosenTitles::All)),
            ("kept", KeepCommand::ListKept),
            ("Kept?", KeepCommand::ListKept),
            ("unkeep 1", KeepCommand::Unkeep(numbers(&[1]))),
            ("unkeep the lion king", KeepCommand::Unkeep(named("the lion king"))),
        ] {
            assert_eq!(parse_keep_command(text), Some(expected), "{text}");
        }
        for text in ["keep", "keep it", "keep them", "keeps 1", "free", "i kept it", "keep 0", ""] {
            let parsed = parse_keep_command(text);
            let is_named = matches!(parsed, Some(KeepCommand::Keep(ChosenTitles::Named(_))));
            assert!(parsed.is_none() || is_named, "{text}: {parsed:?}");
        }
    }

    #[test]
    fn no_answer_about_titles_confirms_a_deletion() {
        for text in ["keep 1", "keep all", "free 1", "free all", "keep heat", "unkeep 1", "kept"] {
            let reply = parse_confirmation_reply(text, None, &ReplyLanguage::ALL);
            assert!(
                matches!(reply, ConfirmationReply::Unrelated | ConfirmationReply::No),
                "{text}: {reply:?}"
            );
        }
    }

    #[test]
    fn named_title_is_the_only_one_that_fits() {
        let titles: Vec<String> =
            ["The Lion King", "Rocky II", "Rocky III", "Heat"].map(str::to_owned).to_vec();
        assert_eq!(find_named("lion king", &titles), Some(0));
        assert_eq!(find_named("the lion", &titles), Some(0));
        assert_eq!(find_named("rocky", &titles), None);
        assert_eq!(find_named("rocky ii", &titles), Some(1));
        assert_eq!(find_named("hea", &titles), None);
    }
}
