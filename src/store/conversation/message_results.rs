//! Result of one inbound message: the full answer, the actions in the conversation, and its lifecycle.

use diesel::prelude::*;
use jiff::Timestamp;

use super::conversations;
use super::record::steps::ToolCallRecord;
use crate::conversation::channel::Channel;
use crate::conversation::grammar::triage::TriageDecision;
use crate::conversation::lifecycle::ConversationLifecycle;
use crate::conversation::stream_events::{CallPhase, StreamTurnState};
use crate::conversation::transcript::{CallRow, EventId, TurnId, UserId};
use crate::conversation::turn::model_action::{self, Emoji};
use crate::store::Conn;
use crate::store::column_types::StoredEnum;
use crate::store::conversation::record::turns::{DISPLAYED_STATE, HIDDEN_ANSWER};
use crate::store::queue::inbound_messages::InboundOutcome;
use crate::store::schema::{inbound_events, outbox, tool_calls, turns};

/// Stored inbound message, found by the id from its channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    pub event: EventId,
    pub user: UserId,
    pub body: String,
    pub triage: TriageDecision,
    pub received_at: Timestamp,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = inbound_events)]
struct StoredMessageRow {
    id: EventId,
    user_id: UserId,
    body: String,
    wants_answer: bool,
    received_at: Timestamp,
}

pub fn find_stored_message(
    conn: &mut Conn,
    channel: Channel,
    external_id: &str,
) -> QueryResult<Option<StoredMessage>> {
    let has_external_id =
        inbound_events::channel.eq(channel).and(inbound_events::external_id.eq(external_id));
    let row: Option<StoredMessageRow> = inbound_events::table
        .filter(has_external_id)
        .select(StoredMessageRow::as_select())
        .first(conn)
        .optional()?;
    Ok(row.map(|row| StoredMessage {
        event: row.id,
        user: row.user_id,
        body: row.body,
        triage: if row.wants_answer { TriageDecision::Answer } else { TriageDecision::NoAnswer },
        received_at: row.received_at,
    }))
}

/// Current result of a message, which changes while the message is in progress.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageResult {
    pub progress: MessageProgress,
    /// Turn that processed the message, if there is one, and the state of the turn.
    pub turn: Option<(TurnId, &'static str)>,
    pub content: String,
    pub actions: Vec<MessageAction>,
    pub lifecycle: Option<ConversationLifecycle>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageProgress {
    /// The result is final.
    Finished,
    InProgress,
}

/// Action in the conversation other than an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageAction {
    React(Emoji),
    SendPoster { name: String, url: String },
}

/// Loads the result of a message; `None` if the message does not exist.
pub fn load_message_result(conn: &mut Conn, event: EventId) -> QueryResult<Option<MessageResult>> {
    let row: Option<(Option<InboundOutcome>, Option<TurnId>, UserId)> = inbound_events::table
        .find(event)
        .select((inbound_events::outcome, inbound_events::turn_id, inbound_events::user_id))
        .first(conn)
        .optional()?;
    let Some((outcome, turn, user)) = row else { return Ok(None) };
    let progress = if outcome.is_some() { MessageProgress::Finished } else { MessageProgress::InProgress };
    let Some(turn) = turn else {
        let content = load_code_reply(conn, event)?;
        return Ok(Some(MessageResult {
            progress,
            turn: None,
            content,
            actions: Vec::new(),
            lifecycle: None,
        }));
    };
    let columns = (DISPLAYED_STATE, turns::response_text, turns::about_viewing);
    let (state, answer, about_viewing): (StreamTurnState, Option<String>, bool) =
        turns::table.find(turn).select(columns).first(conn)?;
    let answer = answer.map(|answer| if about_viewing { HIDDEN_ANSWER.to_owned() } else { answer });
    Ok(Some(MessageResult {
        progress,
        turn: Some((turn, state.as_text())),
        content: answer.unwrap_or_default(),
        actions: load_message_actions(conn, turn, user)?,
        lifecycle: Some(conversations::load_lifecycle(conn, turn)?),
    }))
}

/// Loads the reply by code to a message without a turn.
fn load_code_reply(conn: &mut Conn, event: EventId) -> QueryResult<String> {
    let answer: Option<String> = outbox::table
        .filter(outbox::dedupe_key.eq(format!("event:{event}:reply")))
        .select(outbox::body)
        .first(conn)
        .optional()?;
    Ok(answer.unwrap_or_default())
}

fn load_message_actions(conn: &mut Conn, turn: TurnId, user: UserId) -> QueryResult<Vec<MessageAction>> {
    let calls: Vec<ToolCallRecord> = tool_calls::table
        .filter(tool_calls::turn_id.eq(turn).and(tool_calls::state.eq(CallPhase::Complete)))
        .order((tool_calls::step, tool_calls::ord))
        .select(ToolCallRecord::as_select())
        .load(conn)?;
    let mut actions = Vec::new();
    for record in calls {
        let call = record.into_tool_call()?;
        if let Some(emoji) = model_action::reaction_from_call(&call) {
            actions.push(MessageAction::React(emoji));
        } else if call.name == model_action::SEND_POSTER {
            actions.extend(load_queued_poster(conn, call.row, user)?);
        }
    }
    Ok(actions)
}

/// Loads the picture that a call queued, if any.
fn load_queued_poster(conn: &mut Conn, call: CallRow, user: UserId) -> QueryResult<Option<MessageAction>> {
    let poster: Option<(String, Option<String>)> = outbox::table
        .filter(outbox::dedupe_key.eq(format!("poster:{call}:user:{user}")))
        .select((outbox::body, outbox::media_url))
        .first(conn)
        .optional()?;
    Ok(poster.and_then(|(name, url)| Some(MessageAction::SendPoster { name, url: url? })))
}
