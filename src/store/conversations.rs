//! Conversations: stretches of talk, at most one open per user.

use diesel::prelude::*;
use jiff::Timestamp;

use super::Conn;
use super::codec::{ms, time};
use super::schema::conversations;
use crate::conversation::transcript::{ConversationId, UserId};

/// An open conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    pub id: ConversationId,
    pub last_activity_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    Idle,
    Cleared,
}

pub fn open(conn: &mut Conn, user: UserId) -> QueryResult<Option<Open>> {
    let row: Option<(i64, i64)> = conversations::table
        .filter(conversations::user_id.eq(user.0).and(conversations::ended_at.is_null()))
        .select((conversations::id, conversations::last_activity_at))
        .first(conn)
        .optional()?;
    row.map(|(id, at)| Ok(Open { id: ConversationId(id), last_activity_at: time(at)? })).transpose()
}

pub fn begin(conn: &mut Conn, user: UserId, name: &str, now: Timestamp) -> QueryResult<ConversationId> {
    diesel::insert_into(conversations::table)
        .values((
            conversations::user_id.eq(user.0),
            conversations::name.eq(name),
            conversations::started_at.eq(ms(now)),
            conversations::last_activity_at.eq(ms(now)),
        ))
        .returning(conversations::id)
        .get_result(conn)
        .map(ConversationId)
}

pub fn touch(conn: &mut Conn, id: ConversationId, now: Timestamp) -> QueryResult<()> {
    diesel::update(conversations::table.find(id.0))
        .set(conversations::last_activity_at.eq(ms(now)))
        .execute(conn)
        .map(drop)
}

pub fn end(conn: &mut Conn, id: ConversationId, reason: EndReason, now: Timestamp) -> QueryResult<()> {
    let reason = match reason {
        EndReason::Idle => "idle",
        EndReason::Cleared => "cleared",
    };
    diesel::update(conversations::table.find(id.0))
        .set((conversations::ended_at.eq(ms(now)), conversations::end_reason.eq(reason)))
        .execute(conn)
        .map(drop)
}
