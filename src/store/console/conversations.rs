//! List of conversations, newest first.

use diesel::prelude::*;

use super::conversation_summary::{
    ConversationSummary, ConversationSummaryRow, summary_columns, summary_from_row,
};
use super::{ResultPage, query_limit};
use crate::store::conversation::conversations::OPEN;
use crate::store::schema::{conversations, users};
use crate::store::{Conn, QueryResult};

/// Number of conversations on one page.
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

/// Loads the conversations that began below `before`.
pub fn load_conversation_summaries(
    conn: &mut Conn,
    which: ConversationFilter,
    before: i64,
) -> QueryResult<ResultPage<ConversationSummary>> {
    let rows: Vec<ConversationSummaryRow> = match which {
        ConversationFilter::All => {
            let all = conversations::table.inner_join(users::table.on(users::id.eq(conversations::user_id)));
            let below = all.filter(conversations::id.lt(before)).order(conversations::id.desc());
            below.limit(query_limit(LISTED)).select(summary_columns()).load(conn)?
        }
        ConversationFilter::Open => {
            let all = conversations::table.inner_join(users::table.on(users::id.eq(conversations::user_id)));
            let open = all.filter(OPEN.and(conversations::last_activity_at.lt(i64::MAX)));
            let open = open.order(conversations::last_activity_at.desc());
            let talks: Vec<ConversationSummaryRow> =
                open.limit(MOST_OPEN).select(summary_columns()).load(conn)?;
            let talks =
                talks.into_iter().map(|row| summary_from_row(conn, row)).collect::<QueryResult<_>>()?;
            return Ok(ResultPage { rows: talks, older: None });
        }
        ConversationFilter::Ended => {
            let all = conversations::table.inner_join(users::table.on(users::id.eq(conversations::user_id)));
            let ended = all.filter(conversations::id.lt(before).and(conversations::ended_at.is_not_null()));
            ended
                .order(conversations::id.desc())
                .limit(query_limit(LISTED))
                .select(summary_columns())
                .load(conn)?
        }
        ConversationFilter::Test => {
            // There are at most a hundred test users.
            let test: Vec<i64> = users::table.filter(users::test.eq(1)).select(users::id).load(conn)?;
            let all = conversations::table.inner_join(users::table.on(users::id.eq(conversations::user_id)));
            let theirs = all.filter(conversations::id.lt(before).and(conversations::user_id.eq_any(test)));
            theirs
                .order(conversations::id.desc())
                .limit(query_limit(LISTED))
                .select(summary_columns())
                .load(conn)?
        }
    };
    let talks: Vec<ConversationSummary> =
        rows.into_iter().map(|row| summary_from_row(conn, row)).collect::<QueryResult<_>>()?;
    Ok(ResultPage::from_rows(talks, LISTED, |talk| talk.id.0))
}
