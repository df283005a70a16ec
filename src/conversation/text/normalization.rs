//! Normalized forms of titles and texts, for comparisons that ignore case, accents and punctuation.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Maximum number of words that [`content_words`] returns.
const MAX_CONTENT_WORDS: usize = 8;

/// Normalizes a title for comparisons: lower case, without accents, punctuation and apostrophes; "&" becomes "and".
pub fn normalize_title(title: &str) -> String {
    if title.is_ascii() {
        return join_words(title.chars().map(|c| c.to_ascii_lowercase()));
    }
    join_words(title.nfkd().filter(|&c| !is_combining_mark(c)).flat_map(char::to_lowercase))
}

/// Joins the words of a title by single spaces, without apostrophes.
fn join_words(letters: impl Iterator<Item = char>) -> String {
    let mut words = String::new();
    let mut is_in_word = false;
    for letter in letters.filter(|c| !matches!(c, '\'' | '\u{2018}' | '\u{2019}' | '`')) {
        if letter == '&' {
            words.push_str(if words.is_empty() { "and" } else { " and" });
            is_in_word = false;
            continue;
        }
        if letter.is_alphanumeric() {
            if !is_in_word && !words.is_empty() {
                words.push(' ');
            }
            words.push(letter);
        }
        is_in_word = letter.is_alphanumeric();
    }
    words
}

/// Removes the leading article, which users often omit, from a normalized title.
pub fn strip_article(title: &str) -> &str {
    ["the ", "a ", "an "].iter().find_map(|article| title.strip_prefix(article)).unwrap_or(title)
}

/// Returns whether `text` contains the words of `phrase`, which is already normalized by [`normalize_title`].
pub fn contains_phrase(text: &str, phrase: &str) -> bool {
    format!(" {} ", normalize_title(text)).contains(&format!(" {phrase} "))
}

/// Returns the distinct normalized words that are not common ones; if there are more than eight, the longest eight.
pub fn content_words(text: &str) -> Vec<String> {
    let normalized = normalize_title(text);
    let mut words: Vec<String> = Vec::new();
    for word in normalized.split(' ').filter(|word| word.len() > 1 && !COMMON_WORDS.contains(word)) {
        if !words.iter().any(|seen| seen == word) {
            words.push(word.to_owned());
        }
    }
    if words.len() > MAX_CONTENT_WORDS {
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        words.truncate(MAX_CONTENT_WORDS);
    }
    words
}

/// Normalized English words that are common in any text. Common words of other languages are not excluded.
const COMMON_WORDS: [&str; 118] = [
    "a",
    "about",
    "again",
    "all",
    "also",
    "am",
    "an",
    "and",
    "any",
    "anything",
    "are",
    "as",
    "at",
    "be",
    "been",
    "but",
    "by",
    "can",
    "come",
    "could",
    "did",
    "do",
    "does",
    "doing",
    "done",
    "dont",
    "for",
    "from",
    "get",
    "give",
    "go",
    "got",
    "had",
    "has",
    "have",
    "he",
    "hello",
    "her",
    "hey",
    "hi",
    "him",
    "his",
    "how",
    "hows",
    "i",
    "id",
    "if",
    "im",
    "in",
    "is",
    "it",
    "its",
    "ive",
    "just",
    "let",
    "like",
    "me",
    "my",
    "no",
    "not",
    "now",
    "of",
    "off",
    "ok",
    "okay",
    "on",
    "one",
    "or",
    "our",
    "out",
    "please",
    "she",
    "should",
    "so",
    "some",
    "something",
    "thank",
    "thanks",
    "that",
    "thats",
    "the",
    "their",
    "them",
    "then",
    "there",
    "they",
    "this",
    "to",
    "too",
    "up",
    "us",
    "want",
    "was",
    "we",
    "were",
    "what",
    "whats",
    "when",
    "where",
    "which",
    "who",
    "whos",
    "why",
    "will",
    "with",
    "would",
    "yeah",
    "yes",
    "you",
    "your",
    "youre",
    "add",
    "put",
    "need",
    "still",
    "new",
    "really",
    "maybe",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalization_ignores_case_accents_and_punctuation() {
        assert_eq!(normalize_title("  Amélie: Love & Other  Stories! "), "amelie love and other stories");
        assert_eq!(normalize_title("Schindler’s List"), normalize_title("schindlers list"));
        assert_eq!(normalize_title("&Ana&Bob & "), "and ana and bob and");
        assert_eq!(normalize_title("&Ána＆Bob & "), "and ana and bob and");
    }

    #[test]
    fn content_words_are_normalized_and_limited() {
        assert_eq!(content_words("Add The Matrix, please!"), ["matrix"]);
        assert_eq!(content_words("what's on?"), [""; 0]);
        assert_eq!(
            content_words(&(0..40).map(|n| format!("word{n} ")).collect::<String>()).len(),
            MAX_CONTENT_WORDS
        );
    }
}
