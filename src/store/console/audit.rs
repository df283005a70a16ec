//! Reader of the audit log.

use diesel::prelude::*;
use jiff::Timestamp;
use serde_json::Value;

use super::who::{self, Who};
use super::{Listed, one_more};
use crate::conversation::transcript::{ConversationId, TurnId, UserId};
use crate::store::access;
use crate::store::audit::KEY;
use crate::store::codec::{from_json, time};
use crate::store::schema::{api_keys, approvals, audit_log, conversations, tool_calls, turns};
use crate::store::{Conn, QueryResult};

/// Entry of the audit log.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub id: i64,
    pub at: Timestamp,
    pub by: Author,
    /// Stable identifier of the kind of change.
    pub kind: String,
    pub subject: Subject,
    pub detail: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Author {
    Person(Who),
    Shell,
    Console,
    /// Program that uses the API key with this name.
    Key(String),
    Dialarr,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    Person(Who),
    /// Tool call, with the name of the tool.
    Call {
        tool: String,
        at: Place,
    },
    Turn(Place),
    /// Approval that admins were asked for, concerning this user.
    Approval(Who),
    Household,
    /// Access to the console.
    Console,
    /// API key, with its name.
    Key(String),
    /// Subject in the form in which the log stores it.
    Other(String),
}

/// Conversation and turn in which a change was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub conversation: ConversationId,
    pub name: String,
    pub turn: TurnId,
    pub with: Who,
}

/// Loads entries, newest first, below `before`; `kind` excludes all other kinds.
pub fn list(conn: &mut Conn, kind: Option<&str>, before: i64, fits: usize) -> QueryResult<Listed<Line>> {
    type Row = (i64, i64, Option<i64>, String, String, String);
    let lines = audit_log::table
        .filter(audit_log::id.lt(before))
        .order(audit_log::id.desc())
        .limit(one_more(fits))
        .select((
            audit_log::id,
            audit_log::at,
            audit_log::user_id,
            audit_log::kind,
            audit_log::subject,
            audit_log::detail,
        ));
    let rows: Vec<Row> = match kind {
        Some(kind) => lines.filter(audit_log::kind.eq(kind)).load(conn)?,
        None => lines.load(conn)?,
    };
    let mut read = Vec::with_capacity(rows.len());
    for (id, at, user, kind, about, detail) in rows {
        let detail: Value = from_json("detail", &detail)?;
        let by = match (user, detail["by"].as_str()) {
            (Some(user), _) => Author::Person(who::by_id(conn, UserId(user))?),
            (None, Some("shell")) => Author::Shell,
            (None, Some("console")) => Author::Console,
            (None, Some(by)) => match by.strip_prefix(KEY).and_then(|id| id.parse().ok()) {
                Some(key) => Author::Key(access::key_name(conn, key)?),
                None => Author::Dialarr,
            },
            (None, None) => Author::Dialarr,
        };
        let subject = subject(conn, about)?;
        read.push(Line { id, at: time(at)?, by, kind, subject, detail });
    }
    Ok(Listed::of(read, fits, |line| line.id))
}

/// Resolves the subject of an entry. A subject that no longer exists is returned in its stored form.
fn subject(conn: &mut Conn, about: String) -> QueryResult<Subject> {
    let found = match (about.as_str(), about.split_once(':')) {
        ("household", _) => Some(Subject::Household),
        ("console", _) => Some(Subject::Console),
        (_, Some((what, id))) => match id.parse() {
            Ok(id) => numbered(conn, what, id).optional()?.flatten(),
            Err(_) => None,
        },
        (_, None) => None,
    };
    Ok(found.unwrap_or(Subject::Other(about)))
}

fn numbered(conn: &mut Conn, what: &str, id: i64) -> QueryResult<Option<Subject>> {
    Ok(match what {
        "user" => Some(Subject::Person(who::by_id(conn, UserId(id))?)),
        "turn" => Some(Subject::Turn(place(conn, id)?)),
        "tool_call" => {
            let (tool, turn): (String, i64) = tool_calls::table
                .find(id)
                .select((tool_calls::tool_name, tool_calls::turn_id))
                .first(conn)?;
            Some(Subject::Call { tool, at: place(conn, turn)? })
        }
        "approval" => {
            let user: i64 = approvals::table.find(id).select(approvals::user_id).first(conn)?;
            Some(Subject::Approval(who::by_id(conn, UserId(user))?))
        }
        "api_key" => Some(Subject::Key(api_keys::table.find(id).select(api_keys::name).first(conn)?)),
        _ => None,
    })
}

fn place(conn: &mut Conn, turn: i64) -> QueryResult<Place> {
    let (conversation, name, user): (i64, String, i64) = turns::table
        .inner_join(conversations::table.on(conversations::id.eq(turns::conversation_id)))
        .filter(turns::id.eq(turn))
        .select((conversations::id, conversations::name, turns::user_id))
        .first(conn)?;
    let with = who::by_id(conn, UserId(user))?;
    Ok(Place { conversation: ConversationId(conversation), name, turn: TurnId(turn), with })
}
