//! Names of genres and moods.

use super::token::Token;

/// Maximum number of words with which people describe what they want to watch.
const MAX_WORDS: usize = 4;

/// Genres and moods, in the singular.
const MOODS: &str = " sci martial feel action adventure animation animated anime biography biopic cartoon comedy crime documentary drama \
    family fantasy feelgood historical history heist horror kid kids martial-arts musical mystery noir period psychological \
    romance romantic rom-com romcom scary sci-fi scifi science-fiction sitcom slasher spooky spy superhero suspense \
    thriller true-crime war western whodunnit whodunit zombie vampire christmas holiday halloween cozy cosy cheerful \
    creepy dark emotional epic exciting fun funny gory gritty hilarious heartwarming inspiring light lighthearted moody \
    relaxing sad serious short silly slow sweet tense thrilling thought-provoking uplifting violent weird witty classic \
    old long easy chill intense black-and-white foreign french korean japanese spanish italian german british indian \
    bollywood indie cult 80s 90s 70s ";

/// Nouns that end a description.
const KINDS: &str = " movie movies film films show shows series ";

/// Returns whether the words describe what to watch: some of them, and one of these, in the singular or plural.
pub fn is_mood(words: &[Token]) -> bool {
    let is_listed = |word: &str| MOODS.contains(&format!(" {word} "));
    let names_kind = words.last().is_some_and(|last| KINDS.contains(&format!(" {} ", last.word)));
    words.len() <= MAX_WORDS
        && !names_kind
        && words.iter().any(|token| {
            let word = token.word.as_str();
            let singular = match word.strip_suffix("ies") {
                Some(stem) => format!("{stem}y"),
                None => word.trim_end_matches('s').to_owned(),
            };
            is_listed(word) || is_listed(&singular)
        })
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
}
