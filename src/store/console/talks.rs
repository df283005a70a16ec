//! Summaries of conversations, each with its last message.

use diesel::prelude::*;
use jiff::Timestamp;

use super::who::{self, Who};
use super::{Listed, NEWEST, one_more};
use crate::conversation::transcript::{ConversationId, UserId};
use crate::store::codec::time;
use crate::store::schema::{conversations, inbound_events, outbox, turns};
use crate::store::{Conn, QueryResult};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Talk {
    pub id: ConversationId,
    pub name: String,
    pub with: Who,
    pub last_activity_at: Timestamp,
    pub state: TalkState,
    pub last: Option<LastWords>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TalkState {
    /// A turn is running.
    Live,
    Open,
    Ended,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LastWords {
    Theirs(String),
    Ours(String),
}

pub(super) type Row = (i64, String, i64, Option<i64>, i64);

/// Loads the conversations that began last, after those with a running turn, however old.
pub fn latest(conn: &mut Conn, fits: usize) -> QueryResult<Vec<Talk>> {
    let live: Vec<i64> =
        turns::table.filter(turns::finished_at.is_null()).select(turns::conversation_id).load(conn)?;
    let mut talks = Vec::with_capacity(fits);
    for id in live.iter().copied().take(fits) {
        let row: Row = conversations::table.filter(conversations::id.eq(id)).select(columns()).first(conn)?;
        talks.push(read(conn, row)?);
    }
    let rows: Vec<Row> = conversations::table
        .filter(conversations::id.lt(NEWEST))
        .order(conversations::id.desc())
        .limit(i64::try_from(fits).unwrap_or(i64::MAX))
        .select(columns())
        .load(conn)?;
    for row in rows.into_iter().filter(|row| !live.contains(&row.0)) {
        talks.push(read(conn, row)?);
    }
    talks.truncate(fits);
    Ok(talks)
}

/// Loads the conversations of one user, newest first, below `before`.
pub fn of_person(conn: &mut Conn, user: UserId, before: i64, fits: usize) -> QueryResult<Listed<Talk>> {
    let rows: Vec<Row> = conversations::table
        .filter(conversations::user_id.eq(user.0).and(conversations::id.lt(before)))
        .order(conversations::id.desc())
        .limit(one_more(fits))
        .select(columns())
        .load(conn)?;
    let talks: Vec<Talk> = rows.into_iter().map(|row| read(conn, row)).collect::<QueryResult<_>>()?;
    Ok(Listed::of(talks, fits, |talk| talk.id.0))
}

#[diesel::dsl::auto_type(no_type_alias)]
pub(super) fn columns() -> _ {
    (
        conversations::id,
        conversations::name,
        conversations::last_activity_at,
        conversations::ended_at,
        conversations::user_id,
    )
}

pub(super) fn read(conn: &mut Conn, (id, name, active, ended, user): Row) -> QueryResult<Talk> {
    let last: Option<(i64, Option<i64>)> = turns::table
        .filter(turns::conversation_id.eq(id))
        .order(turns::id.desc())
        .select((turns::id, turns::finished_at))
        .first(conn)
        .optional()?;
    let is_live = matches!(last, Some((_, None)));
    let last = match last {
        Some((turn, _)) => last_words(conn, turn)?,
        None => None,
    };
    let state = match ended {
        Some(_) => TalkState::Ended,
        None if is_live => TalkState::Live,
        None => TalkState::Open,
    };
    Ok(Talk {
        id: ConversationId(id),
        name,
        with: who::by_id(conn, UserId(user))?,
        last_activity_at: time(active)?,
        state,
        last,
    })
}

/// Loads the text of the last message in a turn; `None` if it is erased.
fn last_words(conn: &mut Conn, turn: i64) -> QueryResult<Option<LastWords>> {
    let ours: Option<String> = outbox::table
        .filter(outbox::turn_id.eq(turn))
        .order(outbox::id.desc())
        .select(outbox::body)
        .first(conn)
        .optional()?;
    if let Some(ours) = ours.filter(|words| !words.is_empty()) {
        return Ok(Some(LastWords::Ours(ours)));
    }
    let theirs: Option<String> = inbound_events::table
        .filter(inbound_events::turn_id.eq(turn))
        .order(inbound_events::id.desc())
        .select(inbound_events::body)
        .first(conn)
        .optional()?;
    Ok(theirs.filter(|words| !words.is_empty()).map(LastWords::Theirs))
}
