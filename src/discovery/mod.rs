//! Sources in which titles are found by person, genre, streaming service and more: Seerr, which has its own access to
//! TMDB, and TMDB itself.

mod catalog_request;
pub mod fake;
pub mod genres;
mod response_cache;
mod source;
#[cfg(test)]
mod tests;
mod wire;

use jiff::Timestamp;

pub use catalog_request::{DiscoverFilter, YearRange};
pub use source::{DiscoveryError, DiscoverySource};

use crate::conversation::transcript::MediaKind;

/// Notice that TMDB requires where its data is used.
pub const TMDB_NOTICE: &str =
    "This product uses TMDB and the TMDB APIs but is not endorsed, certified, or otherwise approved by TMDB.";
/// Notice about the source of streaming services.
pub const JUSTWATCH_NOTICE: &str = "Streaming services are data of JustWatch, by way of TMDB.";

/// All configured sources, in the order in which they are asked.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    sources: Vec<DiscoverySource>,
    region: String,
}

/// Movie or show that a source knows.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundTitle {
    pub kind: MediaKind,
    /// TMDB id, also of a show.
    pub tmdb: i64,
    /// TheTVDB id of a show, if the source named it.
    pub tvdb: Option<i64>,
    pub title: String,
    /// Year, or 0 if unknown.
    pub year: u16,
    pub overview: String,
    /// Genres by their TMDB ids.
    pub genres: Vec<u32>,
    /// Rating from 0 to 10 of those who voted; `None` without votes.
    pub rating: Option<f64>,
    pub votes: u32,
    pub popularity: f64,
    pub request: RequestState,
}

/// State of a title at Seerr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestState {
    #[default]
    NotRequested,
    /// Somebody asked for the title, which is not there yet.
    Requested,
}

/// Actor, director or writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPerson {
    pub id: i64,
    pub name: String,
}

/// Titles of a person, each once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PersonCredits {
    /// Titles in which the person acted.
    pub acted: Vec<FoundTitle>,
    /// Other titles, which the person directed or created.
    pub directed: Vec<FoundTitle>,
}

/// Results of a search by name, best first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchHits {
    pub titles: Vec<FoundTitle>,
    pub people: Vec<FoundPerson>,
}

/// Facts about one title that lists do not contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TitleFacts {
    pub tvdb: Option<i64>,
    /// Runtime of a movie or of an episode.
    pub minutes: Option<u32>,
    /// Ids of the services that stream the title in the region.
    pub providers: Vec<u32>,
}

/// Streaming service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    pub id: u32,
    pub name: String,
}

impl Discovery {
    /// Creates the sources, of which the first is asked first. `region` is the code of a country, such as `US`.
    pub fn new(sources: Vec<DiscoverySource>, region: String) -> Self {
        Self { sources, region }
    }

    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    pub fn sources(&self) -> &[DiscoverySource] {
        &self.sources
    }

    /// Returns the country whose streaming services are meant.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// Reads the facts about a title, by kind and TMDB id, from the first source that answers.
    pub async fn fetch_facts(
        &self,
        id: (MediaKind, i64),
        now: Timestamp,
    ) -> Result<TitleFacts, DiscoveryError> {
        let mut last_error = DiscoveryError::NoSource;
        for source in &self.sources {
            match source.fetch_facts(id, &self.region, now).await {
                Ok(facts) => return Ok(facts),
                Err(error) => last_error = error,
            }
        }
        Err(last_error)
    }

    /// Forgets the responses that are too old to be used.
    pub fn drop_old_responses(&self, now: Timestamp) {
        for source in &self.sources {
            source.drop_old_responses(now);
        }
    }
}
