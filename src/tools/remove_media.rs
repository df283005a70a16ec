//! Tool that deletes titles or seasons from the library. Each confirmed item is deleted in its own run.

use schemars::JsonSchema;
use serde::Deserialize;

use super::arguments::parsing::bad_argument;
use super::deletion_outcomes::{
    already_gone_result, changed_failure, deleted_result, is_same_title, still_there_failure,
};
use super::instance_ref::InstanceRef;
use super::library::{ArrInstances, unknown_title};
use super::season_files::{self, SeasonFiles};
use super::typed_tool::DeletionTool;
use super::{CallReferences, RecoveryOutcome, ToolError};
use crate::arr::{ArrError, RemovalOutcome};
use crate::conversation::deletion::deletion_messages::MAX_ITEMS;
use crate::conversation::deletion::target::{DeletionScope, DeletionTarget};
use crate::conversation::transcript::{CallFailure, CallResult, MediaKind};

/// Name of the tool that deletes.
pub const REMOVE_MEDIA: &str = "remove_media";

/// Tool that deletes titles from the library, or the files of a season.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveMedia {
    /// All of them; code asks about 5 at a time.
    #[schemars(length(min = 1, max = 20))]
    items: Vec<RemovalTarget>,
    /// False: keep the files.
    delete_files: bool,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RemovalTarget {
    #[serde(rename = "type")]
    kind: MediaKind,
    id: i64,
    instance: Option<String>,
    /// Only its files.
    #[schemars(range(min = 0))]
    season: Option<u32>,
}

impl DeletionTool for RemoveMedia {
    const NAME: &'static str = REMOVE_MEDIA;
    const DESCRIPTION: &'static str = "Delete titles, or files of a season, after code asked the user. Ends your turn. For a bad copy \
        use replace_copy.";

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        let find_instance =
            |item: &RemovalTarget| InstanceRef::find_by_name(library, item.kind, item.instance.as_deref());
        let items = self.unique_items().into_iter();
        let refs = items
            .map(|item| Ok(find_instance(item)?.media_ref(item.id)))
            .collect::<Result<_, CallFailure>>()?;
        Ok(CallReferences { refs, four_k: false })
    }

    async fn preview_items(&self, library: &ArrInstances) -> Result<Vec<DeletionTarget>, ToolError> {
        let mut frozen = Vec::new();
        for item in self.unique_items().into_iter().take(MAX_ITEMS) {
            let instance = InstanceRef::find_by_name(library, item.kind, item.instance.as_deref())?;
            if let Some(number) = item.season {
                let InstanceRef::Series(instance) = instance else {
                    return Err(movie_has_no_seasons().into());
                };
                if !self.delete_files {
                    return Err(season_needs_file_deletion().into());
                }
                frozen.push(season_files::freeze_season(instance, item.id, number).await?);
                continue;
            }
            let Some(fingerprint) =
                instance.fetch_fingerprint(item.id).await.map_err(|error| instance.request_error(&error))?
            else {
                return Err(unknown_title(item.id).into());
            };
            frozen.push(DeletionTarget {
                instance: instance.name().to_owned(),
                kind: item.kind,
                id: item.id,
                // The size may be missing from a response. Files that the prompt could not show are never deleted.
                delete_files: self.delete_files && fingerprint.size_bytes > 0,
                scope: DeletionScope::Whole,
                fingerprint,
            });
        }
        Ok(frozen)
    }

    async fn refresh_item(
        item: &DeletionTarget,
        library: &ArrInstances,
    ) -> Result<Option<DeletionTarget>, ToolError> {
        let instance = InstanceRef::find_by_name(library, item.kind, Some(&item.instance))?;
        if let (DeletionScope::Season { number, .. }, InstanceRef::Series(instance)) =
            (&item.scope, &instance)
        {
            return season_files::freeze_season(instance, item.id, *number).await.map(Some);
        }
        let fingerprint =
            instance.fetch_fingerprint(item.id).await.map_err(|error| instance.request_error(&error))?;
        Ok(fingerprint.map(|fingerprint| DeletionTarget { fingerprint, ..item.clone() }))
    }

    async fn delete_item(item: &DeletionTarget, library: &ArrInstances) -> Result<CallResult, ToolError> {
        if let Some(season) = SeasonFiles::from_item(item, library)? {
            return season.delete_files().await;
        }
        let instance = InstanceRef::find_by_name(library, item.kind, Some(&item.instance))?;
        let current =
            instance.fetch_fingerprint(item.id).await.map_err(|error| instance.request_error(&error))?;
        let Some(current) = current else {
            return Ok(already_gone_result(item));
        };
        if !is_same_title(&item.fingerprint, &current) {
            return Err(changed_failure(item).into());
        }
        match instance.delete_title(item).await {
            Ok(RemovalOutcome::Removed) => {}
            Ok(RemovalOutcome::AlreadyGone) | Err(ArrError::NotFound) => {
                return Ok(already_gone_result(item));
            }
            Err(error) => return Err(instance.write_error(&error)),
        }
        match instance.fetch_fingerprint(item.id).await {
            Ok(None) => Ok(deleted_result(item, current.size_bytes)),
            Ok(Some(_)) => Err(still_there_failure(item).into()),
            Err(error) => Err(instance.unverified_write_error(&error)),
        }
    }

    async fn recover_item(
        item: &DeletionTarget,
        library: &ArrInstances,
    ) -> Result<RecoveryOutcome, ToolError> {
        if let Some(season) = SeasonFiles::from_item(item, library)? {
            return Ok(season.recover_deletion().await);
        }
        let instance = InstanceRef::find_by_name(library, item.kind, Some(&item.instance))?;
        Ok(match instance.fetch_fingerprint(item.id).await {
            Ok(None) => RecoveryOutcome::Done(deleted_result(item, item.fingerprint.size_bytes).into()),
            // Ids are never reused, so an item that is still present was not deleted, regardless of its current state.
            Ok(Some(_)) => RecoveryOutcome::NotDone,
            Err(error) => {
                tracing::warn!(instance = instance.name(), id = item.id, %error, "failed to check a deletion");
                RecoveryOutcome::Unknown
            }
        })
    }
}

impl RemoveMedia {
    fn unique_items(&self) -> Vec<&RemovalTarget> {
        let mut items = Vec::new();
        for item in &self.items {
            if !items.contains(&item) {
                items.push(item);
            }
        }
        items
    }
}

fn movie_has_no_seasons() -> CallFailure {
    bad_argument("season", "nothing for a movie", "")
}

fn season_needs_file_deletion() -> CallFailure {
    let hint = "a season that keeps its files is only no longer wanted";
    bad_argument("delete_files", "true with a season", hint)
}
