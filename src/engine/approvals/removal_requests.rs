//! Removal requests of members, and their settlement by an admin or the operator.

use jiff::Timestamp;
use serde_json::json;

use crate::conversation::deletion::deletion_messages;
use crate::conversation::transcript::Address;
use crate::engine::reply_address::ReplyAddress;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::approvals::{
    self, Approval, ApprovalKind, ApprovalOutcome, SettleApprovalOutcome,
};
use crate::store::people::users;
use crate::store::queue::outbox;
use crate::store::{Conn, QueryResult};

/// Returns the key of the notification about the outcome of an approved removal request.
pub(crate) fn done_key(wish: i64) -> String {
    format!("approval:{wish}:done")
}

/// Denies a removal request. The title remains, and the member is notified. `number` is our own number, if one is
/// configured.
pub(crate) fn deny_request(
    conn: &mut Conn,
    wish: &Approval,
    by: Actor,
    number: Option<&Address>,
    now: Timestamp,
) -> QueryResult<SettleApprovalOutcome> {
    let ApprovalKind::Delete(item) = &wish.kind else { return Ok(SettleApprovalOutcome::AlreadySettled) };
    if approvals::settle_approval(conn, wish.id, ApprovalOutcome::Denied, by.user(), now)?
        == SettleApprovalOutcome::AlreadySettled
    {
        return Ok(SettleApprovalOutcome::AlreadySettled);
    }
    let subject = AuditSubject::Approval(wish.id);
    audit::record_change(
        conn,
        &NewAuditEntry { actor: by, kind: "deny_deletion", subject, detail: json!({}) },
        now,
    )?;
    let member = users::load_user(conn, wish.user)?;
    let key = format!("approval:{}:denied", wish.id);
    let way = ReplyAddress::load_for_user(conn, &member, number)?;
    outbox::queue_message_once(
        conn,
        &way.notification_message(&key, &deletion_messages::format_removal_denied(item)),
        now,
    )?;
    Ok(SettleApprovalOutcome::Settled)
}
