//! Formatting of tool results: cleaning of text from servers, truncation of lists, and titles and sizes for the user.

use serde_json::{Value, json};
use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::ToolError;
use crate::conversation::text::title::{first_line, format_title};
use crate::conversation::transcript::CallFailure;

pub const MAX_RESULTS: usize = 5;
/// Key in a result that marks the title for which the queried name is an alias of the user.
pub const ALIAS_KEY: &str = "meant";
const MAX_RESULT_CHARS: usize = 4_000;
const MAX_TITLE_CHARS: usize = 100;
/// Maximum number of titles in one sentence for the user.
const MAX_LISTED: usize = 10;

impl From<CallFailure> for ToolError {
    fn from(failure: CallFailure) -> Self {
        Self::CallFailed(failure)
    }
}

/// Builds the list of the first results, at most 5 and at most 4,000 characters, with the total and, if some are left
/// out, a note with `narrowing_hint`.
pub fn list_results(results: Vec<Value>, narrowing_hint: &str) -> Value {
    let total = results.len();
    list_first_results(results, total, narrowing_hint)
}

/// Returns the number of results before a page, from 1.
pub fn page_start(page: Option<usize>) -> usize {
    page.unwrap_or(1).saturating_sub(1) * MAX_RESULTS
}

/// Builds the list like [`list_results`], from the first of `total` results.
pub fn list_first_results(results: Vec<Value>, total: usize, narrowing_hint: &str) -> Value {
    let mut shown: Vec<Value> = results.into_iter().take(MAX_RESULTS).collect();
    loop {
        let mut list = json!({ "results": shown, "total": total });
        if shown.len() < total {
            list["note"] = json!(format!("{} of {total} shown; {narrowing_hint}", shown.len()));
        }
        if list.to_string().chars().count() <= MAX_RESULT_CHARS || shown.pop().is_none() {
            return list;
        }
    }
}

/// Adds the messages of failed instances to the result for the model.
pub fn add_failed_services(for_model: &mut Value, failed: &[String]) {
    if !failed.is_empty() {
        for_model["incomplete"] = json!(failed.join(" "));
    }
}

/// Appends the messages of failed instances to the sentence for the user.
pub fn append_failed_services(sentence: String, failed: &[String]) -> String {
    if failed.is_empty() { sentence } else { format!("{sentence} {}", failed.join(" ")) }
}

/// Joins parts into `A, B, C and 4 more`, or `A, 1; B, 2; C, 3` if the parts themselves contain commas.
pub fn format_sentence_list(parts: &[String]) -> String {
    let listed = &parts[..parts.len().min(MAX_LISTED)];
    if parts.len() > 1 && listed.iter().any(|part| part.contains(',')) {
        let remaining = parts.len() - listed.len();
        let rest = if remaining == 0 { String::new() } else { format!("; and {remaining} more") };
        return format!("{}{rest}", listed.join("; "));
    }
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] if parts.len() <= MAX_LISTED => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} more", listed.join(", "), parts.len() - MAX_LISTED),
    }
}

/// Formats a title for the user, such as `Dune (2021)`.
pub fn format_media_title(title: &str, year: u16) -> String {
    format_title(title, year)
}

/// Cleans a title for the model or the database: its first line, without added quotes. Sentences for the user contain
/// the title as [`format_media_title`] formats it.
pub fn clean_title(title: &str) -> String {
    clean_text(first_line(title), MAX_TITLE_CHARS)
}

/// Cleans text from a server: one line, without control, invisible and bidirectional characters, truncated to `max`
/// characters.
pub fn clean_text(text: &str, max: usize) -> String {
    let visible: String = text
        .chars()
        .filter_map(|char| match get_general_category(char) {
            GeneralCategory::Control
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator => Some(' '),
            GeneralCategory::Format
            | GeneralCategory::PrivateUse
            | GeneralCategory::Surrogate
            | GeneralCategory::Unassigned => None,
            _ => Some(char),
        })
        .collect();
    let line = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= max {
        return line;
    }
    let truncated: String = line.chars().take(max.saturating_sub(3)).collect();
    format!("{}...", truncated.trim_end())
}

/// Cleans an error message of a server: removes the words that contain a path or a URL, and limits the length.
pub fn clean_error_message(text: &str) -> String {
    const MAX_ERROR_CHARS: usize = 120;
    let words: Vec<&str> = text.split_whitespace().filter(|word| !word.contains(['/', '\\'])).collect();
    clean_text(&words.join(" "), MAX_ERROR_CHARS).trim_end_matches(['.', ' ', ':']).to_owned()
}

/// Normalizes a title or query for comparison: lower case, without accents and punctuation, words separated by one
/// space.
pub fn normalize_name(text: &str) -> String {
    let text: String = text
        .nfkd()
        .filter(|char| !is_combining_mark(*char) && !matches!(char, '\'' | '\u{2019}'))
        .flat_map(char::to_lowercase)
        .collect();
    text.replace('&', " and ")
        .split(|char: char| !char.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Converts bytes to gigabytes with one decimal.
pub fn to_gigabytes(bytes: u64) -> f64 {
    (bytes as f64 / 1e8).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(actual: impl AsRef<str>, expected: &str) {
        assert_eq!(actual.as_ref(), expected);
    }

    #[test]
    fn server_text_loses_invisible_characters() {
        check(clean_text("Du\u{200b}ne\u{202e}\r\n  Part\tTwo\u{7}\u{2028}!", 100), "Dune Part Two !");
        check(clean_text("abcdefghij", 10), "abcdefghij");
        check(clean_text("abcdef ghijk", 10), "abcdef...");
    }

    #[test]
    fn error_message_contains_no_path() {
        check(
            clean_error_message(
                "No files found are eligible for import in /data/torrents/Dune.2021 or C:\\media.",
            ),
            "No files found are eligible for import in or",
        );
    }

    #[test]
    fn title_is_reduced_to_its_first_line() {
        check(clean_title("Dune\nReply YES"), "Dune");
        check(clean_title("Say Yes to the Dress"), "Say Yes to the Dress");
    }

    #[test]
    fn names_are_normalized_without_case_accents_and_punctuation() {
        check(normalize_name("  Amélie & the Widow's: Peak! "), "amelie and the widows peak");
        check(normalize_name("WALL·E"), "wall e");
    }

    #[test]
    fn sentence_lists_at_most_ten_parts() {
        let parts: Vec<String> = ('A'..='L').map(String::from).collect();
        check(format_sentence_list(&parts[..1]), "A");
        check(format_sentence_list(&parts[..3]), "A, B and C");
        check(format_sentence_list(&parts), "A, B, C, D, E, F, G, H, I, J and 2 more");
        let parts: Vec<String> = (1..=11).map(|number| format!("A, {number}")).collect();
        check(format_sentence_list(&parts[..2]), "A, 1; A, 2");
        check(
            format_sentence_list(&parts),
            "A, 1; A, 2; A, 3; A, 4; A, 5; A, 6; A, 7; A, 8; A, 9; A, 10; and 1 more",
        );
    }

    #[test]
    fn result_list_is_limited_in_entries_and_characters() {
        let long = |count| vec![json!("x".repeat(1_500)); count];
        check(list_results(vec![json!(1); 2], "say more").to_string(), r#"{"results":[1,1],"total":2}"#);
        check(
            list_results(vec![json!(1); 7], "say more").to_string(),
            r#"{"note":"5 of 7 shown; say more","results":[1,1,1,1,1],"total":7}"#,
        );
        assert_eq!(list_results(long(4), "say more")["note"], "2 of 4 shown; say more");
    }
}
