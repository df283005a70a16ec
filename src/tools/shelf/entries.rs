//! Data that is cached for each title of a library. It is small enough that 20,000 titles take only a few megabytes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;

use crate::arr::Collection;
use crate::arr::holding::{Detail, Episodes, Holding};
use crate::tools::answers::{clean_title, plain};
use crate::tools::ranking::{Beginnings, Fit, PlainTitle, Query};

/// Maximum number of distinguishable genres per library. The catalogs of Sonarr and Radarr use about forty.
const MAX_GENRES: usize = 64;
/// Size limit in bytes for the other names of one title, so that one record cannot fill the memory.
const MAX_OTHER_BYTES: usize = 1000;

/// All titles of a library, in the order in which the library returns them.
#[derive(Debug, Default)]
pub struct Entries {
    titles: Vec<Entry>,
    genres: Vec<Box<str>>,
    /// Collections by their TMDB id.
    collections: BTreeMap<i64, Gathering>,
}

/// Collection that at least one title belongs to.
#[derive(Debug)]
struct Gathering {
    name: Box<str>,
    plain: PlainTitle,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub id: i64,
    /// TMDB id for a movie, TVDB id for a show.
    pub catalog: i64,
    pub title: Box<str>,
    pub plain: PlainTitle,
    /// Other names of the title, normalized for comparison, one name per line.
    others: Box<str>,
    /// Beginnings of the words of all its names.
    pub beginnings: Beginnings,
    pub year: u16,
    pub monitored: bool,
    pub profile: i64,
    pub size_bytes: u64,
    pub added: Option<Date>,
    /// Rating out of 10, or 0 if there is none.
    pub rating: f32,
    pub genres: Genres,
    pub kind: Kind,
}

/// Set of genres of one library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Genres(u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Movie {
        has_file: bool,
        available: bool,
        /// TMDB id of its collection.
        collection: Option<i64>,
    },
    Series(Episodes),
}

impl Entries {
    pub fn push(&mut self, holding: Holding) {
        let entry = self.entry(holding);
        self.titles.push(entry);
    }

    /// Converts one title to an entry, with the numbers that genres and collections have in this library.
    pub fn entry(&mut self, holding: Holding) -> Entry {
        let genres = holding.genres.iter().map(|name| self.enrol(name)).fold(Genres::default(), Genres::with);
        let kind = match holding.detail {
            Detail::Movie { has_file, available, collection } => {
                let collection = collection.map(|Collection { tmdb, title }| {
                    self.collections.entry(tmdb).or_insert_with(|| Gathering {
                        name: clean_title(&title).into(),
                        plain: PlainTitle::new(&title),
                    });
                    tmdb
                });
                Kind::Movie { has_file, available, collection }
            }
            Detail::Series(episodes) => Kind::Series(episodes),
        };
        let others = other_names(&holding.title, &holding.other_titles);
        let plain = PlainTitle::new(&holding.title);
        Entry {
            id: holding.id,
            catalog: holding.catalog,
            beginnings: plain.beginnings().with(Beginnings::of(&others)),
            plain,
            others,
            title: holding.title.into(),
            year: holding.year,
            monitored: holding.monitored,
            profile: holding.profile,
            size_bytes: holding.size_bytes,
            added: holding.added,
            rating: holding.rating,
            genres,
            kind,
        }
    }

    pub fn titles(&self) -> &[Entry] {
        &self.titles
    }

    /// Genres that match a search term: `sci fi` is Science Fiction, `crime` is Crime.
    pub fn genres_like(&self, wanted: &str) -> Genres {
        let places = self.genres.iter().enumerate().filter(|(_, name)| genre_is(name, wanted));
        places.map(|(place, _)| Genres::only(place)).fold(Genres::default(), Genres::with)
    }

    /// Names of the genres in a set.
    pub fn names_of(&self, genres: Genres) -> impl Iterator<Item = &str> {
        let held = move |place: &usize| genres.meet(Genres::only(*place));
        (0..self.genres.len()).filter(held).map(|place| self.genres[place].as_ref())
    }

    /// All distinguishable genres.
    pub fn all_genres(&self) -> impl Iterator<Item = &str> {
        self.genres.iter().map(AsRef::as_ref)
    }

    pub fn collection(&self, number: i64) -> Option<&str> {
        self.collections.get(&number).map(|it| it.name.as_ref())
    }

    /// Ids of the collections whose whole name equals a query: `alien` is a film, `alien collection` is all of its
    /// films.
    pub fn collections_called(&self, query: &Query) -> BTreeSet<i64> {
        let called = self.collections.iter().filter(|(_, it)| query.fit(&it.plain, 0) <= Fit::Exact);
        called.map(|(number, _)| *number).collect()
    }

    fn enrol(&mut self, name: &str) -> Genres {
        if let Some(place) = self.genres.iter().position(|known| known.as_ref() == name) {
            return Genres::only(place);
        }
        if self.genres.len() == MAX_GENRES {
            return Genres::default();
        }
        self.genres.push(name.into());
        Genres::only(self.genres.len() - 1)
    }
}

impl Entry {
    pub fn other_names(&self) -> impl Iterator<Item = &str> {
        self.others.lines()
    }

    pub fn on_disk(&self) -> bool {
        match self.kind {
            Kind::Movie { has_file, .. } => has_file,
            Kind::Series(episodes) => episodes.on_disk > 0,
        }
    }

    /// True if some part of the title is released and monitored, but not on disk.
    pub fn missing(&self) -> bool {
        match self.kind {
            Kind::Movie { has_file, available, .. } => self.monitored && available && !has_file,
            Kind::Series(episodes) => episodes.missing > 0,
        }
    }

    pub fn collection(&self) -> Option<i64> {
        match self.kind {
            Kind::Movie { collection, .. } => collection,
            Kind::Series(_) => None,
        }
    }
}

impl Genres {
    fn only(place: usize) -> Self {
        Self(1 << place)
    }

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn meet(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// True if a search term matches the genre of this name.
pub fn genre_is(name: &str, wanted: &str) -> bool {
    let (name, wanted) = (plain(name), plain(wanted));
    !wanted.is_empty() && wanted.split(' ').all(|word| name.split(' ').any(|part| part.starts_with(word)))
}

/// Other names without duplicates and without the title itself.
fn other_names(title: &str, others: &[String]) -> Box<str> {
    let mut seen = vec![plain(title)];
    for name in others.iter().map(|name| plain(name)) {
        let length: usize = seen.iter().map(String::len).sum();
        if !name.is_empty() && !seen.contains(&name) && length + name.len() <= MAX_OTHER_BYTES {
            seen.push(name);
        }
    }
    seen[1..].join("\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn film(title: &str, genres: &[&str]) -> Holding {
        Holding {
            id: 1,
            catalog: 2,
            title: title.to_owned(),
            other_titles: Vec::new(),
            year: 1979,
            monitored: true,
            size_bytes: 0,
            profile: 4,
            genres: genres.iter().map(ToString::to_string).collect(),
            added: None,
            rating: 0.0,
            detail: Detail::Movie { has_file: false, available: true, collection: None },
        }
    }

    #[track_caller]
    fn check(wanted: &str, expected: &[&str]) {
        let mut entries = Entries::default();
        entries.push(film("Alien", &["Horror", "Science Fiction"]));
        entries.push(film("Heat", &["Crime", "Drama"]));
        let meant = entries.genres_like(wanted);
        assert_eq!(entries.names_of(meant).collect::<Vec<_>>(), expected);
        let titles = entries.titles().iter().filter(|entry| entry.genres.meet(meant)).count();
        assert_eq!(titles, expected.len());
    }

    #[test]
    fn a_genre_is_meant_by_the_beginnings_of_its_words() {
        check("horror", &["Horror"]);
        check("Sci-Fi", &["Science Fiction"]);
        check("western", &[]);
        check("", &[]);
    }

    #[test]
    fn genres_beyond_those_that_are_told_apart_are_left_out() {
        let names: Vec<String> = (0..=MAX_GENRES).map(|number| format!("genre {number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut entries = Entries::default();
        entries.push(film("All of it", &names));
        assert_eq!(entries.names_of(entries.titles()[0].genres).collect::<Vec<_>>(), names[..MAX_GENRES]);
    }

    #[test]
    fn an_entry_is_small() {
        assert!(size_of::<Entry>() <= 160, "{}", size_of::<Entry>());
    }
}
