//! Thin clients for the parts of the Sonarr and Radarr APIs (version 3) that Dialarr uses.

mod additions;
mod api;
pub mod changes;
pub mod collections;
pub mod common_api;
pub mod completeness;
pub mod connect_events;
pub mod connect_settings;
mod downloads;
pub mod episodes;
mod error_message;
pub mod fake;
pub mod history;
mod imports;
mod json_array_stream;
pub mod library_title;
pub mod posters;
pub mod radarr;
mod response;
mod series;
pub mod sonarr;
mod time_parsing;
pub mod title_limit;
mod wire;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::Deserialize;

pub use additions::{AdditionOutcome, NewMovie, NewSeries, WantedEpisodes};
pub use downloads::{Download, DownloadContent, DownloadState, QueuedEpisode};
pub use series::{SPECIALS, Season, Series};

use crate::conversation::catalog_ids::CatalogIds;
use crate::conversation::retry_policy::{FailureClass, PeerEffect};
pub use crate::conversation::transcript::MediaKind;

/// Movie from the library or the catalog of Radarr.
#[derive(Debug, Clone, PartialEq)]
pub struct Movie {
    /// Radarr's own id. `None` for a catalog hit that is not in the library.
    pub id: Option<i64>,
    pub tmdb: i64,
    /// Number in an id such as `tt0113277`.
    pub imdb: Option<i64>,
    pub title: String,
    /// Release year. Zero if the catalog has none.
    pub year: u16,
    pub overview: String,
    pub has_file: bool,
    pub monitored: bool,
    /// True if the movie has reached its minimum availability. Radarr does not search for it before.
    pub available: bool,
    pub size_bytes: u64,
    pub path: String,
    pub profile: i64,
    /// TMDB popularity or number of votes, for ranking. Zero if unknown.
    pub popularity: f64,
    pub cinema: Option<Date>,
    pub digital: Option<Date>,
    pub physical: Option<Date>,
    /// Release progress according to the catalog.
    pub status: ReleaseStatus,
    /// Release after which Radarr searches for the movie.
    pub availability: Availability,
    pub file: Option<MediaFile>,
    pub genres: Vec<String>,
    /// Age rating, such as `PG-13`. Empty if the catalog has none.
    pub certification: String,
    /// TMDB rating, from 0 to 10.
    pub rating: Option<f64>,
    /// Time of the addition to the library. `None` for a catalog hit.
    pub added: Option<Timestamp>,
    /// Time of the last search for the movie.
    pub last_search: Option<Timestamp>,
    pub collection: Option<MovieCollection>,
}

impl Movie {
    /// Returns the ids by which other programs know the movie.
    pub fn catalog_ids(&self) -> CatalogIds {
        CatalogIds { imdb: self.imdb, ..CatalogIds::of_library(MediaKind::Movie, self.tmdb) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseStatus {
    Announced,
    InCinemas,
    Released,
    /// To be announced, withdrawn or unknown.
    Unclear,
}

/// Release after which Radarr searches for a movie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    Announced,
    InCinemas,
    Released,
}

/// Collection that a movie belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovieCollection {
    pub tmdb: i64,
    pub title: String,
}

/// File of a movie or of one or more episodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaFile {
    pub id: i64,
    pub size_bytes: u64,
    /// Quality name such as `WEBDL-1080p`. Empty if unknown.
    pub quality: String,
}

/// Upcoming episode or movie release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarEntry {
    /// Title such as `Dune: Part Three (2026)` or `The Bear S04E03`.
    pub title: String,
    /// Title of the series of an episode. Empty for a movie.
    pub series: String,
    pub date: CalendarDate,
    pub on_disk: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalendarDate {
    /// Air time of an episode.
    Airs(Timestamp),
    /// Release day of a movie, and the kind of release.
    Released(Date, ReleaseKind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseKind {
    Cinema,
    Digital,
    Physical,
}

/// Finished download that was imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedDownload {
    /// Title such as `Dune (2021)`, or the title of the series. The episodes of one season share an entry.
    pub title: String,
    /// Episode code such as `S02E03`, or `season 2 (8 episodes)`. Empty for a movie.
    pub detail: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QualityProfile {
    pub id: i64,
    pub name: String,
    /// True if the profile allows 2160p, regardless of its name.
    pub four_k: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootFolder {
    pub path: String,
    /// Free space. `None` if the folder is not accessible.
    pub free_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalOutcome {
    Removed,
    /// The title or file no longer existed before the request.
    AlreadyGone,
}

/// Response of `GET system/status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SystemStatus {
    #[serde(deserialize_with = "wire::null_as_default")]
    pub app_name: String,
    #[serde(deserialize_with = "wire::null_as_default")]
    pub version: String,
    #[serde(deserialize_with = "wire::null_as_default")]
    pub url_base: String,
}

/// Failure of a request to Sonarr or Radarr.
#[derive(Debug, thiserror::Error)]
pub enum ArrError {
    /// The instance was not reached, so the request had no effect.
    #[error("connect")]
    Unreachable(#[source] crate::http::HttpError),
    /// Missing or broken response, after which a write may have happened.
    #[error("get a response")]
    NoResponse(#[source] crate::http::HttpError),
    /// Status 503 of an instance that is starting, or whose catalog is down.
    #[error("complete the request: {0}")]
    Unavailable(String),
    #[error("authenticate: the API key was rejected")]
    Unauthorized,
    /// Redirect or web page instead of JSON, because the URL or its base path is wrong.
    #[error("find the API at this URL: {0}")]
    WrongUrl(String),
    /// Rejection of the request by the instance, with its messages.
    #[error("get the request accepted: {}", .0.join("; "))]
    Refused(Vec<String>),
    #[error("find the record")]
    NotFound,
    /// Status 5xx other than 503, after which a write may have happened.
    #[error("complete the request: status {status}: {message}")]
    Server { status: u16, message: String },
    /// Response body that is not the expected JSON.
    #[error("parse the response")]
    Unreadable(#[source] serde_json::Error),
}

impl ArrError {
    /// Returns whether all other requests to the instance would fail in the same way, not only those for one title.
    pub fn affects_all_requests(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::NoResponse(_) | Self::Unavailable(_) => true,
            Self::Unauthorized | Self::WrongUrl(_) => true,
            Self::Refused(_) | Self::NotFound | Self::Server { .. } | Self::Unreadable(_) => false,
        }
    }

    pub fn failure_class(&self) -> FailureClass {
        match self {
            Self::Unreachable(_) => FailureClass::TRANSIENT,
            // A proxy may return 503 after the instance has carried out the request.
            Self::NoResponse(_) | Self::Unavailable(_) | Self::Server { .. } | Self::Unreadable(_) => {
                FailureClass::UNKNOWN
            }
            Self::Unauthorized | Self::WrongUrl(_) | Self::Refused(_) | Self::NotFound => {
                FailureClass::PERMANENT
            }
        }
    }

    /// Returns whether a write that failed with this error may have happened anyway.
    pub fn outcome_unknown(&self) -> bool {
        self.failure_class().effect == PeerEffect::Unknown
    }
}
