//! Erasure of text from the full-text indexes. Text that is removed from an index is overwritten, which takes
//! milliseconds per message, but single words may remain in the terms that order the pages of the index. If much text
//! is removed at once, it is only marked as deleted, so that no user waits for the overwriting. In both cases the text
//! can no longer be found, and [`rebuild_due_index`] removes the rest of it.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use super::retention::{self, RetentionProgress};
use crate::conversation::transcript::UserId;
use crate::store::schema::{agent_responses, inbound_events, outbox, sweeps};
use crate::store::{Conn, QueryResult};

const INDEXES: [&str; 3] = ["words_in", "words_out", ANSWER_INDEX];
/// Full-text index of the stored answers.
const ANSWER_INDEX: &str = "response_words";
/// Number of messages from which erased text is only marked as deleted.
const BULK_ERASURE_MESSAGES: i64 = 300;
/// Delay of the rebuild after a retention run. Expired text is overwritten immediately, and the single words that may
/// remain do not justify more frequent rebuilds.
const RETENTION_REBUILD_DELAY: SignedDuration = SignedDuration::from_hours(24 * 7);

/// Runs `erase`, which removes a user's text from the indexed tables, and schedules a rebuild of all indexes.
pub(super) fn erase_indexed_user_text(
    conn: &mut Conn,
    user: UserId,
    now: Timestamp,
    erase: impl FnOnce(&mut Conn) -> QueryResult<()>,
) -> QueryResult<()> {
    if has_few_messages(conn, user)? {
        erase(conn)?;
    } else {
        set_secure_delete(conn, "0")?;
        erase(conn)?;
        set_secure_delete(conn, "1")?;
    }
    INDEXES.iter().try_for_each(|index| schedule_index_rebuild(conn, index, now, now))
}

/// Schedules a rebuild after an answer was removed from its index.
pub(super) fn schedule_answer_index_rebuild(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    schedule_index_rebuild(conn, ANSWER_INDEX, now, now)
}

/// Schedules rebuilds after text was erased at the end of its retention period.
pub(super) fn schedule_index_rebuilds(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    INDEXES
        .iter()
        .try_for_each(|index| schedule_index_rebuild(conn, index, now + RETENTION_REBUILD_DELAY, now))
}

/// Schedules the rebuild of an index at `due`, unless an earlier rebuild is already scheduled. The time is stored in
/// the index's row of `sweeps`.
fn schedule_index_rebuild(conn: &mut Conn, index: &str, due: Timestamp, now: Timestamp) -> QueryResult<()> {
    let scheduled = retention::load_sweep_cursor(conn, index)?;
    retention::store_sweep_cursor(
        conn,
        index,
        scheduled.map_or(due.as_millisecond(), |scheduled| scheduled.min(due.as_millisecond())),
        now,
    )
}

fn has_few_messages(conn: &mut Conn, user: UserId) -> QueryResult<bool> {
    macro_rules! count {
        ($table:ident) => {
            $table::table
                .filter($table::user_id.eq(user))
                .limit(BULK_ERASURE_MESSAGES)
                .select($table::id)
                .load::<i64>(conn)?
                .len()
        };
    }
    let message_count = count!(inbound_events) + count!(outbox) + count!(agent_responses);
    Ok(i64::try_from(message_count).is_ok_and(|count| count < BULK_ERASURE_MESSAGES))
}

fn set_secure_delete(conn: &mut Conn, value: &str) -> QueryResult<()> {
    INDEXES.iter().try_for_each(|index| {
        conn.batch_execute(&format!("INSERT INTO {index}({index}, rank) VALUES ('secure-delete', {value})"))
    })
}

/// Rebuilds at most one index that is due, so that no erased text is left in it. A rebuild blocks incoming messages for
/// about 0.03 ms per stored message.
pub fn rebuild_due_index(conn: &mut Conn, now: Timestamp) -> QueryResult<RetentionProgress> {
    for index in INDEXES {
        if retention::load_sweep_cursor(conn, index)?.is_some_and(|due| due <= now.as_millisecond()) {
            conn.batch_execute(rebuild_index_sql(index))?;
            diesel::delete(sweeps::table.find(index)).execute(conn)?;
            return Ok(RetentionProgress::More);
        }
    }
    Ok(RetentionProgress::Done)
}

/// Returns the SQL that rebuilds an index. FTS5's cheaper merge can leave erased words in the index.
fn rebuild_index_sql(index: &str) -> &'static str {
    match index {
        "words_in" => {
            "INSERT INTO words_in(words_in) VALUES ('delete-all');
             INSERT INTO words_in(rowid, body)
             SELECT id, body FROM inbound_events WHERE turn_id IS NOT NULL OR outcome IS NOT NULL"
        }
        "words_out" => "INSERT INTO words_out(words_out) VALUES ('rebuild')",
        _ => "INSERT INTO response_words(response_words) VALUES ('rebuild')",
    }
}
