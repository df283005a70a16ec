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
const MAX_QUERY_WORDS: usize = 10;
/// Number of messages on one page.
const PAGE_SIZE: usize = 30;
/// Characters that the index inserts before and after a match. In a message, these characters affect only the
/// highlighting.
const MATCH_START: char = '\u{1}';
const MATCH_END: char = '\u{2}';

/// Query in the syntax of the full-text index. It contains only quoted words, whatever the input is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery(String);

impl SearchQuery {
    /// Parses the input of a user; `None` if it contains no word. The last word matches as a prefix.
    pub fn parse(input: &str) -> Option<Self> {
        let is_searchable = |word: &&str| word.chars().any(char::is_alphanumeric);
        let words = input.split_whitespace().filter(is_searchable).take(MAX_QUERY_WORDS);
        let quoted: Vec<String> =
            words.map(|word| format!("\"{}\"", word.replace('\0', "").replace('"', "\"\""))).collect();
        (!quoted.is_empty()).then(|| Self(format!("{}*", quoted.join(" "))))
    }
}

/// Cursor of a page, which contains the messages below these ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchCursor {
    pub received: i64,
    pub sent: i64,
}

impl SearchCursor {
    /// Cursor of the first page.
    pub const NEWEST: Self = Self { received: i64::MAX, sent: i64::MAX };
}

/// Message that matches a search.
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
    excerpt: String,
}

/// Query for inbound messages. The order by id, which is the order of the index and of the table, avoids a sort. The
/// conversation of a message is that of its turn or, without a turn, its own. A message outside any conversation is
/// returned in full, because no page of a conversation shows it. A message that waits for its turn is left out.
const INBOUND_QUERY: &str = "SELECT `inbound_events`.id AS id, `inbound_events`.user_id AS user_id, turns.id AS turn_id, \
    conversations.id AS conversation_id, conversations.name AS name, `inbound_events`.received_at AS at, \
    CASE WHEN conversations.id IS NULL THEN highlight(words_in, 0, char(1), char(2)) \
    ELSE snippet(words_in, 0, char(1), char(2), '...', 24) END AS excerpt \
    FROM words_in CROSS JOIN `inbound_events` ON `inbound_events`.id = words_in.rowid \
    LEFT JOIN turns ON turns.id = `inbound_events`.turn_id \
    LEFT JOIN conversations ON conversations.id = coalesce(turns.conversation_id, `inbound_events`.conversation_id) \
    WHERE words_in MATCH ? AND words_in.rowid < ? \
    AND (`inbound_events`.turn_id IS NOT NULL OR `inbound_events`.outcome IS NOT NULL) \
    ORDER BY words_in.rowid DESC LIMIT ?";
/// Query for outbound messages, with the same columns, without those that mention what somebody has watched.
const OUTBOUND_QUERY: &str = "SELECT `outbox`.id AS id, `outbox`.user_id AS user_id, turns.id AS turn_id, \
    conversations.id AS conversation_id, conversations.name AS name, `outbox`.created_at AS at, \
    CASE WHEN conversations.id IS NULL THEN highlight(words_out, 0, char(1), char(2)) \
    ELSE snippet(words_out, 0, char(1), char(2), '...', 24) END AS excerpt \
    FROM words_out CROSS JOIN `outbox` ON `outbox`.id = words_out.rowid \
    LEFT JOIN turns ON turns.id = `outbox`.turn_id \
    LEFT JOIN conversations ON conversations.id = coalesce(turns.conversation_id, `outbox`.conversation_id) \
    WHERE words_out MATCH ? AND words_out.rowid < ? AND coalesce(turns.about_viewing, 0) = 0 \
    AND NOT (`outbox`.dedupe_key >= 'next_season:' AND `outbox`.dedupe_key < 'next_season;') ORDER BY words_out.rowid DESC LIMIT ?";

/// Returns one page of matches, and the cursor of the next page if there are more.
pub fn search_messages(
    conn: &mut Conn,
    query: &SearchQuery,
    cursor: SearchCursor,
) -> QueryResult<(Vec<SearchMatch>, Option<SearchCursor>)> {
    let received = load_match_rows(conn, INBOUND_QUERY, query, cursor.received)?;
    let sent = load_match_rows(conn, OUTBOUND_QUERY, query, cursor.sent)?;
    let received = received.into_iter().map(|row| (MessageAuthor::User, row));
    let sent = sent.into_iter().map(|row| (MessageAuthor::Assistant, row));
    let mut rows: Vec<(MessageAuthor, SearchMatchRow)> = received.chain(sent).collect();
    rows.sort_by_key(|(_, row)| std::cmp::Reverse((row.at, row.id)));
    let has_more = rows.len() > PAGE_SIZE;
    rows.truncate(PAGE_SIZE);
    let oldest_id = |author: MessageAuthor, cursor: i64| {
        let ids = rows.iter().filter(|(row_author, _)| *row_author == author).map(|(_, row)| row.id);
        ids.min().unwrap_or(cursor)
    };
    let next = SearchCursor {
        received: oldest_id(MessageAuthor::User, cursor.received),
        sent: oldest_id(MessageAuthor::Assistant, cursor.sent),
    };
    let matches =
        rows.into_iter().map(|(author, row)| row.into_match(conn, author)).collect::<QueryResult<_>>()?;
    Ok((matches, has_more.then_some(next)))
}

fn load_match_rows(
    conn: &mut Conn,
    sql: &str,
    query: &SearchQuery,
    before: i64,
) -> QueryResult<Vec<SearchMatchRow>> {
    diesel::sql_query(sql)
        .bind::<Text, _>(&query.0)
        .bind::<BigInt, _>(before)
        .bind::<BigInt, _>(super::query_limit(PAGE_SIZE))
        .load(conn)
}

impl SearchMatchRow {
    fn into_match(self, conn: &mut Conn, author: MessageAuthor) -> QueryResult<SearchMatch> {
        let conversation = self.conversation_id.zip(self.name);
        let conversation = conversation.map(|(id, name)| MatchedConversation { id, name });
        let location = match (conversation, self.turn_id) {
            (Some(conversation), Some(turn)) => MatchLocation::InTurn(conversation, turn),
            (Some(conversation), None) => {
                let next_turn = load_next_turn(conn, conversation.id, self.at)?;
                MatchLocation::BeforeTurn(conversation, next_turn)
            }
            (None, _) => MatchLocation::OutsideConversation,
        };
        Ok(SearchMatch {
            id: self.id,
            location,
            user: user_ref::load_user_ref(conn, self.user_id)?,
            author,
            at: self.at,
            spans: split_match_spans(&self.excerpt),
        })
    }
}

/// Loads the first turn of a conversation that started after `at`.
fn load_next_turn(
    conn: &mut Conn,
    conversation: ConversationId,
    at: Timestamp,
) -> QueryResult<Option<TurnId>> {
    let turn_ids = || turns::table.filter(turns::conversation_id.eq(conversation)).select(turns::id);
    let previous: Option<i64> =
        turn_ids().filter(turns::created_at.le(ms(at))).order(turns::id.desc()).first(conn).optional()?;
    turn_ids().filter(turns::id.gt(previous.unwrap_or(0))).order(turns::id).first(conn).optional()
}

/// Splits an excerpt at the marks of the index.
fn split_match_spans(excerpt: &str) -> Vec<MatchSpan> {
    let mut spans: Vec<MatchSpan> = Vec::new();
    let mut is_match = false;
    for part in excerpt.split_inclusive([MATCH_START, MATCH_END]) {
        let text = part.trim_end_matches([MATCH_START, MATCH_END]);
        if !text.is_empty() {
            spans.push(MatchSpan { text: text.to_owned(), is_match });
        }
        is_match = if part.ends_with(MATCH_START) { true } else { is_match && !part.ends_with(MATCH_END) };
    }
    spans
}

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection;

    use super::*;
    use crate::store::{scratch, text_index};

    const FIXTURE_SQL: &str = "PRAGMA foreign_keys=OFF;
        INSERT INTO users (id, display_name, status, created_at, updated_at)
        VALUES (1, 'Ann', 'active', 0, 0);
        INSERT INTO conversations (id, user_id, name, started_at, last_activity_at) VALUES (1, 1, 'Dune', 0, 0);
        INSERT INTO turns (id, user_id, conversation_id, kind, state, prompt, deadline_at, created_at, updated_at, finished_at)
        VALUES (1, 1, 1, 'chat', 'COMPLETED', '{}', 0, 0, 0, 1), (2, 1, 1, 'chat', 'COMPLETED', '{}', 0, 0, 0, 1);
        INSERT INTO inbound_events (id, channel, external_id, user_id, to_addr, body, provider_at, received_at, via, updated_at)
        VALUES (1, 'twilio', 'a', 1, '+1', 'do we have <b>Dune</b>?', 1, 1, 'webhook', 0),
               (2, 'twilio', 'b', 1, '+1', 'and dunkirk', 3, 3, 'webhook', 0);
        UPDATE inbound_events SET turn_id = id;
        INSERT INTO outbox (id, dedupe_key, user_id, turn_id, kind, to_addr, from_addr, body, segments, deadline_at, created_at, updated_at)
        VALUES (1, 'a', 1, 1, 'reply', '+1', '+1', 'Yes, Dune (2021) is here.', 1, 0, 2, 0);";

    /// Searches after all messages were indexed.
    fn search(conn: &mut Conn, input: &str) -> Vec<SearchMatch> {
        text_index::index_new_text(conn).unwrap();
        let query = SearchQuery::parse(input).unwrap();
        let (matches, next) = search_messages(conn, &query, SearchCursor::NEWEST).unwrap();
        assert_eq!(next, None);
        matches
    }

    /// Formats the excerpts with brackets around the matched words.
    fn format_excerpts(matches: &[SearchMatch]) -> Vec<String> {
        let format_span = |span: &MatchSpan| match span.is_match {
            true => format!("[{}]", span.text),
            false => span.text.clone(),
        };
        matches.iter().map(|found| found.spans.iter().map(format_span).collect()).collect()
    }

    #[track_caller]
    fn check(input: &str, expected: &[&str]) {
        let mut conn = scratch();
        conn.batch_execute(FIXTURE_SQL).unwrap();
        let matches = search(&mut conn, input);
        assert_eq!(format_excerpts(&matches), expected, "{input}");
    }

    #[test]
    fn search_covers_both_directions_newest_first_with_prefix() {
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
        conn.batch_execute(FIXTURE_SQL).unwrap();
        conn.batch_execute(
            "UPDATE turns SET created_at = 3 WHERE id = 2;
             INSERT INTO inbound_events (id, channel, external_id, user_id, to_addr, body, provider_at, received_at, via, updated_at)
             VALUES (3, 'twilio', 'c', 1, '+1', 'Liked \u{201c}dune\u{201d}', 5, 5, 'webhook', 5),
                    (4, 'twilio', 'd', 1, '+1', 'stop, dune', 9, 9, 'webhook', 9),
                    (5, 'twilio', 'e', 1, '+1', 'dune waits', 9, 9, 'webhook', 9);
             UPDATE inbound_events SET state = 'completed', outcome = 'skipped', conversation_id = 1 WHERE id = 3;
             INSERT INTO outbox (id, dedupe_key, user_id, conversation_id, kind, to_addr, from_addr, body, segments, deadline_at, created_at, updated_at)
             VALUES (2, 'b', 1, 1, 'notice', '+1', '+1', 'Dune is there now.', 1, 0, 2, 0);
             UPDATE conversations SET ended_at = 8, end_reason = 'idle' WHERE id = 1;
             UPDATE inbound_events SET state = 'completed', outcome = 'skipped' WHERE id = 4;
             INSERT INTO outbox (id, dedupe_key, user_id, kind, to_addr, from_addr, body, segments, deadline_at, created_at, updated_at)
             VALUES (3, 'c', 1, 'notice', '+1', '+1', 'You get no texts of dune.', 1, 0, 9, 0);",
        )
        .unwrap();
        let matches = search(&mut conn, "dune");
        let is_without_turn = |found: &&SearchMatch| !matches!(found.location, MatchLocation::InTurn(..));
        let locations: Vec<_> = matches
            .iter()
            .filter(is_without_turn)
            .map(|found| (found.author, found.id, &found.location))
            .collect();
        let before_turn = |next| {
            MatchLocation::BeforeTurn(
                MatchedConversation { id: ConversationId(1), name: "Dune".to_owned() },
                next,
            )
        };
        assert_eq!(
            locations,
            [
                (MessageAuthor::User, 4, &MatchLocation::OutsideConversation),
                (MessageAuthor::Assistant, 3, &MatchLocation::OutsideConversation),
                (MessageAuthor::User, 3, &before_turn(None)),
                (MessageAuthor::Assistant, 2, &before_turn(Some(TurnId(2)))),
            ]
        );
    }

    #[test]
    fn only_messages_outside_conversations_are_returned_whole() {
        let mut conn = scratch();
        conn.batch_execute(FIXTURE_SQL).unwrap();
        let long = format!("{}dune{}", "sand ".repeat(40), " worm".repeat(40));
        let sql = format!(
            "UPDATE conversations SET ended_at = 8, end_reason = 'idle' WHERE id = 1;
             UPDATE inbound_events SET body = '{long}' WHERE id = 1;
             INSERT INTO inbound_events (id, channel, external_id, user_id, to_addr, body, provider_at, received_at, via, updated_at)
             VALUES (3, 'twilio', 'c', 1, '+1', '{long}', 9, 9, 'webhook', 9);
             UPDATE inbound_events SET state = 'completed', outcome = 'skipped' WHERE id = 3;
             INSERT INTO outbox (id, dedupe_key, user_id, kind, to_addr, from_addr, body, segments, deadline_at, created_at, updated_at)
             VALUES (2, 'b', 1, 'notice', '+1', '+1', '{long}', 1, 0, 9, 0);"
        );
        conn.batch_execute(&sql).unwrap();
        let matches = search(&mut conn, "dune sand");
        let is_whole =
            |found: &SearchMatch| found.spans.iter().map(|span| &*span.text).collect::<String>() == long;
        let results: Vec<_> = matches.iter().map(|found| (found.author, found.id, is_whole(found))).collect();
        assert_eq!(
            results,
            [
                (MessageAuthor::User, 3, true),
                (MessageAuthor::Assistant, 2, true),
                (MessageAuthor::User, 1, false)
            ]
        );
    }

    /// Checks a message that is erased before it is indexed, beside messages that are in the index.
    #[test]
    fn erased_messages_are_not_found() {
        let mut conn = scratch();
        conn.batch_execute(FIXTURE_SQL).unwrap();
        assert_eq!(search(&mut conn, "dun").len(), 3);
        conn.batch_execute(
            "INSERT INTO inbound_events (id, channel, external_id, user_id, to_addr, body, provider_at, received_at, via, updated_at)
             VALUES (3, 'twilio', 'c', 1, '+1', 'no dune', 5, 5, 'webhook', 5);
             UPDATE inbound_events SET state = 'completed', outcome = 'skipped' WHERE id = 3;
             UPDATE inbound_events SET body = ''; UPDATE outbox SET body = '';",
        )
        .unwrap();
        let query = SearchQuery::parse("dun").unwrap();
        assert_eq!(search_messages(&mut conn, &query, SearchCursor::NEWEST).unwrap(), (Vec::new(), None));
        assert_eq!(search(&mut conn, "dun"), []);
        conn.batch_execute("INSERT INTO words_in(words_in, rank) VALUES ('integrity-check', 1)").unwrap();
    }

    #[test]
    fn search_input_is_never_parsed_as_query_syntax() {
        for input in
            ["dune\"", "\"", "dune*", "body:dune", "dune AND (", "NEAR(dune", "-dune", "{a} : b", "a\0b"]
        {
            let mut conn = scratch();
            conn.batch_execute(FIXTURE_SQL).unwrap();
            if SearchQuery::parse(input).is_some() {
                search(&mut conn, input);
            }
        }
        assert_eq!(SearchQuery::parse(" \" !? "), None);
        check("dune\" OR \"have", &[]);
    }

    #[test]
    fn paged_search_returns_every_message_once() {
        let mut conn = scratch();
        conn.batch_execute(FIXTURE_SQL).unwrap();
        for n in 3..80 {
            let sql = format!(
                "INSERT INTO inbound_events (id, channel, external_id, user_id, to_addr, body, provider_at, received_at, via, updated_at)
                 VALUES ({n}, 'twilio', '{n}', 1, '+1', 'dune {n}', {n}, {n}, 'webhook', 0);
                 UPDATE inbound_events SET turn_id = 1 WHERE id = {n};"
            );
            conn.batch_execute(&sql).unwrap();
        }
        text_index::index_new_text(&mut conn).unwrap();
        let query = SearchQuery::parse("dune").unwrap();
        let (mut next_page, mut times) = (Some(SearchCursor::NEWEST), Vec::new());
        while let Some(cursor) = next_page {
            let (matches, next) = search_messages(&mut conn, &query, cursor).unwrap();
            times.extend(matches.into_iter().map(|found| found.at));
            next_page = next;
        }
        assert_eq!(times.len(), 79);
        assert!(times.is_sorted_by(|newer, older| newer > older));
    }
}
