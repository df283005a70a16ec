//! Replacement of a bad copy. After confirmation, its file is deleted first, since a release that is no better would
//! not be accepted next to it. Then its release is blocked, and then another release is searched for.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::{named, refusal};
use super::approval::Cleared;
use super::arguments::{BadArgument, read, schema};
use super::copy::{self, Copy, Held};
use super::library::Library;
use super::outcomes::{already_gone, changed, deleted, frozen, size_unknown, still_there};
use super::place::Place;
use super::removal::unknown;
use super::{Interrupted, Ran, Settled, Tool, ToolError, Uses, WRITE_TIMEOUT, World};
use crate::conversation::frozen::{Episodes, Extent, Fingerprint, FrozenItem};
use crate::conversation::transcript::{
    Arguments, Audience, CallFailure, CallResult, MediaKind, Tier, ToolSpec,
};

const REPLACE_COPY: &str = "replace_copy";

pub struct ReplaceCopy {
    library: Arc<Library>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(rename = "type")]
    kind: MediaKind,
    id: i64,
    instance: Option<String>,
    #[schemars(range(min = 0))]
    season: Option<u32>,
    /// Of that season; left out: all.
    episodes: Option<Vec<u32>>,
}

#[async_trait]
impl Tool for ReplaceCopy {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: REPLACE_COPY,
            description: "Delete a bad copy on disk (wrong, broken, bad sound), never take it again, get another.",
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
        let place = Place::of(&self.library, args.kind, args.instance.as_deref())?;
        Ok(Uses { refs: vec![place.item(args.id)], four_k: false })
    }

    async fn preview(&self, arguments: &Arguments, _world: &World) -> Result<Vec<FrozenItem>, ToolError> {
        let args = self.arguments(arguments)?;
        let place = Place::of(&self.library, args.kind, args.instance.as_deref())?;
        let episodes = match (args.kind, args.season) {
            (MediaKind::Movie, _) => None,
            (MediaKind::Series, Some(season)) => {
                Some(Episodes { season, numbers: args.episodes.unwrap_or_default() })
            }
            (MediaKind::Series, None) => return Err(CallFailure::from(which_season()).into()),
        };
        match freeze(&place, args.id, episodes).await? {
            Some(item) => Ok(vec![item]),
            None => Err(unknown(args.id).into()),
        }
    }

    async fn refresh(&self, items: &[FrozenItem], _world: &World) -> Result<Vec<FrozenItem>, ToolError> {
        let mut fresh = Vec::new();
        for item in items {
            let place = Place::of(&self.library, item.kind, Some(&item.instance))?;
            fresh.extend(freeze(&place, item.id, copy::episodes(item).cloned()).await?);
        }
        Ok(fresh)
    }

    async fn run(&self, call: &Cleared, _world: &World) -> Result<Ran, ToolError> {
        self.replace(frozen(call)?).await.map(Ran::from)
    }

    async fn settle(&self, call: Interrupted<'_>, _world: &World) -> Result<Settled, ToolError> {
        let Interrupted::Item(item) = call else { return Ok(Settled::Unknown) };
        let place = Place::of(&self.library, item.kind, Some(&item.instance))?;
        Ok(match Copy::of(&place, item.id, copy::episodes(item)).await {
            Ok(None) => Settled::Done(deleted(item, 0).into()),
            // A replacement has already arrived.
            Ok(Some(copy)) if copy.is_another_than(item) => Settled::Done(deleted(item, 0).into()),
            // The remaining steps are done by another run, since each step can be repeated.
            Ok(Some(_)) => Settled::NotDone,
            Err(error) => {
                tracing::warn!(instance = place.name(), id = item.id, %error, "failed to settle a new copy");
                Settled::Unknown
            }
        })
    }
}

impl ReplaceCopy {
    pub fn new(library: Arc<Library>) -> Self {
        Self { library }
    }

    fn schema(&self) -> Value {
        let mut schema = schema::<Args>();
        self.library.offer(&mut schema);
        schema
    }

    fn arguments(&self, arguments: &Arguments) -> Result<Args, CallFailure> {
        read(REPLACE_COPY, &self.schema(), arguments)
    }

    /// Replaces the copy. Each step first checks whether it was already done, so that an interrupted run can be
    /// resumed.
    async fn replace(&self, item: &FrozenItem) -> Result<CallResult, ToolError> {
        let place = Place::of(&self.library, item.kind, Some(&item.instance))?;
        let copy = Copy::of(&place, item.id, copy::episodes(item)).await;
        let Some(copy) = copy.map_err(|error| place.refused(&error))? else { return Ok(already_gone(item)) };
        if !copy.is_as_asked(item) {
            return Err(changed(item).into());
        }
        let grabs = copy.grabs(&place).await.map_err(|error| place.refused(&error))?;
        copy.delete(&place).await.map_err(|error| place.failed_write(&error))?;
        // From here on, the outcome of a failure must be checked, because the file may already be gone.
        let lost = |error| place.unread_write(&error);
        copy.want(&place).await.map_err(lost)?;
        for grab in &grabs {
            place.fail_grab(*grab).await.map_err(lost)?;
        }
        // Sonarr and Radarr may search for another release automatically, or for part of it. Searching twice does no
        // harm.
        copy.search(&place).await.map_err(lost)?;
        match Copy::of(&place, item.id, copy::episodes(item)).await.map_err(lost)? {
            Some(left) if left.has_any_of(item) => Err(still_there(item).into()),
            Some(_) | None => Ok(deleted(item, copy.size_bytes())),
        }
    }
}

/// Freezes the copy for the confirmation prompt. Returns `None` if the title is gone.
async fn freeze(
    place: &Place<'_>,
    id: i64,
    episodes: Option<Episodes>,
) -> Result<Option<FrozenItem>, ToolError> {
    let copy = Copy::of(place, id, episodes.as_ref()).await.map_err(|error| place.refused(&error))?;
    let Some(copy) = copy else { return Ok(None) };
    if copy.files.is_empty() {
        return Err(nothing_on_disk(&copy.about).into());
    }
    if copy.files.iter().any(|file| file.size_bytes == 0) {
        return Err(size_unknown(&copy.about).into());
    }
    // A file may hold more episodes than were listed. They are deleted as well, so the prompt lists them too.
    let (kind, episodes) = match &copy.held {
        Held::Movie => (MediaKind::Movie, None),
        Held::Episodes { season, touched, .. } => {
            let on_disk = touched.iter().filter(|episode| episode.on_disk());
            let numbers = on_disk.map(|episode| episode.number).collect();
            (MediaKind::Series, Some(Episodes { season: *season, numbers }))
        }
    };
    Ok(Some(FrozenItem {
        instance: place.name().to_owned(),
        kind,
        id,
        delete_files: true,
        extent: Extent::Copy { episodes, files: copy.files.iter().map(|file| file.id).collect() },
        fingerprint: Fingerprint { size_bytes: copy.size_bytes(), seasons: None, ..copy.about },
    }))
}

fn which_season() -> BadArgument {
    BadArgument {
        field: "season".to_owned(),
        expected: "integer".to_owned(),
        hint: "of a show, say which season, and which episodes if not all".to_owned(),
    }
}

fn nothing_on_disk(about: &Fingerprint) -> CallFailure {
    refusal(
        "nothing_on_disk",
        json!({ "title": about.title, "hint": "there is no copy of that to replace; why_missing says more" }),
        Some(format!("There is no copy of that on disk: {}.", named(&about.title, about.year))),
    )
}
