//! Full-text indexes of messages and stored answers. New text is added in batches, so that no message waits for it. When
//! text in an index changes or is erased, triggers remove it at once. Removed text is overwritten, which takes
//! milliseconds per message, but single words may remain in the terms that order the pages of the index. If much text
//! is removed at once, it is only marked as deleted; [`rebuild_due_index`] removes the rest of it in both cases.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text};
use jiff::{SignedDuration, Timestamp};

use super::codec::ms;
use super::database::statement_cache::{CacheStatement, cached_update};
use super::memory::responses;
use super::schema::{agent_responses, inbound_events, outbox, text_indexes};
use super::{Conn, QueryResult};
use crate::conversation::transcript::UserId;

/// Number of messages from which erased text is only marked as deleted.
const BULK_ERASURE_MESSAGES: i64 = 300;
/// Delay of the rebuild after a retention run. Expired text is overwritten immediately, and the single words that may
/// remain do not justify more frequent rebuilds.
const RETENTION_REBUILD_DELAY: SignedDuration = SignedDuration::from_hours(24 * 7);

/// Full-text index of a table. The index contains the rows with ids up to the column `indexed_up_to` of its row in
/// `text_indexes`.
struct TextIndex {
    name: &'static str,
    table: &'static str,
    /// Statement that adds the rows after one id, up to and including another.
    add_rows: &'static str,
}

const INDEXES: [TextIndex; 3] = [
    TextIndex {
        name: "words_in",
        table: "inbound_events",
        add_rows: "INSERT INTO words_in (rowid, body) SELECT id, body FROM inbound_events WHERE id > ? AND id <= ?",
    },
    TextIndex {
        name: "words_out",
        table: "outbox",
        add_rows: "INSERT INTO words_out (rowid, body) SELECT id, body FROM outbox WHERE id > ? AND id <= ?",
    },
    TextIndex {
        name: ANSWER_INDEX,
        table: "agent_responses",
        // The metadata of an answer is added by a trigger when it is stored.
        add_rows: "INSERT INTO response_words (rowid, owner, said, told)
                   SELECT 2 * id, owner, trigger_text, response_text FROM agent_responses
                   WHERE id > ? AND id <= ? AND state IN ('pending','done')",
    },
];
/// Full-text index of the stored answers.
const ANSWER_INDEX: &str = "response_words";

/// Maximum number of rows in a batch, which take a few milliseconds.
const BATCH_ROWS: i64 = 200;
/// Query for the next batch of each index.
const BATCHES_QUERY: &str = "SELECT name, indexed_up_to, CASE name
    WHEN 'words_in' THEN
      (SELECT max(id) FROM (SELECT id FROM inbound_events WHERE id > indexed_up_to ORDER BY id LIMIT ?1))
    WHEN 'words_out' THEN (SELECT max(id) FROM (SELECT id FROM outbox WHERE id > indexed_up_to ORDER BY id LIMIT ?1))
    ELSE (SELECT max(id) FROM (SELECT id FROM agent_responses WHERE id > indexed_up_to ORDER BY id LIMIT ?1))
    END AS last_id FROM text_indexes";

#[derive(QueryableByName)]
struct BatchRow {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = BigInt)]
    indexed_up_to: i64,
    /// `None` if the index is complete.
    #[diesel(sql_type = Nullable<BigInt>)]
    last_id: Option<i64>,
}

/// Progress of work on the indexes by batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextIndexProgress {
    /// More work may be left.
    More,
    Done,
}

/// Adds a batch of new rows to each index.
pub fn index_new_text(conn: &mut Conn) -> QueryResult<TextIndexProgress> {
    let batches: Vec<BatchRow> =
        diesel::sql_query(BATCHES_QUERY).bind::<BigInt, _>(BATCH_ROWS).cached().load(conn)?;
    let mut progress = TextIndexProgress::Done;
    for index in &INDEXES {
        let batch = batches.iter().find(|batch| batch.name == index.name);
        let Some((batch, last_id)) = batch.and_then(|batch| Some((batch, batch.last_id?))) else { continue };
        diesel::sql_query(index.add_rows)
            .bind::<BigInt, _>(batch.indexed_up_to)
            .bind::<BigInt, _>(last_id)
            .cached()
            .run(conn)?;
        cached_update(text_indexes::table.find(index.name))
            .set(text_indexes::indexed_up_to.eq(last_id))
            .run(conn)?;
        if last_id - batch.indexed_up_to >= BATCH_ROWS {
            progress = TextIndexProgress::More;
        }
    }
    Ok(progress)
}

/// Runs `erase`, which removes a user's text from the indexed tables, and schedules a rebuild of all indexes.
pub(in crate::store) fn erase_indexed_user_text(
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
    INDEXES.iter().try_for_each(|index| schedule_index_rebuild(conn, index.name, now))
}

/// Schedules a rebuild after an answer was removed from its index.
pub(in crate::store) fn schedule_answer_index_rebuild(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    schedule_index_rebuild(conn, ANSWER_INDEX, now)
}

/// Schedules rebuilds after text was erased at the end of its retention period.
pub(in crate::store) fn schedule_index_rebuilds(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    let due = now + RETENTION_REBUILD_DELAY;
    INDEXES.iter().try_for_each(|index| schedule_index_rebuild(conn, index.name, due))
}

/// Schedules the rebuild of an index, unless an earlier rebuild is already scheduled.
fn schedule_index_rebuild(conn: &mut Conn, index: &str, due: Timestamp) -> QueryResult<()> {
    let is_earlier = text_indexes::rebuild_at.is_null().or(text_indexes::rebuild_at.gt(ms(due)));
    diesel::update(text_indexes::table.find(index))
        .filter(is_earlier.assume_not_null())
        .set(text_indexes::rebuild_at.eq(ms(due)))
        .execute(conn)
        .map(drop)
}

fn has_few_messages(conn: &mut Conn, user: UserId) -> QueryResult<bool> {
    macro_rules! count {
        ($table:ident, $condition:expr) => {
            $table::table
                .filter($condition)
                .limit(BULK_ERASURE_MESSAGES)
                .select($table::id)
                .load::<i64>(conn)?
                .len()
        };
    }
    let message_count = count!(inbound_events, inbound_events::user_id.eq(user))
        + count!(outbox, outbox::user_id.eq(user))
        + count!(agent_responses, responses::is_answer_to(user));
    Ok(i64::try_from(message_count).is_ok_and(|count| count < BULK_ERASURE_MESSAGES))
}

fn set_secure_delete(conn: &mut Conn, value: &str) -> QueryResult<()> {
    INDEXES.iter().try_for_each(|TextIndex { name, .. }| {
        conn.batch_execute(&format!("INSERT INTO {name}({name}, rank) VALUES ('secure-delete', {value})"))
    })
}

/// Rebuilds at most one index that is due, so that no erased text is left in it. FTS5's cheaper merge can leave erased
/// words in the index. A rebuild blocks incoming messages for about 0.03 ms per stored message.
pub fn rebuild_due_index(conn: &mut Conn, now: Timestamp) -> QueryResult<TextIndexProgress> {
    let due: Vec<String> = text_indexes::table
        .filter(text_indexes::rebuild_at.le(ms(now)))
        .select(text_indexes::name)
        .load(conn)?;
    let Some(TextIndex { name, table, .. }) =
        INDEXES.iter().find(|index| due.iter().any(|name| name == index.name))
    else {
        return Ok(TextIndexProgress::Done);
    };
    conn.batch_execute(&format!(
        "INSERT INTO {name}({name}) VALUES ('rebuild');
         UPDATE text_indexes SET rebuild_at = NULL, indexed_up_to = (SELECT coalesce(max(id), 0) FROM {table})
         WHERE name = '{name}'"
    ))?;
    Ok(TextIndexProgress::More)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::scratch;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    /// Creates a database with outbound messages 1 to `count`, each with the word "heat" and its number.
    fn create_messages(count: i64) -> Conn {
        let mut conn = scratch();
        conn.batch_execute(
            "INSERT INTO users (id, status, created_at, updated_at) VALUES (1, 'active', 0, 0)",
        )
        .unwrap();
        add_messages(&mut conn, 1, count);
        conn
    }

    fn add_messages(conn: &mut Conn, first: i64, last: i64) {
        conn.batch_execute(&format!(
            "WITH RECURSIVE numbers(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM numbers WHERE n < {last})
             INSERT INTO outbox (id, dedupe_key, user_id, kind, to_addr, from_addr, body, segments, deadline_at, created_at, updated_at)
             SELECT n, n, 1, 'notice', '+1', '+1', 'heat ' || n, 1, 0, 0, 0 FROM numbers"
        ))
        .unwrap();
    }

    /// Counts the messages that the index finds, and checks that the index matches its table.
    fn count_matches(conn: &mut Conn, word: &str) -> i64 {
        conn.batch_execute("INSERT INTO words_out(words_out, rank) VALUES ('integrity-check', 1)").unwrap();
        diesel::sql_query("SELECT '' AS name, count(*) AS indexed_up_to, NULL AS last_id FROM words_out WHERE words_out MATCH ?")
            .bind::<Text, _>(word)
            .get_result::<BatchRow>(conn)
            .unwrap()
            .indexed_up_to
    }

    #[test]
    fn new_text_is_indexed_once_in_batches() {
        let mut conn = create_messages(450);
        let progress: Vec<TextIndexProgress> = (0..4).map(|_| index_new_text(&mut conn).unwrap()).collect();
        assert_eq!(
            progress,
            [
                TextIndexProgress::More,
                TextIndexProgress::More,
                TextIndexProgress::Done,
                TextIndexProgress::Done
            ]
        );
        assert_eq!(count_matches(&mut conn, "heat"), 450);
    }

    #[test]
    fn changed_text_is_indexed_before_and_after_its_batch() {
        let mut conn = create_messages(2);
        index_new_text(&mut conn).unwrap();
        add_messages(&mut conn, 3, 3);
        conn.batch_execute("UPDATE outbox SET body = 'alien' WHERE id IN (1, 3)").unwrap();
        index_new_text(&mut conn).unwrap();
        assert_eq!([count_matches(&mut conn, "heat"), count_matches(&mut conn, "alien")], [1, 2]);
    }

    #[test]
    fn rebuild_indexes_new_text_once() {
        let mut conn = create_messages(2);
        index_new_text(&mut conn).unwrap();
        add_messages(&mut conn, 3, 4);
        schedule_index_rebuilds(&mut conn, NOW).unwrap();
        assert_eq!(rebuild_due_index(&mut conn, NOW).unwrap(), TextIndexProgress::Done);
        schedule_index_rebuild(&mut conn, "words_out", NOW).unwrap();
        assert_eq!(rebuild_due_index(&mut conn, NOW).unwrap(), TextIndexProgress::More);
        assert_eq!(rebuild_due_index(&mut conn, NOW).unwrap(), TextIndexProgress::Done);
        index_new_text(&mut conn).unwrap();
        assert_eq!(count_matches(&mut conn, "heat"), 4);
    }
}
