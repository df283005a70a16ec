//! Audit log rows about tool calls: the outcome of a change, with its actual effects and nothing about other users.

use serde_json::{Map, Value, json};

use super::calling::{OUTCOME_UNKNOWN, entry};
use super::run::Scene;
use crate::conversation::deletion::{self, ItemOutcome};
use crate::conversation::facts::{FORGET, REMEMBER};
use crate::conversation::frozen::FrozenItem;
use crate::conversation::requests::QUEUED;
use crate::conversation::transcript::{Arguments, CallResult, CallRow, CallState, Tier, ToolCall};
use crate::store::audit::Entry;

/// Fields of a tool's result that the log stores besides the title. The requester of a title is not among them.
const KEPT: [&str; 6] = ["status", "seasons_wanted", "quality", "now", "of", "missing"];
/// Statuses of calls that had nothing to change.
const UNCHANGED: [&str; 4] = ["already_exists", "unchanged", "already_asked", "ready"];

/// Source of the known outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutcomeSource {
    Response,
    /// The response was lost, and the library showed the outcome.
    Lookup,
}

/// Detail of a write that is about to begin.
pub(super) fn intent(call: &ToolCall) -> Value {
    match &call.arguments {
        Arguments::Object(map) if !is_about_facts(&call.name) => {
            json!({ "tool": call.name, "arguments": map })
        }
        Arguments::Object(_) | Arguments::Malformed(_) => json!({ "tool": call.name }),
    }
}

/// Row of a write that has a result.
pub(super) fn outcome(
    scene: &Scene,
    call: CallRow,
    evidence: OutcomeSource,
    tool: &str,
    result: &CallResult,
) -> Entry {
    let kind = match (super::calling::status(result), evidence) {
        (Some(status), _) if UNCHANGED.contains(&status) => "write_unchanged",
        (Some(QUEUED), _) => "write_queued",
        (_, OutcomeSource::Response) => "write_done",
        (_, OutcomeSource::Lookup) => "write_settled",
    };
    entry(scene, kind, call, changed(tool, &result.for_model))
}

/// Row of a write that has no result; `None` for a call that changes nothing or is still open.
pub(super) fn failure(scene: &Scene, call: &ToolCall, state: &CallState) -> Option<Entry> {
    match state {
        CallState::Failed(failure) if call.tier == Tier::Write => {
            Some(failed_write(scene, call.row, &call.name, &failure.code))
        }
        CallState::Failed(_) | CallState::Created | CallState::Running => None,
        CallState::Held | CallState::Done(_) | CallState::Canceled(_) => None,
    }
}

/// Row of a write that was not made, or that has an unknown outcome.
pub(super) fn failed_write(scene: &Scene, call: CallRow, tool: &str, reason: &str) -> Entry {
    let kind = if reason == OUTCOME_UNKNOWN { "write_unknown" } else { "write_failed" };
    entry(scene, kind, call, json!({ "tool": tool, "reason": reason }))
}

/// Row of one item of a deletion, as it begins (`None`) and with its outcome.
pub(super) fn deletion(
    scene: &Scene,
    call: CallRow,
    ord: i64,
    item: &FrozenItem,
    outcome: Option<ItemOutcome>,
) -> Entry {
    let (kind, reason) = match outcome {
        None => ("delete", None),
        Some(ItemOutcome::Deleted) => ("deleted", None),
        Some(ItemOutcome::AlreadyGone) => ("delete_unchanged", None),
        Some(ItemOutcome::Unknown) => ("delete_unknown", None),
        Some(ItemOutcome::Changed) => ("delete_failed", Some("changed_since_the_question")),
        Some(ItemOutcome::NotPermitted) => ("delete_failed", Some("not_permitted")),
        Some(ItemOutcome::Stopped) => ("delete_failed", Some("stopped")),
        Some(ItemOutcome::StillThere) => ("delete_failed", Some("still_there")),
        Some(ItemOutcome::Failed) => ("delete_failed", None),
    };
    let mut detail = json!({ "title": deletion::name(item), "instance": item.instance, "id": item.id, "item": ord,
        "delete_files": item.delete_files, "size_bytes": item.fingerprint.size_bytes });
    if let Some(reason) = reason {
        detail["reason"] = json!(reason);
    }
    entry(scene, kind, call, detail)
}

/// True for tools about facts. A fact belongs to its user: the log records only that one was stored or erased.
fn is_about_facts(tool: &str) -> bool {
    tool == REMEMBER || tool == FORGET
}

fn changed(tool: &str, result: &Value) -> Value {
    if is_about_facts(tool) {
        return json!({ "tool": tool, "status": result["status"] });
    }
    let kept = |name: &&str| Some(((*name).to_owned(), result.get(*name)?.clone()));
    let mut detail: Map<String, Value> = KEPT.iter().filter_map(kept).collect();
    detail.insert("tool".to_owned(), json!(tool));
    if let Some(title) = result["title"].as_str() {
        let year = result["year"].as_u64().filter(|year| *year > 0);
        let name = year.map_or_else(|| title.to_owned(), |year| format!("{title} ({year})"));
        detail.insert("title".to_owned(), json!(name));
    }
    Value::Object(detail)
}
