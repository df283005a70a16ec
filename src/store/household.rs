//! State of the whole household: whether the assistant is paused.

use diesel::prelude::*;
use jiff::Timestamp;

use super::audit::By;
use super::codec::{ms, time};
use super::schema::pauses;
use super::written::Written;
use super::{Conn, outbox};
use crate::conversation::transcript::UserId;

const OPEN: Written = Written("pauses.ended_at IS NULL");

/// Returns the id of the current pause.
pub fn pause(conn: &mut Conn) -> QueryResult<Option<i64>> {
    pauses::table.filter(OPEN).select(pauses::id).first(conn).optional()
}

/// Outcome of an order: whether it changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Done,
    WasSo,
}

pub fn begin_pause(conn: &mut Conn, by: UserId, now: Timestamp) -> QueryResult<Change> {
    if pause(conn)?.is_some() {
        return Ok(Change::WasSo);
    }
    diesel::insert_into(pauses::table)
        .values((pauses::begun_at.eq(ms(now)), pauses::begun_by.eq(by.0)))
        .execute(conn)?;
    Ok(Change::Done)
}

/// Ends the pause. Users who were not notified of it yet need no notification any more.
pub fn end_pause(conn: &mut Conn, by: By, now: Timestamp) -> QueryResult<Change> {
    if let Some(pause) = pause(conn)? {
        outbox::put_aside(conn, &format!("pause:{pause}"), now)?;
    }
    let ended = diesel::update(pauses::table.filter(OPEN))
        .set((pauses::ended_at.eq(ms(now)), pauses::ended_by.eq(by.user().map(|by| by.0))))
        .execute(conn)?;
    Ok(if ended == 0 { Change::WasSo } else { Change::Done })
}

/// Returns the time at which the last pause ended.
pub fn resumed_at(conn: &mut Conn) -> QueryResult<Option<Timestamp>> {
    let last: Option<Option<i64>> =
        pauses::table.order(pauses::id.desc()).select(pauses::ended_at).first(conn).optional()?;
    last.flatten().map(time).transpose()
}
