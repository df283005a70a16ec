//! The indexes of words. What is taken out of one is overwritten word by word, which takes milliseconds a text. Where much
//! goes at once it is only marked, so that nobody waits for it; it cannot be found from there on, and is overwritten in
//! pieces by [`purge`].

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use jiff::Timestamp;

use super::sweep::{self, Swept};
use crate::conversation::transcript::UserId;
use crate::store::schema::{agent_responses, inbound_events, outbox, sweeps};
use crate::store::{Conn, QueryResult};

const INDEXES: [&str; 3] = ["words_in", "words_out", "response_words"];
/// Texts that are overwritten while a person waits for it.
const FEW: i64 = 300;
/// Pages of an index that are written anew in one transaction.
const PAGES: i64 = 200;

/// How far an index is, as a row of `sweeps` holds it.
const NOT_BEGUN: i64 = 0;
const BEGUN: i64 = 1;

/// Takes a person's words out of the indexes by `erase`.
pub(super) fn of_person(
    conn: &mut Conn,
    user: UserId,
    now: Timestamp,
    erase: impl FnOnce(&mut Conn) -> QueryResult<()>,
) -> QueryResult<()> {
    if are_few(conn, user)? {
        return erase(conn);
    }
    overwriting(conn, "0")?;
    erase(conn)?;
    overwriting(conn, "1")?;
    INDEXES.iter().try_for_each(|index| sweep::remember(conn, index, NOT_BEGUN, now))
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

/// Overwrites a piece of what was only marked.
pub(super) fn purge(conn: &mut Conn, now: Timestamp) -> QueryResult<Swept> {
    for index in INDEXES {
        let pages = match sweep::known(conn, index)? {
            None => continue,
            // A negative number begins to write the whole index anew, a positive one goes on.
            Some(NOT_BEGUN) => -PAGES,
            Some(_) => PAGES,
        };
        let before = changes(conn)?;
        conn.batch_execute(&format!("INSERT INTO {index}({index}, rank) VALUES ('merge', {pages})"))?;
        // So little is changed by the statement itself.
        if changes(conn)? - before < 2 {
            diesel::delete(sweeps::table.find(index)).execute(conn)?;
        } else {
            sweep::remember(conn, index, BEGUN, now)?;
        }
        return Ok(Swept::More);
    }
    Ok(Swept::Done)
}

#[derive(QueryableByName)]
struct Changes {
    #[diesel(sql_type = BigInt)]
    total: i64,
}

/// Rows that this connection has changed so far.
fn changes(conn: &mut Conn) -> QueryResult<i64> {
    let changes: Changes = diesel::sql_query("SELECT total_changes() AS total").get_result(conn)?;
    Ok(changes.total)
}
