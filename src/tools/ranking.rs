//! Ranking of titles by how well they match a query.

use crate::conversation::text::normalization::strip_article;
use crate::conversation::text::title_key::{is_same_key, title_key};

/// Minimum length of a name in which one typing error is recognized. Shorter names become other names.
const MIN_SIMILAR_LENGTH: usize = 4;
/// Minimum length of a name in which two typing errors are recognized.
const MIN_LENGTH_FOR_TWO_ERRORS: usize = 9;

/// Query normalized for comparison: its words, and the year at its end, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TitleQuery {
    words: String,
    /// Words before the year, and the year.
    with_year: Option<(String, u16)>,
    /// Title for which the query is an alias of the user, in the spellings that catalogs may use.
    aliases: Vec<TitleQuery>,
}

/// Quality of a match, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchQuality {
    /// Title for which the query is an alias of the user.
    Alias,
    Exact,
    Prefix,
    /// Title that contains every word of the query, or has it as another name.
    Words,
    /// Title whose name resembles the query.
    Similar,
    /// Any other title. A catalog may have found it by another name.
    Loose,
}

/// Title normalized for comparison, computed once for many queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NormalizedTitle {
    words: Box<str>,
    /// Length in bytes of the words before a parenthesis: `The Office (US)` is usually called The Office.
    bare_length: usize,
}

impl NormalizedTitle {
    pub fn new(title: &str) -> Self {
        let words = title_key(title);
        let bare_length = title.split_once('(').map_or(words.len(), |(bare, _)| title_key(bare).len());
        Self { words: words.into(), bare_length }
    }

    pub fn word_prefixes(&self) -> WordPrefixes {
        WordPrefixes::from_words(&self.words)
    }

    /// Returns the sort key of the title.
    pub fn sort_key(&self) -> &str {
        strip_article(&self.words)
    }

    fn without_parenthesis(&self) -> &str {
        self.words.get(..self.bare_length).unwrap_or(&self.words)
    }
}

/// Bloom filter of the first two bytes of each word of a text. For most titles, it shows without a comparison that a
/// query does not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WordPrefixes(u64);

impl WordPrefixes {
    /// Builds the filter for normalized words.
    pub fn from_words(words: &str) -> Self {
        let bits = words.split([' ', '\n']).map(|word| match word.as_bytes() {
            // A longer word that begins with this word begins with the same two bytes.
            [first, second, ..] => 1 << ((usize::from(*first) * 31 + usize::from(*second)) % 64),
            // A longer word may continue with any letter.
            [_] | [] => 0,
        });
        Self(bits.fold(0, |bits, bit: u64| bits | bit))
    }

    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl TitleQuery {
    pub fn new(text: &str) -> Self {
        let words = title_key(text);
        let with_year = words.rsplit_once(' ').and_then(|(title, last)| {
            // Any other number is part of the title.
            let year = last.parse().ok().filter(|year| (1900..2100).contains(year))?;
            Some((title.to_owned(), year))
        });
        Self { words, with_year, aliases: Vec::new() }
    }

    /// Adds the title for which the query is an alias. A catalog may list a title without the part in parentheses: The
    /// Office (UK) of 2001 is listed as The Office.
    pub fn with_alias(mut self, title: Option<&str>) -> Self {
        let Some(title) = title else { return self };
        let alias = Self::new(title);
        if let Some((_, year)) = alias.with_year
            && let Some((bare, _)) = title.split_once('(')
        {
            self.aliases.push(Self::new(&format!("{bare} {year}")));
        }
        self.aliases.push(alias);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the quality of the match of a title. A year at the end may be part of the title (Blade Runner 2049) or
    /// distinguish one movie from another (Dune 2021).
    pub fn match_title(&self, title: &NormalizedTitle, year: u16) -> MatchQuality {
        let full_match = match_words(&self.words, title);
        let text_match = match &self.with_year {
            Some((words, query_year)) if *query_year == year => full_match.min(match_words(words, title)),
            _ => full_match,
        };
        let alias_match = self.aliases.iter().map(|alias| alias.match_title(title, year)).min();
        match alias_match {
            Some(MatchQuality::Alias | MatchQuality::Exact) => MatchQuality::Alias,
            Some(quality) => quality.min(text_match),
            None => text_match,
        }
    }

    /// Returns whether the query is the name of the title with one typing error, or with two in a long name.
    pub fn resembles(&self, title: &NormalizedTitle) -> bool {
        let max_errors = match strip_article(&self.words).len() {
            0..MIN_SIMILAR_LENGTH => return false,
            MIN_SIMILAR_LENGTH..MIN_LENGTH_FOR_TWO_ERRORS => 1,
            MIN_LENGTH_FOR_TWO_ERRORS.. => 2,
        };
        let is_close = |query: &str, name: &str| {
            name.len().abs_diff(query.len()) <= max_errors && strsim::osa_distance(query, name) <= max_errors
        };
        // The article may be missing, or misspelled.
        let resembles = |name: &str| {
            is_close(strip_article(&self.words), strip_article(name)) || is_close(&self.words, name)
        };
        resembles(&title.words) || resembles(title.without_parenthesis())
    }

    /// Returns whether the query is `other_name`, a normalized alternate title, or the beginning of it.
    pub fn matches_other_name(&self, other_name: &str, year: u16) -> bool {
        let is_beginning = |words: &str| {
            let rest = strip_article(other_name).strip_prefix(strip_article(words));
            !words.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        is_beginning(&self.words)
            || self
                .with_year
                .as_ref()
                .is_some_and(|(words, query_year)| *query_year == year && is_beginning(words))
            || self.aliases.iter().any(|alias| alias.matches_other_name(other_name, year))
    }

    /// Returns a filter for each form of the query. Every title that matches, by its name or another name, contains at
    /// least one of them.
    pub fn word_prefixes(&self) -> Vec<WordPrefixes> {
        // Words may be joined in the title: "spider man" matches Spiderman, which has only the beginning of the first word.
        let prefixes = |words: &str| {
            let words = strip_article(words);
            [
                WordPrefixes::from_words(words),
                WordPrefixes::from_words(words.split(' ').next().unwrap_or_default()),
            ]
        };
        let with_year = self.with_year.iter().flat_map(|(words, _)| prefixes(words));
        let aliases = self.aliases.iter().flat_map(Self::word_prefixes);
        prefixes(&self.words).into_iter().chain(with_year).chain(aliases).collect()
    }

    /// Sorts hits by match quality and keeps the order of equal ones. If the query has a year or an alias and some hit
    /// matches, the loose matches are dropped.
    pub fn rank_hits<T>(
        &self,
        hits: Vec<T>,
        title_and_year: impl Fn(&T) -> (&str, u16),
    ) -> Vec<(MatchQuality, T)> {
        let mut ranked: Vec<(MatchQuality, T)> = hits
            .into_iter()
            .map(|hit| {
                let (title, year) = title_and_year(&hit);
                (self.match_title(&NormalizedTitle::new(title), year), hit)
            })
            .collect();
        if (self.with_year.is_some() || !self.aliases.is_empty())
            && ranked.iter().any(|(quality, _)| *quality < MatchQuality::Loose)
        {
            ranked.retain(|(quality, _)| *quality < MatchQuality::Loose);
        }
        ranked.sort_by_key(|(quality, _)| *quality);
        ranked
    }
}

/// Returns whether a title with these word prefixes may match one of the forms of a query.
pub fn may_match(title: WordPrefixes, queries: &[WordPrefixes]) -> bool {
    queries.iter().any(|query| title.contains(*query))
}

fn match_words(words: &str, title: &NormalizedTitle) -> MatchQuality {
    let query = strip_article(words);
    let start = strip_article(&title.words);
    if is_same_key(query, start) || is_same_key(query, strip_article(title.without_parenthesis())) {
        MatchQuality::Exact
    } else if start.strip_prefix(query).is_some_and(|rest| rest.starts_with(' ')) {
        MatchQuality::Prefix
    } else if query
        .split(' ')
        .all(|word| title.words.split(' ').any(|title_word| title_word.starts_with(word)))
    {
        MatchQuality::Words
    } else {
        MatchQuality::Loose
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(query: &str, hits: &[(&str, u16)], expected: &[&str]) {
        let ranked = TitleQuery::new(query).rank_hits(hits.to_vec(), |hit| *hit);
        let ranked: Vec<String> = ranked
            .into_iter()
            .map(|(quality, (title, year))| format!("{title} {year} {quality:?}"))
            .collect();
        assert_eq!(ranked, expected);
    }

    #[test]
    fn exact_title_ranks_first_and_then_prefixes() {
        check(
            "dune",
            &[("Jodorowsky's Dune", 2013), ("Dune: Part Two", 2024), ("Arrakis", 1990), ("Dune", 2021)],
            &[
                "Dune 2021 Exact",
                "Dune: Part Two 2024 Prefix",
                "Jodorowsky's Dune 2013 Words",
                "Arrakis 1990 Loose",
            ],
        );
    }

    #[test]
    fn other_spellings_of_a_title_are_exact() {
        check(
            "spiderman no way home",
            &[("Spider-Man: No Way Home", 2021)],
            &["Spider-Man: No Way Home 2021 Exact"],
        );
        check(
            "rocky 2",
            &[("Rocky", 1976), ("Rocky II", 1979)],
            &["Rocky II 1979 Exact", "Rocky 1976 Loose"],
        );
        check("oceans 11", &[("Ocean's Eleven", 2001)], &["Ocean's Eleven 2001 Exact"]);
        check("dune part 2", &[("Dune: Part Two", 2024)], &["Dune: Part Two 2024 Exact"]);
        check("seven", &[("Se7en", 1995)], &["Se7en 1995 Exact"]);
    }

    #[test]
    fn name_with_a_typing_error_is_similar() {
        let resembles =
            |query: &str, title: &str| TitleQuery::new(query).resembles(&NormalizedTitle::new(title));
        for (query, title) in [
            ("alein", "Alien"),
            ("teh bear", "The Bear"),
            ("the ofice", "The Office (US)"),
            ("openhiemer", "Oppenheimer"),
            ("blade runnr", "Blade Runner"),
        ] {
            assert!(resembles(query, title), "{query:?}");
        }
        for (query, title) in [("up", "Us"), ("heat", "Heathers"), ("dune", "Done Deal"), ("", "It")] {
            assert!(!resembles(query, title), "{query:?}");
        }
    }

    #[test]
    fn articles_and_countries_are_ignored() {
        check("matrix", &[("The Matrix", 1999)], &["The Matrix 1999 Exact"]);
        check("the office", &[("The Office (US)", 2005)], &["The Office (US) 2005 Exact"]);
    }

    #[test]
    fn year_at_the_end_selects_among_equal_titles() {
        check("dune 1984", &[("Dune", 2021), ("Dune", 1984)], &["Dune 1984 Exact"]);
        check("dune 1990", &[("Dune", 2021), ("Dune", 1984)], &["Dune 2021 Loose", "Dune 1984 Loose"]);
    }

    #[test]
    fn alias_ranks_first_in_any_catalog_spelling() {
        let hits = [("The Office (US)", 2005), ("The Office", 2001), ("Arrakis", 1990)];
        let query = TitleQuery::new("office").with_alias(Some("The Office (UK) 2001"));
        let ranked: Vec<(MatchQuality, u16)> = query
            .rank_hits(hits.to_vec(), |hit| *hit)
            .into_iter()
            .map(|(quality, (_, year))| (quality, year))
            .collect();
        assert_eq!(ranked, [(MatchQuality::Alias, 2001), (MatchQuality::Exact, 2005)]);
        let unknown = TitleQuery::new("office").with_alias(Some("Nowhere To Be Found"));
        assert_eq!(unknown.match_title(&NormalizedTitle::new("The Office (US)"), 2005), MatchQuality::Exact);
        assert_eq!(unknown.match_title(&NormalizedTitle::new("Arrakis"), 1990), MatchQuality::Loose);
    }

    #[test]
    fn year_in_a_title_is_part_of_it() {
        check(
            "blade runner 2049",
            &[("Blade Runner", 1982), ("Blade Runner 2049", 2017)],
            &["Blade Runner 2049 2017 Exact"],
        );
        check("2012", &[("2012", 2009)], &["2012 2009 Exact"]);
    }

    /// Generates texts from few distinct words, so that queries match titles. Some words are one letter long, or the
    /// beginning of others.
    fn some_words() -> impl Strategy<Value = String> {
        let word = prop::sample::select(vec![
            "the",
            "a",
            "an",
            "dune",
            "dun",
            "d",
            "part",
            "party",
            "two",
            "(2021)",
            "2021",
            "1984",
            "o",
            "i",
            "\u{e9}t\u{e9}",
            "et",
        ]);
        prop::collection::vec(word, 0..5).prop_map(|words| words.join(" "))
    }

    proptest! {
        #[test]
        fn prefix_filter_excludes_no_matching_title(
            query in some_words(), alias in prop::option::of(some_words()),
            title in some_words(), other in some_words(), year in prop::sample::select(vec![1984, 2021]),
        ) {
            let query = TitleQuery::new(&query).with_alias(alias.as_deref());
            let (title, other) = (NormalizedTitle::new(&title), title_key(&other));
            let prefixes = title.word_prefixes().union(WordPrefixes::from_words(&other));
            let is_match = query.match_title(&title, year) < MatchQuality::Loose || query.matches_other_name(&other, year);
            prop_assert!(!is_match || may_match(prefixes, &query.word_prefixes()));
        }
    }
}
