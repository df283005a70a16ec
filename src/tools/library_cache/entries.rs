//! Data that is cached for each title of a library. An entry is so small that 20,000 titles take only a few megabytes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;

use crate::arr::MovieCollection;
use crate::arr::library_title::{EpisodeCounts, LibraryTitle, LibraryTitleDetails};
use crate::tools::formatting::{clean_title, normalize_name};
use crate::tools::ranking::{MatchQuality, PlainTitle, TitleQuery, WordPrefixes};

/// Maximum number of distinguishable genres per library. The catalogs of Sonarr and Radarr use about forty.
const MAX_GENRES: usize = 64;
/// Size limit in bytes for the other names of one title, so that one record cannot fill the memory.
const MAX_OTHER_BYTES: usize = 1000;

/// All titles of a library, in the order in which the library returns them.
#[derive(Debug, Default)]
pub struct CachedTitles {
    titles: Vec<CachedTitle>,
    genres: Vec<Box<str>>,
    /// Collections by their TMDB id.
    collections: BTreeMap<i64, CollectionName>,
}

/// Collection that at least one title belongs to.
#[derive(Debug)]
struct CollectionName {
    name: Box<str>,
    plain: PlainTitle,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CachedTitle {
    pub id: i64,
    /// TMDB id for a movie, TVDB id for a series.
    pub catalog: i64,
    pub title: Box<str>,
    pub plain: PlainTitle,
    /// Other names of the title, normalized for comparison, one name per line.
    other_titles: Box<str>,
    /// Beginnings of the words of all its names.
    pub prefixes: WordPrefixes,
    pub year: u16,
    pub monitored: bool,
    pub profile: i64,
    pub size_bytes: u64,
    pub added: Option<Date>,
    /// Rating out of 10. 0 if the title has none.
    pub rating: f32,
    pub genres: GenreSet,
    pub kind: TitleKind,
}

/// Set of genres of one library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GenreSet(u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TitleKind {
    Movie {
        has_file: bool,
        available: bool,
        /// TMDB id of its collection.
        collection: Option<i64>,
    },
    Series(EpisodeCounts),
}

impl CachedTitles {
    pub fn push(&mut self, holding: LibraryTitle) {
        let entry = self.build_title(holding);
        self.titles.push(entry);
    }

    /// Converts one title to an entry, with the numbers that genres and collections have in this library.
    pub fn build_title(&mut self, holding: LibraryTitle) -> CachedTitle {
        let genres = holding
            .genres
            .iter()
            .map(|name| self.register_genre(name))
            .fold(GenreSet::default(), GenreSet::union);
        let kind = match holding.detail {
            LibraryTitleDetails::Movie { has_file, available, collection } => {
                let collection = collection.map(|MovieCollection { tmdb, title }| {
                    self.collections.entry(tmdb).or_insert_with(|| CollectionName {
                        name: clean_title(&title).into(),
                        plain: PlainTitle::new(&title),
                    });
                    tmdb
                });
                TitleKind::Movie { has_file, available, collection }
            }
            LibraryTitleDetails::Series(episodes) => TitleKind::Series(episodes),
        };
        let others = normalize_other_names(&holding.title, &holding.other_titles);
        let plain = PlainTitle::new(&holding.title);
        CachedTitle {
            id: holding.id,
            catalog: holding.catalog,
            prefixes: plain.word_prefixes().union(WordPrefixes::from_words(&others)),
            plain,
            other_titles: others,
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

    pub fn titles(&self) -> &[CachedTitle] {
        &self.titles
    }

    /// Returns the genres that match a search term: `sci fi` is Science Fiction, `crime` is Crime.
    pub fn genres_like(&self, wanted: &str) -> GenreSet {
        let places = self.genres.iter().enumerate().filter(|(_, name)| genre_matches(name, wanted));
        places.map(|(place, _)| GenreSet::from_index(place)).fold(GenreSet::default(), GenreSet::union)
    }

    /// Returns the names of the genres in a set.
    pub fn genre_names(&self, genres: GenreSet) -> impl Iterator<Item = &str> {
        let held = move |place: &usize| genres.intersects(GenreSet::from_index(*place));
        (0..self.genres.len()).filter(held).map(|place| self.genres[place].as_ref())
    }

    /// Returns all distinguishable genres.
    pub fn all_genres(&self) -> impl Iterator<Item = &str> {
        self.genres.iter().map(AsRef::as_ref)
    }

    pub fn collection_name(&self, number: i64) -> Option<&str> {
        self.collections.get(&number).map(|it| it.name.as_ref())
    }

    /// Returns the ids of the collections whose whole name equals a query: `alien` is a movie, `alien collection` is
    /// all of its movies.
    pub fn collections_named(&self, query: &TitleQuery) -> BTreeSet<i64> {
        let called =
            self.collections.iter().filter(|(_, it)| query.match_title(&it.plain, 0) <= MatchQuality::Exact);
        called.map(|(number, _)| *number).collect()
    }

    fn register_genre(&mut self, name: &str) -> GenreSet {
        if let Some(place) = self.genres.iter().position(|known| known.as_ref() == name) {
            return GenreSet::from_index(place);
        }
        if self.genres.len() == MAX_GENRES {
            return GenreSet::default();
        }
        self.genres.push(name.into());
        GenreSet::from_index(self.genres.len() - 1)
    }
}

impl CachedTitle {
    pub fn other_names(&self) -> impl Iterator<Item = &str> {
        self.other_titles.lines()
    }

    pub fn is_on_disk(&self) -> bool {
        match self.kind {
            TitleKind::Movie { has_file, .. } => has_file,
            TitleKind::Series(episodes) => episodes.on_disk > 0,
        }
    }

    /// Returns whether some part of the title is released and monitored, but not on disk.
    pub fn is_missing(&self) -> bool {
        match self.kind {
            TitleKind::Movie { has_file, available, .. } => self.monitored && available && !has_file,
            TitleKind::Series(episodes) => episodes.missing > 0,
        }
    }

    pub fn collection_id(&self) -> Option<i64> {
        match self.kind {
            TitleKind::Movie { collection, .. } => collection,
            TitleKind::Series(_) => None,
        }
    }
}

impl GenreSet {
    fn from_index(place: usize) -> Self {
        Self(1 << place)
    }

    fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Returns whether a search term matches the genre of this name.
pub fn genre_matches(name: &str, wanted: &str) -> bool {
    let (name, wanted) = (normalize_name(name), normalize_name(wanted));
    !wanted.is_empty() && wanted.split(' ').all(|word| name.split(' ').any(|part| part.starts_with(word)))
}

/// Returns the other names without duplicates and without the title itself.
fn normalize_other_names(title: &str, others: &[String]) -> Box<str> {
    let mut seen = vec![normalize_name(title)];
    for name in others.iter().map(|name| normalize_name(name)) {
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

    fn film(title: &str, genres: &[&str]) -> LibraryTitle {
        LibraryTitle {
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
            detail: LibraryTitleDetails::Movie { has_file: false, available: true, collection: None },
        }
    }

    #[track_caller]
    fn check(wanted: &str, expected: &[&str]) {
        let mut entries = CachedTitles::default();
        entries.push(film("Alien", &["Horror", "Science Fiction"]));
        entries.push(film("Heat", &["Crime", "Drama"]));
        let meant = entries.genres_like(wanted);
        assert_eq!(entries.genre_names(meant).collect::<Vec<_>>(), expected);
        let titles = entries.titles().iter().filter(|entry| entry.genres.intersects(meant)).count();
        assert_eq!(titles, expected.len());
    }

    #[test]
    fn genre_matches_by_word_prefixes() {
        check("horror", &["Horror"]);
        check("Sci-Fi", &["Science Fiction"]);
        check("western", &[]);
        check("", &[]);
    }

    #[test]
    fn genres_over_the_limit_are_left_out() {
        let names: Vec<String> = (0..=MAX_GENRES).map(|number| format!("genre {number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut entries = CachedTitles::default();
        entries.push(film("All of it", &names));
        assert_eq!(entries.genre_names(entries.titles()[0].genres).collect::<Vec<_>>(), names[..MAX_GENRES]);
    }

    #[test]
    fn cached_title_is_small() {
        assert!(size_of::<CachedTitle>() <= 160, "{}", size_of::<CachedTitle>());
    }
}
