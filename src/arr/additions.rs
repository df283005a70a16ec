//! Parameters and outcome of an addition to Sonarr or Radarr.

use super::Availability;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMovie {
    pub tmdb: i64,
    pub title: String,
    pub profile: i64,
    pub root_folder: String,
    pub availability: Availability,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSeries {
    pub tvdb: i64,
    pub title: String,
    pub series_type: String,
    pub profile: i64,
    pub root_folder: String,
    pub wanted: WantedEpisodes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedEpisodes {
    /// Every season in the catalog and whether to monitor it. The specials are season 0.
    Seasons(Vec<(u32, bool)>),
    /// Episodes that have not aired yet.
    Future,
    /// Only the first episode.
    Pilot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdditionOutcome {
    Added,
    /// The title was in the library before the request.
    AlreadyExists,
}
