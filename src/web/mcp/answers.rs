//! Answers to the calls of agents: structured content, in which titles and names are data, of a bounded size.

use jiff::Timestamp;
use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use crate::conversation::agents::{CALL_LIMIT, MAX_OPEN_CALLS};
use crate::store::agent_calls::DropReason;
use crate::store::agent_tickets::{CallProgress, CallRecord};
use crate::store::confirmation::pending_action::CloseReason;

/// Largest structured content, in bytes.
const MAX_CONTENT_BYTES: usize = 8 * 1024;

/// Returns the answer to a call in its current state.
pub(super) fn answer_call(record: &CallRecord) -> CallToolResult {
    match &record.progress {
        CallProgress::Done(result) if record.was_asked => {
            success(json!({ "state": "done", "ticket": record.ticket, "result": result.for_model }))
        }
        CallProgress::Failed(failure) if record.was_asked => failed(json!({
            "state": "failed", "ticket": record.ticket, "error": failure.code.to_string(),
            "result": failure.for_model,
        })),
        CallProgress::Done(result) => success(result.for_model.clone()),
        CallProgress::Failed(failure) => {
            failed(json!({ "error": failure.code.to_string(), "details": failure.for_model }))
        }
        CallProgress::Asked { expires_at } => success(asked(record, *expires_at)),
        // The end is final only once it is recorded.
        CallProgress::Unanswerable => success(asked(record, None)),
        CallProgress::Waiting => success(json!({
            "state": "waiting", "ticket": record.ticket, "person": person_name(record),
            "note": "Queued behind other requests of this person, such as an open question. Call check_ticket later.",
        })),
        CallProgress::Running => success(json!({
            "state": "running", "ticket": record.ticket,
            "note": "It takes longer than usual. Call check_ticket later.",
        })),
        CallProgress::Closed(reason) => success(closed(record, *reason)),
        CallProgress::Canceled => {
            failed(json!({ "state": "canceled", "ticket": record.ticket, "note": "Nothing was changed." }))
        }
        CallProgress::Dropped(reason) => failed(dropped(record, *reason)),
    }
}

fn asked(record: &CallRecord, expires_at: Option<Timestamp>) -> Value {
    json!({
        "state": "asked", "ticket": record.ticket, "asked": person_name(record),
        "expires_at": expires_at.map(|at| at.to_string()),
        "note": "Nothing is deleted until this person says yes by text. Call check_ticket later.",
    })
}

fn closed(record: &CallRecord, reason: CloseReason) -> Value {
    let (state, note) = match reason {
        CloseReason::Denied => ("refused", "This person said no. Nothing was deleted. Do not ask again."),
        CloseReason::Expired => ("expired", "This person did not answer in time. Nothing was deleted."),
        CloseReason::Dropped | CloseReason::Replaced => {
            ("closed", "This person went on to something else. Nothing was deleted.")
        }
    };
    json!({ "state": state, "ticket": record.ticket, "asked": person_name(record), "note": note })
}

fn dropped(record: &CallRecord, reason: DropReason) -> Value {
    let note = match reason {
        DropReason::Expired => "The person was busy with another question for too long, and was not asked.",
        DropReason::Revoked => "This key was revoked.",
        DropReason::NotAllowed => "The person of this key may not use Dialarr.",
        DropReason::Paused => "Dialarr is paused.",
    };
    json!({ "state": "dropped", "ticket": record.ticket, "note": note })
}

/// Returns the name of the person of a call. A person without a name is known by a number, which agents never get.
fn person_name(record: &CallRecord) -> &str {
    record.person.name.as_deref().unwrap_or("the person of this key")
}

pub(super) fn missing_ticket() -> CallToolResult {
    failed(
        json!({ "error": "bad_arguments", "details": { "hint": "ticket: the ticket of an earlier call" } }),
    )
}

/// Returns the answer for a ticket that does not exist, or that another key or person has.
pub(super) fn unknown_ticket() -> CallToolResult {
    failed(json!({ "error": "not found" }))
}

pub(super) fn too_many_at_once() -> CallToolResult {
    let hint = format!("at most {MAX_OPEN_CALLS} calls at a time; wait for the others");
    failed(json!({ "error": "busy", "details": { "hint": hint } }))
}

pub(super) fn too_many_calls() -> CallToolResult {
    let hint = format!("at most {} calls an hour", CALL_LIMIT.max);
    failed(json!({ "error": "limit", "details": { "hint": hint } }))
}

/// Returns the content of a resource from the call that reads it, or the reason why there is none.
pub(super) fn resource_content(record: &CallRecord) -> Result<Value, &'static str> {
    match &record.progress {
        CallProgress::Done(result) => Ok(bounded(result.for_model.clone())),
        CallProgress::Dropped(DropReason::Paused) => Err("Dialarr is paused."),
        CallProgress::Failed(_)
        | CallProgress::Waiting
        | CallProgress::Running
        | CallProgress::Asked { .. }
        | CallProgress::Unanswerable
        | CallProgress::Closed(_)
        | CallProgress::Canceled
        | CallProgress::Dropped(_) => Err("The resource cannot be read now. Try again later."),
    }
}

fn success(content: Value) -> CallToolResult {
    CallToolResult::structured(bounded(content))
}

fn failed(content: Value) -> CallToolResult {
    CallToolResult::structured_error(bounded(content))
}

/// Replaces content that is too large. Tools bound their lists themselves, so this is a safeguard.
fn bounded(content: Value) -> Value {
    if content.to_string().len() <= MAX_CONTENT_BYTES {
        return content;
    }
    json!({ "error": "too_large", "details": { "hint": "ask for less, such as one title or another page" } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_over_the_bound_is_replaced() {
        let large = json!({ "results": ["x".repeat(MAX_CONTENT_BYTES)] });
        let answer = success(large).structured_content.unwrap();
        assert_eq!(answer["error"], "too_large");
        assert!(answer.to_string().len() < 200);
    }
}
