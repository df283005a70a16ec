//! Decisions of the operator in the console or the API, executed in the same way as decisions that an admin sends by
//! message.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use crate::clock::Clock;
use crate::conversation::routing::inbound_message::{MessageSource, ReceivedMessage};
use crate::conversation::routing::message_origin::MessageOrigin;
use crate::conversation::routing::verification::FieldAuthority;
use crate::conversation::transcript::{ChannelKind, ConversationId, UserId};
use crate::engine::approvals::removal_requests;
use crate::engine::approvals::user_access::{self, BlockOutcome};
use crate::engine::inbound::scheduler::TurnScheduler;
use crate::engine::parts::EngineParts;
use crate::engine::reply_address::ReplyAddress;
use crate::engine::settings::{HouseholdSettings, Quotas};
use crate::messaging::outbox_relay::OutboxSignal;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::approvals::{self, Approval, ApprovalKind, SettleApprovalOutcome};
use crate::store::confirmation::pending_action::{self, CloseReason};
use crate::store::console::user_ref;
use crate::store::conversation::conversations::{self, EndReason};
use crate::store::conversation::message_results;
use crate::store::database::db::{Db, DbError};
use crate::store::people::pauses::{self, PauseOutcome};
use crate::store::people::{user_admin, users};
use crate::store::queue::inbound_messages::{self, AdmissionOutcome, DebouncePolicy};
use crate::store::queue::resend::{self, ResendOutcome};
use crate::store::turns::turn_lifecycle;
use crate::store::{Conn, QueryResult};

/// Outcome of approving or blocking a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessOutcome {
    Done,
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
    /// No admin can be texted. A deletion needs an admin, in whose name it is executed.
    NoAdmin,
}

/// Outcome of closing a user's conversation so that a new one can begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseOutcome {
    Ended(ConversationId),
    NothingOpen,
    /// No user has this id.
    UnknownUser,
}

/// Decisions of the operator about users, removal requests, messages and the pause.
pub struct OperatorDecisions {
    db: Db,
    clock: Clock,
    settings: Arc<HouseholdSettings>,
    outbox: OutboxSignal,
    scheduler: TurnScheduler,
}

impl OperatorDecisions {
    pub(crate) fn new(parts: &EngineParts, scheduler: TurnScheduler) -> Self {
        let EngineParts { db, clock, settings, outbox, .. } = parts.clone();
        Self { db, clock, settings, outbox, scheduler }
    }

    /// Returns the quotas of members without their own limits.
    pub fn default_quotas(&self) -> Quotas {
        self.settings.quotas
    }

    /// Approves a user, as `APPROVE` does.
    pub async fn approve_access(&self, user: UserId, by: Actor) -> Result<AccessOutcome, DbError> {
        let (number, now) = (self.settings.number.clone(), self.clock.now());
        let joining = self.db.write(move |conn| {
            let Some(user) = user_admin::find_known_user(conn, user)? else {
                return Ok(AccessOutcome::UnknownUser);
            };
            user_access::approve_user(conn, &user, by, number.as_ref(), now)?;
            Ok(AccessOutcome::Done)
        });
        let joining = joining.await?;
        self.outbox.notify();
        Ok(joining)
    }

    /// Ends the running turn, drops the open confirmation prompt and ends the open conversation.
    pub async fn close_conversation(&self, user: UserId, by: Actor) -> Result<CloseOutcome, DbError> {
        let now = self.clock.now();
        let clear = move |conn: &mut _| {
            if user_admin::find_known_user(conn, user)?.is_none() {
                return Ok(CloseOutcome::UnknownUser);
            }
            let entry = NewAuditEntry {
                actor: by,
                kind: "clear",
                subject: AuditSubject::User(user),
                detail: json!({}),
            };
            audit::record_change(conn, &entry, now)?;
            turn_lifecycle::request_cancel(conn, user, now)?;
            pending_action::close_pending_action(conn, user, CloseReason::Dropped, now)?;
            let Some(open) = conversations::load_open_conversation(conn, user)? else {
                return Ok(CloseOutcome::NothingOpen);
            };
            conversations::end_conversation(conn, open.id, EndReason::Cleared, now)?;
            Ok(CloseOutcome::Ended(open.id))
        };
        let clearing = self.db.write(clear).await?;
        // The wake-up makes a turn that waits for the model check for its cancellation.
        self.scheduler.wake_user(user);
        Ok(clearing)
    }

    /// Blocks a user, who gets no replies from now on, as `BLOCK` does.
    pub async fn block_access(&self, user: UserId, by: Actor) -> Result<AccessOutcome, DbError> {
        let now = self.clock.now();
        let joining = self.db.write(move |conn| {
            let Some(user) = user_admin::find_known_user(conn, user)? else {
                return Ok(AccessOutcome::UnknownUser);
            };
            Ok(match user_access::block_user(conn, &user, by, now)? {
                BlockOutcome::Blocked => AccessOutcome::Done,
                BlockOutcome::LastAdmin => AccessOutcome::LastAdmin,
            })
        });
        joining.await
    }

    /// Denies a member's removal request. The title remains in the library.
    pub async fn deny_removal_request(&self, wish: i64) -> Result<DecisionOutcome, DbError> {
        let (number, now) = (self.settings.number.clone(), self.clock.now());
        let word = self.db.write(move |conn| {
            let Some(wish) = load_open_removal_request(conn, wish, now)? else {
                return Ok(DecisionOutcome::TooLate);
            };
            Ok(match removal_requests::deny_request(conn, &wish, Actor::Console, number.as_ref(), now)? {
                SettleApprovalOutcome::Settled => DecisionOutcome::Decided,
                SettleApprovalOutcome::TooLate => DecisionOutcome::TooLate,
            })
        });
        let word = word.await?;
        self.outbox.notify();
        Ok(word)
    }

    /// Deletes the title of a member's removal request. A deletion refers to the message that confirmed it, so the
    /// decision becomes a message of the admin with the oldest record, queued behind the admin's other messages. The
    /// admin gets the result.
    pub async fn approve_removal_request(&self, wish: i64) -> Result<DecisionOutcome, DbError> {
        let (settings, now) = (self.settings.clone(), self.clock.now());
        let said = self.db.write(move |conn| send_approve_message(conn, wish, &settings, now)).await?;
        Ok(match said {
            ApproveMessageOutcome::SentBy(admin) => {
                self.scheduler.wake_user(admin);
                DecisionOutcome::Decided
            }
            ApproveMessageOutcome::AlreadyDecided => DecisionOutcome::Decided,
            ApproveMessageOutcome::TooLate => DecisionOutcome::TooLate,
            ApproveMessageOutcome::NoAdmin => DecisionOutcome::NoAdmin,
        })
    }

    /// Resends the text of a message that certainly did not arrive.
    pub async fn resend_message(&self, text: i64) -> Result<ResendOutcome, DbError> {
        let now = self.clock.now();
        let again =
            self.db.write(move |conn| resend::resend_message(conn, text, Actor::Console, now)).await?;
        self.outbox.notify();
        Ok(again)
    }

    /// Ends the pause, so that the waiting messages of all users are processed.
    pub async fn resume_from_pause(&self) -> Result<PauseOutcome, DbError> {
        let now = self.clock.now();
        let change = self.db.write(move |conn| {
            let change = pauses::end_pause(conn, Actor::Console, now)?;
            if change == PauseOutcome::Changed {
                let entry = NewAuditEntry {
                    actor: Actor::Console,
                    kind: "resume",
                    subject: AuditSubject::Household,
                    detail: json!({}),
                };
                audit::record_change(conn, &entry, now)?;
            }
            Ok(change)
        });
        let change = change.await?;
        self.scheduler.recover_work().await?;
        Ok(change)
    }
}

/// Loads a removal request if it can still be settled.
fn load_open_removal_request(conn: &mut Conn, id: i64, now: Timestamp) -> QueryResult<Option<Approval>> {
    let mut open = approvals::load_open_approvals(conn)?.into_iter();
    Ok(open.find(|open| open.id == id && open.kind != ApprovalKind::Join && !open.has_expired(now)))
}

enum ApproveMessageOutcome {
    SentBy(UserId),
    AlreadyDecided,
    TooLate,
    NoAdmin,
}

fn send_approve_message(
    conn: &mut Conn,
    id: i64,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<ApproveMessageOutcome> {
    let Some(wish) = load_open_removal_request(conn, id, now)? else {
        return Ok(ApproveMessageOutcome::TooLate);
    };
    let mut admin = None;
    for candidate in users::load_admins(conn)? {
        // A message of a test user is not sent to a phone.
        if admin.is_none() && !candidate.opted_out && !user_ref::load_user_ref(conn, candidate.id)?.is_test {
            admin = Some(candidate);
        }
    }
    let Some(admin) = admin else { return Ok(ApproveMessageOutcome::NoAdmin) };
    // A second press of the button has no effect, because the code is valid once and is part of the id.
    let id = |wish: &Approval| {
        MessageOrigin::Button.to_message_id(&format!("approval-{}-{}", wish.id, wish.code.as_str()))
    };
    let in_vain = match message_results::find_stored_message(conn, ChannelKind::Console, &id(&wish))? {
        // The request is still open, so the earlier message had no effect, and another message may succeed.
        Some(known) => inbound_messages::is_message_finished(conn, known.event)?,
        None => false,
    };
    let wish = if in_vain || approvals::is_code_disabled(&wish) {
        let mut codes = settings.codes.approval_codes();
        approvals::replace_disabled_code(conn, &wish, &mut || codes.draw(), now)?
    } else {
        wish
    };
    let subject = AuditSubject::Approval(wish.id);
    let entry = NewAuditEntry { actor: Actor::Console, kind: "approve_deletion", subject, detail: json!({}) };
    let text = ReceivedMessage {
        channel: ChannelKind::Console,
        external_id: id(&wish),
        from: admin.phone.clone(),
        to: ReplyAddress::load_for_user(conn, &admin, settings.number.as_ref())?.our_address(),
        body: format!("approve {}", wish.code.as_str()),
        media: Vec::new(),
        via: MessageSource::Local,
        authority: FieldAuthority::Certain,
        carrier_word: None,
        provider_at: now,
        received_at: now,
    };
    match inbound_messages::admit_message(conn, &text, DebouncePolicy { quiet_ms: 0, max_delay_ms: 0 })? {
        AdmissionOutcome::New { user, .. } => {
            audit::record_change(conn, &entry, now)?;
            Ok(ApproveMessageOutcome::SentBy(user))
        }
        AdmissionOutcome::Duplicate => Ok(ApproveMessageOutcome::AlreadyDecided),
        AdmissionOutcome::NoUser => Ok(ApproveMessageOutcome::NoAdmin),
    }
}
