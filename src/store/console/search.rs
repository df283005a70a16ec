//! Full-text search for messages, newest first, with the location of each match in its conversation.

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text};
use jiff::Timestamp;

use super::user_ref::{self, UserRef};
use crate::conversation::transcript::{ConversationId, TurnId, UserId};
use crate::store::codec::ms;
use crate::store::column_types;
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

/// Query for the index. The query consists only of quoted words, regardless of the typed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery(String);

impl SearchQuery {
    /// Parses the typed text; `None` if it contains no word. The last word matches as a prefix.
    pub fn parse(typed: &str) -> Option<Self> {
        let has_letters = |word: &&str| word.chars().any(char::is_alphanumeric);
        let words = typed.split_whitespace().filter(has_letters).take(WORDS);
        let quoted: Vec<String> =
            words.map(|word| format!("\"{}\"", word.replace('\0', "").replace('"', "\"\""))).collect();
        (!quoted.is_empty()).then(|| Self(format!("{}*", quoted.join(" "))))
    }
}

/// Cursor of a page: the inbound id and the outbound id below which the page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchCursor {
    pub received: i64,
    pub sent: i64,
}

impl SearchCursor {
    pub const NOTHING: Self = Self { received: i64::MAX, sent: i64::MAX };
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchMatch {
    /// Id of the row of the message in the inbound or outbound table.
    pub id: i64,
    pub location: MatchLocation,
    pub user: UserRef,
    pub author: MessageAuthor,
    pub at: Timestamp,
    /// Excerpt around the matched words; the whole message if it is outside any conversation.
    pub spans: Vec<MatchSpan>,
}

/// Location of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchLocation {
    InTurn(MatchedConversation, TurnId),
    /// The message belongs to no turn; the next turn of the conversation, if there is one.
    BeforeTurn(MatchedConversation, Option<TurnId>),
    /// No conversation was open.
    OutsideConversation,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchedConversation {
    pub id: ConversationId,
    pub name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageAuthor {
    User,
    Assistant,
}

/// Part of the text of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchSpan {
    pub text: String,
    /// True if the part matches the search.
    pub is_match: bool,
}

#[derive(QueryableByName)]
struct SearchMatchRow {
    #[diesel(sql_type = BigInt)]
    id: i64,
    #[diesel(sql_type = BigInt)]
    user_id: UserId,
    #[diesel(sql_type = Nullable<BigInt>)]
    turn_id: Option<TurnId>,
    #[diesel(sql_type = Nullable<BigInt>)]
    conversation_id: Option<ConversationId>,
    #[diesel(sql_type = Nullable<Text>)]
    name: Option<String>,
    #[diesel(sql_type = column_types::Timestamp)]
    at: Timestamp,
    #[diesel(sql_type = Text)]
    words: String,
}

/// Query for inbound messages, ordered by id, which is the order of both the index and the table, so that nothing has
/// to be sorted. A message without a turn has its own conversation id. A message outside any conversation can be read
/// nowhere else and is returned whole.
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
pub fn search_messages(
    conn: &mut Conn,
    wanted: &SearchQuery,
    below: SearchCursor,
) -> QueryResult<(Vec<SearchMatch>, Option<SearchCursor>)> {
    let received =
        load_match_rows(conn, IN, wanted, below.received)?.into_iter().map(|row| (MessageAuthor::User, row));
    let sent = load_match_rows(conn, OUT, wanted, below.sent)?
        .into_iter()
        .map(|row| (MessageAuthor::Assistant, row));
    let mut all: Vec<(MessageAuthor, SearchMatchRow)> = received.chain(sent).collect();
    all.sort_by_key(|(_, row)| std::cmp::Reverse((row.at, row.id)));
    let goes_on = all.len() > FOUND;
    all.truncate(FOUND);
    let last = |of: MessageAuthor, before: i64| {
        let ids = all.iter().filter(|(by, _)| *by == of).map(|(_, row)| row.id);
        ids.min().unwrap_or(before)
    };
    let next = SearchCursor {
        received: last(MessageAuthor::User, below.received),
        sent: last(MessageAuthor::Assistant, below.sent),
    };
    let found = all.into_iter().map(|(by, row)| row.into_match(conn, by)).collect::<QueryResult<_>>()?;
    Ok((found, goes_on.then_some(next)))
}

fn load_match_rows(
    conn: &mut Conn,
    query: &str,
    wanted: &SearchQuery,
    below: i64,
) -> QueryResult<Vec<SearchMatchRow>> {
    diesel::sql_query(query)
        .bind::<Text, _>(&wanted.0)
        .bind::<BigInt, _>(below)
        .bind::<BigInt, _>(super::query_limit(FOUND))
        .load(conn)
}

impl SearchMatchRow {
    fn into_match(self, conn: &mut Conn, by: MessageAuthor) -> QueryResult<SearchMatch> {
        let talk = self.conversation_id.zip(self.name);
        let talk = talk.map(|(id, name)| MatchedConversation { id, name });
        let stands = match (talk, self.turn_id) {
            (Some(talk), Some(turn)) => MatchLocation::InTurn(talk, turn),
            (Some(talk), None) => {
                let next = load_next_turn(conn, talk.id, self.at)?;
                MatchLocation::BeforeTurn(talk, next)
            }
            (None, _) => MatchLocation::OutsideConversation,
        };
        Ok(SearchMatch {
            id: self.id,
            location: stands,
            user: user_ref::load_user_ref(conn, self.user_id)?,
            author: by,
            at: self.at,
            spans: split_match_spans(&self.words),
        })
    }
}

/// Loads the first turn of a conversation that began after a given time.
fn load_next_turn(
    conn: &mut Conn,
    conversation: ConversationId,
    at: Timestamp,
) -> QueryResult<Option<TurnId>> {
    let of_it = || turns::table.filter(turns::conversation_id.eq(conversation)).select(turns::id);
    let before: Option<i64> =
        of_it().filter(turns::created_at.le(ms(at))).order(turns::id.desc()).first(conn).optional()?;
    of_it().filter(turns::id.gt(before.unwrap_or(0))).order(turns::id).first(conn).optional()
}

fn split_match_spans(words: &str) -> Vec<MatchSpan> {
    let mut pieces: Vec<MatchSpan> = Vec::new();
    let mut is_match = false;
    for part in words.split_inclusive([BEGIN, END]) {
        let text = part.trim_end_matches([BEGIN, END]);
        if !text.is_empty() {
            pieces.push(MatchSpan { text: text.to_owned(), is_match });
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

    fn in_short(found: &[SearchMatch]) -> Vec<String> {
        let mark = |piece: &MatchSpan| match piece.is_match {
            true => format!("[{}]", piece.text),
            false => piece.text.clone(),
        };
        found.iter().map(|found| found.spans.iter().map(mark).collect()).collect()
    }

    #[track_caller]
    fn check(typed: &str, expected: &[&str]) {
        let mut conn = scratch();
        conn.batch_execute(SAID).unwrap();
        let wanted = SearchQuery::parse(typed).unwrap();
        let (found, next) = search_messages(&mut conn, &wanted, SearchCursor::NOTHING).unwrap();
        assert_eq!(
            (in_short(&found), next),
            (expected.iter().map(|&line| line.to_owned()).collect(), None),
            "{typed}"
        );
    }

    #[test]
    fn words_match_both_sides_newest_first_with_a_last_prefix() {
        check("dune", &["Yes, [Dune] (2021) is here.", "do we have <b>[Dune]</b>?"]);
        check("DUN", &["and [dunkirk]", "Yes, [Dune] (2021) is here.", "do we have <b>[Dune]</b>?"]);
        check("have dune", &["do we [have] <b>[Dune]</b>?"]);
        check("nothing", &[]);
    }

    /// Checks the location of a notification and a reaction after the turns, of STOP after the conversation, and of the
    /// reply to it.
    #[test]
    fn message_without_a_turn_is_located_by_its_time() {
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
        let (found, _) =
            search_messages(&mut conn, &SearchQuery::parse("dune").unwrap(), SearchCursor::NOTHING).unwrap();
        let of_nothing = |found: &&SearchMatch| !matches!(found.location, MatchLocation::InTurn(..));
        let places: Vec<_> =
            found.iter().filter(of_nothing).map(|found| (found.author, found.id, &found.location)).collect();
        let in_it = |next| {
            MatchLocation::BeforeTurn(
                MatchedConversation { id: ConversationId(1), name: "Dune".to_owned() },
                next,
            )
        };
        assert_eq!(
            places,
            [
                (MessageAuthor::User, 4, &MatchLocation::OutsideConversation),
                (MessageAuthor::Assistant, 3, &MatchLocation::OutsideConversation),
                (MessageAuthor::User, 3, &in_it(None)),
                (MessageAuthor::Assistant, 2, &in_it(Some(TurnId(2)))),
            ]
        );
    }

    #[test]
    fn message_outside_conversations_is_whole_and_others_excerpts() {
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
        let (found, _) =
            search_messages(&mut conn, &SearchQuery::parse("dune sand").unwrap(), SearchCursor::NOTHING)
                .unwrap();
        let whole =
            |found: &SearchMatch| found.spans.iter().map(|piece| &*piece.text).collect::<String>() == long;
        let told: Vec<_> = found.iter().map(|found| (found.author, found.id, whole(found))).collect();
        assert_eq!(
            told,
            [
                (MessageAuthor::User, 3, true),
                (MessageAuthor::Assistant, 2, true),
                (MessageAuthor::User, 1, false)
            ]
        );
    }

    #[test]
    fn erased_messages_are_not_found() {
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
        let wanted = SearchQuery::parse("dun").unwrap();
        assert_eq!(search_messages(&mut conn, &wanted, SearchCursor::NOTHING).unwrap(), (Vec::new(), None));
    }

    #[test]
    fn search_input_is_never_query_syntax() {
        for typed in
            ["dune\"", "\"", "dune*", "body:dune", "dune AND (", "NEAR(dune", "-dune", "{a} : b", "a\0b"]
        {
            let mut conn = scratch();
            conn.batch_execute(SAID).unwrap();
            if let Some(wanted) = SearchQuery::parse(typed) {
                search_messages(&mut conn, &wanted, SearchCursor::NOTHING).unwrap();
            }
        }
        assert_eq!(SearchQuery::parse(" \" !? "), None);
        check("dune\" OR \"have", &[]);
    }

    #[test]
    fn paged_search_finds_every_message_once() {
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
        let wanted = SearchQuery::parse("dune").unwrap();
        let (mut below, mut texts) = (Some(SearchCursor::NOTHING), Vec::new());
        while let Some(from) = below {
            let (found, next) = search_messages(&mut conn, &wanted, from).unwrap();
            texts.extend(found.into_iter().map(|found| found.at));
            below = next;
        }
        assert_eq!(texts.len(), 79);
        assert!(texts.is_sorted_by(|newer, older| newer > older));
    }
}
