//! The record of changes, as it is read.

use diesel::prelude::*;
use jiff::Timestamp;
use serde_json::Value;

use super::who::{self, Who};
use super::{Listed, one_more};
use crate::conversation::transcript::{ConversationId, UserId};
use crate::store::access;
use crate::store::audit::KEY;
use crate::store::codec::{from_json, time};
use crate::store::schema::{approvals, audit_log, tool_calls, turns};
use crate::store::{Conn, QueryResult};

/// One line of the record.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub id: i64,
    pub at: Timestamp,
    pub by: Author,
    /// A stable word.
    pub kind: String,
    pub subject: Subject,
    pub detail: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Author {
    Person(Who),
    Shell,
    Console,
    /// A program, with the key of this name.
    Key(String),
    Dialarr,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    Person(Who),
    /// A tool call of a conversation, by the name of the tool.
    Call {
        tool: String,
        conversation: ConversationId,
    },
    /// What admins were asked about somebody.
    Approval(Who),
    /// As it stands in the record.
    Other(String),
}

/// Newest first, below `before`; `kind` leaves out all others.
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

fn subject(conn: &mut Conn, about: String) -> QueryResult<Subject> {
    let named = about.split_once(':').and_then(|(what, id)| Some((what, id.parse::<i64>().ok()?)));
    Ok(match named {
        Some(("user", id)) => Subject::Person(who::by_id(conn, UserId(id))?),
        Some(("tool_call", id)) => {
            let (tool, conversation): (String, i64) = tool_calls::table
                .inner_join(turns::table.on(turns::id.eq(tool_calls::turn_id)))
                .filter(tool_calls::id.eq(id))
                .select((tool_calls::tool_name, turns::conversation_id))
                .first(conn)?;
            Subject::Call { tool, conversation: ConversationId(conversation) }
        }
        Some(("approval", id)) => {
            let user: i64 = approvals::table.find(id).select(approvals::user_id).first(conn)?;
            Subject::Approval(who::by_id(conn, UserId(user))?)
        }
        Some(_) | None => Subject::Other(about),
    })
}
