//! Groups that can find the same answers: users who received the same messages, or a room.

use diesel::prelude::*;
use diesel::sql_types::BigInt;
use jiff::Timestamp;

use super::responses::{self, AnswerOwner, AnswerSource, NewAnswer};
use crate::conversation::transcript::UserId;
use crate::store::database::statement_cache::CacheStatement;
use crate::store::schema::{memory_group_members, memory_groups};
use crate::store::{Conn, QueryResult};

/// Id of a row of `memory_groups`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub i64);

/// Message that several users received.
#[derive(Debug, Clone, Copy)]
pub struct SharedMessage<'a> {
    pub text: &'a str,
    pub recipients: &'a [UserId],
    /// Author of the message, if it was a user.
    pub author: Option<UserId>,
}

/// Stores a message that was sent to several users at once. A message with fewer than two recipients is not stored.
/// `source` identifies the origin of the message and prevents a second copy.
pub fn remember_shared_message(
    conn: &mut Conn,
    source: &str,
    message: &SharedMessage<'_>,
    now: Timestamp,
) -> QueryResult<()> {
    let mut members = message.recipients.to_vec();
    members.sort_unstable();
    members.dedup();
    if members.len() < 2 {
        return Ok(());
    }
    let group = ensure_group(conn, &members)?;
    let new = NewAnswer {
        source: AnswerSource::Other(source.to_owned()),
        owner: AnswerOwner::Group(group),
        user: message.author,
        agent: "code".to_owned(),
        question: String::new(),
        answer: message.text.to_owned(),
    };
    responses::store_answer(conn, &new, now)
}

/// Creates the group of a room, whose answers only the room can find.
pub(in crate::store) fn create_room_group(conn: &mut Conn, room: UserId) -> QueryResult<GroupId> {
    insert_group(conn, format!("room:{room}"), &[room])
}

fn ensure_group(conn: &mut Conn, members: &[UserId]) -> QueryResult<GroupId> {
    let key = members.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let existing: Option<GroupId> = memory_groups::table
        .filter(memory_groups::members.eq(&key))
        .select(memory_groups::id)
        .first(conn)
        .optional()?;
    match existing {
        Some(id) => Ok(id),
        None => insert_group(conn, key, members),
    }
}

fn insert_group(conn: &mut Conn, key: String, members: &[UserId]) -> QueryResult<GroupId> {
    let id: GroupId = diesel::insert_into(memory_groups::table)
        .values(memory_groups::members.eq(key))
        .returning(memory_groups::id)
        .get_result(conn)?;
    for member in members {
        diesel::insert_into(memory_group_members::table)
            .values((memory_group_members::user_id.eq(member), memory_group_members::group_id.eq(id)))
            .execute(conn)?;
    }
    Ok(id)
}

#[derive(QueryableByName)]
struct GroupRow {
    #[diesel(sql_type = BigInt)]
    group_id: GroupId,
}

/// Loads a user's groups, most recently active first.
pub(super) fn load_user_groups(conn: &mut Conn, user: UserId) -> QueryResult<Vec<GroupId>> {
    let groups: Vec<GroupRow> = diesel::sql_query(
        "SELECT group_id FROM memory_group_members WHERE user_id = ? ORDER BY \
         (SELECT max(revision) FROM agent_responses WHERE owner = 'g' || memory_group_members.group_id) DESC",
    )
    .bind::<BigInt, _>(user)
    .cached()
    .load(conn)?;
    Ok(groups.into_iter().map(|row| row.group_id).collect())
}

/// Removes the user from all groups. The other members can still find the messages of these groups; the next message to
/// the same recipients creates a new group.
pub fn leave_groups(conn: &mut Conn, user: UserId) -> QueryResult<()> {
    detach_groups(conn, user)?;
    let memberships = memory_group_members::table.filter(memory_group_members::user_id.eq(user));
    diesel::delete(memberships).execute(conn).map(drop)
}

/// Makes the groups of a user groups of their current members only, so that no later message belongs to them.
pub(in crate::store) fn detach_groups(conn: &mut Conn, user: UserId) -> QueryResult<()> {
    for group in load_user_groups(conn, user)? {
        diesel::update(memory_groups::table.find(group))
            .set(memory_groups::members.eq(format!("left:{}", group.0)))
            .execute(conn)?;
    }
    Ok(())
}
