//! Series and their seasons.

use jiff::Timestamp;

use crate::conversation::catalog_ids::CatalogIds;
use crate::conversation::transcript::MediaKind;

/// Number of the season with the specials of a series.
pub const SPECIALS: u32 = 0;

/// Series from the library or the catalog of Sonarr.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Sonarr's own id. `None` for a catalog hit that is not in the library.
    pub id: Option<i64>,
    pub tvdb: i64,
    /// Id at TMDB, which Sonarr knows from version 4 on.
    pub tmdb: Option<i64>,
    /// Number in an id such as `tt14452776`.
    pub imdb: Option<i64>,
    pub title: String,
    pub year: u16,
    pub overview: String,
    pub monitored: bool,
    pub ended: bool,
    /// Series type according to the catalog: `standard`, `daily` or `anime`.
    pub series_type: String,
    /// Regular seasons, without the specials.
    pub seasons: Vec<Season>,
    /// Season 0, for a series that has one.
    pub specials: Option<Season>,
    /// Number of regular episodes on disk.
    pub episodes_on_disk: u32,
    /// Number of regular episodes that the catalog lists.
    pub episodes: u32,
    pub size_bytes: u64,
    pub path: String,
    pub profile: i64,
    pub next_airing: Option<Timestamp>,
    /// True if future seasons will be monitored.
    pub new_seasons: bool,
    pub genres: Vec<String>,
    /// Age rating, such as `TV-14`. Empty if the catalog has none.
    pub certification: String,
    /// Rating from 0 to 10.
    pub rating: Option<f64>,
    /// Time of the addition to the library. `None` for a catalog hit.
    pub added: Option<Timestamp>,
}

impl Series {
    /// Returns the ids by which other programs know the series.
    pub fn catalog_ids(&self) -> CatalogIds {
        let Self { tmdb, imdb, .. } = *self;
        CatalogIds { tmdb, imdb, ..CatalogIds::of_library(MediaKind::Series, self.tvdb) }
    }

    /// Returns all seasons, with the specials last.
    pub fn all_seasons(&self) -> impl Iterator<Item = &Season> {
        self.seasons.iter().chain(&self.specials)
    }

    /// Returns a season by its number, which is 0 for the specials.
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
