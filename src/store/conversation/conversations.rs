//! Life of a conversation: start, activity, end and reopening. A user, a room, and the key of an agent has at most one open
//! conversation.

use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use crate::conversation::agents;
use crate::conversation::lifecycle::{self, ConversationLifecycle, OpenConversation};
use crate::conversation::stream_events::{ConversationChange, InboundStatus, StreamEventKind};
use crate::conversation::transcript::{ConversationId, EventId, TurnId, UserId};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::column_types::stored_enum;
use crate::store::database::literal_sql::literal_sql;
use crate::store::database::statement_cache::cached_update;
use crate::store::people::rooms;
use crate::store::queue::inbound_messages::PENDING;
use crate::store::schema::{conversations, inbound_events, turns};
use crate::store::stream::recording::record_event;
use crate::store::turns::turn_lifecycle::TurnKind;

/// Maximum number of idle conversations that one maintenance run ends.
const IDLE_END_LIMIT: i64 = 500;

literal_sql! {
    /// Condition of an open conversation.
    pub(in crate::store) const OPEN = "conversations.ended_at IS NULL";
}

stored_enum! {
    /// Reason why a conversation ended.
    pub enum EndReason {
        Idle = "idle",
        /// The user cleared it, or the operator closed it.
        Cleared = "cleared",
        /// The user was blocked.
        Blocked = "blocked",
        /// The operator reopened another conversation of the user.
        Superseded = "admin",
    }
}

/// Returns the query for the open conversation of a user.
#[diesel::dsl::auto_type(no_type_alias)]
pub(in crate::store) fn select_open_conversation(user: UserId) -> _ {
    conversations::table
        .filter(conversations::user_id.eq(user).and(conversations::ended_at.is_null()))
        .filter(conversations::agent_key_id.is_null())
        .select(conversations::id)
}

pub fn load_open_conversation(conn: &mut Conn, user: UserId) -> QueryResult<Option<OpenConversation>> {
    let row: Option<(ConversationId, Timestamp)> = conversations::table
        .filter(conversations::user_id.eq(user).and(conversations::ended_at.is_null()))
        .filter(conversations::agent_key_id.is_null())
        .select((conversations::id, conversations::last_activity_at))
        .first(conn)
        .optional()?;
    Ok(row.map(|(id, last_activity_at)| OpenConversation { id, last_activity_at }))
}

/// Loads the open conversation of an agent, by the id of its key.
pub fn load_agent_conversation(conn: &mut Conn, key: i64) -> QueryResult<Option<OpenConversation>> {
    let row: Option<(ConversationId, Timestamp)> = conversations::table
        .filter(OPEN.and(conversations::agent_key_id.eq(key)))
        .select((conversations::id, conversations::last_activity_at))
        .first(conn)
        .optional()?;
    Ok(row.map(|(id, last_activity_at)| OpenConversation { id, last_activity_at }))
}

/// Starts a conversation of an agent that acts for a person.
pub fn start_agent_conversation(
    conn: &mut Conn,
    (user, key): (UserId, i64),
    name: &str,
    now: Timestamp,
) -> QueryResult<ConversationId> {
    let id = diesel::insert_into(conversations::table)
        .values((
            conversations::user_id.eq(user),
            conversations::agent_key_id.eq(key),
            conversations::name.eq(name),
            conversations::started_at.eq(ms(now)),
            conversations::last_activity_at.eq(ms(now)),
        ))
        .returning(conversations::id)
        .get_result(conn)?;
    record_event(conn, id, now, StreamEventKind::Conversation(ConversationChange::Begun))?;
    Ok(id)
}

/// Ends the open conversations of the agents of a user, whose results they may not use anymore.
pub fn end_agent_conversations(
    conn: &mut Conn,
    user: UserId,
    reason: EndReason,
    now: Timestamp,
) -> QueryResult<()> {
    let open: Vec<ConversationId> = conversations::table
        .filter(OPEN.and(conversations::user_id.eq(user)).and(conversations::agent_key_id.is_not_null()))
        .select(conversations::id)
        .load(conn)?;
    open.into_iter().try_for_each(|id| end_conversation(conn, id, reason, now))
}

/// User and state of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversationRef {
    pub user: UserId,
    pub is_ended: bool,
    /// True if an agent has it on behalf of the user.
    pub is_of_agent: bool,
}

/// Loads the user and the state of a conversation; returns an error if the conversation does not exist.
pub fn load_conversation_ref(conn: &mut Conn, id: ConversationId) -> QueryResult<ConversationRef> {
    let (user, ended_at, agent): (UserId, Option<Timestamp>, Option<i64>) = conversations::table
        .find(id)
        .select((conversations::user_id, conversations::ended_at, conversations::agent_key_id))
        .first(conn)?;
    Ok(ConversationRef { user, is_ended: ended_at.is_some(), is_of_agent: agent.is_some() })
}

pub fn start_conversation(
    conn: &mut Conn,
    user: UserId,
    name: &str,
    now: Timestamp,
) -> QueryResult<ConversationId> {
    let id = diesel::insert_into(conversations::table)
        .values((
            conversations::user_id.eq(user),
            conversations::name.eq(name),
            conversations::started_at.eq(ms(now)),
            conversations::last_activity_at.eq(ms(now)),
        ))
        .returning(conversations::id)
        .get_result(conn)?;
    record_event(conn, id, now, StreamEventKind::Conversation(ConversationChange::Begun))?;
    record_waiting_messages(conn, user, id)?;
    Ok(id)
}

/// Records the waiting messages of a user or a room in the conversation that is open from now on.
fn record_waiting_messages(conn: &mut Conn, owner: UserId, conversation: ConversationId) -> QueryResult<()> {
    let waiting: Vec<(EventId, Timestamp)> = inbound_events::table
        .filter(PENDING.and(rooms::owner_of_message().eq(owner)))
        .order((inbound_events::provider_at, inbound_events::id))
        .select((inbound_events::id, inbound_events::received_at))
        .load(conn)?;
    waiting.into_iter().try_for_each(|(message, received_at)| {
        let waits = StreamEventKind::InboundMessage(message, InboundStatus::Waiting);
        record_event(conn, conversation, received_at, waits)
    })
}

pub fn record_activity(conn: &mut Conn, id: ConversationId, now: Timestamp) -> QueryResult<()> {
    cached_update(conversations::table.find(id)).set(conversations::last_activity_at.eq(ms(now))).run(conn)
}

/// Reopens an ended conversation. Its idle period starts over.
pub fn reopen_conversation(conn: &mut Conn, id: ConversationId, now: Timestamp) -> QueryResult<()> {
    let user = cached_update(conversations::table.find(id))
        .set((
            conversations::ended_at.eq(None::<Timestamp>),
            conversations::end_reason.eq(None::<EndReason>),
            conversations::last_activity_at.eq(ms(now)),
        ))
        .returning(conversations::user_id)
        .get_result(conn)?;
    record_event(conn, id, now, StreamEventKind::Conversation(ConversationChange::Reopened))?;
    record_waiting_messages(conn, user, id)
}

/// Ends a conversation. If it began without a message, it gets the name of its first message.
pub fn end_conversation(
    conn: &mut Conn,
    id: ConversationId,
    reason: EndReason,
    now: Timestamp,
) -> QueryResult<()> {
    let topic = load_first_message(conn, id)?.as_deref().and_then(lifecycle::format_topic);
    let name: String = conversations::table.find(id).select(conversations::name).first(conn)?;
    cached_update(conversations::table.find(id))
        .set((
            conversations::name.eq(topic.unwrap_or(name)),
            conversations::ended_at.eq(ms(now)),
            conversations::end_reason.eq(reason),
        ))
        .run(conn)?;
    record_event(conn, id, now, StreamEventKind::Conversation(ConversationChange::Ended))
}

/// Loads the first message of the first chat turn of a conversation, if there is such a turn.
fn load_first_message(conn: &mut Conn, id: ConversationId) -> QueryResult<Option<String>> {
    let first_turn: Option<TurnId> = turns::table
        .filter(turns::conversation_id.eq(id).and(turns::kind.eq(TurnKind::Chat)))
        .order(turns::id)
        .select(turns::id)
        .first(conn)
        .optional()?;
    let Some(first_turn) = first_turn else { return Ok(None) };
    inbound_events::table
        .filter(inbound_events::turn_id.eq(first_turn))
        .order((inbound_events::provider_at, inbound_events::id))
        .select(inbound_events::body)
        .first(conn)
        .optional()
}

/// Ends the conversations without a running turn that have been idle for `idle_period`, with the end of this period as
/// their end.
pub fn end_idle_conversations(
    conn: &mut Conn,
    idle_period: SignedDuration,
    now: Timestamp,
) -> QueryResult<()> {
    let running: Vec<ConversationId> =
        turns::table.filter(turns::finished_at.is_null()).select(turns::conversation_id).load(conn)?;
    let is_idle_agent = conversations::last_activity_at.le(ms(now - agents::IDLE_PERIOD));
    let idle: Vec<(ConversationId, Timestamp, Option<i64>)> = conversations::table
        .filter(OPEN.and(conversations::last_activity_at.le(ms(now - idle_period))))
        .filter(conversations::agent_key_id.is_null().or(is_idle_agent))
        .order(conversations::last_activity_at)
        .limit(IDLE_END_LIMIT)
        .select((conversations::id, conversations::last_activity_at, conversations::agent_key_id))
        .load(conn)?;
    for (id, last_activity_at, agent) in idle.into_iter().filter(|(id, ..)| !running.contains(id)) {
        let period = agent.map_or(idle_period, |_| agents::IDLE_PERIOD);
        end_conversation(conn, id, EndReason::Idle, last_activity_at + period)?;
    }
    Ok(())
}

/// Loads the lifecycle of a user's last conversation, as of its last answer.
pub fn load_last_lifecycle(conn: &mut Conn, user: UserId) -> QueryResult<Option<ConversationLifecycle>> {
    let conversation: Option<ConversationId> = conversations::table
        .filter(conversations::user_id.eq(user).and(conversations::agent_key_id.is_null()))
        .order(conversations::id.desc())
        .select(conversations::id)
        .first(conn)
        .optional()?;
    let Some(conversation) = conversation else { return Ok(None) };
    let last_turn: Option<TurnId> = turns::table
        .filter(turns::conversation_id.eq(conversation).and(turns::response_text.is_not_null()))
        .order(turns::id.desc())
        .select(turns::id)
        .first(conn)
        .optional()?;
    last_turn.map(|turn| load_lifecycle(conn, turn)).transpose()
}

/// Loads the lifecycle of a turn's conversation, as of this turn.
pub fn load_lifecycle(conn: &mut Conn, turn: TurnId) -> QueryResult<ConversationLifecycle> {
    let id: ConversationId = turns::table.find(turn).select(turns::conversation_id).first(conn)?;
    let (name, started_at): (String, Timestamp) =
        conversations::table.find(id).select((conversations::name, conversations::started_at)).first(conn)?;
    let first_turn: TurnId =
        turns::table.filter(turns::conversation_id.eq(id)).order(turns::id).select(turns::id).first(conn)?;
    Ok(ConversationLifecycle {
        is_new_conversation: first_turn == turn,
        conversation_id: id,
        conversation_name: name,
        started_at,
    })
}
