//! Periodic expiry of idle conversations, idle newcomers and unanswered approvals.

use jiff::Timestamp;

use crate::clock::Clock;
use crate::conversation::deletion::deletion_messages;
use crate::conversation::title_approvals::TITLE_REQUEST_EXPIRED;
use crate::conversation::viewer_accounts;
use crate::engine::parts::{EngineParts, LiveParts};
use crate::engine::reply_address::ReplyAddress;
use crate::engine::settings::HouseholdSettings;
use crate::messaging::outbox_relay::OutboxSignal;
use crate::store::confirmation::approvals::{self, EndedApproval, EndedApprovalSubject};
use crate::store::confirmation::pending_action::{self, CloseReason};
use crate::store::confirmation::pending_lookup;
use crate::store::conversation::conversations;
use crate::store::database::db::{Db, DbError};
use crate::store::people::{join_requests, users};
use crate::store::queue::outbox;
use crate::store::{Conn, QueryResult};

/// Notification about a prompt that did not leave in time.
const UNSENT_PROMPT: &str = "I could not ask you in time whether to delete something, so nothing was deleted. Ask again if you still want it.";

/// Periodic expiry of conversations, newcomers and approvals.
pub struct DueExpiry {
    db: Db,
    clock: Clock,
    live: LiveParts,
    outbox: OutboxSignal,
}

impl DueExpiry {
    pub(crate) fn new(parts: &EngineParts) -> Self {
        let EngineParts { db, clock, outbox, live, .. } = parts.clone();
        Self { db, clock, live, outbox }
    }

    /// Runs one round of expiry. The round changes nothing when nothing is due.
    pub(crate) async fn expire_due(&self) -> Result<(), DbError> {
        let (settings, now) = (self.live.settings(), self.clock.now());
        let work = move |conn: &mut _| {
            conversations::end_idle_conversations(conn, settings.idle_timeout, now)?;
            join_requests::dismiss_idle_newcomers(conn, now)?;
            // The channel of a prompt may have been removed, so that no poll of it withdraws the prompt.
            withdraw_prompts(conn, &settings, now)?;
            expire_approvals(conn, &settings, now)
        };
        self.db.write(work).await?;
        self.outbox.notify();
        Ok(())
    }

    /// Withdraws the confirmation prompts that a channel accepted and did not send in time, and notifies their users.
    pub(crate) async fn withdraw_unsent_prompts(&self) -> Result<(), DbError> {
        let (settings, now) = (self.live.settings(), self.clock.now());
        let confirm_for = settings.confirm_for;
        let load = move |conn: &mut _| pending_lookup::load_unsent_prompts(conn, confirm_for, now);
        if self.db.read(load).await?.is_empty() {
            return Ok(());
        }
        let work = move |conn: &mut _| withdraw_prompts(conn, &settings, now);
        self.db.write(work).await?;
        self.outbox.notify();
        Ok(())
    }
}

fn withdraw_prompts(conn: &mut Conn, settings: &HouseholdSettings, now: Timestamp) -> QueryResult<()> {
    for (user, prompt) in pending_lookup::load_unsent_prompts(conn, settings.confirm_for, now)? {
        pending_action::close_pending_action(conn, user, CloseReason::Expired, now)?;
        let user = users::load_user(conn, user)?;
        let address = ReplyAddress::load_for_user(conn, &user, &settings.senders)?;
        let message = address.notification_message(&format!("unsent:{prompt}"), UNSENT_PROMPT);
        outbox::queue_message_once(conn, &message, now)?;
    }
    Ok(())
}

/// Expires unanswered approvals. A member whose request expires without an answer is notified.
pub(crate) fn expire_approvals(
    conn: &mut Conn,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    let expired = approvals::expire_approvals(conn, now)?;
    notify_expired_requests(conn, settings, &expired, now)
}

/// Notifies each member of a request that has expired.
pub(crate) fn notify_expired_requests(
    conn: &mut Conn,
    settings: &HouseholdSettings,
    expired: &[EndedApproval],
    now: Timestamp,
) -> QueryResult<()> {
    for approval in expired {
        let message = match &approval.subject {
            EndedApprovalSubject::Join
            | EndedApprovalSubject::UnreadableAccountLink
            | EndedApprovalSubject::SeerrRequest => continue,
            EndedApprovalSubject::Removal(item) => deletion_messages::format_removal_expired(Some(item)),
            EndedApprovalSubject::UnreadableRemoval => deletion_messages::format_removal_expired(None),
            EndedApprovalSubject::Title => TITLE_REQUEST_EXPIRED.to_owned(),
            EndedApprovalSubject::AccountLink(account) => viewer_accounts::format_link_expired(account),
        };
        let member = users::load_user(conn, approval.user)?;
        let key = format!("approval:{}:expired", approval.id);
        let address = ReplyAddress::load_for_user(conn, &member, &settings.senders)?;
        outbox::queue_message_once(conn, &address.notification_message(&key, &message), now)?;
    }
    Ok(())
}
