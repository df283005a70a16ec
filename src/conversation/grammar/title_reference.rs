//! References to titles without a name: "it", "them", "the movie". A pronoun alone is never a title.

use crate::conversation::text::normalization::{contains_phrase, normalize_title};
use crate::conversation::transcript::MediaKind;

/// Reference to a title that the text does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TitleReference {
    /// One title of either kind: "it", "that one".
    One,
    /// One title of this kind: "the movie", "this show".
    OneOf(MediaKind),
    /// More than one title, or an unknown number: "them", "everything".
    Several,
}

const SINGULAR_WORDS: [&str; 8] = ["it", "him", "her", "this", "that", "one", "title", "item"];
const PLURAL_WORDS: [&str; 13] = [
    "them",
    "those",
    "these",
    "all",
    "everything",
    "both",
    "ones",
    "titles",
    "items",
    "movies",
    "films",
    "shows",
    "stuff",
];
/// Words that may precede a reference.
const LEADING_WORDS: [&str; 18] = [
    "it", "them", "the", "this", "that", "these", "those", "my", "our", "all", "both", "of", "every",
    "whole", "first", "last", "other", "same",
];
/// Words that may follow a reference.
const TRAILING_WORDS: [&str; 7] = ["now", "too", "again", "also", "then", "instead", "anyway"];
/// Titles that are also everyday words, in addition to the references.
const EVERYDAY_TITLES: [&str; 13] =
    ["you", "us", "me", "we", "up", "go", "no", "yes", "now", "out", "see", "who", "what"];
/// Words that mark the following words as a title.
const TITLE_MARKERS: [&str; 7] = ["movie", "film", "show", "series", "called", "named", "titled"];
const QUOTES: [char; 4] = ['"', '\u{201C}', '\u{201D}', '\u{201E}'];

impl TitleReference {
    /// Parses the whole of `text` as a reference. Returns `None` if it names a title, as "It (2017)" does.
    pub fn parse(text: &str) -> Option<Self> {
        let normalized = normalize_title(text);
        let mut words: Vec<&str> = normalized.split(' ').collect();
        while words.last().is_some_and(|word| TRAILING_WORDS.contains(word)) {
            words.pop();
        }
        let (last, preceding) = words.split_last()?;
        if !preceding.iter().all(|word| LEADING_WORDS.contains(word)) {
            return None;
        }
        let kind = noun_kind(last);
        if kind.is_none() && !SINGULAR_WORDS.contains(last) && !PLURAL_WORDS.contains(last) {
            return None;
        }
        Some(match kind {
            _ if words.iter().any(|word| PLURAL_WORDS.contains(word)) => Self::Several,
            Some(kind) => Self::OneOf(kind),
            None => Self::One,
        })
    }
}

fn noun_kind(word: &str) -> Option<MediaKind> {
    match word {
        "movie" | "film" => Some(MediaKind::Movie),
        "show" | "series" => Some(MediaKind::Series),
        _ => None,
    }
}

/// Returns the title in "the movie it": a word that would be a reference if the noun did not mark it as a title.
pub fn title_after_noun(text: &str) -> Option<&str> {
    let mut rest = text.trim();
    loop {
        let (word, following) = rest.split_once(char::is_whitespace)?;
        let (word, following) = (word.to_lowercase(), following.trim());
        if noun_kind(&word).is_some() {
            return TitleReference::parse(following).map(|_| following);
        }
        if !LEADING_WORDS.contains(&word.as_str()) {
            return None;
        }
        rest = following;
    }
}

/// Returns whether `text` names the title. A title that is an everyday word counts only in quotes, with a year, or
/// after a word such as "movie": "is it any good" does not name *It*.
pub fn names_title(text: &str, title: &str) -> bool {
    let title = normalize_title(title);
    let name = title.strip_prefix("the ").unwrap_or(&title);
    if name.is_empty() {
        return false;
    }
    if !is_reference(&title) && !EVERYDAY_TITLES.contains(&name) {
        return contains_phrase(text, name);
    }
    let is_marked = TITLE_MARKERS.iter().any(|word| {
        contains_phrase(text, &format!("{word} {name}")) || contains_phrase(text, &format!("{word} {title}"))
    });
    is_marked || is_quoted(text, &[name, &title]) || is_followed_by_year(text, name)
}

/// Returns whether the title could be mistaken for a reference to another title.
pub fn is_reference(title: &str) -> bool {
    TitleReference::parse(&normalize_title(title)).is_some()
}

fn is_quoted(text: &str, names: &[&str]) -> bool {
    let quotes = text.split(QUOTES).skip(1).step_by(2);
    quotes.map(normalize_title).any(|quoted| names.contains(&quoted.as_str()))
}

fn is_followed_by_year(text: &str, name: &str) -> bool {
    let text = normalize_title(text);
    let words: Vec<&str> = text.split(' ').collect();
    let name: Vec<&str> = name.split(' ').collect();
    let is_year = |word: &str| {
        word.len() == 4
            && (word.starts_with("19") || word.starts_with("20"))
            && word.bytes().all(|digit| digit.is_ascii_digit())
    };
    words.windows(name.len() + 1).any(|window| {
        matches!(window.split_last(), Some((year, title)) if title == name.as_slice() && is_year(year))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pronouns_quantities_and_generic_nouns_are_references() {
        for text in [
            "it",
            "It!",
            "him",
            "her",
            "this",
            "that",
            "one",
            "that one",
            "the first one",
            "the title",
            "it now",
        ] {
            assert_eq!(TitleReference::parse(text), Some(TitleReference::One), "{text:?}");
        }
        for text in [
            "them",
            "all",
            "all of them",
            "everything",
            "both",
            "both of these",
            "all of it",
            "it all",
            "them both",
            "the movies",
        ] {
            assert_eq!(TitleReference::parse(text), Some(TitleReference::Several), "{text:?}");
        }
        for (text, kind) in [
            ("the movie", MediaKind::Movie),
            ("that film", MediaKind::Movie),
            ("this show", MediaKind::Series),
            ("the series", MediaKind::Series),
        ] {
            assert_eq!(TitleReference::parse(text), Some(TitleReference::OneOf(kind)), "{text:?}");
        }
    }

    #[test]
    fn titles_that_contain_a_pronoun_are_not_references() {
        for text in [
            "It (2017)",
            "it 2017",
            "It Follows",
            "Up",
            "Her (2013)",
            "the movie it",
            "This Is Us",
            "All of Us Strangers",
            "The Movie Critic",
            "Both Sides of the Blade",
            "Those Who Kill",
            "that 70s show",
            "",
        ] {
            assert_eq!(TitleReference::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn pronoun_after_a_noun_is_a_title() {
        assert_eq!(title_after_noun("the movie it"), Some("it"));
        assert_eq!(title_after_noun("that film Her"), Some("Her"));
        assert_eq!(title_after_noun("show this"), Some("this"));
        for text in ["the movie", "the movie heat", "it", "the one movie", "movie"] {
            assert_eq!(title_after_noun(text), None, "{text:?}");
        }
    }

    #[test]
    fn everyday_title_counts_only_with_a_year_noun_or_quotes() {
        for (text, title) in [
            ("do we have the movie it?", "It"),
            ("delete It (2017)", "It"),
            ("what about \u{201C}Her\u{201D}", "Her"),
            ("that show called you", "You"),
            ("delete heat", "Heat"),
            ("the old office", "The Office"),
        ] {
            assert!(names_title(text, title), "{text:?}");
        }
        for (text, title) in [
            ("is it any good?", "It"),
            ("delete it", "It"),
            ("get rid of them", "Them!"),
            ("which one is it", "The One"),
            ("can you tell me", "You"),
            ("it takes 90 minutes", "It"),
            ("delete heat", ""),
        ] {
            assert!(!names_title(text, title), "{text:?}");
        }
    }
}
