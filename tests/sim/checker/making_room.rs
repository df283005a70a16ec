//! I31: at most one proposal to make room is open, everybody is asked and told once, and nothing is deleted that somebody
//! kept after the confirmation prompt.

use serde_json::Value;

use super::household::LONGEST_WRITE_WAIT_MS;
use super::{Evidence, Tally};
use crate::records::{Records, by_id, number, word};

pub(super) fn check(evidence: &mut Evidence<'_>) {
    let records = evidence.records;
    for pair in records.proposals.windows(2) {
        let is_over = number(&pair[0], "closed_at") <= number(&pair[1], "opened_at");
        evidence.expect_in_time(is_over && !pair[0]["closed_at"].is_null(), || {
            format!("I31 two proposals overlap: {} and {}", pair[0], pair[1])
        });
    }
    for title in records.proposal_titles.iter().filter(|title| word(title, "state") == "deleted") {
        let is_item = |item: &&Value| {
            (number(item, "item_id"), word(item, "state")) == (number(title, "item_id"), "complete")
        };
        let has_item = records.items.iter().any(|item| is_item(&item));
        evidence.expect(has_item, || format!("I31 marked as deleted without a deletion: {title}"));
    }
    for item in records.items.iter().filter(|item| !item["started_at"].is_null()) {
        let Some(call) = by_id(&records.calls, number(item, "tool_call_id")) else { continue };
        let kept = records.kept_titles.iter().find(|kept| {
            let is_title = records.proposal_titles.iter().any(|title| {
                (&title["catalog_id"], &title["kind"], number(title, "item_id"))
                    == (&kept["catalog_id"], &kept["kind"], number(item, "item_id"))
            });
            let kept_at = number(kept, "kept_at");
            is_title
                && kept["kind"] == item["kind"]
                && kept_at >= number(call, "created_at")
                && kept_at + LONGEST_WRITE_WAIT_MS < number(item, "started_at")
        });
        evidence.expect_in_time(kept.is_none(), || format!("I31 deleted {item} although kept: {kept:?}"));
    }
}

fn texts<'a>(records: &'a Records, key: &'a str) -> impl Iterator<Item = &'a Value> {
    records.outbox.iter().filter(move |text| word(text, "dedupe_key").starts_with(key))
}

/// Counts the events of schedules in which room is made.
pub(super) fn count(records: &Records, tally: &mut Tally) {
    let in_state =
        |state: &str| records.proposal_titles.iter().filter(|title| word(title, "state") == state).count();
    let kept_late = records.items.iter().filter(|item| word(item, "result").contains("kept")).count();
    tally.0.extend([
        ("proposals to make room", records.proposals.len()),
        ("questions about room", texts(records, "room_question:").count()),
        ("reviews of proposals", texts(records, "room_review:").count()),
        ("outcomes of proposals", texts(records, "room_outcome:").count()),
        ("titles deleted after a review", in_state("deleted")),
        ("titles kept from a review", in_state("stays")),
        ("kept after the prompt", kept_late),
    ]);
}
