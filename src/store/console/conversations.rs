//! Lists of conversations: as the API lists them, and as summaries with the last message for the console.

use diesel::prelude::*;
use jiff::Timestamp;

use super::user_ref::{self, UserRef};
use super::{NEWEST, ResultPage, query_limit};
use crate::conversation::transcript::{ConversationId, TurnId, UserId};
use crate::store::codec::ms;
use crate::store::conversation::conversations::OPEN;
use crate::store::conversation::record::conversations::ConversationRecord;
use crate::store::schema::{conversations, inbound_events, outbox, turns, users};
use crate::store::{Conn, QueryResult};

/// Number of conversations on one page of the console.
pub const LISTED: usize = 30;
/// Maximum number of open conversations listed. There are few, at most one per user, and they are listed together on
/// one page.
const MOST_OPEN: i64 = 300;

/// Filter for the list of conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationFilter {
    All,
    Open,
    Ended,
    /// Conversations of test users.
    Test,
}

/// Loads conversations of one user, or of all, newest first, below `before`.
pub fn load_conversations(
    conn: &mut Conn,
    user: Option<UserId>,
    which: ConversationFilter,
    before: i64,
    fits: usize,
) -> QueryResult<ResultPage<ConversationRecord>> {
    let mut query = conversations::table
        .filter(conversations::id.lt(before))
        .order(conversations::id.desc())
        .limit(query_limit(fits))
        .select(ConversationRecord::as_select())
        .into_boxed();
    if let Some(user) = user {
        query = query.filter(conversations::user_id.eq(user));
    }
    query = match which {
        ConversationFilter::All => query,
        // Few conversations are open at once, so their own index finds them without a scan of all conversations.
        ConversationFilter::Open => query.filter(conversations::id.eq_any(load_open_ids(conn)?)),
        ConversationFilter::Ended => query.filter(conversations::ended_at.is_not_null()),
        ConversationFilter::Test => query.filter(conversations::user_id.eq_any(load_test_users(conn)?)),
    };
    Ok(ResultPage::from_rows(query.load(conn)?, fits, |row: &ConversationRecord| row.id.0))
}

fn load_open_ids(conn: &mut Conn) -> QueryResult<Vec<ConversationId>> {
    conversations::table
        .filter(OPEN.and(conversations::last_activity_at.lt(ms(Timestamp::MAX))))
        .select(conversations::id)
        .load(conn)
}

/// Loads the test users, of whom there are at most a hundred.
fn load_test_users(conn: &mut Conn) -> QueryResult<Vec<UserId>> {
    users::table.filter(users::test.eq(true)).select(users::id).load(conn)
}

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
    Live,
    Open,
    Ended,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LastMessageText {
    FromUser(String),
    FromAssistant(String),
}

/// Loads a page of summaries. Open conversations are listed by their last activity, all others by their start.
pub fn load_conversation_summaries(
    conn: &mut Conn,
    which: ConversationFilter,
    before: i64,
) -> QueryResult<ResultPage<ConversationSummary>> {
    let page = match which {
        ConversationFilter::All | ConversationFilter::Ended | ConversationFilter::Test => {
            load_conversations(conn, None, which, before, LISTED)?
        }
        ConversationFilter::Open => ResultPage { rows: load_open_conversations(conn)?, older: None },
    };
    summarize_page(conn, page)
}

fn load_open_conversations(conn: &mut Conn) -> QueryResult<Vec<ConversationRecord>> {
    conversations::table
        .filter(OPEN.and(conversations::last_activity_at.lt(ms(Timestamp::MAX))))
        .order(conversations::last_activity_at.desc())
        .limit(MOST_OPEN)
        .select(ConversationRecord::as_select())
        .load(conn)
}

/// Loads the conversations that began last, after those with a running turn, however old.
pub fn load_latest_conversations(conn: &mut Conn, fits: usize) -> QueryResult<Vec<ConversationSummary>> {
    let live: Vec<ConversationId> =
        turns::table.filter(turns::finished_at.is_null()).select(turns::conversation_id).load(conn)?;
    let mut latest = Vec::with_capacity(fits);
    for id in live.iter().copied().take(fits) {
        latest.push(conversations::table.find(id).select(ConversationRecord::as_select()).first(conn)?);
    }
    let newest = load_conversations(conn, None, ConversationFilter::All, NEWEST, fits)?;
    latest.extend(newest.rows.into_iter().filter(|row| !live.contains(&row.id)));
    latest.truncate(fits);
    Ok(summarize_page(conn, ResultPage { rows: latest, older: None })?.rows)
}

/// Loads the conversations of one user, newest first, below `before`.
pub fn load_user_conversations(
    conn: &mut Conn,
    user: UserId,
    before: i64,
    fits: usize,
) -> QueryResult<ResultPage<ConversationSummary>> {
    let page = load_conversations(conn, Some(user), ConversationFilter::All, before, fits)?;
    summarize_page(conn, page)
}

fn summarize_page(
    conn: &mut Conn,
    page: ResultPage<ConversationRecord>,
) -> QueryResult<ResultPage<ConversationSummary>> {
    let rows = page.rows.into_iter().map(|row| summarize(conn, row)).collect::<QueryResult<_>>()?;
    Ok(ResultPage { rows, older: page.older })
}

fn summarize(conn: &mut Conn, conversation: ConversationRecord) -> QueryResult<ConversationSummary> {
    let last: Option<(TurnId, Option<Timestamp>)> = turns::table
        .filter(turns::conversation_id.eq(conversation.id))
        .order(turns::id.desc())
        .select((turns::id, turns::finished_at))
        .first(conn)
        .optional()?;
    let state = match (conversation.ended_at, last) {
        (Some(_), _) => ConversationState::Ended,
        (None, Some((_, None))) => ConversationState::Live,
        (None, _) => ConversationState::Open,
    };
    Ok(ConversationSummary {
        user: user_ref::load_user_ref(conn, conversation.user)?,
        state,
        last_message: match last {
            Some((turn, _)) => load_last_message_text(conn, turn)?,
            None => None,
        },
        conversation,
    })
}

/// Loads the text of the last message in a turn; `None` if it is erased.
fn load_last_message_text(conn: &mut Conn, turn: TurnId) -> QueryResult<Option<LastMessageText>> {
    let ours: Option<String> = outbox::table
        .filter(outbox::turn_id.eq(turn))
        .order(outbox::id.desc())
        .select(outbox::body)
        .first(conn)
        .optional()?;
    if let Some(ours) = ours.filter(|words| !words.is_empty()) {
        return Ok(Some(LastMessageText::FromAssistant(ours)));
    }
    let theirs: Option<String> = inbound_events::table
        .filter(inbound_events::turn_id.eq(turn))
        .order(inbound_events::id.desc())
        .select(inbound_events::body)
        .first(conn)
        .optional()?;
    Ok(theirs.filter(|words| !words.is_empty()).map(LastMessageText::FromUser))
}
