//! Title in a message, with its description: year, type, seasons, quality.

use super::known_titles::is_known_title;
use super::seasons::{RequestedSeasons, SeriesPart, parse_series_part};
use super::token::{Token, join_raw, join_words, tokenize};
use crate::conversation::grammar::title_reference::TitleReference;
use crate::conversation::transcript::MediaKind;

/// Years of titles that people ask for. A later number is part of the title: Blade Runner 2049.
const YEARS: std::ops::RangeInclusive<u16> = 1900..=2030;

/// Title as typed, and its description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TitlePhrase {
    pub title: String,
    /// All words, in case the description is part of the title, as in "Ladies First".
    pub full_words: Vec<Token>,
    pub year: Option<u16>,
    pub kind: Option<MediaKind>,
    pub seasons: Option<RequestedSeasons>,
    pub episode: Option<u32>,
    pub four_k: bool,
    /// Reference to a title that the message does not name: "it", "the movie".
    pub reference: Option<TitleReference>,
}

impl TitlePhrase {
    /// Parses all of the tokens. There is always a title, because at least one token remains.
    pub fn parse(tokens: &[Token]) -> Self {
        let mut phrase = Self {
            title: String::new(),
            full_words: tokens.to_vec(),
            year: None,
            kind: None,
            seasons: None,
            episode: None,
            four_k: false,
            reference: None,
        };
        let rest = phrase.strip_descriptions(tokens);
        phrase.title = join_raw(rest);
        let is_named = rest.iter().any(|token| token.is_quoted) || phrase.year.is_some();
        if !is_named {
            phrase.reference = match phrase.kind {
                // The noun marks the pronoun as a title: "the movie it".
                Some(_) => None,
                None => TitleReference::parse(&join_words(rest)),
            };
        }
        phrase
    }

    /// Creates the phrase of a title that code names, such as "Dune (2021)".
    pub fn from_name(name: &str) -> Self {
        let parts = name.strip_suffix(')').and_then(|name| name.rsplit_once(" ("));
        let with_year = parts.and_then(|(title, year)| Some((title, year.parse().ok()?)));
        let (title, year) = with_year.map_or((name, None), |(title, year)| (title, Some(year)));
        Self {
            title: title.to_owned(),
            full_words: tokenize(name),
            year,
            kind: None,
            seasons: None,
            episode: None,
            four_k: false,
            reference: None,
        }
    }

    /// Returns whether the tokens only describe a title that precedes them.
    pub fn only_describes(tokens: &[Token]) -> bool {
        let title = Token::quoted("x");
        let words: Vec<Token> = std::iter::once(title).chain(tokens.iter().cloned()).collect();
        Self::parse(&words).title == "x"
    }

    /// Treats a pronoun as a title where it is written like one: "have we got It", "add her". A removal never does.
    pub fn with_written_pronoun(self) -> Self {
        let is_written_as_title = match self.full_words.as_slice() {
            [only] => {
                let is_capitalized = only.raw.len() > 1
                    && only.raw.starts_with(char::is_uppercase)
                    && only.raw.chars().any(char::is_lowercase);
                is_capitalized || matches!(only.word.as_str(), "her" | "him")
            }
            _ => false,
        };
        Self { reference: self.reference.filter(|_| !is_written_as_title), ..self }
    }

    /// Returns all words as typed.
    pub fn full_title(&self) -> String {
        join_raw(&self.full_words)
    }

    /// Returns the text to search for: the title, with the year if the message names one.
    pub fn query(&self) -> String {
        match self.year {
            Some(year) => format!("{} {year}", self.title),
            None => self.title.clone(),
        }
    }

    fn strip_descriptions<'t>(&mut self, tokens: &'t [Token]) -> &'t [Token] {
        let mut rest = tokens;
        while rest.len() > 1
            && !is_known_title(&join_raw(rest))
            && TitleReference::parse(&join_words(rest)).is_none()
        {
            let shorter = self
                .strip_quality(rest)
                .or_else(|| self.strip_part(rest))
                .or_else(|| self.strip_year(rest))
                .or_else(|| self.strip_kind(rest))
                .or_else(|| strip_filler(rest));
            match shorter {
                Some(shorter) if !shorter.is_empty() => rest = shorter,
                Some(_) | None => break,
            }
        }
        rest
    }

    fn strip_quality<'t>(&mut self, tokens: &'t [Token]) -> Option<&'t [Token]> {
        let is_four_k = |words: &[&str]| {
            let words = words.strip_prefix(&["in"]).unwrap_or(words);
            let words = words.strip_prefix(&["the"]).unwrap_or(words);
            let words = words
                .strip_suffix(&["version"])
                .or_else(|| words.strip_suffix(&["quality"]))
                .unwrap_or(words);
            matches!(words, ["4k" | "uhd" | "2160p" | "4k-uhd"] | ["ultra", "hd"] | ["4k", "uhd" | "hdr"])
        };
        let is_other = |words: &[&str]| {
            matches!(words, ["in", "hd" | "1080p" | "1080" | "720p"] | ["1080p"] | ["in", "high", "quality"])
        };
        if let Some(rest) = strip_end(tokens, 1..=4, is_four_k) {
            self.four_k = true;
            return Some(rest);
        }
        let is_four_k_of = |words: &[&str]| is_four_k(words.strip_suffix(&["of"]).unwrap_or(words));
        if let Some(rest) = strip_start(tokens, 1..=4, is_four_k_of) {
            self.four_k = true;
            return Some(rest);
        }
        strip_end(tokens, 1..=3, is_other)
    }

    /// Strips "season 2" after the title, and "the second season of" before it.
    fn strip_part<'t>(&mut self, tokens: &'t [Token]) -> Option<&'t [Token]> {
        if self.seasons.is_some() && self.episode.is_some() {
            return None;
        }
        for start in 1..tokens.len() {
            let words = &tokens[start..];
            let is_separated = matches!(words[0].word.as_str(), "from" | "of" | "for");
            let words = if is_separated && words.len() > 1 { &words[1..] } else { words };
            if let Some(part) = parse_series_part(words) {
                self.set_part(part);
                return Some(&tokens[..start]);
            }
        }
        for end in (2..tokens.len()).rev() {
            let (part, title) = tokens.split_at(end);
            let Some((last, part)) = part.split_last() else { continue };
            let is_separator = matches!(last.word.as_str(), "of" | "from" | "for" | "in");
            let is_part_of_title = matches!(part, [only] if only.word == "first" || only.word == "latest");
            if is_separator
                && !is_part_of_title
                && let Some(part) = parse_series_part(part)
            {
                self.set_part(part);
                return Some(title);
            }
        }
        // "the bear s3": a code needs no separator, and may precede the title.
        let (first, title) = tokens.split_first()?;
        let part = parse_series_part(std::slice::from_ref(first)).filter(|_| first.word.len() > 1)?;
        let is_code = first.word.starts_with('s') && first.word.contains(|c: char| c.is_ascii_digit());
        is_code.then(|| {
            self.set_part(part);
            title
        })
    }

    fn set_part(&mut self, part: SeriesPart) {
        self.seasons = part.seasons.or(self.seasons.take());
        self.episode = part.episode.or(self.episode);
    }

    fn strip_year<'t>(&mut self, tokens: &'t [Token]) -> Option<&'t [Token]> {
        if self.year.is_some() {
            return None;
        }
        let mut year = None;
        let mut is_year = |words: &[&str]| {
            let word = match words {
                [word] | ["from" | "of" | "in", word] | ["the", word] => word,
                ["the", word, noun] | [word, noun] if is_edition(noun) => word,
                ["the", "one", "from", word] | ["one", "from", word] | ["from", "the", "year", word] => word,
                ["the", noun, "from", word] if is_edition(noun) => word,
                _ => return false,
            };
            year = word.parse().ok().filter(|year| word.len() == 4 && YEARS.contains(year));
            year.is_some()
        };
        let stripped = strip_end(tokens, 1..=4, &mut is_year)
            .or_else(|| strip_start(tokens, 2..=2, |words| words[0] == "the" && is_year(words)));
        if stripped.is_some() {
            self.year = year;
        }
        stripped
    }

    /// Strips "the movie" on either side of the title, and "movie" after it where an article precedes it.
    fn strip_kind<'t>(&mut self, tokens: &'t [Token]) -> Option<&'t [Token]> {
        if self.kind.is_some() {
            return None;
        }
        let mut kind = None;
        let mut is_noun = |words: &[&str]| {
            let words = match words {
                ["the" | "that" | "this" | "a" | "as", rest @ ..] => rest,
                all => all,
            };
            let words =
                words.strip_suffix(&["called"]).or_else(|| words.strip_suffix(&["named"])).unwrap_or(words);
            kind = match words {
                ["new" | "old" | "original", noun] | [noun] => noun_kind(noun),
                ["tv", "show" | "series"] | ["mini", "series"] => Some(MediaKind::Series),
                _ => None,
            };
            kind.is_some()
        };
        let after =
            strip_end(tokens, 2..=3, |words| matches!(words[0], "the" | "a" | "tv") && is_noun(words));
        let before = || strip_start(tokens, 1..=4, |words| words != ["a"] && is_noun(words));
        if let Some(rest) = after.or_else(before) {
            self.kind = kind;
            return Some(rest);
        }
        // "the barbie movie", "new dune movie": an adjective before the title belongs to the noun.
        let (last, rest) = tokens.split_last()?;
        let article =
            rest.first().is_some_and(|first| matches!(first.word.as_str(), "the" | "that" | "a" | "new"));
        let kind = noun_kind(&last.word).filter(|_| !last.is_quoted && rest.len() > usize::from(article))?;
        self.kind = Some(kind);
        let rest = if article { strip_adjective(rest) } else { rest };
        Some(rest)
    }
}

fn strip_adjective(tokens: &[Token]) -> &[Token] {
    let words: Vec<&str> = tokens.iter().map(|token| token.word.as_str()).collect();
    match words.as_slice() {
        ["the" | "that" | "a", "new" | "latest" | "newest", _, ..] => &tokens[2..],
        ["that" | "a" | "new", _, ..] => &tokens[1..],
        _ => tokens,
    }
}

/// Strips words that say where or for whom the title is.
fn strip_filler(tokens: &[Token]) -> Option<&[Token]> {
    let place = |word: &str| {
        matches!(
            word,
            "plex"
                | "jellyfin"
                | "emby"
                | "server"
                | "library"
                | "list"
                | "queue"
                | "collection"
                | "radarr"
                | "sonarr"
                | "system"
                | "tv"
                | "watchlist"
        )
    };
    let is_filler = |words: &[&str]| match words {
        ["to" | "on" | "in" | "onto" | "into" | "from" | "off", noun]
        | ["to" | "on" | "in" | "onto" | "into" | "from" | "off", "the" | "my" | "our" | "your", noun] => {
            place(noun)
        }
        ["for", "movie" | "film" | "date" | "family" | "game", "night"] => true,
        ["for", "me" | "us" | "tonight" | "later" | "her" | "him" | "them"] => true,
        ["for", "the" | "my", "kids" | "family" | "wife" | "husband" | "weekend" | "boys" | "girls"] => true,
        ["asap"] | ["as", "well"] | ["right", "now"] | ["please"] | ["thanks"] => true,
        ["the", "original" | "first" | "old" | "new", "one"] => true,
        _ => false,
    };
    let is_wrapping = |words: &[&str]| {
        matches!(
            words,
            ["my" | "the" | "our" | "a" | "that", "request" | "download" | "copy" | "movie", "for" | "of"]
                | ["any", "of", "the"]
        )
    };
    strip_end(tokens, 1..=3, is_filler).or_else(|| strip_start(tokens, 3..=3, is_wrapping))
}

fn is_edition(noun: &str) -> bool {
    matches!(
        noun,
        "one" | "version" | "film" | "movie" | "remake" | "original" | "edition" | "show" | "series"
    )
}

fn noun_kind(word: &str) -> Option<MediaKind> {
    match word {
        "movie" | "film" | "movies" | "films" | "documentary" => Some(MediaKind::Movie),
        "show" | "series" | "tvshow" | "sitcom" | "miniseries" | "shows" | "anime" => Some(MediaKind::Series),
        _ => None,
    }
}

/// Returns the tokens before the longest ending that `accepts` matches, if some token remains.
fn strip_end(
    tokens: &[Token],
    lengths: std::ops::RangeInclusive<usize>,
    mut accepts: impl FnMut(&[&str]) -> bool,
) -> Option<&[Token]> {
    lengths.rev().find_map(|length| {
        let start = tokens.len().checked_sub(length).filter(|start| *start > 0)?;
        let words: Vec<&str> = tokens[start..].iter().map(|token| token.word.as_str()).collect();
        accepts(&words).then(|| &tokens[..start])
    })
}

/// Returns the tokens after the longest beginning that `accepts` matches, if some token remains.
fn strip_start(
    tokens: &[Token],
    lengths: std::ops::RangeInclusive<usize>,
    mut accepts: impl FnMut(&[&str]) -> bool,
) -> Option<&[Token]> {
    lengths.rev().find_map(|length| {
        let rest = tokens.get(length..).filter(|rest| !rest.is_empty())?;
        let words: Vec<&str> = tokens[..length].iter().map(|token| token.word.as_str()).collect();
        accepts(&words).then_some(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::super::token::tokenize;
    use super::*;

    #[track_caller]
    fn check(text: &str, title: &str) -> TitlePhrase {
        let phrase = TitlePhrase::parse(&tokenize(text));
        assert_eq!(phrase.title, title, "{text:?}");
        phrase
    }

    #[test]
    fn year_is_bare_or_in_brackets() {
        for text in [
            "dune 2021",
            "Dune (2021)",
            "dune from 2021",
            "dune the 2021 one",
            "the 2021 dune",
            "dune 2021 version",
        ] {
            assert_eq!(
                check(text, if text.starts_with('D') { "Dune" } else { "dune" }).year,
                Some(2021),
                "{text:?}"
            );
        }
        for text in ["1917", "blade runner 2049", "wonder woman 1984", "2012"] {
            assert_eq!(check(text, text).year, None, "{text:?}");
        }
    }

    #[test]
    fn noun_on_either_side_is_the_type() {
        for text in [
            "the movie heat",
            "heat the movie",
            "film heat",
            "heat (movie)",
            "a movie called heat",
            "the new heat movie",
        ] {
            let phrase = check(text, "heat");
            assert_eq!(phrase.kind, Some(MediaKind::Movie), "{text:?}");
        }
        assert_eq!(check("the tv show the bear", "the bear").kind, Some(MediaKind::Series));
        for text in ["the truman show", "scary movie", "the movie critic"] {
            assert_eq!(check(text, text).kind, None, "{text:?}");
        }
    }

    #[test]
    fn seasons_stand_on_either_side() {
        for text in [
            "the bear season 3",
            "the bear s3",
            "season 3 of the bear",
            "the third season of the bear",
            "s3 of the bear",
            "the bear, season three",
        ] {
            let phrase = check(text, "the bear");
            assert_eq!(phrase.seasons, Some(RequestedSeasons::Listed(vec![3])), "{text:?}");
        }
        assert_eq!(check("ladies first", "ladies first").seasons, None);
        assert_eq!(check("all seasons of lost", "lost").seasons, Some(RequestedSeasons::All));
    }

    #[test]
    fn quality_and_places_are_no_part_of_the_title() {
        assert!(check("dune in 4k", "dune").four_k);
        assert!(check("the 4k version of dune", "dune").four_k);
        assert!(!check("dune to plex", "dune").four_k);
    }

    #[test]
    fn pronoun_is_a_reference_unless_marked() {
        assert_eq!(check("it", "it").reference, Some(TitleReference::One));
        for text in ["It (2017)", "the movie it", "\"It\"", "it follows"] {
            assert_eq!(TitlePhrase::parse(&tokenize(text)).reference, None, "{text:?}");
        }
    }
}
