//! Steps of the wall clock: stored waits are shifted by the step, and waits that the clock can no longer guarantee are
//! ended.

use jiff::{SignedDuration, Timestamp};

use super::Engine;
use super::approvals::expiry::notify_expired_requests;
use super::notifications::send_time::reschedule_notifications;
use super::settings::HouseholdSettings;
use crate::store::confirmation::{approvals, code_misses};
use crate::store::database::db::DbError;
use crate::store::turns::daily_budget::Day;
use crate::store::{Conn, QueryResult, boot, clock_step};

impl Engine {
    /// Adopts a step of the wall clock, shifts all stored waits by the step, then wakes the workers. Writes that were
    /// requested before the step have run by then. If the commit fails, the step is pending again.
    pub(crate) async fn adopt_clock_step(&self) -> Result<SignedDuration, DbError> {
        let (clock, settings) = (&self.0.parts.clock, self.0.parts.settings.clone());
        let mut adopted = None;
        let adopt = || {
            let step = *adopted.insert(clock.adopt_step());
            (step, clock.now())
        };
        let follow = move |conn: &mut _, (step, now)| {
            follow_clock_step(conn, &settings, step, now)?;
            boot::record_heartbeat(conn, now)
        };
        let followed = self.0.parts.db.write_in_order(adopt, follow).await;
        let step = adopted.unwrap_or_default();
        if let Err(error) = followed {
            clock.take_back_step(step);
            return Err(error);
        }
        self.0.models.follow_clock_step(step);
        self.0.indexer.follow_clock_step(step);
        self.0.parts.outbox.notify();
        self.0.addition_queued.notify();
        self.0.event_stored.notify();
        if self.0.lifecycle.accepts_turns() {
            self.0.scheduler.recover_work().await?;
        }
        Ok(step)
    }
}

/// Applies a step to all stored times. A notification that waits for an hour of the day does not wait for a duration:
/// the clock after the step decides its send time.
fn follow_clock_step(
    conn: &mut Conn,
    settings: &HouseholdSettings,
    step: SignedDuration,
    now: Timestamp,
) -> QueryResult<()> {
    clock_step::rebase_waits(conn, step)?;
    end_uncertain_waits(conn, settings, step, now)
}

/// Ends waits that must not outlast their limit if the clock was set back, and reschedules notifications.
pub(crate) fn end_uncertain_waits(
    conn: &mut Conn,
    settings: &HouseholdSettings,
    step: SignedDuration,
    now: Timestamp,
) -> QueryResult<()> {
    if step.is_negative() {
        clock_step::end_time_limited_access(conn, step, now)?;
        code_misses::move_counts_to_today(conn, &Day::from_timestamp(now, &settings.zone))?;
        let expired = approvals::expire_all_approvals(conn, now)?;
        notify_expired_requests(conn, settings, &expired, now)?;
    }
    reschedule_notifications(conn, settings, None, now)
}
