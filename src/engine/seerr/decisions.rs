//! Decisions of admins on requests at a Seerr. A decision is stored first, and then passed on in the name of the admin's
//! user there. The request is read before each attempt, so that it is decided once.

use jiff::{SignedDuration, Timestamp};

use super::request_watcher::RequestWatcher;
use crate::conversation::seerr_requests::{
    format_decided_before, format_gone, format_not_passed_on, format_not_permitted,
};
use crate::engine::reply_address::ReplyAddress;
use crate::engine::settings::HouseholdSettings;
use crate::seerr::{
    DecisionOutcome, RequestDecision, Seerr, SeerrRequestId, SeerrRequestStatus, SeerrUserId,
};
use crate::store::confirmation::seerr_offers::{self, PassOnOutcome, SeerrDecision};
use crate::store::people::{users, viewer_accounts};
use crate::store::queue::outbox;
use crate::store::{Conn, QueryResult};
use crate::telemetry;

/// Period during which a decision is passed on again.
const RETRY_PERIOD: SignedDuration = SignedDuration::from_hours(24);

impl RequestWatcher {
    /// Passes all stored decisions on that were not passed on yet.
    pub(super) async fn pass_decisions_on(&self, seerr: &Seerr) -> anyhow::Result<()> {
        for decision in self.db.read(seerr_offers::load_decisions_to_pass_on).await? {
            let (now, title) = (self.clock.now(), &decision.title);
            let message = match self.pass_decision_on(seerr, &decision).await? {
                Some(message) => message,
                None if now.duration_since(decision.decided_at) > RETRY_PERIOD => {
                    Some(format_not_passed_on(title))
                }
                // The next round reads the request first.
                None => continue,
            };
            let settings = self.live.settings();
            let end = move |conn: &mut _| end_decision(conn, &decision, message.as_deref(), (&settings, now));
            self.db.write(end).await?;
            self.outbox.notify();
        }
        Ok(())
    }

    /// Passes a decision on. Returns `None` if its outcome is unknown, and otherwise the message to the admin, if there is
    /// one.
    async fn pass_decision_on(
        &self,
        seerr: &Seerr,
        decision: &SeerrDecision,
    ) -> anyhow::Result<Option<Option<String>>> {
        let SeerrDecision { request, title, .. } = decision;
        let (id, admin) = (SeerrRequestId(*request), decision.admin);
        let account = self.db.read(move |conn| viewer_accounts::load_seerr_account(conn, admin)).await?;
        let Some(user) = account.and_then(|account| SeerrUserId::from_account(&account.id)) else {
            return Ok(Some(Some(format_not_passed_on(title))));
        };
        let (wanted, decided_status) = match decision.is_approved {
            true => (RequestDecision::Approve, SeerrRequestStatus::Approved),
            false => (RequestDecision::Decline, SeerrRequestStatus::Declined),
        };
        let status = match seerr.fetch_request(id).await {
            Ok(Some(found)) => found.status,
            Ok(None) => return Ok(Some(Some(format_gone(title)))),
            Err(error) => return Ok(log_failure(&error)),
        };
        if status != SeerrRequestStatus::Pending {
            let is_done = status == decided_status
                || decision.is_approved
                    && matches!(status, SeerrRequestStatus::Completed | SeerrRequestStatus::Failed);
            return Ok(Some((!is_done).then(|| format_decided_before(title))));
        }
        Ok(match seerr.decide_request(user, id, wanted).await {
            Ok(DecisionOutcome::Decided(_)) => Some(None),
            Ok(DecisionOutcome::NotPermitted) => Some(Some(format_not_permitted(title))),
            Ok(DecisionOutcome::Gone) => Some(Some(format_gone(title))),
            Err(error) => log_failure(&error),
        })
    }
}

fn log_failure<T>(error: &crate::server_api::ServerError) -> Option<T> {
    tracing::warn!(error = telemetry::error_chain(error), "failed to pass a decision on to Seerr");
    None
}

/// Records that a decision was passed on, and tells the admin what is different from it.
fn end_decision(
    conn: &mut Conn,
    decision: &SeerrDecision,
    message: Option<&str>,
    (settings, now): (&HouseholdSettings, Timestamp),
) -> QueryResult<()> {
    if seerr_offers::record_passed_on(conn, decision.approval, now)? == PassOnOutcome::AlreadyRecorded {
        return Ok(());
    }
    let Some(message) = message else { return Ok(()) };
    let admin = users::load_user(conn, decision.admin)?;
    let address = ReplyAddress::load_for_user(conn, &admin, &settings.senders)?;
    let key = format!("approval:{}:passed_on", decision.approval);
    outbox::queue_message_once(conn, &address.notification_message(&key, message), now)
}
