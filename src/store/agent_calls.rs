//! Calls of agents: the queue of a person's agents, and the tickets by which an agent learns the outcome of a question. The
//! texts of a call are in the turn that runs it.

use diesel::dsl::{self, count_star};
use diesel::prelude::*;
use jiff::Timestamp;

use super::codec::{arguments_json, ms, parse_arguments};
use super::column_types::stored_enum;
use super::confirmation::pending_action::{self, CloseReason};
use super::conversation::conversations::OPEN;
use super::database::literal_sql::{LiteralSql, literal_sql};
use super::schema::{agent_calls, api_keys, conversations, outbox, pending_actions, tool_calls, turns};
use super::{Conn, QueryResult};
use crate::conversation::agents::{
    AgentCaller, AgentName, CALL_LIMIT, MAX_OPEN_CALLS, MAX_WAIT, QUESTION_PERIOD, TICKET_PERIOD,
};
use crate::conversation::transcript::{CallRow, EffectLevel, ToolArguments, TurnId, UserId};

stored_enum! {
    /// Reason why a call of an agent was dropped before a turn started it.
    pub enum DropReason {
        /// It waited too long for an open question of the person.
        Expired = "expired",
        /// Its key was revoked.
        Revoked = "revoked",
        /// The person may not use Dialarr anymore.
        NotAllowed = "not_allowed",
        /// The assistant is paused.
        Paused = "paused",
    }
}

literal_sql! {
    /// Condition of calls that no turn has started.
    const WAITING = "agent_calls.turn_id IS NULL AND agent_calls.dropped IS NULL";
}

/// Call of an agent, before it is stored.
#[derive(Debug, Clone)]
pub struct NewAgentCall {
    /// Random, and known to the agent alone.
    pub ticket: String,
    pub caller: AgentCaller,
    pub person: UserId,
    pub tool: String,
    pub arguments: ToolArguments,
    pub effect: EffectLevel,
}

/// Outcome of storing a call of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentAdmission {
    Admitted {
        call: i64,
        /// True if the call waits until the person has answered an open question.
        waits: bool,
    },
    /// The person is already being asked the same, by a call of this id.
    AlreadyAsked(i64),
    /// Too many calls with the key wait or run.
    Busy,
    /// The key has made too many calls.
    OverLimit,
}

/// Stores a call of an agent. The same question is not stored twice while it is open.
pub fn admit_call(conn: &mut Conn, new: &NewAgentCall, now: Timestamp) -> QueryResult<AgentAdmission> {
    drop_overdue_calls(conn, now)?;
    delete_old_calls(conn, new.caller.key, now)?;
    let arguments = arguments_json(&new.arguments);
    let asks = new.effect == EffectLevel::Destructive;
    if asks {
        pending_action::expire_pending_action(conn, new.person, now)?;
        if let Some(open) = find_open_question(conn, new, &arguments)? {
            return Ok(AgentAdmission::AlreadyAsked(open));
        }
    }
    if count_open_calls(conn, new.caller.key)? >= MAX_OPEN_CALLS as i64 {
        return Ok(AgentAdmission::Busy);
    }
    if count_recent_calls(conn, new.caller.key, now)? >= i64::from(CALL_LIMIT.max) {
        return Ok(AgentAdmission::OverLimit);
    }
    let call = diesel::insert_into(agent_calls::table)
        .values((
            agent_calls::ticket.eq(&new.ticket),
            agent_calls::key_id.eq(new.caller.key),
            agent_calls::user_id.eq(new.person),
            agent_calls::client.eq(new.caller.name.as_str()),
            agent_calls::tool.eq(&new.tool),
            agent_calls::arguments.eq(arguments),
            agent_calls::effect.eq(new.effect),
            agent_calls::created_at.eq(ms(now)),
        ))
        .returning(agent_calls::id)
        .get_result(conn)?;
    let waits = asks && has_open_question(conn, new.person)?;
    Ok(AgentAdmission::Admitted { call, waits })
}

/// Finds an open question of the same key with the same arguments, or a call that waits to ask it.
fn find_open_question(conn: &mut Conn, new: &NewAgentCall, arguments: &str) -> QueryResult<Option<i64>> {
    let same = agent_calls::key_id.eq(new.caller.key).and(agent_calls::tool.eq(&new.tool));
    let waiting: Option<i64> = agent_calls::table
        .filter(WAITING.and(agent_calls::user_id.eq(new.person)).and(same))
        .filter(agent_calls::arguments.eq(arguments))
        .select(agent_calls::id)
        .first(conn)
        .optional()?;
    if waiting.is_some() {
        return Ok(waiting);
    }
    pending_actions::table
        .inner_join(tool_calls::table.on(tool_calls::id.eq(pending_actions::tool_call_id)))
        .inner_join(agent_calls::table.on(agent_calls::tool_call_id.eq(tool_calls::id.nullable())))
        .inner_join(outbox::table.on(outbox::id.eq(pending_actions::prompt_outbox_id)))
        .filter(pending_actions::user_id.eq(new.person).and(same).and(dsl::not(IS_LOST)))
        .filter(tool_calls::request.eq(arguments))
        .select(agent_calls::id)
        .first(conn)
        .optional()
}

/// Returns whether a question to a person is open that the person has received, or will receive.
fn has_open_question(conn: &mut Conn, user: UserId) -> QueryResult<bool> {
    let open = pending_actions::table
        .inner_join(outbox::table.on(outbox::id.eq(pending_actions::prompt_outbox_id)))
        .filter(pending_actions::user_id.eq(user).and(dsl::not(IS_LOST)));
    diesel::select(dsl::exists(open)).get_result(conn)
}

fn count_open_calls(conn: &mut Conn, key: i64) -> QueryResult<i64> {
    let running = turns::table.filter(turns::id.nullable().eq(agent_calls::turn_id));
    let is_running = dsl::exists(running.filter(turns::finished_at.is_null()));
    agent_calls::table
        .filter(agent_calls::key_id.eq(key).and(WAITING.or(is_running)))
        .filter(agent_calls::id.gt(oldest_recent_call(conn, key)?))
        .select(count_star())
        .first(conn)
}

/// Returns the id before the newest calls of a key, among which all open calls are.
fn oldest_recent_call(conn: &mut Conn, key: i64) -> QueryResult<i64> {
    let newest: Option<i64> = agent_calls::table
        .filter(agent_calls::key_id.eq(key))
        .order(agent_calls::id.desc())
        .offset(i64::from(CALL_LIMIT.max))
        .select(agent_calls::id)
        .first(conn)
        .optional()?;
    Ok(newest.unwrap_or(0))
}

fn count_recent_calls(conn: &mut Conn, key: i64, now: Timestamp) -> QueryResult<i64> {
    let oldest = oldest_recent_call(conn, key)?;
    let recent = agent_calls::created_at.gt(ms(now - CALL_LIMIT.period));
    agent_calls::table
        .filter(agent_calls::key_id.eq(key).and(agent_calls::id.gt(oldest)).and(recent))
        .select(count_star())
        .first(conn)
}

literal_sql! {
    /// Condition of waiting calls that may start. Texts of the person go first, and calls that ask the person wait for the end
    /// of an open question.
    const MAY_START =
        "NOT EXISTS (SELECT 1 FROM inbound_events WHERE inbound_events.state = 'pending' \
         AND inbound_events.user_id = agent_calls.user_id) \
         AND (agent_calls.effect <> 'destructive' OR NOT EXISTS (SELECT 1 FROM pending_actions \
         JOIN outbox ON outbox.id = pending_actions.prompt_outbox_id \
         WHERE pending_actions.user_id = agent_calls.user_id \
         AND outbox.state <> 'failed' AND outbox.state <> 'suppressed'))";

    /// Condition of a row of `outbox` that nobody will receive.
    pub(in crate::store) const IS_LOST = "(outbox.state = 'failed' OR outbox.state = 'suppressed')";
}

/// Time of the first call for a person that may start.
#[dsl::auto_type]
pub(super) fn select_due_at(user: UserId) -> _ {
    let (waiting, may_start): (LiteralSql<{ WAITING.hash() }>, LiteralSql<{ MAY_START.hash() }>) =
        (WAITING, MAY_START);
    agent_calls::table
        .filter(agent_calls::user_id.eq(user).and(waiting).and(may_start))
        .order(agent_calls::id)
        .select(agent_calls::created_at)
        .single_value()
}

/// Loads every person for whom a call waits.
pub(super) fn load_people_with_waiting_calls(conn: &mut Conn) -> QueryResult<Vec<UserId>> {
    agent_calls::table.filter(WAITING).select(agent_calls::user_id).distinct().load(conn)
}

/// Waiting call of an agent.
#[derive(Debug, Clone)]
pub struct WaitingCall {
    pub id: i64,
    pub caller: AgentCaller,
    pub tool: String,
    pub arguments: ToolArguments,
    pub effect: EffectLevel,
    /// Reason why it must not start.
    pub dropped: Option<DropReason>,
}

#[derive(Queryable)]
struct WaitingCallRow {
    id: i64,
    key: i64,
    key_name: String,
    revoked_at: Option<Timestamp>,
    client: String,
    tool: String,
    arguments: String,
    effect: EffectLevel,
    created_at: Timestamp,
}

/// Loads the next waiting call for a person. Calls that ask wait while a question is open, and others overtake them.
pub fn load_next_call(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<Option<WaitingCall>> {
    let row: Option<WaitingCallRow> = agent_calls::table
        .inner_join(api_keys::table.on(api_keys::id.eq(agent_calls::key_id)))
        .filter(WAITING.and(agent_calls::user_id.eq(user)).and(MAY_START))
        .order(agent_calls::id)
        .select((
            agent_calls::id,
            api_keys::id,
            api_keys::name,
            api_keys::revoked_at,
            agent_calls::client,
            agent_calls::tool,
            agent_calls::arguments,
            agent_calls::effect,
            agent_calls::created_at,
        ))
        .first(conn)
        .optional()?;
    let Some(row) = row else { return Ok(None) };
    let dropped = match row.revoked_at {
        Some(_) => Some(DropReason::Revoked),
        None if row.created_at + MAX_WAIT <= now => Some(DropReason::Expired),
        None => None,
    };
    let name = AgentName::from_stated(&row.client);
    Ok(Some(WaitingCall {
        id: row.id,
        caller: AgentCaller { key: row.key, key_name: row.key_name, name },
        tool: row.tool,
        arguments: parse_arguments(&row.arguments)?,
        effect: row.effect,
        dropped,
    }))
}

/// Drops the calls that have waited for too long.
pub fn drop_overdue_calls(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    diesel::update(agent_calls::table.filter(WAITING.and(agent_calls::created_at.le(ms(now - MAX_WAIT)))))
        .set((agent_calls::dropped.eq(DropReason::Expired), agent_calls::arguments.eq("")))
        .execute(conn)
        .map(drop)
}

/// Deletes the calls of a key whose outcome nobody asks for anymore. Their turns stay.
fn delete_old_calls(conn: &mut Conn, key: i64, now: Timestamp) -> QueryResult<()> {
    let is_old = agent_calls::created_at.le(ms(now - TICKET_PERIOD));
    diesel::delete(agent_calls::table.filter(agent_calls::key_id.eq(key).and(is_old))).execute(conn).map(drop)
}

/// Drops the waiting calls for a person whose texts are erased.
pub fn drop_calls_for(conn: &mut Conn, person: UserId) -> QueryResult<()> {
    diesel::update(agent_calls::table.filter(WAITING.and(agent_calls::user_id.eq(person))))
        .set((agent_calls::dropped.eq(DropReason::NotAllowed), agent_calls::arguments.eq("")))
        .execute(conn)
        .map(drop)
}

/// Ends a call that no turn starts, and erases its arguments.
pub fn drop_call(conn: &mut Conn, id: i64, reason: DropReason) -> QueryResult<()> {
    diesel::update(agent_calls::table.filter(agent_calls::id.eq(id).and(WAITING)))
        .set((agent_calls::dropped.eq(reason), agent_calls::arguments.eq("")))
        .execute(conn)
        .map(drop)
}

/// Assigns a call to the turn that runs it, which has its arguments from now on.
pub fn start_call(conn: &mut Conn, id: i64, (turn, call): (TurnId, CallRow)) -> QueryResult<()> {
    diesel::update(agent_calls::table.find(id))
        .set((
            agent_calls::turn_id.eq(turn),
            agent_calls::tool_call_id.eq(call),
            agent_calls::arguments.eq(""),
        ))
        .execute(conn)
        .map(drop)
}

/// Records that the person is asked about a call. Returns false if the person has an open question, which the question of an
/// agent must not replace.
pub fn start_question(
    conn: &mut Conn,
    (call, person): (CallRow, UserId),
    now: Timestamp,
) -> QueryResult<bool> {
    if has_open_question(conn, person)? {
        return Ok(false);
    }
    diesel::update(agent_calls::table.filter(agent_calls::tool_call_id.eq(call)))
        .set(agent_calls::asked_at.eq(ms(now)))
        .execute(conn)?;
    Ok(true)
}

/// Points the ticket of a call to the call that asks the person again, which has the same arguments.
pub fn replace_call(conn: &mut Conn, old: CallRow, new: CallRow) -> QueryResult<()> {
    let request: String = tool_calls::table.find(old).select(tool_calls::request).first(conn)?;
    let replaced = diesel::update(agent_calls::table.filter(agent_calls::tool_call_id.eq(old)))
        .set(agent_calls::tool_call_id.eq(new))
        .execute(conn)?;
    if replaced > 0 {
        diesel::update(tool_calls::table.find(new)).set(tool_calls::request.eq(request)).execute(conn)?;
    }
    Ok(())
}

/// Counts the questions of agents to a person that the person has not confirmed.
pub fn count_unconfirmed_questions(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<usize> {
    let confirmed = tool_calls::table
        .filter(tool_calls::id.nullable().eq(agent_calls::tool_call_id))
        .filter(tool_calls::confirmed_by.is_not_null());
    let count: i64 = agent_calls::table
        .filter(agent_calls::user_id.eq(user).and(agent_calls::asked_at.gt(ms(now - QUESTION_PERIOD))))
        .filter(dsl::not(dsl::exists(confirmed)))
        .select(count_star())
        .first(conn)?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Loads the agent whose call a turn runs.
pub fn load_agent_of_turn(conn: &mut Conn, turn: TurnId) -> QueryResult<Option<AgentCaller>> {
    let row: Option<(i64, String, String)> = agent_calls::table
        .inner_join(api_keys::table.on(api_keys::id.eq(agent_calls::key_id)))
        .filter(agent_calls::turn_id.eq(turn))
        .select((api_keys::id, api_keys::name, agent_calls::client))
        .first(conn)
        .optional()?;
    Ok(row.map(agent_caller))
}

/// Columns of the agent that asked for the deletion in the row of `tool_calls`: its key, the name of the key, and its own
/// name.
pub(super) type AgentColumns = (Option<i64>, Option<String>, Option<String>);

/// Returns the agent of its columns.
pub(super) fn agent_from_columns((key, key_name, client): AgentColumns) -> Option<AgentCaller> {
    Some(agent_caller((key?, key_name?, client?)))
}

/// Key of the agent that asked for the deletion in the row of `tool_calls`.
#[dsl::auto_type]
pub(super) fn key_of_call() -> _ {
    agent_calls::table
        .filter(agent_calls::tool_call_id.eq(tool_calls::id.nullable()))
        .select(agent_calls::key_id)
        .single_value()
}

/// Name of that key.
#[dsl::auto_type]
pub(super) fn key_name_of_call() -> _ {
    agent_calls::table
        .inner_join(api_keys::table.on(api_keys::id.eq(agent_calls::key_id)))
        .filter(agent_calls::tool_call_id.eq(tool_calls::id.nullable()))
        .select(api_keys::name)
        .single_value()
}

/// Name that the agent has stated.
#[dsl::auto_type]
pub(super) fn client_of_call() -> _ {
    agent_calls::table
        .filter(agent_calls::tool_call_id.eq(tool_calls::id.nullable()))
        .select(agent_calls::client)
        .single_value()
}

fn agent_caller((key, key_name, client): (i64, String, String)) -> AgentCaller {
    AgentCaller { key, key_name, name: AgentName::from_stated(&client) }
}

/// Shifts the times of calls that are ahead of the clock, after it was set back.
pub(super) fn shift_times(conn: &mut Conn, step_ms: i64, now: Timestamp) -> QueryResult<()> {
    diesel::update(agent_calls::table.filter(agent_calls::created_at.gt(ms(now))))
        .set((
            agent_calls::created_at.eq(agent_calls::created_at + step_ms),
            agent_calls::asked_at.eq(agent_calls::asked_at + step_ms),
        ))
        .execute(conn)
        .map(drop)
}

/// Ends what a revoked key has started: its waiting calls, its running turn, and its open question.
pub fn end_calls_of_key(conn: &mut Conn, key: i64, now: Timestamp) -> QueryResult<()> {
    diesel::update(agent_calls::table.filter(agent_calls::key_id.eq(key).and(WAITING)))
        .set((agent_calls::dropped.eq(DropReason::Revoked), agent_calls::arguments.eq("")))
        .execute(conn)?;
    let asked: Option<UserId> = pending_actions::table
        .inner_join(
            agent_calls::table.on(agent_calls::tool_call_id.eq(pending_actions::tool_call_id.nullable())),
        )
        .filter(agent_calls::key_id.eq(key))
        .select(pending_actions::user_id)
        .first(conn)
        .optional()?;
    if let Some(person) = asked {
        pending_action::close_pending_action(conn, person, CloseReason::Dropped, now)?;
    }
    request_cancel(conn, key, now)
}

/// Requests that the running call of a key end before its next effect.
fn request_cancel(conn: &mut Conn, key: i64, now: Timestamp) -> QueryResult<()> {
    let of_agent =
        conversations::table.filter(conversations::agent_key_id.eq(key).and(OPEN)).select(conversations::id);
    let running =
        turns::table.filter(turns::finished_at.is_null().and(turns::conversation_id.eq_any(of_agent)));
    diesel::update(running)
        .set((turns::cancel_requested_at.eq(ms(now)), turns::updated_at.eq(ms(now))))
        .execute(conn)
        .map(drop)
}
