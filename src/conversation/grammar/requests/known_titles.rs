//! Well-known titles that contain a word of the request grammar, so that no part of such a title is read as a request.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::conversation::text::normalization::{normalize_title, strip_article};

/// Returns whether the text is one of these titles.
pub fn is_known_title(text: &str) -> bool {
    static TITLES: LazyLock<BTreeSet<&str>> = LazyLock::new(|| KNOWN_TITLES.lines().collect());
    TITLES.contains(strip_article(&normalize_title(text)))
}

/// Titles in the form of [`normalize_title`], without the leading article, one a line.
const KNOWN_TITLES: &str = include_str!("known_titles.txt");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_title_is_recognized_in_any_spelling() {
        for text in ["Get Out", "what we do in the shadows", "The Truman Show", "Who's That Girl?", "1917"] {
            assert!(is_known_title(text), "{text:?}");
        }
        assert!(!is_known_title("get heat"));
    }

    #[test]
    fn known_titles_are_normalized() {
        for title in KNOWN_TITLES.lines() {
            let normalized = normalize_title(title);
            assert_eq!(normalized, title);
        }
    }
}
