//! Selection of the titles in the libraries that match a query, and their order.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;

use super::entries::{Entries, Entry};
use crate::tools::ranking::{Beginnings, Fit, Query, may_be_meant};

/// Criteria of a query for titles.
#[derive(Debug)]
pub struct Wanted {
    pub query: Query,
    pub only: Option<Only>,
    pub genre: Option<String>,
    pub sort: Option<Sort>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Only {
    Missing,
    OnDisk,
    Unmonitored,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    // Newest and oldest refer to the date on which a title was added.
    Newest,
    Oldest,
    Biggest,
    Title,
    Rating,
}

/// Title that matches a query.
#[derive(Debug)]
pub struct Meant<'a> {
    /// Index of its library among those that were queried.
    pub library: usize,
    pub entry: &'a Entry,
    fit: Fit,
    /// Index among the matching titles of its library.
    position: usize,
}

impl Meant<'_> {
    /// True if the query is its name or the beginning of its name.
    pub fn begins_so(&self) -> bool {
        self.fit <= Fit::Starts
    }

    /// True if the user has stated that the queried name means this title.
    pub fn is_what_they_mean(&self) -> bool {
        self.fit == Fit::Meant
    }
}

impl Wanted {
    /// True if the query has no criteria, so that it matches all titles.
    pub fn is_everything(&self) -> bool {
        let Self { query, only, genre, sort } = self;
        query.is_empty() && only.is_none() && genre.is_none() && sort.is_none()
    }

    /// Matching titles, in the order in which they are reported.
    pub fn select<'a>(&self, libraries: &[&'a Entries]) -> Vec<Meant<'a>> {
        let mut meant = Vec::new();
        let sought = self.query.beginnings();
        for (library, entries) in libraries.iter().enumerate() {
            let genres = self.genre.as_deref().map(|genre| entries.genres_like(genre));
            let collections = entries.collections_called(&self.query);
            let mut here: Vec<(Fit, &Entry)> = entries
                .titles()
                .iter()
                .filter(|entry| self.holds(entry) && genres.is_none_or(|meant| entry.genres.meet(meant)))
                .map(|entry| (self.fit(entry, &sought, &collections), entry))
                .filter(|(fit, _)| *fit < Fit::Loose)
                .collect();
            here.sort_by_key(|(fit, _)| *fit);
            let placed = here.into_iter().enumerate();
            meant.extend(placed.map(|(position, (fit, entry))| Meant { library, entry, fit, position }));
        }
        self.order(&mut meant);
        meant
    }

    /// True if a title meets the `only` criterion, which is the part of the query whose result may change at any
    /// moment.
    pub fn holds(&self, entry: &Entry) -> bool {
        match self.only {
            None => true,
            Some(Only::OnDisk) => entry.on_disk(),
            Some(Only::Missing) => entry.missing(),
            Some(Only::Unmonitored) => !entry.monitored,
        }
    }

    /// Heading for a list of the matching titles.
    pub fn heading(&self) -> &'static str {
        match self.only {
            None => "In the library",
            Some(Only::Missing) => "Missing",
            Some(Only::OnDisk) => "On disk",
            Some(Only::Unmonitored) => "Not monitored",
        }
    }

    /// Requested genre, if none of the libraries knows it.
    pub fn unknown_genre(&self, libraries: &[&Entries]) -> Option<&str> {
        let unknown = |genre: &&str| libraries.iter().all(|it| it.genres_like(genre).is_empty());
        self.genre.as_deref().filter(unknown)
    }

    fn fit(&self, entry: &Entry, sought: &[Beginnings], collections: &BTreeSet<i64>) -> Fit {
        if self.query.is_empty() {
            return Fit::Exact;
        }
        let also_called = || entry.other_names().any(|name| self.query.names(name, entry.year));
        let collected = || entry.collection().is_some_and(|number| collections.contains(&number));
        if !may_be_meant(entry.beginnings, sought) {
            return if collected() { Fit::Words } else { Fit::Loose };
        }
        match self.query.fit(&entry.plain, entry.year) {
            Fit::Loose if also_called() || collected() => Fit::Words,
            fit => fit,
        }
    }

    fn order(&self, meant: &mut [Meant<'_>]) {
        let sort = match self.sort {
            None if self.query.is_empty() => Sort::Newest,
            None => {
                // The first title of each library, then the second of each, and so on.
                meant.sort_by_key(|it| (it.fit, it.position));
                return;
            }
            Some(sort) => sort,
        };
        match sort {
            Sort::Newest => meant.sort_by_key(|it| Reverse(it.entry.added)),
            // A title without a date is not known to be old, so it comes last.
            Sort::Oldest => meant.sort_by_key(|it| (it.entry.added.is_none(), it.entry.added)),
            Sort::Biggest => meant.sort_by_key(|it| Reverse(it.entry.size_bytes)),
            Sort::Title => {
                meant.sort_by(|one, other| one.entry.plain.sorted().cmp(other.entry.plain.sorted()))
            }
            Sort::Rating => meant.sort_by(|one, other| other.entry.rating.total_cmp(&one.entry.rating)),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use crate::arr::Collection;
    use crate::arr::holding::{Detail, Episodes, Holding};

    struct Film(Holding);

    fn film(title: &str, year: u16) -> Film {
        Film(Holding {
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
            detail: Detail::Movie { has_file: false, available: true, collection: None },
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
            if let Detail::Movie { has_file, .. } = &mut self.0.detail {
                *has_file = true;
            }
            self
        }

        fn of(mut self, name: &str) -> Self {
            if let Detail::Movie { collection, .. } = &mut self.0.detail {
                *collection = Some(Collection { tmdb: 8091, title: name.to_owned() });
            }
            self
        }
    }

    fn all() -> Wanted {
        Wanted { query: Query::new(""), only: None, genre: None, sort: None }
    }

    fn called(query: &str) -> Wanted {
        Wanted { query: Query::new(query), ..all() }
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

    /// Checks the titles that match in a library of films and one of shows.
    #[track_caller]
    fn check(wanted: &Wanted, expected: &[&str]) {
        let (mut films, mut shows) = (Entries::default(), Entries::default());
        for Film(film) in library() {
            films.push(film);
        }
        let episodes = Episodes { seasons: 1, on_disk: 4, all: 8, missing: 4 };
        let Film(show) = film("Alien: Earth", 2025).genre("Drama").added(4);
        shows.push(Holding { detail: Detail::Series(episodes), ..show });
        let meant = wanted.select(&[&films, &shows]);
        assert_eq!(meant.iter().map(|it| it.entry.title.as_ref()).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_title_is_meant_by_its_words_and_the_exact_one_comes_first() {
        check(&called("alien"), &["Alien", "Alien: Earth", "Aliens"]);
        check(&called("thing 1982"), &["The Thing"]);
        check(&called("thing 2011"), &[]);
    }

    #[test]
    fn a_title_is_meant_by_its_other_names_and_its_collection() {
        check(&called("der profi"), &["Leon: The Professional"]);
        check(&called("der profi 1994"), &["Leon: The Professional"]);
        check(&called("Alien collection"), &["Alien", "Aliens"]);
    }

    #[test]
    fn titles_are_chosen_by_what_there_is_of_them() {
        check(&Wanted { only: Some(Only::OnDisk), ..all() }, &["Aliens", "Alien: Earth", "The Thing"]);
        check(&Wanted { only: Some(Only::Missing), ..all() }, &["Alien: Earth", "Alien"]);
        check(&Wanted { only: Some(Only::Unmonitored), ..all() }, &["Leon: The Professional"]);
        check(&Wanted { only: Some(Only::Missing), ..called("alien") }, &["Alien", "Alien: Earth"]);
    }

    #[test]
    fn titles_are_chosen_by_genre_and_sorted() {
        let genre = |name: &str, sort| Wanted { genre: Some(name.to_owned()), sort: Some(sort), ..all() };
        check(&genre("horror", Sort::Oldest), &["Alien", "The Thing"]);
        check(&genre("sci-fi", Sort::Newest), &["Aliens", "Alien"]);
        check(&genre("western", Sort::Newest), &[]);
        let sorted = |sort| Wanted { sort: Some(sort), ..called("alien") };
        check(&sorted(Sort::Biggest), &["Aliens", "Alien", "Alien: Earth"]);
        check(&sorted(Sort::Rating), &["Alien", "Aliens", "Alien: Earth"]);
        let by_title = ["Alien", "Alien: Earth", "Aliens", "Leon: The Professional", "The Thing"];
        check(&Wanted { sort: Some(Sort::Title), ..all() }, &by_title);
    }
}
