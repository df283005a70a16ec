//! Deletion of the files of one season. The season is unmonitored first, so that Sonarr does not download it again.

use std::collections::BTreeMap;

use serde_json::json;

use super::deletion_outcomes::{
    already_gone_result, changed_failure, deleted_result, size_unknown, still_there_failure,
};
use super::instance_ref::series_fingerprint;
use super::library::{ArrInstances, Instance, unknown_title};
use super::{RecoveryOutcome, ToolError};
use crate::arr::changes::SeasonMonitoringOutcome;
use crate::arr::episodes::Episode;
use crate::arr::sonarr::Sonarr;
use crate::arr::{ArrError, MediaFile, Series};
use crate::conversation::deletion::deletion_messages;
use crate::conversation::deletion::target::{DeletionScope, DeletionTarget, SeasonFlags, TargetFingerprint};
use crate::conversation::transcript::{CallFailure, CallResult, FailureCode, MediaKind};

/// Season of a frozen item, with the files in the confirmation prompt.
pub(super) struct SeasonFiles<'a> {
    instance: &'a Instance<Sonarr>,
    item: &'a DeletionTarget,
    number: u32,
    files: &'a [i64],
    monitored: Option<&'a SeasonFlags>,
}

/// Freezes the current files of a season.
pub(super) async fn freeze_season(
    instance: &Instance<Sonarr>,
    series_id: i64,
    number: u32,
) -> Result<DeletionTarget, ToolError> {
    let client = &instance.client;
    let series = client.fetch_series(series_id).await.map_err(|error| instance.request_error(&error))?;
    let Some(series) = series else { return Err(unknown_title(series_id).into()) };
    let episodes = client
        .fetch_season_episodes(series_id, number)
        .await
        .map_err(|error| instance.request_error(&error))?;
    let files = episode_files(&episodes);
    if files.is_empty() {
        return Err(nothing_on_disk(&series, number).into());
    }
    if files.iter().any(|file| file.size_bytes == 0) {
        return Err(size_unknown(&series_fingerprint(series)).into());
    }
    let size_bytes = files.iter().map(|file| file.size_bytes).sum();
    Ok(DeletionTarget {
        instance: instance.name.to_owned(),
        kind: MediaKind::Series,
        id: series_id,
        delete_files: true,
        scope: DeletionScope::Season {
            number,
            files: files.iter().map(|file| file.id).collect(),
            monitored: Some(season_flags(&series, number, &episodes)),
        },
        fingerprint: TargetFingerprint { size_bytes, seasons: None, ..series_fingerprint(series) },
    })
}

/// Returns the files of these episodes, without duplicates, by their ids.
pub(super) fn episode_files(episodes: &[Episode]) -> Vec<MediaFile> {
    let files = episodes.iter().filter_map(|episode| episode.file.clone());
    files.map(|file| (file.id, file)).collect::<BTreeMap<_, _>>().into_values().collect()
}

/// Returns whether the series is the one in the confirmation prompt and the season has no other files than those in it.
/// A file that has disappeared since then is not a change, because less is deleted than the user agreed to.
pub(super) fn still_matches_prompt(
    item: &DeletionTarget,
    series: &Series,
    files: &[MediaFile],
    prompted_files: &[i64],
) -> bool {
    let current = series_fingerprint(series.clone());
    let bytes: u64 = files.iter().map(|file| file.size_bytes).sum();
    let prompted = &item.fingerprint;
    current.title == prompted.title
        && current.path == prompted.path
        && files.iter().all(|file| prompted_files.contains(&file.id))
        && bytes <= prompted.size_bytes + prompted.size_bytes / 10
}

impl<'a> SeasonFiles<'a> {
    /// Builds the season of a frozen item. Returns `None` if the item is not a season.
    pub(super) fn from_item(
        item: &'a DeletionTarget,
        library: &'a ArrInstances,
    ) -> Result<Option<Self>, CallFailure> {
        match &item.scope {
            DeletionScope::Season { number, files, monitored } => {
                let instance = library.series_instance(Some(&item.instance))?;
                let monitored = monitored.as_ref();
                Ok(Some(Self { instance, item, number: *number, files, monitored }))
            }
            DeletionScope::Whole | DeletionScope::Copy { .. } | DeletionScope::Download(_) => Ok(None),
        }
    }

    pub(super) async fn delete_files(&self) -> Result<CallResult, ToolError> {
        let Self { instance, item, .. } = self;
        let client = &instance.client;
        let series = client.fetch_series(item.id).await.map_err(|error| instance.request_error(&error))?;
        let Some(series) = series else { return Ok(already_gone_result(item)) };
        let episodes = self.fetch_episodes().await.map_err(|error| instance.request_error(&error))?;
        let files = episode_files(&episodes);
        if files.is_empty() {
            return Ok(already_gone_result(item));
        }
        if !still_matches_prompt(item, &series, &files, self.files) {
            return Err(changed_failure(item).into());
        }
        let outcome = self.unmonitor_and_delete(&files).await;
        if let Err(ToolError::CallFailed(_)) = &outcome {
            self.restore_monitoring(self.original_flags(&series, &episodes)).await?;
        }
        outcome
    }

    async fn unmonitor_and_delete(&self, files: &[MediaFile]) -> Result<CallResult, ToolError> {
        let Self { instance, item, .. } = self;
        if self.unmonitor_season().await? == SeasonMonitoringOutcome::SeriesNotFound {
            return Ok(already_gone_result(item));
        }
        let ids: Vec<i64> = files.iter().map(|file| file.id).collect();
        let deletion = instance.client.delete_episode_files(&ids).await;
        deletion.map_err(|error| instance.write_error(&error))?;
        let remaining =
            self.fetch_episodes().await.map_err(|error| instance.unverified_write_error(&error))?;
        if remaining.iter().any(Episode::on_disk) {
            return Err(still_there_failure(item).into());
        }
        Ok(deleted_result(item, files.iter().map(|file| file.size_bytes).sum()))
    }

    /// Returns the monitoring flags of the season before the first run. An earlier run may have cleared the current
    /// flags, so the frozen flags count as well.
    fn original_flags(&self, series: &Series, episodes: &[Episode]) -> SeasonFlags {
        let mut flags = season_flags(series, self.number, episodes);
        if let Some(frozen) = self.monitored {
            flags.season |= frozen.season;
            flags.episodes.extend(&frozen.episodes);
            flags.episodes.sort_unstable();
            flags.episodes.dedup();
        }
        flags
    }

    /// Restores the monitoring flags of a season that was not deleted.
    async fn restore_monitoring(&self, flags: SeasonFlags) -> Result<(), ToolError> {
        let Self { instance, item, number, .. } = self;
        let client = &instance.client;
        if flags.season {
            let outcome = client.monitor_seasons(item.id, &[(*number, true)]).await;
            outcome.map_err(|error| instance.unverified_write_error(&error))?;
        }
        let outcome = client.monitor_episodes(&flags.episodes, true).await;
        outcome.map_err(|error| instance.unverified_write_error(&error))
    }

    /// Unmonitors the season and reads the flags back, because Sonarr would download a monitored season again.
    async fn unmonitor_season(&self) -> Result<SeasonMonitoringOutcome, ToolError> {
        let Self { instance, item, number, .. } = self;
        let client = &instance.client;
        let outcome = client.monitor_seasons(item.id, &[(*number, false)]).await;
        if outcome.map_err(|error| instance.write_error(&error))? == SeasonMonitoringOutcome::SeriesNotFound {
            return Ok(SeasonMonitoringOutcome::SeriesNotFound);
        }
        // A season that was not monitored as a whole may have individually monitored episodes.
        let monitored = monitored_episode_ids(
            &self.fetch_episodes().await.map_err(|error| instance.unverified_write_error(&error))?,
        );
        let outcome = client.monitor_episodes(&monitored, false).await;
        outcome.map_err(|error| instance.write_error(&error))?;
        if monitored_episode_ids(
            &self.fetch_episodes().await.map_err(|error| instance.unverified_write_error(&error))?,
        )
        .is_empty()
        {
            Ok(SeasonMonitoringOutcome::Updated)
        } else {
            Err(still_monitored(item).into())
        }
    }

    /// Determines the outcome of an interrupted deletion. If files of the season remain, its monitoring is restored,
    /// since no other run may follow.
    pub(super) async fn recover_deletion(&self) -> RecoveryOutcome {
        let Self { instance, item, .. } = self;
        let outcome = async {
            let episodes = self.fetch_episodes().await.map_err(|error| instance.request_error(&error))?;
            if !episode_files(&episodes).iter().any(|file| self.files.contains(&file.id)) {
                return Ok(RecoveryOutcome::Done(deleted_result(item, item.fingerprint.size_bytes).into()));
            }
            if let Some(frozen) = self.monitored {
                self.restore_monitoring(frozen.clone()).await?;
            }
            Ok::<_, ToolError>(RecoveryOutcome::NotDone)
        };
        outcome.await.unwrap_or_else(|error| {
            tracing::warn!(instance = instance.name, id = item.id, %error, "failed to check a season deletion");
            RecoveryOutcome::Unknown
        })
    }

    async fn fetch_episodes(&self) -> Result<Vec<Episode>, ArrError> {
        self.instance.client.fetch_season_episodes(self.item.id, self.number).await
    }
}

fn season_flags(series: &Series, number: u32, episodes: &[Episode]) -> SeasonFlags {
    let season = series.season(number).is_some_and(|season| season.monitored);
    SeasonFlags { season, episodes: monitored_episode_ids(episodes) }
}

fn monitored_episode_ids(episodes: &[Episode]) -> Vec<i64> {
    episodes.iter().filter(|episode| episode.monitored).map(|episode| episode.id).collect()
}

fn nothing_on_disk(series: &Series, number: u32) -> CallFailure {
    let season = deletion_messages::format_season(number);
    CallFailure::new(
        FailureCode::NothingOnDisk,
        json!({ "title": series.title, "season": number, "hint": "no file of it is on disk, so nothing can be deleted: say so" }),
        Some(format!(
            "There are no files of {season} of {}.",
            super::formatting::format_media_title(&series.title, series.year)
        )),
    )
}

fn still_monitored(item: &DeletionTarget) -> CallFailure {
    CallFailure::new(
        FailureCode::StillWanted,
        json!({ "title": item.fingerprint.title, "hint": "Sonarr would fetch it again, so nothing was deleted" }),
        Some(format!(
            "Sonarr would fetch {} again, so I kept it.",
            deletion_messages::format_target_name(item)
        )),
    )
}
