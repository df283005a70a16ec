//! I27: titles are requested at Seerr in the name of the person who asked, while a call of theirs runs, and not again once
//! a lookup could see the request. I28: each decision there is that of an admin, passed on once. I29: nobody is told of a
//! request or a state that does not exist there.

use dialarr::seerr::fake::FakeSeerrRequest;
use jiff::SignedDuration;
use serde_json::Value;

use super::{Evidence, Tally, addition, asks_to_add, requests};
use crate::house_seerr::{APPROVED, DECLINED, HouseSeerr, PENDING};
use crate::network_faults::Seen;
use crate::plan::{ANN, BOB, BRAZIL};
use crate::records::{Records, by_id, number, word};
use crate::world::World;

const CREATED: u16 = 201;
/// Age up to which a request is offered to the admins, and some time in which it becomes too old.
const OFFER_AGE: SignedDuration = SignedDuration::from_mins(24 * 60 + 2);

/// Request for a title as the Seerr saw it.
struct Post<'a> {
    seen: &'a Seen,
    /// Id by which the call names the title.
    catalog_id: i64,
    /// Time in milliseconds.
    at: i64,
}

pub(super) fn check(evidence: &mut Evidence<'_>, world: &World) {
    let Some(house) = &world.seerr else { return };
    let posts: Vec<Post<'_>> = evidence.seen.iter().filter_map(title_post).collect();
    for post in &posts {
        requester(evidence, house, post);
    }
    repeats(evidence, house, &posts);
    let direct = evidence.seen.iter().find(|seen| addition(seen).is_some());
    evidence.expect(direct.is_none(), || format!("I27 a title was added without Seerr: {direct:?}"));
    decisions(evidence, house);
    statements(evidence, house);
}

fn title_post(seen: &Seen) -> Option<Post<'_>> {
    if (seen.peer, seen.what.as_str()) != ("seerr", "POST /api/v1/request") {
        return None;
    }
    let body: Value = serde_json::from_str(&seen.body).ok()?;
    let catalog_id = body["tvdbId"].as_i64().or_else(|| body["mediaId"].as_i64())?;
    Some(Post { seen, catalog_id, at: seen.asked_at.as_millisecond() })
}

/// Checks that a request names the user of the person whose call runs.
fn requester(evidence: &mut Evidence<'_>, house: &HouseSeerr, post: &Post<'_>) {
    let records = evidence.records;
    let Some(user) = post.seen.user.and_then(|id| user_of(records, house, id)) else {
        evidence.broken.push(format!("I27 a request in nobody's name: {:?}", post.seen));
        return;
    };
    // The calls of a user whose messages were erased leave no rows.
    if post.catalog_id == BRAZIL {
        return;
    }
    let is_called = running_call(records, post, user).is_some();
    let is_tried = requests::tried(records, post.catalog_id, post.at);
    evidence.expect_in_time(is_called || is_tried, || {
        format!("I27 a request that no running call of user {user} asked for: {:?}", post.seen)
    });
}

/// Returns the user of the program who is linked to a user of the Seerr.
fn user_of(records: &Records, house: &HouseSeerr, id: i64) -> Option<i64> {
    let phone = house.phone_of(id)?;
    records.users.iter().find(|user| word(user, "phone") == phone).map(|user| number(user, "id"))
}

/// Returns the id of the call that a request belongs to.
fn running_call(records: &Records, post: &Post<'_>, user: i64) -> Option<i64> {
    let is_running = |call: &&Value| {
        number(call, "created_at") <= post.at
            && (call["finished_at"].is_null() || post.at <= number(call, "finished_at"))
    };
    let is_of_user = |call: &&Value| {
        by_id(&records.turns, number(call, "turn_id")).is_some_and(|turn| number(turn, "user_id") == user)
    };
    let calls = records.calls.iter().filter(|call| asks_to_add(call, post.catalog_id));
    calls.filter(is_running).find(is_of_user).map(|call| number(call, "id"))
}

/// Checks that a call does not repeat a request that a lookup has seen.
fn repeats(evidence: &mut Evidence<'_>, house: &HouseSeerr, posts: &[Post<'_>]) {
    let records = evidence.records;
    for first in posts {
        let Some((done_at, CREATED, _)) = &first.seen.done else { continue };
        let Some(user) = first.seen.user.and_then(|id| user_of(records, house, id)) else { continue };
        let Some(call) = running_call(records, first, user) else { continue };
        let is_repeat = |post: &&Post<'_>| {
            post.at > first.at
                && post.seen.user == first.seen.user
                && post.catalog_id == first.catalog_id
                && running_call(records, post, user) == Some(call)
        };
        for second in posts.iter().filter(is_repeat) {
            let is_lookup = |seen: &&Seen| {
                seen.peer == "seerr"
                    && seen.what.starts_with("GET /api/v1/request?")
                    && seen.asked_at >= *done_at
                    && seen.told_at.is_some_and(|(at, status)| status == 200 && at <= second.seen.asked_at)
            };
            let lookup = evidence.seen.iter().find(is_lookup);
            let is_withdrawn = house.withdrawn.lock().unwrap().iter().any(|(request, at)| {
                is_title(request, first.catalog_id) && (first.at..=second.at).contains(at)
            });
            evidence.expect_in_time(lookup.is_none() || is_withdrawn, || {
                format!("I27 {:?} repeats {:?}, which {lookup:?} showed", second.seen, first.seen)
            });
        }
    }
}

fn is_title(request: &FakeSeerrRequest, catalog_id: i64) -> bool {
    request.tmdb == catalog_id || request.tvdb == Some(catalog_id)
}

/// Checks that each decision at the Seerr is one of an admin, and not repeated once a lookup could see it.
fn decisions(evidence: &mut Evidence<'_>, house: &HouseSeerr) {
    let records = evidence.records;
    let ann = house.users.iter().find(|(phone, _)| *phone == ANN).map(|(_, id)| *id);
    let passed_on: Vec<(&Seen, i64, &str)> = evidence.seen.iter().filter_map(decision).collect();
    for (seen, request, state) in &passed_on {
        let is_decided = |asked: &&Value| {
            (word(asked, "kind"), number(asked, "item_id"), word(asked, "state"))
                == ("seerr", *request, *state)
        };
        let decided = records.approvals.iter().find(is_decided);
        evidence.expect(decided.is_some() && seen.user == ann, || {
            format!("I28 a decision that no admin made: {seen:?}")
        });
        let decided_at = decided.map_or(i64::MAX, |asked| number(asked, "settled_at"));
        evidence.expect_in_time(decided_at <= seen.asked_at.as_millisecond(), || {
            format!("I28 passed on before the decision: {seen:?}")
        });
        let Some((done_at, 200, _)) = &seen.done else { continue };
        let again = passed_on.iter().find(|(other, id, _)| {
            let path = format!("GET /api/v1/request/{request}");
            let is_lookup = |lookup: &&Seen| {
                lookup.what == path
                    && lookup.asked_at >= *done_at
                    && lookup.told_at.is_some_and(|(at, status)| status == 200 && at <= other.asked_at)
            };
            id == request && evidence.seen.iter().any(|seen| is_lookup(&seen))
        });
        evidence.expect(again.is_none(), || format!("I28 decided again: {seen:?} and {again:?}"));
    }
}

/// Returns the id of the request that is decided, and the state of the approval that decides so.
fn decision(seen: &Seen) -> Option<(&Seen, i64, &'static str)> {
    let (id, verb) = seen.what.strip_prefix("POST /api/v1/request/")?.split_once('/')?;
    let state = if verb == "approve" { "approved" } else { "denied" };
    Some((seen, id.parse().ok()?, state))
}

/// Checks that what people are told is so at the Seerr.
fn statements(evidence: &mut Evidence<'_>, house: &HouseSeerr) {
    let (records, made) = (evidence.records, house.all_requests());
    let find = |id: i64| made.iter().find(|request| request.id == id);
    for call in records.calls.iter().filter(|call| says_requested(call)) {
        let user = by_id(&records.turns, number(call, "turn_id")).map_or(0, |turn| number(turn, "user_id"));
        let is_made = made.iter().any(|request| {
            asks_to_add(call, request.tvdb.unwrap_or(request.tmdb))
                && user_of(records, house, request.user) == Some(user)
        });
        evidence.expect(is_made, || format!("I29 a request that does not exist: {call}"));
    }
    for text in &records.outbox {
        let Some(key) = word(text, "dedupe_key").strip_prefix("seerr:") else { continue };
        let mut parts = key.split(':');
        let row = parts.next().and_then(|row| by_id(&records.requests, row.parse().ok()?));
        let state = parts.next().unwrap_or_default();
        let Some(request) = row.and_then(|row| find(number(row, "seerr_request"))) else { continue };
        let is_so = match state {
            "declined" => request.status == DECLINED,
            _ => request.status >= APPROVED && request.status != DECLINED,
        };
        evidence.expect(is_so, || format!("I29 {text} about {request:?}"));
    }
    let bob = house.users.iter().find(|(phone, _)| *phone == BOB).map(|(_, id)| *id);
    for asked in records.approvals.iter().filter(|asked| word(asked, "kind") == "seerr") {
        let request = find(number(asked, "item_id"));
        // Only Bob's requests wait for a decision.
        let is_waiting = request.is_some_and(|request| Some(request.user) == bob);
        evidence.expect(is_waiting, || format!("I29 an offer of a request that does not wait: {asked}"));
    }
}

fn says_requested(call: &Value) -> bool {
    let response = word(call, "response");
    word(call, "tool_name").starts_with("add_")
        && ["requested", "awaiting_decision"]
            .iter()
            .any(|status| response.contains(&format!("\"status\":\"{status}\"")))
}

/// Returns what a Seerr and the program still have to do.
pub(crate) fn unfinished(world: &World, records: &Records) -> Vec<String> {
    let Some(house) = &world.seerr else { return Vec::new() };
    let requests = house.fake.requests();
    let status_of = |id: i64| requests.iter().find(|request| request.id == id).map(|request| request.status);
    let is_stale = |row: &&Value| {
        let status = status_of(number(row, "seerr_request"));
        match word(row, "seerr_state") {
            "pending" => status != Some(PENDING),
            "approved" => status != Some(APPROVED),
            _ => false,
        }
    };
    let stale = records.requests.iter().filter(is_stale).map(|row| format!("state of {row}"));
    let is_open = |asked: &&Value| {
        word(asked, "kind") == "seerr"
            && matches!(word(asked, "state"), "approved" | "denied")
            && asked["passed_on_at"].is_null()
    };
    let open = records.approvals.iter().filter(is_open).map(|asked| format!("decision {asked}"));
    let has_admin = records.users.iter().any(|user| word(user, "role") == "admin");
    let is_offered = |id: i64| {
        let mut asked = records.approvals.iter().filter(|asked| word(asked, "kind") == "seerr");
        asked.any(|asked| number(asked, "item_id") == id)
    };
    let is_recent = |request: &FakeSeerrRequest| world.now().duration_since(request.created_at) <= OFFER_AGE;
    let unoffered = requests
        .iter()
        .filter(|request| {
            has_admin && request.status == PENDING && is_recent(request) && !is_offered(request.id)
        })
        .map(|request| format!("offer of {request:?}"));
    stale.chain(open).chain(unoffered).collect()
}

/// Counts the events that only a schedule with a Seerr or TMDB has.
pub(super) fn count(records: &Records, seen: &[Seen], world: &World, tally: &mut Tally) {
    let made = world.seerr.as_ref().map_or(0, |house| house.all_requests().len());
    let lost = || {
        seen.iter().filter_map(title_post).filter(|post| {
            let is_created = matches!(&post.seen.done, Some((_, CREATED, _)));
            is_created && post.seen.told_at.is_none_or(|(_, status)| status != CREATED)
        })
    };
    let is_found = |post: &Post<'_>| {
        let user = world.seerr.as_ref().and_then(|house| user_of(records, house, post.seen.user?));
        let call = user.and_then(|user| running_call(records, post, user));
        call.and_then(|call| by_id(&records.calls, call)).is_some_and(says_requested)
    };
    let offers = || records.approvals.iter().filter(|asked| word(asked, "kind") == "seerr");
    let states = records.outbox.iter().filter(|text| word(text, "dedupe_key").starts_with("seerr:"));
    let recommends = || records.calls.iter().filter(|call| word(call, "tool_name") == "recommend");
    let is_failed = |call: &&Value| word(call, "error").contains("not_known");
    tally.0.extend([
        ("requests at Seerr", made),
        ("requests whose answer was lost", lost().count()),
        ("requests found after a lost answer", lost().filter(is_found).count()),
        ("requests offered to the admin", offers().count()),
        ("decisions passed on to Seerr", seen.iter().filter_map(decision).count()),
        ("told of states at Seerr", states.count()),
        ("titles found", recommends().filter(|call| word(call, "response").contains("\"because\"")).count()),
        ("no titles found without a source", recommends().filter(is_failed).count()),
    ]);
}
