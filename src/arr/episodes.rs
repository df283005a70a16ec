//! The episodes of a show in Sonarr, one by one, and their files.

use http::Method;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::api::Query;
use super::sonarr::Sonarr;
use super::times::instant;
use super::wire::{MediaFile as WireFile, Page, Series, whole};
use super::{ArrError, MediaFile};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Episode {
    pub id: i64,
    /// 0 for a special.
    pub season: u32,
    pub number: u32,
    pub title: String,
    /// `None` where that is not known yet.
    pub airs: Option<Timestamp>,
    pub monitored: bool,
    /// `None` where it is not on disk. A file may hold more than one episode.
    pub file: Option<MediaFile>,
    /// When it was last searched for.
    pub last_search: Option<Timestamp>,
    /// Whether the catalogue marks it as the last one of its season or its show.
    pub finale: bool,
}

/// An episode that is wanted, has aired and is not on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingEpisode {
    pub series: i64,
    pub series_title: String,
    pub episode: Episode,
}

/// The first of those that are missing, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub total: u32,
    pub episodes: Vec<MissingEpisode>,
}

impl Episode {
    pub fn on_disk(&self) -> bool {
        self.file.is_some()
    }

    pub fn aired(&self, now: Timestamp) -> bool {
        self.airs.is_some_and(|airs| airs <= now)
    }
}

impl Sonarr {
    /// All episodes of a show, the specials included, in order. None until Sonarr has read up on a show that was just
    /// added.
    pub async fn episodes(&self, series: i64) -> Result<Vec<Episode>, ArrError> {
        let series = series.to_string();
        self.listed(&[("seriesId", &series), ("includeEpisodeFile", "true")]).await
    }

    pub async fn season_episodes(&self, series: i64, season: u32) -> Result<Vec<Episode>, ArrError> {
        let (series, number) = (series.to_string(), season.to_string());
        let query =
            [("seriesId", series.as_str()), ("seasonNumber", &number), ("includeEpisodeFile", "true")];
        let mut episodes = self.listed(&query).await?;
        // A server that ignores the filter answers with the whole show.
        episodes.retain(|episode| episode.season == season);
        Ok(episodes)
    }

    async fn listed(&self, query: Query<'_>) -> Result<Vec<Episode>, ArrError> {
        let mut episodes: Vec<Episode> = self.api.list::<WireEpisode, _>("episode", query).await?;
        episodes.sort_by_key(|episode| (episode.season, episode.number));
        Ok(episodes)
    }

    /// Of all shows, newest first, at most `most`; the specials included.
    pub async fn missing(&self, most: u32) -> Result<Missing, ArrError> {
        let most = most.to_string();
        let query = [
            ("page", "1"),
            ("pageSize", most.as_str()),
            ("sortKey", "episodes.airDateUtc"),
            ("sortDirection", "descending"),
            ("includeSeries", "true"),
            ("monitored", "true"),
        ];
        let page: Page<WireEpisode> = self.api.get("wanted/missing", &query).await?;
        let total = page.total_records.map_or(page.records.len() as u64, u64::from);
        let episodes = page.records.into_iter().map(missing).collect();
        Ok(Missing { total: u32::try_from(total).unwrap_or(u32::MAX), episodes })
    }

    /// Whether these episodes are wanted; nothing is searched for.
    pub async fn monitor_episodes(&self, episodes: &[i64], monitored: bool) -> Result<(), ArrError> {
        if episodes.is_empty() {
            return Ok(());
        }
        let body = json!({ "episodeIds": episodes, "monitored": monitored });
        self.api.write(Method::PUT, "episode/monitor", &body).await
    }

    /// Deletes files from the disk. Their episodes stay wanted unless Sonarr is set otherwise, so what is to stay gone has
    /// to be unmonitored first.
    pub async fn delete_episode_files(&self, files: &[i64]) -> Result<(), ArrError> {
        if files.is_empty() {
            // Sonarr fails over an empty list.
            return Ok(());
        }
        self.api.write(Method::DELETE, "episodefile/bulk", &json!({ "episodeFileIds": files })).await
    }
}

fn missing(mut wire: WireEpisode) -> MissingEpisode {
    let title = wire.series.take().and_then(|series| series.title).unwrap_or_default();
    MissingEpisode { series: wire.series_id.unwrap_or_default(), series_title: title, episode: wire.into() }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireEpisode {
    id: Option<i64>,
    series_id: Option<i64>,
    season_number: Option<i64>,
    episode_number: Option<i64>,
    title: Option<String>,
    air_date_utc: Option<String>,
    monitored: Option<bool>,
    has_file: Option<bool>,
    episode_file_id: Option<i64>,
    episode_file: Option<WireFile>,
    last_search_time: Option<String>,
    finale_type: Option<String>,
    series: Option<Series>,
}

impl From<WireEpisode> for Episode {
    fn from(wire: WireEpisode) -> Self {
        let id = wire.episode_file_id.filter(|&id| id > 0);
        // Servers that do not know how to include the file tell its id all the same.
        let bare = |id| MediaFile { id, size_bytes: 0, quality: String::new() };
        let file = wire.episode_file.map(MediaFile::from).or_else(|| id.map(bare));
        Self {
            id: wire.id.unwrap_or_default(),
            season: whole(wire.season_number),
            number: whole(wire.episode_number),
            title: wire.title.unwrap_or_default(),
            airs: instant(wire.air_date_utc.as_deref()),
            monitored: wire.monitored.unwrap_or_default(),
            file: file.filter(|_| wire.has_file != Some(false)),
            last_search: instant(wire.last_search_time.as_deref()),
            // A show also has finales in the middle of a season.
            finale: matches!(wire.finale_type.as_deref(), Some("season" | "series")),
        }
    }
}
