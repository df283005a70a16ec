//! I15: a title that could not be added at once is retried while a user waits for it, and its outcome is reported once.

use serde_json::Value;

use super::Evidence;
use crate::records::{Records, by_id, number, word};

/// Time limit of an attempt: one that is running when its user leaves is not canceled.
const TRY_MS: i64 = 30_000;

/// Returns whether a user waited for a title at a given time.
pub(super) fn tried(records: &Records, catalog_id: i64, at: i64) -> bool {
    of_title(records, catalog_id).any(|asked| {
        number(asked, "tries") > 0
            && (asked["settled_at"].is_null() || at <= number(asked, "settled_at") + TRY_MS)
    })
}

pub(super) fn tries(records: &Records, catalog_id: i64) -> i64 {
    of_title(records, catalog_id).map(|asked| number(asked, "tries")).sum()
}

pub(super) fn was_added_later(asked: &Value) -> bool {
    word(asked, "state") == "added" && number(asked, "tries") > 0
}

fn of_title(records: &Records, catalog_id: i64) -> impl Iterator<Item = &Value> {
    records.requests.iter().filter(move |asked| number(asked, "catalog_id") == catalog_id)
}

pub(super) fn check(evidence: &mut Evidence<'_>) {
    let records = evidence.records;
    for asked in &records.requests {
        if word(asked, "state") != "given_up" && !was_added_later(asked) {
            continue;
        }
        let (id, user) = (number(asked, "id"), number(asked, "user_id"));
        let key = match word(asked, "seerr_state") {
            "declined" => format!("seerr:{id}:declined:user:{user}"),
            _ => format!("request:{id}:user:{user}"),
        };
        let is_notified = records.outbox.iter().any(|text| word(text, "dedupe_key") == key);
        let has_left = by_id(&records.users, user).is_some_and(|user| word(user, "status") == "blocked")
            || records
                .events
                .iter()
                .any(|event| number(event, "user_id") == user && word(event, "outcome_reason") == "opt_out");
        // Seerr may have declined the later request since.
        let has_it = of_title(records, number(asked, "catalog_id")).any(|other| {
            let was_granted = word(other, "state") == "added" || word(other, "seerr_state") == "declined";
            number(other, "user_id") == user && number(other, "id") != id && was_granted
        });
        evidence.expect(is_notified || has_left || has_it, || {
            format!("I15 nobody was told of the end of {asked}")
        });
    }
}
