//! The audit log: each change and its actor, one row per change. A change of Dialarr's own tables and its row are
//! written in one transaction. The row of an external change, such as an addition in Radarr, is written before the
//! change starts, so that no change is made if the row cannot be stored. The outcome is added later.

use std::fmt;

use diesel::prelude::*;
use jiff::Timestamp;
use serde_json::Value;

use super::codec::{from_json, ms};
use super::database::literal_sql::literal_sql;
use super::database::statement_cache::CacheStatement;
use super::schema::audit_log;
use super::{Conn, with_savepoint};
use crate::conversation::transcript::{CallRow, TurnId, UserId};

/// Actor of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    User(UserId),
    /// The operator, at the shell of the host.
    Shell,
    /// The operator, in a browser.
    Console,
    /// A program, with the API key of this id.
    Key(i64),
    /// Dialarr itself, as configured.
    Dialarr,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(user) => write!(f, "user:{user}"),
            Self::Shell => f.write_str("shell"),
            Self::Console => f.write_str("console"),
            Self::Key(id) => write!(f, "{API_KEY_PREFIX}{id}"),
            Self::Dialarr => f.write_str("dialarr"),
        }
    }
}

impl Actor {
    /// Returns the user who made the change, if the actor was one of the users.
    pub fn user(self) -> Option<UserId> {
        match self {
            Self::User(user) => Some(user),
            Self::Shell | Self::Console | Self::Key(_) | Self::Dialarr => None,
        }
    }
}

/// Subject of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditSubject {
    Call(CallRow),
    Turn(TurnId),
    User(UserId),
    Approval(i64),
    Household,
    /// Access to the console: successful and failed sign-ins.
    Console,
    /// An API key.
    Key(i64),
    /// Stored settings, which the detail names.
    Settings,
    /// Webhooks at Sonarr, Radarr and Twilio, which the outcome names.
    Webhooks,
}

/// New entry of the log. `detail` contains neither names nor phone numbers of users, only their ids.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAuditEntry {
    pub actor: Actor,
    /// Stable identifier such as `write`, `delete` or `approve`.
    pub kind: &'static str,
    pub subject: AuditSubject,
    pub detail: Value,
}

impl NewAuditEntry {
    /// Returns the entry with an empty detail, for a subject that was erased.
    pub fn without_detail(&self) -> Self {
        Self { detail: Value::Object(serde_json::Map::new()), ..self.clone() }
    }

    /// Returns the stored detail, which names the actor unless the actor is a user.
    fn stored_detail(&self) -> String {
        let mut detail = self.detail.clone();
        if let (None, Some(detail)) = (self.actor.user(), detail.as_object_mut()) {
            detail.insert("by".to_owned(), self.actor.to_string().into());
        }
        detail.to_string()
    }
}

impl fmt::Display for AuditSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(call) => write!(f, "tool_call:{call}"),
            Self::Turn(turn) => write!(f, "turn:{turn}"),
            Self::User(user) => write!(f, "user:{user}"),
            Self::Approval(id) => write!(f, "approval:{id}"),
            Self::Household => f.write_str("household"),
            Self::Console => f.write_str("console"),
            Self::Key(id) => write!(f, "api_key:{id}"),
            Self::Settings => f.write_str("settings"),
            Self::Webhooks => f.write_str("webhooks"),
        }
    }
}

/// Prefix of the actor in `detail`, before the id of the API key that made the change.
pub(super) const API_KEY_PREFIX: &str = "key:";
literal_sql! {
    /// Condition of the rows of external changes that have started and have no outcome.
    const OPEN_INTENT =
        "(audit_log.kind = 'write' OR audit_log.kind = 'write_queued' OR audit_log.kind = 'delete')";

    /// Condition of the rows of external changes that have succeeded.
    const MADE_CHANGE = "(audit_log.kind = 'write_done' OR audit_log.kind = 'write_unchanged')";
}

pub fn record_change(conn: &mut Conn, entry: &NewAuditEntry, now: Timestamp) -> QueryResult<()> {
    diesel::insert_into(audit_log::table)
        .values((
            audit_log::at.eq(ms(now)),
            audit_log::epoch.eq(super::boot::CURRENT_EPOCH),
            audit_log::user_id.eq(entry.actor.user().map(|user| user.0)),
            audit_log::kind.eq(entry.kind),
            audit_log::subject.eq(entry.subject.to_string()),
            audit_log::detail.eq(entry.stored_detail()),
        ))
        .cached()
        .run(conn)
}

/// Records the start of an external change. Another attempt at the same change reuses the row of the first attempt.
pub fn record_intent(conn: &mut Conn, entry: &NewAuditEntry, now: Timestamp) -> QueryResult<()> {
    match find_open_entry(conn, entry)? {
        Some(_) => Ok(()),
        None => record_change(conn, entry, now),
    }
}

/// Completes the row of a change with its outcome. An outcome that cannot be stored is only logged: the change is made,
/// and its user must still be notified.
pub fn record_outcome(conn: &mut Conn, entry: &NewAuditEntry, now: Timestamp) {
    let recorded = with_savepoint(conn, |conn| match find_open_entry(conn, entry)? {
        Some(id) => diesel::update(audit_log::table.find(id))
            .set((audit_log::kind.eq(entry.kind), audit_log::detail.eq(entry.stored_detail())))
            .execute(conn)
            .map(drop),
        None => record_change(conn, entry, now),
    });
    if let Err(error) = recorded {
        tracing::error!(%error, kind = entry.kind, "failed to store the outcome of a change in the audit log");
    }
}

/// Returns whether an installation of the webhooks has succeeded.
pub fn has_installed_webhooks(conn: &mut Conn) -> QueryResult<bool> {
    let rows =
        audit_log::table.filter(MADE_CHANGE.and(audit_log::subject.eq(AuditSubject::Webhooks.to_string())));
    diesel::select(diesel::dsl::exists(rows)).get_result(conn)
}

/// Finds the id of the entry for a change that has started and has no outcome. Each item of a call with several items
/// has its own entry.
fn find_open_entry(conn: &mut Conn, entry: &NewAuditEntry) -> QueryResult<Option<i64>> {
    let rows: Vec<(i64, String)> = audit_log::table
        .filter(OPEN_INTENT.and(audit_log::subject.eq(entry.subject.to_string())))
        .order(audit_log::id.desc())
        .select((audit_log::id, audit_log::detail))
        .load(conn)?;
    for (id, detail) in rows {
        let detail: Value = from_json("detail", &detail)?;
        if detail["item"] == entry.detail["item"] {
            return Ok(Some(id));
        }
    }
    Ok(None)
}
