//! Approval and blocking of users, with the requests, messages and conversations that each change closes, and a change of
//! the operator's number.

use jiff::Timestamp;
use serde_json::json;

use super::room_access;
use crate::conversation::people::onboarding;
use crate::conversation::routing::rooms as room_texts;
use crate::conversation::routing::senders::Senders;
use crate::conversation::transcript::{PhoneNumber, User, UserId, UserRole, UserStatus};
use crate::engine::reply_address::ReplyAddress;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::approvals::{self, ApprovalKind, ApprovalOutcome};
use crate::store::confirmation::pending_action::{self, CloseReason};
use crate::store::conversation::conversations::{self, EndReason};
use crate::store::library::title_requests;
use crate::store::people::addresses::{self, OptTarget};
use crate::store::people::join_requests;
use crate::store::people::rooms;
use crate::store::people::user_admin::{self, ChangeUserOutcome, UserChanges};
use crate::store::people::users::{self, FirstContactRole};
use crate::store::queue::outbox;
use crate::store::queue::suppression;
use crate::store::turns::turn_lifecycle;
use crate::store::{Conn, QueryResult};

/// Approves a user, and notifies a newcomer who has waited for the approval. `senders` are our addresses if the user has
/// not texted yet.
pub fn approve_user(
    conn: &mut Conn,
    user: &User,
    actor: Actor,
    senders: &Senders,
    now: Timestamp,
) -> QueryResult<()> {
    admit_silently(conn, user, actor, now)?;
    if rooms::load_room(conn, user.id)?.is_some() {
        addresses::opt_in(conn, OptTarget { user: user.id, address: None }, now, now)?;
        let address = ReplyAddress::load_for_room(conn, user, senders)?;
        let greeting = address.notification_message("greeting", room_texts::GREETING);
        return outbox::queue_message_once(conn, &greeting, now);
    }
    if user.status == UserStatus::Pending && addresses::has_sent_message(conn, user.id)? {
        let request = join_requests::load_first_request(conn, user.id, now)?;
        let text = onboarding::format_welcome(user.name.as_deref(), request.as_ref());
        let key = format!("admitted:{}", now.as_millisecond());
        let notification =
            ReplyAddress::load_for_user(conn, user, senders)?.notification_message(&key, &text);
        outbox::queue_message_once(conn, &notification, now)?;
    }
    Ok(())
}

/// Makes a newcomer an active user without a notification.
pub(in crate::engine) fn admit_silently(
    conn: &mut Conn,
    user: &User,
    actor: Actor,
    now: Timestamp,
) -> QueryResult<()> {
    audit_user_change(conn, "approve", user, actor, now)?;
    settle_requests(conn, user, (is_join, ApprovalOutcome::Approved), actor, now)?;
    join_requests::end_wait(conn, user.id, UserStatus::Active, now)
}

/// Outcome of blocking a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockOutcome {
    Blocked,
    /// The user is the last admin, and no admin would be left to approve newcomers.
    LastAdmin,
}

/// Blocks a user, who gets no replies from now on: running turns end, queued messages are suppressed, and open prompts
/// and conversations are closed.
pub fn block_user(conn: &mut Conn, user: &User, actor: Actor, now: Timestamp) -> QueryResult<BlockOutcome> {
    if users::is_last_admin(conn, user.id)? {
        return Ok(BlockOutcome::LastAdmin);
    }
    audit_user_change(conn, "block", user, actor, now)?;
    settle_requests(conn, user, (is_join, ApprovalOutcome::Blocked), actor, now)?;
    settle_requests(
        conn,
        user,
        (|kind: &ApprovalKind| !is_join(kind), ApprovalOutcome::Withdrawn),
        actor,
        now,
    )?;
    join_requests::end_wait(conn, user.id, UserStatus::Blocked, now)?;
    if rooms::load_room(conn, user.id)?.is_some() {
        room_access::close_room(conn, user.id, now, now)?;
    }
    join_requests::erase_first_request(conn, user.id)?;
    pending_action::close_pending_action(conn, user.id, CloseReason::Dropped, now)?;
    turn_lifecycle::request_cancel(conn, user.id, now)?;
    suppression::suppress_messages_to(conn, OptTarget { user: user.id, address: None }, now)?;
    title_requests::withdraw_additions(conn, user.id, now)?;
    conversations::end_agent_conversations(conn, user.id, EndReason::Blocked, now)?;
    if let Some(open) = conversations::load_open_conversation(conn, user.id)? {
        conversations::end_conversation(conn, open.id, EndReason::Blocked, now)?;
    }
    Ok(BlockOutcome::Blocked)
}

/// Makes a changed number of the operator an active admin. The earlier number is blocked unless it has texted, because a
/// mistyped number may belong to somebody else.
pub fn change_operator_number(
    conn: &mut Conn,
    (earlier, number): (Option<&PhoneNumber>, &PhoneNumber),
    senders: &Senders,
    now: Timestamp,
) -> QueryResult<()> {
    let operator = users::ensure_user(conn, number, FirstContactRole::Admin, now)?;
    let operator = users::load_user(conn, operator)?;
    if operator.status != UserStatus::Active {
        approve_user(conn, &operator, Actor::Dialarr, senders, now)?;
    }
    if operator.rights.role != UserRole::Admin {
        set_role(conn, operator.id, UserRole::Admin, now)?;
    }
    let Some(earlier) = earlier else { return Ok(()) };
    let Some(user) = users::find_user_by_phone(conn, earlier)? else { return Ok(()) };
    if user.rights.role != UserRole::Admin || addresses::has_sent_message(conn, user.id)? {
        return Ok(());
    }
    match set_role(conn, user.id, UserRole::Member, now)? {
        ChangeUserOutcome::Changed => block_user(conn, &user, Actor::Dialarr, now).map(drop),
        ChangeUserOutcome::LastAdmin => Ok(()),
    }
}

fn set_role(conn: &mut Conn, user: UserId, role: UserRole, now: Timestamp) -> QueryResult<ChangeUserOutcome> {
    let changes = UserChanges { role: Some(role), ..UserChanges::default() };
    user_admin::change_user(conn, user, &changes, Actor::Dialarr, now)
}

fn audit_user_change(
    conn: &mut Conn,
    kind: &'static str,
    user: &User,
    actor: Actor,
    now: Timestamp,
) -> QueryResult<()> {
    let entry = NewAuditEntry { actor, kind, subject: AuditSubject::User(user.id), detail: json!({}) };
    audit::record_change(conn, &entry, now)
}

/// Settles the open requests of a user that match `is_selected`, without a notification of the user.
fn settle_requests(
    conn: &mut Conn,
    user: &User,
    (is_selected, outcome): (impl Fn(&ApprovalKind) -> bool, ApprovalOutcome),
    actor: Actor,
    now: Timestamp,
) -> QueryResult<()> {
    for open in approvals::load_open_approvals_about(conn, user.id)?
        .into_iter()
        .filter(|open| is_selected(&open.kind))
    {
        approvals::settle_approval(conn, open.id, outcome, actor.user(), now)?;
    }
    Ok(())
}

fn is_join(kind: &ApprovalKind) -> bool {
    *kind == ApprovalKind::Join
}
