//! Removal of a whole download from the queue: contents of the confirmation prompt, and the outcome.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::{clean_title, refusal};
use super::approval::Cleared;
use super::arguments::{offer_instances, read, schema};
use super::library::Library;
use super::outcomes::{already_gone, changed, deleted, frozen, still_there};
use super::place::Place;
use super::{Interrupted, Ran, Settled, Tool, ToolError, Uses, WRITE_TIMEOUT, World};
use crate::arr::changes::SeriesSearch;
use crate::arr::server::Discard;
use crate::arr::{ArrError, Download, DownloadOf, Removal};
use crate::conversation::frozen::{Afterwards, Extent, Fingerprint, FrozenItem};
use crate::conversation::transcript::{
    Arguments, Audience, CallFailure, CallResult, MediaKind, MediaRef, Tier, ToolSpec,
};

const REMOVE_DOWNLOAD: &str = "remove_download";

pub struct RemoveDownload {
    library: Arc<Library>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
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
            tier: Tier::Destructive,
            audience: Audience::Deleters,
            parameters: self.schema().into(),
        }
    }

    fn timeout(&self) -> Duration {
        WRITE_TIMEOUT
    }

    fn check(&self, arguments: &Arguments) -> Result<Uses, CallFailure> {
        let Args { id, instance, .. } = self.arguments(arguments)?;
        self.place(&instance)?;
        Ok(Uses { refs: vec![MediaRef::Download { instance, id }], four_k: false })
    }

    async fn preview(&self, arguments: &Arguments, _world: &World) -> Result<Vec<FrozenItem>, ToolError> {
        let args = self.arguments(arguments)?;
        let (place, _) = self.place(&args.instance)?;
        let download = fetch(&place, args.id).await.map_err(|error| place.refused(&error))?;
        let Some(download) = download else { return Err(not_there(args.id).into()) };
        // No other copy can be searched for if the library does not know the title.
        let afterwards = match (args.replace, &download.of) {
            (true, DownloadOf::Movie(_) | DownloadOf::Episodes { .. }) => Afterwards::AnotherCopy,
            (true, DownloadOf::Nothing) | (false, _) => Afterwards::Nothing,
        };
        Ok(vec![freeze(&place, args.id, &download, afterwards)])
    }

    async fn refresh(&self, items: &[FrozenItem], _world: &World) -> Result<Vec<FrozenItem>, ToolError> {
        let mut fresh = Vec::new();
        for item in items {
            let (place, _) = self.place(&item.instance)?;
            let download = fetch(&place, item.id).await.map_err(|error| place.refused(&error))?;
            fresh.extend(download.map(|download| freeze(&place, item.id, &download, afterwards(item))));
        }
        Ok(fresh)
    }

    async fn run(&self, call: &Cleared, _world: &World) -> Result<Ran, ToolError> {
        self.discard(frozen(call)?).await.map(Ran::from)
    }

    async fn settle(&self, call: Interrupted<'_>, _world: &World) -> Result<Settled, ToolError> {
        let Interrupted::Item(item) = call else { return Ok(Settled::Unknown) };
        let (place, _) = self.place(&item.instance)?;
        Ok(match fetch(&place, item.id).await {
            Ok(Some(_)) => Settled::NotDone,
            // If Sonarr or Radarr do not start the replacement search automatically, there is no way to see whether it
            // was started.
            Ok(None) if afterwards(item) == Afterwards::Nothing => Settled::Done(told(item).into()),
            Ok(None) => match place.replaces_failed().await {
                Ok(true) => Settled::Done(told(item).into()),
                Ok(false) | Err(_) => Settled::Unknown,
            },
            Err(error) => {
                tracing::warn!(instance = place.name(), id = item.id, %error, "failed to settle a deletion");
                Settled::Unknown
            }
        })
    }
}

impl RemoveDownload {
    pub fn new(library: Arc<Library>) -> Self {
        Self { library }
    }

    fn schema(&self) -> Value {
        let mut schema = schema::<Args>();
        let names = [self.library.movie_names(), self.library.series_names()].concat();
        offer_instances(&mut schema, "", &names);
        schema
    }

    fn arguments(&self, arguments: &Arguments) -> Result<Args, CallFailure> {
        let mut arguments = arguments.clone();
        // With a single instance there is nothing to choose, so the model is not asked.
        if let (Arguments::Object(map), [only]) =
            (&mut arguments, [self.library.movie_names(), self.library.series_names()].concat().as_slice())
        {
            map.insert("instance".to_owned(), json!(only));
        }
        read(REMOVE_DOWNLOAD, &schema::<Args>(), &arguments)
    }

    fn place(&self, instance: &str) -> Result<(Place<'_>, MediaKind), CallFailure> {
        let kind =
            if self.library.movie_names().contains(&instance) { MediaKind::Movie } else { MediaKind::Series };
        Place::of(&self.library, kind, Some(instance)).map(|place| (place, kind))
    }

    async fn discard(&self, item: &FrozenItem) -> Result<CallResult, ToolError> {
        let (place, _) = self.place(&item.instance)?;
        let download = fetch(&place, item.id).await.map_err(|error| place.refused(&error))?;
        let Some(download) = download else { return Ok(already_gone(item)) };
        if (&download.id, named(&download)) != (&item.fingerprint.path, title_of(item)) {
            return Err(changed(item).into());
        }
        let (how, search) = match afterwards(item) {
            Afterwards::Nothing => (Discard::Block, false),
            Afterwards::AnotherCopy => {
                let by_itself = place.replaces_failed().await.map_err(|error| place.refused(&error))?;
                (Discard::BlockAndReplace, !by_itself)
            }
        };
        match place.discard(item.id, how).await {
            Ok(Removal::Removed) => {}
            Ok(Removal::AlreadyGone) => return Ok(already_gone(item)),
            Err(error) => return Err(place.failed_write(&error)),
        }
        if fetch(&place, item.id).await.map_err(|error| place.unread_write(&error))?.is_some() {
            return Err(still_there(item).into());
        }
        if search {
            place.search(&download.of).await.map_err(|error| place.unread_write(&error))?;
        }
        Ok(told(item))
    }
}

impl Place<'_> {
    async fn downloads(&self) -> Result<Vec<Download>, ArrError> {
        match self {
            Self::Movies(instance) => instance.client.downloads().await,
            Self::Series(instance) => instance.client.downloads().await,
        }
    }

    async fn discard(&self, row: i64, how: Discard) -> Result<Removal, ArrError> {
        match self {
            Self::Movies(instance) => instance.client.server().discard(row, how).await,
            Self::Series(instance) => instance.client.server().discard(row, how).await,
        }
    }

    pub(super) async fn replaces_failed(&self) -> Result<bool, ArrError> {
        match self {
            Self::Movies(instance) => instance.client.server().replaces_failed().await,
            Self::Series(instance) => instance.client.server().replaces_failed().await,
        }
    }

    async fn search(&self, what: &DownloadOf) -> Result<(), ArrError> {
        match (self, what) {
            (Self::Movies(instance), DownloadOf::Movie(id)) => instance.client.search(*id).await.map(drop),
            (Self::Series(instance), DownloadOf::Episodes { episodes, .. }) => {
                let ids = episodes.iter().map(|episode| episode.id).collect();
                instance.client.search(&SeriesSearch::Episodes(ids)).await.map(drop)
            }
            // The library knows no title for this download, so there is nothing to search for.
            (Self::Movies(_) | Self::Series(_), _) => Ok(()),
        }
    }
}

async fn fetch(place: &Place<'_>, row: i64) -> Result<Option<Download>, ArrError> {
    Ok(place.downloads().await?.into_iter().find(|download| download.rows.contains(&row)))
}

fn freeze(place: &Place<'_>, row: i64, download: &Download, afterwards: Afterwards) -> FrozenItem {
    let kind = match place {
        Place::Movies(_) => MediaKind::Movie,
        Place::Series(_) => MediaKind::Series,
    };
    FrozenItem {
        instance: place.name().to_owned(),
        kind,
        id: row,
        delete_files: true,
        extent: Extent::Download(afterwards),
        fingerprint: Fingerprint {
            title: named(download),
            year: 0,
            // This value identifies a download for its lifetime. A queue row id may be reused.
            path: download.id.clone(),
            size_bytes: download.size_bytes.max(0.0) as u64,
            seasons: None,
        },
    }
}

fn named(download: &Download) -> String {
    clean_title(&download.title)
}

fn title_of(item: &FrozenItem) -> String {
    item.fingerprint.title.clone()
}

fn afterwards(item: &FrozenItem) -> Afterwards {
    match item.extent {
        Extent::Download(afterwards) => afterwards,
        Extent::Whole | Extent::Season { .. } | Extent::Copy { .. } => Afterwards::Nothing,
    }
}

fn told(item: &FrozenItem) -> CallResult {
    // The download was not in the library yet, so removing it frees no space there.
    deleted(item, 0)
}

fn not_there(id: i64) -> CallFailure {
    refusal(
        "unknown_id",
        json!({ "id": id, "hint": "it is not downloading any more; call check_status" }),
        Some("That is not downloading any more.".to_owned()),
    )
}
