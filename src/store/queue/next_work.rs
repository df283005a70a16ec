//! Next work of the users: unfinished turns, waiting messages, and waiting calls of agents.

use diesel::dsl::min;
use diesel::prelude::*;
use jiff::Timestamp;

use super::inbound_messages::PENDING;
use crate::conversation::transcript::UserId;
use crate::store::database::statement_cache::CacheStatement;
use crate::store::people::rooms::ROOM_IS_FREE;
use crate::store::schema::{inbound_events, turns, users as user_rows};
use crate::store::turns::turn_lifecycle::ActiveTurn;
use crate::store::{Conn, agent_calls};

/// Next work of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NextWork {
    pub active_turn: Option<ActiveTurn>,
    /// Time from which the first of the user's waiting messages, or of the waiting calls of agents, may be processed.
    pub due_at: Option<Timestamp>,
}

/// Loads the next work of a user, in a single statement.
pub fn load_next_work(conn: &mut Conn, user: UserId) -> QueryResult<NextWork> {
    let message_due_at = inbound_events::table
        .filter(inbound_events::user_id.eq(user).and(PENDING).and(ROOM_IS_FREE))
        .select(min(inbound_events::not_before))
        .single_value();
    let is_active = turns::user_id.eq(user_rows::id).and(turns::finished_at.is_null());
    let columns = (Option::<ActiveTurn>::as_select(), message_due_at, agent_calls::select_due_at(user));
    let work: Option<(Option<ActiveTurn>, Option<Timestamp>, Option<Timestamp>)> = user_rows::table
        .find(user)
        .left_join(turns::table.on(is_active))
        .select(columns)
        .limit(1)
        .cached()
        .get_result(conn)
        .optional()?;
    let Some((active_turn, message_due_at, call_due_at)) = work else { return Ok(NextWork::default()) };
    Ok(NextWork { active_turn, due_at: [message_due_at, call_due_at].into_iter().flatten().min() })
}

/// Loads every user with a waiting message, a waiting call of an agent, or an unfinished turn.
pub fn load_users_with_work(conn: &mut Conn) -> QueryResult<Vec<UserId>> {
    let mut users: Vec<UserId> =
        inbound_events::table.filter(PENDING).select(inbound_events::user_id).distinct().load(conn)?;
    let running: Vec<UserId> =
        turns::table.filter(turns::finished_at.is_null()).select(turns::user_id).distinct().load(conn)?;
    users.extend(running);
    users.extend(agent_calls::load_people_with_waiting_calls(conn)?);
    users.sort_unstable();
    users.dedup();
    Ok(users)
}
