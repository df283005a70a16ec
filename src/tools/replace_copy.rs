//! Tool that replaces a bad copy after confirmation. It first deletes the file, because Sonarr and Radarr accept no
//! release that is not better than an existing file. Then it blocks the old release and searches for another.

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
    /// If not all.
    episodes: Option<Vec<u32>>,
}

impl DeletionTool for ReplaceCopy {
    const NAME: &'static str = "replace_copy";
    const DESCRIPTION: &'static str = "Delete a bad copy on disk and get another, after code asked the user. For what is missing use \
        get_more.";

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        let instance = InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())?;
        Ok(instance.media_ref(self.id).into())
    }

    async fn preview_items(&self, library: &ArrInstances) -> Result<Vec<DeletionTarget>, ToolError> {
        let instance = InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())?;
        let episodes = match (self.kind, self.season) {
            (MediaKind::Movie, _) => None,
            (MediaKind::Series, Some(season)) => {
                Some(SeasonEpisodes { season, numbers: self.episodes.clone().unwrap_or_default() })
            }
            (MediaKind::Series, None) => return Err(which_season().into()),
        };
        match freeze_copy(&instance, self.id, episodes).await? {
            Some(item) => Ok(vec![item]),
            None => Err(unknown_title(self.id).into()),
        }
    }

    async fn refresh_item(
        item: &DeletionTarget,
        library: &ArrInstances,
    ) -> Result<Option<DeletionTarget>, ToolError> {
        let instance = InstanceRef::find_by_name(library, item.kind, Some(&item.instance))?;
        freeze_copy(&instance, item.id, media_copy::frozen_episodes(item).cloned()).await
    }

    /// Replaces the copy. Each step can be repeated, so that an interrupted run can be resumed.
    async fn delete_item(item: &DeletionTarget, library: &ArrInstances) -> Result<CallResult, ToolError> {
        let instance = InstanceRef::find_by_name(library, item.kind, Some(&item.instance))?;
        let copy = MediaCopy::fetch_current(&instance, item.id, media_copy::frozen_episodes(item)).await;
        let Some(copy) = copy.map_err(|error| instance.request_error(&error))? else {
            return Ok(already_gone_result(item));
        };
        if !copy.matches_prompt(item) {
            return Err(changed_failure(item).into());
        }
        let grabs = copy.fetch_grabs(&instance).await.map_err(|error| instance.request_error(&error))?;
        copy.delete_files(&instance).await.map_err(|error| instance.write_error(&error))?;
        // The file is deleted now, so the outcome of any later failure must be checked.
        let unverified = |error| instance.unverified_write_error(&error);
        copy.monitor_again(&instance).await.map_err(unverified)?;
        for grab in &grabs {
            instance.fail_grab(*grab).await.map_err(unverified)?;
        }
        // Sonarr or Radarr may already search automatically. A second search does no harm.
        copy.search_replacement(&instance).await.map_err(unverified)?;
        match MediaCopy::fetch_current(&instance, item.id, media_copy::frozen_episodes(item))
            .await
            .map_err(unverified)?
        {
            Some(remaining) if remaining.has_frozen_file(item) => Err(still_there_failure(item).into()),
            Some(_) | None => Ok(deleted_result(item, copy.size_bytes())),
        }
    }

    async fn recover_item(
        item: &DeletionTarget,
        library: &ArrInstances,
    ) -> Result<RecoveryOutcome, ToolError> {
        let instance = InstanceRef::find_by_name(library, item.kind, Some(&item.instance))?;
        Ok(match MediaCopy::fetch_current(&instance, item.id, media_copy::frozen_episodes(item)).await {
            Ok(None) => RecoveryOutcome::Done(deleted_result(item, 0).into()),
            // A replacement has already been imported.
            Ok(Some(copy)) if copy.is_replacement_of(item) => {
                RecoveryOutcome::Done(deleted_result(item, 0).into())
            }
            // Another run does the remaining steps, since each step can be repeated.
            Ok(Some(_)) => RecoveryOutcome::NotDone,
            Err(error) => {
                tracing::warn!(instance = instance.name(), id = item.id, %error, "failed to check a replacement");
                RecoveryOutcome::Unknown
            }
        })
    }
}

/// Freezes the copy for the confirmation prompt. Returns `None` if the title is no longer in the library.
async fn freeze_copy(
    instance: &InstanceRef<'_>,
    id: i64,
    episodes: Option<SeasonEpisodes>,
) -> Result<Option<DeletionTarget>, ToolError> {
    let copy = MediaCopy::fetch_current(instance, id, episodes.as_ref())
        .await
        .map_err(|error| instance.request_error(&error))?;
    let Some(copy) = copy else { return Ok(None) };
    if copy.files.is_empty() {
        return Err(nothing_on_disk(&copy.fingerprint).into());
    }
    if copy.files.iter().any(|file| file.size_bytes == 0) {
        return Err(size_unknown(&copy.fingerprint).into());
    }
    // A file may contain more episodes than were requested. They are deleted too, so the prompt lists them.
    let (kind, episodes) = match &copy.scope {
        CopyScope::Movie => (MediaKind::Movie, None),
        CopyScope::Episodes { season, episodes, .. } => {
            let on_disk = episodes.iter().filter(|episode| episode.on_disk());
            let numbers = on_disk.map(|episode| episode.number).collect();
            (MediaKind::Series, Some(SeasonEpisodes { season: *season, numbers }))
        }
    };
    Ok(Some(DeletionTarget {
        instance: instance.name().to_owned(),
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

fn nothing_on_disk(fingerprint: &TargetFingerprint) -> CallFailure {
    CallFailure::new(
        FailureCode::NothingOnDisk,
        json!({ "title": fingerprint.title, "hint": "there is no copy of that to replace; why_missing says more" }),
        Some(format!(
            "There is no copy of that on disk: {}.",
            format_media_title(&fingerprint.title, fingerprint.year)
        )),
    )
}
