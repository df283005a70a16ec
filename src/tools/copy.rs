//! Copy of a movie or of episodes on disk: its files, the grabs that brought it, and each step of replacing it.

use super::place::{Place, fingerprint_of_movie, fingerprint_of_series};
use super::season_files::files_of;
use crate::arr::changes::{MovieChange, SeriesSearch};
use crate::arr::episodes::Episode;
use crate::arr::history::{HistoryEntry, HistoryEvent};
use crate::arr::{ArrError, MediaFile};
use crate::conversation::frozen::{Episodes, Extent, Fingerprint, FrozenItem};

/// Minimum number of episodes for which Sonarr searches for the whole season instead.
const WHOLE_SEASON: usize = 4;

pub(super) struct Copy {
    pub id: i64,
    pub held: Held,
    /// Files without duplicates. Empty if the copy was deleted.
    pub files: Vec<MediaFile>,
    pub about: Fingerprint,
}

pub(super) enum Held {
    Movie,
    Episodes {
        season: u32,
        /// Requested episodes, regardless of whether they still have a file, and episodes that share a file with them.
        touched: Vec<Episode>,
        /// True if the show as a whole is monitored.
        show_wanted: bool,
    },
}

/// Episodes of a frozen copy. `None` for a movie.
pub(super) fn episodes(item: &FrozenItem) -> Option<&Episodes> {
    match &item.extent {
        Extent::Copy { episodes, .. } => episodes.as_ref(),
        Extent::Whole | Extent::Season { .. } | Extent::Download(_) => None,
    }
}

impl Copy {
    /// Loads the current copy of a title. Returns `None` if the title is gone.
    pub(super) async fn of(
        place: &Place<'_>,
        id: i64,
        episodes: Option<&Episodes>,
    ) -> Result<Option<Self>, ArrError> {
        match (place, episodes) {
            (Place::Movies(instance), _) => {
                let movie = instance.client.movie(id).await?;
                Ok(movie.map(|movie| Self {
                    id,
                    held: Held::Movie,
                    files: movie.file.iter().cloned().collect(),
                    about: fingerprint_of_movie(movie),
                }))
            }
            (Place::Series(_), None) => Ok(None),
            (Place::Series(instance), Some(Episodes { season, numbers })) => {
                let Some(show) = instance.client.series(id).await? else { return Ok(None) };
                let all = instance.client.season_episodes(id, *season).await?;
                let named: Vec<Episode> = all
                    .iter()
                    .filter(|episode| numbers.is_empty() || numbers.contains(&episode.number))
                    .cloned()
                    .collect();
                let files = files_of(&named);
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
                    held: Held::Episodes { season: *season, touched, show_wanted: show.monitored },
                    files,
                    about: fingerprint_of_series(show),
                }))
            }
        }
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size_bytes).sum()
    }

    /// True if the title is the same and has no files beyond those in the confirmation prompt. If there is no file, an
    /// earlier run has deleted it.
    pub(super) fn is_as_asked(&self, item: &FrozenItem) -> bool {
        let asked = &item.fingerprint;
        let named = files_named(item);
        self.about.title == asked.title
            && self.about.path == asked.path
            && self.files.iter().all(|file| named.contains(&file.id))
            && self.size_bytes() <= asked.size_bytes + asked.size_bytes / 10
    }

    pub(super) fn has_any_of(&self, item: &FrozenItem) -> bool {
        self.files.iter().any(|file| files_named(item).contains(&file.id))
    }

    pub(super) fn is_another_than(&self, item: &FrozenItem) -> bool {
        !self.files.is_empty() && !self.has_any_of(item)
    }

    /// Grabs that brought the copy, by their history ids. Grabs that were already blocked are left out.
    pub(super) async fn grabs(&self, place: &Place<'_>) -> Result<Vec<i64>, ArrError> {
        let (history, parts) = match (place, &self.held) {
            (Place::Movies(instance), _) => (instance.client.history(self.id).await?, vec![None]),
            (Place::Series(instance), Held::Episodes { touched, .. }) => {
                let parts = touched.iter().map(|episode| Some(episode.id)).collect();
                (instance.client.history(self.id).await?, parts)
            }
            (Place::Series(_), Held::Movie) => (Vec::new(), Vec::new()),
        };
        let mut downloads: Vec<&str> =
            parts.into_iter().filter_map(|part| brought_by(&history, part)).collect();
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

    pub(super) async fn delete(&self, place: &Place<'_>) -> Result<(), ArrError> {
        match place {
            Place::Movies(instance) => {
                for file in &self.files {
                    instance.client.delete_file(file.id).await?;
                }
                Ok(())
            }
            Place::Series(instance) => {
                let files: Vec<i64> = self.files.iter().map(|file| file.id).collect();
                instance.client.delete_episode_files(&files).await
            }
        }
    }

    /// Monitors the copy again. Some instances are configured to unmonitor deleted items, in which case no search would
    /// take place.
    pub(super) async fn want(&self, place: &Place<'_>) -> Result<(), ArrError> {
        match (place, &self.held) {
            (Place::Movies(instance), _) => {
                let wanted = MovieChange { monitored: Some(true), ..MovieChange::default() };
                match instance.client.movie(self.id).await? {
                    Some(movie) if !movie.monitored => instance.client.edit(self.id, wanted).await,
                    Some(_) | None => Ok(()),
                }
            }
            (Place::Series(instance), Held::Episodes { season, touched, .. }) => {
                let now = instance.client.season_episodes(self.id, *season).await?;
                let unwanted: Vec<i64> = now
                    .iter()
                    .filter(|one| !one.monitored && touched.iter().any(|episode| episode.id == one.id))
                    .map(|one| one.id)
                    .collect();
                instance.client.monitor_episodes(&unwanted, true).await
            }
            (Place::Series(_), Held::Movie) => Ok(()),
        }
    }

    pub(super) async fn search(&self, place: &Place<'_>) -> Result<(), ArrError> {
        match (place, &self.held) {
            (Place::Movies(instance), _) => instance.client.search(self.id).await.map(drop),
            (Place::Series(instance), Held::Episodes { season, touched, show_wanted }) => {
                // A season search only covers its monitored episodes.
                let what = if touched.len() < WHOLE_SEASON || !show_wanted {
                    SeriesSearch::Episodes(touched.iter().map(|episode| episode.id).collect())
                } else {
                    SeriesSearch::Season { series: self.id, season: *season }
                };
                instance.client.search(&what).await.map(drop)
            }
            (Place::Series(_), Held::Movie) => Ok(()),
        }
    }
}

impl Place<'_> {
    /// Marks a grab as failed. A grab that is no longer in the history cannot be blocked any more.
    pub(super) async fn fail_grab(&self, grab: i64) -> Result<(), ArrError> {
        let failed = match self {
            Self::Movies(instance) => instance.client.server().fail_grab(grab).await,
            Self::Series(instance) => instance.client.server().fail_grab(grab).await,
        };
        match failed {
            Err(ArrError::NotFound) => Ok(()),
            other => other,
        }
    }
}

/// Download that brought the current copy, or the copy that was deleted, according to the newest import. Returns `None`
/// if the files were imported manually.
fn brought_by(history: &[HistoryEntry], episode: Option<i64>) -> Option<&str> {
    let of_it = |entry: &&HistoryEntry| {
        entry.event == HistoryEvent::Imported
            && episode.is_none_or(|id| entry.episode.is_some_and(|(of, _, _)| of == id))
    };
    let import = history.iter().find(of_it)?;
    (!import.download.is_empty()).then_some(import.download.as_str())
}

fn files_named(item: &FrozenItem) -> &[i64] {
    match &item.extent {
        Extent::Copy { files, .. } | Extent::Season { files, .. } => files,
        Extent::Whole | Extent::Download(_) => &[],
    }
}
