//! Full-text indexes. Text that is removed from an index is overwritten word by word, which takes milliseconds per
//! message, but single words may remain where the index stores the order of its pages. If much text is removed at once,
//! it is only marked as deleted, so that no user waits for the overwriting. In both cases the text can no longer be
//! found, and it is completely removed after [`rebuild_due_index`] has rebuilt the index.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use super::retention::{self, RetentionProgress};
use crate::conversation::transcript::UserId;
use crate::store::schema::{agent_responses, inbound_events, outbox, sweeps};
use crate::store::{Conn, QueryResult};

const INDEXES: [&str; 3] = ["words_in", "words_out", ANSWERS];
/// Full-text index of the remembered answers.
const ANSWERS: &str = "response_words";
/// Maximum number of messages that are overwritten while a user waits.
const FEW: i64 = 300;
/// Interval between rebuilds after retention. Text at the end of its retention period is overwritten; the single words
/// that may remain do not justify more frequent rebuilds.
const SELDOM: SignedDuration = SignedDuration::from_hours(24 * 7);

/// Erases a user's text from the indexes by running `erase`.
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
    schedule_index_rebuild(conn, ANSWERS, now, now)
}

/// Schedules rebuilds after text was erased at the end of its retention period.
pub(super) fn schedule_index_rebuilds(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    INDEXES.iter().try_for_each(|index| schedule_index_rebuild(conn, index, now + SELDOM, now))
}

/// Schedules the rebuild of an index for `due`, or for the earlier time at which it was already due. The time is stored
/// in the index's row of `sweeps`.
fn schedule_index_rebuild(conn: &mut Conn, index: &str, due: Timestamp, now: Timestamp) -> QueryResult<()> {
    let known = retention::load_sweep_cursor(conn, index)?;
    retention::store_sweep_cursor(
        conn,
        index,
        known.map_or(due.as_millisecond(), |known| known.min(due.as_millisecond())),
        now,
    )
}

fn has_few_messages(conn: &mut Conn, user: UserId) -> QueryResult<bool> {
    macro_rules! count {
        ($table:ident) => {
            $table::table
                .filter($table::user_id.eq(user))
                .limit(FEW)
                .select($table::id)
                .load::<i64>(conn)?
                .len()
        };
    }
    let texts = count!(inbound_events) + count!(outbox) + count!(agent_responses);
    Ok(i64::try_from(texts).is_ok_and(|texts| texts < FEW))
}

fn set_secure_delete(conn: &mut Conn, on: &str) -> QueryResult<()> {
    INDEXES.iter().try_for_each(|index| {
        conn.batch_execute(&format!("INSERT INTO {index}({index}, rank) VALUES ('secure-delete', {on})"))
    })
}

/// Rebuilds an index that is due, so that no erased text is left in it. One index per call: incoming messages wait for
/// the rebuild, about 0.03 ms for each stored message.
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

/// Returns the SQL that rebuilds an index. Merging the parts of an index would be less work, but leaves marks with
/// erased words in it if the parts are unfavorably arranged.
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
