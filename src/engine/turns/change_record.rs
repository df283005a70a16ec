//! Audit entries of tool calls. They contain the effects of a change, but nothing about other users.

use serde_json::{Map, Value, json};

use super::turn_context::TurnContext;
use crate::conversation::deletion::claimed_deletion::{ClaimedDeletion, DeletionItem};
use crate::conversation::deletion::deletion_messages::{self, ItemOutcome};
use crate::conversation::people::facts::{FORGET, REMEMBER};
use crate::conversation::title_requests::QUEUED;
use crate::conversation::transcript::{
    CallResult, CallRow, CallState, EffectLevel, FailureCode, ToolArguments, ToolCall,
};
use crate::store::audit::{Actor, AuditSubject, NewAuditEntry};

/// Fields of a tool's result that the audit log stores besides the title. The requester of a title is not among them.
const LOGGED_FIELDS: [&str; 6] = ["status", "seasons_wanted", "quality", "now", "of", "missing"];
/// Result statuses of calls that changed nothing.
const UNCHANGED_STATUSES: [&str; 4] = ["already_exists", "unchanged", "already_asked", "ready"];

/// Field with the name of the key of the agent that made or asked for a change.
const AGENT_KEY: &str = "agent_key";

/// Source of a write's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutcomeSource {
    Response,
    /// Check of the library after the response was lost.
    Lookup,
}

/// Returns an audit entry about a tool call, with the turn's user as the actor. A call of an agent is marked with its key.
pub(crate) fn audit_entry(
    context: &TurnContext,
    kind: &'static str,
    call: CallRow,
    mut detail: Value,
) -> NewAuditEntry {
    if let (Some(agent), Some(detail)) = (context.agent_caller(), detail.as_object_mut()) {
        detail.insert(AGENT_KEY.to_owned(), agent.key_name.clone().into());
    }
    NewAuditEntry { actor: Actor::User(context.user.id), kind, subject: AuditSubject::Call(call), detail }
}

/// Returns the audit detail of a write that is about to start.
pub(crate) fn intent_detail(call: &ToolCall) -> Value {
    match &call.arguments {
        ToolArguments::Object(map) if !is_about_facts(&call.name) => {
            json!({ "tool": call.name, "arguments": map })
        }
        ToolArguments::Object(_) | ToolArguments::Malformed(_) => json!({ "tool": call.name }),
    }
}

/// Returns the audit entry of a write that has a result.
pub(crate) fn outcome_entry(
    context: &TurnContext,
    call: CallRow,
    source: OutcomeSource,
    tool: &str,
    result: &CallResult,
) -> NewAuditEntry {
    let kind = match (result_status(result), source) {
        (Some(status), _) if UNCHANGED_STATUSES.contains(&status) => "write_unchanged",
        (Some(QUEUED), _) => "write_queued",
        (_, OutcomeSource::Response) => "write_done",
        (_, OutcomeSource::Lookup) => "write_settled",
    };
    audit_entry(context, kind, call, change_detail(tool, &result.for_model))
}

/// Returns the audit entry of a failed write; `None` for other calls and states.
pub(crate) fn failure_entry(
    context: &TurnContext,
    call: &ToolCall,
    state: &CallState,
) -> Option<NewAuditEntry> {
    match state {
        CallState::Failed(failure) if call.effect_level == EffectLevel::Write => {
            Some(failed_write_entry(context, call.row, &call.name, &failure.code))
        }
        CallState::Failed(_) | CallState::Created | CallState::Running => None,
        CallState::AwaitingConfirmation | CallState::Done(_) | CallState::Canceled(_) => None,
    }
}

/// Returns the audit entry of a write that was not made, or that has an unknown outcome.
pub(crate) fn failed_write_entry(
    context: &TurnContext,
    call: CallRow,
    tool: &str,
    reason: &FailureCode,
) -> NewAuditEntry {
    let kind = if *reason == FailureCode::OutcomeUnknown { "write_unknown" } else { "write_failed" };
    audit_entry(context, kind, call, json!({ "tool": tool, "reason": reason }))
}

/// Returns the audit entry of one item of a deletion: of its start without an `outcome`, or of its end.
pub(crate) fn deletion_entry(
    context: &TurnContext,
    claimed: &ClaimedDeletion,
    item: &DeletionItem,
    outcome: Option<ItemOutcome>,
) -> NewAuditEntry {
    let (kind, reason) = match outcome {
        None => ("delete", None),
        Some(ItemOutcome::Deleted) => ("deleted", None),
        Some(ItemOutcome::AlreadyGone) => ("delete_unchanged", None),
        Some(ItemOutcome::Unknown) => ("delete_unknown", None),
        Some(ItemOutcome::Changed) => ("delete_failed", Some("changed_since_the_question")),
        Some(ItemOutcome::NotPermitted) => ("delete_failed", Some("not_permitted")),
        Some(ItemOutcome::Stopped) => ("delete_failed", Some("stopped")),
        Some(ItemOutcome::StillThere) => ("delete_failed", Some("still_there")),
        Some(ItemOutcome::BeingWatched) => ("delete_failed", Some("being_watched")),
        Some(ItemOutcome::ViewingUnknown) => ("delete_failed", Some("viewing_unknown")),
        Some(ItemOutcome::Protected) => ("delete_failed", Some("kept")),
        Some(ItemOutcome::Failed) => ("delete_failed", None),
    };
    let DeletionItem { ord, target, .. } = item;
    let mut detail = json!({ "title": deletion_messages::format_target_name(target), "instance": target.instance,
        "id": target.id, "item": ord, "delete_files": target.delete_files,
        "size_bytes": target.fingerprint.size_bytes });
    if let Some(reason) = reason {
        detail["reason"] = json!(reason);
    }
    if let Some(agent) = claimed.agent() {
        detail[AGENT_KEY] = json!(agent.key_name);
    }
    audit_entry(context, kind, claimed.call(), detail)
}

/// Returns the status of a result, such as `deleted`.
pub(super) fn result_status(result: &CallResult) -> Option<&str> {
    result.for_model.get("status").and_then(|status| status.as_str())
}

/// Returns whether a tool stores or erases facts. Facts are private, so the audit log does not contain them.
fn is_about_facts(tool: &str) -> bool {
    tool == REMEMBER || tool == FORGET
}

fn change_detail(tool: &str, result: &Value) -> Value {
    if is_about_facts(tool) {
        return json!({ "tool": tool, "status": result["status"] });
    }
    let logged_field = |name: &&str| Some(((*name).to_owned(), result.get(*name)?.clone()));
    let mut detail: Map<String, Value> = LOGGED_FIELDS.iter().filter_map(logged_field).collect();
    detail.insert("tool".to_owned(), json!(tool));
    if let Some(title) = result["title"].as_str() {
        let year = result["year"].as_u64().filter(|year| *year > 0);
        let name = year.map_or_else(|| title.to_owned(), |year| format!("{title} ({year})"));
        detail.insert("title".to_owned(), json!(name));
    }
    Value::Object(detail)
}
