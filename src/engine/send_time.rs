//! Send times of notifications: outside the quiet hours, and within an hourly limit.

use jiff::Timestamp;

use crate::conversation::notifications::arr_events::{HOUR, SendTime, plan_send_time};
use crate::conversation::transcript::UserId;
use crate::engine::settings::HouseholdSettings;
use crate::store::queue::notifications;
use crate::store::{Conn, QueryResult};

/// Returns the earliest send time of a message that is not a reply to the user.
pub(crate) fn earliest_send_time(
    conn: &mut Conn,
    user: UserId,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<Timestamp> {
    let recent = notifications::load_notification_times(conn, user, now - HOUR, None)?;
    send_time(conn, user, settings, &recent, now)
}

/// Reschedules the waiting notifications of a user, or of all users, after a change of the quiet hours or the clock.
pub(crate) fn reschedule_notifications(
    conn: &mut Conn,
    settings: &HouseholdSettings,
    user: Option<UserId>,
    now: Timestamp,
) -> QueryResult<()> {
    for (notification, user) in notifications::load_waiting_notifications(conn, user, now)? {
        let recent = notifications::load_notification_times(conn, user, now - HOUR, Some(notification))?;
        let at = send_time(conn, user, settings, &recent, now)?;
        notifications::postpone_notification(conn, notification, at, now)?;
    }
    Ok(())
}

/// Returns the send time of a notification. `recent` are the creation times of the other notifications of the last
/// hour.
fn send_time(
    conn: &mut Conn,
    user: UserId,
    settings: &HouseholdSettings,
    recent: &[Timestamp],
    now: Timestamp,
) -> QueryResult<Timestamp> {
    let own = notifications::load_quiet_hours(conn, user)?;
    Ok(match plan_send_time(own.or(settings.quiet_hours), recent, now, &settings.zone) {
        SendTime::Now => now,
        SendTime::At(at) => at,
    })
}
