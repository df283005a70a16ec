//! Cursors in the lists of received messages of the channels.

use diesel::prelude::*;
use diesel::upsert::excluded;
use jiff::Timestamp;

use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::schema::offsets;

/// Position up to which a list was read.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = offsets)]
pub struct SourceCursor {
    /// Time of our clock up to which the list was read. A step of the clock shifts it.
    #[diesel(column_name = cursor_at)]
    pub read_until: Timestamp,
    /// Position in the words of the channel, which nothing else interprets.
    pub mark: String,
}

/// Loads the cursor; `None` before the list was first read.
pub fn load_source_cursor(conn: &mut Conn, source: &str) -> QueryResult<Option<SourceCursor>> {
    offsets::table.find(source).select(SourceCursor::as_select()).first(conn).optional()
}

/// Stores the cursor. Call this function only after every message up to `cursor` was admitted.
pub fn store_source_cursor(
    conn: &mut Conn,
    source: &str,
    cursor: &SourceCursor,
    now: Timestamp,
) -> QueryResult<()> {
    diesel::insert_into(offsets::table)
        .values((
            offsets::source.eq(source),
            offsets::cursor_at.eq(ms(cursor.read_until)),
            offsets::mark.eq(&cursor.mark),
            offsets::updated_at.eq(ms(now)),
        ))
        .on_conflict(offsets::source)
        .do_update()
        .set((
            offsets::cursor_at.eq(excluded(offsets::cursor_at)),
            offsets::mark.eq(excluded(offsets::mark)),
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
