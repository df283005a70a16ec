//! A person is forgotten: their words go, and their row becomes nobody's.

use diesel::prelude::*;
use diesel::sql_types::Text;
use jiff::Timestamp;
use serde_json::json;

use super::erase::erase_talk;
use crate::conversation::transcript::{PhoneNumber, Role, Status, UserId};
use crate::store::audit::{self, By, Entry, Subject};
use crate::store::codec::{ms, role_word, status_word};
use crate::store::ledger::{self, Outcome};
use crate::store::outbox::OPEN;
use crate::store::schema::{audit_log, outbox, users};
use crate::store::{Conn, QueryResult, approvals, outbox as outbox_rows, turns, users as people};

/// What came of the wish to forget someone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgetting {
    Forgotten,
    /// Nobody would be left to let people in.
    LastAdmin,
    /// A text of theirs is being worked on, and what comes of it would be written after the erasing.
    Busy,
}

/// Texts that are waiting for the person are put aside, and requests of theirs are withdrawn. What others were told with
/// the number in it goes too. Doing it twice changes nothing more.
pub fn forget(conn: &mut Conn, user: UserId, by: By, now: Timestamp) -> QueryResult<Forgetting> {
    if turns::live(conn, user)?.is_some() {
        return Ok(Forgetting::Busy);
    }
    if people::is_last_admin(conn, user)? {
        return Ok(Forgetting::LastAdmin);
    }
    let entry = Entry { by, kind: "forget", subject: Subject::User(user), detail: json!({}) };
    audit::record(conn, &entry, now)?;
    let phone = people::get(conn, user)?.phone;
    approvals::withdraw(conn, user, now)?;
    // What admins were asked about them, and what they had told to everyone.
    for approval in approvals::ids_about(conn, user)? {
        outbox_rows::withdraw(conn, &format!("approval:{approval}"), now)?;
    }
    outbox_rows::withdraw(conn, &format!("told:{user}"), now)?;
    // All of them: a person's waiting texts are few, since each is taken up or skipped as it comes.
    for text in ledger::waiting(conn, user, i64::MAX)? {
        ledger::end(conn, text.id, Outcome::Skipped("forgotten"), now)?;
    }
    put_aside_texts(conn, user, now)?;
    erase_talk(conn, user, now)?;
    erase_number(conn, &phone)?;
    diesel::update(audit_log::table.filter(audit_log::user_id.eq(user.0)))
        .set(audit_log::detail.eq("{}"))
        .execute(conn)?;
    make_anonymous(conn, user, now)?;
    Ok(Forgetting::Forgotten)
}

/// Also those under way: whether they arrive makes no difference any more, and a row that is put aside is neither
/// looked for nor sent again.
fn put_aside_texts(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    diesel::update(outbox::table.filter(OPEN.and(outbox::user_id.eq(user.0))))
        .set((outbox::state.eq("suppressed"), outbox::updated_at.eq(ms(now))))
        .execute(conn)?;
    diesel::update(outbox::table.filter(outbox::user_id.eq(user.0)))
        .set(outbox::to_addr.eq(nobodys_number(user)))
        .execute(conn)
        .map(drop)
}

/// Texts in which the number stands, however it is grouped: an admin was told of it, or wrote it.
fn erase_number(conn: &mut Conn, phone: &PhoneNumber) -> QueryResult<()> {
    let digits = phone.as_str().trim_start_matches('+');
    for (table, column, settled) in [
        ("outbox", "body", "state NOT IN ('queued','attempting','unknown')"),
        ("turns", "response_text", "finished_at IS NOT NULL"),
        ("inbound_events", "body", "state <> 'pending'"),
        ("blocks", "content", "type <> 'tool_call'"),
        ("conversations", "name", "ended_at IS NOT NULL"),
    ] {
        let bare = [" ", "-", ".", "(", ")"]
            .iter()
            .fold(column.to_owned(), |text, mark| format!("replace({text}, '{mark}', '')"));
        let erase = format!("UPDATE {table} SET {column} = '' WHERE {settled} AND instr({bare}, ?) > 0");
        diesel::sql_query(erase).bind::<Text, _>(digits).execute(conn)?;
    }
    erase_number_in_memory(conn, digits)
}

/// The same in answers to be found again, whole, and in facts.
fn erase_number_in_memory(conn: &mut Conn, digits: &str) -> QueryResult<()> {
    let bare = |text: &str| {
        let marks = [" ", "-", ".", "(", ")"];
        marks.iter().fold(text.to_owned(), |text, mark| format!("replace({text}, '{mark}', '')"))
    };
    let answers = format!(
        "UPDATE agent_responses SET state = 'erased', trigger_text = '', response_text = '', summary = '', \
         topics = '[]', keywords = '[]', likeness = 0, embed_model = NULL, trigger_vec = NULL, response_vec = NULL, \
         processed_at = coalesce(processed_at, created_at), \
         revision = id + (SELECT max(revision) + 1 FROM agent_responses) \
         WHERE state <> 'erased' AND instr({}, ?) > 0",
        bare("(trigger_text || ' ' || response_text || ' ' || summary || ' ' || keywords)")
    );
    diesel::sql_query(answers).bind::<Text, _>(digits).execute(conn)?;
    let facts = format!(
        "UPDATE user_facts SET state = 'forgotten', key = '', value = '', number = NULL, \
         ended_at = coalesce(ended_at, created_at) WHERE state <> 'forgotten' AND instr({}, ?) > 0",
        bare("(key || ' ' || value)")
    );
    diesel::sql_query(facts).bind::<Text, _>(digits).execute(conn).map(drop)
}

/// `+999` is no country's: nobody ever texts from it, and each row has one of its own.
fn nobodys_number(user: UserId) -> String {
    format!("+999{:04}", user.0)
}

fn make_anonymous(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    diesel::update(users::table.find(user.0))
        .set((
            (users::phone.eq(nobodys_number(user)), users::display_name.eq(None::<String>)),
            (users::status.eq(status_word(Status::Blocked)), users::role.eq(role_word(Role::Member))),
            (users::can_add.eq(0), users::can_delete.eq(0), users::can_4k.eq(0)),
            (users::movie_limit.eq(None::<i64>), users::season_limit.eq(None::<i64>)),
            (users::opted_out_at.eq(None::<i64>), users::waiting_since.eq(None::<i64>)),
            (users::code_misses.eq(0), users::code_misses_day.eq(None::<String>)),
            (users::forgotten_at.eq(ms(now)), users::updated_at.eq(ms(now))),
        ))
        .execute(conn)
        .map(drop)
}
