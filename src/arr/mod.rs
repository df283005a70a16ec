//! Sonarr and Radarr (API v3) as far as we use them: thin clients that tell their failures apart.

mod additions;
mod answer;
mod api;
pub mod changes;
pub mod collections;
pub mod connect;
pub mod connection;
mod downloads;
mod elements;
pub mod episodes;
pub mod fake;
pub mod history;
pub mod holding;
mod imports;
pub mod posters;
pub mod radarr;
mod remark;
mod series;
pub mod server;
pub mod sonarr;
mod times;
mod wire;

use jiff::Timestamp;
use jiff::civil::Date;

pub use additions::{Addition, MovieScope, NewMovie, NewSeries, WantedEpisodes};
pub use downloads::{Download, DownloadOf, DownloadState, QueuedEpisode};
pub use series::{SPECIALS, Season, Series};

pub use crate::conversation::transcript::MediaKind;
use crate::conversation::trouble::{Effect, Trouble};

/// A movie as Radarr holds it or finds it in its catalogue.
#[derive(Debug, Clone, PartialEq)]
pub struct Movie {
    /// Radarr's own id; `None` for a catalogue hit that is not in the library.
    pub id: Option<i64>,
    pub tmdb: i64,
    pub title: String,
    /// 0 where the catalogue knows none.
    pub year: u16,
    pub overview: String,
    pub has_file: bool,
    pub monitored: bool,
    /// Whether it is out, by the availability that the library asks for; an unreleased film is not searched for.
    pub available: bool,
    pub size_bytes: u64,
    pub path: String,
    pub profile: i64,
    /// TMDB popularity or votes, for ranking; 0 where unknown.
    pub popularity: f64,
    pub cinema: Option<Date>,
    pub digital: Option<Date>,
    pub physical: Option<Date>,
    /// How far its release has come, as the catalogue says.
    pub status: ReleaseStatus,
    /// From when on the library looks for it.
    pub availability: Availability,
    pub file: Option<MediaFile>,
    pub genres: Vec<String>,
    /// TMDB's, from 0 to 10.
    pub rating: Option<f64>,
    /// When the library got it; `None` for a catalogue hit.
    pub added: Option<Timestamp>,
    /// When it was last searched for.
    pub last_search: Option<Timestamp>,
    pub collection: Option<Collection>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseStatus {
    Announced,
    InCinemas,
    Released,
    /// To be announced, withdrawn, or a word we do not know.
    Unclear,
}

/// The release that has to be past before a film is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    Announced,
    InCinemas,
    Released,
}

/// The films that one belongs with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    pub tmdb: i64,
    pub title: String,
}

/// A file of a movie or of one or more episodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaFile {
    pub id: i64,
    pub size_bytes: u64,
    /// `WEBDL-1080p`; empty where unknown.
    pub quality: String,
}

/// One dated entry of a calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upcoming {
    /// `Dune: Part Three (2026)` or `The Bear S04E03`.
    pub title: String,
    pub when: UpcomingWhen,
    pub on_disk: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpcomingWhen {
    /// An episode airs at an instant.
    Airs(Timestamp),
    /// A film comes out on a day; how it comes out.
    Released(Date, Release),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    Cinema,
    Digital,
    Physical,
}

/// Something that finished downloading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// `Dune (2021)` or the show's title; episodes of one season are one entry.
    pub title: String,
    /// `S02E03`, or `season 2 (8 episodes)`; empty for a film.
    pub detail: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    pub id: i64,
    pub name: String,
    /// Whether it allows a quality of 2160 lines, whatever its name is.
    pub four_k: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootFolder {
    pub path: String,
    /// `None` where it is not accessible.
    pub free_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    Removed,
    /// It was gone before.
    AlreadyGone,
}

/// What `GET system/status` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemStatus {
    pub app_name: String,
    pub version: String,
    pub url_base: String,
}

/// Why a request to Sonarr or Radarr has no usable answer, by what the caller does next.
#[derive(Debug, thiserror::Error)]
pub enum ArrError {
    /// Not reached at all; nothing happened there.
    #[error("reach it")]
    Unreachable(#[source] crate::http::HttpError),
    /// No answer, or a broken one: a write may have happened.
    #[error("get its answer")]
    NoAnswer(#[source] crate::http::HttpError),
    /// 503 while it starts, or its catalogue is down.
    #[error("use it: {0}")]
    Unavailable(String),
    #[error("sign in: the API key is refused")]
    Unauthorized,
    /// A redirect or a page in place of JSON: the URL is wrong, often its base.
    #[error("find the API at this URL: {0}")]
    WrongUrl(String),
    /// What it says of a request it refuses.
    #[error("have it accept the request: {}", .0.join("; "))]
    Refused(Vec<String>),
    #[error("find the item")]
    NotFound,
    /// 5xx other than 503: a write may have happened.
    #[error("have it work: status {status}: {message}")]
    Server { status: u16, message: String },
    /// JSON of a shape we do not know.
    #[error("read its answer")]
    Unreadable(#[source] serde_json::Error),
}

impl ArrError {
    /// Whether every other request of this moment would end like this, rather than those for one title.
    pub fn is_of_the_server(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::NoAnswer(_) | Self::Unavailable(_) => true,
            Self::Unauthorized | Self::WrongUrl(_) => true,
            Self::Refused(_) | Self::NotFound | Self::Server { .. } | Self::Unreadable(_) => false,
        }
    }

    pub fn trouble(&self) -> Trouble {
        match self {
            Self::Unreachable(_) => Trouble::PASSING,
            // A proxy may say 503 for a server that had carried it out before it went away.
            Self::NoAnswer(_) | Self::Unavailable(_) | Self::Server { .. } | Self::Unreadable(_) => {
                Trouble::UNKNOWN
            }
            Self::Unauthorized | Self::WrongUrl(_) | Self::Refused(_) | Self::NotFound => Trouble::LASTING,
        }
    }

    /// Whether a write that ended like this may have happened all the same.
    pub fn outcome_unknown(&self) -> bool {
        self.trouble().effect == Effect::Unknown
    }
}
