//! Result of an addition whose library cannot be reached: the request is stored and retried later.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::approval::within_quota;
use super::seasons::SPECIALS;
use super::{Asking, Deed, Ran, ToolError, World};
use crate::conversation::requests::{AskedFor, QUEUED, Stage, Wanted, Who};
use crate::conversation::transcript::{Added, Arguments, CallFailure, CallResult, Counted, MediaKind};

/// Queues an addition for a retry in place of its failure. The addition must certainly have had no effect.
pub fn tried_later(
    failure: &CallFailure,
    wanted: Wanted,
    arguments: &Arguments,
    world: &World,
) -> Result<Ran, ToolError> {
    match world.asking {
        Asking::Now => within_quota(world, with_what_waits(&wanted, world))?,
        Asking::Before => {}
    }
    let why = failure.for_user.as_deref().unwrap_or("That did not work right now.");
    let number = match wanted.kind {
        MediaKind::Movie => "tmdb",
        MediaKind::Series => "tvdb",
    };
    let result = CallResult {
        for_model: json!({ "status": QUEUED, "error": failure.code, "type": wanted.kind,
            number: wanted.catalog_id,
            "hint": "not added yet; it is tried for a day, and the user gets a text either way: say so" }),
        for_user: format!("{why} I'll keep trying for a day and text you."),
        shown: Vec::new(),
    };
    Ok(Ran::with(result, Deed::Queue(wanted, arguments.clone())))
}

/// Amount that would be added if all waiting requests of the user were carried out. Seasons that several requests name
/// count once. A show counts as at least one season, and its specials count as none.
fn with_what_waits(wanted: &Wanted, world: &World) -> Added {
    let waits = |asked: &&AskedFor| {
        asked.who == Who::You && asked.stage == Stage::Waiting && asked.wanted.kind == wanted.kind
    };
    let mut titles: BTreeMap<(&str, i64), BTreeSet<u32>> = BTreeMap::new();
    for each in world.asked_for.iter().filter(waits).map(|asked| &asked.wanted).chain([wanted]) {
        let seasons = titles.entry((&each.instance, each.catalog_id)).or_default();
        seasons.extend(each.seasons.iter().flatten().filter(|number| **number != SPECIALS));
    }
    let (what, amount) = match wanted.kind {
        MediaKind::Movie => (Counted::Movies, titles.len()),
        MediaKind::Series => {
            (Counted::Seasons, titles.values().map(|seasons| seasons.len().max(1)).sum::<usize>())
        }
    };
    Added { what, amount: u32::try_from(amount).unwrap_or(u32::MAX) }
}
