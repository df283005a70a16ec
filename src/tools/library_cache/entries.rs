//! Cached titles of a library. An entry is small, so that 20,000 titles need only a few megabytes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;

use crate::arr::MovieCollection;
use crate::arr::library_title::{EpisodeCounts, LibraryTitle, LibraryTitleDetails};
use crate::arr::title_limit::TitleLimit;
use crate::conversation::catalog_ids::CatalogIds;
use crate::conversation::text::title_key::title_key;
use crate::conversation::transcript::MediaKind;
use crate::tools::formatting::{clean_title, normalize_name};
use crate::tools::ranking::{MatchQuality, NormalizedTitle, TitleQuery, WordPrefixes};

/// Maximum number of genres per library, one for each bit of a `GenreSet`. Sonarr and Radarr use about forty.
const MAX_GENRES: usize = 64;
/// Size limit of all names of one title together, so that one record cannot exhaust the memory.
const MAX_NAMES_BYTES: usize = 1000;

/// All titles of a library, in the order in which the library returns them.
#[derive(Debug, Default)]
pub struct CachedTitles {
    titles: Vec<CachedTitle>,
    genres: Vec<Box<str>>,
    /// Age ratings, such as `PG-13`.
    certifications: Vec<Box<str>>,
    /// Collections by their TMDB id.
    collections: BTreeMap<i64, CollectionName>,
}

/// Collection that at least one title belongs to.
#[derive(Debug, Clone)]
struct CollectionName {
    name: Box<str>,
    normalized: NormalizedTitle,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CachedTitle {
    pub id: i64,
    /// TMDB id of a movie, TheTVDB id of a series.
    pub catalog: i64,
    /// Other ids, which [`CachedTitle::catalog_ids`] returns. Zero if unknown.
    tmdb: u32,
    imdb: u32,
    pub title: Box<str>,
    pub normalized: NormalizedTitle,
    /// Other names of the title, normalized for comparison, one name per line.
    other_titles: Box<str>,
    /// Filter for the words of all its names.
    pub prefixes: WordPrefixes,
    pub year: u16,
    pub monitored: bool,
    pub profile: i64,
    pub size_bytes: u64,
    pub added: Option<Date>,
    /// Rating out of 10. 0 if the title has none.
    pub rating: f32,
    pub genres: GenreSet,
    /// Length of the movie, or of an episode, in minutes. Zero if unknown.
    pub minutes: u16,
    /// Number of the age rating in its library, from 1. Zero if the title has none.
    certification: u8,
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
        /// TMDB id of the collection of the movie.
        collection: Option<i64>,
    },
    Series(EpisodeCounts),
}

impl CachedTitles {
    pub fn push(&mut self, title: LibraryTitle) {
        let entry = self.build_title(title);
        self.titles.push(entry);
    }

    /// Converts a title to an entry, and registers its genres and collection.
    pub fn build_title(&mut self, title: LibraryTitle) -> CachedTitle {
        let genres = title
            .genres
            .iter()
            .map(|name| self.register_genre(name))
            .fold(GenreSet::default(), GenreSet::union);
        let certification = self.register_certification(&title.certification);
        let kind = match title.detail {
            LibraryTitleDetails::Movie { has_file, available, collection } => {
                let collection = collection.map(|MovieCollection { tmdb, title }| {
                    self.collections.entry(tmdb).or_insert_with(|| CollectionName {
                        name: clean_title(&title).into(),
                        normalized: NormalizedTitle::new(&title),
                    });
                    tmdb
                });
                TitleKind::Movie { has_file, available, collection }
            }
            LibraryTitleDetails::Series(episodes) => TitleKind::Series(episodes),
        };
        let other_titles = normalize_other_names(&title.title, &title.other_titles);
        let normalized = NormalizedTitle::new(&title.title);
        CachedTitle {
            id: title.id,
            catalog: title.catalog,
            tmdb: compact_id(title.tmdb),
            imdb: compact_id(title.imdb),
            prefixes: normalized.word_prefixes().union(WordPrefixes::from_words(&other_titles)),
            normalized,
            other_titles,
            title: title.title.into(),
            year: title.year,
            monitored: title.monitored,
            profile: title.profile,
            size_bytes: title.size_bytes,
            added: title.added,
            rating: title.rating,
            minutes: title.minutes,
            genres,
            certification,
            kind,
        }
    }

    /// Returns the titles within an age limit, with their collections.
    pub fn within_limit(&self, limit: &TitleLimit) -> Self {
        let is_within = |title: &&CachedTitle| {
            limit.allows((title.media_kind(), title.catalog), self.certification(title))
        };
        let titles: Vec<CachedTitle> = self.titles.iter().filter(is_within).cloned().collect();
        let collections = titles.iter().filter_map(|title| {
            let id = title.collection_id()?;
            Some((id, self.collections.get(&id)?.clone()))
        });
        Self {
            collections: collections.collect(),
            genres: self.genres.clone(),
            certifications: self.certifications.clone(),
            titles,
        }
    }

    /// Returns the age rating of one of the titles; empty if it has none.
    fn certification(&self, title: &CachedTitle) -> &str {
        let index = usize::from(title.certification).checked_sub(1);
        index.and_then(|index| self.certifications.get(index)).map_or("", AsRef::as_ref)
    }

    pub fn titles(&self) -> &[CachedTitle] {
        &self.titles
    }

    /// Returns the genres that match a search term: `sci fi` matches Science Fiction, `crime` matches Crime.
    pub fn matching_genres(&self, search_term: &str) -> GenreSet {
        let matches = self.genres.iter().enumerate().filter(|(_, name)| genre_matches(name, search_term));
        matches.map(|(index, _)| GenreSet::from_index(index)).fold(GenreSet::default(), GenreSet::union)
    }

    /// Returns the names of the genres in a set.
    pub fn genre_names(&self, genres: GenreSet) -> impl Iterator<Item = &str> {
        let is_in_set = move |index: &usize| genres.intersects(GenreSet::from_index(*index));
        (0..self.genres.len()).filter(is_in_set).map(|index| self.genres[index].as_ref())
    }

    /// Returns all registered genres.
    pub fn all_genres(&self) -> impl Iterator<Item = &str> {
        self.genres.iter().map(AsRef::as_ref)
    }

    pub fn collection_name(&self, id: i64) -> Option<&str> {
        self.collections.get(&id).map(|collection| collection.name.as_ref())
    }

    /// Returns the ids of the collections whose name equals a query: `alien` is a movie, `alien collection` stands for
    /// all movies of the collection. An empty query names none.
    pub fn collections_named(&self, query: &TitleQuery) -> BTreeSet<i64> {
        if query.is_empty() {
            return BTreeSet::new();
        }
        let matches = self
            .collections
            .iter()
            .filter(|(_, collection)| query.match_title(&collection.normalized, 0) <= MatchQuality::Exact);
        matches.map(|(id, _)| *id).collect()
    }

    /// Returns the number of an age rating. A rating beyond the largest number counts as none, which no cap allows.
    fn register_certification(&mut self, certification: &str) -> u8 {
        let index = match self.certifications.iter().position(|name| name.as_ref() == certification) {
            _ if certification.is_empty() => return 0,
            Some(index) => index,
            None => {
                self.certifications.push(certification.into());
                self.certifications.len() - 1
            }
        };
        u8::try_from(index + 1).unwrap_or_default()
    }

    fn register_genre(&mut self, name: &str) -> GenreSet {
        if let Some(index) = self.genres.iter().position(|genre| genre.as_ref() == name) {
            return GenreSet::from_index(index);
        }
        if self.genres.len() == MAX_GENRES {
            return GenreSet::default();
        }
        self.genres.push(name.into());
        GenreSet::from_index(self.genres.len() - 1)
    }
}

impl CachedTitle {
    /// Returns the ids by which other programs know the title.
    pub fn catalog_ids(&self) -> CatalogIds {
        let known = |id: u32| (id > 0).then_some(i64::from(id));
        let kind = match self.kind {
            TitleKind::Movie { .. } => MediaKind::Movie,
            TitleKind::Series(_) => MediaKind::Series,
        };
        let ids = CatalogIds::of_library(kind, self.catalog);
        CatalogIds { tmdb: ids.tmdb.or(known(self.tmdb)), imdb: known(self.imdb), ..ids }
    }

    pub fn other_names(&self) -> impl Iterator<Item = &str> {
        self.other_titles.lines()
    }

    pub fn media_kind(&self) -> MediaKind {
        match self.kind {
            TitleKind::Movie { .. } => MediaKind::Movie,
            TitleKind::Series(_) => MediaKind::Series,
        }
    }

    pub fn is_on_disk(&self) -> bool {
        match self.kind {
            TitleKind::Movie { has_file, .. } => has_file,
            TitleKind::Series(episodes) => episodes.on_disk > 0,
        }
    }

    /// Returns whether a released and monitored part of the title is not on disk.
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
    fn from_index(index: usize) -> Self {
        Self(1 << index)
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

fn compact_id(id: Option<i64>) -> u32 {
    id.and_then(|id| u32::try_from(id).ok()).unwrap_or_default()
}

/// Returns whether a search term matches the genre of this name.
pub fn genre_matches(name: &str, search_term: &str) -> bool {
    let (name, search_term) = (normalize_name(name), normalize_name(search_term));
    !search_term.is_empty()
        && search_term.split(' ').all(|word| name.split(' ').any(|part| part.starts_with(word)))
}

/// Returns the other names without duplicates and without the title itself.
fn normalize_other_names(title: &str, others: &[String]) -> Box<str> {
    let mut seen = vec![title_key(title)];
    for name in others.iter().map(|name| title_key(name)) {
        let length: usize = seen.iter().map(String::len).sum();
        if !name.is_empty() && !seen.contains(&name) && length + name.len() <= MAX_NAMES_BYTES {
            seen.push(name);
        }
    }
    seen[1..].join("\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::people::age_ratings::{AgeLimit, RatingCountry};
    use crate::conversation::rating_caps::{MinimumAge, RatingCaps};

    fn library_title(title: &str, genres: &[&str]) -> LibraryTitle {
        LibraryTitle {
            id: 1,
            catalog: 2,
            tmdb: None,
            imdb: Some(78_748),
            title: title.to_owned(),
            other_titles: Vec::new(),
            year: 1979,
            monitored: true,
            size_bytes: 0,
            profile: 4,
            genres: genres.iter().map(ToString::to_string).collect(),
            certification: String::new(),
            added: None,
            rating: 0.0,
            minutes: 0,
            detail: LibraryTitleDetails::Movie { has_file: false, available: true, collection: None },
        }
    }

    #[track_caller]
    fn check(search_term: &str, expected: &[&str]) {
        let mut entries = CachedTitles::default();
        entries.push(library_title("Alien", &["Horror", "Science Fiction"]));
        entries.push(library_title("Heat", &["Crime", "Drama"]));
        let genres = entries.matching_genres(search_term);
        assert_eq!(entries.genre_names(genres).collect::<Vec<_>>(), expected);
        let titles = entries.titles().iter().filter(|entry| entry.genres.intersects(genres)).count();
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
    fn genres_beyond_the_limit_are_dropped() {
        let names: Vec<String> = (0..=MAX_GENRES).map(|number| format!("genre {number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut entries = CachedTitles::default();
        entries.push(library_title("Many genres", &names));
        assert_eq!(entries.genre_names(entries.titles()[0].genres).collect::<Vec<_>>(), names[..MAX_GENRES]);
    }

    #[test]
    fn cached_title_has_the_ids_of_all_catalogs() {
        let mut entries = CachedTitles::default();
        entries.push(library_title("Alien", &[]));
        let expected = CatalogIds { tmdb: Some(2), tvdb: None, imdb: Some(78_748) };
        assert_eq!(entries.titles()[0].catalog_ids(), expected);
    }

    #[test]
    fn titles_over_the_limit_are_dropped_with_their_collections() {
        let rated = |title: &str, certification: &str, collection| LibraryTitle {
            certification: certification.to_owned(),
            detail: LibraryTitleDetails::Movie {
                has_file: true,
                available: true,
                collection: Some(MovieCollection { tmdb: collection, title: format!("{title} Collection") }),
            },
            ..library_title(title, &[])
        };
        let mut entries = CachedTitles::default();
        entries.push(rated("Alien", "R", 1));
        entries.push(rated("Up", "PG", 2));
        entries.push(rated("Home Video", "", 3));
        let caps = RatingCaps { movies: Some(MinimumAge(13)), shows: None };
        let limit = AgeLimit { caps, ..AgeLimit::default() };
        let limit = TitleLimit { limit, country: Some(RatingCountry::UnitedStates) };
        let within = entries.within_limit(&limit);
        let titles: Vec<&str> = within.titles().iter().map(|title| title.title.as_ref()).collect();
        assert_eq!(titles, ["Up"]);
        assert_eq!([1, 2, 3].map(|id| within.collection_name(id).is_some()), [false, true, false]);
    }

    #[test]
    fn cached_title_is_small() {
        assert!(size_of::<CachedTitle>() <= 160, "{}", size_of::<CachedTitle>());
    }
}
