//! Effects of time alone: idle conversations end, newcomers are dismissed, unanswered approvals expire.

use jiff::Timestamp;

use super::ending::WayBack;
use super::{Engine, Settings};
use crate::conversation::deletion;
use crate::store::approvals::{self, About, EndedApproval};
use crate::store::db::DbError;
use crate::store::{Conn, QueryResult, conversations, joining, outbox, users};

impl Engine {
    /// Runs one round of expiry; it changes nothing when nothing is due.
    pub(crate) async fn keep_up(&self) -> Result<(), DbError> {
        let (settings, now) = (self.0.parts.settings.clone(), self.now());
        let work = move |conn: &mut _| {
            conversations::end_idle(conn, settings.idle, now)?;
            joining::dismiss(conn, now)?;
            expire_approvals(conn, &settings, now)
        };
        self.0.parts.db.write(work).await?;
        self.0.parts.outbox.ring();
        Ok(())
    }
}

/// Expires unanswered approvals. A member whose removal request expires without an answer is notified.
pub(super) fn expire_approvals(conn: &mut Conn, settings: &Settings, now: Timestamp) -> QueryResult<()> {
    let expired = approvals::expire(conn, now)?;
    report_expired(conn, settings, &expired, now)
}

/// Notifies each member of a removal request that has expired.
pub(super) fn report_expired(
    conn: &mut Conn,
    settings: &Settings,
    expired: &[EndedApproval],
    now: Timestamp,
) -> QueryResult<()> {
    for expired in expired {
        let item = match &expired.about {
            About::Join => continue,
            About::Removal(item) => Some(item.as_ref()),
            About::UnreadableRemoval => None,
        };
        let member = users::get(conn, expired.user)?;
        let key = format!("approval:{}:expired", expired.id);
        let way = WayBack::to_user(conn, &member, settings.number.as_ref())?;
        outbox::queue_once(conn, &way.notice(&key, &deletion::wish_expired(item)), now)?;
    }
    Ok(())
}
