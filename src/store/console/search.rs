//! Full-text search for messages, newest first, with the location of each match in its conversation.

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text};
use jiff::Timestamp;

use super::who::{self, Who};
use crate::conversation::transcript::{ConversationId, TurnId, UserId};
use crate::store::codec::time;
use crate::store::schema::turns;
use crate::store::{Conn, QueryResult};

/// Maximum number of words in one search.
const WORDS: usize = 10;
/// Number of messages on one page.
pub const FOUND: usize = 30;
/// Marks that the index writes around a match. Messages may contain these characters too: they affect only the
/// highlighting.
const BEGIN: char = '\u{1}';
const END: char = '\u{2}';

/// Query for the index. It consists only of words, regardless of the text that was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted(String);

impl Wanted {
    /// Parses the typed text; `None` if it contains no word. The last word matches as a prefix.
    pub fn read(typed: &str) -> Option<Self> {
        let has_letters = |word: &&str| word.chars().any(char::is_alphanumeric);
        let words = typed.split_whitespace().filter(has_letters).take(WORDS);
        let quoted: Vec<String> =
            words.map(|word| format!("\"{}\"", word.replace('\0', "").replace('"', "\"\""))).collect();
        (!quoted.is_empty()).then(|| Self(format!("{}*", quoted.join(" "))))
    }
}

/// Cursor of a page: the ids on both sides below which it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Below {
    pub received: i64,
    pub sent: i64,
}

impl Below {
    pub const NOTHING: Self = Self { received: i64::MAX, sent: i64::MAX };
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Row of the message in the table of its side.
    pub id: i64,
    pub stands: Stands,
    pub with: Who,
    pub by: Speaker,
    pub at: Timestamp,
    /// Excerpt around the matched words; the whole message if it is outside any conversation.
    pub pieces: Vec<Piece>,
}

/// Location of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stands {
    InTurn(Talk, TurnId),
    /// The message belongs to no turn; the next turn of the conversation, if there is one.
    Before(Talk, Option<TurnId>),
    /// No conversation was open.
    Outside,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Talk {
    pub id: ConversationId,
    pub name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    Them,
    Us,
}

/// Part of the text of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub text: String,
    /// True if the part matches the search.
    pub is_match: bool,
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = BigInt)]
    id: i64,
    #[diesel(sql_type = BigInt)]
    user_id: i64,
    #[diesel(sql_type = Nullable<BigInt>)]
    turn_id: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    conversation_id: Option<i64>,
    #[diesel(sql_type = Nullable<Text>)]
    name: Option<String>,
    #[diesel(sql_type = BigInt)]
    at: i64,
    #[diesel(sql_type = Text)]
    words: String,
}

/// Ordered by the id of the message, the order of both the index and the table, so nothing has to be sorted. A message
/// without a turn has its own conversation id; one outside any conversation can be read nowhere else and is returned
/// whole.
const IN: &str = "SELECT `inbound_events`.id AS id, `inbound_events`.user_id AS user_id, turns.id AS turn_id, \
    talks.id AS conversation_id, talks.name AS name, `inbound_events`.received_at AS at, \
    CASE WHEN talks.id IS NULL THEN highlight(words_in, 0, char(1), char(2)) \
    ELSE snippet(words_in, 0, char(1), char(2), '...', 24) END AS words \
    FROM words_in CROSS JOIN `inbound_events` ON `inbound_events`.id = words_in.rowid \
    LEFT JOIN turns ON turns.id = `inbound_events`.turn_id \
    LEFT JOIN conversations AS talks ON talks.id = coalesce(turns.conversation_id, `inbound_events`.conversation_id) \
    WHERE words_in MATCH ? AND words_in.rowid < ? ORDER BY words_in.rowid DESC LIMIT ?";
const OUT: &str = "SELECT `outbox`.id AS id, `outbox`.user_id AS user_id, turns.id AS turn_id, \
    talks.id AS conversation_id, talks.name AS name, `outbox`.created_at AS at, \
    CASE WHEN talks.id IS NULL THEN highlight(words_out, 0, char(1), char(2)) \
    ELSE snippet(words_out, 0, char(1), char(2), '...', 24) END AS words \
    FROM words_out CROSS JOIN `outbox` ON `outbox`.id = words_out.rowid \
    LEFT JOIN turns ON turns.id = `outbox`.turn_id \
    LEFT JOIN conversations AS talks ON talks.id = coalesce(turns.conversation_id, `outbox`.conversation_id) \
    WHERE words_out MATCH ? AND words_out.rowid < ? ORDER BY words_out.rowid DESC LIMIT ?";

/// Returns one page of matches, and the cursor of the next page if there are more.
pub fn search(conn: &mut Conn, wanted: &Wanted, below: Below) -> QueryResult<(Vec<Found>, Option<Below>)> {
    let received = rows(conn, IN, wanted, below.received)?.into_iter().map(|row| (Speaker::Them, row));
    let sent = rows(conn, OUT, wanted, below.sent)?.into_iter().map(|row| (Speaker::Us, row));
    let mut all: Vec<(Speaker, Row)> = received.chain(sent).collect();
    all.sort_by_key(|(_, row)| std::cmp::Reverse((row.at, row.id)));
    let goes_on = all.len() > FOUND;
    all.truncate(FOUND);
    let last = |of: Speaker, before: i64| {
        let ids = all.iter().filter(|(by, _)| *by == of).map(|(_, row)| row.id);
        ids.min().unwrap_or(before)
    };
    let next = Below { received: last(Speaker::Them, below.received), sent: last(Speaker::Us, below.sent) };
    let found = all.into_iter().map(|(by, row)| row.read(conn, by)).collect::<QueryResult<_>>()?;
    Ok((found, goes_on.then_some(next)))
}

fn rows(conn: &mut Conn, query: &str, wanted: &Wanted, below: i64) -> QueryResult<Vec<Row>> {
    diesel::sql_query(query)
        .bind::<Text, _>(&wanted.0)
        .bind::<BigInt, _>(below)
        .bind::<BigInt, _>(super::one_more(FOUND))
        .load(conn)
}

impl Row {
    fn read(self, conn: &mut Conn, by: Speaker) -> QueryResult<Found> {
        let talk = self.conversation_id.zip(self.name);
        let talk = talk.map(|(id, name)| Talk { id: ConversationId(id), name });
        let stands = match (talk, self.turn_id) {
            (Some(talk), Some(turn)) => Stands::InTurn(talk, TurnId(turn)),
            (Some(talk), None) => {
                let next = next_turn(conn, talk.id, self.at)?;
                Stands::Before(talk, next)
            }
            (None, _) => Stands::Outside,
        };
        Ok(Found {
            id: self.id,
            stands,
            with: who::by_id(conn, UserId(self.user_id))?,
            by,
            at: time(self.at)?,
            pieces: pieces(&self.words),
        })
    }
}

/// Loads the first turn of a conversation that began after a given time.
fn next_turn(conn: &mut Conn, conversation: ConversationId, at: i64) -> QueryResult<Option<TurnId>> {
    let of_it = || turns::table.filter(turns::conversation_id.eq(conversation.0)).select(turns::id);
    let before: Option<i64> =
        of_it().filter(turns::created_at.le(at)).order(turns::id.desc()).first(conn).optional()?;
    let next: Option<i64> =
        of_it().filter(turns::id.gt(before.unwrap_or(0))).order(turns::id).first(conn).optional()?;
    Ok(next.map(TurnId))
}

fn pieces(words: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut is_match = false;
    for part in words.split_inclusive([BEGIN, END]) {
        let text = part.trim_end_matches([BEGIN, END]);
        if !text.is_empty() {
            pieces.push(Piece { text: text.to_owned(), is_match });
        }
        is_match = if part.ends_with(BEGIN) { true } else { is_match && !part.ends_with(END) };
    }
    pieces
}

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection;

    use super::*;
    use crate::store::scratch;

    const SAID: &str = "PRAGMA foreign_keys=OFF;
        INSERT INTO users (id, phone, display_name, status, created_at, updated_at)
        VALUES (1, '+15550100001', 'Ann', 'active', 0, 0);
        INSERT INTO conversations (id, user_id, name, started_at, last_activity_at) VALUES (1, 1, 'Dune', 0, 0);
        INSERT INTO turns (id, user_id, conversation_id, kind, state, prompt, deadline_at, created_at, updated_at, finished_at)
        VALUES (1, 1, 1, 'chat', 'COMPLETED', '{}', 0, 0, 0, 1), (2, 1, 1, 'chat', 'COMPLETED', '{}', 0, 0, 0, 1);
        INSERT INTO inbound_events (id, channel, external_id, user_id, to_addr, body, provider_at, received_at, via, updated_at)
        VALUES (1, 'twilio', 'a', 1, '+1', 'do we have <b>Dune</b>?', 1, 1, 'webhook', 0),
               (2, 'twilio', 'b', 1, '+1', 'and dunkirk', 3, 3, 'webhook', 0);
        UPDATE inbound_events SET turn_id = id;
        INSERT INTO outbox (id, dedupe_key, user_id, turn_id, kind, to_addr, from_addr, body, segments, deadline_at, created_at, updated_at)
        VALUES (1, 'a', 1, 1, 'reply', '+1', '+1', 'Yes, Dune (2021) is here.', 1, 0, 2, 0);";

    fn in_short(found: &[Found]) -> Vec<String> {
        let mark = |piece: &Piece| match piece.is_match {
            true => format!("[{}]", piece.text),
            false => piece.text.clone(),
        };
        found.iter().map(|found| found.pieces.iter().map(mark).collect()).collect()
    }

    #[track_caller]
    fn check(typed: &str, expected: &[&str]) {
        let mut conn = scratch();
        conn.batch_execute(SAID).unwrap();
        let wanted = Wanted::read(typed).unwrap();
        let (found, next) = search(&mut conn, &wanted, Below::NOTHING).unwrap();
        assert_eq!(
            (in_short(&found), next),
            (expected.iter().map(|&line| line.to_owned()).collect(), None),
            "{typed}"
        );
    }

    #[test]
    fn words_are_found_on_both_sides_newest_first_and_the_last_may_be_a_beginning() {
        check("dune", &["Yes, [Dune] (2021) is here.", "do we have <b>[Dune]</b>?"]);
        check("DUN", &["and [dunkirk]", "Yes, [Dune] (2021) is here.", "do we have <b>[Dune]</b>?"]);
        check("have dune", &["do we [have] <b>[Dune]</b>?"]);
        check("nothing", &[]);
    }

    /// Checks the location of a notification and a reaction after the turns, of STOP after the conversation, and of the
    /// reply to it.
    #[test]
    fn a_text_without_a_turn_is_found_where_it_was_said() {
        let mut conn = scratch();
        conn.batch_execute(SAID).unwrap();
        conn.batch_execute(
            "UPDATE turns SET created_at = 3 WHERE id = 2;
             INSERT INTO inbound_events (id, channel, external_id, user_id, to_addr, body, provider_at, received_at, via, updated_at)
             VALUES (3, 'twilio', 'c', 1, '+1', 'Liked \u{201c}dune\u{201d}', 5, 5, 'webhook', 5),
                    (4, 'twilio', 'd', 1, '+1', 'stop, dune', 9, 9, 'webhook', 9),
                    (5, 'twilio', 'e', 1, '+1', 'dune waits', 9, 9, 'webhook', 9);
             UPDATE inbound_events SET state = 'completed', outcome = 'skipped' WHERE id = 3;
             INSERT INTO outbox (id, dedupe_key, user_id, kind, to_addr, from_addr, body, segments, deadline_at, created_at, updated_at)
             VALUES (2, 'b', 1, 'notice', '+1', '+1', 'Dune is there now.', 1, 0, 2, 0);
             UPDATE conversations SET ended_at = 8, end_reason = 'idle' WHERE id = 1;
             UPDATE inbound_events SET state = 'completed', outcome = 'skipped' WHERE id = 4;
             INSERT INTO outbox (id, dedupe_key, user_id, kind, to_addr, from_addr, body, segments, deadline_at, created_at, updated_at)
             VALUES (3, 'c', 1, 'notice', '+1', '+1', 'You get no texts of dune.', 1, 0, 9, 0);",
        )
        .unwrap();
        let (found, _) = search(&mut conn, &Wanted::read("dune").unwrap(), Below::NOTHING).unwrap();
        let of_nothing = |found: &&Found| !matches!(found.stands, Stands::InTurn(..));
        let places: Vec<_> =
            found.iter().filter(of_nothing).map(|found| (found.by, found.id, &found.stands)).collect();
        let in_it = |next| Stands::Before(Talk { id: ConversationId(1), name: "Dune".to_owned() }, next);
        assert_eq!(
            places,
            [
                (Speaker::Them, 4, &Stands::Outside),
                (Speaker::Us, 3, &Stands::Outside),
                (Speaker::Them, 3, &in_it(None)),
                (Speaker::Us, 2, &in_it(Some(TurnId(2)))),
            ]
        );
    }

    #[test]
    fn a_text_outside_any_conversation_is_told_whole_and_one_in_it_around_the_words() {
        let mut conn = scratch();
        conn.batch_execute(SAID).unwrap();
        let long = format!("{}dune{}", "sand ".repeat(40), " worm".repeat(40));
        let said = format!(
            "UPDATE conversations SET ended_at = 8, end_reason = 'idle' WHERE id = 1;
             UPDATE inbound_events SET body = '{long}' WHERE id = 1;
             INSERT INTO inbound_events (id, channel, external_id, user_id, to_addr, body, provider_at, received_at, via, updated_at)
             VALUES (3, 'twilio', 'c', 1, '+1', '{long}', 9, 9, 'webhook', 9);
             UPDATE inbound_events SET state = 'completed', outcome = 'skipped' WHERE id = 3;
             INSERT INTO outbox (id, dedupe_key, user_id, kind, to_addr, from_addr, body, segments, deadline_at, created_at, updated_at)
             VALUES (2, 'b', 1, 'notice', '+1', '+1', '{long}', 1, 0, 9, 0);
             INSERT INTO words_in(words_in) VALUES ('rebuild');"
        );
        conn.batch_execute(&said).unwrap();
        let (found, _) = search(&mut conn, &Wanted::read("dune sand").unwrap(), Below::NOTHING).unwrap();
        let whole = |found: &Found| found.pieces.iter().map(|piece| &*piece.text).collect::<String>() == long;
        let told: Vec<_> = found.iter().map(|found| (found.by, found.id, whole(found))).collect();
        assert_eq!(told, [(Speaker::Them, 3, true), (Speaker::Us, 2, true), (Speaker::Them, 1, false)]);
    }

    #[test]
    fn what_is_erased_is_found_no_more_whether_it_had_a_turn_or_not() {
        let mut conn = scratch();
        conn.batch_execute(SAID).unwrap();
        conn.batch_execute(
            "INSERT INTO inbound_events (id, channel, external_id, user_id, to_addr, body, provider_at, received_at, via, updated_at)
             VALUES (3, 'twilio', 'c', 1, '+1', 'no dune', 5, 5, 'webhook', 5);
             UPDATE inbound_events SET state = 'completed', outcome = 'skipped' WHERE id = 3;
             UPDATE inbound_events SET body = ''; UPDATE outbox SET body = '';
             INSERT INTO words_in(words_in, rank) VALUES ('integrity-check', 1);",
        )
        .unwrap();
        let wanted = Wanted::read("dun").unwrap();
        assert_eq!(search(&mut conn, &wanted, Below::NOTHING).unwrap(), (Vec::new(), None));
    }

    #[test]
    fn what_is_typed_is_never_a_query_of_its_own() {
        for typed in
            ["dune\"", "\"", "dune*", "body:dune", "dune AND (", "NEAR(dune", "-dune", "{a} : b", "a\0b"]
        {
            let mut conn = scratch();
            conn.batch_execute(SAID).unwrap();
            if let Some(wanted) = Wanted::read(typed) {
                search(&mut conn, &wanted, Below::NOTHING).unwrap();
            }
        }
        assert_eq!(Wanted::read(" \" !? "), None);
        check("dune\" OR \"have", &[]);
    }

    #[test]
    fn every_text_is_found_once_going_down_the_pages() {
        let mut conn = scratch();
        conn.batch_execute(SAID).unwrap();
        for n in 3..80 {
            let text = format!(
                "INSERT INTO inbound_events (id, channel, external_id, user_id, to_addr, body, provider_at, received_at, via, updated_at)
                 VALUES ({n}, 'twilio', '{n}', 1, '+1', 'dune {n}', {n}, {n}, 'webhook', 0);
                 UPDATE inbound_events SET turn_id = 1 WHERE id = {n};"
            );
            conn.batch_execute(&text).unwrap();
        }
        let wanted = Wanted::read("dune").unwrap();
        let (mut below, mut texts) = (Some(Below::NOTHING), Vec::new());
        while let Some(from) = below {
            let (found, next) = search(&mut conn, &wanted, from).unwrap();
            texts.extend(found.into_iter().map(|found| found.at));
            below = next;
        }
        assert_eq!(texts.len(), 79);
        assert!(texts.is_sorted_by(|newer, older| newer > older));
    }
}
