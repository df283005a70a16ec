//! Parts of requests for something to watch that patterns leave open.

use super::artists::is_artist;
use super::limits::{parse_length, parse_rating};
use super::moods::{MAX_THEME_WORDS, parse_theme};
use super::providers::parse_provider;
use super::token::{MISSPELLING_COST, Token, phrase_cost};
use super::years::{parse_decade, parse_years};
use crate::conversation::transcript::MediaKind;

/// Part of a request for something to watch that patterns leave open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscoverySlot {
    /// Noun of a kind of titles, such as "movies".
    Noun,
    /// The same in the plural.
    PluralNoun,
    /// Genres and moods, such as "funny sci-fi".
    Theme,
    /// Theme that names titles without a noun, such as "thrillers".
    Genre,
    /// Name of somebody who acts or directs.
    Artist,
    /// Streaming service.
    Provider,
    /// Years after a preposition, such as "from 1995".
    Years,
    /// Decade without a preposition.
    Decade,
    /// Hours and minutes.
    Length,
    /// Rating out of ten.
    Rating,
}

impl DiscoverySlot {
    /// Returns the slot of a name in a pattern.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "<noun>" => Self::Noun,
            "<nouns>" => Self::PluralNoun,
            "<theme>" => Self::Theme,
            "<genre>" => Self::Genre,
            "<artist>" => Self::Artist,
            "<provider>" => Self::Provider,
            "<years>" => Self::Years,
            "<decade>" => Self::Decade,
            "<length>" => Self::Length,
            "<rating>" => Self::Rating,
            _ => return None,
        })
    }

    /// Returns the cost of these words in the slot, if they fit.
    pub fn cost(self, words: &[Token]) -> Option<usize> {
        if words.len() > MAX_THEME_WORDS {
            return None;
        }
        match self {
            Self::Noun => parse_noun(words).map(|noun| noun.cost),
            Self::PluralNoun => parse_noun(words).filter(|noun| noun.is_plural).map(|noun| noun.cost),
            Self::Theme => {
                let theme = parse_theme(words)?;
                Some(words.len() + MISSPELLING_COST * theme.misspelled)
            }
            Self::Genre => {
                let theme = parse_theme(words).filter(|theme| theme.is_noun)?;
                Some(words.len() + MISSPELLING_COST * theme.misspelled)
            }
            Self::Artist => is_artist(words).then_some(words.len()),
            Self::Provider => parse_provider(words).map(|(_, cost)| cost),
            Self::Years => parse_years(words).map(|_| 0),
            Self::Decade => parse_decade(words).map(|_| 0),
            Self::Length => parse_length(words).map(|_| 0),
            Self::Rating => parse_rating(words).map(|_| 0),
        }
    }
}

/// Noun of a kind of titles.
pub struct Noun {
    pub kind: MediaKind,
    is_plural: bool,
    /// Cost of typing errors.
    cost: usize,
}

/// Nouns with their kind, and whether they are plural.
const NOUNS: [(&str, MediaKind, bool); 12] = [
    ("movie", MediaKind::Movie, false),
    ("movies", MediaKind::Movie, true),
    ("film", MediaKind::Movie, false),
    ("films", MediaKind::Movie, true),
    ("show", MediaKind::Series, false),
    ("shows", MediaKind::Series, true),
    ("series", MediaKind::Series, true),
    ("tv", MediaKind::Series, true),
    ("tv show", MediaKind::Series, false),
    ("tv shows", MediaKind::Series, true),
    ("tv series", MediaKind::Series, true),
    ("tv-shows", MediaKind::Series, true),
];

/// Parses all of the tokens as the noun of a kind of titles.
pub fn parse_noun(tokens: &[Token]) -> Option<Noun> {
    let found = NOUNS.iter().filter_map(|(words, kind, is_plural)| {
        let cost = phrase_cost(tokens, words)?;
        Some(Noun { kind: *kind, is_plural: *is_plural, cost })
    });
    found.min_by_key(|noun| noun.cost)
}
