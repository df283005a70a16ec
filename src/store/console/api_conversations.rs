//! Conversations as the API lists them: by user, and by whether they are open.

use diesel::prelude::*;
use jiff::Timestamp;

use super::{ResultPage, query_limit};
use crate::conversation::transcript::{ConversationId, UserId};
use crate::store::codec::timestamp_from_ms;
use crate::store::database::literal_sql::LiteralSql;
use crate::store::schema::conversations;
use crate::store::{Conn, QueryResult};

const OPEN: LiteralSql = LiteralSql("conversations.ended_at IS NULL");

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationRecord {
    pub id: ConversationId,
    pub user: UserId,
    pub name: String,
    pub started_at: Timestamp,
    pub last_activity_at: Timestamp,
    /// Time and reason of the end.
    pub ended: Option<(Timestamp, String)>,
}

/// Filter for the list of conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationRecordFilter {
    All,
    Open,
    Ended,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = conversations)]
struct ConversationRecordRow {
    id: i64,
    user_id: i64,
    name: String,
    started_at: i64,
    last_activity_at: i64,
    ended_at: Option<i64>,
    end_reason: Option<String>,
}

impl ConversationRecordRow {
    fn into_conversation_record(self) -> QueryResult<ConversationRecord> {
        let ended_at = self.ended_at.map(timestamp_from_ms).transpose()?;
        Ok(ConversationRecord {
            id: ConversationId(self.id),
            user: UserId(self.user_id),
            name: self.name,
            started_at: timestamp_from_ms(self.started_at)?,
            last_activity_at: timestamp_from_ms(self.last_activity_at)?,
            ended: ended_at.zip(self.end_reason),
        })
    }
}

/// Loads conversations of one user, or of all, newest first, below `before`.
pub fn load_conversation_records(
    conn: &mut Conn,
    user: Option<UserId>,
    wanted: ConversationRecordFilter,
    before: i64,
    fits: usize,
) -> QueryResult<ResultPage<ConversationRecord>> {
    let mut query = conversations::table
        .filter(conversations::id.lt(before))
        .order(conversations::id.desc())
        .limit(query_limit(fits))
        .select(ConversationRecordRow::as_select())
        .into_boxed();
    if let Some(user) = user {
        query = query.filter(conversations::user_id.eq(user.0));
    }
    query = match wanted {
        ConversationRecordFilter::All => query,
        // Few conversations are open at once, so their own index finds them without a scan of all conversations.
        ConversationRecordFilter::Open => {
            query.filter(conversations::id.eq_any(load_open_conversation_ids(conn)?))
        }
        ConversationRecordFilter::Ended => query.filter(conversations::ended_at.is_not_null()),
    };
    let rows: Vec<ConversationRecordRow> = query.load(conn)?;
    let rows: Vec<ConversationRecord> =
        rows.into_iter().map(ConversationRecordRow::into_conversation_record).collect::<QueryResult<_>>()?;
    Ok(ResultPage::from_rows(rows, fits, |row| row.id.0))
}

fn load_open_conversation_ids(conn: &mut Conn) -> QueryResult<Vec<i64>> {
    conversations::table
        .filter(OPEN.and(conversations::last_activity_at.lt(i64::MAX)))
        .select(conversations::id)
        .load(conn)
}

/// Loads one conversation; `None` if it does not exist.
pub fn load_conversation_record(
    conn: &mut Conn,
    id: ConversationId,
) -> QueryResult<Option<ConversationRecord>> {
    let row: Option<ConversationRecordRow> =
        conversations::table.find(id.0).select(ConversationRecordRow::as_select()).first(conn).optional()?;
    row.map(ConversationRecordRow::into_conversation_record).transpose()
}
