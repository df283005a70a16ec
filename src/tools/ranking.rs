//! Match of titles to a query: the quality of each match, and the order in which titles are reported.

use super::formatting::normalize_name;
use crate::conversation::text::normalization::strip_article;

/// Query normalized for comparison: its words, and the year at its end, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TitleQuery {
    words: String,
    /// Words before the year, and the year.
    dated: Option<(String, u16)>,
    /// Title that the user means by the query, in the spellings that catalogs may use.
    aliases: Vec<TitleQuery>,
}

/// Quality of a match, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchQuality {
    /// Title that the user has defined as the meaning of the query.
    Alias,
    Exact,
    Prefix,
    /// Title that contains every word of the query, or is also known by that name.
    Words,
    /// Title that contains only some of the words, because the catalog found it by another name.
    Loose,
}

/// Title normalized for comparison. The normalized title is computed once if many queries are compared with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainTitle {
    words: Box<str>,
    /// Number of bytes of the words before a bracket, because `The Office (US)` is usually called The Office.
    bare: usize,
}

impl PlainTitle {
    pub fn new(title: &str) -> Self {
        let words = normalize_name(title);
        let bare = title.split_once('(').map_or(words.len(), |(bare, _)| normalize_name(bare).len());
        Self { words: words.into(), bare }
    }

    pub fn word_prefixes(&self) -> WordPrefixes {
        WordPrefixes::from_words(&self.words)
    }

    /// Returns the sort key of the title.
    pub fn sort_key(&self) -> &str {
        strip_article(&self.words)
    }

    fn without_brackets(&self) -> &str {
        self.words.get(..self.bare).unwrap_or(&self.words)
    }
}

/// Beginnings of the words of a text, as a set that may appear to contain more than it does. For most titles, the set
/// shows immediately that a query does not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WordPrefixes(u64);

impl WordPrefixes {
    /// Builds the set for normalized words.
    pub fn from_words(words: &str) -> Self {
        let bits = words.split([' ', '\n']).map(|word| match word.as_bytes() {
            // A longer word that begins with this word begins with the same two bytes.
            [one, other, ..] => 1 << ((usize::from(*one) * 31 + usize::from(*other)) % 64),
            // A longer word may continue with any letter.
            [_] | [] => 0,
        });
        Self(bits.fold(0, |all, bit: u64| all | bit))
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
        let words = normalize_name(text);
        let dated = words.rsplit_once(' ').and_then(|(title, last)| {
            // Any other number is part of the title.
            let year = last.parse().ok().filter(|year| (1900..2100).contains(year))?;
            Some((title.to_owned(), year))
        });
        Self { words, dated, aliases: Vec::new() }
    }

    /// Adds the title that the user means by the query. A catalog may list a title with a year but without the part in
    /// brackets: The Office (UK) of 2001 is listed there as The Office.
    pub fn with_alias(mut self, title: Option<&str>) -> Self {
        let Some(title) = title else { return self };
        let meant = Self::new(title);
        if let Some((_, year)) = meant.dated
            && let Some((bare, _)) = title.split_once('(')
        {
            self.aliases.push(Self::new(&format!("{bare} {year}")));
        }
        self.aliases.push(meant);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the quality of the match of a title. A year at the end may be part of the title (Blade Runner 2049) or
    /// distinguish one movie from another (Dune 2021).
    pub fn match_title(&self, title: &PlainTitle, year: u16) -> MatchQuality {
        let whole = match_words(&self.words, title);
        let said = match &self.dated {
            Some((words, wanted)) if *wanted == year => whole.min(match_words(words, title)),
            _ => whole,
        };
        let meant = self.aliases.iter().map(|meant| meant.match_title(title, year)).min();
        match meant {
            Some(MatchQuality::Alias | MatchQuality::Exact) => MatchQuality::Alias,
            Some(fit) => fit.min(said),
            None => said,
        }
    }

    /// Returns whether the query is another name of a title, in normalized words, or the beginning of one.
    pub fn is_name_of(&self, other: &str, year: u16) -> bool {
        let names = |words: &str| {
            let rest = strip_article(other).strip_prefix(strip_article(words));
            !words.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        names(&self.words)
            || self.dated.as_ref().is_some_and(|(words, wanted)| *wanted == year && names(words))
            || self.aliases.iter().any(|meant| meant.is_name_of(other, year))
    }

    /// Returns sets of beginnings. A title that matches, by its name or another name, must fully contain at least one
    /// of the sets.
    pub fn word_prefixes(&self) -> Vec<WordPrefixes> {
        let of = |words: &str| WordPrefixes::from_words(strip_article(words));
        let dated = self.dated.iter().map(|(words, _)| of(words));
        let meant = self.aliases.iter().flat_map(Self::word_prefixes);
        std::iter::once(of(&self.words)).chain(dated).chain(meant).collect()
    }

    /// Sorts hits by match quality and keeps the order of equal ones. If some hit matches the year or the intended
    /// title, the hits that do not are dropped.
    pub fn rank_hits<T>(
        &self,
        hits: Vec<T>,
        title_and_year: impl Fn(&T) -> (&str, u16),
    ) -> Vec<(MatchQuality, T)> {
        let mut ranked: Vec<(MatchQuality, T)> = hits
            .into_iter()
            .map(|hit| {
                let (title, year) = title_and_year(&hit);
                (self.match_title(&PlainTitle::new(title), year), hit)
            })
            .collect();
        if (self.dated.is_some() || !self.aliases.is_empty())
            && ranked.iter().any(|(fit, _)| *fit < MatchQuality::Loose)
        {
            ranked.retain(|(fit, _)| *fit < MatchQuality::Loose);
        }
        ranked.sort_by_key(|(fit, _)| *fit);
        ranked
    }
}

/// Returns whether a title with these beginnings may match the query.
pub fn may_match(held: WordPrefixes, sought: &[WordPrefixes]) -> bool {
    sought.iter().any(|sought| held.contains(*sought))
}

fn match_words(words: &str, title: &PlainTitle) -> MatchQuality {
    let wanted = strip_article(words);
    let start = strip_article(&title.words);
    if wanted == start || wanted == strip_article(title.without_brackets()) {
        MatchQuality::Exact
    } else if start.strip_prefix(wanted).is_some_and(|rest| rest.starts_with(' ')) {
        MatchQuality::Prefix
    } else if wanted.split(' ').all(|word| title.words.split(' ').any(|held| held.starts_with(word))) {
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
    fn check(query: &str, hits: &[(&str, u16)], told: &[&str]) {
        let ranked = TitleQuery::new(query).rank_hits(hits.to_vec(), |hit| *hit);
        let ranked: Vec<String> =
            ranked.into_iter().map(|(fit, (title, year))| format!("{title} {year} {fit:?}")).collect();
        assert_eq!(ranked, told);
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
    fn articles_and_countries_are_ignored() {
        check("matrix", &[("The Matrix", 1999)], &["The Matrix 1999 Exact"]);
        check("the office", &[("The Office (US)", 2005)], &["The Office (US) 2005 Exact"]);
    }

    #[test]
    fn year_at_the_end_narrows() {
        check("dune 1984", &[("Dune", 2021), ("Dune", 1984)], &["Dune 1984 Exact"]);
        check("dune 1990", &[("Dune", 2021), ("Dune", 1984)], &["Dune 2021 Loose", "Dune 1984 Loose"]);
    }

    #[test]
    fn alias_target_ranks_first_in_any_catalog_spelling() {
        let hits = [("The Office (US)", 2005), ("The Office", 2001), ("Arrakis", 1990)];
        let query = TitleQuery::new("office").with_alias(Some("The Office (UK) 2001"));
        let ranked: Vec<(MatchQuality, u16)> = query
            .rank_hits(hits.to_vec(), |hit| *hit)
            .into_iter()
            .map(|(fit, (_, year))| (fit, year))
            .collect();
        assert_eq!(ranked, [(MatchQuality::Alias, 2001), (MatchQuality::Exact, 2005)]);
        let unknown = TitleQuery::new("office").with_alias(Some("Nowhere To Be Found"));
        assert_eq!(unknown.match_title(&PlainTitle::new("The Office (US)"), 2005), MatchQuality::Exact);
        assert_eq!(unknown.match_title(&PlainTitle::new("Arrakis"), 1990), MatchQuality::Loose);
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
            query in some_words(), meaning in prop::option::of(some_words()),
            title in some_words(), other in some_words(), year in prop::sample::select(vec![1984, 2021]),
        ) {
            let query = TitleQuery::new(&query).with_alias(meaning.as_deref());
            let (title, other) = (PlainTitle::new(&title), normalize_name(&other));
            let held = title.word_prefixes().union(WordPrefixes::from_words(&other));
            let is_meant = query.match_title(&title, year) < MatchQuality::Loose || query.is_name_of(&other, year);
            prop_assert!(!is_meant || may_match(held, &query.word_prefixes()));
        }
    }
}
