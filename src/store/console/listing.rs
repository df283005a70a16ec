//! Conversations as the API lists them: by user, and by whether they are open.

use diesel::prelude::*;
use jiff::Timestamp;

use super::{Listed, one_more};
use crate::conversation::transcript::{ConversationId, UserId};
use crate::store::codec::time;
use crate::store::schema::conversations;
use crate::store::written::Written;
use crate::store::{Conn, QueryResult};

const OPEN: Written = Written("conversations.ended_at IS NULL");

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
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
pub enum Wanted {
    All,
    Open,
    Ended,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = conversations)]
struct Row {
    id: i64,
    user_id: i64,
    name: String,
    started_at: i64,
    last_activity_at: i64,
    ended_at: Option<i64>,
    end_reason: Option<String>,
}

impl Row {
    fn read(self) -> QueryResult<Conversation> {
        let ended_at = self.ended_at.map(time).transpose()?;
        Ok(Conversation {
            id: ConversationId(self.id),
            user: UserId(self.user_id),
            name: self.name,
            started_at: time(self.started_at)?,
            last_activity_at: time(self.last_activity_at)?,
            ended: ended_at.zip(self.end_reason),
        })
    }
}

/// Loads conversations of one user, or of all, newest first, below `before`.
pub fn list(
    conn: &mut Conn,
    user: Option<UserId>,
    wanted: Wanted,
    before: i64,
    fits: usize,
) -> QueryResult<Listed<Conversation>> {
    let mut query = conversations::table
        .filter(conversations::id.lt(before))
        .order(conversations::id.desc())
        .limit(one_more(fits))
        .select(Row::as_select())
        .into_boxed();
    if let Some(user) = user {
        query = query.filter(conversations::user_id.eq(user.0));
    }
    query = match wanted {
        Wanted::All => query,
        // Few conversations are open at once, so their own index finds them without a scan of all conversations.
        Wanted::Open => query.filter(conversations::id.eq_any(open_ids(conn)?)),
        Wanted::Ended => query.filter(conversations::ended_at.is_not_null()),
    };
    let rows: Vec<Row> = query.load(conn)?;
    let rows: Vec<Conversation> = rows.into_iter().map(Row::read).collect::<QueryResult<_>>()?;
    Ok(Listed::of(rows, fits, |row| row.id.0))
}

fn open_ids(conn: &mut Conn) -> QueryResult<Vec<i64>> {
    conversations::table
        .filter(OPEN.and(conversations::last_activity_at.lt(i64::MAX)))
        .select(conversations::id)
        .load(conn)
}

/// Loads one conversation; `None` if it does not exist.
pub fn one(conn: &mut Conn, id: ConversationId) -> QueryResult<Option<Conversation>> {
    let row: Option<Row> = conversations::table.find(id.0).select(Row::as_select()).first(conn).optional()?;
    row.map(Row::read).transpose()
}
