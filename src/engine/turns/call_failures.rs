//! Failures of tool calls that the engine itself reports.

use serde_json::{Value, json};

use crate::conversation::transcript::{CallFailure, FailureCode};

pub(super) fn unknown_tool_failure(called: &str, offered: &[&str]) -> CallFailure {
    CallFailure::new(FailureCode::UnknownTool, json!({ "called": called, "tools": offered }), None)
}

pub(super) fn internal_failure() -> CallFailure {
    let sentence = "That did not work. Please try again later.";
    CallFailure::new(FailureCode::Failed, Value::Null, Some(sentence.to_owned()))
}

pub(super) fn timeout_failure() -> CallFailure {
    let sentence = "That took too long. Please try again later.";
    CallFailure::new(FailureCode::TooSlow, Value::Null, Some(sentence.to_owned()))
}
