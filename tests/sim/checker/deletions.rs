//! I4: nothing is deleted except items that one user was prompted about and confirmed with YES, in time, directly and
//! unmistakably.

use serde_json::Value;

use super::texts::CONSOLE;
use super::{Evidence, bot, phone};
use crate::network_faults::Seen;
use crate::plan::{ANN, BOB};
use crate::records::{by_id, number, word};
use crate::timeline::Times;

/// Time after which a read may have been canceled.
const LONGEST_READ_MS: i64 = 9_000;
/// Time in which a confirmation prompt may be answered.
const OPEN_MS: i64 = 5 * 60 * 1000;
/// Time in which a request is received, and in which its response arrives.
const SLACK_MS: i64 = 30;

pub(super) fn check(evidence: &mut Evidence<'_>) {
    let records = evidence.records;
    for call in records.calls.iter().filter(|call| !call["confirmed_by"].is_null()) {
        match records.approvals.iter().find(|asked| asked["run_call_id"] == call["id"]) {
            Some(asked) => approved(evidence, call, asked),
            None => confirmed(evidence, call),
        }
    }
    let deletions: Vec<&Seen> = evidence.seen.iter().filter(|seen| deletion(seen).is_some()).collect();
    for seen in &deletions {
        let target = deletion(seen).unwrap_or_default();
        let at = seen.asked_at.as_millisecond();
        let is_target =
            |item: &&&Value| (word(item, "kind"), number(item, "item_id")) == (target.0, target.1);
        let mut confirmed = records.items.iter().filter(|item| is_target(&item)).filter(|item| {
            by_id(&records.calls, number(item, "tool_call_id"))
                .is_some_and(|call| !call["confirmed_by"].is_null())
        });
        let began = |item: &Value| {
            let call = by_id(&records.calls, number(item, "tool_call_id"));
            call.and_then(|call| by_id(&records.turns, number(call, "run_turn_id")))
                .map_or(i64::MAX, |turn| number(turn, "created_at"))
        };
        let asked = confirmed.clone().any(|item| began(item) <= at);
        evidence.expect_in_time(asked, || format!("I4 a deletion that nobody confirmed: {seen:?}"));
        let starts: i64 = confirmed.by_ref().map(|item| number(item, "attempts")).sum();
        let times = deletions.iter().filter(|other| deletion(other) == Some(target)).count() as i64;
        evidence.expect(times <= starts, || {
            format!("I5 {target:?} was deleted {times} times in {starts} starts")
        });
    }
    truths(evidence);
    for item in records.items.iter().filter(|item| word(item, "result") == "\"unknown\"") {
        known_where_answered(evidence, item);
    }
}

/// Checks T3: a started deletion ends as unknown only where a check of the item got no usable response, or where the
/// instance was moved to another server, which cannot be asked about the item.
fn known_where_answered(evidence: &mut Evidence<'_>, item: &Value) {
    let call = by_id(&evidence.records.calls, number(item, "tool_call_id")).cloned().unwrap_or_default();
    let is_voided = evidence.records.services.iter().any(|service| {
        service["slot"] == item["instance"]
            && number(&call, "run_turn_id") <= number(service, "moved_after_turn")
    });
    if is_voided {
        return;
    }
    let ended = number(&call, "finished_at");
    let time = number(item, "started_at")..=ended;
    let path = format!("GET /api/v3/{}/{}", word(item, "kind"), number(item, "item_id"));
    let is_usable = |seen: &&Seen| {
        let status = seen.done.as_ref().map_or(0, |(_, status, _)| *status);
        let in_time = seen
            .answered_at
            .is_some_and(|at| at.as_millisecond() - seen.asked_at.as_millisecond() < LONGEST_READ_MS);
        in_time && ((200..300).contains(&status) || status == 404)
    };
    let mut checks = evidence
        .seen
        .iter()
        .filter(|seen| seen.what == path && time.contains(&seen.asked_at.as_millisecond()));
    let unanswered = checks.any(|seen| !is_usable(&seen));
    evidence
        .expect_in_time(unanswered, || format!("T3 ended unknown though every check was answered: {item}"));
}

/// Returns the kind and id that a request deletes.
pub(super) fn deletion(seen: &Seen) -> Option<(&'static str, i64)> {
    let path = seen.what.strip_prefix("DELETE /api/v3/")?;
    let (kind, rest) = path.split_once('/')?;
    let id = rest.split('?').next()?.parse().ok()?;
    Some((if kind == "movie" { "movie" } else { "series" }, id))
}

/// Checks the approval of a removal request: a member's request requires the approval of an admin, who is another user,
/// with its code, within a day.
fn approved(evidence: &mut Evidence<'_>, call: &Value, asked: &Value) {
    let records = evidence.records;
    let row = |rows, column| by_id(rows, number(call, column)).cloned().unwrap_or_default();
    let (yes, ran_in) = (row(&records.events, "confirmed_by"), row(&records.turns, "run_turn_id"));
    let admin = by_id(&records.users, number(&yes, "user_id")).cloned().unwrap_or_default();
    evidence.expect(word(&admin, "phone") == ANN, || format!("I4 not an admin's word: {yes}"));
    let others = asked["user_id"] != yes["user_id"] && asked["settled_by"] == yes["user_id"];
    evidence
        .expect(others, || format!("I4 an approval of one's own wish, or of another's: {asked} by {yes}"));
    let body = word(&yes, "body");
    let says_so = body.starts_with("approve") && body.ends_with(word(asked, "code"));
    evidence.expect(says_so, || format!("I4 an approval without its code: {yes} for {asked}"));
    let begun = number(&ran_in, "created_at");
    let in_time =
        begun <= number(asked, "expires_at") && number(asked, "created_at") <= number(&yes, "received_at");
    evidence.expect_in_time(in_time, || format!("I4 an approval out of its time: {yes} for {asked}"));
    let items: Vec<&Value> = records.items.iter().filter(|item| item["tool_call_id"] == call["id"]).collect();
    let same = |item: &Value| {
        // The title in a conversation about what somebody has watched is erased after a day.
        let is_erased = word(item, "fingerprint").starts_with(r#"{"title":"",""#);
        (&item["kind"], &item["item_id"]) == (&asked["item_kind"], &asked["item_id"])
            && (is_erased || item["fingerprint"] == asked["fingerprint"])
    };
    evidence.expect(items.len() == 1 && same(items[0]), || format!("I4 another item than asked: {items:?}"));
    rights(evidence, number(&yes, "user_id"), &items);
}

fn confirmed(evidence: &mut Evidence<'_>, call: &Value) {
    let records = evidence.records;
    let row = |rows, column| by_id(rows, number(call, column)).cloned().unwrap_or_default();
    let (yes, asked_in) = (row(&records.events, "confirmed_by"), row(&records.turns, "turn_id"));
    let ran_in = row(&records.turns, "run_turn_id");
    let user = number(&asked_in, "user_id");
    let begun = number(&ran_in, "created_at");
    let received = number(&yes, "received_at");
    evidence.expect(number(&yes, "user_id") == user, || format!("I4 another's yes: {yes} for {call}"));
    let is_direct = matches!(word(&yes, "via"), "webhook" | "poll");
    evidence.expect(is_direct, || format!("I4 a yes that does not count: {yes}"));
    let certain = matches!(word(&yes, "authority"), "certain" | "verified");
    evidence.expect(certain, || format!("I4 a yes that could be another text: {yes}"));
    if evidence.times == Times::Ambiguous {
        return;
    }
    let to_user = |text: &&Value| number(text, "user_id") == user;
    let is_sent = |text: &&Value| !matches!(word(text, "state"), "failed" | "suppressed");
    let prompts =
        || records.outbox.iter().filter(to_user).filter(|text| word(text, "kind") == "confirm_prompt");
    let last = prompts().rfind(|text| number(text, "created_at") < begun).cloned().unwrap_or_default();
    let first = prompts().find(|text| text["turn_id"] == call["turn_id"]).cloned().unwrap_or_default();
    let armed = evidence.phone.opening(&last, received).map(|opening| opening.earliest);
    evidence.expect(armed.is_some_and(|armed| armed < received), || {
        format!("I4 a yes before its question: {yes} for {last}")
    });
    phone::check_answer(evidence, &yes, &last);
    bot::check_answer(evidence, &yes, &last);
    // A prompt that was held back never opened; in that case its first repeat counts as the first prompt.
    let opened = prompts()
        .filter(|text| (number(&first, "id")..=number(&last, "id")).contains(&number(text, "id")))
        .find_map(|text| evidence.phone.opening(text, received));
    let open_until = opened.map_or(0, |opening| opening.latest) + OPEN_MS;
    evidence.expect(begun <= open_until, || {
        format!(
            "I4 an expired question was carried out at {begun}, open until {open_until}: {first} by {yes}"
        )
    });
    let between = records
        .outbox
        .iter()
        .filter(|text| if last["room_id"].is_null() { to_user(text) } else { true })
        .filter(|text| text["room_id"] == last["room_id"])
        .filter(is_sent)
        // An answer to a program or to the operator is only shown on the pages.
        .filter(|text| word(text, "from_addr") != CONSOLE)
        .filter(|text| number(text, "id") > number(&last, "id"))
        // A notification counts as sent when it is accepted: it waits for the answer.
        .find(|text| match word(text, "kind") {
            "notice" => (1..received).contains(&number(text, "accepted_at")),
            _ => number(text, "created_at") < received,
        });
    // A button belongs to its prompt, whatever was sent since.
    evidence.expect(between.is_none() || bot::is_press(&yes), || {
        format!("I4 something was said between question and yes: {between:?}")
    });
    let items: Vec<&Value> = records.items.iter().filter(|item| item["tool_call_id"] == call["id"]).collect();
    for item in &items {
        let print: Value = serde_json::from_str(word(item, "fingerprint")).unwrap_or_default();
        let named = word(&last, "body").contains(word(&print, "title"));
        evidence.expect(named, || format!("I4 the question did not name {item}: {last}"));
    }
    let coded = word(&last, "body").contains("YES 47");
    evidence
        .expect(!coded || word(&yes, "body").contains("47"), || format!("I4 a yes without its code: {yes}"));
    // The no is received a moment before it is stored.
    let heard_until = begun - SLACK_MS;
    let no = records.events.iter().find(|event| {
        event["user_id"] == yes["user_id"]
            && event["room_id"] == yes["room_id"]
            && word(event, "body") == "no"
            && (received..heard_until).contains(&number(event, "received_at"))
            && number(event, "provider_at") > number(&yes, "provider_at")
    });
    evidence.expect(no.is_none(), || format!("I4 a no behind the yes was not heard: {no:?}"));
    rights(evidence, user, &items);
}

fn rights(evidence: &mut Evidence<'_>, user: i64, items: &[&Value]) {
    let phone =
        by_id(&evidence.records.users, user).map(|user| word(user, "phone").to_owned()).unwrap_or_default();
    for item in items {
        // A moment passes between the check of the rights and the record of the start.
        let lost = evidence
            .lost_rights
            .iter()
            .any(|(who, since)| *who == phone && number(item, "started_at") > since + 50);
        let ambiguous = evidence.times == Times::Ambiguous;
        evidence
            .expect((!lost || ambiguous) && phone != BOB, || format!("I4 {phone} may not delete: {item}"));
    }
}

/// Checks that the messages about a deletion are true.
fn truths(evidence: &mut Evidence<'_>) {
    let records = evidence.records;
    for item in &records.items {
        let target = (word(item, "kind"), number(item, "item_id"));
        let ended =
            by_id(&records.calls, number(item, "tool_call_id")).map_or(0, |call| number(call, "finished_at"));
        let gone = evidence
            .seen
            .iter()
            .filter(|seen| {
                deletion(seen) == Some((if target.0 == "movie" { "movie" } else { "series" }, target.1))
            })
            .any(|seen| {
                seen.done.as_ref().is_some_and(|(at, status, _)| {
                    (200..300).contains(status) && at.as_millisecond() <= ended
                })
            });
        let result = word(item, "result");
        let so = match result.trim_matches('"') {
            "deleted" | "already_gone" => gone,
            // If two users requested the same deletion, the other user's YES may have caused it.
            "failed" | "not_permitted" | "changed" | "stopped" | "still_there" | "being_watched"
            | "viewing_unknown" => !gone || wanted_by_others(evidence, item),
            _ => true,
        };
        evidence.expect_in_time(so, || {
            format!("T1 {target:?} was told to be {result}, and gone is {gone}: {item}")
        });
    }
}

/// Returns whether another user's YES began the same deletion.
fn wanted_by_others(evidence: &Evidence<'_>, item: &Value) -> bool {
    let records = evidence.records;
    // A member's removal request is carried out in a turn of the admin.
    let removal = |call: i64| records.approvals.iter().find(|asked| number(asked, "run_call_id") == call);
    let asked_by = |item: &Value| {
        let call = number(item, "tool_call_id");
        removal(call).map(|asked| number(asked, "user_id")).or_else(|| {
            by_id(&records.calls, call)
                .and_then(|call| by_id(&records.turns, number(call, "turn_id")))
                .map(|turn| number(turn, "user_id"))
        })
    };
    records.items.iter().any(|other| {
        (&other["kind"], &other["item_id"]) == (&item["kind"], &item["item_id"])
            && number(other, "attempts") > 0
            && asked_by(other) != asked_by(item)
    })
}
