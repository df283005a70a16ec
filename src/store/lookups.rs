//! Texts that are looked up in the carrier's list: those whose fate is unknown, and those that a run of the program
//! which this database does not know of may have sent. A restored copy of the database does not know of the runs since.

use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use super::Conn;
use super::codec::{ms, time};
use super::kept::Keep;
use super::outbox::{Due, DueRow, Failed, NewText, OPEN, fail};
use super::schema::{delivery_events, instance, outbox, turns};
use super::written::Written;
use crate::conversation::transcript::OutboxId;
use crate::conversation::way::Way;

/// Attempts to read the list for a text from before this start. A list that cannot be read holds up no text for long:
/// a rare repeat is better than silence, and a repeated question deletes nothing by itself.
const LOOKUPS_BEFORE_SENDING: i64 = 3;
/// `lookups_left` of a text that needs lookups and has had none.
const NOT_BEGUN: i64 = LOOKUPS_BEFORE_SENDING + USED_UP;
/// The same of one whose lookups all failed: it is sent all the same.
const USED_UP: i64 = 1;
/// Time that one such attempt gets, with the pause after one that failed.
const LOOKUP_PAUSE: SignedDuration = SignedDuration::from_secs(15);

/// Whether a text with this `lookups_left` has to be looked up before it is sent.
pub(super) fn is_needed(lookups_left: i64) -> bool {
    lookups_left > USED_UP
}

/// Of a text that may be sent, as far as lookups go: none is needed, or they are used up.
pub(super) const MAY_BE_SENT: Written = Written("outbox.lookups_left <= 1");

/// Of a text that no lookup has begun for: only then may its words still change.
pub(super) const NOT_LOOKED_UP: Written = Written("outbox.lookups_left IN (0,4)");

/// What has not left when a start of the program begins is looked up before it is sent.
pub(super) fn require_for_queued(conn: &mut Conn) -> QueryResult<()> {
    let by_phone = Written("outbox.from_addr NOT IN ('local','console')");
    diesel::update(outbox::table.filter(OPEN.and(outbox::state.eq("queued")).and(by_phone)))
        .set(outbox::lookups_left.eq(NOT_BEGUN))
        .execute(conn)
        .map(drop)
}

/// The lookups that a text needs before it is sent: some where its turn began before this start, since such a turn may
/// have been ended, and its text sent, by a run that this database does not know of.
pub(super) fn needed(conn: &mut Conn, text: &NewText) -> QueryResult<i64> {
    let (Some(turn), Way::Carrier) = (text.turn, text.from.way()) else { return Ok(0) };
    let begun: i64 = turns::table.find(turn.0).select(turns::created_at).first(conn)?;
    let started: Option<i64> = instance::table.select(instance::started_at).first(conn).optional()?;
    Ok(if started.is_some_and(|started| begun < started) { NOT_BEGUN } else { 0 })
}

/// Takes a text for a lookup before its sending; `None` where it needs none at this moment. A lookup that is cut off or
/// fails counts, and the next one follows after a pause.
pub fn begin_before_sending(conn: &mut Conn, id: OutboxId, now: Timestamp) -> QueryResult<Option<Sought>> {
    let waits =
        outbox::state.eq("queued").and(outbox::lookups_left.gt(USED_UP)).and(outbox::not_before.le(ms(now)));
    let begun: Option<(DueRow, i64, Option<i64>)> = diesel::update(outbox::table.find(id.0).filter(waits))
        .set((
            outbox::lookups_left.eq(outbox::lookups_left - 1),
            outbox::not_before.eq(ms(now + LOOKUP_PAUSE)),
            outbox::updated_at.eq(ms(now)),
        ))
        .returning((DueRow::as_returning(), outbox::created_at, outbox::turn_id))
        .get_result(conn)
        .optional()?;
    let Some((due, created_at, turn)) = begun else { return Ok(None) };
    let begun: Option<i64> = match turn {
        Some(turn) => turns::table.find(turn).select(turns::created_at).first(conn).optional()?,
        None => None,
    };
    let since = time(begun.map_or(created_at, |begun| begun.min(created_at)))?;
    Ok(Some(Sought { due: due.read()?, since, reported: None, looks: 0 }))
}

/// The list was read and does not hold the text: it may be sent.
pub fn allow_sending(conn: &mut Conn, id: OutboxId, now: Timestamp) -> QueryResult<()> {
    diesel::update(outbox::table.find(id.0).filter(outbox::state.eq("queued")))
        .set((outbox::lookups_left.eq(0), outbox::not_before.eq(ms(now)), outbox::updated_at.eq(ms(now))))
        .execute(conn)
        .map(drop)
}

/// A text whose fate is unknown, as it is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sought {
    pub due: Due,
    /// When it was first tried.
    pub since: Timestamp,
    /// The id that a status callback gave for it.
    pub reported: Option<String>,
    /// How often it was looked for in vain.
    pub looks: i64,
}

pub fn sought(conn: &mut Conn, id: OutboxId) -> QueryResult<Option<Sought>> {
    let row: Option<(DueRow, i64, i64)> = outbox::table
        .find(id.0)
        .filter(outbox::state.eq("unknown"))
        .select((DueRow::as_select(), outbox::created_at, outbox::looks))
        .first(conn)
        .optional()?;
    let Some((due, created_at, looks)) = row else { return Ok(None) };
    let reported: Option<String> = delivery_events::table
        .filter(delivery_events::outbox_id.eq(id.0))
        .select(delivery_events::provider_sid)
        .first(conn)
        .optional()?;
    Ok(Some(Sought { due: due.read()?, since: time(created_at)?, reported, looks }))
}

/// What a look that found nothing leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    LookAgain,
    /// Looked for often enough: it was not taken, and is sent again.
    SendAgain,
}

/// Looks at a text whose fate is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looks {
    /// How many there were when this one began.
    pub before: i64,
    /// After how many in vain it counts as not taken.
    pub enough: usize,
}

/// Counts a look in vain. Of two that began after the same number of looks only one counts.
pub fn not_found(conn: &mut Conn, id: OutboxId, looks: Looks, now: Timestamp) -> QueryResult<Missing> {
    let same = outbox::state.eq("unknown").and(outbox::looks.eq(looks.before));
    let counted: Option<i64> = diesel::update(outbox::table.find(id.0).filter(same))
        .set((outbox::looks.eq(outbox::looks + 1), outbox::updated_at.eq(ms(now))))
        .returning(outbox::looks)
        .kept()
        .get_result(conn)
        .optional()?;
    let Some(counted) = counted else { return Ok(Missing::LookAgain) };
    if usize::try_from(counted).is_ok_and(|counted| counted < looks.enough) {
        return Ok(Missing::LookAgain);
    }
    diesel::update(outbox::table.find(id.0))
        .set((
            outbox::state.eq("queued"),
            outbox::looks.eq(0),
            outbox::not_before.eq(ms(now)),
            outbox::updated_at.eq(ms(now)),
        ))
        .kept()
        .execute(conn)?;
    Ok(Missing::SendAgain)
}

/// The carrier's list could not be read: the look does not count.
pub fn look_later(conn: &mut Conn, id: OutboxId, at: Timestamp, now: Timestamp) -> QueryResult<()> {
    let unknown = outbox::table.find(id.0).filter(outbox::state.eq("unknown"));
    let too_old: i64 = unknown.filter(outbox::deadline_at.lt(ms(now))).count().get_result(conn)?;
    if too_old > 0 {
        return fail(
            conn,
            id,
            &Failed { code: None, meaning: "nobody could tell whether it was taken" },
            now,
        );
    }
    diesel::update(unknown)
        .set((outbox::not_before.eq(ms(at)), outbox::updated_at.eq(ms(now))))
        .kept()
        .execute(conn)
        .map(drop)
}
