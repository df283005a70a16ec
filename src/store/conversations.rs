//! Conversations: runs of messages with one user, at most one open per user.

use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use super::Conn;
use super::codec::{ms, time};
use super::kept::Keep;
use super::schema::{conversations, inbound_events, turns};
use super::written::Written;
use crate::conversation::lifecycle::{self, Lifecycle, Open};
use crate::conversation::transcript::{ConversationId, TurnId, UserId};

/// Maximum number of conversations that one round of upkeep ends.
const ENDED_TOGETHER: i64 = 500;

pub(super) const OPEN: Written = Written("conversations.ended_at IS NULL");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    Idle,
    Cleared,
    /// The user was blocked.
    Blocked,
    /// The operator reopened another conversation of the user.
    Operator,
}

pub fn open(conn: &mut Conn, user: UserId) -> QueryResult<Option<Open>> {
    let row: Option<(i64, i64)> = conversations::table
        .filter(conversations::user_id.eq(user.0).and(conversations::ended_at.is_null()))
        .select((conversations::id, conversations::last_activity_at))
        .first(conn)
        .optional()?;
    row.map(|(id, at)| Ok(Open { id: ConversationId(id), last_activity_at: time(at)? })).transpose()
}

/// User of a conversation, and whether the conversation is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    pub user: UserId,
    pub is_ended: bool,
}

/// Loads the user and the state of a conversation; an error if it does not exist.
pub fn stretch(conn: &mut Conn, id: ConversationId) -> QueryResult<Stretch> {
    let (user, ended_at): (i64, Option<i64>) = conversations::table
        .find(id.0)
        .select((conversations::user_id, conversations::ended_at))
        .first(conn)?;
    Ok(Stretch { user: UserId(user), is_ended: ended_at.is_some() })
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
        .kept()
        .execute(conn)
        .map(drop)
}

/// Reopens a conversation that has ended; the idle period after which it ends starts over.
pub fn reopen(conn: &mut Conn, id: ConversationId, now: Timestamp) -> QueryResult<()> {
    diesel::update(conversations::table.find(id.0))
        .set((
            conversations::ended_at.eq(None::<i64>),
            conversations::end_reason.eq(None::<String>),
            conversations::last_activity_at.eq(ms(now)),
        ))
        .kept()
        .execute(conn)
        .map(drop)
}

pub fn end(conn: &mut Conn, id: ConversationId, reason: EndReason, now: Timestamp) -> QueryResult<()> {
    let reason = match reason {
        EndReason::Idle => "idle",
        EndReason::Cleared => "cleared",
        EndReason::Blocked => "blocked",
        EndReason::Operator => "admin",
    };
    let topic = first_text(conn, id)?.as_deref().and_then(lifecycle::topic);
    let name: String = conversations::table.find(id.0).select(conversations::name).first(conn)?;
    diesel::update(conversations::table.find(id.0))
        .set((
            conversations::name.eq(topic.unwrap_or(name)),
            conversations::ended_at.eq(ms(now)),
            conversations::end_reason.eq(reason),
        ))
        .kept()
        .execute(conn)
        .map(drop)
}

/// Loads the first message of the first chat turn of a conversation, if there is such a turn.
fn first_text(conn: &mut Conn, id: ConversationId) -> QueryResult<Option<String>> {
    let first: Option<i64> = turns::table
        .filter(turns::conversation_id.eq(id.0).and(turns::kind.eq("chat")))
        .order(turns::id)
        .select(turns::id)
        .first(conn)
        .optional()?;
    let Some(first) = first else { return Ok(None) };
    inbound_events::table
        .filter(inbound_events::turn_id.eq(first))
        .order((inbound_events::provider_at, inbound_events::id))
        .select(inbound_events::body)
        .first(conn)
        .optional()
}

/// Ends every conversation without activity since `idle` before `now`, dated at the moment it expired.
pub fn end_idle(conn: &mut Conn, idle: SignedDuration, now: Timestamp) -> QueryResult<()> {
    let live: Vec<i64> =
        turns::table.filter(turns::finished_at.is_null()).select(turns::conversation_id).load(conn)?;
    let over: Vec<(i64, i64)> = conversations::table
        .filter(OPEN.and(conversations::last_activity_at.le(ms(now - idle))))
        .order(conversations::last_activity_at)
        .limit(ENDED_TOGETHER)
        .select((conversations::id, conversations::last_activity_at))
        .load(conn)?;
    for (id, last_activity_at) in over.into_iter().filter(|(id, _)| !live.contains(id)) {
        end(conn, ConversationId(id), EndReason::Idle, time(last_activity_at)? + idle)?;
    }
    Ok(())
}

/// Loads the statement of the last answer to a user about its conversation.
pub fn last_lifecycle(conn: &mut Conn, user: UserId) -> QueryResult<Option<Lifecycle>> {
    let talk: Option<i64> = conversations::table
        .filter(conversations::user_id.eq(user.0))
        .order(conversations::id.desc())
        .select(conversations::id)
        .first(conn)
        .optional()?;
    let Some(talk) = talk else { return Ok(None) };
    let last: Option<i64> = turns::table
        .filter(turns::conversation_id.eq(talk).and(turns::response_text.is_not_null()))
        .order(turns::id.desc())
        .select(turns::id)
        .first(conn)
        .optional()?;
    last.map(|turn| lifecycle(conn, TurnId(turn))).transpose()
}

/// Loads the statement of a turn's answer about its conversation.
pub fn lifecycle(conn: &mut Conn, turn: TurnId) -> QueryResult<Lifecycle> {
    let id: i64 = turns::table.find(turn.0).select(turns::conversation_id).first(conn)?;
    let (name, started_at): (String, i64) =
        conversations::table.find(id).select((conversations::name, conversations::started_at)).first(conn)?;
    let first: i64 =
        turns::table.filter(turns::conversation_id.eq(id)).order(turns::id).select(turns::id).first(conn)?;
    Ok(Lifecycle {
        is_new_conversation: first == turn.0,
        conversation_id: ConversationId(id),
        conversation_name: name,
        started_at: time(started_at)?,
    })
}
