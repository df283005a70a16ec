//! Requests for titles over the caps of people, and the decisions of parents about them. An approved title is added as a
//! deferred addition of the person.

use jiff::Timestamp;
use serde_json::json;

use crate::conversation::people::naming;
use crate::conversation::title_approvals::{
    TitleOverCap, format_title_decided, format_title_denied, format_title_request,
};
use crate::conversation::transcript::{CallRow, User};
use crate::engine::approvals::requests;
use crate::engine::reply_address::{self, ReplyAddress};
use crate::engine::settings::HouseholdSettings;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::approvals::{
    self, Approval, ApprovalKind, ApprovalOutcome, SettleApprovalOutcome,
};
use crate::store::library::title_requests::{self, NewDeferredAddition};
use crate::store::people::{age_limits, users};
use crate::store::queue::outbox;
use crate::store::{Conn, QueryResult};

/// Asks the parents, each with the code, for a title.
pub(crate) fn request_title(
    conn: &mut Conn,
    (user, call): (&User, CallRow),
    over_cap: &TitleOverCap,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    let kind = ApprovalKind::Title(Box::new(over_cap.clone()));
    let approval = requests::request_approval(conn, (user.id, Some(call)), &kind, settings, now)?;
    if user.test {
        // Test users must not cause messages to real phones.
        return Ok(());
    }
    let requester = naming::display_name(user);
    let message = format_title_request(&requester, over_cap, approval.code.as_str());
    let parents = age_limits::load_parents(conn)?;
    let key = format!("approval:{}", approval.id);
    reply_address::notify_users(conn, (&settings.senders, &parents), (&key, &message), now)
}

/// Settles a request for a title. An approved title is queued as an addition of the person, who is notified of its
/// outcome. Returns the reply to the parent.
pub(crate) fn decide_title(
    conn: &mut Conn,
    (request, over_cap): (&Approval, &TitleOverCap),
    (parent, outcome): (&User, ApprovalOutcome),
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<String> {
    if approvals::settle_approval(conn, request.id, outcome, Some(parent.id), now)?
        == SettleApprovalOutcome::AlreadySettled
    {
        return Ok("That was already answered.".to_owned());
    }
    let is_approved = outcome == ApprovalOutcome::Approved;
    let kind = if is_approved { "approve_title" } else { "deny_title" };
    let (actor, subject) = (Actor::User(parent.id), AuditSubject::Approval(request.id));
    audit::record_change(conn, &NewAuditEntry { actor, kind, subject, detail: json!({}) }, now)?;
    let person = users::load_user(conn, request.user)?;
    if is_approved {
        let TitleOverCap { wanted, arguments, .. } = over_cap;
        age_limits::approve_title(conn, person.id, (wanted.kind, wanted.catalog_id), now)?;
        if let Some(call) = approvals::load_requesting_call(conn, request.id)? {
            let addition = NewDeferredAddition { user: person.id, call, title: wanted, arguments };
            title_requests::queue_addition(conn, &addition, now)?;
        }
    } else {
        let text = format_title_denied(&naming::display_name(parent));
        let address = ReplyAddress::load_for_user(conn, &person, &settings.senders)?;
        let key = format!("approval:{}:decided", request.id);
        outbox::queue_message_once(conn, &address.notification_message(&key, &text), now)?;
    }
    Ok(format_title_decided(over_cap, &naming::display_name(&person), is_approved))
}
