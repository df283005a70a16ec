//! I19: after "forget all" no notification from before it is sent or stored. I20: no notification of a title is sent in
//! the quiet hours of its user.

use serde_json::Value;

use super::Evidence;
use crate::plan::{Act, FAY, Plan};
use crate::records::{Records, number, word};

const HOUR_MS: i64 = 60 * 60 * 1000;

/// Returns whether a message notifies of a title: that it is ready, how its addition ended, or that it continues.
pub(super) fn is_of_a_title(text: &Value) -> bool {
    ["ready:", "delay:", "next_season:", "request:", "seerr:"]
        .iter()
        .any(|key| word(text, "dedupe_key").starts_with(key))
}

pub(super) fn waited_for_an_hour(text: &Value) -> bool {
    is_of_a_title(text) && number(text, "not_before") > number(text, "created_at") + HOUR_MS
}

/// Returns the replies that report the erasure of all data of a user.
pub(super) fn forgotten(records: &Records) -> impl Iterator<Item = &Value> {
    records.outbox.iter().filter(|text| word(text, "body").starts_with("OK, I erased our messages"))
}

/// Returns the number of NOs that were answered together while another message waited between them.
pub(super) fn requests_between_noes(records: &Records) -> usize {
    let of_turn = |turn: &Value| -> Vec<i64> {
        let events = records.events.iter().filter(|event| event["turn_id"] == turn["id"]);
        events.map(|event| number(event, "id")).collect()
    };
    let denied = records.turns.iter().filter(|turn| word(turn, "kind") == "deny").map(of_turn);
    denied.filter(|events| events.windows(2).any(|pair| pair[1] > pair[0] + 1)).count()
}

pub(super) fn check(evidence: &mut Evidence<'_>) {
    let records = evidence.records;
    for reply in forgotten(records) {
        let before = |text: &&Value| {
            text["user_id"] == reply["user_id"]
                && number(text, "id") < number(reply, "id")
                && is_of_a_title(text)
        };
        for notice in records.outbox.iter().filter(before) {
            let sent_later = number(notice, "accepted_at") > number(reply, "created_at");
            let kept = !word(notice, "body").is_empty();
            evidence.expect(!kept, || format!("I19 words are kept after all was forgotten: {notice}"));
            evidence.expect_in_time(
                !sent_later || number(notice, "attempt_at") <= number(reply, "created_at"),
                || format!("I19 sent after all was forgotten: {notice}"),
            );
        }
    }
}

/// Checks the quiet hours. The check is valid only where the clock of the program showed the hour of the day.
pub(super) fn check_quiet_hours(evidence: &mut Evidence<'_>, plan: &Plan) {
    let records = evidence.records;
    let Some((from, to)) = hours_of_fay(plan) else { return };
    let Some(fay) = records.users.iter().find(|user| word(user, "phone") == FAY) else { return };
    let hers: Vec<&Value> = records.events.iter().filter(|event| event["user_id"] == fay["id"]).collect();
    let first = hers.iter().min_by_key(|event| number(event, "provider_at"));
    let in_time =
        |first: &Value, turn: &Value| number(turn, "created_at") < number(first, "provider_at") + HOUR_MS;
    // A message that came an hour late sets nothing.
    let set = first.and_then(|first| {
        records.turns.iter().find(|turn| turn["id"] == first["turn_id"] && in_time(first, turn))
    });
    let lifted = hers.iter().find(|event| word(event, "body") == "quiet off");
    let (Some(set), Some(lifted)) = (set, lifted) else { return };
    let quiet = number(set, "created_at")..number(lifted, "received_at");
    for notice in records.outbox.iter().filter(|text| text["user_id"] == fay["id"] && is_of_a_title(text)) {
        let at = number(notice, "attempt_at");
        let hour = at / HOUR_MS % 24;
        let is_night = if from < to { (from..to).contains(&hour) } else { hour >= from || hour < to };
        let disturbs = quiet.contains(&at) && is_night;
        evidence.expect(!disturbs, || format!("I20 sent in the quiet hours {from}-{to}: {notice}"));
    }
}

/// Returns the quiet hours that Fay sets with her first message.
fn hours_of_fay(plan: &Plan) -> Option<(i64, i64)> {
    let first = plan.acts.iter().find_map(|(_, act)| match act {
        Act::Text { from, body, .. } if *from == FAY => Some(body),
        _ => None,
    })?;
    let (from, to) = first.strip_prefix("quiet ")?.split_once('-')?;
    Some((from.parse().ok()?, to.parse().ok()?))
}
