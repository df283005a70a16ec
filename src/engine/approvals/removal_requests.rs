//! Denial of members' removal requests by an admin or the operator.

use jiff::Timestamp;
use serde_json::json;

use crate::conversation::deletion::deletion_messages;
use crate::conversation::routing::senders::Senders;
use crate::engine::reply_address::ReplyAddress;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::approvals::{
    self, Approval, ApprovalKind, ApprovalOutcome, SettleApprovalOutcome,
};
use crate::store::people::users;
use crate::store::queue::outbox;
use crate::store::{Conn, QueryResult};

/// Returns the idempotency key of the notification about the outcome of an approved removal request.
pub(crate) fn outcome_notification_key(request: i64) -> String {
    format!("approval:{request}:done")
}

/// Author of the denial of a removal request, with the reason that the member gets.
pub(crate) struct Denial<'a> {
    pub(crate) actor: Actor,
    pub(crate) reason: Option<&'a str>,
}

/// Denies a removal request. The title remains, and the member is notified, from one of `senders` if the member has not
/// texted yet. The operator gets no notification of a denied request of their own.
pub(crate) fn deny_request(
    conn: &mut Conn,
    request: &Approval,
    Denial { actor, reason }: Denial<'_>,
    senders: &Senders,
    now: Timestamp,
) -> QueryResult<SettleApprovalOutcome> {
    let ApprovalKind::Delete(item) = &request.kind else { return Ok(SettleApprovalOutcome::AlreadySettled) };
    if approvals::settle_approval(conn, request.id, ApprovalOutcome::Denied, actor.user(), now)?
        == SettleApprovalOutcome::AlreadySettled
    {
        return Ok(SettleApprovalOutcome::AlreadySettled);
    }
    let subject = AuditSubject::Approval(request.id);
    audit::record_change(
        conn,
        &NewAuditEntry { actor, kind: "deny_deletion", subject, detail: json!({}) },
        now,
    )?;
    if request.is_by_operator {
        return Ok(SettleApprovalOutcome::Settled);
    }
    let member = users::load_user(conn, request.user)?;
    let key = format!("approval:{}:denied", request.id);
    let address = ReplyAddress::load_for_user(conn, &member, senders)?;
    outbox::queue_message_once(
        conn,
        &address.notification_message(&key, &deletion_messages::format_removal_denied(item, reason)),
        now,
    )?;
    Ok(SettleApprovalOutcome::Settled)
}
