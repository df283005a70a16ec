//! Lists of conversations: records for the API, and summaries with the last message for the console.

use diesel::prelude::*;
use jiff::Timestamp;

use super::user_ref::{self, UserRef};
use super::{NEWEST, ResultPage, query_limit};
use crate::conversation::transcript::{ConversationId, TurnId, UserId};
use crate::store::conversation::conversations::OPEN;
use crate::store::conversation::record::conversations::ConversationRecord;
use crate::store::conversation::record::turns::HIDDEN_ANSWER;
use crate::store::schema::{conversations, inbound_events, outbox, turns, users};
use crate::store::{Conn, QueryResult};

/// Number of conversations on one page of the console.
const PAGE_SIZE: usize = 30;
/// Maximum number of open conversations, which are listed on one page. Each user has at most one.
const OPEN_LIMIT: i64 = 300;

/// Filter for the list of conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationFilter {
    All,
    Open,
    Ended,
    /// Conversations of test users.
    Test,
}

/// Loads the conversations below `before`, of one user or of all users, newest first.
pub fn load_conversations(
    conn: &mut Conn,
    user: Option<UserId>,
    filter: ConversationFilter,
    before: i64,
    page_size: usize,
) -> QueryResult<ResultPage<ConversationRecord>> {
    let mut query = conversations::table
        .filter(conversations::id.lt(before))
        .order(conversations::id.desc())
        .limit(query_limit(page_size))
        .select(ConversationRecord::as_select())
        .into_boxed();
    if let Some(user) = user {
        query = query.filter(conversations::user_id.eq(user));
    }
    query = match filter {
        ConversationFilter::All => query,
        // The partial index of open conversations avoids a scan of all conversations.
        ConversationFilter::Open => query.filter(conversations::id.eq_any(load_open_ids(conn)?)),
        ConversationFilter::Ended => query.filter(conversations::ended_at.is_not_null()),
        ConversationFilter::Test => query.filter(conversations::user_id.eq_any(load_test_users(conn)?)),
    };
    Ok(ResultPage::from_rows(query.load(conn)?, page_size, |row: &ConversationRecord| row.id.0))
}

fn load_open_ids(conn: &mut Conn) -> QueryResult<Vec<ConversationId>> {
    conversations::table.filter(OPEN).select(conversations::id).load(conn)
}

/// Loads the test users, of whom there are at most a hundred.
fn load_test_users(conn: &mut Conn) -> QueryResult<Vec<UserId>> {
    users::table.filter(users::test.eq(true)).select(users::id).load(conn)
}

/// Conversation as shown in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationSummary {
    pub conversation: ConversationRecord,
    pub user: UserRef,
    pub state: ConversationState,
    pub last_message: Option<LastMessageText>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationState {
    /// A turn is running.
    TurnRunning,
    Open,
    Ended,
}

/// Text and author of the last message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LastMessageText {
    FromUser(String),
    FromAssistant(String),
}

/// Loads a page of summaries. Open conversations are listed by their last activity, all others by their start.
pub fn load_conversation_summaries(
    conn: &mut Conn,
    filter: ConversationFilter,
    before: i64,
) -> QueryResult<ResultPage<ConversationSummary>> {
    let page = match filter {
        ConversationFilter::All | ConversationFilter::Ended | ConversationFilter::Test => {
            load_conversations(conn, None, filter, before, PAGE_SIZE)?
        }
        ConversationFilter::Open => ResultPage { rows: load_open_conversations(conn)?, older: None },
    };
    load_summaries(conn, page)
}

fn load_open_conversations(conn: &mut Conn) -> QueryResult<Vec<ConversationRecord>> {
    conversations::table
        .filter(OPEN)
        .order(conversations::last_activity_at.desc())
        .limit(OPEN_LIMIT)
        .select(ConversationRecord::as_select())
        .load(conn)
}

/// Loads the conversations with a running turn, however old, followed by the newest conversations.
pub fn load_latest_conversations(conn: &mut Conn, page_size: usize) -> QueryResult<Vec<ConversationSummary>> {
    let running: Vec<ConversationId> =
        turns::table.filter(turns::finished_at.is_null()).select(turns::conversation_id).load(conn)?;
    let mut latest = Vec::with_capacity(page_size);
    for id in running.iter().copied().take(page_size) {
        latest.push(conversations::table.find(id).select(ConversationRecord::as_select()).first(conn)?);
    }
    let newest = load_conversations(conn, None, ConversationFilter::All, NEWEST, page_size)?;
    latest.extend(newest.rows.into_iter().filter(|row| !running.contains(&row.id)));
    latest.truncate(page_size);
    Ok(load_summaries(conn, ResultPage { rows: latest, older: None })?.rows)
}

/// Loads the conversations of one user, newest first, below `before`.
pub fn load_user_conversations(
    conn: &mut Conn,
    user: UserId,
    before: i64,
    page_size: usize,
) -> QueryResult<ResultPage<ConversationSummary>> {
    let page = load_conversations(conn, Some(user), ConversationFilter::All, before, page_size)?;
    load_summaries(conn, page)
}

fn load_summaries(
    conn: &mut Conn,
    page: ResultPage<ConversationRecord>,
) -> QueryResult<ResultPage<ConversationSummary>> {
    let rows = page.rows.into_iter().map(|row| load_summary(conn, row)).collect::<QueryResult<_>>()?;
    Ok(ResultPage { rows, older: page.older })
}

fn load_summary(conn: &mut Conn, conversation: ConversationRecord) -> QueryResult<ConversationSummary> {
    let last_turn: Option<(TurnId, Option<Timestamp>)> = turns::table
        .filter(turns::conversation_id.eq(conversation.id))
        .order(turns::id.desc())
        .select((turns::id, turns::finished_at))
        .first(conn)
        .optional()?;
    let state = match (conversation.ended_at, last_turn) {
        (Some(_), _) => ConversationState::Ended,
        (None, Some((_, None))) => ConversationState::TurnRunning,
        (None, _) => ConversationState::Open,
    };
    Ok(ConversationSummary {
        user: user_ref::load_user_ref(conn, conversation.user)?,
        state,
        last_message: match last_turn {
            Some((turn, _)) => load_last_message_text(conn, turn)?,
            None => None,
        },
        conversation,
    })
}

/// Loads the text of the last message in a turn; `None` if it is erased.
fn load_last_message_text(conn: &mut Conn, turn: TurnId) -> QueryResult<Option<LastMessageText>> {
    let sent: Option<(String, bool)> = outbox::table
        .inner_join(turns::table)
        .filter(outbox::turn_id.eq(turn))
        .order(outbox::id.desc())
        .select((outbox::body, turns::about_viewing))
        .first(conn)
        .optional()?;
    if let Some((body, about_viewing)) = sent.filter(|(body, _)| !body.is_empty()) {
        let text = if about_viewing { HIDDEN_ANSWER.to_owned() } else { body };
        return Ok(Some(LastMessageText::FromAssistant(text)));
    }
    let received: Option<String> = inbound_events::table
        .filter(inbound_events::turn_id.eq(turn))
        .order(inbound_events::id.desc())
        .select(inbound_events::body)
        .first(conn)
        .optional()?;
    Ok(received.filter(|body| !body.is_empty()).map(LastMessageText::FromUser))
}
