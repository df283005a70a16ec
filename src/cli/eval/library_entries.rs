//! Library format of scenario files: titles, catalog, queue, calendar, imports, releases and health problems.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::Deserialize;

use super::scenario_catalog::TmdbEntry;
use super::scenario_jellyfin::JellyfinEntry;
use super::scenario_seerr::SeerrEntry;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LibraryEntry {
    pub(super) movies: Vec<TitleEntry>,
    pub(super) series: Vec<TitleEntry>,
    pub(super) catalog: CatalogEntry,
    pub(super) queue: Vec<QueueEntry>,
    pub(super) calendar: Vec<CalendarEntry>,
    pub(super) profiles: Vec<String>,
    /// Downloads that were imported before the start.
    pub(super) imported: Vec<ImportEntry>,
    /// Releases that searches can find, such as `Dune` or `The Bear S02`.
    #[serde(rename = "can_find")]
    pub(super) releases: Vec<String>,
    /// Movies that Radarr suggests.
    pub(super) suggested: Vec<TitleEntry>,
    pub(super) health: Vec<HealthProblemEntry>,
    /// Additional Radarr and Sonarr for 4K.
    pub(super) four_k: Option<Box<LibraryEntry>>,
    /// Media server that shows the files.
    pub(super) jellyfin: Option<JellyfinEntry>,
    /// Source of titles.
    pub(super) tmdb: Option<TmdbEntry>,
    /// Seerr at which titles are requested.
    pub(super) seerr: Option<SeerrEntry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CatalogEntry {
    pub(super) movie: Vec<TitleEntry>,
    pub(super) series: Vec<TitleEntry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TitleEntry {
    pub(super) id: Option<i64>,
    pub(super) tmdb: Option<i64>,
    pub(super) tvdb: Option<i64>,
    pub(super) title: String,
    pub(super) year: u16,
    pub(super) overview: String,
    pub(super) size_gb: f64,
    pub(super) quality: Option<String>,
    /// Quality of the title's files: `WEBDL-1080p`.
    pub(super) file_quality: Option<String>,
    pub(super) popularity: Option<f64>,
    pub(super) genres: Vec<String>,
    pub(super) rating: Option<f64>,
    /// Length of the movie, or of an episode.
    pub(super) minutes: Option<u16>,
    /// Age rating: `PG-13`.
    pub(super) certification: Option<String>,
    pub(super) poster: Option<String>,
    /// Time when the title was added to the library.
    pub(super) added: Option<Timestamp>,
    pub(super) unmonitored: bool,
    /// True for a movie that is not released yet.
    pub(super) unreleased: bool,
    pub(super) cinema: Option<Date>,
    pub(super) digital: Option<Date>,
    pub(super) collection: Option<CollectionEntry>,
    pub(super) seasons: Option<SeasonsEntry>,
    pub(super) episodes: Option<u32>,
    /// Number of episodes at the end that are not on disk.
    pub(super) missing: u32,
    pub(super) ended: bool,
    pub(super) anime: bool,
    /// Episodes not on disk, such as `S02E03`.
    #[serde(rename = "off_disk")]
    pub(super) missing_episodes: Vec<EpisodeEntry>,
    pub(super) unmonitored_episodes: Vec<EpisodeEntry>,
    #[serde(rename = "airs")]
    pub(super) air_times: BTreeMap<EpisodeEntry, Timestamp>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CollectionEntry {
    pub(super) tmdb: i64,
    pub(super) title: String,
}

/// Number of seasons, or a list of seasons with their episode counts.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum SeasonsEntry {
    Count(u32),
    Each(Vec<SeasonEntry>),
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SeasonEntry {
    pub(super) number: u32,
    pub(super) episodes: u32,
    #[serde(default)]
    pub(super) unmonitored: bool,
}

/// Episode code such as `S02E03`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct EpisodeEntry {
    pub(super) season: u32,
    pub(super) number: u32,
}

impl TryFrom<String> for EpisodeEntry {
    type Error = String;

    fn try_from(code: String) -> Result<Self, String> {
        let numbers = code.strip_prefix('S').and_then(|code| code.split_once('E'));
        let episode = numbers.and_then(|(season, number)| {
            Some(Self { season: season.parse().ok()?, number: number.parse().ok()? })
        });
        episode.ok_or_else(|| format!("{code:?} is not an episode such as S02E03"))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct QueueEntry {
    pub(super) title: String,
    #[serde(default)]
    pub(super) percent: u32,
    #[serde(default)]
    pub(super) eta_min: u32,
    /// Reason why the finished download is not imported.
    pub(super) stuck: Option<String>,
    /// Reason why the download failed.
    pub(super) failed: Option<String>,
    #[serde(default)]
    pub(super) paused: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct ImportEntry {
    pub(super) title: String,
    pub(super) hours_ago: i64,
}

#[derive(Debug, Deserialize)]
pub(super) struct CalendarEntry {
    pub(super) title: String,
    pub(super) date: Date,
}

/// Health problem of a server.
#[derive(Debug, Deserialize)]
pub(super) struct HealthProblemEntry {
    pub(super) server: ServerEntry,
    /// Level of the problem: `notice`, `warning` or `error`.
    pub(super) level: String,
    pub(super) source: String,
    pub(super) message: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ServerEntry {
    Radarr,
    Sonarr,
}
