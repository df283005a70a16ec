//! Individual episodes of a series in Sonarr, and their files.

use http::Method;
use jiff::Timestamp;
use serde_json::json;

use super::api::QueryParameters;
use super::sonarr::Sonarr;
use super::time_parsing::parse_instant;
use super::title_limit::PartOfTitle;
use super::wire::{EpisodeResource, integer_or_default};
use super::{ArrError, MediaFile};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Episode {
    pub id: i64,
    /// Season number. Zero for a special.
    pub season: u32,
    pub number: u32,
    pub title: String,
    /// Air time. `None` if it is not known yet.
    pub airs_at: Option<Timestamp>,
    pub monitored: bool,
    /// File of the episode. `None` if the episode is not on disk. A file may contain several episodes.
    pub file: Option<MediaFile>,
    /// Time of the last search for the episode.
    pub last_search: Option<Timestamp>,
    /// True if the catalog marks the episode as the last one of its season or its series.
    pub finale: bool,
}

impl Episode {
    pub fn on_disk(&self) -> bool {
        self.file.is_some()
    }

    pub fn has_aired(&self, now: Timestamp) -> bool {
        self.airs_at.is_some_and(|airs_at| airs_at <= now)
    }
}

impl Sonarr {
    /// Fetches all episodes of a series, including the specials, in order. The list is empty until Sonarr has loaded
    /// the metadata of a series that was just added.
    pub async fn fetch_episodes(&self, series: i64) -> Result<Vec<Episode>, ArrError> {
        let id = series.to_string();
        self.fetch_sorted_episodes(series, &[("seriesId", &id), ("includeEpisodeFile", "true")]).await
    }

    /// Fetches the episodes of a season, in order.
    pub async fn fetch_season_episodes(&self, series: i64, season: u32) -> Result<Vec<Episode>, ArrError> {
        let (id, number) = (series.to_string(), season.to_string());
        let query = [("seriesId", id.as_str()), ("seasonNumber", &number), ("includeEpisodeFile", "true")];
        let mut episodes = self.fetch_sorted_episodes(series, &query).await?;
        // An instance that ignores the filter returns the whole series.
        episodes.retain(|episode| episode.season == season);
        Ok(episodes)
    }

    async fn fetch_sorted_episodes(
        &self,
        series: i64,
        query: QueryParameters<'_>,
    ) -> Result<Vec<Episode>, ArrError> {
        if self.api.limit().is_some() && self.fetch_series(series).await?.is_none() {
            return Ok(Vec::new());
        }
        let mut episodes: Vec<Episode> =
            self.api.get_list::<PartOfTitle<EpisodeResource>, _>("episode", query).await?;
        episodes.sort_by_key(|episode| (episode.season, episode.number));
        Ok(episodes)
    }

    /// Sets whether these episodes are monitored. No search is started.
    pub async fn monitor_episodes(&self, episodes: &[i64], monitored: bool) -> Result<(), ArrError> {
        if episodes.is_empty() {
            return Ok(());
        }
        let body = json!({ "episodeIds": episodes, "monitored": monitored });
        self.api.write_json(Method::PUT, "episode/monitor", &body).await
    }

    /// Deletes files from the disk. Their episodes stay monitored unless Sonarr is configured otherwise. Unmonitor them
    /// first to prevent another download.
    pub async fn delete_episode_files(&self, files: &[i64]) -> Result<(), ArrError> {
        if files.is_empty() {
            // Sonarr returns an error for an empty list.
            return Ok(());
        }
        self.api.write_json(Method::DELETE, "episodefile/bulk", &json!({ "episodeFileIds": files })).await
    }
}

impl From<PartOfTitle<EpisodeResource>> for Episode {
    fn from(PartOfTitle(wire): PartOfTitle<EpisodeResource>) -> Self {
        wire.into()
    }
}

impl From<EpisodeResource> for Episode {
    fn from(wire: EpisodeResource) -> Self {
        let id = wire.episode_file_id.filter(|&id| id > 0);
        // Versions that cannot include the file still return its id.
        let file_from_id = |id| MediaFile { id, size_bytes: 0, quality: String::new() };
        let file = wire.episode_file.map(MediaFile::from).or_else(|| id.map(file_from_id));
        Self {
            id: wire.id.unwrap_or_default(),
            season: integer_or_default(wire.season_number),
            number: integer_or_default(wire.episode_number),
            title: wire.title.unwrap_or_default(),
            airs_at: parse_instant(wire.air_date_utc.as_deref()),
            monitored: wire.monitored.unwrap_or_default(),
            file: file.filter(|_| wire.has_file != Some(false)),
            last_search: parse_instant(wire.last_search_time.as_deref()),
            // The catalog also marks midseason finales, which do not count.
            finale: matches!(wire.finale_type.as_deref(), Some("season" | "series")),
        }
    }
}
