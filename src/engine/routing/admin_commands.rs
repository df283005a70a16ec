//! Admin commands sent as messages, and the pause that admins can start.

use serde_json::json;

use super::code_guesses::{SUSPENDED, SUSPENDED_NOW};
use super::turn_start::{TurnStart, TurnStartOutcome};
use super::user_context::UserContext;
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
use crate::conversation::seerr_requests::format_offer;
use crate::conversation::title_approvals::{TitleOverCap, format_title_request};
use crate::conversation::transcript::{Responder, User, UserId, UserRole, UserStatus};
use crate::conversation::viewer_accounts::{self, ViewerAccount};
use crate::engine::approvals::account_links::{self, LinkDecision};
use crate::engine::approvals::expiry;
use crate::engine::approvals::removal_requests::{self, Denial};
use crate::engine::approvals::user_access::{self, BlockOutcome};
use crate::engine::approvals::{seerr_requests, title_approvals};
use crate::engine::reply_address::ReplyAddress;
use crate::store::QueryResult;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::approvals::{
    self, Approval, ApprovalKind, ApprovalOutcome, CodeLookup, NewApproval, SettleApprovalOutcome,
};
use crate::store::confirmation::approved_call;
use crate::store::confirmation::code_misses::MissOutcome;
use crate::store::library::quotas::{self, QuotaOverride};
use crate::store::memory::groups::{self, SharedMessage};
use crate::store::people::pauses::{self, LastPause, PauseOutcome};
use crate::store::people::{join_requests, users};
use crate::store::queue::inbound_messages;
use crate::store::queue::outbox;
use crate::store::turns::turn_lifecycle::{TurnKind, TurnPlan};
use crate::tools::remove_media::REMOVE_MEDIA;

/// Maximum number of approvals that one message lists.
const MAX_LISTED_APPROVALS: usize = 12;
/// Maximum number of waiting messages per user that are checked for a pause notification.
const MAX_CHECKED_MESSAGES: i64 = 20;

/// Returns what a code means for its sender: a parent who is no admin decides only about titles.
fn limit_lookup(found: CodeLookup, role: UserRole) -> CodeLookup {
    match (found, role) {
        (CodeLookup::Open(approval), UserRole::Member)
            if !matches!(approval.kind, ApprovalKind::Title(_)) =>
        {
            CodeLookup::Unknown
        }
        // Who decided other requests is for admins.
        (CodeLookup::Ended(outcome, _), UserRole::Member) => CodeLookup::Ended(outcome, None),
        (found, _) => found,
    }
}

impl TurnStart<'_> {
    pub(super) fn run_admin_command(
        &mut self,
        admin: &User,
        context: &UserContext,
        events: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        let text = match admin_commands::parse_admin_command(&events[0].body) {
            Some(AdminCommand::Decide(decision, Some(code))) => {
                return self.decide_approval(admin, context, events, (decision, &code));
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
            Some(AdminCommand::Announce(announcement)) => {
                self.announce_to_everyone(admin, announcement, &events[0])?
            }
            Some(AdminCommand::Invite(name)) => return self.invite_person(admin, context, events, &name),
            // Unreachable, because the message was routed by the same parser.
            None => "I did not understand that.".to_owned(),
        };
        self.answer_and_drop_prompt(admin, context, events, &text)
    }

    fn decide_approval(
        &mut self,
        admin: &User,
        context: &UserContext,
        events: &[InboundEvent],
        (decision, code): (AdminDecision, &ApprovalCode),
    ) -> QueryResult<TurnStartOutcome> {
        if self.is_suspended(admin, &events[0])? {
            return self.answer_and_drop_prompt(admin, context, events, SUSPENDED);
        }
        let found = approvals::find_approval_by_code(self.conn, code, self.now)?;
        let text = match limit_lookup(found, admin.rights.role) {
            CodeLookup::Unknown => self.answer_wrong_code(admin, &events[0])?.to_owned(),
            CodeLookup::Disabled if admin.rights.role == UserRole::Member => {
                "That code no longer works. The title has to be asked for again.".to_owned()
            }
            CodeLookup::Disabled => "That code no longer works. Text USERS for a new one.".to_owned(),
            CodeLookup::Ended(outcome, decided_by) => self.format_approval_outcome(outcome, decided_by)?,
            CodeLookup::Open(approval) => match (&approval.kind, decision) {
                (ApprovalKind::Title(over_cap), AdminDecision::Approve) => {
                    self.decide_title(admin, (&approval, over_cap), ApprovalOutcome::Approved)?
                }
                (ApprovalKind::Title(over_cap), AdminDecision::Deny) => {
                    self.decide_title(admin, (&approval, over_cap), ApprovalOutcome::Denied)?
                }
                (ApprovalKind::Delete(item), AdminDecision::Approve) => {
                    return self.approve_deletion(admin, context, events, (approval.id, item));
                }
                (ApprovalKind::Delete(item), AdminDecision::Deny) => {
                    self.deny_deletion(admin, &approval, item)?
                }
                (ApprovalKind::Join, AdminDecision::Approve) => {
                    let newcomer = users::load_user(self.conn, approval.user)?;
                    let (actor, senders) = (Actor::User(admin.id), &self.settings.senders);
                    user_access::approve_user(self.conn, &newcomer, actor, senders, self.now)?;
                    format!("{} can text me now.", naming::display_name(&newcomer))
                }
                (ApprovalKind::Join, AdminDecision::Block) => {
                    let newcomer = users::load_user(self.conn, approval.user)?;
                    match user_access::block_user(self.conn, &newcomer, Actor::User(admin.id), self.now)? {
                        BlockOutcome::Blocked => format!("Blocked {}.", naming::format_address(&newcomer)),
                        BlockOutcome::LastAdmin => "The last admin cannot be blocked.".to_owned(),
                    }
                }
                (ApprovalKind::LinkAccount(account), AdminDecision::Approve) => {
                    self.decide_link(admin, (&approval, account), LinkDecision::Approve)?
                }
                (ApprovalKind::LinkAccount(account), AdminDecision::Deny) => {
                    self.decide_link(admin, (&approval, account), LinkDecision::Deny)?
                }
                (ApprovalKind::SeerrRequest(_), AdminDecision::Approve) => {
                    self.decide_seerr_request(admin, &approval, ApprovalOutcome::Approved)?
                }
                (ApprovalKind::SeerrRequest(_), AdminDecision::Deny) => {
                    self.decide_seerr_request(admin, &approval, ApprovalOutcome::Denied)?
                }
                (ApprovalKind::Join, AdminDecision::Deny)
                | (
                    ApprovalKind::Delete(_)
                    | ApprovalKind::LinkAccount(_)
                    | ApprovalKind::SeerrRequest(_)
                    | ApprovalKind::Title(_),
                    AdminDecision::Block,
                ) => self.format_approval_request(&approval)?,
            },
        };
        self.answer_and_drop_prompt(admin, context, events, &text)
    }

    /// Counts a wrong code, and returns the answer to it.
    fn answer_wrong_code(&mut self, user: &User, event: &InboundEvent) -> QueryResult<&'static str> {
        approvals::count_wrong_code(self.conn)?;
        Ok(match (self.count_wrong_code(user, event)?, user.rights.role) {
            (MissOutcome::Counted, UserRole::Member) => "No open request has that code.",
            (MissOutcome::Counted, UserRole::Admin) => {
                "No request has that code. Text USERS to see open requests."
            }
            (MissOutcome::Suspended, _) => SUSPENDED_NOW,
        })
    }

    fn decide_link(
        &mut self,
        admin: &User,
        request: (&Approval, &ViewerAccount),
        decision: LinkDecision,
    ) -> QueryResult<String> {
        account_links::decide_link(self.conn, request, (admin.id, decision), &self.settings.senders, self.now)
    }

    fn decide_title(
        &mut self,
        parent: &User,
        request: (&Approval, &TitleOverCap),
        outcome: ApprovalOutcome,
    ) -> QueryResult<String> {
        self.wakes.has_queued_addition |= outcome == ApprovalOutcome::Approved;
        title_approvals::decide_title(self.conn, request, (parent, outcome), self.settings, self.now)
    }

    fn decide_seerr_request(
        &mut self,
        admin: &User,
        request: &Approval,
        outcome: ApprovalOutcome,
    ) -> QueryResult<String> {
        let reply = seerr_requests::decide_request(self.conn, request, (admin.id, outcome), self.now)?;
        Ok(reply.to_owned())
    }

    fn format_approval_outcome(
        &mut self,
        outcome: ApprovalOutcome,
        decided_by: Option<UserId>,
    ) -> QueryResult<String> {
        let by_admin = match decided_by {
            Some(admin) => format!(" by {}", naming::display_name(&users::load_user(self.conn, admin)?)),
            None => String::new(),
        };
        Ok(match outcome {
            ApprovalOutcome::Approved => format!("That was already approved{by_admin}."),
            ApprovalOutcome::Denied => format!("That was already denied{by_admin}."),
            ApprovalOutcome::Blocked => format!("That number was already blocked{by_admin}."),
            ApprovalOutcome::Expired => "That request has expired.".to_owned(),
            ApprovalOutcome::Withdrawn => "That request was withdrawn.".to_owned(),
            ApprovalOutcome::Replaced => "That code was replaced. Text USERS for the new one.".to_owned(),
        })
    }

    /// Formats an approval request for the admins.
    pub(super) fn format_approval_request(&mut self, approval: &Approval) -> QueryResult<String> {
        let requester = users::load_user(self.conn, approval.user)?;
        let code = approval.code.as_str();
        Ok(match &approval.kind {
            ApprovalKind::Join => onboarding::format_join_request(
                requester.address.as_ref(),
                requester.name.as_deref().unwrap_or_default(),
                code,
            ),
            ApprovalKind::Delete(item) => {
                deletion_messages::format_removal_request(&naming::display_name(&requester), item, code)
            }
            ApprovalKind::LinkAccount(account) => {
                viewer_accounts::format_link_request(&naming::display_name(&requester), account, code)
            }
            ApprovalKind::SeerrRequest(offer) => format_offer(offer, code),
            ApprovalKind::Title(over_cap) => {
                format_title_request(&naming::display_name(&requester), over_cap, code)
            }
        })
    }

    /// Starts a deletion that an admin approved. The admin's decision counts as the confirmation, so the deletion is
    /// claimed at once and runs in a turn of the admin.
    fn approve_deletion(
        &mut self,
        admin: &User,
        context: &UserContext,
        events: &[InboundEvent],
        (id, item): (i64, &DeletionTarget),
    ) -> QueryResult<TurnStartOutcome> {
        if approvals::settle_approval(self.conn, id, ApprovalOutcome::Approved, Some(admin.id), self.now)?
            == SettleApprovalOutcome::AlreadySettled
        {
            return self.answer_and_drop_prompt(admin, context, events, "That was already answered.");
        }
        self.audit_admin_action(admin, "approve_deletion", AuditSubject::Approval(id))?;
        let mut plan = TurnPlan::for_responder(Responder::Keyword);
        plan.preface = self.drop_prompt(admin, context, events)?;
        let active_turn = self.open_turn(admin, TurnKind::Confirm, &plan, events)?;
        let approved = approved_call::ApprovedDeletion {
            turn: active_turn.id,
            approved_by: events[0].id,
            tool: REMOVE_MEDIA,
            item,
        };
        let call = approved_call::create_approved_call(self.conn, &approved, self.now)?;
        approvals::link_executing_call(self.conn, id, call)?;
        Ok(TurnStartOutcome::Turn(active_turn))
    }

    fn deny_deletion(
        &mut self,
        admin: &User,
        approval: &Approval,
        item: &DeletionTarget,
    ) -> QueryResult<String> {
        let senders = &self.settings.senders;
        let denial = Denial { actor: Actor::User(admin.id), reason: None };
        if removal_requests::deny_request(self.conn, approval, denial, senders, self.now)?
            == SettleApprovalOutcome::AlreadySettled
        {
            return Ok("That was already answered.".to_owned());
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
        for newcomer in join_requests::load_named_newcomers(self.conn)? {
            if approvals::load_open_approvals_about(self.conn, newcomer)?.is_empty() {
                let request = NewApproval { user: newcomer, kind: &ApprovalKind::Join, call: None };
                let mut codes = self.settings.codes.approval_codes();
                approvals::request_approval(self.conn, &request, &mut || codes.draw_code(), self.now)?;
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
        let omitted = lines.len().saturating_sub(MAX_LISTED_APPROVALS);
        lines.truncate(MAX_LISTED_APPROVALS);
        if omitted > 0 {
            lines.push(format!("And {omitted} more."));
        }
        Ok(if lines.is_empty() { "No open requests.".to_owned() } else { lines.join("\n") })
    }

    /// Replaces a code that wrong guesses have disabled, and sends the new code to the other admins.
    pub(super) fn replace_code(&mut self, admin: &User, disabled: &Approval) -> QueryResult<Approval> {
        let mut codes = self.settings.codes.approval_codes();
        let renewed =
            approvals::replace_disabled_code(self.conn, disabled, &mut || codes.draw_code(), self.now)?;
        let request = self.format_approval_request(&renewed)?;
        for other in users::load_admins(self.conn)?.into_iter().filter(|other| other.id != admin.id) {
            let address = ReplyAddress::load_for_user(self.conn, &other, &self.settings.senders)?;
            let message = address.notification_message(&format!("approval:{}", renewed.id), &request);
            outbox::queue_message_once(self.conn, &message, self.now)?;
        }
        Ok(renewed)
    }

    pub(super) fn list_users(&mut self, admin: &User) -> QueryResult<String> {
        let users = users::load_known_users(self.conn)?;
        let lines: Vec<String> = users
            .iter()
            .filter(|user| user.status != UserStatus::Pending)
            .map(admin_commands::format_user_line)
            .collect();
        Ok(format!("{}\n{}", lines.join(", "), self.list_open_approvals(admin)?))
    }

    fn change_quota(&mut self, admin: &User, quota: QuotaCommand<'_>) -> QueryResult<String> {
        let found = match naming::parse_typed_number(quota.user_query) {
            Some(phone) => users::find_user_by_phone(self.conn, &phone)?.into_iter().collect(),
            None => naming::find_users_by_name(users::load_known_users(self.conn)?, quota.user_query),
        };
        let member = match found.as_slice() {
            [] => return Ok(format!("No user is named {}. Text USERS for the list.", quota.user_query)),
            [one] => one.clone(),
            several => {
                let numbers: Vec<String> = several.iter().map(naming::format_address).collect();
                return Ok(format!(
                    "Several users are named {}. Use a phone number: {}.",
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
            let adjust_limit = |own: Option<u32>, rate: Option<RateLimit>| {
                // A limit that the household does not set keeps its value.
                let Some(rate) = rate else { return own };
                let limit = i64::from(own.unwrap_or(rate.max)).saturating_add(change).max(0);
                Some(u32::try_from(limit).unwrap_or(u32::MAX))
            };
            own = QuotaOverride {
                movies: adjust_limit(own.movies, quotas.movies),
                seasons: adjust_limit(own.seasons, quotas.seasons),
                ..own
            };
            let detail = json!({ "movies": own.movies, "seasons": own.seasons });
            let subject = AuditSubject::User(member.id);
            let entry = NewAuditEntry { actor: Actor::User(admin.id), kind: "quota", subject, detail };
            audit::record_change(self.conn, &entry, self.now)?;
            quotas::store_quota_override(self.conn, member.id, own, self.now)?;
        }
        let effective = quotas.for_member(own);
        let additions = admin_commands::format_quotas(effective.movies, effective.seasons);
        Ok(match effective.space_gb {
            Some(limit) => format!("{name} may add {additions}, and hold {limit} GB."),
            None => format!("{name} may add {additions}."),
        })
    }

    fn announce_to_everyone(
        &mut self,
        admin: &User,
        announcement: &str,
        event: &InboundEvent,
    ) -> QueryResult<String> {
        self.audit_admin_action(admin, "tell_everyone", AuditSubject::Household)?;
        let text = format!("{}: {announcement}", naming::display_name(admin));
        let mut recipients = Vec::new();
        for user in users::load_known_users(self.conn)? {
            if user.status == UserStatus::Active && !user.opted_out && !user.test && user.id != admin.id {
                let address = ReplyAddress::load_for_user(self.conn, &user, &self.settings.senders)?;
                let key = format!("told:{}:{}", admin.id, event.id);
                outbox::queue_message_once(self.conn, &address.notification_message(&key, &text), self.now)?;
                recipients.push(user.id);
            }
        }
        if !admin.test {
            let source = format!("told:{}:{}", admin.id, event.id);
            let group = [recipients.as_slice(), &[admin.id]].concat();
            let message = SharedMessage { text: announcement, recipients: &group, author: Some(admin.id) };
            groups::remember_shared_message(self.conn, &source, &message, self.now)?;
        }
        Ok(match recipients.len() {
            0 => "There is no one else to text.".to_owned(),
            1 => "OK, sent to one person.".to_owned(),
            count => format!("OK, sent to {count} people."),
        })
    }

    fn pause_assistant(&mut self, admin: &User) -> QueryResult<String> {
        Ok(match pauses::start_pause(self.conn, admin.id, self.now)? {
            PauseOutcome::Changed => {
                self.audit_admin_action(admin, "pause", AuditSubject::Household)?;
                "Paused. I save all texts, but only answer admins. Text RESUME to continue.".to_owned()
            }
            PauseOutcome::Unchanged => "I am already paused. Text RESUME to continue.".to_owned(),
        })
    }

    fn resume_assistant(&mut self, admin: &User) -> QueryResult<&'static str> {
        Ok(match pauses::end_pause(self.conn, Actor::User(admin.id), self.now)? {
            PauseOutcome::Changed => {
                self.audit_admin_action(admin, "resume", AuditSubject::Household)?;
                "I am back. I will answer texts from the last hour now."
            }
            PauseOutcome::Unchanged => "I am not paused.",
        })
    }

    /// Returns whether the waiting messages are held because the assistant is paused. The sender is notified once per
    /// pause on the phone, and once in the console.
    pub(super) fn is_held_by_pause(
        &mut self,
        last_pause: Option<LastPause>,
        user: &User,
        first: &InboundEvent,
    ) -> QueryResult<bool> {
        let Some(LastPause { id: pause, ended_at: None }) = last_pause else { return Ok(false) };
        let is_admin = user.status == UserStatus::Active && user.rights.role == UserRole::Admin;
        if is_admin || user.status == UserStatus::Blocked || route::opts_out(first) {
            return Ok(false);
        }
        if user.status != UserStatus::Active || user.opted_out {
            return Ok(true);
        }
        let needs_reply = |event: &&InboundEvent| {
            event.triage == TriageDecision::Answer && event.origin != MessageOrigin::Button
        };
        for event in inbound_messages::load_waiting_messages(self.conn, user.id, MAX_CHECKED_MESSAGES)?
            .iter()
            .filter(needs_reply)
        {
            let key = match event.to.channel().is_remote() {
                true => format!("pause:{pause}"),
                false => format!("pause:{pause}:here"),
            };
            let message =
                ReplyAddress::from_message(user, event).notification_message(&key, admin_commands::PAUSED);
            outbox::queue_message_once(self.conn, &message, self.now)?;
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
