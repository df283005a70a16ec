//! Durable part of the event log: the reserved event numbers, so that no process assigns a number of an earlier one, and
//! the number of changes by shell commands, which the log of a running program does not contain.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::stream_events::EventSeq;
use crate::store::codec::ms;
use crate::store::schema::instance;
use crate::store::{Conn, QueryResult};

/// Count of numbers that are reserved at once.
const BLOCK: i64 = 1 << 20;
/// Count of unassigned numbers below which a transaction reserves the next block. No transaction uses half of them.
pub(super) const SPARE: i64 = BLOCK / 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = instance)]
pub(super) struct StoredNumbers {
    /// Last reserved event number.
    #[diesel(column_name = reserved_events)]
    pub(super) reserved: EventSeq,
    /// Number of changes by shell commands.
    pub(super) command_changes: i64,
}

/// Loads the stored numbers; zero before the first start of the program.
pub(super) fn load_stored_numbers(conn: &mut Conn) -> QueryResult<StoredNumbers> {
    let stored = instance::table.select(StoredNumbers::as_select()).first(conn).optional()?;
    Ok(stored.unwrap_or(StoredNumbers { reserved: EventSeq(0), command_changes: 0 }))
}

/// Reserves a block of numbers after those that are reserved, and returns its last number.
pub(super) fn reserve_block(conn: &mut Conn) -> QueryResult<EventSeq> {
    let reserved = load_stored_numbers(conn)?.reserved.0 + BLOCK;
    // The first start of the program creates this row too, if no event precedes it.
    diesel::insert_into(instance::table)
        .values((
            (instance::id.eq(1), instance::epoch.eq(0), instance::started_at.eq(ms(Timestamp::UNIX_EPOCH))),
            instance::reserved_events.eq(reserved),
        ))
        .on_conflict(instance::id)
        .do_update()
        .set(instance::reserved_events.eq(reserved))
        .execute(conn)?;
    Ok(EventSeq(reserved))
}

/// Counts a change by a shell command.
pub(in crate::store) fn count_command_change(conn: &mut Conn) -> QueryResult<()> {
    diesel::update(instance::table)
        .set(instance::command_changes.eq(instance::command_changes + 1))
        .execute(conn)
        .map(drop)
}

/// Loads the number of changes by shell commands.
pub fn load_command_changes(conn: &mut Conn) -> QueryResult<i64> {
    Ok(load_stored_numbers(conn)?.command_changes)
}
