//! Decision about new alerts, from the open events, the connections and the earlier alerts.

use jiff::{SignedDuration, Timestamp};

use crate::connections::states::ConnectionState;
use crate::store::connection_history;
use crate::store::queue::alerts::{self, AlertKind, EventGroup, NewAlert};
use crate::store::turns::daily_budget::Day;
use crate::store::{Conn, QueryResult};

/// Minimum interval between two alerts of one kind.
const MIN_INTERVAL: SignedDuration = SignedDuration::from_hours(1);

/// Finds the alerts that the operator should get at `now`.
pub(super) fn find_new_alerts(
    conn: &mut Conn,
    connections: &[ConnectionState],
    today: &Day,
    now: Timestamp,
) -> QueryResult<Vec<NewAlert>> {
    let open = alerts::load_open_events(conn, today, now)?;
    let mut new = Vec::new();
    // Alerts contain neither names nor phone numbers, because they pass through services of third parties.
    for (kind, group, one, several) in [
        (
            AlertKind::Newcomer,
            open.newcomers,
            "A newcomer waits for approval.",
            "newcomers wait for approval.",
        ),
        (
            AlertKind::RemovalRequest,
            open.removal_requests,
            "A removal request waits for a decision.",
            "removal requests wait for a decision.",
        ),
        (
            AlertKind::UnknownOutcome,
            open.unknown_outcomes,
            "The outcome of a text or change is unknown.",
            "texts or changes have an unknown outcome.",
        ),
    ] {
        let body = if group.count == 1 { one.to_owned() } else { format!("{} {several}", group.count) };
        new.extend(find_event_alert(conn, kind, group, body, now)?);
    }
    let spent = "Today's model budget is used up. Until midnight only short commands work.".to_owned();
    new.extend(find_event_alert(conn, AlertKind::BudgetSpent, open.budget_messages, spent, now)?);
    let backup = "The last backup failed. The output of dialarr backup has the reason.".to_owned();
    new.extend(find_event_alert(conn, AlertKind::BackupFailed, open.failed_backups, backup, now)?);
    new.extend(find_connection_alerts(conn, connections, now)?);
    Ok(new)
}

/// Returns an alert if an event is newer than the last alert of its kind.
fn find_event_alert(
    conn: &mut Conn,
    kind: AlertKind,
    group: EventGroup,
    body: String,
    now: Timestamp,
) -> QueryResult<Option<NewAlert>> {
    let last = alerts::load_last_alert_time(conn, kind, now)?;
    let is_new = may_alert(last, now) && group.newest_at > last;
    Ok(is_new.then_some(NewAlert { kind, body, connections: Vec::new() }))
}

fn may_alert(last: Option<Timestamp>, now: Timestamp) -> bool {
    last.is_none_or(|last| now.duration_since(last) >= MIN_INTERVAL)
}

/// Compares the connections with those whose loss was reported.
fn find_connection_alerts(
    conn: &mut Conn,
    connections: &[ConnectionState],
    now: Timestamp,
) -> QueryResult<Vec<NewAlert>> {
    let reported = connection_history::load_reported_losses(conn)?;
    let is_reported = |state: &&ConnectionState| reported.contains(state.kind.as_str());
    let states = || connections.iter();
    let lost: Vec<_> = states().filter(|state| state.is_lost(now) && !is_reported(state)).collect();
    let back: Vec<_> = states().filter(|state| state.works() && is_reported(state)).collect();
    let mut new = Vec::new();
    for (kind, states) in [(AlertKind::ConnectionLost, lost), (AlertKind::ConnectionBack, back)] {
        if states.is_empty() || !may_alert(alerts::load_last_alert_time(conn, kind, now)?, now) {
            continue;
        }
        let labels: Vec<&str> = states.iter().map(|state| state.kind.label()).collect();
        let labels = labels.join(", ");
        let body = match kind {
            AlertKind::ConnectionBack => format!("Works again: {labels}."),
            _ => format!("Stopped working: {labels}. Home in the console shows the reason."),
        };
        let connections = states.iter().map(|state| state.kind.as_str()).collect();
        new.push(NewAlert { kind, body, connections });
    }
    Ok(new)
}
