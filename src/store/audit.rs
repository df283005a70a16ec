//! The record of what was changed and by whom. It is only added to: what changes something writes its row first, in
//! the same transaction, so that a change whose row cannot be stored does not happen.

use diesel::prelude::*;
use jiff::Timestamp;
use serde_json::Value;

use super::Conn;
use super::codec::ms;
use super::schema::audit_log;
use crate::conversation::transcript::{CallRow, TurnId, UserId};

/// Who did it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    User(UserId),
    /// The operator, at the shell of the server.
    Shell,
    /// The operator, in a browser.
    Console,
    /// A program, with the API key of this id.
    Key(i64),
    /// The program itself, as set up.
    Dialarr,
}

impl By {
    /// The person who did it, where it was one of those who text.
    pub fn user(self) -> Option<UserId> {
        match self {
            Self::User(user) => Some(user),
            Self::Shell | Self::Console | Self::Key(_) | Self::Dialarr => None,
        }
    }
}

/// What it was done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Call(CallRow),
    Turn(TurnId),
    User(UserId),
    Approval(i64),
    Household,
    /// The door to the console: who signed in and who could not.
    Console,
    /// An API key.
    Key(i64),
}

/// One line of the record. Neither names nor numbers of people belong in `detail`: ids tell who they are, for as long
/// as they are known.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub by: By,
    /// A stable word such as `write`, `delete`, `approve`.
    pub kind: &'static str,
    pub subject: Subject,
    pub detail: Value,
}

/// What stands in a row before the id of the key that did it.
pub(super) const KEY: &str = "key:";

pub fn record(conn: &mut Conn, entry: &Entry, now: Timestamp) -> QueryResult<()> {
    let epoch = super::boot::epoch(conn)?;
    let (user, by) = match entry.by {
        By::User(user) => (Some(user.0), None),
        By::Shell => (None, Some("shell".to_owned())),
        By::Console => (None, Some("console".to_owned())),
        By::Key(id) => (None, Some(format!("{KEY}{id}"))),
        By::Dialarr => (None, Some("dialarr".to_owned())),
    };
    let subject = match entry.subject {
        Subject::Call(call) => format!("tool_call:{call}"),
        Subject::Turn(turn) => format!("turn:{turn}"),
        Subject::User(user) => format!("user:{user}"),
        Subject::Approval(id) => format!("approval:{id}"),
        Subject::Household => "household".to_owned(),
        Subject::Console => "console".to_owned(),
        Subject::Key(id) => format!("api_key:{id}"),
    };
    let mut detail = entry.detail.clone();
    if let (Some(by), Some(detail)) = (by, detail.as_object_mut()) {
        detail.insert("by".to_owned(), by.into());
    }
    diesel::insert_into(audit_log::table)
        .values((
            audit_log::at.eq(ms(now)),
            audit_log::epoch.eq(epoch),
            audit_log::user_id.eq(user),
            audit_log::kind.eq(entry.kind),
            audit_log::subject.eq(subject),
            audit_log::detail.eq(detail.to_string()),
        ))
        .execute(conn)
        .map(drop)
}

/// Records what came of a change that had its row before it began. This row may be missing: the change is done, and
/// whoever waits must hear of it all the same.
pub fn record_outcome(conn: &mut Conn, entry: &Entry, now: Timestamp) {
    if let Err(error) = conn.transaction(|conn| record(conn, entry, now)) {
        tracing::error!(%error, kind = entry.kind, "the outcome of a change is missing in the audit log");
    }
}
