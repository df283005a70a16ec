//! Cursors in the carriers' lists of received messages.

use diesel::prelude::*;
use diesel::upsert::excluded;
use jiff::Timestamp;

use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::schema::offsets;

/// Loads the cursor; `None` before the list was first read.
pub fn load_carrier_cursor(conn: &mut Conn, source: &str) -> QueryResult<Option<Timestamp>> {
    offsets::table.find(source).select(offsets::cursor_at).first(conn).optional()
}

/// Stores the cursor. Call this function only after every message up to `cursor` was admitted.
pub fn store_carrier_cursor(
    conn: &mut Conn,
    source: &str,
    cursor: Timestamp,
    now: Timestamp,
) -> QueryResult<()> {
    diesel::insert_into(offsets::table)
        .values((
            offsets::source.eq(source),
            offsets::cursor_at.eq(ms(cursor)),
            offsets::updated_at.eq(ms(now)),
        ))
        .on_conflict(offsets::source)
        .do_update()
        .set((
            offsets::cursor_at.eq(excluded(offsets::cursor_at)),
            offsets::updated_at.eq(excluded(offsets::updated_at)),
        ))
        .execute(conn)
        .map(drop)
}

/// Inserts and deletes a row, to check that the disk accepts writes.
pub fn probe_write(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    const SOURCE: &str = "probe";
    diesel::insert_into(offsets::table)
        .values((offsets::source.eq(SOURCE), offsets::cursor_at.eq(ms(now)), offsets::updated_at.eq(ms(now))))
        .execute(conn)?;
    diesel::delete(offsets::table.find(SOURCE)).execute(conn).map(drop)
}
