//! Removal of a whole download from the queue: contents of the confirmation prompt, and the outcome.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::deletion_outcomes::{already_gone_result, changed_failure, deleted_result, still_there_failure};
use super::formatting::clean_title;
use super::instance_ref::InstanceRef;
use super::library::ArrInstances;
use super::typed_tool::DeletionTool;
use super::{CallReferences, RecoveryOutcome, ToolError};
use crate::arr::changes::SeriesSearch;
use crate::arr::common_api::DiscardMode;
use crate::arr::{ArrError, Download, DownloadContent, RemovalOutcome};
use crate::conversation::deletion::target::{
    DeletionScope, DeletionTarget, DownloadFollowUp, TargetFingerprint,
};
use crate::conversation::transcript::{CallFailure, CallResult, FailureCode, MediaKind, MediaRef};

/// Tool that takes a download from the queue, by its id in the results of `check_status`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveDownload {
    /// From check_status.
    id: i64,
    #[schemars(required)]
    instance: Option<String>,
    /// Get another copy.
    replace: bool,
}

impl DeletionTool for RemoveDownload {
    const NAME: &'static str = "remove_download";
    const DESCRIPTION: &'static str = "Take away a stuck, bad or unwanted download.";

    /// Returns all names, because the id of a download does not tell its kind.
    fn instance_names(library: &ArrInstances) -> Vec<&'static str> {
        [library.movie_names(), library.series_names()].concat()
    }

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        let instance = find_instance(library, self.instance.as_deref())?.name().to_owned();
        Ok(MediaRef::Download { instance, id: self.id }.into())
    }

    async fn preview_items(&self, library: &ArrInstances) -> Result<Vec<DeletionTarget>, ToolError> {
        let place = find_instance(library, self.instance.as_deref())?;
        let download = fetch_download(&place, self.id).await.map_err(|error| place.request_error(&error))?;
        let Some(download) = download else { return Err(not_downloading(self.id).into()) };
        // No other copy can be searched for if the library does not know the title.
        let afterwards = match (self.replace, &download.content) {
            (true, DownloadContent::Movie(_) | DownloadContent::Episodes { .. }) => {
                DownloadFollowUp::SearchAgain
            }
            (true, DownloadContent::Nothing) | (false, _) => DownloadFollowUp::Nothing,
        };
        Ok(vec![freeze_download(&place, self.id, &download, afterwards)])
    }

    async fn refresh_item(
        item: &DeletionTarget,
        library: &ArrInstances,
    ) -> Result<Option<DeletionTarget>, ToolError> {
        let place = find_instance(library, Some(&item.instance))?;
        let download = fetch_download(&place, item.id).await.map_err(|error| place.request_error(&error))?;
        Ok(download.map(|download| freeze_download(&place, item.id, &download, frozen_afterwards(item))))
    }

    async fn delete_item(item: &DeletionTarget, library: &ArrInstances) -> Result<CallResult, ToolError> {
        let place = find_instance(library, Some(&item.instance))?;
        let download = fetch_download(&place, item.id).await.map_err(|error| place.request_error(&error))?;
        let Some(download) = download else { return Ok(already_gone_result(item)) };
        if (&download.id, download_title(&download)) != (&item.fingerprint.path, frozen_title(item)) {
            return Err(changed_failure(item).into());
        }
        let (how, search) = match frozen_afterwards(item) {
            DownloadFollowUp::Nothing => (DiscardMode::Block, false),
            DownloadFollowUp::SearchAgain => {
                let by_itself = place
                    .common_api()
                    .fetch_replaces_failed()
                    .await
                    .map_err(|error| place.request_error(&error))?;
                (DiscardMode::BlockAndReplace, !by_itself)
            }
        };
        match place.common_api().discard_download(item.id, how).await {
            Ok(RemovalOutcome::Removed) => {}
            Ok(RemovalOutcome::AlreadyGone) => return Ok(already_gone_result(item)),
            Err(error) => return Err(place.write_error(&error)),
        }
        if fetch_download(&place, item.id)
            .await
            .map_err(|error| place.unverified_write_error(&error))?
            .is_some()
        {
            return Err(still_there_failure(item).into());
        }
        if search {
            place
                .search_titles(&download.content)
                .await
                .map_err(|error| place.unverified_write_error(&error))?;
        }
        Ok(removed_result(item))
    }

    async fn recover_item(
        item: &DeletionTarget,
        library: &ArrInstances,
    ) -> Result<RecoveryOutcome, ToolError> {
        let place = find_instance(library, Some(&item.instance))?;
        Ok(match fetch_download(&place, item.id).await {
            Ok(Some(_)) => RecoveryOutcome::NotDone,
            // If Sonarr or Radarr do not start the replacement search automatically, there is no way to see whether the
            // search was started.
            Ok(None) if frozen_afterwards(item) == DownloadFollowUp::Nothing => {
                RecoveryOutcome::Done(removed_result(item).into())
            }
            Ok(None) => match place.common_api().fetch_replaces_failed().await {
                Ok(true) => RecoveryOutcome::Done(removed_result(item).into()),
                Ok(false) | Err(_) => RecoveryOutcome::Unknown,
            },
            Err(error) => {
                tracing::warn!(instance = place.name(), id = item.id, %error, "failed to check a download removal");
                RecoveryOutcome::Unknown
            }
        })
    }
}

fn find_instance<'a>(library: &'a ArrInstances, name: Option<&str>) -> Result<InstanceRef<'a>, CallFailure> {
    let is_movies = match name {
        Some(name) => library.movie_names().contains(&name),
        // A call without a name has only one instance to mean.
        None => !library.movies.is_empty(),
    };
    let kind = if is_movies { MediaKind::Movie } else { MediaKind::Series };
    InstanceRef::find_by_name(library, kind, name)
}

impl InstanceRef<'_> {
    async fn search_titles(&self, what: &DownloadContent) -> Result<(), ArrError> {
        match (self, what) {
            (Self::Movies(instance), DownloadContent::Movie(id)) => instance.client.search_movie(*id).await,
            (Self::Series(instance), DownloadContent::Episodes { episodes, .. }) => {
                let ids = episodes.iter().map(|episode| episode.id).collect();
                instance.client.search_series(&SeriesSearch::Episodes(ids)).await
            }
            // The library knows no title for this download, so there is nothing to search for.
            (Self::Movies(_) | Self::Series(_), _) => Ok(()),
        }
    }
}

async fn fetch_download(place: &InstanceRef<'_>, row: i64) -> Result<Option<Download>, ArrError> {
    Ok(place.fetch_downloads().await?.into_iter().find(|download| download.rows.contains(&row)))
}

fn freeze_download(
    place: &InstanceRef<'_>,
    row: i64,
    download: &Download,
    afterwards: DownloadFollowUp,
) -> DeletionTarget {
    DeletionTarget {
        instance: place.name().to_owned(),
        kind: place.kind(),
        id: row,
        delete_files: true,
        scope: DeletionScope::Download(afterwards),
        fingerprint: TargetFingerprint {
            title: download_title(download),
            year: 0,
            // This value identifies a download for its lifetime. A queue row id may be reused.
            path: download.id.clone(),
            size_bytes: download.size_bytes.max(0.0) as u64,
            seasons: None,
        },
    }
}

fn download_title(download: &Download) -> String {
    clean_title(&download.title)
}

fn frozen_title(item: &DeletionTarget) -> String {
    item.fingerprint.title.clone()
}

fn frozen_afterwards(item: &DeletionTarget) -> DownloadFollowUp {
    match item.scope {
        DeletionScope::Download(afterwards) => afterwards,
        DeletionScope::Whole | DeletionScope::Season { .. } | DeletionScope::Copy { .. } => {
            DownloadFollowUp::Nothing
        }
    }
}

fn removed_result(item: &DeletionTarget) -> CallResult {
    // The download was not in the library yet, so removing it frees no space there.
    deleted_result(item, 0)
}

fn not_downloading(id: i64) -> CallFailure {
    CallFailure::new(
        FailureCode::UnknownId,
        json!({ "id": id, "hint": "it is not downloading any more; call check_status" }),
        Some("That is not downloading any more.".to_owned()),
    )
}
