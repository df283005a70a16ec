//! Steps of the wall clock: stored waits are shifted by the step, and waits that the clock can no longer guarantee are
//! ended.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::approvals::expiry::notify_expired_requests;
use super::notifications::send_time::reschedule_notifications;
use super::parts::EngineParts;
use super::settings::HouseholdSettings;
use crate::clock::Clock;
use crate::store::confirmation::{approvals, code_misses};
use crate::store::database::db::{Db, DbError};
use crate::store::turns::daily_budget::Day;
use crate::store::{Conn, QueryResult, boot, clock_step};

/// Adoption of steps of the wall clock in the database.
pub(super) struct ClockStepAdoption {
    db: Db,
    clock: Clock,
    settings: Arc<HouseholdSettings>,
}

impl ClockStepAdoption {
    pub(super) fn new(parts: &EngineParts) -> Self {
        let EngineParts { db, clock, settings, .. } = parts.clone();
        Self { db, clock, settings }
    }

    /// Adopts a step of the wall clock, and shifts all stored waits by the step. Writes that were requested before the
    /// step have run by then. If the commit fails, the step is pending again.
    pub(super) async fn adopt_step(&self) -> Result<SignedDuration, DbError> {
        let settings = self.settings.clone();
        let mut adopted = None;
        let adopt = || {
            let step = *adopted.insert(self.clock.adopt_step());
            (step, self.clock.now())
        };
        let follow = move |conn: &mut _, (step, now)| {
            follow_clock_step(conn, &settings, step, now)?;
            boot::record_heartbeat(conn, now)
        };
        let followed = self.db.write_in_order(adopt, follow).await;
        let step = adopted.unwrap_or_default();
        if let Err(error) = followed {
            self.clock.revert_step(step);
            return Err(error);
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
