//! History entries of movies and series: grabs, imports, deletions and failures.

use jiff::{SignedDuration, Timestamp};

use super::radarr::Radarr;
use super::sonarr::Sonarr;
use super::time_parsing::parse_instant;
use super::title_limit::PartOfTitle;
use super::wire::{EpisodeResource, HistoryRow, QualityResource, integer_or_default};
use super::{ArrError, error_message};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    pub id: i64,
    pub at: Timestamp,
    pub event: HistoryEvent,
    /// Library id of the movie or the series.
    pub title_id: i64,
    /// Id of the download, which is the same from its grab to its import. Empty if there was no download.
    pub download: String,
    /// Name of the release.
    pub release: String,
    pub quality: String,
    /// Episode id, season number and episode number. `None` for a movie.
    pub episode: Option<(i64, u32, u32)>,
    /// Reason why a download failed or a file was deleted. Empty if no reason is given.
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryEvent {
    Grabbed,
    Imported,
    Failed,
    FileDeleted,
    /// Download that was removed from the queue manually.
    Ignored,
    Other,
}

/// Maximum time between the deletion of a file and the import of its replacement.
const REPLACEMENT_PERIOD: SignedDuration = SignedDuration::from_mins(10);

impl HistoryEntry {
    /// Returns whether a person marked the release as failed.
    pub fn is_manually_failed(&self) -> bool {
        self.reason.starts_with("Manually")
    }
}

/// Returns whether an import replaced a file.
pub fn is_upgrade(entries: &[HistoryEntry], import: &HistoryEntry) -> bool {
    entries.iter().any(|entry| {
        let same_title = entry.title_id == import.title_id && entry.episode == import.episode;
        let is_replacement =
            entry.event == HistoryEvent::FileDeleted && entry.reason.eq_ignore_ascii_case("upgrade");
        same_title && is_replacement && entry.at.duration_since(import.at).abs() <= REPLACEMENT_PERIOD
    })
}

/// Returns whether the last import of an episode replaced a file. `entries` are sorted newest first.
pub fn was_upgraded(entries: &[HistoryEntry], (season, number): (u32, u32)) -> bool {
    let last = entries.iter().find(|entry| {
        let numbers = entry.episode.map(|(_, season, number)| (season, number));
        entry.event == HistoryEvent::Imported && numbers == Some((season, number))
    });
    last.is_some_and(|last| is_upgrade(entries, last))
}

impl Radarr {
    /// Fetches the history of a movie, newest first.
    pub async fn fetch_history(&self, movie: i64) -> Result<Vec<HistoryEntry>, ArrError> {
        if self.api.limit().is_some() && self.fetch_movie(movie).await?.is_none() {
            return Ok(Vec::new());
        }
        let movie = movie.to_string();
        let query = [("movieId", movie.as_str()), ("includeMovie", "false")];
        Ok(entries_from_parts(self.api.get("history/movie", &query).await?))
    }

    /// Fetches the history of all movies since an instant, newest first.
    pub async fn fetch_history_since(&self, since: Timestamp) -> Result<Vec<HistoryEntry>, ArrError> {
        let since = since.to_string();
        Ok(entries_from_rows(
            self.api.get("history/since", &[("date", &since), ("includeMovie", "false")]).await?,
        ))
    }
}

impl Sonarr {
    /// Fetches the history of all seasons of a series, newest first.
    pub async fn fetch_history(&self, series: i64) -> Result<Vec<HistoryEntry>, ArrError> {
        if self.api.limit().is_some() && self.fetch_series(series).await?.is_none() {
            return Ok(Vec::new());
        }
        let series = series.to_string();
        let query = [("seriesId", series.as_str()), ("includeSeries", "false"), ("includeEpisode", "true")];
        Ok(entries_from_parts(self.api.get("history/series", &query).await?))
    }

    /// Fetches the history of all series since an instant, newest first.
    pub async fn fetch_history_since(&self, since: Timestamp) -> Result<Vec<HistoryEntry>, ArrError> {
        let since = since.to_string();
        let query = [("date", since.as_str()), ("includeSeries", "false"), ("includeEpisode", "true")];
        Ok(entries_from_rows(self.api.get("history/since", &query).await?))
    }
}

/// Converts history rows to entries. Rows without a date are skipped, because they may be old.
fn entries_from_rows(rows: Vec<HistoryRow>) -> Vec<HistoryEntry> {
    let mut entries: Vec<HistoryEntry> = rows.into_iter().filter_map(HistoryRow::into_entry).collect();
    entries.sort_by_key(|entry| std::cmp::Reverse((entry.at, entry.id)));
    entries
}

fn entries_from_parts(rows: Vec<PartOfTitle<HistoryRow>>) -> Vec<HistoryEntry> {
    entries_from_rows(rows.into_iter().map(|PartOfTitle(row)| row).collect())
}

impl HistoryRow {
    fn into_entry(self) -> Option<HistoryEntry> {
        let event = match self.event_type.as_deref() {
            Some("grabbed") => HistoryEvent::Grabbed,
            Some("downloadFolderImported" | "seriesFolderImported" | "movieFolderImported") => {
                HistoryEvent::Imported
            }
            Some("downloadFailed") => HistoryEvent::Failed,
            Some("episodeFileDeleted" | "movieFileDeleted") => HistoryEvent::FileDeleted,
            Some("downloadIgnored") => HistoryEvent::Ignored,
            Some(_) | None => HistoryEvent::Other,
        };
        let data = self.data.unwrap_or_default();
        let reason = ["message", "reason"].iter().find_map(|key| data[*key].as_str());
        let numbers = |episode: EpisodeResource| {
            (integer_or_default(episode.season_number), integer_or_default(episode.episode_number))
        };
        let (season, number) = self.episode.map(numbers).unwrap_or_default();
        Some(HistoryEntry {
            id: self.id.unwrap_or_default(),
            at: parse_instant(self.date.as_deref())?,
            event,
            title_id: self.movie_id.or(self.series_id).unwrap_or_default(),
            download: self.download_id.unwrap_or_default(),
            release: error_message::plain_message(&self.source_title.unwrap_or_default()),
            quality: self.quality.map(QualityResource::into_name).unwrap_or_default(),
            episode: self.episode_id.filter(|&id| id > 0).map(|id| (id, season, number)),
            reason: reason.map(error_message::plain_message).unwrap_or_default(),
        })
    }
}
