//! Results of a confirmed deletion: the outcome for one frozen item, worded for the engine and the model.

use serde_json::json;

use super::ToolError;
use super::approval::ApprovedCall;
use super::formatting::format_media_title;
use crate::conversation::deletion::target::{DeletionTarget, TargetFingerprint};
use crate::conversation::transcript::{CallFailure, CallResult, FailureCode};

pub(super) fn frozen_item(call: &ApprovedCall) -> Result<&DeletionTarget, ToolError> {
    call.item().ok_or_else(|| ToolError::Fatal(anyhow::anyhow!("run a deletion without its frozen item")))
}

/// Returns whether an item still matches the one in the confirmation prompt: same title and path, and a size within a
/// tenth.
pub(super) fn is_same_title(asked: &TargetFingerprint, current: &TargetFingerprint) -> bool {
    let off = asked.size_bytes.abs_diff(current.size_bytes);
    asked.title == current.title && asked.path == current.path && off <= asked.size_bytes / 10
}

pub(super) fn already_gone_result(item: &DeletionTarget) -> CallResult {
    deletion_result(item, "already_gone")
}

pub(super) fn deleted_result(item: &DeletionTarget, size_bytes: u64) -> CallResult {
    let freed_bytes = if item.delete_files { size_bytes } else { 0 };
    let mut result = deletion_result(item, "deleted");
    result.for_model["freed_bytes"] = json!(freed_bytes);
    result
}

fn deletion_result(item: &DeletionTarget, status: &str) -> CallResult {
    let TargetFingerprint { title, year, .. } = &item.fingerprint;
    CallResult {
        for_model: json!({ "status": status, "title": title, "year": year }),
        for_user: format_media_title(title, *year),
        shown: Vec::new(),
    }
}

pub(super) fn changed_failure(item: &DeletionTarget) -> CallFailure {
    let TargetFingerprint { title, year, .. } = &item.fingerprint;
    CallFailure::new(
        FailureCode::Changed,
        json!({ "title": title, "year": year, "hint": "it was not deleted; find it again and ask again" }),
        Some(format!(
            "{} has changed since I asked, so I did not delete it.",
            format_media_title(title, *year)
        )),
    )
}

/// Returns the failure of a deletion whose request succeeded but that left the item in the library.
pub(super) fn still_there_failure(item: &DeletionTarget) -> CallFailure {
    let TargetFingerprint { title, year, .. } = &item.fingerprint;
    CallFailure::new(
        FailureCode::StillThere,
        json!({ "title": title, "year": year }),
        Some(format!("{} is still there.", format_media_title(title, *year))),
    )
}

/// Returns the result of a write that a check found not carried out.
fn not_done_failure(sentence: &str) -> CallFailure {
    let hint = "a check showed that it was not done; say so";
    CallFailure::new(FailureCode::NotDone, json!({ "hint": hint }), Some(sentence.to_owned()))
}

pub(super) fn nothing_done() -> CallFailure {
    not_done_failure("That did not work. Please try again later.")
}

/// Returns a result such as `Radarr could not do it. Dune (2021) was not added.`
pub(super) fn not_added(service: &str, title: &str) -> CallFailure {
    not_done_failure(&format!("{service} could not do it. {title} was not added."))
}

/// Returns the result of a change that takes several requests, of which some may have been carried out.
pub(super) fn not_changed(title: Option<&str>) -> CallFailure {
    let whereabouts = title.map(|title| format!(" {title}")).unwrap_or_default();
    not_done_failure(&format!("Not all of that could be done. Please check{whereabouts}."))
}

/// Returns the refusal for an item whose size is unknown, because a confirmation prompt must state the size.
pub(super) fn size_unknown(about: &TargetFingerprint) -> CallFailure {
    let name = format_media_title(&about.title, about.year);
    CallFailure::new(
        FailureCode::SizeUnknown,
        json!({ "title": about.title, "hint": "Sonarr does not tell the size of its files: it may be too old" }),
        Some(format!("I can't see how big that is, so I leave it: {name}. An admin has to look at it.")),
    )
}
