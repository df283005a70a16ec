//! Selection of the titles in the libraries that match a query, and their order.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;

use super::entries::{CachedTitle, CachedTitles};
use crate::tools::ranking::{MatchQuality, TitleQuery, WordPrefixes, may_match};

/// Criteria of a query for titles.
#[derive(Debug)]
pub struct LibraryQuery {
    pub query: TitleQuery,
    pub only: Option<StatusFilter>,
    pub genre: Option<String>,
    pub sort: Option<SortOrder>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusFilter {
    Missing,
    OnDisk,
    Unmonitored,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SortOrder {
    // Newest and oldest refer to the date on which a title was added.
    Newest,
    Oldest,
    Biggest,
    Title,
    Rating,
}

/// Title that matches a query.
#[derive(Debug)]
pub struct TitleMatch<'a> {
    /// Index of its library among those that were queried.
    pub library: usize,
    pub entry: &'a CachedTitle,
    fit: MatchQuality,
    /// Index among the matching titles of its library.
    position: usize,
}

impl TitleMatch<'_> {
    /// Returns whether the query is the name of the title or the beginning of its name.
    pub fn matches_start(&self) -> bool {
        self.fit <= MatchQuality::Prefix
    }

    /// Returns whether the user has stated that the queried name means this title.
    pub fn is_alias(&self) -> bool {
        self.fit == MatchQuality::Alias
    }
}

impl LibraryQuery {
    /// Returns whether the query has no criteria, so that it matches all titles.
    pub fn matches_everything(&self) -> bool {
        let Self { query, only, genre, sort } = self;
        query.is_empty() && only.is_none() && genre.is_none() && sort.is_none()
    }

    /// Returns the matching titles, in the order in which they are reported.
    pub fn select_titles<'a>(&self, libraries: &[&'a CachedTitles]) -> Vec<TitleMatch<'a>> {
        let mut meant = Vec::new();
        let sought = self.query.word_prefixes();
        for (library, entries) in libraries.iter().enumerate() {
            let genres = self.genre.as_deref().map(|genre| entries.genres_like(genre));
            let collections = entries.collections_named(&self.query);
            let mut here: Vec<(MatchQuality, &CachedTitle)> = entries
                .titles()
                .iter()
                .filter(|entry| {
                    self.meets_filter(entry) && genres.is_none_or(|meant| entry.genres.intersects(meant))
                })
                .map(|entry| (self.match_quality(entry, &sought, &collections), entry))
                .filter(|(fit, _)| *fit < MatchQuality::Loose)
                .collect();
            here.sort_by_key(|(fit, _)| *fit);
            let placed = here.into_iter().enumerate();
            meant.extend(placed.map(|(position, (fit, entry))| TitleMatch { library, entry, fit, position }));
        }
        self.sort_matches(&mut meant);
        meant
    }

    /// Returns whether a title meets the `only` criterion, which is the part of the query whose result may change at
    /// any moment.
    pub fn meets_filter(&self, entry: &CachedTitle) -> bool {
        match self.only {
            None => true,
            Some(StatusFilter::OnDisk) => entry.is_on_disk(),
            Some(StatusFilter::Missing) => entry.is_missing(),
            Some(StatusFilter::Unmonitored) => !entry.monitored,
        }
    }

    /// Returns the heading for a list of the matching titles.
    pub fn list_heading(&self) -> &'static str {
        match self.only {
            None => "In the library",
            Some(StatusFilter::Missing) => "Missing",
            Some(StatusFilter::OnDisk) => "On disk",
            Some(StatusFilter::Unmonitored) => "Not monitored",
        }
    }

    /// Returns the requested genre, if none of the libraries knows it.
    pub fn unknown_genre(&self, libraries: &[&CachedTitles]) -> Option<&str> {
        let unknown = |genre: &&str| libraries.iter().all(|it| it.genres_like(genre).is_empty());
        self.genre.as_deref().filter(unknown)
    }

    fn match_quality(
        &self,
        entry: &CachedTitle,
        sought: &[WordPrefixes],
        collections: &BTreeSet<i64>,
    ) -> MatchQuality {
        if self.query.is_empty() {
            return MatchQuality::Exact;
        }
        let also_called = || entry.other_names().any(|name| self.query.is_name_of(name, entry.year));
        let collected = || entry.collection_id().is_some_and(|number| collections.contains(&number));
        if !may_match(entry.prefixes, sought) {
            return if collected() { MatchQuality::Words } else { MatchQuality::Loose };
        }
        match self.query.match_title(&entry.plain, entry.year) {
            MatchQuality::Loose if also_called() || collected() => MatchQuality::Words,
            fit => fit,
        }
    }

    fn sort_matches(&self, meant: &mut [TitleMatch<'_>]) {
        let sort = match self.sort {
            None if self.query.is_empty() => SortOrder::Newest,
            None => {
                // The first title of each library, then the second of each, and so on.
                meant.sort_by_key(|it| (it.fit, it.position));
                return;
            }
            Some(sort) => sort,
        };
        match sort {
            SortOrder::Newest => meant.sort_by_key(|it| Reverse(it.entry.added)),
            // A title without a date is not known to be old, so it comes last.
            SortOrder::Oldest => meant.sort_by_key(|it| (it.entry.added.is_none(), it.entry.added)),
            SortOrder::Biggest => meant.sort_by_key(|it| Reverse(it.entry.size_bytes)),
            SortOrder::Title => {
                meant.sort_by(|one, other| one.entry.plain.sort_key().cmp(other.entry.plain.sort_key()))
            }
            SortOrder::Rating => meant.sort_by(|one, other| other.entry.rating.total_cmp(&one.entry.rating)),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use crate::arr::MovieCollection;
    use crate::arr::library_title::{EpisodeCounts, LibraryTitle, LibraryTitleDetails};

    struct Film(LibraryTitle);

    fn film(title: &str, year: u16) -> Film {
        Film(LibraryTitle {
            id: 1,
            catalog: 2,
            title: title.to_owned(),
            other_titles: Vec::new(),
            year,
            monitored: true,
            size_bytes: 0,
            profile: 4,
            genres: Vec::new(),
            added: None,
            rating: 0.0,
            detail: LibraryTitleDetails::Movie { has_file: false, available: true, collection: None },
        })
    }

    impl Film {
        fn also(mut self, name: &str) -> Self {
            self.0.other_titles.push(name.to_owned());
            self
        }

        fn unmonitored(mut self) -> Self {
            self.0.monitored = false;
            self
        }

        fn genre(mut self, name: &str) -> Self {
            self.0.genres.push(name.to_owned());
            self
        }

        fn rated(mut self, rating: f32) -> Self {
            self.0.rating = rating;
            self
        }

        fn added(mut self, day: i8) -> Self {
            self.0.added = Some(date(2026, 1, day));
            self
        }

        fn on_disk(mut self, bytes: u64) -> Self {
            self.0.size_bytes = bytes;
            if let LibraryTitleDetails::Movie { has_file, .. } = &mut self.0.detail {
                *has_file = true;
            }
            self
        }

        fn of(mut self, name: &str) -> Self {
            if let LibraryTitleDetails::Movie { collection, .. } = &mut self.0.detail {
                *collection = Some(MovieCollection { tmdb: 8091, title: name.to_owned() });
            }
            self
        }
    }

    fn all() -> LibraryQuery {
        LibraryQuery { query: TitleQuery::new(""), only: None, genre: None, sort: None }
    }

    fn called(query: &str) -> LibraryQuery {
        LibraryQuery { query: TitleQuery::new(query), ..all() }
    }

    fn library() -> Vec<Film> {
        vec![
            film("The Thing", 1982).genre("Horror").rated(8.2).added(3).on_disk(7),
            film("Alien", 1979)
                .genre("Horror")
                .genre("Science Fiction")
                .rated(8.5)
                .added(1)
                .of("Alien Collection"),
            film("Aliens", 1986)
                .genre("Science Fiction")
                .rated(8.4)
                .added(5)
                .on_disk(9)
                .of("Alien Collection"),
            film("Leon: The Professional", 1994).also("Der Profi").also("Leon").unmonitored(),
        ]
    }

    /// Checks the titles that match in a library of movies and one of series.
    #[track_caller]
    fn check(wanted: &LibraryQuery, expected: &[&str]) {
        let (mut films, mut shows) = (CachedTitles::default(), CachedTitles::default());
        for Film(film) in library() {
            films.push(film);
        }
        let episodes = EpisodeCounts { seasons: 1, on_disk: 4, all: 8, missing: 4 };
        let Film(show) = film("Alien: Earth", 2025).genre("Drama").added(4);
        shows.push(LibraryTitle { detail: LibraryTitleDetails::Series(episodes), ..show });
        let meant = wanted.select_titles(&[&films, &shows]);
        assert_eq!(meant.iter().map(|it| it.entry.title.as_ref()).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn title_matches_by_words_with_the_exact_one_first() {
        check(&called("alien"), &["Alien", "Alien: Earth", "Aliens"]);
        check(&called("thing 1982"), &["The Thing"]);
        check(&called("thing 2011"), &[]);
    }

    #[test]
    fn title_matches_by_alternate_names_and_collection() {
        check(&called("der profi"), &["Leon: The Professional"]);
        check(&called("der profi 1994"), &["Leon: The Professional"]);
        check(&called("Alien collection"), &["Alien", "Aliens"]);
    }

    #[test]
    fn titles_are_filtered_by_status() {
        check(
            &LibraryQuery { only: Some(StatusFilter::OnDisk), ..all() },
            &["Aliens", "Alien: Earth", "The Thing"],
        );
        check(&LibraryQuery { only: Some(StatusFilter::Missing), ..all() }, &["Alien: Earth", "Alien"]);
        check(&LibraryQuery { only: Some(StatusFilter::Unmonitored), ..all() }, &["Leon: The Professional"]);
        check(
            &LibraryQuery { only: Some(StatusFilter::Missing), ..called("alien") },
            &["Alien", "Alien: Earth"],
        );
    }

    #[test]
    fn titles_are_filtered_by_genre_and_sorted() {
        let genre =
            |name: &str, sort| LibraryQuery { genre: Some(name.to_owned()), sort: Some(sort), ..all() };
        check(&genre("horror", SortOrder::Oldest), &["Alien", "The Thing"]);
        check(&genre("sci-fi", SortOrder::Newest), &["Aliens", "Alien"]);
        check(&genre("western", SortOrder::Newest), &[]);
        let sorted = |sort| LibraryQuery { sort: Some(sort), ..called("alien") };
        check(&sorted(SortOrder::Biggest), &["Aliens", "Alien", "Alien: Earth"]);
        check(&sorted(SortOrder::Rating), &["Alien", "Aliens", "Alien: Earth"]);
        let by_title = ["Alien", "Alien: Earth", "Aliens", "Leon: The Professional", "The Thing"];
        check(&LibraryQuery { sort: Some(SortOrder::Title), ..all() }, &by_title);
    }
}
