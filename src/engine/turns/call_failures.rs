//! Failures of tool calls that the engine itself reports.

use serde_json::json;

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

pub(super) fn timeout_failure() -> CallFailure {
    let sentence = "That took too long. Please try again later.";
    let hint = json!({ "hint": "do not call it again in this turn: say that it took too long" });
    CallFailure::new(FailureCode::TooSlow, hint, Some(sentence.to_owned()))
}
