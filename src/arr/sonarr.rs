//! Sonarr's API as far as we use it.

use jiff::Timestamp;
use secrecy::SecretString;
use url::Url;

use super::{
    Addition, ArrError, Download, Imported, NewSeries, Profile, Removal, RootFolder, Series, SystemStatus,
    Upcoming,
};
use crate::http::Http;

#[derive(Debug, Clone)]
pub struct Sonarr {
    base: Url,
    key: SecretString,
    http: Http,
}

impl Sonarr {
    pub fn new(http: Http, base: Url, key: SecretString) -> Self {
        Self { base, key, http }
    }

    /// Catalogue search; `term` may be `tvdb:78107`. An empty term finds nothing.
    pub async fn lookup(&self, term: &str) -> Result<Vec<Series>, ArrError> {
        todo!()
    }
    pub async fn all_series(&self) -> Result<Vec<Series>, ArrError> {
        todo!()
    }
    pub async fn series(&self, id: i64) -> Result<Option<Series>, ArrError> {
        todo!()
    }
    pub async fn series_by_tvdb(&self, tvdb: i64) -> Result<Option<Series>, ArrError> {
        todo!()
    }
    /// Adds it with exactly the wanted seasons and searches for what is missing.
    pub async fn add(&self, series: &NewSeries) -> Result<Addition, ArrError> {
        todo!()
    }
    pub async fn delete(&self, id: i64, delete_files: bool) -> Result<Removal, ArrError> {
        todo!()
    }
    pub async fn downloads(&self) -> Result<Vec<Download>, ArrError> {
        todo!()
    }
    /// Episodes that air from `start` to `end`, soonest first.
    pub async fn upcoming(&self, start: Timestamp, end: Timestamp) -> Result<Vec<Upcoming>, ArrError> {
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
