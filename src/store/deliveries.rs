//! What the carrier reports of texts it took. Reports come late, twice and in any order, so a state only moves forward.

use diesel::prelude::*;
use jiff::Timestamp;

use super::Conn;
use super::codec::ms;
use super::schema::{delivery_events, outbox};
use crate::conversation::transcript::OutboxId;

/// One status callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub sid: String,
    pub status: String,
    pub outbox: Option<OutboxId>,
    pub attempt: Option<u32>,
    pub error_code: Option<u32>,
}

/// Whether a report said something that was not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    New,
    Known,
}

pub fn record(conn: &mut Conn, report: &Report, now: Timestamp) -> QueryResult<Recorded> {
    let inserted = diesel::insert_into(delivery_events::table)
        .values((
            delivery_events::provider_sid.eq(&report.sid),
            delivery_events::status.eq(&report.status),
            delivery_events::outbox_id.eq(report.outbox.map(|id| id.0)),
            delivery_events::attempt.eq(report.attempt.map(i64::from)),
            delivery_events::error_code.eq(report.error_code.map(i64::from)),
            delivery_events::received_at.eq(ms(now)),
        ))
        .on_conflict_do_nothing()
        .execute(conn)?;
    if inserted == 0 {
        return Ok(Recorded::Known);
    }
    advance(conn, &report.sid, &report.status, now)?;
    Ok(Recorded::New)
}

/// Moves a text's delivery state, never backwards.
pub(super) fn advance(conn: &mut Conn, sid: &str, status: &str, now: Timestamp) -> QueryResult<()> {
    let Some(rank) = rank(status) else { return Ok(()) };
    let row: Option<(i64, Option<String>)> = outbox::table
        .filter(outbox::provider_sid.eq(sid))
        .select((outbox::id, outbox::delivery))
        .first(conn)
        .optional()?;
    let Some((id, known)) = row else { return Ok(()) };
    if known.as_deref().and_then(self::rank).is_some_and(|known| known >= rank) {
        return Ok(());
    }
    diesel::update(outbox::table.find(id))
        .set((outbox::delivery.eq(status), outbox::updated_at.eq(ms(now))))
        .execute(conn)
        .map(drop)
}

/// How far along a status is; `None` for a word we do not know.
fn rank(status: &str) -> Option<u8> {
    match status {
        "accepted" | "scheduled" => Some(0),
        "queued" => Some(1),
        "sending" => Some(2),
        "sent" => Some(3),
        "delivered" | "undelivered" | "failed" | "canceled" => Some(4),
        "read" => Some(5),
        _ => None,
    }
}

/// The delivery state of a row, for tests and the operator.
pub fn state(conn: &mut Conn, id: OutboxId) -> QueryResult<Option<String>> {
    outbox::table.find(id.0).select(outbox::delivery).first(conn)
}
