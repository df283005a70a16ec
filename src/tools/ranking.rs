//! Match of titles to a query: the quality of each match, and the order in which titles are reported.

use super::answers::plain;
use crate::conversation::text_normalization::without_article;

/// Query normalized for comparison: its words, and the year at its end, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    words: String,
    /// Words before the year, and the year.
    dated: Option<(String, u16)>,
    /// Title that the user means by the query, in the spellings that catalogs may use.
    meant: Vec<Query>,
}

/// Quality of a match, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// The user has stated that they mean this title by the query.
    Meant,
    Exact,
    Starts,
    /// The title contains every word of the query, or is also known by that name.
    Words,
    /// The title contains only some of the words, because the catalog found it by another name.
    Loose,
}

/// Title normalized for comparison. Computed once if many queries are compared with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainTitle {
    words: Box<str>,
    /// Number of bytes of the words before a bracket, because `The Office (US)` is usually called The Office.
    bare: usize,
}

impl PlainTitle {
    pub fn new(title: &str) -> Self {
        let words = plain(title);
        let bare = title.split_once('(').map_or(words.len(), |(bare, _)| plain(bare).len());
        Self { words: words.into(), bare }
    }

    pub fn beginnings(&self) -> Beginnings {
        Beginnings::of(&self.words)
    }

    /// Sort key of the title.
    pub fn sorted(&self) -> &str {
        without_article(&self.words)
    }

    fn bare(&self) -> &str {
        self.words.get(..self.bare).unwrap_or(&self.words)
    }
}

/// Beginnings of the words of a text, as a set that may appear to contain more than it does. For most titles, the set
/// shows immediately that a query does not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Beginnings(u64);

impl Beginnings {
    /// Set for normalized words.
    pub fn of(words: &str) -> Self {
        let bits = words.split([' ', '\n']).map(|word| match word.as_bytes() {
            // A longer word that begins with this word begins with the same two bytes.
            [one, other, ..] => 1 << ((usize::from(*one) * 31 + usize::from(*other)) % 64),
            // A longer word may continue with any letter.
            [_] | [] => 0,
        });
        Self(bits.fold(0, |all, bit: u64| all | bit))
    }

    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn hold(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl Query {
    pub fn new(text: &str) -> Self {
        let words = plain(text);
        let dated = words.rsplit_once(' ').and_then(|(title, last)| {
            // Any other number is part of the title.
            let year = last.parse().ok().filter(|year| (1900..2100).contains(year))?;
            Some((title.to_owned(), year))
        });
        Self { words, dated, meant: Vec::new() }
    }

    /// Adds the title that the user means by the query. A catalog may list a title with a year but without the part in
    /// brackets: The Office (UK) of 2001 is listed there as The Office.
    pub fn meaning(mut self, title: Option<&str>) -> Self {
        let Some(title) = title else { return self };
        let meant = Self::new(title);
        if let Some((_, year)) = meant.dated
            && let Some((bare, _)) = title.split_once('(')
        {
            self.meant.push(Self::new(&format!("{bare} {year}")));
        }
        self.meant.push(meant);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Quality of the match of a title. A year at the end may be part of the title (Blade Runner 2049) or distinguish
    /// one film from another (Dune 2021).
    pub fn fit(&self, title: &PlainTitle, year: u16) -> Fit {
        let whole = fit_words(&self.words, title);
        let said = match &self.dated {
            Some((words, wanted)) if *wanted == year => whole.min(fit_words(words, title)),
            _ => whole,
        };
        let meant = self.meant.iter().map(|meant| meant.fit(title, year)).min();
        match meant {
            Some(Fit::Meant | Fit::Exact) => Fit::Meant,
            Some(fit) => fit.min(said),
            None => said,
        }
    }

    /// True if the query is another name of a title, in normalized words, or the beginning of one.
    pub fn names(&self, other: &str, year: u16) -> bool {
        let names = |words: &str| {
            let rest = without_article(other).strip_prefix(without_article(words));
            !words.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        names(&self.words)
            || self.dated.as_ref().is_some_and(|(words, wanted)| *wanted == year && names(words))
            || self.meant.iter().any(|meant| meant.names(other, year))
    }

    /// Sets of beginnings, of which a title that matches, by its name or another name, must fully contain at least one.
    pub fn beginnings(&self) -> Vec<Beginnings> {
        let of = |words: &str| Beginnings::of(without_article(words));
        let dated = self.dated.iter().map(|(words, _)| of(words));
        let meant = self.meant.iter().flat_map(Self::beginnings);
        std::iter::once(of(&self.words)).chain(dated).chain(meant).collect()
    }

    /// Sorts hits by match quality and keeps the order of equal ones. If some hit matches the year or the intended
    /// title, the hits that do not are dropped.
    pub fn rank<T>(&self, hits: Vec<T>, title_and_year: impl Fn(&T) -> (&str, u16)) -> Vec<(Fit, T)> {
        let mut ranked: Vec<(Fit, T)> = hits
            .into_iter()
            .map(|hit| {
                let (title, year) = title_and_year(&hit);
                (self.fit(&PlainTitle::new(title), year), hit)
            })
            .collect();
        if (self.dated.is_some() || !self.meant.is_empty()) && ranked.iter().any(|(fit, _)| *fit < Fit::Loose)
        {
            ranked.retain(|(fit, _)| *fit < Fit::Loose);
        }
        ranked.sort_by_key(|(fit, _)| *fit);
        ranked
    }
}

/// True if a title with these beginnings may match the query.
pub fn may_be_meant(held: Beginnings, sought: &[Beginnings]) -> bool {
    sought.iter().any(|sought| held.hold(*sought))
}

fn fit_words(words: &str, title: &PlainTitle) -> Fit {
    let wanted = without_article(words);
    let start = without_article(&title.words);
    if wanted == start || wanted == without_article(title.bare()) {
        Fit::Exact
    } else if start.strip_prefix(wanted).is_some_and(|rest| rest.starts_with(' ')) {
        Fit::Starts
    } else if wanted.split(' ').all(|word| title.words.split(' ').any(|held| held.starts_with(word))) {
        Fit::Words
    } else {
        Fit::Loose
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(query: &str, hits: &[(&str, u16)], told: &[&str]) {
        let ranked = Query::new(query).rank(hits.to_vec(), |hit| *hit);
        let ranked: Vec<String> =
            ranked.into_iter().map(|(fit, (title, year))| format!("{title} {year} {fit:?}")).collect();
        assert_eq!(ranked, told);
    }

    #[test]
    fn the_exact_title_comes_first_then_those_that_start_with_it() {
        check(
            "dune",
            &[("Jodorowsky's Dune", 2013), ("Dune: Part Two", 2024), ("Arrakis", 1990), ("Dune", 2021)],
            &[
                "Dune 2021 Exact",
                "Dune: Part Two 2024 Starts",
                "Jodorowsky's Dune 2013 Words",
                "Arrakis 1990 Loose",
            ],
        );
    }

    #[test]
    fn articles_and_countries_make_no_other_title() {
        check("matrix", &[("The Matrix", 1999)], &["The Matrix 1999 Exact"]);
        check("the office", &[("The Office (US)", 2005)], &["The Office (US) 2005 Exact"]);
    }

    #[test]
    fn a_year_at_the_end_narrows() {
        check("dune 1984", &[("Dune", 2021), ("Dune", 1984)], &["Dune 1984 Exact"]);
        check("dune 1990", &[("Dune", 2021), ("Dune", 1984)], &["Dune 2021 Loose", "Dune 1984 Loose"]);
    }

    #[test]
    fn what_is_meant_comes_first_however_the_catalogue_writes_it() {
        let hits = [("The Office (US)", 2005), ("The Office", 2001), ("Arrakis", 1990)];
        let query = Query::new("office").meaning(Some("The Office (UK) 2001"));
        let ranked: Vec<(Fit, u16)> =
            query.rank(hits.to_vec(), |hit| *hit).into_iter().map(|(fit, (_, year))| (fit, year)).collect();
        assert_eq!(ranked, [(Fit::Meant, 2001), (Fit::Exact, 2005)]);
        let unknown = Query::new("office").meaning(Some("Nowhere To Be Found"));
        assert_eq!(unknown.fit(&PlainTitle::new("The Office (US)"), 2005), Fit::Exact);
        assert_eq!(unknown.fit(&PlainTitle::new("Arrakis"), 1990), Fit::Loose);
    }

    #[test]
    fn a_year_in_a_title_is_part_of_it() {
        check(
            "blade runner 2049",
            &[("Blade Runner", 1982), ("Blade Runner 2049", 2017)],
            &["Blade Runner 2049 2017 Exact"],
        );
        check("2012", &[("2012", 2009)], &["2012 2009 Exact"]);
    }

    /// Few distinct words, so that queries match titles. Some are one letter long, or the beginning of others.
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
        fn no_title_that_is_meant_is_left_out_for_how_its_words_begin(
            query in some_words(), meaning in prop::option::of(some_words()),
            title in some_words(), other in some_words(), year in prop::sample::select(vec![1984, 2021]),
        ) {
            let query = Query::new(&query).meaning(meaning.as_deref());
            let (title, other) = (PlainTitle::new(&title), plain(&other));
            let held = title.beginnings().with(Beginnings::of(&other));
            let is_meant = query.fit(&title, year) < Fit::Loose || query.names(&other, year);
            prop_assert!(!is_meant || may_be_meant(held, &query.beginnings()));
        }
    }
}
