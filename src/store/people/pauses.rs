//! Household-wide pauses of the replies.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::transcript::UserId;
use crate::store::Conn;
use crate::store::audit::Actor;
use crate::store::codec::ms;
use crate::store::database::literal_sql::literal_sql;
use crate::store::queue::suppression;
use crate::store::schema::pauses;

literal_sql! {
    const OPEN = "pauses.ended_at IS NULL";
}

/// Loads the id of the current pause; `None` if replies are not paused.
pub fn load_current_pause(conn: &mut Conn) -> QueryResult<Option<i64>> {
    pauses::table.filter(OPEN).select(pauses::id).first(conn).optional()
}

/// Outcome of starting or ending a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseOutcome {
    Changed,
    Unchanged,
}

pub fn start_pause(conn: &mut Conn, admin: UserId, now: Timestamp) -> QueryResult<PauseOutcome> {
    if load_current_pause(conn)?.is_some() {
        return Ok(PauseOutcome::Unchanged);
    }
    diesel::insert_into(pauses::table)
        .values((pauses::begun_at.eq(ms(now)), pauses::begun_by.eq(admin)))
        .execute(conn)?;
    Ok(PauseOutcome::Changed)
}

/// Ends the pause, and suppresses the notifications of it that are not sent yet.
pub fn end_pause(conn: &mut Conn, actor: Actor, now: Timestamp) -> QueryResult<PauseOutcome> {
    if let Some(pause) = load_current_pause(conn)? {
        suppression::suppress_messages_by_key(conn, &format!("pause:{pause}"), now)?;
    }
    let ended = diesel::update(pauses::table.filter(OPEN))
        .set((pauses::ended_at.eq(ms(now)), pauses::ended_by.eq(actor.user())))
        .execute(conn)?;
    Ok(if ended == 0 { PauseOutcome::Unchanged } else { PauseOutcome::Changed })
}

/// The newest pause, which is the only one that may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = pauses)]
pub struct LastPause {
    pub id: i64,
    /// `None` while replies are paused.
    pub ended_at: Option<Timestamp>,
}

/// Loads the newest pause; `None` if there was none.
pub fn load_last_pause(conn: &mut Conn) -> QueryResult<Option<LastPause>> {
    pauses::table.order(pauses::id.desc()).select(LastPause::as_select()).first(conn).optional()
}
