//! Summaries of conversations, each with its last message.

use diesel::prelude::*;
use jiff::Timestamp;

use super::user_ref::{self, UserRef};
use super::{NEWEST, ResultPage, query_limit};
use crate::conversation::transcript::{ConversationId, UserId};
use crate::store::codec::timestamp_from_ms;
use crate::store::schema::{conversations, inbound_events, outbox, turns};
use crate::store::{Conn, QueryResult};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationSummary {
    pub id: ConversationId,
    pub name: String,
    pub user: UserRef,
    pub last_activity_at: Timestamp,
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

pub(super) type ConversationSummaryRow = (i64, String, i64, Option<i64>, i64);

/// Loads the conversations that began last, after those with a running turn, however old.
pub fn load_latest_conversations(conn: &mut Conn, fits: usize) -> QueryResult<Vec<ConversationSummary>> {
    let live: Vec<i64> =
        turns::table.filter(turns::finished_at.is_null()).select(turns::conversation_id).load(conn)?;
    let mut talks = Vec::with_capacity(fits);
    for id in live.iter().copied().take(fits) {
        let row: ConversationSummaryRow =
            conversations::table.filter(conversations::id.eq(id)).select(summary_columns()).first(conn)?;
        talks.push(summary_from_row(conn, row)?);
    }
    let rows: Vec<ConversationSummaryRow> = conversations::table
        .filter(conversations::id.lt(NEWEST))
        .order(conversations::id.desc())
        .limit(i64::try_from(fits).unwrap_or(i64::MAX))
        .select(summary_columns())
        .load(conn)?;
    for row in rows.into_iter().filter(|row| !live.contains(&row.0)) {
        talks.push(summary_from_row(conn, row)?);
    }
    talks.truncate(fits);
    Ok(talks)
}

/// Loads the conversations of one user, newest first, below `before`.
pub fn load_user_conversations(
    conn: &mut Conn,
    user: UserId,
    before: i64,
    fits: usize,
) -> QueryResult<ResultPage<ConversationSummary>> {
    let rows: Vec<ConversationSummaryRow> = conversations::table
        .filter(conversations::user_id.eq(user.0).and(conversations::id.lt(before)))
        .order(conversations::id.desc())
        .limit(query_limit(fits))
        .select(summary_columns())
        .load(conn)?;
    let talks: Vec<ConversationSummary> =
        rows.into_iter().map(|row| summary_from_row(conn, row)).collect::<QueryResult<_>>()?;
    Ok(ResultPage::from_rows(talks, fits, |talk| talk.id.0))
}

#[diesel::dsl::auto_type(no_type_alias)]
pub(super) fn summary_columns() -> _ {
    (
        conversations::id,
        conversations::name,
        conversations::last_activity_at,
        conversations::ended_at,
        conversations::user_id,
    )
}

pub(super) fn summary_from_row(
    conn: &mut Conn,
    (id, name, active, ended, user): ConversationSummaryRow,
) -> QueryResult<ConversationSummary> {
    let last: Option<(i64, Option<i64>)> = turns::table
        .filter(turns::conversation_id.eq(id))
        .order(turns::id.desc())
        .select((turns::id, turns::finished_at))
        .first(conn)
        .optional()?;
    let is_live = matches!(last, Some((_, None)));
    let last = match last {
        Some((turn, _)) => load_last_message_text(conn, turn)?,
        None => None,
    };
    let state = match ended {
        Some(_) => ConversationState::Ended,
        None if is_live => ConversationState::Live,
        None => ConversationState::Open,
    };
    Ok(ConversationSummary {
        id: ConversationId(id),
        name,
        user: user_ref::load_user_ref(conn, UserId(user))?,
        last_activity_at: timestamp_from_ms(active)?,
        state,
        last_message: last,
    })
}

/// Loads the text of the last message in a turn; `None` if it is erased.
fn load_last_message_text(conn: &mut Conn, turn: i64) -> QueryResult<Option<LastMessageText>> {
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
