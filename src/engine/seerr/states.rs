//! States of the requests that users made by text. A change is told once to the requester.

use std::sync::atomic::Ordering;

use jiff::Timestamp;

use super::request_watcher::RequestWatcher;
use crate::conversation::seerr_requests::{format_approved, format_failed};
use crate::conversation::title_requests::format_declined;
use crate::conversation::transcript::UserStatus;
use crate::engine::notifications::title_readers::TitleReaders;
use crate::engine::reply_address::ReplyAddress;
use crate::engine::send_time::earliest_send_time;
use crate::engine::settings::HouseholdSettings;
use crate::engine::turns::tool_effects::followed_titles;
use crate::seerr::{Seerr, SeerrRequest, SeerrRequestId, SeerrRequestStatus};
use crate::store::library::follows;
use crate::store::library::seerr_requests::{
    self, OpenSeerrRequest, RecordStateOutcome, SeerrState, load_open_requests,
};
use crate::store::people::users;
use crate::store::queue::outbox;
use crate::store::{Conn, QueryResult};

/// Number of requests that are read one by one in each round.
const SINGLE_READS: usize = 5;

impl RequestWatcher {
    /// Reads the states of the open requests, and tells their requesters what changed.
    pub(super) async fn report_states(&self, seerr: &Seerr) -> anyhow::Result<()> {
        let open = self.db.read(load_open_requests).await?;
        if open.is_empty() {
            return Ok(());
        }
        let recent = seerr.fetch_changed_requests().await?;
        let mut unlisted = Vec::new();
        for request in open {
            match recent.iter().find(|found| found.id.0 == request.seerr_request) {
                Some(found) => self.report_state(request, Some(found)).await?,
                None => unlisted.push(request),
            }
        }
        // Requests that did not change recently are read in turn, because they may have been withdrawn.
        let round = self.rounds.fetch_add(1, Ordering::Relaxed);
        let start = if unlisted.is_empty() { 0 } else { round * SINGLE_READS % unlisted.len() };
        for request in unlisted.into_iter().skip(start).take(SINGLE_READS) {
            let found = seerr.fetch_request(SeerrRequestId(request.seerr_request)).await?;
            self.report_state(request, found.as_ref()).await?;
        }
        Ok(())
    }

    async fn report_state(&self, open: OpenSeerrRequest, found: Option<&SeerrRequest>) -> anyhow::Result<()> {
        let state = match found.map(|request| request.status) {
            None => SeerrState::Gone,
            Some(SeerrRequestStatus::Pending) => SeerrState::Pending,
            Some(SeerrRequestStatus::Approved) => SeerrState::Approved,
            Some(SeerrRequestStatus::Declined) => SeerrState::Declined,
            Some(SeerrRequestStatus::Failed) => SeerrState::Failed,
            Some(SeerrRequestStatus::Completed) => SeerrState::Completed,
            Some(SeerrRequestStatus::Unknown) => return Ok(()),
        };
        if state == open.state {
            return Ok(());
        }
        let title = (open.title.kind, open.title.catalog_id);
        let readers = TitleReaders::find(&self.db, &self.live.current().library, title).await?;
        let (settings, now) = (self.live.settings(), self.clock.now());
        let record = move |conn: &mut _| record_and_notify(conn, &open, (state, &readers), (&settings, now));
        self.db.write(record).await?;
        self.outbox.notify();
        Ok(())
    }
}

/// Records a state and tells the requester, in one transaction, so that a state is told once.
fn record_and_notify(
    conn: &mut Conn,
    open: &OpenSeerrRequest,
    (state, readers): (SeerrState, &TitleReaders),
    (settings, now): (&HouseholdSettings, Timestamp),
) -> QueryResult<()> {
    if seerr_requests::record_state(conn, open, state)? == RecordStateOutcome::NotOpen {
        return Ok(());
    }
    let message = match state {
        SeerrState::Approved => format_approved(&open.title),
        SeerrState::Declined => {
            for title in followed_titles(&open.title) {
                follows::unfollow_title(conn, open.user, &title, now)?;
            }
            format_declined(&open.title, None)
        }
        SeerrState::Failed => format_failed(&open.title),
        // A title that is there is reported by Sonarr or Radarr.
        SeerrState::Pending | SeerrState::Completed | SeerrState::Gone => return Ok(()),
    };
    let user = users::load_user(conn, open.user)?;
    if user.status != UserStatus::Active || user.opted_out || !readers.includes(&user) {
        return Ok(());
    }
    let address = ReplyAddress::load_for_user(conn, &user, &settings.senders)?;
    let at = earliest_send_time(conn, user.id, settings, now)?;
    let word = match state {
        SeerrState::Declined => "declined",
        SeerrState::Failed => "failed",
        SeerrState::Approved | SeerrState::Pending | SeerrState::Completed | SeerrState::Gone => "approved",
    };
    let message = address.notification_message(&format!("seerr:{}:{word}", open.id), &message);
    outbox::queue_message_once_at(conn, &message, at, now)
}
