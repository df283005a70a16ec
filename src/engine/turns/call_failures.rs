//! Failures of tool calls that the engine itself reports.

use serde_json::json;

use crate::conversation::deletion::deletion_messages::format_not_asked;
use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::transcript::{CallFailure, FailureCode};

pub(super) fn unknown_tool_failure(called: &str, offered: &[&str]) -> CallFailure {
    CallFailure::new(
        FailureCode::UnknownTool,
        json!({ "called": called, "tools": offered,
        "hint": "call one of these; if none fits, this user may not do that, and an admin can" }),
        None,
    )
}

pub(super) fn internal_failure() -> CallFailure {
    let sentence = "That did not work. Please try again later.";
    let hint = json!({ "hint": "do not call it again in this turn: say that it did not work" });
    CallFailure::new(FailureCode::Failed, hint, Some(sentence.to_owned()))
}

/// Builds the failure of a deletion whose items somebody is watching.
pub(super) fn being_watched(items: &[DeletionTarget], viewers: &[String]) -> CallFailure {
    let hint =
        json!({ "hint": "it was kept because somebody is watching it: do not ask again in this turn" });
    CallFailure::new(FailureCode::BeingWatched, hint, Some(format_not_asked(items, viewers)))
}

pub(super) fn timeout_failure() -> CallFailure {
    let sentence = "That took too long. Please try again later.";
    let hint = json!({ "hint": "do not call it again in this turn: say that it took too long" });
    CallFailure::new(FailureCode::TooSlow, hint, Some(sentence.to_owned()))
}

/// Builds the failure of a deletion that an agent asks for while its person has another open question.
pub(super) fn other_question_open() -> CallFailure {
    let hint = json!({ "hint": "not asked: the person has another open question; call again later" });
    CallFailure::new(FailureCode::NotRun, hint, None)
}
