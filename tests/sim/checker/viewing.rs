//! I24: nothing is deleted while somebody watches it, unless the prompt said that this cannot be seen. I25: nobody is
//! told that a title is ready before the media server has shown it.

use serde_json::Value;

use super::{Evidence, Tally, deletions};
use crate::house_jellyfin::Viewing;
use crate::records::{Records, number, word};
use crate::world::World;

/// Longest time from the check to the request that deletes: both may wait for their timeouts.
const CHECK_TO_DELETION_MS: i64 = 60_000;

pub(super) fn check(evidence: &mut Evidence<'_>, world: &World) {
    let Some(home) = &world.jellyfin else { return };
    let viewings = home.viewings.lock().unwrap().clone();
    let requests: Vec<(i64, i64)> = evidence
        .seen
        .iter()
        .filter_map(|seen| match deletions::deletion(seen)? {
            ("movie", id) => Some((id, seen.asked_at.as_millisecond())),
            _ => None,
        })
        .collect();
    for (movie, at) in requests {
        let is_watched = |viewing: &&Viewing| {
            viewing.movie == movie && viewing.from + CHECK_TO_DELETION_MS <= at && viewing.to >= at
        };
        let Some(viewing) = viewings.iter().find(is_watched) else { continue };
        let items = evidence.records.items.iter();
        let items = items.filter(|item| (word(item, "kind"), number(item, "item_id")) == ("movie", movie));
        let started = items.filter(|item| !item["started_at"].is_null() && number(item, "started_at") <= at);
        let is_blind = started.max_by_key(|item| number(item, "started_at")).is_some_and(said_blind);
        evidence
            .expect_in_time(is_blind, || format!("I24 movie {movie} was deleted at {at} during {viewing:?}"));
    }
    if world.timeline.lock().unwrap().steps() > 0 {
        // A day of the program, after which it no longer waits for a server that fails, is not a day of the schedule.
        return;
    }
    let shown_at = *home.brazil_shown_at.lock().unwrap();
    let ready = |text: &&Value| {
        word(text, "dedupe_key").starts_with("ready:") && word(text, "body").contains("Brazil")
    };
    for text in evidence.records.outbox.iter().filter(ready) {
        let is_shown = shown_at.is_some_and(|shown_at| shown_at <= number(text, "created_at"));
        evidence.expect_in_time(is_shown, || format!("I25 ready before {shown_at:?}: {text}"));
    }
}

/// Returns whether the prompt about an item said that viewers cannot be seen.
fn said_blind(item: &Value) -> bool {
    let print: Value = serde_json::from_str(word(item, "fingerprint")).unwrap_or_default();
    print["is_viewing_unknown"] == true
}

/// Counts the events that only a schedule with a media server has.
pub(super) fn count(records: &Records, world: &World, tally: &mut Tally) {
    let ended_as =
        |result: &str| records.items.iter().filter(|item| word(item, "result").contains(result)).count();
    let viewings = world.jellyfin.as_ref().map_or(0, |home| home.viewings.lock().unwrap().len());
    let watched_prompts = records.calls.iter().filter(|call| word(call, "error").contains("being_watched"));
    tally.0.extend([
        ("viewings", viewings),
        ("prompts without a view", records.items.iter().filter(|item| said_blind(item)).count()),
        ("kept for a viewer", ended_as("being_watched") + watched_prompts.count()),
        ("kept without a view", ended_as("viewing_unknown")),
    ]);
}
