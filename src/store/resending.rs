//! Resending a message that certainly did not arrive, once.

use diesel::prelude::*;
use jiff::Timestamp;
use serde_json::json;

use super::audit::{self, By, Entry, Subject};
use super::outbox::{self, NewText, TextKind};
use super::schema::outbox as rows;
use super::{Conn, QueryResult};
use crate::conversation::transcript::{Address, UserId};
use crate::store::codec::number;

/// Outcome of resending a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    Queued,
    /// The message may have arrived, was resent already, or its text is erased.
    No,
    /// No message is known by this id.
    Unknown,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = rows)]
struct Row {
    user_id: i64,
    kind: String,
    to_addr: String,
    from_addr: String,
    body: String,
    media_url: Option<String>,
    segments: i64,
    state: String,
    delivery: Option<String>,
    error: Option<String>,
}

impl Row {
    /// Returns whether the message certainly did not arrive. Only the carrier knows that: it refused the message with
    /// a code, or reported it as not delivered. A confirmation prompt is never resent, since a yes to it may not mean
    /// it any more.
    fn surely_failed(&self) -> bool {
        let refused = self.state == "failed" && self.error.as_deref().is_some_and(has_code);
        let reported = matches!(self.delivery.as_deref(), Some("undelivered" | "failed"));
        (refused || reported) && self.kind != "confirm_prompt" && !self.body.is_empty()
    }
}

fn has_code(error: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(error).is_ok_and(|error| error["code"].is_u64())
}

fn key(id: i64) -> String {
    format!("again:{id}")
}

/// Returns whether [`again`] would queue the message.
pub fn may_be(conn: &mut Conn, id: i64) -> QueryResult<bool> {
    let row: Option<Row> = rows::table.find(id).select(Row::as_select()).first(conn).optional()?;
    Ok(row.is_some_and(|row| row.surely_failed()) && !was_sent_again(conn, id)?)
}

fn was_sent_again(conn: &mut Conn, id: i64) -> QueryResult<bool> {
    let known: Option<i64> =
        rows::table.filter(rows::dedupe_key.eq(key(id))).select(rows::id).first(conn).optional()?;
    Ok(known.is_some())
}

/// Queues the text as a message of its own. As a notification it never comes between a confirmation prompt and its
/// reply.
pub fn again(conn: &mut Conn, id: i64, by: By, now: Timestamp) -> QueryResult<Again> {
    let row: Option<Row> = rows::table.find(id).select(Row::as_select()).first(conn).optional()?;
    let Some(row) = row else { return Ok(Again::Unknown) };
    if !row.surely_failed() || was_sent_again(conn, id)? {
        return Ok(Again::No);
    }
    let user = UserId(row.user_id);
    let entry = Entry { by, kind: "send_again", subject: Subject::User(user), detail: json!({ "text": id }) };
    audit::record(conn, &entry, now)?;
    let text = NewText {
        key: key(id),
        user,
        turn: None,
        kind: TextKind::Notice,
        to: Address::new(row.to_addr),
        from: Address::new(row.from_addr),
        body: row.body,
        media: row.media_url,
        segments: number(row.segments)?,
    };
    outbox::queue(conn, &text, now)?;
    Ok(Again::Queued)
}
