//! Deletion of the files of one season. The season is unmonitored first, since its files would otherwise be downloaded
//! again.

use std::collections::BTreeMap;

use serde_json::json;

use super::answers::refusal;
use super::library::{Instance, Library};
use super::outcomes::{already_gone, changed, deleted, size_unknown, still_there};
use super::place::fingerprint_of_series;
use super::removal::unknown;
use super::{Settled, ToolError};
use crate::arr::changes::Edit;
use crate::arr::episodes::Episode;
use crate::arr::sonarr::Sonarr;
use crate::arr::{ArrError, MediaFile, Series};
use crate::conversation::deletion;
use crate::conversation::frozen::{Extent, Fingerprint, FrozenItem, SeasonFlags};
use crate::conversation::transcript::{CallFailure, CallResult, MediaKind};

/// Season of a frozen item.
pub(super) struct SeasonFiles<'a> {
    instance: &'a Instance<Sonarr>,
    item: &'a FrozenItem,
    number: u32,
    files: &'a [i64],
    monitored: Option<&'a SeasonFlags>,
}

/// Freezes the current files of a season.
pub(super) async fn freeze(
    instance: &Instance<Sonarr>,
    series: i64,
    number: u32,
) -> Result<FrozenItem, ToolError> {
    let client = &instance.client;
    let show = client.series(series).await.map_err(|error| instance.refused(&error))?;
    let Some(show) = show else { return Err(unknown(series).into()) };
    let episodes = client.season_episodes(series, number).await.map_err(|error| instance.refused(&error))?;
    let files = files_of(&episodes);
    if files.is_empty() {
        return Err(nothing_on_disk(&show, number).into());
    }
    if files.iter().any(|file| file.size_bytes == 0) {
        return Err(size_unknown(&fingerprint_of_series(show)).into());
    }
    let size_bytes = files.iter().map(|file| file.size_bytes).sum();
    Ok(FrozenItem {
        instance: instance.name.to_owned(),
        kind: MediaKind::Series,
        id: series,
        delete_files: true,
        extent: Extent::Season {
            number,
            files: files.iter().map(|file| file.id).collect(),
            monitored: Some(flags_of(&show, number, &episodes)),
        },
        fingerprint: Fingerprint { size_bytes, seasons: None, ..fingerprint_of_series(show) },
    })
}

/// Files of these episodes, without duplicates, by their ids.
pub(super) fn files_of(episodes: &[Episode]) -> Vec<MediaFile> {
    let files = episodes.iter().filter_map(|episode| episode.file.clone());
    files.map(|file| (file.id, file)).collect::<BTreeMap<_, _>>().into_values().collect()
}

/// True if a show is still the one in the confirmation prompt and has no files beyond those that were listed. A file
/// that has disappeared in the meantime is not a change, because less is deleted than the user agreed to.
pub(super) fn still_as_asked(item: &FrozenItem, show: &Series, files: &[MediaFile], named: &[i64]) -> bool {
    let now = fingerprint_of_series(show.clone());
    let bytes: u64 = files.iter().map(|file| file.size_bytes).sum();
    let asked = &item.fingerprint;
    now.title == asked.title
        && now.path == asked.path
        && files.iter().all(|file| named.contains(&file.id))
        && bytes <= asked.size_bytes + asked.size_bytes / 10
}

impl<'a> SeasonFiles<'a> {
    /// Season of a frozen item. Returns `None` if the item is not a season.
    pub(super) fn of(item: &'a FrozenItem, library: &'a Library) -> Result<Option<Self>, CallFailure> {
        match &item.extent {
            Extent::Season { number, files, monitored } => {
                let instance = library.series_instance(Some(&item.instance))?;
                let monitored = monitored.as_ref();
                Ok(Some(Self { instance, item, number: *number, files, monitored }))
            }
            Extent::Whole | Extent::Copy { .. } | Extent::Download(_) => Ok(None),
        }
    }

    pub(super) async fn delete(&self) -> Result<CallResult, ToolError> {
        let Self { instance, item, .. } = self;
        let client = &instance.client;
        let show = client.series(item.id).await.map_err(|error| instance.refused(&error))?;
        let Some(show) = show else { return Ok(already_gone(item)) };
        let episodes = self.episodes().await.map_err(|error| instance.refused(&error))?;
        let files = files_of(&episodes);
        if files.is_empty() {
            return Ok(already_gone(item));
        }
        if !still_as_asked(item, &show, &files, self.files) {
            return Err(changed(item).into());
        }
        let outcome = self.unwant_and_delete(&files).await;
        if let Err(ToolError::TellModel(_)) = &outcome {
            self.want_again(self.flags_before(&show, &episodes)).await?;
        }
        outcome
    }

    async fn unwant_and_delete(&self, files: &[MediaFile]) -> Result<CallResult, ToolError> {
        let Self { instance, item, .. } = self;
        if self.unwant().await? == Edit::Gone {
            return Ok(already_gone(item));
        }
        let ids: Vec<i64> = files.iter().map(|file| file.id).collect();
        let deletion = instance.client.delete_episode_files(&ids).await;
        deletion.map_err(|error| instance.failed_write(&error))?;
        let left = self.episodes().await.map_err(|error| instance.unread_write(&error))?;
        if left.iter().any(Episode::on_disk) {
            return Err(still_there(item).into());
        }
        Ok(deleted(item, files.iter().map(|file| file.size_bytes).sum()))
    }

    /// Monitored parts of the season before its first run. A later run reads the flags that an earlier run has cleared,
    /// so the frozen flags count as well.
    fn flags_before(&self, show: &Series, episodes: &[Episode]) -> SeasonFlags {
        let mut flags = flags_of(show, self.number, episodes);
        if let Some(frozen) = self.monitored {
            flags.season |= frozen.season;
            flags.episodes.extend(&frozen.episodes);
            flags.episodes.sort_unstable();
            flags.episodes.dedup();
        }
        flags
    }

    /// Restores the earlier monitoring of a season that was not deleted.
    async fn want_again(&self, flags: SeasonFlags) -> Result<(), ToolError> {
        let Self { instance, item, number, .. } = self;
        let client = &instance.client;
        if flags.season {
            let edited = client.monitor_seasons(item.id, &[(*number, true)]).await;
            edited.map_err(|error| instance.unread_write(&error))?;
        }
        let wanted = client.monitor_episodes(&flags.episodes, true).await;
        wanted.map_err(|error| instance.unread_write(&error))
    }

    /// Unmonitors the season. The flags are read back, because a season that is still monitored would be downloaded
    /// again.
    async fn unwant(&self) -> Result<Edit, ToolError> {
        let Self { instance, item, number, .. } = self;
        let client = &instance.client;
        let edited = client.monitor_seasons(item.id, &[(*number, false)]).await;
        if edited.map_err(|error| instance.failed_write(&error))? == Edit::Gone {
            return Ok(Edit::Gone);
        }
        // A season that was not monitored as a whole may have individually monitored episodes.
        let single = wanted(&self.episodes().await.map_err(|error| instance.unread_write(&error))?);
        let unwanted = client.monitor_episodes(&single, false).await;
        unwanted.map_err(|error| instance.failed_write(&error))?;
        if wanted(&self.episodes().await.map_err(|error| instance.unread_write(&error))?).is_empty() {
            Ok(Edit::Made)
        } else {
            Err(still_wanted(item).into())
        }
    }

    /// Determines the outcome of an interrupted deletion. The monitoring of a season that is still there is restored,
    /// since no other run may follow.
    pub(super) async fn find_out(&self) -> Settled {
        let Self { instance, item, .. } = self;
        let restored = async {
            let episodes = self.episodes().await.map_err(|error| instance.refused(&error))?;
            if !files_of(&episodes).iter().any(|file| self.files.contains(&file.id)) {
                return Ok(Settled::Done(deleted(item, item.fingerprint.size_bytes).into()));
            }
            if let Some(frozen) = self.monitored {
                self.want_again(frozen.clone()).await?;
            }
            Ok::<_, ToolError>(Settled::NotDone)
        };
        restored.await.unwrap_or_else(|error| {
            tracing::warn!(instance = instance.name, id = item.id, %error, "failed to settle a deletion");
            Settled::Unknown
        })
    }

    async fn episodes(&self) -> Result<Vec<Episode>, ArrError> {
        self.instance.client.season_episodes(self.item.id, self.number).await
    }
}

fn flags_of(show: &Series, number: u32, episodes: &[Episode]) -> SeasonFlags {
    let season = show.season(number).is_some_and(|season| season.monitored);
    SeasonFlags { season, episodes: wanted(episodes) }
}

fn wanted(episodes: &[Episode]) -> Vec<i64> {
    episodes.iter().filter(|episode| episode.monitored).map(|episode| episode.id).collect()
}

fn nothing_on_disk(show: &Series, number: u32) -> CallFailure {
    let season = deletion::season(number);
    refusal(
        "nothing_on_disk",
        json!({ "title": show.title, "season": number, "hint": "nothing of it can be deleted" }),
        Some(format!("There are no files of {season} of {}.", super::answers::named(&show.title, show.year))),
    )
}

fn still_wanted(item: &FrozenItem) -> CallFailure {
    refusal(
        "still_wanted",
        json!({ "title": item.fingerprint.title, "hint": "Sonarr would fetch it again, so nothing was deleted" }),
        Some(format!("Sonarr would fetch {} again, so I kept it.", deletion::name(item))),
    )
}
