//! I24: nothing is deleted while somebody watches it, unless the prompt said that this cannot be seen. I25: nobody is
//! told that a title is ready before the media server has shown it. I26: what a person has watched is in no text to
//! anybody else, in no request of the model for anybody else, and in no stored answer. I30: a season is offered once, to a
//! person who has nearly watched the one before it and has quota for it.

use serde_json::Value;

use super::{Evidence, Tally, deletions};
use crate::house_jellyfin::{HouseJellyfin, Viewing};
use crate::house_viewers::{HouseViewer, VIEWERS};
use crate::plan::BOB;
use crate::records::{Records, by_id, number, word};
use crate::world::World;

/// Longest time from the check to the request that deletes: both may wait for their timeouts.
const CHECK_TO_DELETION_MS: i64 = 60_000;

pub(super) fn check(evidence: &mut Evidence<'_>, world: &World) {
    let Some(home) = &world.jellyfin else { return };
    check_privacy(evidence, world);
    check_offers(evidence, world, home);
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
        // The stored time is that of the last attempt.
        let may_have_started =
            |item: &&Value| number(item, "started_at") <= at || number(item, "attempts") > 1;
        let started = items.filter(|item| !item["started_at"].is_null()).filter(may_have_started);
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

fn check_privacy(evidence: &mut Evidence<'_>, world: &World) {
    let records = evidence.records;
    for viewer in VIEWERS {
        let is_leak =
            |row: &&Value| viewer.is_mentioned_in(&row.to_string()) && !is_own(records, row, &viewer);
        let leak = records.outbox.iter().find(is_leak);
        evidence.expect(leak.is_none(), || format!("I26 {} watched, a text says: {leak:?}", viewer.name));
        let is_result_leak = |call: &&Value| {
            // The conversation of a room belongs to the room.
            let turn = by_id(&records.turns, number(call, "turn_id"));
            let conversation =
                turn.and_then(|turn| by_id(&records.conversations, number(turn, "conversation_id")));
            let is_of_viewer = conversation.is_some_and(|row| is_own(records, row, &viewer));
            viewer.is_mentioned_in(&call.to_string()) && !is_of_viewer
        };
        let leak = records.calls.iter().find(is_result_leak);
        evidence.expect(leak.is_none(), || format!("I26 {} watched, a tool says: {leak:?}", viewer.name));
    }
    for request in world.model.viewing_requests.lock().unwrap().iter().filter(|request| !request.is_own) {
        let (name, message) = (request.viewer.name, &request.last_message);
        evidence.broken.push(format!("I26 {name} watched, a request for somebody else says: {message}"));
    }
    for answer in Records::stored_answers(&world.database) {
        let is_private = VIEWERS.iter().any(|viewer| viewer.is_mentioned_in(&answer));
        evidence.expect(!is_private, || format!("I26 a stored answer says what was watched: {answer}"));
    }
}

/// Checks the offers of the only season that is offered.
fn check_offers(evidence: &mut Evidence<'_>, world: &World, home: &HouseJellyfin) {
    let records = evidence.records;
    let near_ends = home.near_ends.lock().unwrap().clone();
    for offer in offers(records) {
        let user = by_id(&records.users, number(offer, "user_id"));
        let phone = user.map_or("", |user| word(user, "phone"));
        let count = offers(records).filter(|other| other["user_id"] == offer["user_id"]).count();
        evidence.expect(count == 1, || format!("I30 a season was offered {count} times: {offer}"));
        let mut earlier = near_ends.iter().filter(|end| end.at <= number(offer, "created_at"));
        let has_watched = earlier.any(|end| end.phone == phone);
        evidence.expect_in_time(has_watched, || format!("I30 offered to {phone} too early: {offer}"));
        let is_over_quota = phone == BOB && world.plan.seerr.is_none();
        evidence.expect(!is_over_quota, || format!("I30 offered over the quota: {offer}"));
        let is_private = offer["room_id"].is_null();
        evidence.expect(is_private, || format!("I30 offered in a group: {offer}"));
    }
}

fn offers(records: &Records) -> impl Iterator<Item = &Value> {
    records.outbox.iter().filter(|text| word(text, "dedupe_key").starts_with("next_season:"))
}

/// Returns whether a row belongs to the private chat of a viewer.
fn is_own(records: &Records, row: &Value, viewer: &HouseViewer) -> bool {
    let user = by_id(&records.users, number(row, "user_id"));
    row["room_id"].is_null() && user.is_some_and(|user| word(user, "phone") == viewer.phone)
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
        ("offers of next seasons", offers(records).count()),
    ]);
    let states_watching =
        |row: &&Value| VIEWERS.iter().any(|viewer| viewer.is_mentioned_in(&row.to_string()));
    let calls = |tool: &'static str| records.calls.iter().filter(move |call| word(call, "tool_name") == tool);
    let refused = calls("recently_watched").filter(|call| word(call, "error").contains("not_permitted"));
    let is_repeat = |text: &&Value| {
        let mut events = records.events.iter().filter(|event| number(event, "turn_id") > 0);
        let is_asked = |event: &Value| word(event, "body") == "what was that again";
        events.any(|event| event["turn_id"] == text["turn_id"] && is_asked(event))
    };
    let repeats = records.outbox.iter().filter(is_repeat);
    tally.0.extend([
        ("told again what they watched", repeats.filter(states_watching).count()),
        ("told what they watched", records.outbox.iter().filter(states_watching).count()),
        ("lists of plays", calls("recently_watched").filter(states_watching).count()),
        ("details with what was watched", calls("media_details").filter(states_watching).count()),
        ("refused what others watched", refused.count()),
        ("requests with what was watched", world.model.viewing_requests.lock().unwrap().len()),
    ]);
}
