//! Results of a confirmed deletion of one frozen item, and failures of writes that a check found not done.

use serde_json::json;

use super::ToolError;
use super::approval::ApprovedCall;
use super::formatting::format_media_title;
use crate::conversation::deletion::target::{DeletionTarget, TargetFingerprint};
use crate::conversation::transcript::{CallFailure, CallResult, FailureCode};

pub(super) fn frozen_item(call: &ApprovedCall) -> Result<&DeletionTarget, ToolError> {
    call.item().ok_or_else(|| ToolError::Fatal(anyhow::anyhow!("run a deletion without its frozen item")))
}

/// Returns whether an item still matches the one in the confirmation prompt: the same title and path, and a size that
/// differs by at most 10%.
pub(super) fn is_same_title(prompted: &TargetFingerprint, current: &TargetFingerprint) -> bool {
    let size_difference = prompted.size_bytes.abs_diff(current.size_bytes);
    prompted.title == current.title
        && prompted.path == current.path
        && size_difference <= prompted.size_bytes / 10
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

/// Builds the failure for a deletion request that succeeded but left the item in the library.
pub(super) fn still_there_failure(item: &DeletionTarget) -> CallFailure {
    let TargetFingerprint { title, year, .. } = &item.fingerprint;
    CallFailure::new(
        FailureCode::StillThere,
        json!({ "title": title, "year": year, "hint": "it was not deleted: an admin has to look at it" }),
        Some(format!("{} is still there.", format_media_title(title, *year))),
    )
}

/// Builds the failure for a write that a check found not done.
fn not_done_failure(sentence: &str) -> CallFailure {
    let hint = "a check showed that it was not done; say so";
    CallFailure::new(FailureCode::NotDone, json!({ "hint": hint }), Some(sentence.to_owned()))
}

pub(super) fn not_done() -> CallFailure {
    not_done_failure("That did not work. Please try again later.")
}

/// Builds a failure such as `Radarr could not do it. Dune (2021) was not added.`
pub(super) fn not_added(service: &str, title: &str) -> CallFailure {
    not_done_failure(&format!("{service} could not do it. {title} was not added."))
}

/// Builds the failure for a change that takes several requests, some of which may have succeeded.
pub(super) fn not_changed(title: Option<&str>) -> CallFailure {
    let title_suffix = title.map(|title| format!(" {title}")).unwrap_or_default();
    not_done_failure(&format!("Not all of that could be done. Please check{title_suffix}."))
}

/// Builds the failure for an item of unknown size. A confirmation prompt must state the size.
pub(super) fn size_unknown(fingerprint: &TargetFingerprint) -> CallFailure {
    let name = format_media_title(&fingerprint.title, fingerprint.year);
    CallFailure::new(
        FailureCode::SizeUnknown,
        json!({ "title": fingerprint.title, "hint": "Sonarr does not tell the size of its files: it may be too old" }),
        Some(format!("I can't see how big {name} is, so I won't delete it. An admin has to check it.")),
    )
}
