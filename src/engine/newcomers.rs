//! Onboarding of newcomers. A newcomer is asked for a name, the admins are asked to approve the newcomer, and a
//! newcomer can do nothing else.

use jiff::Timestamp;
use serde_json::json;

use super::turn_end::{self, ReplyAddress};
use super::turn_start::{TurnStart, TurnStartOutcome};
use crate::conversation::people::first_request::FirstRequest;
use crate::conversation::people::onboarding::{self, OnboardingStep};
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::transcript::{Address, User, UserStatus};
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::approvals::{self, ApprovalKind, ApprovalOutcome, NewApproval};
use crate::store::confirmation::pending_action::{self, CloseReason};
use crate::store::conversation::conversations;
use crate::store::conversation::conversations::EndReason;
use crate::store::library::title_requests;
use crate::store::people::{join_requests, users};
use crate::store::queue::inbound_messages::{self, MessageOutcome};
use crate::store::queue::outbox;
use crate::store::turns::turn_lifecycle;
use crate::store::{Conn, QueryResult};

impl TurnStart<'_> {
    pub(super) fn receive_newcomer(
        &mut self,
        user: &User,
        event: &InboundEvent,
    ) -> QueryResult<TurnStartOutcome> {
        let stranger = join_requests::load_newcomer(self.conn, user.id)?;
        let room = join_requests::load_waiting_room(self.conn, self.now)?;
        match onboarding::next_onboarding_step(&stranger, room, &event.body, self.now) {
            OnboardingStep::Welcome => {
                if let Some(request) = FirstRequest::from_text(&event.body) {
                    join_requests::store_first_request(self.conn, user.id, &request, self.now)?;
                }
                self.ask_name(user, event, onboarding::WELCOME)
            }
            OnboardingStep::AskNameAgain => self.ask_name(user, event, onboarding::ASK_AGAIN),
            OnboardingStep::AskAdmins(name) => {
                join_requests::record_introduction(self.conn, user.id, &name, self.now)?;
                self.ask_admins_about(user, name.as_str(), event)?;
                self.skip_message(event, "introduced")
            }
            OnboardingStep::AskAdminsAgain => {
                join_requests::restart_wait(self.conn, user.id, self.now)?;
                self.ask_admins_about(user, &stranger.name.unwrap_or_default(), event)?;
                self.skip_message(event, "introduced")
            }
            OnboardingStep::NoReply => self.skip_message(event, "unknown_sender"),
        }
    }

    fn ask_name(&mut self, user: &User, event: &InboundEvent, text: &str) -> QueryResult<TurnStartOutcome> {
        join_requests::record_name_prompt(self.conn, user.id, self.now)?;
        let text = ReplyAddress::from_message(user, event).reply_message(text.to_owned());
        outbox::queue_message(self.conn, &text, self.now)?;
        inbound_messages::end_message(self.conn, event.id, MessageOutcome::Replied, self.now)?;
        Ok(TurnStartOutcome::Answered)
    }

    fn ask_admins_about(&mut self, user: &User, name: &str, event: &InboundEvent) -> QueryResult<()> {
        let new = NewApproval { user: user.id, kind: &ApprovalKind::Join, call: None };
        let mut codes = self.settings.codes.approval_codes();
        let approval = approvals::request_approval(self.conn, &new, &mut || codes.draw(), self.now)?;
        let question = onboarding::format_join_request(&user.phone, name, approval.code.as_str());
        let key = format!("approval:{}", approval.id);
        // Without a configured number, an admin who has never texted gets the message from the number that the newcomer
        // texted.
        let number = self.settings.number.as_ref().unwrap_or(&event.to);
        turn_end::notify_admins(self.conn, Some(number), &key, &question, self.now)
    }
}

/// Approves a user, and notifies a newcomer who has waited for the approval. `number` is our own number, if one is
/// configured.
pub fn approve_user(
    conn: &mut Conn,
    user: &User,
    by: Actor,
    number: Option<&Address>,
    now: Timestamp,
) -> QueryResult<()> {
    audit_user_change(conn, "approve", user, by, now)?;
    settle_requests(conn, user, (is_join, ApprovalOutcome::Approved), by, now)?;
    join_requests::end_wait(conn, user.id, UserStatus::Active, now)?;
    if user.status == UserStatus::Pending && users::load_last_address(conn, user.id)?.is_some() {
        let request = join_requests::load_first_request(conn, user.id, now)?;
        let text = onboarding::format_welcome(user.name.as_deref(), request.as_ref());
        let key = format!("admitted:{}", now.as_millisecond());
        let notice = ReplyAddress::load_for_user(conn, user, number)?.notification_message(&key, &text);
        outbox::queue_message_once(conn, &notice, now)?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockOutcome {
    Blocked,
    /// The user is the last admin, and no admin would be left to approve newcomers.
    LastAdmin,
}

/// Blocks a user, who gets no replies from now on: running turns end, queued messages are suppressed, and open prompts
/// and conversations are closed.
pub fn block_user(conn: &mut Conn, user: &User, by: Actor, now: Timestamp) -> QueryResult<BlockOutcome> {
    if users::is_last_admin(conn, user.id)? {
        return Ok(BlockOutcome::LastAdmin);
    }
    audit_user_change(conn, "block", user, by, now)?;
    settle_requests(conn, user, (is_join, ApprovalOutcome::Blocked), by, now)?;
    settle_requests(
        conn,
        user,
        (|matter: &ApprovalKind| !is_join(matter), ApprovalOutcome::Withdrawn),
        by,
        now,
    )?;
    join_requests::end_wait(conn, user.id, UserStatus::Blocked, now)?;
    join_requests::erase_first_request(conn, user.id)?;
    pending_action::close_pending_action(conn, user.id, CloseReason::Dropped, now)?;
    turn_lifecycle::request_cancel(conn, user.id, now)?;
    outbox::suppress_user_messages(conn, user.id, now)?;
    title_requests::withdraw_additions(conn, user.id, now)?;
    if let Some(open) = conversations::load_open_conversation(conn, user.id)? {
        conversations::end_conversation(conn, open.id, EndReason::Blocked, now)?;
    }
    Ok(BlockOutcome::Blocked)
}

fn audit_user_change(
    conn: &mut Conn,
    kind: &'static str,
    user: &User,
    by: Actor,
    now: Timestamp,
) -> QueryResult<()> {
    let entry = NewAuditEntry { actor: by, kind, subject: AuditSubject::User(user.id), detail: json!({}) };
    audit::record_change(conn, &entry, now)
}

/// Settles the open requests of a user for which `is_settled` returns true. The user is not notified. A request that
/// was settled in the meantime is unchanged.
fn settle_requests(
    conn: &mut Conn,
    user: &User,
    (is_settled, end): (impl Fn(&ApprovalKind) -> bool, ApprovalOutcome),
    by: Actor,
    now: Timestamp,
) -> QueryResult<()> {
    for open in
        approvals::load_open_approvals_about(conn, user.id)?.into_iter().filter(|open| is_settled(&open.kind))
    {
        approvals::settle_approval(conn, open.id, end, by.user(), now)?;
    }
    Ok(())
}

fn is_join(matter: &ApprovalKind) -> bool {
    *matter == ApprovalKind::Join
}
