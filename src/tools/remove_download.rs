//! Removal of a whole download from the queue: contents of the confirmation prompt, and the outcome.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::approval::ApprovedCall;
use super::arguments::{argument_schema, offer_instances, parse_arguments};
use super::deletion_outcomes::{
    already_gone_result, changed_failure, deleted_result, frozen_item, still_there_failure,
};
use super::formatting::{call_failure, clean_title};
use super::instance_ref::InstanceRef;
use super::library::ArrInstances;
use super::{
    CallReferences, InterruptedRun, RecoveryOutcome, Tool, ToolContext, ToolError, ToolOutput, WRITE_TIMEOUT,
};
use crate::arr::changes::SeriesSearch;
use crate::arr::common_api::DiscardMode;
use crate::arr::{ArrError, Download, DownloadOf, RemovalOutcome};
use crate::conversation::deletion::target::{
    DeletionScope, DeletionTarget, DownloadFollowUp, TargetFingerprint,
};
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, MediaKind, MediaRef, ToolArguments, ToolAudience, ToolSpec,
};

const REMOVE_DOWNLOAD: &str = "remove_download";

pub struct RemoveDownload {
    library: Arc<ArrInstances>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RemoveDownloadArgs {
    /// From check_status.
    id: i64,
    instance: String,
    /// Get another copy.
    replace: bool,
}

#[async_trait]
impl Tool for RemoveDownload {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: REMOVE_DOWNLOAD,
            description: "Take away a stuck, bad or unwanted download.",
            effect_level: EffectLevel::Destructive,
            audience: ToolAudience::Deleters,
            parameters: self.parameters_schema().into(),
        }
    }

    fn timeout(&self) -> Duration {
        WRITE_TIMEOUT
    }

    fn check_arguments(&self, arguments: &ToolArguments) -> Result<CallReferences, CallFailure> {
        let RemoveDownloadArgs { id, instance, .. } = self.parse_call(arguments)?;
        self.find_instance(&instance)?;
        Ok(CallReferences { refs: vec![MediaRef::Download { instance, id }], four_k: false })
    }

    async fn preview_items(
        &self,
        arguments: &ToolArguments,
        _world: &ToolContext,
    ) -> Result<Vec<DeletionTarget>, ToolError> {
        let args = self.parse_call(arguments)?;
        let (place, _) = self.find_instance(&args.instance)?;
        let download = fetch_download(&place, args.id).await.map_err(|error| place.request_error(&error))?;
        let Some(download) = download else { return Err(not_downloading(args.id).into()) };
        // No other copy can be searched for if the library does not know the title.
        let afterwards = match (args.replace, &download.of) {
            (true, DownloadOf::Movie(_) | DownloadOf::Episodes { .. }) => DownloadFollowUp::SearchAgain,
            (true, DownloadOf::Nothing) | (false, _) => DownloadFollowUp::Nothing,
        };
        Ok(vec![freeze_download(&place, args.id, &download, afterwards)])
    }

    async fn refresh_items(
        &self,
        items: &[DeletionTarget],
        _world: &ToolContext,
    ) -> Result<Vec<DeletionTarget>, ToolError> {
        let mut fresh = Vec::new();
        for item in items {
            let (place, _) = self.find_instance(&item.instance)?;
            let download =
                fetch_download(&place, item.id).await.map_err(|error| place.request_error(&error))?;
            fresh.extend(
                download.map(|download| freeze_download(&place, item.id, &download, frozen_afterwards(item))),
            );
        }
        Ok(fresh)
    }

    async fn run(&self, call: &ApprovedCall, _world: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.discard_download(frozen_item(call)?).await.map(ToolOutput::from)
    }

    async fn recover_outcome(
        &self,
        call: InterruptedRun<'_>,
        _world: &ToolContext,
    ) -> Result<RecoveryOutcome, ToolError> {
        let InterruptedRun::Item(item) = call else { return Ok(RecoveryOutcome::Unknown) };
        let (place, _) = self.find_instance(&item.instance)?;
        Ok(match fetch_download(&place, item.id).await {
            Ok(Some(_)) => RecoveryOutcome::NotDone,
            // If Sonarr or Radarr do not start the replacement search automatically, there is no way to see whether the
            // search was started.
            Ok(None) if frozen_afterwards(item) == DownloadFollowUp::Nothing => {
                RecoveryOutcome::Done(removed_result(item).into())
            }
            Ok(None) => match place.replaces_failed().await {
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

impl RemoveDownload {
    pub fn new(library: Arc<ArrInstances>) -> Self {
        Self { library }
    }

    fn parameters_schema(&self) -> Value {
        let mut schema = argument_schema::<RemoveDownloadArgs>();
        let names = [self.library.movie_names(), self.library.series_names()].concat();
        offer_instances(&mut schema, "", &names);
        schema
    }

    fn parse_call(&self, arguments: &ToolArguments) -> Result<RemoveDownloadArgs, CallFailure> {
        let mut arguments = arguments.clone();
        // With a single instance there is nothing to choose, so the model does not select one.
        if let (ToolArguments::Object(map), [only]) =
            (&mut arguments, [self.library.movie_names(), self.library.series_names()].concat().as_slice())
        {
            map.insert("instance".to_owned(), json!(only));
        }
        parse_arguments(REMOVE_DOWNLOAD, &argument_schema::<RemoveDownloadArgs>(), &arguments)
    }

    fn find_instance(&self, instance: &str) -> Result<(InstanceRef<'_>, MediaKind), CallFailure> {
        let kind =
            if self.library.movie_names().contains(&instance) { MediaKind::Movie } else { MediaKind::Series };
        InstanceRef::find_by_name(&self.library, kind, Some(instance)).map(|place| (place, kind))
    }

    async fn discard_download(&self, item: &DeletionTarget) -> Result<CallResult, ToolError> {
        let (place, _) = self.find_instance(&item.instance)?;
        let download = fetch_download(&place, item.id).await.map_err(|error| place.request_error(&error))?;
        let Some(download) = download else { return Ok(already_gone_result(item)) };
        if (&download.id, download_title(&download)) != (&item.fingerprint.path, frozen_title(item)) {
            return Err(changed_failure(item).into());
        }
        let (how, search) = match frozen_afterwards(item) {
            DownloadFollowUp::Nothing => (DiscardMode::Block, false),
            DownloadFollowUp::SearchAgain => {
                let by_itself = place.replaces_failed().await.map_err(|error| place.request_error(&error))?;
                (DiscardMode::BlockAndReplace, !by_itself)
            }
        };
        match place.discard_download(item.id, how).await {
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
            place.search_titles(&download.of).await.map_err(|error| place.unverified_write_error(&error))?;
        }
        Ok(removed_result(item))
    }
}

impl InstanceRef<'_> {
    async fn fetch_downloads(&self) -> Result<Vec<Download>, ArrError> {
        match self {
            Self::Movies(instance) => instance.client.fetch_downloads().await,
            Self::Series(instance) => instance.client.fetch_downloads().await,
        }
    }

    async fn discard_download(&self, row: i64, how: DiscardMode) -> Result<RemovalOutcome, ArrError> {
        match self {
            Self::Movies(instance) => instance.client.common_api().discard_download(row, how).await,
            Self::Series(instance) => instance.client.common_api().discard_download(row, how).await,
        }
    }

    pub(super) async fn replaces_failed(&self) -> Result<bool, ArrError> {
        match self {
            Self::Movies(instance) => instance.client.common_api().replaces_failed().await,
            Self::Series(instance) => instance.client.common_api().replaces_failed().await,
        }
    }

    async fn search_titles(&self, what: &DownloadOf) -> Result<(), ArrError> {
        match (self, what) {
            (Self::Movies(instance), DownloadOf::Movie(id)) => instance.client.search_movie(*id).await,
            (Self::Series(instance), DownloadOf::Episodes { episodes, .. }) => {
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
    let kind = match place {
        InstanceRef::Movies(_) => MediaKind::Movie,
        InstanceRef::Series(_) => MediaKind::Series,
    };
    DeletionTarget {
        instance: place.name().to_owned(),
        kind,
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
    call_failure(
        "unknown_id",
        json!({ "id": id, "hint": "it is not downloading any more; call check_status" }),
        Some("That is not downloading any more.".to_owned()),
    )
}
