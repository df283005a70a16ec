//! Those who heard the same words: only they find what was said to them together.

use diesel::prelude::*;
use diesel::sql_types::BigInt;
use jiff::Timestamp;

use super::responses::{self, NewAnswer, Owner};
use crate::conversation::transcript::UserId;
use crate::store::kept::Keep;
use crate::store::schema::{memory_group_members, memory_groups};
use crate::store::{Conn, QueryResult};

/// A row of `memory_groups`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub i64);

/// Words that several people were told.
#[derive(Debug, Clone, Copy)]
pub struct Heard<'a> {
    pub words: &'a str,
    pub by: &'a [UserId],
    /// Whoever said them, if it was a person.
    pub from: Option<UserId>,
}

/// Remembers words that were said to several people at once. What one person heard alone is no matter of a group.
/// `source` tells where it comes from, once.
pub fn said(conn: &mut Conn, source: &str, heard: &Heard<'_>, now: Timestamp) -> QueryResult<()> {
    let mut members = heard.by.to_vec();
    members.sort_unstable();
    members.dedup();
    if members.len() < 2 {
        return Ok(());
    }
    let group = group_of(conn, &members)?;
    let new = NewAnswer {
        source: source.to_owned(),
        owner: Owner::Group(group),
        user: heard.from,
        turn: None,
        agent: "code".to_owned(),
        question: String::new(),
        answer: heard.words.to_owned(),
    };
    responses::remember(conn, &new, now)
}

fn group_of(conn: &mut Conn, members: &[UserId]) -> QueryResult<GroupId> {
    let key = members.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let known: Option<i64> = memory_groups::table
        .filter(memory_groups::members.eq(&key))
        .select(memory_groups::id)
        .first(conn)
        .optional()?;
    if let Some(id) = known {
        return Ok(GroupId(id));
    }
    let id: i64 = diesel::insert_into(memory_groups::table)
        .values(memory_groups::members.eq(key))
        .returning(memory_groups::id)
        .get_result(conn)?;
    for member in members {
        diesel::insert_into(memory_group_members::table)
            .values((memory_group_members::user_id.eq(member.0), memory_group_members::group_id.eq(id)))
            .execute(conn)?;
    }
    Ok(GroupId(id))
}

#[derive(QueryableByName)]
struct Group {
    #[diesel(sql_type = BigInt)]
    group_id: i64,
}

/// Their groups, the one first that heard something last.
pub(super) fn of_user(conn: &mut Conn, user: UserId) -> QueryResult<Vec<GroupId>> {
    let groups: Vec<Group> = diesel::sql_query(
        "SELECT group_id FROM memory_group_members WHERE user_id = ? ORDER BY \
         (SELECT max(revision) FROM agent_responses WHERE owner = 'g' || memory_group_members.group_id) DESC",
    )
    .bind::<BigInt, _>(user.0)
    .kept()
    .load(conn)?;
    Ok(groups.into_iter().map(|row| GroupId(row.group_id)).collect())
}

/// Takes the person out of all their groups. What the others heard with them stays theirs; the next words to the same
/// people begin another group.
pub fn leave(conn: &mut Conn, user: UserId) -> QueryResult<()> {
    for group in of_user(conn, user)? {
        diesel::update(memory_groups::table.find(group.0))
            .set(memory_groups::members.eq(format!("left:{}", group.0)))
            .execute(conn)?;
    }
    let theirs = memory_group_members::table.filter(memory_group_members::user_id.eq(user.0));
    diesel::delete(theirs).execute(conn).map(drop)
}
