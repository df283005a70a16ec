//! Deletion from the library: contents of the confirmation prompt, deletion of one confirmed item at a time, and the
//! outcome.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::refusal;
use super::approval::Cleared;
use super::arguments::{BadArgument, offer_instances, read, schema};
use super::library::Library;
use super::outcomes::{already_gone, changed, deleted, frozen, same, still_there};
use super::place::Place;
use super::season_files::{self, SeasonFiles};
use super::{Interrupted, Ran, Settled, Tool, ToolError, Uses, WRITE_TIMEOUT, World};
use crate::arr::{ArrError, Removal};
use crate::conversation::deletion::MAX_ITEMS;
use crate::conversation::frozen::{Extent, FrozenItem};
use crate::conversation::transcript::{
    Arguments, Audience, CallFailure, CallResult, MediaKind, MediaRef, Tier, ToolSpec,
};

/// Name of the tool that deletes.
pub const REMOVE_MEDIA: &str = "remove_media";

pub struct RemoveMedia {
    library: Arc<Library>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Five are asked about at a time.
    #[schemars(length(min = 1, max = 20))]
    items: Vec<Item>,
    /// False to keep the files.
    delete_files: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Item {
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
            tier: Tier::Destructive,
            audience: Audience::Deleters,
            parameters: self.schema().into(),
        }
    }

    fn timeout(&self) -> Duration {
        WRITE_TIMEOUT
    }

    fn check(&self, arguments: &Arguments) -> Result<Uses, CallFailure> {
        let args = self.arguments(arguments)?;
        let refs = args
            .items
            .iter()
            .map(|item| Ok(self.place(item.kind, item.instance.as_deref())?.item(item.id)))
            .collect::<Result<Vec<MediaRef>, CallFailure>>()?;
        Ok(Uses { refs, four_k: false })
    }

    async fn preview(&self, arguments: &Arguments, _world: &World) -> Result<Vec<FrozenItem>, ToolError> {
        let args = self.arguments(arguments)?;
        let mut frozen = Vec::new();
        for item in args.items.iter().take(MAX_ITEMS) {
            let place = self.place(item.kind, item.instance.as_deref())?;
            if let Some(number) = item.season {
                let Place::Series(instance) = place else {
                    return Err(CallFailure::from(no_seasons()).into());
                };
                if !args.delete_files {
                    return Err(CallFailure::from(season_is_kept()).into());
                }
                frozen.push(season_files::freeze(instance, item.id, number).await?);
                continue;
            }
            let Some(fingerprint) = place.fetch(item.id).await.map_err(|error| place.refused(&error))? else {
                return Err(unknown(item.id).into());
            };
            frozen.push(FrozenItem {
                instance: place.name().to_owned(),
                kind: item.kind,
                id: item.id,
                // Unknown files are never deleted. If only the size is missing from a response, existing files must not
                // be lost.
                delete_files: args.delete_files && fingerprint.size_bytes > 0,
                extent: Extent::Whole,
                fingerprint,
            });
        }
        Ok(frozen)
    }

    async fn refresh(&self, items: &[FrozenItem], _world: &World) -> Result<Vec<FrozenItem>, ToolError> {
        let mut fresh = Vec::new();
        for item in items {
            let place = self.place(item.kind, Some(&item.instance))?;
            if let (Extent::Season { number, .. }, Place::Series(instance)) = (&item.extent, &place) {
                fresh.push(season_files::freeze(instance, item.id, *number).await?);
            } else if let Some(fingerprint) =
                place.fetch(item.id).await.map_err(|error| place.refused(&error))?
            {
                fresh.push(FrozenItem { fingerprint, ..item.clone() });
            }
        }
        Ok(fresh)
    }

    async fn run(&self, call: &Cleared, _world: &World) -> Result<Ran, ToolError> {
        let item = frozen(call)?;
        match SeasonFiles::of(item, &self.library)? {
            Some(season) => season.delete().await,
            None => self.remove(item).await,
        }
        .map(Ran::from)
    }

    async fn settle(&self, call: Interrupted<'_>, _world: &World) -> Result<Settled, ToolError> {
        match call {
            Interrupted::Item(item) => match SeasonFiles::of(item, &self.library)? {
                Some(season) => Ok(season.find_out().await),
                None => self.find_out(item).await,
            },
            Interrupted::Call(_) => Ok(Settled::Unknown),
        }
    }
}

impl RemoveMedia {
    pub fn new(library: Arc<Library>) -> Self {
        Self { library }
    }

    fn schema(&self) -> Value {
        let mut schema = schema::<Args>();
        let (movies, series) = (self.library.movie_names(), self.library.series_names());
        let names = if movies.len() > 1 || series.len() > 1 { [movies, series].concat() } else { Vec::new() };
        offer_instances(&mut schema, "/properties/items/items", &names);
        schema
    }

    /// Parsed arguments with duplicate items removed.
    fn arguments(&self, arguments: &Arguments) -> Result<Args, CallFailure> {
        let mut args: Args = read(REMOVE_MEDIA, &self.schema(), arguments)?;
        let mut items = Vec::new();
        for item in args.items {
            if !items.contains(&item) {
                items.push(item);
            }
        }
        args.items = items;
        Ok(args)
    }

    fn place(&self, kind: MediaKind, name: Option<&str>) -> Result<Place<'_>, CallFailure> {
        Place::of(&self.library, kind, name)
    }

    pub(super) async fn remove(&self, item: &FrozenItem) -> Result<CallResult, ToolError> {
        let place = self.place(item.kind, Some(&item.instance))?;
        let current = place.fetch(item.id).await.map_err(|error| place.refused(&error))?;
        let Some(current) = current else {
            return Ok(already_gone(item));
        };
        if !same(&item.fingerprint, &current) {
            return Err(changed(item).into());
        }
        match place.delete(item).await {
            Ok(Removal::Removed) => {}
            Ok(Removal::AlreadyGone) | Err(ArrError::NotFound) => return Ok(already_gone(item)),
            Err(error) => return Err(place.failed_write(&error)),
        }
        match place.fetch(item.id).await {
            Ok(None) => Ok(deleted(item, current.size_bytes)),
            Ok(Some(_)) => Err(still_there(item).into()),
            Err(error) => Err(place.unread_write(&error)),
        }
    }

    pub(super) async fn find_out(&self, item: &FrozenItem) -> Result<Settled, ToolError> {
        let place = self.place(item.kind, Some(&item.instance))?;
        Ok(match place.fetch(item.id).await {
            Ok(None) => Settled::Done(deleted(item, item.fingerprint.size_bytes).into()),
            // Ids are never reused, so an item that is still present was not deleted, regardless of how it looks now.
            Ok(Some(_)) => Settled::NotDone,
            Err(error) => {
                tracing::warn!(instance = place.name(), id = item.id, %error, "failed to settle a deletion");
                Settled::Unknown
            }
        })
    }
}

fn no_seasons() -> BadArgument {
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

pub(super) fn unknown(id: i64) -> CallFailure {
    refusal(
        "unknown_id",
        json!({ "id": id, "hint": "call find_in_library and use an id it gives" }),
        Some("I can't find that in the library.".to_owned()),
    )
}
