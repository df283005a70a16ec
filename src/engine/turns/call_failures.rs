//! Failures of tool calls that the engine itself reports.

use serde_json::{Value, json};

use crate::conversation::transcript::CallFailure;

/// Failure code of a write with an unknown outcome.
pub(crate) const OUTCOME_UNKNOWN: &str = "outcome_unknown";

pub(super) fn unknown_tool_failure(called: &str, offered: &[&str]) -> CallFailure {
    call_failure("unknown_tool", json!({ "error": "unknown_tool", "called": called, "tools": offered }), None)
}

pub(super) fn internal_failure() -> CallFailure {
    call_failure("failed", json!({ "error": "failed" }), Some("That did not work. Please try again later."))
}

pub(super) fn timeout_failure() -> CallFailure {
    call_failure(
        "too_slow",
        json!({ "error": "too_slow" }),
        Some("That took too long. Please try again later."),
    )
}

pub(super) fn outcome_unknown_failure() -> CallFailure {
    call_failure(
        OUTCOME_UNKNOWN,
        json!({ "error": OUTCOME_UNKNOWN, "hint": "it may or may not have happened; say so" }),
        Some("I could not find out whether that worked. Please check."),
    )
}

fn call_failure(code: &str, for_model: Value, for_user: Option<&str>) -> CallFailure {
    CallFailure { code: code.to_owned(), for_model, for_user: for_user.map(str::to_owned) }
}
