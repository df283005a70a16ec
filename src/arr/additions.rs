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
    /// Every season in the catalog (including the specials, as season 0), and whether it is wanted.
    Seasons(Vec<(u32, bool)>),
    /// Episodes that have not aired yet.
    Future,
    /// First episode alone.
    Pilot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdditionOutcome {
    Added,
    /// Success for a user who wanted the title in the library, because the library already had it.
    AlreadyThere,
}
