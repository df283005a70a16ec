//! Earlier messages and changes, for the model's window, for MORE, and for matching reactions and numbers.

use std::collections::HashMap;

use diesel::prelude::*;
use jiff::Timestamp;

use super::history_cache::{CachedWindow, HistoryCache};
use super::record::steps::{self, LoadedBlocks, StepRecord};
use super::record::turn_range::{TurnRange, select_turn_ids};
use crate::conversation::people::facts::is_fact_call;
use crate::conversation::prompt::{self, PastTurn, SharedTurn};
use crate::conversation::routing::route::{LastListSource, MessageRef, RecentMessage};
use crate::conversation::stream_events::{CallPhase, StreamTurnState};
use crate::conversation::transcript::{
    ConversationId, EffectLevel, EventId, ModelStep, OutboxId, Responder, TurnId, UserId,
};
use crate::store::Conn;
use crate::store::codec::{ms, none_if_unreadable, parse_call_result};
use crate::store::database::literal_sql::literal_sql;
use crate::store::people::rooms;
use crate::store::queue::outbox::{OutboundKind, expects_no_reply};
use crate::store::schema::{
    conversations, inbound_events, instance, outbox, reactions, tool_calls, turns, users,
};
use crate::store::turns::turn_lifecycle;

/// Maximum number of messages in each direction that a reaction may quote.
const QUOTABLE_MESSAGE_LIMIT: i64 = 20;
/// Maximum number of earlier conversations whose changes are loaded.
const EARLIER_CONVERSATION_LIMIT: i64 = 10;
/// Maximum number of turns in each of them.
const EARLIER_TURN_LIMIT: i64 = 100;
/// Maximum number of changes in each of them.
const EARLIER_CHANGE_LIMIT: i64 = 20;

/// Loads the newest finished turns of a conversation, oldest first, without canceled turns. This must be the first read of
/// its transaction, or run without one.
pub fn load_past_turns(
    conn: &mut Conn,
    cache: &HistoryCache,
    conversation: ConversationId,
) -> QueryResult<Vec<SharedTurn>> {
    let CachedWindow { turns, load } = cache.open_window(|| load_window(conn, conversation))?;
    let mut missing = turns.iter().filter(|(_, cached)| cached.is_none()).map(|(id, _)| *id);
    let mut loaded = match missing.next() {
        Some(oldest) => load_turns_from(conn, conversation, oldest)?,
        None => HashMap::new(),
    };
    let mut past_turns = Vec::new();
    for (id, cached) in turns {
        if let Some(turn) = cached {
            past_turns.push(turn);
        } else if let Some(turn) = loaded.remove(&id).map(SharedTurn::from) {
            cache.store_turn(load, &turn);
            past_turns.push(turn);
        }
    }
    // A turn without other messages answered only a reaction.
    past_turns.retain(|past| !past.texts.is_empty());
    // An erased turn is useless to a model, and some model servers reject empty messages.
    past_turns.retain(|past| past.answer.is_some() || past.texts.iter().any(|text| !text.is_empty()));
    Ok(past_turns)
}

literal_sql! {
    /// Condition of the turns that a window contains, as in the index `ix_turn_window`.
    const IS_IN_WINDOW = "turns.finished_at IS NOT NULL AND turns.state <> 'CANCELED'";
}

/// Loads the ids of the turns of a window, oldest first, and the number of changes by shell commands.
fn load_window(conn: &mut Conn, conversation: ConversationId) -> QueryResult<(Vec<TurnId>, i64)> {
    let command_changes = instance::table.select(instance::command_changes).single_value();
    let rows: Vec<(TurnId, Option<i64>)> = turns::table
        .filter(turns::conversation_id.eq(conversation).and(IS_IN_WINDOW))
        .order(turns::id.desc())
        .limit(i64::try_from(prompt::MAX_TURNS).unwrap_or(i64::MAX))
        .select((turns::id, command_changes))
        .load(conn)?;
    let command_changes = rows.first().and_then(|(_, changes)| *changes).unwrap_or(0);
    Ok((rows.into_iter().rev().map(|(id, _)| id).collect(), command_changes))
}

/// Turn with its answer, its plan and whether it mentions what somebody has watched, and its room and the name of its
/// author.
type PastTurnRow = (TurnId, Option<String>, String, bool, (Option<UserId>, Option<String>));

/// Loads the turns of a conversation from `oldest` on.
fn load_turns_from(
    conn: &mut Conn,
    conversation: ConversationId,
    oldest: TurnId,
) -> QueryResult<HashMap<TurnId, PastTurn>> {
    let range = TurnRange::from_turn(conversation, oldest);
    let author = users::table.filter(users::id.eq(turns::user_id)).select(users::display_name).single_value();
    let rows: Vec<PastTurnRow> = turns::table
        .filter(turns::conversation_id.eq(conversation).and(turns::id.ge(oldest)))
        .filter(turns::finished_at.is_not_null())
        .select((
            turns::id,
            turns::response_text,
            turns::prompt,
            turns::about_viewing,
            (rooms::room_of_turn(), author),
        ))
        .load(conn)?;
    let mut steps = steps::load_steps(conn, range, LoadedBlocks::Text)?;
    let reaction = reactions::table.filter(reactions::said_in.eq(inbound_events::id.nullable()));
    let bodies: Vec<(Option<TurnId>, String)> = inbound_events::table
        .filter(diesel::dsl::not(diesel::dsl::exists(reaction)))
        .filter(inbound_events::turn_id.eq_any(select_turn_ids(range).nullable()))
        .order((inbound_events::provider_at, inbound_events::id))
        .select((inbound_events::turn_id, inbound_events::body))
        .load(conn)?;
    let build_turn = |(id, answer, plan, about_viewing, (room, author)): PastTurnRow| {
        let texts =
            bodies.iter().filter(|(turn, _)| *turn == Some(id)).map(|(_, body)| body.clone()).collect();
        let steps = convert_model_steps(steps.remove(&id))?;
        // Without a readable context, the window contains only the messages of the turn.
        let context = none_if_unreadable(turn_lifecycle::parse_plan_context(&plan))?.flatten();
        let author = room.map(|_| prompt::format_author(author.as_deref()));
        Ok((id, PastTurn { id, author, context, texts, steps, answer, about_viewing }))
    };
    rows.into_iter().map(build_turn).collect()
}

/// Converts the steps of a past turn. Returns none if they cannot be read: the window then contains only the messages
/// and the answer of the turn.
fn convert_model_steps(steps: Option<Vec<StepRecord>>) -> QueryResult<Vec<ModelStep>> {
    Ok(none_if_unreadable(steps::collect_model_steps(steps.unwrap_or_default()))?.unwrap_or_default())
}

/// Loads the last finished turn and its full answer, of which the first page was sent. Completed turns without an
/// answer are skipped.
fn load_last_turn(
    conn: &mut Conn,
    conversation: ConversationId,
) -> QueryResult<Option<(TurnId, Option<String>)>> {
    turns::table
        .filter(turns::conversation_id.eq(conversation).and(turns::finished_at.is_not_null()))
        .filter(turns::state.ne(StreamTurnState::Completed).or(turns::response_text.is_not_null()))
        .order(turns::id.desc())
        .select((turns::id, turns::response_text))
        .first(conn)
        .optional()
}

/// Loads the full answer of the last finished turn, if that turn is later than `after`.
pub fn load_last_answer(
    conn: &mut Conn,
    conversation: ConversationId,
    after: Option<TurnId>,
) -> QueryResult<Option<String>> {
    let last = load_last_turn(conn, conversation)?.filter(|(turn, _)| Some(*turn) > after);
    Ok(last.and_then(|(_, answer)| answer))
}

/// Loads the source of the last answer, if the answer was a numbered list.
pub fn load_last_list(conn: &mut Conn, conversation: ConversationId) -> QueryResult<LastListSource> {
    let last_turn = load_last_turn(conn, conversation)?;
    let Some((turn, Some(answer))) = last_turn else { return Ok(LastListSource::ModelOrNone) };
    if !answer.contains("1. ") {
        return Ok(LastListSource::ModelOrNone);
    }
    let mut steps = steps::load_steps(conn, TurnRange::single_turn(conversation, turn), LoadedBlocks::Text)?;
    let steps = convert_model_steps(steps.remove(&turn))?;
    let is_from_code = steps.last().is_some_and(|step| step.responder == Responder::Keyword);
    Ok(if is_from_code { LastListSource::Code } else { LastListSource::ModelOrNone })
}

/// Loads the messages that a reaction may quote: outbound, then inbound, each newest first.
pub fn load_quotable_messages(
    conn: &mut Conn,
    user: UserId,
    room: Option<UserId>,
) -> QueryResult<Vec<RecentMessage>> {
    load_recent_messages(conn, (user, room), QUOTABLE_MESSAGE_LIMIT)
}

/// Loads the last outbound messages, and the last inbound one.
pub fn load_last_messages(
    conn: &mut Conn,
    user: UserId,
    room: Option<UserId>,
) -> QueryResult<Vec<RecentMessage>> {
    load_recent_messages(conn, (user, room), 1)
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = outbox)]
struct SentMessageRow {
    id: OutboxId,
    accepted_at: Option<Timestamp>,
    kind: OutboundKind,
    body: String,
    room_id: Option<UserId>,
}

/// Loads the last accepted outbound messages of a chat, newest first by the time of acceptance, then the last
/// `inbound_limit` messages of the user.
fn load_recent_messages(
    conn: &mut Conn,
    (user, room): (UserId, Option<UserId>),
    inbound_limit: i64,
) -> QueryResult<Vec<RecentMessage>> {
    let mut outbound = load_sent_messages(conn, user, room)?;
    outbound.sort_by_key(|sent| std::cmp::Reverse((sent.accepted_at, sent.id)));
    let inbound: Vec<(EventId, String)> = inbound_events::table
        .filter(inbound_events::user_id.eq(user))
        .order(inbound_events::id.desc())
        .limit(inbound_limit)
        .select((inbound_events::id, inbound_events::body))
        .load(conn)?;
    let outbound = outbound.into_iter().map(|sent| RecentMessage {
        message: MessageRef::Outbound(sent.id),
        notified_at: sent.accepted_at.filter(|_| expects_no_reply(sent.kind, &sent.body)),
        body: sent.body,
    });
    let inbound = inbound.into_iter().map(|(id, body)| RecentMessage {
        message: MessageRef::Inbound(id),
        body,
        notified_at: None,
    });
    Ok(outbound.chain(inbound).collect())
}

/// Loads the last accepted messages to a room, or to the private chat with a user, newest first.
fn load_sent_messages(
    conn: &mut Conn,
    user: UserId,
    room: Option<UserId>,
) -> QueryResult<Vec<SentMessageRow>> {
    if let Some(room) = room {
        // In a room, the last message to anybody counts.
        return outbox::table
            .filter(outbox::room_id.eq(room).and(outbox::accepted_at.is_not_null()))
            .order(outbox::id.desc())
            .limit(QUOTABLE_MESSAGE_LIMIT)
            .select(SentMessageRow::as_select())
            .load(conn);
    }
    let mut load_newest = |limit: i64| -> QueryResult<Vec<SentMessageRow>> {
        outbox::table
            .filter(outbox::user_id.eq(user).and(outbox::accepted_at.is_not_null()))
            .order(outbox::id.desc())
            .limit(limit)
            .select(SentMessageRow::as_select())
            .load(conn)
    };
    let mut sent = load_newest(QUOTABLE_MESSAGE_LIMIT)?;
    if sent.iter().any(|sent| sent.room_id.is_some()) {
        // Some of the newest messages are in rooms, which the index by user does not tell apart.
        sent = load_newest(3 * QUOTABLE_MESSAGE_LIMIT)?;
        sent.retain(|sent| sent.room_id.is_none());
        sent.truncate(usize::try_from(QUOTABLE_MESSAGE_LIMIT).unwrap_or(usize::MAX));
    }
    Ok(sent)
}

/// Loads the changes made for the user since `since` in conversations before this one, or before a new one, as sentences
/// written by the tools, newest first.
pub fn load_earlier_changes(
    conn: &mut Conn,
    user: UserId,
    conversation: Option<ConversationId>,
    since: Timestamp,
) -> QueryResult<Vec<String>> {
    let before = conversation.unwrap_or(ConversationId(i64::MAX));
    let conversations: Vec<ConversationId> = conversations::table
        .filter(conversations::user_id.eq(user).and(conversations::id.lt(before)))
        .filter(conversations::last_activity_at.ge(ms(since)))
        .order(conversations::id.desc())
        .limit(EARLIER_CONVERSATION_LIMIT)
        .select(conversations::id)
        .load(conn)?;
    let mut sentences = Vec::new();
    for conversation in conversations {
        // Separate query, because a join would read every call in the table.
        let turns: Vec<TurnId> = turns::table
            .filter(turns::conversation_id.eq(conversation).and(turns::finished_at.ge(ms(since))))
            .order(turns::id.desc())
            .limit(EARLIER_TURN_LIMIT)
            .select(turns::id)
            .load(conn)?;
        let results: Vec<Option<String>> = tool_calls::table
            .filter(tool_calls::turn_id.eq_any(turns))
            .filter(tool_calls::effect.ne(EffectLevel::Read).and(tool_calls::state.eq(CallPhase::Complete)))
            .order(tool_calls::id.desc())
            .limit(EARLIER_CHANGE_LIMIT)
            .select(tool_calls::response)
            .load(conn)?;
        for text in results.into_iter().flatten() {
            // The prompt contains the current facts separately, and outdated facts not at all.
            let result = none_if_unreadable(parse_call_result(&text))?.filter(|result| !is_fact_call(result));
            sentences.extend(result.map(|result| result.for_user));
        }
    }
    sentences.retain(|sentence| !sentence.is_empty());
    Ok(sentences)
}
