//! Decisions of the operator in the console or the API, executed in the same way as an admin's commands by text.

use jiff::Timestamp;
use serde_json::json;

use crate::clock::Clock;
use crate::conversation::channel_list;
use crate::conversation::routing::inbound_message::{MessageSource, ReceivedMessage};
use crate::conversation::routing::message_origin::MessageOrigin;
use crate::conversation::routing::verification::FieldAuthority;
use crate::conversation::transcript::{ConversationId, User, UserId};
use crate::engine::approvals::removal_requests::{self, Denial};
use crate::engine::approvals::room_access;
use crate::engine::approvals::user_access::{self, BlockOutcome};
use crate::engine::codes::CodeSource;
use crate::engine::inbound::scheduler::TurnScheduler;
use crate::engine::parts::{EngineParts, LiveParts};
use crate::engine::reply_address::ReplyAddress;
use crate::engine::settings::{HouseholdSettings, Quotas};
use crate::messaging::outbox_relay::OutboxSignal;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::approvals::{self, Approval, SettleApprovalOutcome};
use crate::store::confirmation::pending_action::{self, CloseReason};
use crate::store::conversation::conversations::{self, EndReason};
use crate::store::conversation::message_results;
use crate::store::database::db::{Db, DbError};
use crate::store::people::pauses::{self, PauseOutcome};
use crate::store::people::user_admin::{self, ChangeUserOutcome, UserChanges};
use crate::store::people::users;
use crate::store::queue::inbound_messages::{self, AdmissionOutcome, DebouncePolicy};
use crate::store::queue::next_work;
use crate::store::queue::resend::{self, ResendOutcome};
use crate::store::turns::turn_lifecycle;
use crate::store::{Conn, QueryResult};

/// Outcome of approving or blocking a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessOutcome {
    Changed,
    /// The user is the last admin, and no admin would be left to approve newcomers.
    LastAdmin,
    /// No user has this id.
    UnknownUser,
}

/// Outcome of changing a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserChangeOutcome {
    Changed,
    /// The user already has these values.
    Unchanged,
    /// The user is the last admin, and no admin would be left to approve newcomers.
    LastAdmin,
    /// No user has this id.
    UnknownUser,
}

/// Outcome of a decision on a member's removal request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionOutcome {
    Decided,
    /// The request was already settled, or it has expired.
    TooLate,
    /// No admin can receive texts. A deletion is executed on behalf of an admin.
    NoAdmin,
}

/// Outcome of closing a user's conversation so that a new one can begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseOutcome {
    Ended(ConversationId),
    NoOpenConversation,
    /// No user has this id.
    UnknownUser,
}

/// Decisions of the operator about users, removal requests, messages and the pause.
pub struct OperatorDecisions {
    pub(super) db: Db,
    pub(super) clock: Clock,
    pub(super) live: LiveParts,
    pub(super) outbox: OutboxSignal,
    scheduler: TurnScheduler,
}

impl OperatorDecisions {
    pub(crate) fn new(parts: &EngineParts, scheduler: TurnScheduler) -> Self {
        let EngineParts { db, clock, outbox, live, .. } = parts.clone();
        Self { db, clock, live, outbox, scheduler }
    }

    pub(super) fn codes(&self) -> CodeSource {
        self.live.settings().codes
    }

    /// Processes waiting messages that may have become those of another user.
    pub(super) async fn resume_all_work(&self) -> Result<(), DbError> {
        for user in self.db.read(next_work::load_users_with_work).await? {
            self.scheduler.wake_user(user);
        }
        self.outbox.notify();
        Ok(())
    }

    /// Returns the quotas of members without their own limits.
    pub fn default_quotas(&self) -> Quotas {
        self.live.settings().quotas
    }

    /// Approves a user, like the `APPROVE` command.
    pub async fn approve_access(&self, user: UserId, actor: Actor) -> Result<AccessOutcome, DbError> {
        let (senders, now) = (self.live.settings().senders.clone(), self.clock.now());
        let approval = self.db.write(move |conn| {
            let Some(user) = user_admin::find_known_participant(conn, user)? else {
                return Ok(AccessOutcome::UnknownUser);
            };
            user_access::approve_user(conn, &user, actor, &senders, now)?;
            Ok(AccessOutcome::Changed)
        });
        let outcome = approval.await?;
        self.outbox.notify();
        Ok(outcome)
    }

    /// Changes the fields of a user that differ.
    pub async fn change_user(
        &self,
        user: UserId,
        changes: UserChanges,
        actor: Actor,
    ) -> Result<UserChangeOutcome, DbError> {
        let now = self.clock.now();
        let change = move |conn: &mut _| {
            if user_admin::find_known_user(conn, user)?.is_none() {
                return Ok(UserChangeOutcome::UnknownUser);
            }
            let changes = changes.clone().without_current(&user_admin::load_user_account(conn, user)?);
            if changes == UserChanges::default() {
                return Ok(UserChangeOutcome::Unchanged);
            }
            Ok(match user_admin::change_user(conn, user, &changes, actor, now)? {
                ChangeUserOutcome::Changed => UserChangeOutcome::Changed,
                ChangeUserOutcome::LastAdmin => UserChangeOutcome::LastAdmin,
            })
        };
        self.db.write(change).await
    }

    /// Ends the running turn, drops the open confirmation prompt and ends the open conversation.
    pub async fn close_conversation(&self, user: UserId, actor: Actor) -> Result<CloseOutcome, DbError> {
        let now = self.clock.now();
        let close = move |conn: &mut _| {
            if user_admin::find_known_participant(conn, user)?.is_none() {
                return Ok(CloseOutcome::UnknownUser);
            }
            let entry =
                NewAuditEntry { actor, kind: "clear", subject: AuditSubject::User(user), detail: json!({}) };
            audit::record_change(conn, &entry, now)?;
            turn_lifecycle::request_cancel(conn, user, now)?;
            pending_action::close_pending_action(conn, user, CloseReason::Dropped, now)?;
            turn_lifecycle::request_cancel_in_room(conn, user, now)?;
            room_access::close_prompts_in_room(conn, user, now)?;
            let Some(open) = conversations::load_open_conversation(conn, user)? else {
                return Ok(CloseOutcome::NoOpenConversation);
            };
            conversations::end_conversation(conn, open.id, EndReason::Cleared, now)?;
            Ok(CloseOutcome::Ended(open.id))
        };
        let outcome = self.db.write(close).await?;
        // A turn that waits for the model checks for its cancellation when it is woken.
        self.scheduler.wake_user(user);
        Ok(outcome)
    }

    /// Blocks a user, who gets no replies from now on, like the `BLOCK` command.
    pub async fn block_access(&self, user: UserId, actor: Actor) -> Result<AccessOutcome, DbError> {
        let now = self.clock.now();
        let blocking = self.db.write(move |conn| {
            let Some(user) = user_admin::find_known_participant(conn, user)? else {
                return Ok(AccessOutcome::UnknownUser);
            };
            Ok(match user_access::block_user(conn, &user, actor, now)? {
                BlockOutcome::Blocked => AccessOutcome::Changed,
                BlockOutcome::LastAdmin => AccessOutcome::LastAdmin,
            })
        });
        blocking.await
    }

    /// Denies a member's removal request. The title remains in the library.
    pub async fn deny_removal_request(
        &self,
        id: i64,
        reason: Option<String>,
    ) -> Result<DecisionOutcome, DbError> {
        let (senders, now) = (self.live.settings().senders.clone(), self.clock.now());
        let denial = self.db.write(move |conn| {
            let Some(request) = load_open_removal_request(conn, id, now)? else {
                return Ok(DecisionOutcome::TooLate);
            };
            let denial = Denial { actor: Actor::Console, reason: reason.as_deref() };
            Ok(match removal_requests::deny_request(conn, &request, denial, &senders, now)? {
                SettleApprovalOutcome::Settled => DecisionOutcome::Decided,
                SettleApprovalOutcome::AlreadySettled => DecisionOutcome::TooLate,
            })
        });
        let outcome = denial.await?;
        self.outbox.notify();
        Ok(outcome)
    }

    /// Approves a member's removal request. A deletion refers to the message that confirmed it, so the decision becomes
    /// a message of the oldest reachable admin, behind the admin's other messages. The admin gets the result.
    pub async fn approve_removal_request(&self, id: i64) -> Result<DecisionOutcome, DbError> {
        let (settings, now) = (self.live.settings(), self.clock.now());
        let outcome = self.db.write(move |conn| queue_approve_message(conn, id, &settings, now)).await?;
        Ok(match outcome {
            ApproveMessageOutcome::SentBy(admin) => {
                self.scheduler.wake_user(admin);
                DecisionOutcome::Decided
            }
            ApproveMessageOutcome::AlreadyDecided => DecisionOutcome::Decided,
            ApproveMessageOutcome::TooLate => DecisionOutcome::TooLate,
            ApproveMessageOutcome::NoAdmin => DecisionOutcome::NoAdmin,
        })
    }

    /// Resends a message that certainly did not arrive.
    pub async fn resend_message(&self, id: i64, actor: Actor) -> Result<ResendOutcome, DbError> {
        let now = self.clock.now();
        let outcome = self.db.write(move |conn| resend::resend_message(conn, id, actor, now)).await?;
        self.outbox.notify();
        Ok(outcome)
    }

    /// Ends the pause, so that the waiting messages of all users are processed.
    pub async fn resume_from_pause(&self) -> Result<PauseOutcome, DbError> {
        let now = self.clock.now();
        let resumption = self.db.write(move |conn| {
            let outcome = pauses::end_pause(conn, Actor::Console, now)?;
            if outcome == PauseOutcome::Changed {
                let entry = NewAuditEntry {
                    actor: Actor::Console,
                    kind: "resume",
                    subject: AuditSubject::Household,
                    detail: json!({}),
                };
                audit::record_change(conn, &entry, now)?;
            }
            Ok(outcome)
        });
        let outcome = resumption.await?;
        self.scheduler.recover_work().await?;
        Ok(outcome)
    }
}

/// Loads a removal request if it can still be settled.
fn load_open_removal_request(conn: &mut Conn, id: i64, now: Timestamp) -> QueryResult<Option<Approval>> {
    let mut open = approvals::load_open_approvals(conn)?.into_iter();
    Ok(open.find(|open| open.id == id && open.kind.is_removal() && !open.has_expired(now)))
}

/// Returns the oldest admin who can receive texts, on whose behalf deletions of the operator are executed.
pub(super) fn find_reachable_admin(conn: &mut Conn) -> QueryResult<Option<User>> {
    Ok(users::load_admins(conn)?.into_iter().find(|admin| !admin.opted_out))
}

/// Outcome of queuing an `APPROVE` message for an admin.
enum ApproveMessageOutcome {
    SentBy(UserId),
    AlreadyDecided,
    TooLate,
    NoAdmin,
}

fn queue_approve_message(
    conn: &mut Conn,
    id: i64,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<ApproveMessageOutcome> {
    let Some(request) = load_open_removal_request(conn, id, now)? else {
        return Ok(ApproveMessageOutcome::TooLate);
    };
    let Some(admin) = find_reachable_admin(conn)? else { return Ok(ApproveMessageOutcome::NoAdmin) };
    // A second press of the button has no effect, because the single-use code is part of the message id.
    let message_id = |request: &Approval| {
        MessageOrigin::Button.to_message_id(&format!("approval-{}-{}", request.id, request.code.as_str()))
    };
    let was_ineffective =
        match message_results::find_stored_message(conn, channel_list::CONSOLE, &message_id(&request))? {
            // The request is still open although the earlier message was processed, so a new code is needed.
            Some(stored) => inbound_messages::is_message_finished(conn, stored.event)?,
            None => false,
        };
    let request = if was_ineffective || approvals::is_code_disabled(&request) {
        let mut codes = settings.codes.approval_codes();
        approvals::replace_disabled_code(conn, &request, &mut || codes.draw_code(), now)?
    } else {
        request
    };
    let route = ReplyAddress::load_for_user(conn, &admin, &settings.senders)?;
    let Some(admin_address) = route.user_address() else { return Ok(ApproveMessageOutcome::NoAdmin) };
    let subject = AuditSubject::Approval(request.id);
    let entry = NewAuditEntry { actor: Actor::Console, kind: "approve_deletion", subject, detail: json!({}) };
    let message = ReceivedMessage {
        channel: channel_list::CONSOLE,
        external_id: message_id(&request),
        from: admin_address,
        to: route.our_address(),
        body: format!("approve {}", request.code.as_str()),
        media: Vec::new(),
        via: MessageSource::Local,
        authority: FieldAuthority::Certain,
        carrier_word: None,
        pressed: None,
        room: None,
        provider_at: now,
        received_at: now,
    };
    match inbound_messages::admit_message(conn, &message, DebouncePolicy { quiet_ms: 0, max_delay_ms: 0 })? {
        AdmissionOutcome::New { user, .. } => {
            audit::record_change(conn, &entry, now)?;
            Ok(ApproveMessageOutcome::SentBy(user))
        }
        AdmissionOutcome::Duplicate => Ok(ApproveMessageOutcome::AlreadyDecided),
        AdmissionOutcome::NoUser | AdmissionOutcome::NotKept => Ok(ApproveMessageOutcome::NoAdmin),
    }
}
