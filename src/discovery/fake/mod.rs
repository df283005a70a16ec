//! Simulated catalog with titles and people, for tests and the demo. It answers as TMDB, or as a part of Seerr.

mod answers;
mod filter;
mod seerr_titles;
mod tmdb;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use tmdb::FakeTmdb;

use crate::conversation::transcript::MediaKind;

/// Simulated catalog. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct FakeCatalog(Arc<Mutex<CatalogState>>);

#[derive(Debug, Default)]
pub(super) struct CatalogState {
    titles: Vec<FakeEntry>,
    people: Vec<FakePerson>,
    providers: Vec<(u32, String)>,
}

/// Title of the catalog.
#[derive(Debug, Clone, PartialEq)]
pub struct FakeEntry {
    pub kind: MediaKind,
    pub tmdb: i64,
    /// TheTVDB id of a show.
    pub tvdb: Option<i64>,
    pub title: String,
    pub year: u16,
    pub overview: String,
    /// Genres by their TMDB ids.
    pub genres: Vec<u32>,
    /// Keywords by their TMDB ids.
    pub keywords: Vec<u32>,
    pub rating: f64,
    pub votes: u32,
    pub popularity: f64,
    pub minutes: u32,
    /// Streaming services, in all regions.
    pub providers: Vec<u32>,
    /// TMDB ids of titles of the same kind that are recommended with this one.
    pub similar: Vec<i64>,
    /// State at Seerr: 1 unknown, 2 pending, 3 processing, 5 available.
    pub seerr_status: u8,
}

/// Person with their titles.
#[derive(Debug, Clone)]
pub(super) struct FakePerson {
    id: i64,
    name: String,
    /// Titles in which the person acted, by kind and TMDB id.
    cast: Vec<(MediaKind, i64)>,
    directed: Vec<(MediaKind, i64)>,
}

/// API whose field names an answer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CatalogDialect {
    Seerr,
    Tmdb,
}

impl FakeEntry {
    /// Creates a movie with this title, year and TMDB id.
    pub fn movie((title, year): (&str, u16), tmdb: i64) -> Self {
        Self {
            kind: MediaKind::Movie,
            tmdb,
            tvdb: None,
            title: title.to_owned(),
            year,
            overview: String::new(),
            genres: Vec::new(),
            keywords: Vec::new(),
            rating: 7.0,
            votes: 1_000,
            popularity: 10.0,
            minutes: 110,
            providers: Vec::new(),
            similar: Vec::new(),
            seerr_status: 1,
        }
    }

    /// Creates a show with this title, year and ids at TMDB and TheTVDB.
    pub fn show(name: (&str, u16), tmdb: i64, tvdb: i64) -> Self {
        Self { kind: MediaKind::Series, tvdb: Some(tvdb), minutes: 45, ..Self::movie(name, tmdb) }
    }

    #[must_use]
    pub fn genres(self, genres: &[u32]) -> Self {
        Self { genres: genres.to_vec(), ..self }
    }

    #[must_use]
    pub fn rated(self, rating: f64, popularity: f64) -> Self {
        Self { rating, popularity, ..self }
    }

    #[must_use]
    pub fn similar_to(self, others: &[i64]) -> Self {
        Self { similar: others.to_vec(), ..self }
    }

    #[must_use]
    pub fn on(self, provider: u32) -> Self {
        Self { providers: vec![provider], ..self }
    }

    #[must_use]
    pub fn minutes(self, minutes: u32) -> Self {
        Self { minutes, ..self }
    }

    #[must_use]
    pub fn overview(self, overview: &str) -> Self {
        Self { overview: overview.to_owned(), ..self }
    }
}

impl FakeCatalog {
    pub fn add(&self, entry: FakeEntry) {
        self.lock().titles.push(entry);
    }

    /// Adds a person who acted in these titles.
    pub fn add_actor(&self, id: i64, name: &str, titles: &[(MediaKind, i64)]) {
        let person = FakePerson { id, name: name.to_owned(), cast: titles.to_vec(), directed: Vec::new() };
        self.lock().people.push(person);
    }

    /// Adds a person who directed these titles.
    pub fn add_director(&self, id: i64, name: &str, titles: &[(MediaKind, i64)]) {
        let person = FakePerson { id, name: name.to_owned(), cast: Vec::new(), directed: titles.to_vec() };
        self.lock().people.push(person);
    }

    /// Adds a streaming service.
    pub fn add_provider(&self, id: u32, name: &str) {
        self.lock().providers.push((id, name.to_owned()));
    }

    /// Changes the state of a title at Seerr.
    pub fn set_seerr_status(&self, (kind, tmdb): (MediaKind, i64), status: u8) {
        for entry in self.lock().titles.iter_mut().filter(|entry| (entry.kind, entry.tmdb) == (kind, tmdb)) {
            entry.seerr_status = status;
        }
    }

    fn lock(&self) -> MutexGuard<'_, CatalogState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
