//! Libraries of a scenario file: the titles that Sonarr and Radarr have, could have, and are processing at the start.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LibraryEntry {
    pub(super) movies: Vec<TitleEntry>,
    pub(super) series: Vec<TitleEntry>,
    pub(super) catalog: CatalogEntry,
    pub(super) queue: Vec<QueueEntry>,
    pub(super) calendar: Vec<CalendarEntry>,
    pub(super) profiles: Vec<String>,
    /// Titles that finished downloading before the start.
    pub(super) imported: Vec<ImportEntry>,
    /// Titles of which a search finds a copy, each listed once per copy: `Dune`, `The Bear S02`.
    pub(super) can_find: Vec<String>,
    /// Movies that Radarr would suggest.
    pub(super) suggested: Vec<TitleEntry>,
    pub(super) health: Vec<HealthProblemEntry>,
    /// Additional Radarr and Sonarr for 4K.
    pub(super) four_k: Option<Box<LibraryEntry>>,
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
    pub(super) poster: Option<String>,
    /// Time when the title was added to the library.
    pub(super) added: Option<Timestamp>,
    pub(super) unmonitored: bool,
    /// Movie that was added, but is not available yet.
    pub(super) unreleased: bool,
    pub(super) cinema: Option<Date>,
    pub(super) digital: Option<Date>,
    pub(super) collection: Option<CollectionEntry>,
    pub(super) seasons: Option<SeasonsEntry>,
    pub(super) episodes: Option<u32>,
    /// Number of the last episodes that are not on disk.
    pub(super) missing: u32,
    pub(super) ended: bool,
    pub(super) anime: bool,
    /// Episodes not on disk, such as `S02E03`.
    pub(super) off_disk: Vec<EpisodeEntry>,
    pub(super) unmonitored_episodes: Vec<EpisodeEntry>,
    pub(super) airs: BTreeMap<EpisodeEntry, Timestamp>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CollectionEntry {
    pub(super) tmdb: i64,
    pub(super) title: String,
}

/// Number of seasons, or a list of season numbers.
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
        let read = numbers.and_then(|(season, number)| {
            Some(Self { season: season.parse().ok()?, number: number.parse().ok()? })
        });
        read.ok_or_else(|| format!("{code:?} is not an episode such as S02E03"))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct QueueEntry {
    pub(super) title: String,
    #[serde(default)]
    pub(super) percent: u32,
    #[serde(default)]
    pub(super) eta_min: u32,
    /// Reason that the finished download was not imported.
    pub(super) stuck: Option<String>,
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

/// Health problem that a server reports about itself.
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
