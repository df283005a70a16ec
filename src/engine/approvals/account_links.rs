//! Links of accounts at media servers that users asked for, and the decisions of admins about them.

use jiff::Timestamp;

use crate::conversation::people::naming;
use crate::conversation::routing::senders::Senders;
use crate::conversation::transcript::{CallRow, User, UserId};
use crate::conversation::viewer_accounts::{self, ViewerAccount};
use crate::engine::approvals::requests;
use crate::engine::reply_address::{self, ReplyAddress};
use crate::engine::settings::HouseholdSettings;
use crate::store::audit::Actor;
use crate::store::confirmation::approvals::{
    self, Approval, ApprovalKind, ApprovalOutcome, SettleApprovalOutcome,
};
use crate::store::people::users;
use crate::store::people::viewer_accounts::{self as stored_accounts, LinkAccountOutcome};
use crate::store::queue::outbox;
use crate::store::{Conn, QueryResult};

/// Asks the admins, each with the code, to link an account to the user of a call.
pub(crate) fn request_link(
    conn: &mut Conn,
    (user, call): (&User, CallRow),
    account: &ViewerAccount,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    let kind = ApprovalKind::LinkAccount(account.clone());
    let approval = requests::request_approval(conn, (user.id, Some(call)), &kind, settings, now)?;
    if user.test {
        // Test users must not cause messages to real phones.
        return Ok(());
    }
    let requester = naming::display_name(user);
    let message = viewer_accounts::format_link_request(&requester, account, approval.code.as_str());
    reply_address::notify_admins(conn, &settings.senders, &format!("approval:{}", approval.id), &message, now)
}

/// Decision of an admin on a request for a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkDecision {
    Approve,
    Deny,
}

/// Settles a request for a link, and notifies the user who asked, unless it is the admin. Returns the reply to the admin.
pub(crate) fn decide_link(
    conn: &mut Conn,
    (request, account): (&Approval, &ViewerAccount),
    (admin, decision): (UserId, LinkDecision),
    senders: &Senders,
    now: Timestamp,
) -> QueryResult<String> {
    let outcome = match decision {
        LinkDecision::Approve => ApprovalOutcome::Approved,
        LinkDecision::Deny => ApprovalOutcome::Denied,
    };
    if approvals::settle_approval(conn, request.id, outcome, Some(admin), now)?
        == SettleApprovalOutcome::AlreadySettled
    {
        return Ok("That was already answered.".to_owned());
    }
    let member = users::load_user(conn, request.user)?;
    let name = naming::display_name(&member);
    let (to_member, to_admin) = match decision {
        LinkDecision::Deny => {
            (viewer_accounts::format_link_denied(account), format!("OK, {name} is not linked."))
        }
        LinkDecision::Approve => {
            match stored_accounts::link_account(conn, member.id, account, Actor::User(admin), now)? {
                LinkAccountOutcome::Linked | LinkAccountOutcome::Known => {
                    (viewer_accounts::format_linked(account), format!("{name} is linked now."))
                }
                LinkAccountOutcome::OtherAccount => {
                    let other = viewer_accounts::format_other_account(account);
                    (other.clone(), other)
                }
                LinkAccountOutcome::OtherUser(_) => {
                    let taken = viewer_accounts::format_link_taken(account);
                    (taken.clone(), taken)
                }
            }
        }
    };
    if member.id == admin {
        return Ok(to_member);
    }
    let address = ReplyAddress::load_for_user(conn, &member, senders)?;
    let message = address.notification_message(&format!("approval:{}:decided", request.id), &to_member);
    outbox::queue_message_once(conn, &message, now)?;
    Ok(to_admin)
}
