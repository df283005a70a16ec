//! Adoption of wall-clock steps: stored deadlines move with the step, and time-limited permissions end if the clock was
//! set back.

use jiff::{SignedDuration, Timestamp};

use super::approvals::expiry::notify_expired_requests;
use super::parts::{EngineParts, LiveParts};
use super::send_time::reschedule_notifications;
use super::settings::HouseholdSettings;
use crate::clock::Clock;
use crate::store::confirmation::{approvals, code_misses};
use crate::store::database::db::{Db, DbError, Durability};
use crate::store::turns::daily_budget::Day;
use crate::store::{Conn, QueryResult, boot, clock_step};

/// Adoption of steps of the wall clock in the database.
pub(super) struct ClockStepAdoption {
    db: Db,
    clock: Clock,
    live: LiveParts,
}

impl ClockStepAdoption {
    pub(super) fn new(parts: &EngineParts) -> Self {
        let EngineParts { db, clock, live, .. } = parts.clone();
        Self { db, clock, live }
    }

    /// Adopts a step of the wall clock, and shifts all stored waits by the step. Writes that were queued before the
    /// step are executed first. If the commit fails, the step stays pending.
    pub(super) async fn adopt_step(&self) -> Result<SignedDuration, DbError> {
        let settings = self.live.settings();
        let mut adopted = None;
        let adopt = || {
            let step = *adopted.insert(self.clock.adopt_step());
            (step, self.clock.now())
        };
        let apply = move |conn: &mut _, (step, now)| {
            apply_clock_step(conn, &settings, step, now)?;
            boot::record_heartbeat(conn, now)
        };
        let applied = self.db.write_in_order(Durability::Synced, adopt, apply).await;
        let step = adopted.unwrap_or_default();
        if let Err(error) = applied {
            self.clock.revert_step(step);
            return Err(error);
        }
        Ok(step)
    }
}

/// Applies a step to all stored times. Waiting notifications are rescheduled instead, because quiet hours end at an hour
/// of the day.
fn apply_clock_step(
    conn: &mut Conn,
    settings: &HouseholdSettings,
    step: SignedDuration,
    now: Timestamp,
) -> QueryResult<()> {
    clock_step::rebase_waits(conn, step)?;
    end_uncertain_waits(conn, settings, step, now)
}

/// Ends time-limited permissions if the clock was set back, so that none outlasts its limit, and reschedules waiting
/// notifications.
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
