//! Copy of a movie or of episodes on disk: its files, the grabs that downloaded it, and the steps of its replacement.

use super::instance_ref::{InstanceRef, movie_fingerprint, series_fingerprint};
use super::season_files::episode_files;
use crate::arr::changes::{MovieChange, SeriesSearch};
use crate::arr::episodes::Episode;
use crate::arr::history::{HistoryEntry, HistoryEvent};
use crate::arr::{ArrError, MediaFile};
use crate::conversation::deletion::target::{
    DeletionScope, DeletionTarget, SeasonEpisodes, TargetFingerprint,
};

/// Number of episodes from which a search covers the whole season.
const MIN_SEASON_SEARCH_EPISODES: usize = 4;

pub(super) struct MediaCopy {
    pub id: i64,
    pub scope: CopyScope,
    /// Files without duplicates. Empty if the copy was deleted.
    pub files: Vec<MediaFile>,
    pub fingerprint: TargetFingerprint,
}

pub(super) enum CopyScope {
    Movie,
    Episodes {
        season: u32,
        /// Requested episodes, with or without a file, and the episodes that share a file with them.
        episodes: Vec<Episode>,
        /// True if the series as a whole is monitored.
        series_monitored: bool,
    },
}

/// Returns the episodes of a frozen copy. Returns `None` for a movie.
pub(super) fn frozen_episodes(item: &DeletionTarget) -> Option<&SeasonEpisodes> {
    match &item.scope {
        DeletionScope::Copy { episodes, .. } => episodes.as_ref(),
        DeletionScope::Whole | DeletionScope::Season { .. } | DeletionScope::Download(_) => None,
    }
}

impl MediaCopy {
    /// Fetches the current copy of a title. Returns `None` if the title is no longer in the library.
    pub(super) async fn fetch_current(
        instance: &InstanceRef<'_>,
        id: i64,
        episodes: Option<&SeasonEpisodes>,
    ) -> Result<Option<Self>, ArrError> {
        match (instance, episodes) {
            (InstanceRef::Movies(instance), _) => {
                let movie = instance.client.fetch_movie(id).await?;
                Ok(movie.map(|movie| Self {
                    id,
                    scope: CopyScope::Movie,
                    files: movie.file.iter().cloned().collect(),
                    fingerprint: movie_fingerprint(movie),
                }))
            }
            (InstanceRef::Series(_), None) => Ok(None),
            (InstanceRef::Series(instance), Some(SeasonEpisodes { season, numbers })) => {
                let Some(series) = instance.client.fetch_series(id).await? else { return Ok(None) };
                let season_episodes = instance.client.fetch_season_episodes(id, *season).await?;
                let requested: Vec<Episode> = season_episodes
                    .iter()
                    .filter(|episode| numbers.is_empty() || numbers.contains(&episode.number))
                    .cloned()
                    .collect();
                let files = episode_files(&requested);
                let shares_file = |episode: &Episode| {
                    episode.file.as_ref().is_some_and(|file| files.iter().any(|other| other.id == file.id))
                };
                let episodes = season_episodes
                    .iter()
                    .filter(|episode| {
                        shares_file(episode) || requested.iter().any(|other| other.id == episode.id)
                    })
                    .cloned()
                    .collect();
                Ok(Some(Self {
                    id,
                    scope: CopyScope::Episodes {
                        season: *season,
                        episodes,
                        series_monitored: series.monitored,
                    },
                    files,
                    fingerprint: series_fingerprint(series),
                }))
            }
        }
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size_bytes).sum()
    }

    /// Returns whether the title is the same and has no files beyond those in the confirmation prompt. A copy without
    /// files matches, because an earlier run deleted them.
    pub(super) fn matches_prompt(&self, item: &DeletionTarget) -> bool {
        let prompted = &item.fingerprint;
        let prompted_files = frozen_file_ids(item);
        self.fingerprint.title == prompted.title
            && self.fingerprint.path == prompted.path
            && self.files.iter().all(|file| prompted_files.contains(&file.id))
            && self.size_bytes() <= prompted.size_bytes + prompted.size_bytes / 10
    }

    pub(super) fn has_frozen_file(&self, item: &DeletionTarget) -> bool {
        self.files.iter().any(|file| frozen_file_ids(item).contains(&file.id))
    }

    pub(super) fn is_replacement_of(&self, item: &DeletionTarget) -> bool {
        !self.files.is_empty() && !self.has_frozen_file(item)
    }

    /// Fetches the history ids of the grabs that downloaded the copy, without those that are already blocked.
    pub(super) async fn fetch_grabs(&self, instance: &InstanceRef<'_>) -> Result<Vec<i64>, ArrError> {
        let history = instance.fetch_history(self.id).await?;
        let episode_ids = match &self.scope {
            CopyScope::Movie => vec![None],
            CopyScope::Episodes { episodes, .. } => episodes.iter().map(|episode| Some(episode.id)).collect(),
        };
        let mut downloads: Vec<&str> =
            episode_ids.into_iter().filter_map(|id| importing_download(&history, id)).collect();
        downloads.sort_unstable();
        downloads.dedup();
        let mut grabs = Vec::new();
        for download in downloads {
            let find_event = |event: HistoryEvent| {
                history.iter().find(move |entry| entry.download == download && entry.event == event)
            };
            // A season pack has one row per episode. Failing one row fails the whole grab.
            if let (None, Some(grab)) = (find_event(HistoryEvent::Failed), find_event(HistoryEvent::Grabbed))
            {
                grabs.push(grab.id);
            }
        }
        Ok(grabs)
    }

    pub(super) async fn delete_files(&self, instance: &InstanceRef<'_>) -> Result<(), ArrError> {
        match instance {
            InstanceRef::Movies(instance) => {
                for file in &self.files {
                    instance.client.delete_file(file.id).await?;
                }
                Ok(())
            }
            InstanceRef::Series(instance) => {
                let files: Vec<i64> = self.files.iter().map(|file| file.id).collect();
                instance.client.delete_episode_files(&files).await
            }
        }
    }

    /// Monitors the copy again. An instance can be configured to unmonitor deleted items, which are then not searched
    /// for.
    pub(super) async fn monitor_again(&self, instance: &InstanceRef<'_>) -> Result<(), ArrError> {
        match (instance, &self.scope) {
            (InstanceRef::Movies(instance), _) => {
                let change = MovieChange { monitored: Some(true), ..MovieChange::default() };
                match instance.client.fetch_movie(self.id).await? {
                    Some(movie) if !movie.monitored => instance.client.edit_movie(self.id, change).await,
                    Some(_) | None => Ok(()),
                }
            }
            (InstanceRef::Series(instance), CopyScope::Episodes { season, episodes, .. }) => {
                let current = instance.client.fetch_season_episodes(self.id, *season).await?;
                let unmonitored: Vec<i64> = current
                    .iter()
                    .filter(|current| {
                        !current.monitored && episodes.iter().any(|episode| episode.id == current.id)
                    })
                    .map(|episode| episode.id)
                    .collect();
                instance.client.monitor_episodes(&unmonitored, true).await
            }
            (InstanceRef::Series(_), CopyScope::Movie) => Ok(()),
        }
    }

    pub(super) async fn search_replacement(&self, instance: &InstanceRef<'_>) -> Result<(), ArrError> {
        match (instance, &self.scope) {
            (InstanceRef::Movies(instance), _) => instance.client.search_movie(self.id).await,
            (InstanceRef::Series(instance), CopyScope::Episodes { season, episodes, series_monitored }) => {
                // A season search only covers its monitored episodes.
                let search = if episodes.len() < MIN_SEASON_SEARCH_EPISODES || !series_monitored {
                    SeriesSearch::Episodes(episodes.iter().map(|episode| episode.id).collect())
                } else {
                    SeriesSearch::Season { series: self.id, season: *season }
                };
                instance.client.search_series(&search).await
            }
            (InstanceRef::Series(_), CopyScope::Movie) => Ok(()),
        }
    }
}

impl InstanceRef<'_> {
    /// Marks a grab as failed. A grab that is no longer in the history can no longer be blocked.
    pub(super) async fn fail_grab(&self, grab: i64) -> Result<(), ArrError> {
        match self.common_api().fail_grab(grab).await {
            Err(ArrError::NotFound) => Ok(()),
            other => other,
        }
    }
}

/// Returns the download of the newest import of a movie or an episode. Returns `None` if the files were imported
/// manually.
fn importing_download(history: &[HistoryEntry], episode: Option<i64>) -> Option<&str> {
    let is_import = |entry: &&HistoryEntry| {
        entry.event == HistoryEvent::Imported
            && episode.is_none_or(|id| entry.episode.is_some_and(|(imported, _, _)| imported == id))
    };
    let import = history.iter().find(is_import)?;
    (!import.download.is_empty()).then_some(import.download.as_str())
}

fn frozen_file_ids(item: &DeletionTarget) -> &[i64] {
    match &item.scope {
        DeletionScope::Copy { files, .. } | DeletionScope::Season { files, .. } => files,
        DeletionScope::Whole | DeletionScope::Download(_) => &[],
    }
}
