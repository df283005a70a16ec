//! Tool that removes a download from the queue after confirmation.

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
use crate::conversation::catalog_ids::CatalogIds;
use crate::conversation::deletion::target::{
    DeletionScope, DeletionTarget, DownloadFollowUp, TargetFingerprint, ViewingKnowledge,
};
use crate::conversation::transcript::{CallFailure, CallResult, FailureCode, MediaKind, MediaRef};

/// Name of the tool.
pub const REMOVE_DOWNLOAD: &str = "remove_download";

/// Tool that removes a download from the queue, by its id in the results of `check_status`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveDownload {
    /// From check_status.
    download_id: i64,
    /// From check_status.
    #[schemars(required)]
    instance: Option<String>,
    /// Get another.
    replace: bool,
}

impl DeletionTool for RemoveDownload {
    const NAME: &'static str = REMOVE_DOWNLOAD;
    const DESCRIPTION: &'static str = "Cancel a download, after code asked the user. Not for files on disk.";

    /// Returns the names of all instances, because the id of a download does not show its kind.
    fn instance_names(library: &ArrInstances) -> Vec<&'static str> {
        [library.movie_names(), library.series_names()].concat()
    }

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        let instance = find_instance(library, self.instance.as_deref())?.name().to_owned();
        Ok(MediaRef::Download { instance, id: self.download_id }.into())
    }

    async fn preview_items(&self, library: &ArrInstances) -> Result<Vec<DeletionTarget>, ToolError> {
        let instance = find_instance(library, self.instance.as_deref())?;
        let download = fetch_download(&instance, self.download_id)
            .await
            .map_err(|error| instance.request_error(&error))?;
        let Some(download) = download else { return Err(not_downloading(self.download_id).into()) };
        // There is no title to search for if the library does not know the content of the download.
        let follow_up = match (self.replace, &download.content) {
            (true, DownloadContent::Movie(_) | DownloadContent::Episodes { .. }) => {
                DownloadFollowUp::SearchAgain
            }
            (true, DownloadContent::Nothing) | (false, _) => DownloadFollowUp::Nothing,
        };
        Ok(vec![freeze_download(&instance, self.download_id, &download, follow_up)])
    }

    async fn refresh_item(
        item: &DeletionTarget,
        library: &ArrInstances,
    ) -> Result<Option<DeletionTarget>, ToolError> {
        let instance = find_instance(library, Some(&item.instance))?;
        let download =
            fetch_download(&instance, item.id).await.map_err(|error| instance.request_error(&error))?;
        Ok(download.map(|download| freeze_download(&instance, item.id, &download, frozen_follow_up(item))))
    }

    async fn delete_item(item: &DeletionTarget, library: &ArrInstances) -> Result<CallResult, ToolError> {
        let instance = find_instance(library, Some(&item.instance))?;
        let download =
            fetch_download(&instance, item.id).await.map_err(|error| instance.request_error(&error))?;
        let Some(download) = download else { return Ok(already_gone_result(item)) };
        if (&download.id, download_title(&download)) != (&item.fingerprint.path, frozen_title(item)) {
            return Err(changed_failure(item).into());
        }
        let (mode, search_needed) = match frozen_follow_up(item) {
            DownloadFollowUp::Nothing => (DiscardMode::Block, false),
            DownloadFollowUp::SearchAgain => {
                let replaces_automatically = instance
                    .common_api()
                    .fetch_replaces_failed()
                    .await
                    .map_err(|error| instance.request_error(&error))?;
                (DiscardMode::BlockAndReplace, !replaces_automatically)
            }
        };
        match instance.common_api().discard_download(item.id, mode).await {
            Ok(RemovalOutcome::Removed) => {}
            Ok(RemovalOutcome::AlreadyGone) => return Ok(already_gone_result(item)),
            Err(error) => return Err(instance.write_error(&error)),
        }
        if fetch_download(&instance, item.id)
            .await
            .map_err(|error| instance.unverified_write_error(&error))?
            .is_some()
        {
            return Err(still_there_failure(item).into());
        }
        if search_needed {
            instance
                .search_titles(&download.content)
                .await
                .map_err(|error| instance.unverified_write_error(&error))?;
        }
        Ok(removed_result(item))
    }

    async fn recover_item(
        item: &DeletionTarget,
        library: &ArrInstances,
    ) -> Result<RecoveryOutcome, ToolError> {
        let instance = find_instance(library, Some(&item.instance))?;
        Ok(match fetch_download(&instance, item.id).await {
            Ok(Some(_)) => RecoveryOutcome::NotDone,
            // If the instance does not start the replacement search itself, nothing shows whether it was started.
            Ok(None) if frozen_follow_up(item) == DownloadFollowUp::Nothing => {
                RecoveryOutcome::Done(removed_result(item).into())
            }
            Ok(None) => match instance.common_api().fetch_replaces_failed().await {
                Ok(true) => RecoveryOutcome::Done(removed_result(item).into()),
                Ok(false) | Err(_) => RecoveryOutcome::Unknown,
            },
            Err(error) => {
                tracing::warn!(instance = instance.name(), id = item.id, %error, "failed to check a download removal");
                RecoveryOutcome::Unknown
            }
        })
    }
}

fn find_instance<'a>(library: &'a ArrInstances, name: Option<&str>) -> Result<InstanceRef<'a>, CallFailure> {
    let is_movies = match name {
        Some(name) => library.movie_names().contains(&name),
        // A call may only omit the name if there is one instance.
        None => !library.movies.is_empty(),
    };
    let kind = if is_movies { MediaKind::Movie } else { MediaKind::Series };
    InstanceRef::find_by_name(library, kind, name)
}

impl InstanceRef<'_> {
    async fn search_titles(&self, content: &DownloadContent) -> Result<(), ArrError> {
        match (self, content) {
            (Self::Movies(instance), DownloadContent::Movie(id)) => instance.client.search_movie(*id).await,
            (Self::Series(instance), DownloadContent::Episodes { episodes, .. }) => {
                let ids = episodes.iter().map(|episode| episode.id).collect();
                instance.client.search_series(&SeriesSearch::Episodes(ids)).await
            }
            // The content is unknown, so there is nothing to search for.
            (Self::Movies(_) | Self::Series(_), _) => Ok(()),
        }
    }
}

async fn fetch_download(instance: &InstanceRef<'_>, row: i64) -> Result<Option<Download>, ArrError> {
    Ok(instance.fetch_downloads().await?.into_iter().find(|download| download.rows.contains(&row)))
}

fn freeze_download(
    instance: &InstanceRef<'_>,
    row: i64,
    download: &Download,
    follow_up: DownloadFollowUp,
) -> DeletionTarget {
    DeletionTarget {
        instance: instance.name().to_owned(),
        kind: instance.kind(),
        id: row,
        delete_files: true,
        scope: DeletionScope::Download(follow_up),
        fingerprint: TargetFingerprint {
            title: download_title(download),
            year: 0,
            // The id of the download client identifies a download for its lifetime. A queue row id may be reused.
            path: download.id.clone(),
            size_bytes: download.size_bytes.max(0.0) as u64,
            seasons: None,
            ids: CatalogIds::default(),
            viewing: ViewingKnowledge::default(),
        },
    }
}

fn download_title(download: &Download) -> String {
    clean_title(&download.title)
}

fn frozen_title(item: &DeletionTarget) -> String {
    item.fingerprint.title.clone()
}

fn frozen_follow_up(item: &DeletionTarget) -> DownloadFollowUp {
    match item.scope {
        DeletionScope::Download(follow_up) => follow_up,
        DeletionScope::Whole | DeletionScope::Season { .. } | DeletionScope::Copy { .. } => {
            DownloadFollowUp::Nothing
        }
    }
}

fn removed_result(item: &DeletionTarget) -> CallResult {
    // The download was not in the library yet, so its removal frees no space there.
    deleted_result(item, 0)
}

fn not_downloading(id: i64) -> CallFailure {
    CallFailure::new(
        FailureCode::UnknownId,
        json!({ "download_id": id, "hint": "it is not downloading: call check_status" }),
        Some("That is no longer downloading.".to_owned()),
    )
}
