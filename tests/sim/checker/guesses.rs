//! I16: after five wrong codes in a day, no message of their sender deletes or approves anything until the next day.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Evidence;
use crate::records::{by_id, number, word};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Wrong codes of a day before the one that suspends their sender.
const MAX_GUESSES: usize = 4;

pub(super) fn check(evidence: &mut Evidence<'_>) {
    let records = evidence.records;
    let sent = |words: &'static str| {
        records.outbox.iter().filter(move |text| word(text, "body").contains(words)).map(|text| {
            let at = number(text, "created_at");
            (number(text, "user_id"), at / DAY_MS, at)
        })
    };
    let mut wrong: BTreeMap<(i64, i64), usize> = BTreeMap::new();
    for (user, day, _) in sent("No request has that code") {
        *wrong.entry((user, day)).or_default() += 1;
    }
    for ((user, day), times) in wrong {
        evidence
            .expect(times <= MAX_GUESSES, || format!("I16 user {user} guessed {times} times on day {day}"));
    }
    for (user, day, suspended_at) in sent("someone may be using your number") {
        let is_late = |call: &&Value| {
            let yes = by_id(&records.events, number(call, "confirmed_by"));
            let turn = by_id(&records.turns, number(call, "run_turn_id"));
            let begun = turn.map_or(0, |turn| number(turn, "created_at"));
            yes.is_some_and(|yes| number(yes, "user_id") == user)
                && begun > suspended_at
                && begun / DAY_MS == day
        };
        let late = records.calls.iter().find(is_late);
        evidence.expect(late.is_none(), || format!("I16 a deletion of user {user} after guesses: {late:?}"));
    }
}
