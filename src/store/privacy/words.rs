//! The indexes of words. What is taken out of one is overwritten word by word, which takes milliseconds a text, but single
//! words may stay where the index keeps the order of its pages. Where much goes at once it is only marked, so that nobody
//! waits for it. Either way it cannot be found from there on, and is gone once [`purge`] has written the index anew.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use super::sweep::{self, Swept};
use crate::conversation::transcript::UserId;
use crate::store::codec::ms;
use crate::store::schema::{agent_responses, inbound_events, outbox, sweeps};
use crate::store::{Conn, QueryResult};

const INDEXES: [&str; 3] = ["words_in", "words_out", ANSWERS];
/// What answers can be found by.
const ANSWERS: &str = "response_words";
/// Texts that are overwritten while a person waits for it.
const FEW: i64 = 300;
/// What goes because its time is over is overwritten; for single words that stay nothing is written anew more often.
const SELDOM: SignedDuration = SignedDuration::from_hours(24 * 7);

/// Takes a person's words out of the indexes by `erase`.
pub(super) fn of_person(
    conn: &mut Conn,
    user: UserId,
    now: Timestamp,
    erase: impl FnOnce(&mut Conn) -> QueryResult<()>,
) -> QueryResult<()> {
    if are_few(conn, user)? {
        erase(conn)?;
    } else {
        overwriting(conn, "0")?;
        erase(conn)?;
        overwriting(conn, "1")?;
    }
    INDEXES.iter().try_for_each(|index| write_anew(conn, index, now, now))
}

/// An answer was taken out of what can be found.
pub(super) fn of_answer(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    write_anew(conn, ANSWERS, now, now)
}

/// Texts went because their time was over.
pub(super) fn of_old_texts(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    INDEXES.iter().try_for_each(|index| write_anew(conn, index, now + SELDOM, now))
}

/// An index is written anew once it is `due`, or earlier if it was to be. Its row of `sweeps` says when.
fn write_anew(conn: &mut Conn, index: &str, due: Timestamp, now: Timestamp) -> QueryResult<()> {
    let known = sweep::known(conn, index)?;
    sweep::remember(conn, index, known.map_or(ms(due), |known| known.min(ms(due))), now)
}

fn are_few(conn: &mut Conn, user: UserId) -> QueryResult<bool> {
    macro_rules! count {
        ($table:ident) => {
            $table::table
                .filter($table::user_id.eq(user.0))
                .limit(FEW)
                .select($table::id)
                .load::<i64>(conn)?
                .len()
        };
    }
    let texts = count!(inbound_events) + count!(outbox) + count!(agent_responses);
    Ok(i64::try_from(texts).is_ok_and(|texts| texts < FEW))
}

fn overwriting(conn: &mut Conn, on: &str) -> QueryResult<()> {
    INDEXES.iter().try_for_each(|index| {
        conn.batch_execute(&format!("INSERT INTO {index}({index}, rank) VALUES ('secure-delete', {on})"))
    })
}

/// Writes an index anew that is due, so that nothing of what went is left in it. One index a time: texts that come in wait
/// for its end, about 0.03 ms for each text that there is.
pub fn purge(conn: &mut Conn, now: Timestamp) -> QueryResult<Swept> {
    for index in INDEXES {
        if sweep::known(conn, index)?.is_some_and(|due| due <= ms(now)) {
            conn.batch_execute(anew(index))?;
            diesel::delete(sweeps::table.find(index)).execute(conn)?;
            return Ok(Swept::More);
        }
    }
    Ok(Swept::Done)
}

/// Merging the parts of an index would be less work, but leaves marks with their words in it where the parts lie badly.
fn anew(index: &str) -> &'static str {
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
