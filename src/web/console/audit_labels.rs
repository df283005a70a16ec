//! Labels of the rows of the audit log.

use serde_json::Value;

use crate::conversation::people::facts::{FORGOT, NOTED};
use crate::conversation::title_requests::{FOLLOWING, NOT_FOLLOWING};

/// Kinds of audit rows with their labels, in the order of the filter.
pub(super) const KINDS: [(&str, &str); 65] = [
    ("write", "Started a change"),
    ("write_done", "Made a change"),
    ("write_settled", "Confirmed a change"),
    ("write_unchanged", "Found nothing to change"),
    ("write_queued", "Queued an addition"),
    ("write_failed", "Failed to make a change"),
    ("write_unknown", "Started a change, outcome unknown"),
    ("refused", "Refused a change"),
    ("delete", "Started a deletion"),
    ("delete_done", "Finished a deletion"),
    ("deleted", "Deleted"),
    ("delete_unchanged", "Found it already deleted"),
    ("delete_failed", "Failed to delete"),
    ("delete_unknown", "Started a deletion, outcome unknown"),
    ("approve", "Approved a user"),
    ("block", "Blocked a user"),
    ("suspend_codes", "Suspended deletions and approvals by text"),
    ("lift_suspension", "Allowed deletions and approvals by text again"),
    ("link", "Linked a phone or account"),
    ("unlink", "Unlinked a phone or account"),
    ("link_account", "Linked an account of a media server"),
    ("unlink_account", "Unlinked an account of a media server"),
    ("merge", "Merged two users"),
    ("set", "Changed settings"),
    ("configure", "Changed the configuration"),
    ("same_server", "Stated that a moved server is the same one"),
    ("other_server", "Stated that a moved server is another one"),
    ("quota", "Changed a limit"),
    ("approve_deletion", "Approved a deletion"),
    ("deny_deletion", "Denied a deletion"),
    ("approve_title", "Approved a title over a cap"),
    ("deny_title", "Denied a title over a cap"),
    ("approve_question", "Answered a question with yes"),
    ("reject_question", "Answered a question with no"),
    ("change_room", "Changed a group"),
    ("cancel_turn", "Canceled a turn"),
    ("resume_turn", "Resumed a turn"),
    ("reopen", "Reopened a conversation"),
    ("clear", "Ended a conversation"),
    ("test_conversation", "Started a test conversation"),
    ("text_as", "Texted as a user"),
    ("write_to", "Wrote to a user"),
    ("ask_deletion", "Asked to delete a title"),
    ("decline", "Declined a request"),
    ("tell_everyone", "Sent an announcement"),
    ("pause", "Paused replies"),
    ("resume", "Resumed replies"),
    ("forget", "Erased a user's data"),
    ("forget_all", "Erased a user's messages"),
    ("note_fact", "Saved a fact"),
    ("forget_fact", "Deleted a fact"),
    ("dismiss_fact", "Dismissed a suggested fact"),
    ("export", "Exported a user's data"),
    ("send_again", "Resent a text"),
    ("sign_in_link", "Created a sign-in link"),
    ("sign_in", "Signed in"),
    ("sign_out", "Signed out"),
    ("sign_in_failed", "Failed to sign in"),
    ("password", "Changed the password"),
    ("memory_added", "Added an answer to memory"),
    ("memory_shared", "Shared an answer with everyone"),
    ("memory_kept", "Kept an answer private"),
    ("memory_erased", "Removed an answer from memory"),
    ("key_made", "Created an API key"),
    ("key_revoked", "Revoked an API key"),
];

/// Label of a change by the status of the tool's result, which tells whether the change was made or unnecessary.
pub(super) fn change_label(kind: &str, detail: &Value) -> Option<&'static str> {
    let status = detail["status"].as_str()?;
    match (kind, status) {
        ("write_done" | "write_settled", "added") => Some("Added"),
        ("write_done" | "write_settled", "changed") => Some("Changed"),
        ("write_done" | "write_settled", "being_looked_for") => Some("Started a search"),
        ("write_done" | "write_settled", "wanted_not_out_yet") => Some("Marked as wanted"),
        ("write_done" | "write_settled", "wanted_but_search_not_begun") => {
            Some("Marked as wanted, without a search")
        }
        ("write_done" | "write_settled", "asked") => Some("Asked the admins to delete"),
        ("write_done" | "write_settled", FOLLOWING) => Some("Asked for a notification"),
        ("write_done" | "write_settled", NOT_FOLLOWING) => Some("Turned a notification off"),
        ("write_done" | "write_settled", NOTED) => Some("Saved a fact"),
        ("write_done" | "write_settled", FORGOT) => Some("Deleted a fact"),
        // Databases of earlier builds record these as changes.
        ("write_done" | "write_unchanged", "already_exists") => Some("Found it in the library"),
        ("write_done" | "write_unchanged", "unchanged") => Some("Found it as requested"),
        ("write_done" | "write_unchanged", "already_asked") => Some("Had already asked the admins"),
        ("write_done" | "write_unchanged", "ready") => Some("Found it ready to watch"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::change_label;

    #[test]
    fn addition_without_a_change_is_not_labeled_a_change() {
        for kind in ["write_done", "write_unchanged"] {
            let label = change_label(kind, &json!({ "status": "already_exists" }));
            assert_eq!(label, Some("Found it in the library"));
        }
        assert_eq!(change_label("write_done", &json!({ "status": "added" })), Some("Added"));
        assert_eq!(change_label("approve", &json!({ "status": "added" })), None);
    }
}
