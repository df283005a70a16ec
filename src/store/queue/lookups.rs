//! Lookups of messages in the carrier's list: of messages whose delivery status is unknown, and of messages that may
//! have been sent by a run of the program unknown to this database. A restored copy of the database does not contain
//! the runs since the copy was made.

use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use super::outbox::{
    DueMessage, DueMessageRow, NewOutboundMessage, OPEN, OutboxState, SendFailure, fail_message,
};
use crate::conversation::routing::transport::MessageTransport;
use crate::conversation::transcript::{OutboxId, TurnId};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::database::literal_sql::LiteralSql;
use crate::store::database::statement_cache::CacheStatement;
use crate::store::schema::{delivery_events, instance, outbox, turns};

/// Maximum number of attempts to read the list for a message from before this start. A list that cannot be read delays
/// no message for long: a rare repeat is better than no message, and a repeated confirmation prompt deletes nothing
/// automatically.
const LOOKUPS_BEFORE_SENDING: i64 = 3;
/// Value of `lookups_left` for a message that needs lookups and has had none.
const NOT_BEGUN: i64 = LOOKUPS_BEFORE_SENDING + USED_UP;
/// Value of `lookups_left` for a message whose lookups all failed: the message is sent anyway.
const USED_UP: i64 = 1;
/// Time for one such attempt, including the pause after a failure.
const LOOKUP_PAUSE: SignedDuration = SignedDuration::from_secs(15);

/// Returns whether a message with this `lookups_left` must be looked up before it is sent.
pub(in crate::store) fn is_lookup_needed(lookups_left: i64) -> bool {
    lookups_left > USED_UP
}

/// Condition of a message that lookups allow to be sent: none is needed, or all attempts are used up.
pub(in crate::store) const MAY_BE_SENT: LiteralSql = LiteralSql("outbox.lookups_left <= 1");

/// Condition of a message for which no lookup has begun. Only the text of such a message may still change.
pub(in crate::store) const NOT_LOOKED_UP: LiteralSql = LiteralSql("outbox.lookups_left IN (0,4)");

/// Requires a lookup before sending for messages that are unsent when the program starts.
pub(in crate::store) fn require_lookup_for_queued(conn: &mut Conn) -> QueryResult<()> {
    let by_phone = LiteralSql("outbox.from_addr NOT IN ('local','console')");
    diesel::update(outbox::table.filter(OPEN.and(outbox::state.eq(OutboxState::Queued)).and(by_phone)))
        .set(outbox::lookups_left.eq(NOT_BEGUN))
        .execute(conn)
        .map(drop)
}

/// Returns the number of lookups that a message needs before it is sent. The number is nonzero if its turn began before
/// this start, since a run that this database does not know of may have ended such a turn and sent its message.
pub(in crate::store) fn count_needed_lookups(conn: &mut Conn, text: &NewOutboundMessage) -> QueryResult<i64> {
    let (Some(turn), MessageTransport::Carrier) = (text.turn, text.from.transport()) else { return Ok(0) };
    let begun: Timestamp = turns::table.find(turn).select(turns::created_at).first(conn)?;
    let started: Option<Timestamp> = instance::table.select(instance::started_at).first(conn).optional()?;
    Ok(if started.is_some_and(|started| begun < started) { NOT_BEGUN } else { 0 })
}

/// Claims a message for a lookup before it is sent; `None` if the message needs no lookup now. A lookup that is
/// interrupted or fails counts, and the next one follows after a pause.
pub fn start_lookup_before_sending(
    conn: &mut Conn,
    id: OutboxId,
    now: Timestamp,
) -> QueryResult<Option<UnresolvedMessage>> {
    let waits = outbox::state
        .eq(OutboxState::Queued)
        .and(outbox::lookups_left.gt(USED_UP))
        .and(outbox::not_before.le(ms(now)));
    let begun: Option<(DueMessageRow, Timestamp, Option<TurnId>)> =
        diesel::update(outbox::table.find(id).filter(waits))
            .set((
                outbox::lookups_left.eq(outbox::lookups_left - 1),
                outbox::not_before.eq(ms(now + LOOKUP_PAUSE)),
                outbox::updated_at.eq(ms(now)),
            ))
            .returning((DueMessageRow::as_returning(), outbox::created_at, outbox::turn_id))
            .get_result(conn)
            .optional()?;
    let Some((due, created_at, turn)) = begun else { return Ok(None) };
    let begun: Option<Timestamp> = match turn {
        Some(turn) => turns::table.find(turn).select(turns::created_at).first(conn).optional()?,
        None => None,
    };
    let since = begun.map_or(created_at, |begun| begun.min(created_at));
    Ok(Some(UnresolvedMessage { due: due.into_due_message()?, since, reported: None, looks: 0 }))
}

/// Allows a message to be sent after the list was read and does not contain the message.
pub fn allow_sending(conn: &mut Conn, id: OutboxId, now: Timestamp) -> QueryResult<()> {
    diesel::update(outbox::table.find(id).filter(outbox::state.eq(OutboxState::Queued)))
        .set((outbox::lookups_left.eq(0), outbox::not_before.eq(ms(now)), outbox::updated_at.eq(ms(now))))
        .execute(conn)
        .map(drop)
}

/// Message whose delivery status is unknown, with the fields needed for a lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnresolvedMessage {
    pub due: DueMessage,
    /// Time of the first attempt to send the message.
    pub since: Timestamp,
    /// Carrier id that a status callback gave for the message.
    pub reported: Option<String>,
    /// Number of lookups that did not find the message.
    pub looks: i64,
}

pub fn load_unresolved_message(conn: &mut Conn, id: OutboxId) -> QueryResult<Option<UnresolvedMessage>> {
    let row: Option<(DueMessageRow, Timestamp, i64)> = outbox::table
        .find(id)
        .filter(outbox::state.eq(OutboxState::Unknown))
        .select((DueMessageRow::as_select(), outbox::created_at, outbox::looks))
        .first(conn)
        .optional()?;
    let Some((due, since, looks)) = row else { return Ok(None) };
    let reported: Option<String> = delivery_events::table
        .filter(delivery_events::outbox_id.eq(id))
        .select(delivery_events::provider_sid)
        .first(conn)
        .optional()?;
    Ok(Some(UnresolvedMessage { due: due.into_due_message()?, since, reported, looks }))
}

/// Outcome of counting a lookup that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupOutcome {
    LookAgain,
    /// The number of lookups is sufficient: the message was not accepted, and is sent again.
    SendAgain,
}

/// Lookup count of a message whose delivery status is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupCount {
    /// Number of earlier lookups when this one began.
    pub before: i64,
    /// Number of unsuccessful lookups after which the message counts as not accepted.
    pub enough: usize,
}

/// Counts an unsuccessful lookup. Of two concurrent lookups that began after the same number of lookups, only one
/// counts.
pub fn record_unsuccessful_lookup(
    conn: &mut Conn,
    id: OutboxId,
    looks: LookupCount,
    now: Timestamp,
) -> QueryResult<LookupOutcome> {
    let same = outbox::state.eq(OutboxState::Unknown).and(outbox::looks.eq(looks.before));
    let counted: Option<i64> = diesel::update(outbox::table.find(id).filter(same))
        .set((outbox::looks.eq(outbox::looks + 1), outbox::updated_at.eq(ms(now))))
        .returning(outbox::looks)
        .cached()
        .get_result(conn)
        .optional()?;
    let Some(counted) = counted else { return Ok(LookupOutcome::LookAgain) };
    if usize::try_from(counted).is_ok_and(|counted| counted < looks.enough) {
        return Ok(LookupOutcome::LookAgain);
    }
    diesel::update(outbox::table.find(id))
        .set((
            outbox::state.eq(OutboxState::Queued),
            outbox::looks.eq(0),
            outbox::not_before.eq(ms(now)),
            outbox::updated_at.eq(ms(now)),
        ))
        .cached()
        .execute(conn)?;
    Ok(LookupOutcome::SendAgain)
}

/// Postpones a lookup because the carrier's list could not be read: this lookup does not count.
pub fn postpone_lookup(conn: &mut Conn, id: OutboxId, at: Timestamp, now: Timestamp) -> QueryResult<()> {
    let unknown = outbox::table.find(id).filter(outbox::state.eq(OutboxState::Unknown));
    let too_old: i64 = unknown.filter(outbox::deadline_at.lt(ms(now))).count().get_result(conn)?;
    if too_old > 0 {
        return fail_message(
            conn,
            id,
            &SendFailure { code: None, meaning: "nobody could tell whether it was taken" },
            now,
        );
    }
    diesel::update(unknown)
        .set((outbox::not_before.eq(ms(at)), outbox::updated_at.eq(ms(now))))
        .cached()
        .execute(conn)
        .map(drop)
}
