//! Periodic expiry of idle conversations, idle newcomers and unanswered approvals.

use jiff::Timestamp;

use crate::clock::Clock;
use crate::conversation::deletion::deletion_messages;
use crate::engine::parts::{EngineParts, LiveParts};
use crate::engine::reply_address::ReplyAddress;
use crate::engine::settings::HouseholdSettings;
use crate::messaging::outbox_relay::OutboxSignal;
use crate::store::confirmation::approvals::{self, EndedApproval, EndedApprovalSubject};
use crate::store::conversation::conversations;
use crate::store::database::db::{Db, DbError};
use crate::store::people::{join_requests, users};
use crate::store::queue::outbox;
use crate::store::{Conn, QueryResult};

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
            expire_approvals(conn, &settings, now)
        };
        self.db.write(work).await?;
        self.outbox.notify();
        Ok(())
    }
}

/// Expires unanswered approvals. A member whose removal request expires without an answer is notified.
pub(crate) fn expire_approvals(
    conn: &mut Conn,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    let expired = approvals::expire_approvals(conn, now)?;
    notify_expired_requests(conn, settings, &expired, now)
}

/// Notifies each member of a removal request that has expired.
pub(crate) fn notify_expired_requests(
    conn: &mut Conn,
    settings: &HouseholdSettings,
    expired: &[EndedApproval],
    now: Timestamp,
) -> QueryResult<()> {
    for approval in expired {
        let item = match &approval.subject {
            EndedApprovalSubject::Join => continue,
            EndedApprovalSubject::Removal(item) => Some(item.as_ref()),
            EndedApprovalSubject::UnreadableRemoval => None,
        };
        let member = users::load_user(conn, approval.user)?;
        let key = format!("approval:{}:expired", approval.id);
        let address = ReplyAddress::load_for_user(conn, &member, settings.number.as_ref())?;
        outbox::queue_message_once(
            conn,
            &address.notification_message(&key, &deletion_messages::format_removal_expired(item)),
            now,
        )?;
    }
    Ok(())
}
