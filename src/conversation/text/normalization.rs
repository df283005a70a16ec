//! Normalized forms of titles and texts, for comparisons without case, accents and punctuation.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Maximum number of words of a query that are searched.
const MAX_WORDS: usize = 8;

/// Normalizes a title for comparisons: no case, accents, punctuation or apostrophes, and "&" becomes "and".
pub fn normalize_title(title: &str) -> String {
    let letters: String = title
        .nfkd()
        .filter(|&c| !is_combining_mark(c) && !matches!(c, '\'' | '\u{2018}' | '\u{2019}' | '`'))
        .flat_map(char::to_lowercase)
        .collect();
    letters
        .replace('&', " and ")
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Removes the article that users omit, from a title in the form of [`normalize_title`].
pub fn strip_article(title: &str) -> &str {
    ["the ", "a ", "an "].iter().find_map(|article| title.strip_prefix(article)).unwrap_or(title)
}

/// Returns whether `text` contains `phrase`, already in the form of [`normalize_title`], as whole words.
pub fn contains_phrase(text: &str, phrase: &str) -> bool {
    format!(" {} ", normalize_title(text)).contains(&format!(" {phrase} "))
}

/// Returns the meaningful words in plain form, each once; at most eight, the longest ones if there are more.
pub fn content_words(text: &str) -> Vec<String> {
    let plain = normalize_title(text);
    let mut words: Vec<String> = Vec::new();
    for word in plain.split(' ').filter(|word| word.len() > 1 && !COMMON.contains(word)) {
        if !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    }
    if words.len() > MAX_WORDS {
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        words.truncate(MAX_WORDS);
    }
    words
}

/// English words that are common in any text, in plain form. In other languages the rarer words decide.
const COMMON: [&str; 118] = [
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
    fn titles_are_compared_by_their_words() {
        assert_eq!(normalize_title("  Amélie: Love & Other  Stories! "), "amelie love and other stories");
        assert_eq!(normalize_title("Schindler’s List"), normalize_title("schindlers list"));
    }

    #[test]
    fn content_words_are_plain_and_few() {
        assert_eq!(content_words("Add The Matrix, please!"), ["matrix"]);
        assert_eq!(content_words("what's on?"), [""; 0]);
        assert_eq!(content_words(&(0..40).map(|n| format!("word{n} ")).collect::<String>()).len(), MAX_WORDS);
    }
}
