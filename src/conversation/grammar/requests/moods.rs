//! Names of genres and moods.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::token::Token;
use crate::conversation::mood::MOODS;

/// Maximum number of words with which people describe what they want to watch.
const MAX_WORDS: usize = 4;
/// Maximum number of words of a theme.
pub const MAX_THEME_WORDS: usize = 6;

/// Genres and moods, in the singular.
const DESCRIPTIONS: &str = " sci martial feel action adventure animation animated anime biography biopic cartoon comedy crime documentary drama \
    family fantasy feelgood historical history heist horror kid kids martial-arts musical mystery noir period psychological \
    romance romantic rom-com romcom scary sci-fi scifi science-fiction sitcom slasher spooky spy superhero suspense \
    thriller true-crime war western whodunnit whodunit zombie vampire christmas holiday halloween cozy cosy cheerful \
    creepy dark emotional epic exciting fun funny gory gritty hilarious heartwarming inspiring light lighthearted moody \
    relaxing sad serious short silly slow sweet tense thrilling thought-provoking uplifting violent weird witty classic \
    old long easy chill intense black-and-white foreign french korean japanese spanish italian german british indian \
    bollywood indie cult 80s 90s 70s ";

/// Of these, the words that say nothing alone, and decades.
const INCOMPLETE: &str = " sci martial feel 80s 90s 70s ";

/// Genres of several words.
const PHRASES: [&str; 10] = [
    "sci fi",
    "science fiction",
    "martial arts",
    "true crime",
    "film noir",
    "coming of age",
    "black and white",
    "thought provoking",
    "stand up",
    "reality tv",
];

/// Words of a theme that say nothing about it.
const FILLERS: &str = " and but really very super so pretty kinda quite more also truly properly proper ";

/// Genres that name titles without a noun, in the singular: "thrillers from the 90s".
const GENRE_NOUNS: &str = " action adventure animation anime biopic cartoon comedy crime documentary drama fantasy horror \
    musical mystery noir romance romcom coms com scifi fi fiction sitcom slasher thriller western whodunnit whodunit ";

/// Nouns that end a description.
const KINDS: &str = " movie movies film films show shows series ";

/// Returns whether the words describe what to watch: some of them, and one of these, in the singular or plural.
pub fn is_mood(words: &[Token]) -> bool {
    let names_kind = words.last().is_some_and(|last| KINDS.contains(&format!(" {} ", last.word)));
    words.len() <= MAX_WORDS
        && !names_kind
        && words.iter().any(|token| is_in_either_number(&token.word, DESCRIPTIONS))
}

/// Returns the genre that the word names, in the singular.
pub fn parse_genre(word: &str) -> Option<String> {
    is_in_either_number(word, DESCRIPTIONS).then(|| singular(word))
}

/// Returns whether the list contains the word, or its singular.
fn is_in_either_number(word: &str, list: &str) -> bool {
    list.contains(&format!(" {word} ")) || list.contains(&format!(" {} ", singular(word)))
}

fn singular(word: &str) -> String {
    match word.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => word.trim_end_matches('s').to_owned(),
    }
}

/// Theme of titles: genres and moods, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Theme {
    /// Its words, without hyphens and typing errors.
    pub text: String,
    /// Number of typing errors.
    pub misspelled: usize,
    /// True if it names titles without a noun.
    pub is_noun: bool,
}

/// Parses all of the tokens as a theme.
pub fn parse_theme(tokens: &[Token]) -> Option<Theme> {
    if tokens.is_empty() || tokens.len() > MAX_THEME_WORDS || tokens.iter().any(|token| token.is_quoted) {
        return None;
    }
    let words: Vec<(&str, &Token)> =
        tokens.iter().flat_map(|token| token.word.split('-').map(move |word| (word, token))).collect();
    let (mut parts, mut misspelled, mut rest) = (Vec::new(), 0, words.as_slice());
    let mut ends_with_filler = true;
    while let Some(((word, token), after)) = rest.split_first() {
        if let Some(length) = description_length(rest) {
            parts.extend(rest[..length].iter().map(|(word, _)| *word));
            (rest, ends_with_filler) = (&rest[length..], false);
            continue;
        }
        if !FILLERS.contains(&format!(" {word} ")) {
            parts.push(corrected_word(token).filter(|_| *word == token.word)?);
            misspelled += 1;
        }
        (rest, ends_with_filler) = (after, FILLERS.contains(&format!(" {word} ")));
    }
    let is_noun = parts.last().is_some_and(|last| is_in_either_number(last, GENRE_NOUNS));
    (!ends_with_filler).then(|| Theme { text: parts.join(" "), misspelled, is_noun })
}

/// All moods and genres of one or several words.
static PHRASES_AND_WORDS: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
    let moods = MOODS.iter().flat_map(|(_, _, words)| words.iter().copied());
    let words = DESCRIPTIONS.split_whitespace().filter(|word| !INCOMPLETE.contains(&format!(" {word} ")));
    moods.chain(PHRASES).chain(words).collect()
});

/// First words of the descriptions of several words.
static FIRST_WORDS: LazyLock<BTreeSet<&str>> =
    LazyLock::new(|| PHRASES_AND_WORDS.iter().filter_map(|phrase| Some(phrase.split_once(' ')?.0)).collect());

/// Returns the number of words of the description at the start of the words, if there is one.
fn description_length(words: &[(&str, &Token)]) -> Option<usize> {
    let (first, _) = words.first()?;
    let longest = if FIRST_WORDS.contains(first) { words.len().min(MAX_THEME_WORDS) } else { 1 };
    let is_phrase = |length: &usize| {
        let phrase = words[..*length].iter().map(|(word, _)| *word).collect::<Vec<_>>().join(" ");
        PHRASES_AND_WORDS.contains(phrase.as_str())
    };
    let length = (2..=longest).rev().find(is_phrase);
    length
        .or_else(|| PHRASES_AND_WORDS.contains(singular(first).as_str()).then_some(1))
        .or_else(|| PHRASES_AND_WORDS.contains(first).then_some(1))
}

/// Returns the mood or genre of one word that the token misspells, except in its first letter.
fn corrected_word(token: &Token) -> Option<&'static str> {
    static WORDS: LazyLock<Vec<&str>> =
        LazyLock::new(|| PHRASES_AND_WORDS.iter().filter(|word| !word.contains(' ')).copied().collect());
    let first_letter = token.word.chars().next();
    let mut similar = WORDS.iter().filter(|word| word.chars().next() == first_letter);
    similar.find(|word| token.spelling_cost(word).is_some()).copied()
}

#[cfg(test)]
mod tests {
    use super::super::token::tokenize;
    use super::*;

    #[test]
    fn genre_may_be_plural_and_described() {
        for text in ["thrillers", "comedies", "scary 80s horror", "feel good comedy", "sci-fi"] {
            assert!(is_mood(&tokenize(text)), "{text:?}");
        }
        for text in ["milk", "bond", "the office"] {
            assert!(!is_mood(&tokenize(text)), "{text:?}");
        }
    }

    #[test]
    fn theme_has_only_words_of_genres_and_moods() {
        for (text, theme) in [
            ("really scary", "scary"),
            ("sci-fi", "sci fi"),
            ("feel-good comedies", "feel good comedies"),
            ("hilarius", "hilarious"),
            ("funny and romantic", "funny romantic"),
            ("based on a true story", "based on a true story"),
        ] {
            let found = parse_theme(&tokenize(text)).map(|theme| theme.text);
            assert_eq!(found.as_deref(), Some(theme), "{text:?}");
        }
        for text in ["scary clowns", "the war", "feel", "really", "funny and", "story"] {
            assert_eq!(parse_theme(&tokenize(text)), None, "{text:?}");
        }
    }
}
