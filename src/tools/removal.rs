//! Deleting from the library: what the question will say, one item at a time behind a yes, and what became of it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::{clean_title, named, refusal};
use super::approval::Cleared;
use super::arguments::{offer_instances, read, schema};
use super::library::{Instance, Library};
use super::{Interrupted, Ran, Settled, Tool, ToolError, Uses, WRITE_TIMEOUT, World};
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{ArrError, Movie, Removal, Series};
use crate::conversation::frozen::{Extent, Fingerprint, FrozenItem};
use crate::conversation::transcript::{
    Arguments, Audience, CallFailure, CallResult, MediaKind, MediaRef, Tier, ToolSpec,
};

/// The tool that deletes.
pub const REMOVE_MEDIA: &str = "remove_media";

pub struct RemoveMedia {
    library: Arc<Library>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// What to delete.
    #[schemars(length(min = 1, max = 5))]
    items: Vec<Item>,
    /// Also delete the files from the disk; true unless the user wants to keep them.
    delete_files: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Item {
    #[serde(rename = "type")]
    kind: MediaKind,
    /// From find_in_library.
    id: i64,
    /// Which library.
    instance: Option<String>,
}

/// An instance of either kind.
pub(super) enum Place<'a> {
    Movies(&'a Instance<Radarr>),
    Series(&'a Instance<Sonarr>),
}

#[async_trait]
impl Tool for RemoveMedia {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: REMOVE_MEDIA,
            description: "Delete movies or shows from the library. The user is asked to confirm: \
                          do not ask yourself, and do not say it is done.",
            tier: Tier::Destructive,
            audience: Audience::Deleters,
            parameters: self.schema(),
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
        for item in &args.items {
            let place = self.place(item.kind, item.instance.as_deref())?;
            let Some(fingerprint) = place.fetch(item.id).await.map_err(|error| place.refused(&error))? else {
                return Err(unknown(item).into());
            };
            frozen.push(FrozenItem {
                instance: place.name().to_owned(),
                kind: item.kind,
                id: item.id,
                // Files that nobody knows of are never deleted: a size that is merely missing must not cost them.
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
            if let Some(fingerprint) = place.fetch(item.id).await.map_err(|error| place.refused(&error))? {
                fresh.push(FrozenItem { fingerprint, ..item.clone() });
            }
        }
        Ok(fresh)
    }

    async fn run(&self, call: &Cleared, _world: &World) -> Result<Ran, ToolError> {
        self.remove(frozen(call)?).await.map(Ran::from)
    }

    async fn settle(&self, call: Interrupted<'_>, _world: &World) -> Result<Settled, ToolError> {
        match call {
            Interrupted::Item(item) => self.find_out(item).await,
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

    /// The arguments, each item once.
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
            // Ids are never given twice: whatever it looks like by now, it was not deleted.
            Ok(Some(_)) => Settled::NotDone,
            Err(error) => {
                tracing::warn!(instance = place.name(), id = item.id, %error, "failed to settle a deletion");
                Settled::Unknown
            }
        })
    }
}

impl<'a> Place<'a> {
    pub(super) fn of(library: &'a Library, kind: MediaKind, name: Option<&str>) -> Result<Self, CallFailure> {
        match kind {
            MediaKind::Movie => library.movie_instance(name).map(Self::Movies),
            MediaKind::Series => library.series_instance(name).map(Self::Series),
        }
    }
}

impl Place<'_> {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Movies(instance) => instance.name,
            Self::Series(instance) => instance.name,
        }
    }

    pub(super) fn item(&self, id: i64) -> MediaRef {
        match self {
            Self::Movies(instance) => instance.item(MediaKind::Movie, id),
            Self::Series(instance) => instance.item(MediaKind::Series, id),
        }
    }

    pub(super) async fn fetch(&self, id: i64) -> Result<Option<Fingerprint>, ArrError> {
        match self {
            Self::Movies(instance) => Ok(instance.client.movie(id).await?.map(fingerprint_of_movie)),
            Self::Series(instance) => Ok(instance.client.series(id).await?.map(fingerprint_of_series)),
        }
    }

    async fn delete(&self, item: &FrozenItem) -> Result<Removal, ArrError> {
        match self {
            Self::Movies(instance) => instance.client.delete(item.id, item.delete_files).await,
            Self::Series(instance) => instance.client.delete(item.id, item.delete_files).await,
        }
    }

    pub(super) fn refused(&self, error: &ArrError) -> ToolError {
        match self {
            Self::Movies(instance) => instance.refused(error),
            Self::Series(instance) => instance.refused(error),
        }
    }

    fn failed_write(&self, error: &ArrError) -> ToolError {
        match self {
            Self::Movies(instance) => instance.failed_write(error),
            Self::Series(instance) => instance.failed_write(error),
        }
    }

    fn unread_write(&self, error: &ArrError) -> ToolError {
        match self {
            Self::Movies(instance) => instance.unread_write(error),
            Self::Series(instance) => instance.unread_write(error),
        }
    }
}

fn frozen(call: &Cleared) -> Result<&FrozenItem, ToolError> {
    call.item().ok_or_else(|| ToolError::Fatal(anyhow::anyhow!("run a deletion without its frozen item")))
}

fn fingerprint_of_movie(movie: Movie) -> Fingerprint {
    Fingerprint {
        title: clean_title(&movie.title),
        year: movie.year,
        path: movie.path,
        size_bytes: movie.size_bytes,
        seasons: None,
    }
}

fn fingerprint_of_series(series: Series) -> Fingerprint {
    let on_disk = series.seasons.iter().filter(|season| season.episodes_on_disk > 0).count();
    Fingerprint {
        title: clean_title(&series.title),
        year: series.year,
        path: series.path,
        size_bytes: series.size_bytes,
        seasons: u32::try_from(on_disk).ok(),
    }
}

/// Whether an item is still what the user was asked about: title and path, and the size within a tenth.
fn same(asked: &Fingerprint, current: &Fingerprint) -> bool {
    let off = asked.size_bytes.abs_diff(current.size_bytes);
    asked.title == current.title && asked.path == current.path && off <= asked.size_bytes / 10
}

fn deleted(item: &FrozenItem, size_bytes: u64) -> CallResult {
    let freed_bytes = if item.delete_files { size_bytes } else { 0 };
    let mut result = told(item, "deleted");
    result.for_model["freed_bytes"] = json!(freed_bytes);
    result
}

fn already_gone(item: &FrozenItem) -> CallResult {
    told(item, "already_gone")
}

fn told(item: &FrozenItem, status: &str) -> CallResult {
    let Fingerprint { title, year, .. } = &item.fingerprint;
    CallResult {
        for_model: json!({ "status": status, "title": title, "year": year }),
        for_user: named(title, *year),
        shown: Vec::new(),
    }
}

fn changed(item: &FrozenItem) -> CallFailure {
    let Fingerprint { title, year, .. } = &item.fingerprint;
    refusal(
        "changed",
        json!({ "title": title, "year": year, "hint": "it was not deleted; find it again and ask again" }),
        Some(format!("{} has changed since I asked, so I did not delete it.", named(title, *year))),
    )
}

fn still_there(item: &FrozenItem) -> CallFailure {
    let Fingerprint { title, year, .. } = &item.fingerprint;
    refusal(
        "still_there",
        json!({ "title": title, "year": year }),
        Some(format!("{} is still in the library.", named(title, *year))),
    )
}

fn unknown(item: &Item) -> CallFailure {
    refusal(
        "unknown_id",
        json!({ "id": item.id, "hint": "call find_in_library and use an id it gives" }),
        Some("I can't find that in the library.".to_owned()),
    )
}
