//! Replacement of a bad copy. After confirmation, its file is deleted first, since a release that is no better would
//! not be accepted next to it. Then its release is blocked, and then another release is searched for.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::arguments::parsing::bad_argument;
use super::deletion_outcomes::{
    already_gone_result, changed_failure, deleted_result, size_unknown, still_there_failure,
};
use super::formatting::format_media_title;
use super::instance_ref::InstanceRef;
use super::library::{ArrInstances, unknown_title};
use super::media_copy::{self, CopyScope, MediaCopy};
use super::typed_tool::DeletionTool;
use super::{CallReferences, RecoveryOutcome, ToolError};
use crate::conversation::deletion::target::{
    DeletionScope, DeletionTarget, SeasonEpisodes, TargetFingerprint,
};
use crate::conversation::transcript::{CallFailure, CallResult, FailureCode, MediaKind};

/// Tool that replaces a bad copy of a movie or of episodes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaceCopy {
    #[serde(rename = "type")]
    kind: MediaKind,
    id: i64,
    instance: Option<String>,
    #[schemars(range(min = 0))]
    season: Option<u32>,
    /// Of that season; left out: all.
    episodes: Option<Vec<u32>>,
}

impl DeletionTool for ReplaceCopy {
    const NAME: &'static str = "replace_copy";
    const DESCRIPTION: &'static str =
        "Delete a bad copy on disk (wrong, broken, bad sound), never take it again, get another.";

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        let place = InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())?;
        Ok(place.media_ref(self.id).into())
    }

    async fn preview_items(&self, library: &ArrInstances) -> Result<Vec<DeletionTarget>, ToolError> {
        let place = InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())?;
        let episodes = match (self.kind, self.season) {
            (MediaKind::Movie, _) => None,
            (MediaKind::Series, Some(season)) => {
                Some(SeasonEpisodes { season, numbers: self.episodes.clone().unwrap_or_default() })
            }
            (MediaKind::Series, None) => return Err(which_season().into()),
        };
        match freeze_copy(&place, self.id, episodes).await? {
            Some(item) => Ok(vec![item]),
            None => Err(unknown_title(self.id).into()),
        }
    }

    async fn refresh_item(
        item: &DeletionTarget,
        library: &ArrInstances,
    ) -> Result<Option<DeletionTarget>, ToolError> {
        let place = InstanceRef::find_by_name(library, item.kind, Some(&item.instance))?;
        freeze_copy(&place, item.id, media_copy::frozen_episodes(item).cloned()).await
    }

    /// Replaces the copy. Each step first checks whether it was already done, so that an interrupted run can be
    /// resumed.
    async fn delete_item(item: &DeletionTarget, library: &ArrInstances) -> Result<CallResult, ToolError> {
        let place = InstanceRef::find_by_name(library, item.kind, Some(&item.instance))?;
        let copy = MediaCopy::fetch_current(&place, item.id, media_copy::frozen_episodes(item)).await;
        let Some(copy) = copy.map_err(|error| place.request_error(&error))? else {
            return Ok(already_gone_result(item));
        };
        if !copy.matches_prompt(item) {
            return Err(changed_failure(item).into());
        }
        let grabs = copy.fetch_grabs(&place).await.map_err(|error| place.request_error(&error))?;
        copy.delete_files(&place).await.map_err(|error| place.write_error(&error))?;
        // From here on, the outcome of a failure must be checked, because the file may already be deleted.
        let lost = |error| place.unverified_write_error(&error);
        copy.monitor_again(&place).await.map_err(lost)?;
        for grab in &grabs {
            place.fail_grab(*grab).await.map_err(lost)?;
        }
        // Sonarr and Radarr may search for another release automatically, or for part of it. A second search has no ill
        // effect.
        copy.search_replacement(&place).await.map_err(lost)?;
        match MediaCopy::fetch_current(&place, item.id, media_copy::frozen_episodes(item))
            .await
            .map_err(lost)?
        {
            Some(left) if left.has_file_of(item) => Err(still_there_failure(item).into()),
            Some(_) | None => Ok(deleted_result(item, copy.size_bytes())),
        }
    }

    async fn recover_item(
        item: &DeletionTarget,
        library: &ArrInstances,
    ) -> Result<RecoveryOutcome, ToolError> {
        let place = InstanceRef::find_by_name(library, item.kind, Some(&item.instance))?;
        Ok(match MediaCopy::fetch_current(&place, item.id, media_copy::frozen_episodes(item)).await {
            Ok(None) => RecoveryOutcome::Done(deleted_result(item, 0).into()),
            // A replacement has already been imported.
            Ok(Some(copy)) if copy.is_replacement_of(item) => {
                RecoveryOutcome::Done(deleted_result(item, 0).into())
            }
            // The remaining steps are done by another run, since each step can be repeated.
            Ok(Some(_)) => RecoveryOutcome::NotDone,
            Err(error) => {
                tracing::warn!(instance = place.name(), id = item.id, %error, "failed to check a replacement");
                RecoveryOutcome::Unknown
            }
        })
    }
}

/// Freezes the copy for the confirmation prompt. Returns `None` if the title is no longer in the library.
async fn freeze_copy(
    place: &InstanceRef<'_>,
    id: i64,
    episodes: Option<SeasonEpisodes>,
) -> Result<Option<DeletionTarget>, ToolError> {
    let copy = MediaCopy::fetch_current(place, id, episodes.as_ref())
        .await
        .map_err(|error| place.request_error(&error))?;
    let Some(copy) = copy else { return Ok(None) };
    if copy.files.is_empty() {
        return Err(nothing_on_disk(&copy.fingerprint).into());
    }
    if copy.files.iter().any(|file| file.size_bytes == 0) {
        return Err(size_unknown(&copy.fingerprint).into());
    }
    // A file may hold more episodes than were listed. They are deleted as well, so the prompt lists them too.
    let (kind, episodes) = match &copy.scope {
        CopyScope::Movie => (MediaKind::Movie, None),
        CopyScope::Episodes { season, touched, .. } => {
            let on_disk = touched.iter().filter(|episode| episode.on_disk());
            let numbers = on_disk.map(|episode| episode.number).collect();
            (MediaKind::Series, Some(SeasonEpisodes { season: *season, numbers }))
        }
    };
    Ok(Some(DeletionTarget {
        instance: place.name().to_owned(),
        kind,
        id,
        delete_files: true,
        scope: DeletionScope::Copy { episodes, files: copy.files.iter().map(|file| file.id).collect() },
        fingerprint: TargetFingerprint { size_bytes: copy.size_bytes(), seasons: None, ..copy.fingerprint },
    }))
}

fn which_season() -> CallFailure {
    bad_argument("season", "integer", "of a show, say which season, and which episodes if not all")
}

fn nothing_on_disk(about: &TargetFingerprint) -> CallFailure {
    CallFailure::new(
        FailureCode::NothingOnDisk,
        json!({ "title": about.title, "hint": "there is no copy of that to replace; why_missing says more" }),
        Some(format!("There is no copy of that on disk: {}.", format_media_title(&about.title, about.year))),
    )
}
