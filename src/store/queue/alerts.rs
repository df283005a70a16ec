//! Queue of alerts: messages to the operator outside SMS, each stored before its first request.

use diesel::dsl::{count_star, max};
use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use super::outbox::{OPEN as OPEN_MESSAGE, OutboxState};
use crate::conversation::transcript::UserStatus;
use crate::store::codec::{convert_integer, ms};
use crate::store::column_types::{StoredCount, StoredEnum, stored_enum};
use crate::store::confirmation::approvals::{OPEN as OPEN_APPROVAL, StoredApprovalKind};
use crate::store::connection_history;
use crate::store::database::backup::load_backup_failure;
use crate::store::database::literal_sql::literal_sql;
use crate::store::schema::{alerts, approvals, outbox, tool_calls, users};
use crate::store::turns::daily_budget::Day;
use crate::store::{Conn, QueryResult};

literal_sql! {
    const QUEUED = "alerts.state = 'queued'";
    const WAITING = "users.waiting_since IS NOT NULL";
    const UNKNOWN_CALL = "tool_calls.state = 'unknown'";
}

stored_enum! {
    /// Kind of event, of which the operator gets at most one alert an hour.
    pub enum AlertKind {
        /// A newcomer waits for an admin.
        Newcomer = "newcomer",
        /// A member's removal request waits for an admin.
        RemovalRequest = "removal_request",
        /// The outcome of a message or of a change is unknown.
        UnknownOutcome = "unknown_outcome",
        ConnectionLost = "connection_lost",
        ConnectionBack = "connection_back",
        /// The model budget of the day is used up.
        BudgetSpent = "budget_spent",
        /// The last `dialarr backup` failed.
        BackupFailed = "backup_failed",
    }
}

stored_enum! {
    /// Service that forwards alerts to the operator.
    pub enum AlertTarget {
        Ntfy = "ntfy",
        Pushover = "pushover",
        Webhook = "webhook",
    }
}

stored_enum! {
    pub enum AlertState {
        Queued = "queued",
        Sent = "sent",
        /// The alert was rejected, or is too old.
        Failed = "failed",
    }
}

impl AlertKind {
    pub fn as_str(self) -> &'static str {
        self.as_text()
    }
}

impl AlertTarget {
    pub fn as_str(self) -> &'static str {
        self.as_text()
    }
}

/// Open events that concern the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenEvents {
    pub newcomers: EventGroup,
    pub removal_requests: EventGroup,
    pub unknown_outcomes: EventGroup,
    /// Messages that tell the admins that the budget of the day is used up.
    pub budget_messages: EventGroup,
    pub failed_backups: EventGroup,
}

/// Number of open events of one kind, and the time of the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventGroup {
    pub count: u32,
    pub newest_at: Option<Timestamp>,
}

impl EventGroup {
    fn from_row((count, newest_at): (i64, Option<Timestamp>)) -> QueryResult<Self> {
        Ok(Self { count: convert_integer(count)?, newest_at })
    }

    /// Creates a group of at most one event.
    fn from_time(at: Option<Timestamp>) -> Self {
        Self { count: at.is_some().into(), newest_at: at }
    }

    fn joined_with(self, other: Self) -> Self {
        Self { count: self.count + other.count, newest_at: self.newest_at.max(other.newest_at) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAlert {
    pub kind: AlertKind,
    pub body: String,
    /// Names of the connections that are lost or back.
    pub connections: Vec<&'static str>,
}

/// Alert that is due for sending.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = alerts)]
pub struct DueAlert {
    pub id: i64,
    pub kind: AlertKind,
    pub target: AlertTarget,
    pub body: String,
    #[diesel(deserialize_as = StoredCount)]
    pub attempts: u32,
    pub created_at: Timestamp,
}

/// Loads the events that concern the operator and are still open.
pub fn load_open_events(conn: &mut Conn, today: &Day, now: Timestamp) -> QueryResult<OpenEvents> {
    let newcomers = users::table
        .filter(WAITING.and(users::display_name.is_not_null()).and(users::status.eq(UserStatus::Pending)))
        .select((count_star(), max(users::waiting_since)))
        .first(conn)?;
    let removal_requests = approvals::table
        .filter(OPEN_APPROVAL.and(approvals::kind.eq(StoredApprovalKind::Delete)))
        .filter(approvals::expires_at.gt(ms(now)))
        .select((count_star(), max(approvals::created_at)))
        .first(conn)?;
    // The key of the admins' message about the budget, and the character that follows the colon at its end.
    let (first_key, end_key) = (format!("budget:{today}:"), format!("budget:{today};"));
    let budget_messages = outbox::table
        .filter(outbox::dedupe_key.ge(first_key).and(outbox::dedupe_key.lt(end_key)))
        .select((count_star(), max(outbox::created_at)))
        .first(conn)?;
    Ok(OpenEvents {
        newcomers: EventGroup::from_row(newcomers)?,
        removal_requests: EventGroup::from_row(removal_requests)?,
        unknown_outcomes: load_unknown_outcomes(conn)?,
        budget_messages: EventGroup::from_row(budget_messages)?,
        failed_backups: EventGroup::from_time(load_backup_failure(conn)?),
    })
}

fn load_unknown_outcomes(conn: &mut Conn) -> QueryResult<EventGroup> {
    let messages = outbox::table
        .filter(OPEN_MESSAGE.and(outbox::state.eq(OutboxState::Unknown)))
        .select((count_star(), max(outbox::unknown_at)))
        .first(conn)?;
    let calls = tool_calls::table
        .filter(UNKNOWN_CALL)
        .select((count_star(), max(tool_calls::unknown_at)))
        .first(conn)?;
    Ok(EventGroup::from_row(messages)?.joined_with(EventGroup::from_row(calls)?))
}

/// Returns the time of the last alert of a kind. A time in the future, from before the clock was set back, does not
/// count.
pub fn load_last_alert_time(
    conn: &mut Conn,
    kind: AlertKind,
    now: Timestamp,
) -> QueryResult<Option<Timestamp>> {
    let last: Option<Timestamp> = alerts::table
        .filter(alerts::kind.eq(kind))
        .order(alerts::id.desc())
        .select(alerts::created_at)
        .first(conn)
        .optional()?;
    Ok(last.filter(|last| *last <= now))
}

/// Stores the alert for each target, and that the loss or return of its connections was reported.
pub fn queue_alert(
    conn: &mut Conn,
    alert: &NewAlert,
    targets: &[AlertTarget],
    now: Timestamp,
) -> QueryResult<()> {
    for name in &alert.connections {
        connection_history::record_reported_loss(conn, name, alert.kind == AlertKind::ConnectionLost)?;
    }
    for target in targets {
        diesel::insert_into(alerts::table)
            .values((
                alerts::kind.eq(alert.kind),
                alerts::target.eq(*target),
                alerts::body.eq(&alert.body),
                alerts::state.eq(AlertState::Queued),
                alerts::attempts.eq(0),
                alerts::due_at.eq(ms(now)),
                alerts::created_at.eq(ms(now)),
            ))
            .execute(conn)?;
    }
    Ok(())
}

/// Loads the alerts that are due. An alert that is due later than in `max_pause` was stored before the clock was set
/// back.
pub fn load_due_alerts(
    conn: &mut Conn,
    max_pause: SignedDuration,
    now: Timestamp,
) -> QueryResult<Vec<DueAlert>> {
    let is_due = alerts::due_at.le(ms(now)).or(alerts::due_at.gt(ms(now + max_pause)));
    alerts::table.filter(QUEUED.and(is_due)).order(alerts::id).select(DueAlert::as_select()).load(conn)
}

/// Records that an alert ended: sent or failed.
pub fn end_alert(conn: &mut Conn, id: i64, state: AlertState) -> QueryResult<()> {
    diesel::update(alerts::table.find(id)).set(alerts::state.eq(state)).execute(conn).map(drop)
}

/// Records a failed attempt, and the time of the next one.
pub fn schedule_retry(conn: &mut Conn, id: i64, due_at: Timestamp) -> QueryResult<()> {
    diesel::update(alerts::table.find(id))
        .set((alerts::attempts.eq(alerts::attempts + 1), alerts::due_at.eq(ms(due_at))))
        .execute(conn)
        .map(drop)
}

pub fn delete_old_alerts(conn: &mut Conn, before: Timestamp) -> QueryResult<usize> {
    diesel::delete(alerts::table.filter(alerts::created_at.lt(ms(before)))).execute(conn)
}
