//! Copy of a movie or of episodes on disk: its files, the grabs that downloaded it, and each step of replacing it.

use super::instance_ref::{InstanceRef, movie_fingerprint, series_fingerprint};
use super::season_files::episode_files;
use crate::arr::changes::{MovieChange, SeriesSearch};
use crate::arr::episodes::Episode;
use crate::arr::history::{HistoryEntry, HistoryEvent};
use crate::arr::{ArrError, MediaFile};
use crate::conversation::deletion::target::{
    DeletionScope, DeletionTarget, SeasonEpisodes, TargetFingerprint,
};

/// Minimum number of episodes for which Sonarr searches for the whole season instead.
const WHOLE_SEASON: usize = 4;

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
        /// Requested episodes, regardless of whether they still have a file, and episodes that share a file with them.
        touched: Vec<Episode>,
        /// True if the series as a whole is monitored.
        show_wanted: bool,
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
    /// Loads the current copy of a title. Returns `None` if the title is no longer in the library.
    pub(super) async fn fetch_current(
        place: &InstanceRef<'_>,
        id: i64,
        episodes: Option<&SeasonEpisodes>,
    ) -> Result<Option<Self>, ArrError> {
        match (place, episodes) {
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
                let Some(show) = instance.client.fetch_series(id).await? else { return Ok(None) };
                let all = instance.client.fetch_season_episodes(id, *season).await?;
                let named: Vec<Episode> = all
                    .iter()
                    .filter(|episode| numbers.is_empty() || numbers.contains(&episode.number))
                    .cloned()
                    .collect();
                let files = episode_files(&named);
                let held = |episode: &Episode| {
                    episode.file.as_ref().is_some_and(|file| files.iter().any(|it| it.id == file.id))
                };
                let touched = all
                    .iter()
                    .filter(|episode| held(episode) || named.iter().any(|one| one.id == episode.id))
                    .cloned()
                    .collect();
                Ok(Some(Self {
                    id,
                    scope: CopyScope::Episodes { season: *season, touched, show_wanted: show.monitored },
                    files,
                    fingerprint: series_fingerprint(show),
                }))
            }
        }
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size_bytes).sum()
    }

    /// Returns whether the title is the same and has no files beyond those in the confirmation prompt. If there is no
    /// file, an earlier run has deleted it.
    pub(super) fn matches_prompt(&self, item: &DeletionTarget) -> bool {
        let asked = &item.fingerprint;
        let named = frozen_file_ids(item);
        self.fingerprint.title == asked.title
            && self.fingerprint.path == asked.path
            && self.files.iter().all(|file| named.contains(&file.id))
            && self.size_bytes() <= asked.size_bytes + asked.size_bytes / 10
    }

    pub(super) fn has_file_of(&self, item: &DeletionTarget) -> bool {
        self.files.iter().any(|file| frozen_file_ids(item).contains(&file.id))
    }

    pub(super) fn is_replacement_of(&self, item: &DeletionTarget) -> bool {
        !self.files.is_empty() && !self.has_file_of(item)
    }

    /// Fetches the grabs that downloaded the copy, by their history ids. Grabs that were already blocked are left out.
    pub(super) async fn fetch_grabs(&self, place: &InstanceRef<'_>) -> Result<Vec<i64>, ArrError> {
        let history = place.fetch_history(self.id).await?;
        let parts = match &self.scope {
            CopyScope::Movie => vec![None],
            CopyScope::Episodes { touched, .. } => touched.iter().map(|episode| Some(episode.id)).collect(),
        };
        let mut downloads: Vec<&str> =
            parts.into_iter().filter_map(|part| importing_download(&history, part)).collect();
        downloads.sort_unstable();
        downloads.dedup();
        let mut grabs = Vec::new();
        for download in downloads {
            let of_it = |event: HistoryEvent| {
                history.iter().find(move |entry| entry.download == download && entry.event == event)
            };
            // One row of a season pack represents all of its rows.
            if let (None, Some(grab)) = (of_it(HistoryEvent::Failed), of_it(HistoryEvent::Grabbed)) {
                grabs.push(grab.id);
            }
        }
        Ok(grabs)
    }

    pub(super) async fn delete_files(&self, place: &InstanceRef<'_>) -> Result<(), ArrError> {
        match place {
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

    /// Monitors the copy again. Some instances are configured to unmonitor deleted items, in which case no search would
    /// take place.
    pub(super) async fn monitor_again(&self, place: &InstanceRef<'_>) -> Result<(), ArrError> {
        match (place, &self.scope) {
            (InstanceRef::Movies(instance), _) => {
                let wanted = MovieChange { monitored: Some(true), ..MovieChange::default() };
                match instance.client.fetch_movie(self.id).await? {
                    Some(movie) if !movie.monitored => instance.client.edit_movie(self.id, wanted).await,
                    Some(_) | None => Ok(()),
                }
            }
            (InstanceRef::Series(instance), CopyScope::Episodes { season, touched, .. }) => {
                let now = instance.client.fetch_season_episodes(self.id, *season).await?;
                let unwanted: Vec<i64> = now
                    .iter()
                    .filter(|one| !one.monitored && touched.iter().any(|episode| episode.id == one.id))
                    .map(|one| one.id)
                    .collect();
                instance.client.monitor_episodes(&unwanted, true).await
            }
            (InstanceRef::Series(_), CopyScope::Movie) => Ok(()),
        }
    }

    pub(super) async fn search_replacement(&self, place: &InstanceRef<'_>) -> Result<(), ArrError> {
        match (place, &self.scope) {
            (InstanceRef::Movies(instance), _) => instance.client.search_movie(self.id).await,
            (InstanceRef::Series(instance), CopyScope::Episodes { season, touched, show_wanted }) => {
                // A season search only covers its monitored episodes.
                let what = if touched.len() < WHOLE_SEASON || !show_wanted {
                    SeriesSearch::Episodes(touched.iter().map(|episode| episode.id).collect())
                } else {
                    SeriesSearch::Season { series: self.id, season: *season }
                };
                instance.client.search_series(&what).await
            }
            (InstanceRef::Series(_), CopyScope::Movie) => Ok(()),
        }
    }
}

impl InstanceRef<'_> {
    /// Marks a grab as failed. A grab that is no longer in the history cannot be blocked any more.
    pub(super) async fn fail_grab(&self, grab: i64) -> Result<(), ArrError> {
        match self.common_api().fail_grab(grab).await {
            Err(ArrError::NotFound) => Ok(()),
            other => other,
        }
    }
}

/// Returns the download of the current copy, or of the copy that was deleted, according to the newest import. Returns
/// `None` if the files were imported manually.
fn importing_download(history: &[HistoryEntry], episode: Option<i64>) -> Option<&str> {
    let of_it = |entry: &&HistoryEntry| {
        entry.event == HistoryEvent::Imported
            && episode.is_none_or(|id| entry.episode.is_some_and(|(of, _, _)| of == id))
    };
    let import = history.iter().find(of_it)?;
    (!import.download.is_empty()).then_some(import.download.as_str())
}

fn frozen_file_ids(item: &DeletionTarget) -> &[i64] {
    match &item.scope {
        DeletionScope::Copy { files, .. } | DeletionScope::Season { files, .. } => files,
        DeletionScope::Whole | DeletionScope::Download(_) => &[],
    }
}
