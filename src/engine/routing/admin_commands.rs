//! Admin commands sent as messages, and the pause that admins can start.

use serde_json::json;

use super::code_guesses::{SUSPENDED, SUSPENDED_NOW};
use super::turn_start::{TurnStart, TurnStartOutcome, UserContext};
use crate::conversation::deletion::deletion_messages;
use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::grammar::triage::TriageDecision;
use crate::conversation::people::admin_commands::{
    self, AdminCommand, AdminDecision, ApprovalCode, QuotaCommand,
};
use crate::conversation::people::{naming, onboarding};
use crate::conversation::rate_limit::RateLimit;
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::routing::message_origin::MessageOrigin;
use crate::conversation::routing::route;
use crate::conversation::routing::transport::MessageTransport;
use crate::conversation::transcript::{Responder, User, UserId, UserRole, UserStatus};
use crate::engine::approvals::user_access::{self, BlockOutcome};
use crate::engine::approvals::{expiry, removal_requests};
use crate::engine::reply_address::ReplyAddress;
use crate::store::QueryResult;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::approvals::{
    self, Approval, ApprovalKind, ApprovalOutcome, CodeLookup, NewApproval, SettleApprovalOutcome,
};
use crate::store::confirmation::code_misses::MissOutcome;
use crate::store::confirmation::pending_action;
use crate::store::library::quotas::{self, QuotaOverride};
use crate::store::memory::groups::{self, SharedMessage};
use crate::store::people::pauses::{self, PauseOutcome};
use crate::store::people::{join_requests as waiting, users};
use crate::store::queue::inbound_messages;
use crate::store::queue::outbox;
use crate::store::turns::turn_lifecycle::{TurnKind, TurnPlan};
use crate::tools::remove_media::REMOVE_MEDIA;

/// Maximum number of approvals that one message lists.
const MAX_LISTED_APPROVALS: usize = 12;
/// Maximum number of waiting messages per user that are checked for a pause notification.
const MAX_CHECKED_MESSAGES: i64 = 20;

impl TurnStart<'_> {
    pub(super) fn run_admin_command(
        &mut self,
        admin: &User,
        context: &UserContext,
        events: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        let text = match admin_commands::parse_admin_command(&events[0].body) {
            Some(AdminCommand::Decide(verdict, Some(code))) => {
                return self.decide_approval(admin, context, events, (verdict, &code));
            }
            Some(AdminCommand::Decide(_, None)) => self.list_open_approvals(admin)?,
            Some(AdminCommand::Users) => self.list_users(admin)?,
            Some(AdminCommand::Quota(quota)) => self.change_quota(admin, quota)?,
            Some(AdminCommand::Pause) => self.pause_assistant(admin)?,
            Some(AdminCommand::Resume) => {
                let text = self.resume_assistant(admin)?;
                self.answer_and_drop_prompt(admin, context, events, text)?;
                return Ok(TurnStartOutcome::Resumed);
            }
            Some(AdminCommand::Announce(words)) => self.announce_to_everyone(admin, words, &events[0])?,
            // The route came from the same parser, so this arm is not reached.
            None => "I did not understand that.".to_owned(),
        };
        self.answer_and_drop_prompt(admin, context, events, &text)
    }

    fn decide_approval(
        &mut self,
        admin: &User,
        context: &UserContext,
        events: &[InboundEvent],
        (verdict, code): (AdminDecision, &ApprovalCode),
    ) -> QueryResult<TurnStartOutcome> {
        if self.is_suspended(admin, &events[0])? {
            return self.answer_and_drop_prompt(admin, context, events, SUSPENDED);
        }
        let text = match approvals::find_approval_by_code(self.conn, code, self.now)? {
            CodeLookup::Unknown => {
                approvals::count_wrong_code(self.conn)?;
                match self.count_wrong_code(admin, &events[0])? {
                    MissOutcome::Counted => {
                        "No request has that code. Text USERS to see what is open.".to_owned()
                    }
                    MissOutcome::Suspended => SUSPENDED_NOW.to_owned(),
                }
            }
            CodeLookup::Disabled => {
                "That code does not work any more. Text USERS for a fresh one.".to_owned()
            }
            CodeLookup::Ended(end, by) => self.format_approval_end(end, by)?,
            CodeLookup::Open(approval) => match (&approval.kind, verdict) {
                (ApprovalKind::Delete(item), AdminDecision::Approve) => {
                    return self.approve_deletion(admin, context, events, (approval.id, item));
                }
                (ApprovalKind::Delete(item), AdminDecision::Deny) => {
                    self.deny_deletion(admin, &approval, item)?
                }
                (ApprovalKind::Join, AdminDecision::Approve) => {
                    let newcomer = users::load_user(self.conn, approval.user)?;
                    let (by, number) = (Actor::User(admin.id), self.settings.number.as_ref());
                    user_access::approve_user(self.conn, &newcomer, by, number, self.now)?;
                    format!("{} can text me now.", naming::display_name(&newcomer))
                }
                (ApprovalKind::Join, AdminDecision::Block) => {
                    let newcomer = users::load_user(self.conn, approval.user)?;
                    match user_access::block_user(self.conn, &newcomer, Actor::User(admin.id), self.now)? {
                        BlockOutcome::Blocked => format!("Blocked {}.", newcomer.phone.format_grouped()),
                        BlockOutcome::LastAdmin => "The last admin cannot be blocked.".to_owned(),
                    }
                }
                (ApprovalKind::Join, AdminDecision::Deny)
                | (ApprovalKind::Delete(_), AdminDecision::Block) => {
                    self.format_approval_request(&approval)?
                }
            },
        };
        self.answer_and_drop_prompt(admin, context, events, &text)
    }

    fn format_approval_end(&mut self, end: ApprovalOutcome, by: Option<UserId>) -> QueryResult<String> {
        let by = match by {
            Some(admin) => format!(" by {}", naming::display_name(&users::load_user(self.conn, admin)?)),
            None => String::new(),
        };
        Ok(match end {
            ApprovalOutcome::Approved => format!("That was approved{by} already."),
            ApprovalOutcome::Denied => format!("That was denied{by} already."),
            ApprovalOutcome::Blocked => format!("That number was blocked{by} already."),
            ApprovalOutcome::Expired => "That request has expired.".to_owned(),
            ApprovalOutcome::Withdrawn => "That request was withdrawn.".to_owned(),
            ApprovalOutcome::Replaced => "There is another code for that. Text USERS to see it.".to_owned(),
        })
    }

    /// Formats the exact text of the approval request for the admins.
    fn format_approval_request(&mut self, approval: &Approval) -> QueryResult<String> {
        let about = users::load_user(self.conn, approval.user)?;
        let code = approval.code.as_str();
        Ok(match &approval.kind {
            ApprovalKind::Join => {
                onboarding::format_join_request(&about.phone, about.name.as_deref().unwrap_or_default(), code)
            }
            ApprovalKind::Delete(item) => {
                deletion_messages::format_removal_request(&naming::display_name(&about), item, code)
            }
        })
    }

    /// Starts a deletion that an admin approved. The admin's decision counts as the confirmation: the pending action is
    /// claimed once, and the deletion begins as a turn of the admin.
    fn approve_deletion(
        &mut self,
        admin: &User,
        context: &UserContext,
        events: &[InboundEvent],
        (id, item): (i64, &DeletionTarget),
    ) -> QueryResult<TurnStartOutcome> {
        if approvals::settle_approval(self.conn, id, ApprovalOutcome::Approved, Some(admin.id), self.now)?
            == SettleApprovalOutcome::TooLate
        {
            return self.answer_and_drop_prompt(admin, context, events, "That was answered already.");
        }
        self.audit_admin_action(admin, "approve_deletion", AuditSubject::Approval(id))?;
        let mut plan = TurnPlan::for_responder(Responder::Keyword);
        plan.preface = self.drop_prompt(admin, context, events)?;
        let active_turn = self.open_turn(admin, TurnKind::Confirm, &plan, events)?;
        let approved = pending_action::ApprovedDeletion {
            turn: active_turn.id,
            yes: events[0].id,
            tool: REMOVE_MEDIA,
            item,
        };
        let call = pending_action::create_approved_call(self.conn, &approved, self.now)?;
        approvals::link_executing_call(self.conn, id, call)?;
        Ok(TurnStartOutcome::Turn(active_turn))
    }

    fn deny_deletion(
        &mut self,
        admin: &User,
        approval: &Approval,
        item: &DeletionTarget,
    ) -> QueryResult<String> {
        let number = self.settings.number.as_ref();
        if removal_requests::deny_request(self.conn, approval, Actor::User(admin.id), number, self.now)?
            == SettleApprovalOutcome::TooLate
        {
            return Ok("That was answered already.".to_owned());
        }
        let member = users::load_user(self.conn, approval.user)?;
        Ok(format!(
            "OK, {} stays. I told {}.",
            deletion_messages::format_target_name(item),
            naming::display_name(&member)
        ))
    }

    /// Lists the open approvals for an admin, each with a valid code.
    pub(super) fn list_open_approvals(&mut self, admin: &User) -> QueryResult<String> {
        expiry::expire_approvals(self.conn, self.settings, self.now)?;
        for stranger in waiting::load_named_newcomers(self.conn)? {
            if approvals::load_open_approvals_about(self.conn, stranger)?.is_empty() {
                let new = NewApproval { user: stranger, kind: &ApprovalKind::Join, call: None };
                let mut codes = self.settings.codes.approval_codes();
                approvals::request_approval(self.conn, &new, &mut || codes.draw(), self.now)?;
            }
        }
        let mut lines = Vec::new();
        for approval in approvals::load_open_approvals(self.conn)? {
            let approval = if approvals::is_code_disabled(&approval) {
                self.replace_code(admin, &approval)?
            } else {
                approval
            };
            lines.push(self.format_approval_request(&approval)?);
        }
        let left_out = lines.len().saturating_sub(MAX_LISTED_APPROVALS);
        lines.truncate(MAX_LISTED_APPROVALS);
        if left_out > 0 {
            lines.push(format!("And {left_out} more."));
        }
        Ok(if lines.is_empty() { "No requests are open.".to_owned() } else { lines.join("\n") })
    }

    /// Replaces a code that wrong guesses have invalidated; the other admins also receive the new one.
    fn replace_code(&mut self, admin: &User, dead: &Approval) -> QueryResult<Approval> {
        let mut codes = self.settings.codes.approval_codes();
        let fresh = approvals::replace_disabled_code(self.conn, dead, &mut || codes.draw(), self.now)?;
        let question = self.format_approval_request(&fresh)?;
        for other in users::load_admins(self.conn)?.into_iter().filter(|other| other.id != admin.id) {
            let way = ReplyAddress::load_for_user(self.conn, &other, self.settings.number.as_ref())?;
            let text = way.notification_message(&format!("approval:{}", fresh.id), &question);
            outbox::queue_message_once(self.conn, &text, self.now)?;
        }
        Ok(fresh)
    }

    fn list_users(&mut self, admin: &User) -> QueryResult<String> {
        let everyone = users::load_known_users(self.conn)?;
        let names: Vec<String> = everyone
            .iter()
            .filter(|user| user.status != UserStatus::Pending)
            .map(admin_commands::format_user_line)
            .collect();
        Ok(format!("{}\n{}", names.join(", "), self.list_open_approvals(admin)?))
    }

    fn change_quota(&mut self, admin: &User, quota: QuotaCommand<'_>) -> QueryResult<String> {
        let everyone = users::load_known_users(self.conn)?;
        let member = match naming::find_users(&everyone, quota.user_query).as_slice() {
            [] => return Ok(format!("No user is named {}. Text USERS for the list.", quota.user_query)),
            [one] => (*one).clone(),
            several => {
                let numbers: Vec<String> = several.iter().map(|user| user.phone.format_grouped()).collect();
                return Ok(format!(
                    "Several people are called {}. Use a number: {}.",
                    quota.user_query,
                    numbers.join(", ")
                ));
            }
        };
        let name = naming::display_name(&member);
        if member.rights.role == UserRole::Admin {
            return Ok(format!("{name} is an admin and has no limit."));
        }
        let quotas = self.settings.quotas;
        let mut own = quotas::load_quota_override(self.conn, member.id)?;
        if let Some(change) = quota.change {
            let changed = |own: Option<u32>, rate: Option<RateLimit>| {
                // A limit that the household does not set keeps its value.
                let Some(rate) = rate else { return own };
                let most = i64::from(own.unwrap_or(rate.max)).saturating_add(change).max(0);
                Some(u32::try_from(most).unwrap_or(u32::MAX))
            };
            own = QuotaOverride {
                movies: changed(own.movies, quotas.movies),
                seasons: changed(own.seasons, quotas.seasons),
            };
            let detail = json!({ "movies": own.movies, "seasons": own.seasons });
            let subject = AuditSubject::User(member.id);
            let entry = NewAuditEntry { actor: Actor::User(admin.id), kind: "quota", subject, detail };
            audit::record_change(self.conn, &entry, self.now)?;
            quotas::store_quota_override(self.conn, member.id, own, self.now)?;
        }
        let standing = quotas.for_member(own);
        Ok(format!("{name} may add {}.", admin_commands::format_quotas(standing.movies, standing.seasons)))
    }

    fn announce_to_everyone(
        &mut self,
        admin: &User,
        words: &str,
        event: &InboundEvent,
    ) -> QueryResult<String> {
        self.audit_admin_action(admin, "tell_everyone", AuditSubject::Household)?;
        let text = format!("{}: {words}", naming::display_name(admin));
        let mut told = Vec::new();
        for user in users::load_known_users(self.conn)? {
            if user.status == UserStatus::Active && !user.opted_out && !user.test && user.id != admin.id {
                let way = ReplyAddress::load_for_user(self.conn, &user, self.settings.number.as_ref())?;
                let key = format!("told:{}:{}", admin.id, event.id);
                outbox::queue_message_once(self.conn, &way.notification_message(&key, &text), self.now)?;
                told.push(user.id);
            }
        }
        if !admin.test {
            let source = format!("told:{}:{}", admin.id, event.id);
            let heard_by = [told.as_slice(), &[admin.id]].concat();
            let heard = SharedMessage { text: words, recipients: &heard_by, author: Some(admin.id) };
            groups::remember_shared_message(self.conn, &source, &heard, self.now)?;
        }
        Ok(match told.len() {
            0 => "There is nobody else to tell.".to_owned(),
            1 => "OK, sent to one person.".to_owned(),
            many => format!("OK, sent to {many} people."),
        })
    }

    fn pause_assistant(&mut self, admin: &User) -> QueryResult<String> {
        Ok(match pauses::start_pause(self.conn, admin.id, self.now)? {
            PauseOutcome::Changed => {
                self.audit_admin_action(admin, "pause", AuditSubject::Household)?;
                "Paused. Texts are kept, and only admins are answered. Text RESUME to go on.".to_owned()
            }
            PauseOutcome::Unchanged => "I am paused already. Text RESUME to go on.".to_owned(),
        })
    }

    fn resume_assistant(&mut self, admin: &User) -> QueryResult<&'static str> {
        Ok(match pauses::end_pause(self.conn, Actor::User(admin.id), self.now)? {
            PauseOutcome::Changed => {
                self.audit_admin_action(admin, "resume", AuditSubject::Household)?;
                "I am back. Texts of the last hour are answered now."
            }
            PauseOutcome::Unchanged => "I am not paused.",
        })
    }

    /// Returns whether the waiting messages are held because the assistant is paused. The sender is notified once per
    /// pause and transport, because a notification in the console does not reach the phone.
    pub(super) fn is_held_by_pause(&mut self, user: &User, first: &InboundEvent) -> QueryResult<bool> {
        let Some(pause) = pauses::load_current_pause(self.conn)? else { return Ok(false) };
        let is_admin = user.status == UserStatus::Active && user.rights.role == UserRole::Admin;
        if is_admin || user.status == UserStatus::Blocked || route::opts_out(first) {
            return Ok(false);
        }
        if user.status != UserStatus::Active || user.opted_out {
            return Ok(true);
        }
        let texted = |event: &&InboundEvent| {
            event.triage == TriageDecision::Answer && event.origin != MessageOrigin::Button
        };
        for event in inbound_messages::load_waiting_messages(self.conn, user.id, MAX_CHECKED_MESSAGES)?
            .iter()
            .filter(texted)
        {
            let key = match event.to.transport() {
                MessageTransport::Carrier => format!("pause:{pause}"),
                MessageTransport::Terminal | MessageTransport::Console => format!("pause:{pause}:here"),
            };
            let text =
                ReplyAddress::from_message(user, event).notification_message(&key, admin_commands::PAUSED);
            outbox::queue_message_once(self.conn, &text, self.now)?;
        }
        Ok(true)
    }

    fn audit_admin_action(
        &mut self,
        admin: &User,
        kind: &'static str,
        subject: AuditSubject,
    ) -> QueryResult<()> {
        let entry = NewAuditEntry { actor: Actor::User(admin.id), kind, subject, detail: json!({}) };
        audit::record_change(self.conn, &entry, self.now)
    }
}
