//! Earlier messages and changes, for the model's window, for MORE, and for matching reactions and numbers.

use diesel::prelude::*;
use jiff::Timestamp;

use super::record::steps::{self, LoadedBlocks, StepRecord};
use super::record::turn_range::{TurnRange, select_turn_ids};
use crate::conversation::people::facts::is_fact_call;
use crate::conversation::prompt::PastTurn;
use crate::conversation::routing::route::{LastListSource, MessageRef, RecentMessage};
use crate::conversation::stream_events::{CallPhase, StreamTurnState};
use crate::conversation::transcript::{
    ConversationId, EffectLevel, EventId, ModelStep, OutboxId, Responder, TurnId, UserId,
};
use crate::store::Conn;
use crate::store::codec::{ms, none_if_unreadable, parse_call_result};
use crate::store::queue::outbox::{self as messages, OutboundKind};
use crate::store::schema::{conversations, inbound_events, outbox, reactions, tool_calls, turns};

/// Maximum number of finished turns that are read for a window. The prompt may shorten the window further.
const TURNS_READ: i64 = 20;
const QUOTABLE_TEXTS: i64 = 20;
/// Limits on the number of earlier conversations of a day, of turns in each, and of changes in those turns that are
/// read.
const CONVERSATIONS_A_DAY: i64 = 10;
const TURNS_A_DAY: i64 = 100;
const CHANGES_READ: i64 = 20;

/// Part of a conversation that the model receives.
#[derive(Debug, Clone, Default)]
pub struct ConversationWindow {
    /// Past turns, oldest first.
    pub turns: Vec<PastTurn>,
    /// First of the turns that were read. The turn may have no content left to show.
    pub oldest: Option<TurnId>,
}

/// Loads the finished turns of a conversation, without canceled turns.
pub fn load_conversation_window(
    conn: &mut Conn,
    conversation: ConversationId,
) -> QueryResult<ConversationWindow> {
    let mut rows = load_window_answers(conn, conversation)?;
    rows.reverse();
    let Some(oldest) = rows.first().map(|(id, _)| *id) else {
        return Ok(ConversationWindow::default());
    };
    let turns = TurnRange::from_turn(conversation, oldest);
    let mut steps = steps::load_steps(conn, turns, LoadedBlocks::Text)?;
    let reaction = reactions::table.filter(reactions::said_in.eq(inbound_events::id.nullable()));
    let texts: Vec<(Option<TurnId>, String)> = inbound_events::table
        .filter(diesel::dsl::not(diesel::dsl::exists(reaction)))
        .filter(inbound_events::turn_id.eq_any(select_turn_ids(turns).nullable()))
        .order((inbound_events::provider_at, inbound_events::id))
        .select((inbound_events::turn_id, inbound_events::body))
        .load(conn)?;
    let turns = rows
        .into_iter()
        .map(|(id, answer)| {
            let texts = texts.iter().filter(|(turn, _)| *turn == Some(id)).map(|(_, body)| body.clone());
            let steps = read_model_steps(steps.remove(&id))?;
            Ok(PastTurn { texts: texts.collect(), steps, answer })
        })
        .collect::<QueryResult<Vec<PastTurn>>>()?
        .into_iter()
        // If only reactions are left, the answer repeated an earlier one.
        .filter(|past| !past.texts.is_empty())
        // A turn whose text is erased is useless to a model, and some model servers refuse empty messages.
        .filter(|past| past.answer.is_some() || past.texts.iter().any(|text| !text.is_empty()))
        .collect();
    Ok(ConversationWindow { turns, oldest: Some(oldest) })
}

/// Reads the steps of a past turn. If they cannot be read, the window contains only the messages and the answer of the
/// turn.
fn read_model_steps(steps: Option<Vec<StepRecord>>) -> QueryResult<Vec<ModelStep>> {
    Ok(none_if_unreadable(steps::model_steps(steps.unwrap_or_default()))?.unwrap_or_default())
}

/// Loads the turns of a window with their answers, newest first.
fn load_window_answers(
    conn: &mut Conn,
    conversation: ConversationId,
) -> QueryResult<Vec<(TurnId, Option<String>)>> {
    turns::table
        .filter(
            turns::conversation_id
                .eq(conversation)
                .and(turns::finished_at.is_not_null())
                .and(turns::state.ne(StreamTurnState::Canceled)),
        )
        .order(turns::id.desc())
        .limit(TURNS_READ)
        .select((turns::id, turns::response_text))
        .load(conn)
}

/// Loads the last finished turn and its whole answer, of which the first page was sent. A message that was only stored
/// has no answer and does not count.
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

/// Loads the whole answer of the last finished turn.
pub fn load_last_answer(conn: &mut Conn, conversation: ConversationId) -> QueryResult<Option<String>> {
    Ok(load_last_turn(conn, conversation)?.and_then(|(_, answer)| answer))
}

/// Loads the source of the last answer, if the answer was a numbered list.
pub fn load_last_list(conn: &mut Conn, conversation: ConversationId) -> QueryResult<LastListSource> {
    let last = load_last_turn(conn, conversation)?;
    let Some((turn, Some(answer))) = last else { return Ok(LastListSource::ModelOrNone) };
    if !answer.contains("1. ") {
        return Ok(LastListSource::ModelOrNone);
    }
    let mut steps = steps::load_steps(conn, TurnRange::one(conversation, turn), LoadedBlocks::Text)?;
    let steps = read_model_steps(steps.remove(&turn))?;
    let by_code = steps.last().is_some_and(|step| step.responder == Responder::Keyword);
    Ok(if by_code { LastListSource::Code } else { LastListSource::ModelOrNone })
}

/// Loads the messages of both sides that a reaction may quote, newest first on each side.
pub fn load_quotable_messages(conn: &mut Conn, user: UserId) -> QueryResult<Vec<RecentMessage>> {
    load_recent_messages(conn, user, QUOTABLE_TEXTS)
}

/// Loads the last message of each side: the last outbound message that the user may answer, and the last inbound one.
pub fn load_last_messages(conn: &mut Conn, user: UserId) -> QueryResult<Vec<RecentMessage>> {
    let mut recent = load_recent_messages(conn, user, 1)?;
    recent.retain(|recent| !recent.asks_nothing);
    Ok(recent)
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = outbox)]
struct SentMessageRow {
    id: OutboxId,
    accepted_at: Option<Timestamp>,
    kind: OutboundKind,
    body: String,
}

/// Loads the last accepted outbound messages, newest first by the time of acceptance, then the last `count` messages of
/// the user.
fn load_recent_messages(conn: &mut Conn, user: UserId, count: i64) -> QueryResult<Vec<RecentMessage>> {
    let mut ours: Vec<SentMessageRow> = outbox::table
        .filter(outbox::user_id.eq(user).and(outbox::accepted_at.is_not_null()))
        .order(outbox::id.desc())
        .limit(QUOTABLE_TEXTS)
        .select(SentMessageRow::as_select())
        .load(conn)?;
    ours.sort_by_key(|sent| std::cmp::Reverse((sent.accepted_at, sent.id)));
    let theirs: Vec<(EventId, String)> = inbound_events::table
        .filter(inbound_events::user_id.eq(user))
        .order(inbound_events::id.desc())
        .limit(count)
        .select((inbound_events::id, inbound_events::body))
        .load(conn)?;
    let ours = ours.into_iter().map(|sent| RecentMessage {
        message: MessageRef::Outbound(sent.id),
        asks_nothing: messages::expects_no_reply(sent.kind, &sent.body),
        body: sent.body,
    });
    let theirs = theirs.into_iter().map(|(id, body)| RecentMessage {
        message: MessageRef::Inbound(id),
        body,
        asks_nothing: false,
    });
    Ok(ours.chain(theirs).collect())
}

/// Loads the changes made for the user since `since` in conversations before this one, as sentences written by the
/// tools, newest first.
pub fn load_earlier_changes(
    conn: &mut Conn,
    user: UserId,
    conversation: ConversationId,
    since: Timestamp,
) -> QueryResult<Vec<String>> {
    let earlier: Vec<ConversationId> = conversations::table
        .filter(conversations::user_id.eq(user).and(conversations::id.lt(conversation)))
        .filter(conversations::last_activity_at.ge(ms(since)))
        .order(conversations::id.desc())
        .limit(CONVERSATIONS_A_DAY)
        .select(conversations::id)
        .load(conn)?;
    let mut done = Vec::new();
    for conversation in earlier {
        // Separate query, because a join would read every call in the table.
        let turns: Vec<TurnId> = turns::table
            .filter(turns::conversation_id.eq(conversation).and(turns::finished_at.ge(ms(since))))
            .order(turns::id.desc())
            .limit(TURNS_A_DAY)
            .select(turns::id)
            .load(conn)?;
        let results: Vec<Option<String>> = tool_calls::table
            .filter(tool_calls::turn_id.eq_any(turns))
            .filter(tool_calls::effect.ne(EffectLevel::Read).and(tool_calls::state.eq(CallPhase::Complete)))
            .order(tool_calls::id.desc())
            .limit(CHANGES_READ)
            .select(tool_calls::response)
            .load(conn)?;
        for text in results.into_iter().flatten() {
            // Current facts are shown separately; outdated facts are not shown.
            let result = none_if_unreadable(parse_call_result(&text))?.filter(|result| !is_fact_call(result));
            done.extend(result.map(|result| result.for_user));
        }
    }
    done.retain(|sentence| !sentence.is_empty());
    Ok(done)
}
