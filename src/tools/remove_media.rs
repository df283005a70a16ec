//! Deletion from the library: contents of the confirmation prompt, deletion of each confirmed item in a run of its own,
//! and the outcome.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::approval::ApprovedCall;
use super::arguments::{BadArgument, argument_schema, offer_instances, parse_arguments};
use super::deletion_outcomes::{
    already_gone_result, changed_failure, deleted_result, frozen_item, is_same_title, still_there_failure,
};
use super::instance_ref::InstanceRef;
use super::library::ArrInstances;
use super::season_files::{self, SeasonFiles};
use super::{
    CallReferences, InterruptedRun, RecoveryOutcome, Tool, ToolContext, ToolError, ToolOutput, WRITE_TIMEOUT,
};
use crate::arr::{ArrError, RemovalOutcome};
use crate::conversation::deletion::deletion_messages::MAX_ITEMS;
use crate::conversation::deletion::target::{DeletionScope, DeletionTarget};
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, FailureCode, MediaKind, MediaRef, ToolArguments, ToolAudience,
    ToolSpec,
};

/// Name of the tool that deletes.
pub const REMOVE_MEDIA: &str = "remove_media";

pub struct RemoveMedia {
    library: Arc<ArrInstances>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RemoveMediaArgs {
    /// Five are asked about at a time.
    #[schemars(length(min = 1, max = 20))]
    items: Vec<RemovalTarget>,
    /// False to keep the files.
    delete_files: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
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

#[async_trait]
impl Tool for RemoveMedia {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: REMOVE_MEDIA,
            description: "Delete movies or shows from the library, or a season's files.",
            effect_level: EffectLevel::Destructive,
            audience: ToolAudience::Deleters,
            parameters: self.parameters_schema().into(),
        }
    }

    fn timeout(&self) -> Duration {
        WRITE_TIMEOUT
    }

    fn check_arguments(&self, arguments: &ToolArguments) -> Result<CallReferences, CallFailure> {
        let args = self.parse_call(arguments)?;
        let refs = args
            .items
            .iter()
            .map(|item| Ok(self.find_instance(item.kind, item.instance.as_deref())?.media_ref(item.id)))
            .collect::<Result<Vec<MediaRef>, CallFailure>>()?;
        Ok(CallReferences { refs, four_k: false })
    }

    async fn preview_items(
        &self,
        arguments: &ToolArguments,
        _world: &ToolContext,
    ) -> Result<Vec<DeletionTarget>, ToolError> {
        let args = self.parse_call(arguments)?;
        let mut frozen = Vec::new();
        for item in args.items.iter().take(MAX_ITEMS) {
            let place = self.find_instance(item.kind, item.instance.as_deref())?;
            if let Some(number) = item.season {
                let InstanceRef::Series(instance) = place else {
                    return Err(CallFailure::from(movie_has_no_seasons()).into());
                };
                if !args.delete_files {
                    return Err(CallFailure::from(season_is_kept()).into());
                }
                frozen.push(season_files::freeze_season(instance, item.id, number).await?);
                continue;
            }
            let Some(fingerprint) =
                place.fetch_fingerprint(item.id).await.map_err(|error| place.request_error(&error))?
            else {
                return Err(unknown_title(item.id).into());
            };
            frozen.push(DeletionTarget {
                instance: place.name().to_owned(),
                kind: item.kind,
                id: item.id,
                // Unknown files are never deleted. If only the size is missing from a response, existing files must not
                // be lost.
                delete_files: args.delete_files && fingerprint.size_bytes > 0,
                scope: DeletionScope::Whole,
                fingerprint,
            });
        }
        Ok(frozen)
    }

    async fn refresh_items(
        &self,
        items: &[DeletionTarget],
        _world: &ToolContext,
    ) -> Result<Vec<DeletionTarget>, ToolError> {
        let mut fresh = Vec::new();
        for item in items {
            let place = self.find_instance(item.kind, Some(&item.instance))?;
            if let (DeletionScope::Season { number, .. }, InstanceRef::Series(instance)) =
                (&item.scope, &place)
            {
                fresh.push(season_files::freeze_season(instance, item.id, *number).await?);
            } else if let Some(fingerprint) =
                place.fetch_fingerprint(item.id).await.map_err(|error| place.request_error(&error))?
            {
                fresh.push(DeletionTarget { fingerprint, ..item.clone() });
            }
        }
        Ok(fresh)
    }

    async fn run(&self, call: &ApprovedCall, _world: &ToolContext) -> Result<ToolOutput, ToolError> {
        let item = frozen_item(call)?;
        match SeasonFiles::from_item(item, &self.library)? {
            Some(season) => season.delete_files().await,
            None => self.remove_title(item).await,
        }
        .map(ToolOutput::from)
    }

    async fn recover_outcome(
        &self,
        call: InterruptedRun<'_>,
        _world: &ToolContext,
    ) -> Result<RecoveryOutcome, ToolError> {
        match call {
            InterruptedRun::Item(item) => match SeasonFiles::from_item(item, &self.library)? {
                Some(season) => Ok(season.recover_deletion().await),
                None => self.recover_removal(item).await,
            },
            InterruptedRun::Call(_) => Ok(RecoveryOutcome::Unknown),
        }
    }
}

impl RemoveMedia {
    pub fn new(library: Arc<ArrInstances>) -> Self {
        Self { library }
    }

    fn parameters_schema(&self) -> Value {
        let mut schema = argument_schema::<RemoveMediaArgs>();
        let (movies, series) = (self.library.movie_names(), self.library.series_names());
        let names = if movies.len() > 1 || series.len() > 1 { [movies, series].concat() } else { Vec::new() };
        offer_instances(&mut schema, "/properties/items/items", &names);
        schema
    }

    /// Parses the arguments and removes duplicate items.
    fn parse_call(&self, arguments: &ToolArguments) -> Result<RemoveMediaArgs, CallFailure> {
        let mut args: RemoveMediaArgs = parse_arguments(REMOVE_MEDIA, &self.parameters_schema(), arguments)?;
        let mut items = Vec::new();
        for item in args.items {
            if !items.contains(&item) {
                items.push(item);
            }
        }
        args.items = items;
        Ok(args)
    }

    fn find_instance(&self, kind: MediaKind, name: Option<&str>) -> Result<InstanceRef<'_>, CallFailure> {
        InstanceRef::find_by_name(&self.library, kind, name)
    }

    pub(super) async fn remove_title(&self, item: &DeletionTarget) -> Result<CallResult, ToolError> {
        let place = self.find_instance(item.kind, Some(&item.instance))?;
        let current = place.fetch_fingerprint(item.id).await.map_err(|error| place.request_error(&error))?;
        let Some(current) = current else {
            return Ok(already_gone_result(item));
        };
        if !is_same_title(&item.fingerprint, &current) {
            return Err(changed_failure(item).into());
        }
        match place.delete_title(item).await {
            Ok(RemovalOutcome::Removed) => {}
            Ok(RemovalOutcome::AlreadyGone) | Err(ArrError::NotFound) => {
                return Ok(already_gone_result(item));
            }
            Err(error) => return Err(place.write_error(&error)),
        }
        match place.fetch_fingerprint(item.id).await {
            Ok(None) => Ok(deleted_result(item, current.size_bytes)),
            Ok(Some(_)) => Err(still_there_failure(item).into()),
            Err(error) => Err(place.unverified_write_error(&error)),
        }
    }

    pub(super) async fn recover_removal(&self, item: &DeletionTarget) -> Result<RecoveryOutcome, ToolError> {
        let place = self.find_instance(item.kind, Some(&item.instance))?;
        Ok(match place.fetch_fingerprint(item.id).await {
            Ok(None) => RecoveryOutcome::Done(deleted_result(item, item.fingerprint.size_bytes).into()),
            // Ids are never reused, so an item that is still present was not deleted, regardless of its current state.
            Ok(Some(_)) => RecoveryOutcome::NotDone,
            Err(error) => {
                tracing::warn!(instance = place.name(), id = item.id, %error, "failed to check a deletion");
                RecoveryOutcome::Unknown
            }
        })
    }
}

fn movie_has_no_seasons() -> BadArgument {
    BadArgument {
        field: "season".to_owned(),
        expected: "nothing for a movie".to_owned(),
        hint: String::new(),
    }
}

fn season_is_kept() -> BadArgument {
    BadArgument {
        field: "delete_files".to_owned(),
        expected: "true with a season".to_owned(),
        hint: "a season that keeps its files is only no longer wanted".to_owned(),
    }
}

pub(super) fn unknown_title(id: i64) -> CallFailure {
    CallFailure::new(
        FailureCode::UnknownId,
        json!({ "id": id, "hint": "call find_in_library and use an id it gives" }),
        Some("I can't find that in the library.".to_owned()),
    )
}
