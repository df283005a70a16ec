//! A show and its seasons, as Sonarr holds or finds them.

use jiff::Timestamp;

/// The number of the season that holds the specials of a show.
pub const SPECIALS: u32 = 0;

/// A show as Sonarr holds it or finds it in its catalogue.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Sonarr's own id; `None` for a catalogue hit that is not in the library.
    pub id: Option<i64>,
    pub tvdb: i64,
    pub title: String,
    pub year: u16,
    pub overview: String,
    pub monitored: bool,
    pub ended: bool,
    /// `standard`, `daily` or `anime`, as the catalogue says.
    pub series_type: String,
    /// The regular seasons: sums and lists go by these.
    pub seasons: Vec<Season>,
    /// Season 0, of a show that has one.
    pub specials: Option<Season>,
    /// Regular episodes that are on disk, and those that exist.
    pub episodes_on_disk: u32,
    pub episodes: u32,
    pub size_bytes: u64,
    pub path: String,
    pub profile: i64,
    pub next_airing: Option<Timestamp>,
    /// Whether seasons to come will be wanted too.
    pub new_seasons: bool,
    pub genres: Vec<String>,
    /// From 0 to 10.
    pub rating: Option<f64>,
    /// When the library got it; `None` for a catalogue hit.
    pub added: Option<Timestamp>,
}

impl Series {
    /// Every season, the specials last.
    pub fn all_seasons(&self) -> impl Iterator<Item = &Season> {
        self.seasons.iter().chain(&self.specials)
    }

    /// A season by its number; 0 for the specials.
    pub fn season(&self, number: u32) -> Option<&Season> {
        self.all_seasons().find(|season| season.number == number)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Season {
    pub number: u32,
    pub monitored: bool,
    pub episodes_on_disk: u32,
    pub episodes: u32,
    pub size_bytes: u64,
}
