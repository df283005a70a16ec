//! Newcomers cost little and cause no effects; each request to the admins is sent once, decided once, and answered.

use serde_json::Value;

use super::Evidence;
use crate::plan::{ANN, EVE};
use crate::records::{by_id, number, word};

pub(super) fn check(evidence: &mut Evidence<'_>) {
    for asked in &evidence.records.approvals {
        asking(evidence, asked);
        outcome(evidence, asked);
    }
    strangers(evidence);
}

fn texts<'a>(evidence: &'a Evidence<'_>, key: &str) -> Vec<&'a Value> {
    let starts = |text: &&Value| {
        word(text, "dedupe_key").strip_prefix(key).is_some_and(|rest| rest.starts_with(":user:"))
    };
    evidence.records.outbox.iter().filter(starts).collect()
}

/// Checks that each admin receives the request, and no other user.
fn asking(evidence: &mut Evidence<'_>, asked: &Value) {
    let texts = texts(evidence, &format!("approval:{}", number(asked, "id")));
    let all_admins = texts.iter().all(|text| {
        by_id(&evidence.records.users, number(text, "user_id"))
            .is_some_and(|user| word(user, "role") == "admin")
    });
    // A code that an admin received in a list, in place of a code that was used up, counts as requested there.
    let code = format!("APPROVE {}", word(asked, "code"));
    let listed = evidence.records.outbox.iter().any(|text| word(text, "body").contains(&code));
    let count = texts.len();
    // The only admin may have been demoted.
    let since = evidence.lost_rights.iter().find(|(who, _)| *who == ANN).map(|(_, since)| *since);
    let expected = usize::from(since.is_none_or(|since| number(asked, "created_at") < since));
    evidence.expect_in_time(
        (count == expected || (count == 0 && listed)) && (all_admins || since.is_some()),
        || format!("H1 asked {count} times of the one admin: {asked}"),
    );
}

/// Checks that the requester receives the outcome of a request once.
fn outcome(evidence: &mut Evidence<'_>, asked: &Value) {
    let id = number(asked, "id");
    let notified =
        ["done", "denied", "expired"].map(|end| texts(evidence, &format!("approval:{id}:{end}")).len());
    let expected = match (word(asked, "kind"), word(asked, "state")) {
        ("delete", "approved") => [1, 0, 0],
        ("delete", "denied") => [0, 1, 0],
        ("delete" | "title", "expired") => [0, 0, 1],
        _ => [0, 0, 0],
    };
    evidence.expect(notified == expected, || format!("H2 told {notified:?} of {asked}"));
    let ran = !asked["run_call_id"].is_null();
    let should = (word(asked, "kind"), word(asked, "state")) == ("delete", "approved");
    evidence.expect(ran == should, || format!("H2 carried out {ran}: {asked}"));
}

/// Longest wait for the writer, after which a row is stored with a time from before the wait.
pub(super) const LONGEST_WRITE_WAIT_MS: i64 = 1_000;

/// Checks that an unapproved number gets no turn, no model call and no more than two messages.
fn strangers(evidence: &mut Evidence<'_>) {
    let records = evidence.records;
    let Some(eve) = records.users.iter().find(|user| word(user, "phone") == EVE) else { return };
    let id = number(eve, "id");
    let let_in = records
        .approvals
        .iter()
        .filter(|asked| number(asked, "user_id") == id && word(asked, "state") == "approved")
        .map(|asked| number(asked, "settled_at"))
        .min();
    let before = |at: i64| let_in.is_none_or(|since| at < since);
    let turns = records.turns.iter().filter(|turn| number(turn, "user_id") == id);
    let early: Vec<_> =
        turns.filter(|turn| before(number(turn, "created_at") + LONGEST_WRITE_WAIT_MS)).collect();
    evidence.expect_in_time(early.is_empty(), || format!("H3 {early:?} for a stranger: {let_in:?} {eve}"));
    let answers = records.outbox.iter().filter(|text| number(text, "user_id") == id);
    let answers = answers.filter(|text| before(number(text, "created_at"))).count();
    evidence.expect_in_time(answers <= 2, || format!("H3 {answers} texts to a stranger: {eve}"));
}
