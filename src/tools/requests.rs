//! Removal requests: asking the admins to delete something, for users who may not delete it themselves.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::{named, refusal};
use super::approval::{self, Cleared, Words};
use super::arguments::{cleared, read, schema};
use super::library::Library;
use super::place::Place;
use super::removal::unknown;
use super::{Deed, Interrupted, Ran, Settled, Tool, ToolError, Uses, WRITE_TIMEOUT, World};
use crate::conversation::frozen::{Extent, Fingerprint, FrozenItem};
use crate::conversation::transcript::{
    Arguments, Audience, CallFailure, CallResult, MediaKind, Tier, ToolSpec,
};

/// Maximum number of open removal requests per user.
const MOST_WISHES: usize = 5;

pub struct RequestRemoval {
    library: Arc<Library>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(rename = "type")]
    kind: MediaKind,
    id: i64,
    instance: Option<String>,
}

#[async_trait]
impl Tool for RequestRemoval {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "request_removal",
            description: "Ask the admins to delete a movie or show with its files. \
                          The user hears later what they said: do not say it is done.",
            tier: Tier::Write,
            audience: Audience::NotDeleters,
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

    async fn run(&self, call: &Cleared, world: &World) -> Result<Ran, ToolError> {
        let args = self.arguments(cleared(call)?)?;
        let place = Place::of(&self.library, args.kind, args.instance.as_deref())?;
        if world.admins == 0 {
            return Err(nobody_to_ask().into());
        }
        let fetched = place.fetch(args.id).await.map_err(|error| place.refused(&error))?;
        let Some(fingerprint) = fetched else { return Err(unknown(args.id).into()) };
        let instance = place.name().to_owned();
        let delete_files = fingerprint.size_bytes > 0;
        let item = FrozenItem {
            instance,
            kind: args.kind,
            id: args.id,
            delete_files,
            extent: Extent::Whole,
            fingerprint,
        };
        approval::requested(std::slice::from_ref(&item), Words::of(world))?;
        let same =
            |wish: &FrozenItem| (&wish.instance, wish.kind, wish.id) == (&item.instance, item.kind, item.id);
        if world.wishes.iter().any(same) {
            return Ok(
                told(&item, "already_asked", "The admins were asked already, and have not answered.").into()
            );
        }
        if world.wishes.len() >= MOST_WISHES {
            return Err(too_many().into());
        }
        let sentence = format!("I asked the admins to delete {}. You will hear from me.", name(&item));
        let result = told(&item, "asked", &sentence);
        Ok(Ran::with(result, Deed::AskAdmins(Box::new(item))))
    }

    /// A request is stored only together with the result, so without a result no admin was asked.
    async fn settle(&self, _call: Interrupted<'_>, _world: &World) -> Result<Settled, ToolError> {
        Ok(Settled::NotDone)
    }
}

impl RequestRemoval {
    pub fn new(library: Arc<Library>) -> Self {
        Self { library }
    }

    fn schema(&self) -> Value {
        let mut schema = schema::<Args>();
        self.library.offer(&mut schema);
        schema
    }

    fn arguments(&self, arguments: &Arguments) -> Result<Args, CallFailure> {
        read("request_removal", &self.schema(), arguments)
    }
}

fn name(item: &FrozenItem) -> String {
    named(&item.fingerprint.title, item.fingerprint.year)
}

fn told(item: &FrozenItem, status: &str, sentence: &str) -> CallResult {
    let Fingerprint { title, year, .. } = &item.fingerprint;
    CallResult {
        for_model: json!({ "status": status, "title": title, "year": year, "hint": "it is not deleted" }),
        for_user: sentence.to_owned(),
        shown: Vec::new(),
    }
}

fn nobody_to_ask() -> CallFailure {
    refusal(
        "nobody_to_ask",
        json!({ "hint": "there is no admin" }),
        Some("There is no admin whom I could ask.".to_owned()),
    )
}

fn too_many() -> CallFailure {
    refusal(
        "too_many_requests",
        json!({ "open": MOST_WISHES, "hint": "wait until the admins have answered" }),
        Some(
            "You have several requests open already. Please wait until the admins have answered.".to_owned(),
        ),
    )
}
