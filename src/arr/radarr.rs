//! Radarr's API as far as we use it.

use jiff::Timestamp;
use jiff::civil::Date;
use secrecy::SecretString;
use url::Url;

use super::{
    Addition, ArrError, Download, Imported, Movie, NewMovie, Profile, Removal, RootFolder, SystemStatus,
    Upcoming,
};
use crate::http::Http;

#[derive(Debug, Clone)]
pub struct Radarr {
    base: Url,
    key: SecretString,
    http: Http,
}

impl Radarr {
    pub fn new(http: Http, base: Url, key: SecretString) -> Self {
        Self { base, key, http }
    }

    /// Catalogue search; `term` may be `tmdb:603`. An empty term finds nothing.
    pub async fn lookup(&self, term: &str) -> Result<Vec<Movie>, ArrError> {
        todo!()
    }
    pub async fn movies(&self) -> Result<Vec<Movie>, ArrError> {
        todo!()
    }
    pub async fn movie(&self, id: i64) -> Result<Option<Movie>, ArrError> {
        todo!()
    }
    pub async fn movie_by_tmdb(&self, tmdb: i64) -> Result<Option<Movie>, ArrError> {
        todo!()
    }
    /// Adds it monitored and searches for it at once.
    pub async fn add(&self, movie: &NewMovie) -> Result<Addition, ArrError> {
        todo!()
    }
    pub async fn delete(&self, id: i64, delete_files: bool) -> Result<Removal, ArrError> {
        todo!()
    }
    pub async fn downloads(&self) -> Result<Vec<Download>, ArrError> {
        todo!()
    }
    /// Releases from `start` to `end`, both included, soonest first, one entry per film.
    pub async fn upcoming(&self, start: Date, end: Date) -> Result<Vec<Upcoming>, ArrError> {
        todo!()
    }
    /// Newest first.
    pub async fn imported_since(&self, since: Timestamp) -> Result<Vec<Imported>, ArrError> {
        todo!()
    }
    pub async fn profiles(&self) -> Result<Vec<Profile>, ArrError> {
        todo!()
    }
    pub async fn root_folders(&self) -> Result<Vec<RootFolder>, ArrError> {
        todo!()
    }
    pub async fn status(&self) -> Result<SystemStatus, ArrError> {
        todo!()
    }
}
