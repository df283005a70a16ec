//! Result of one message: the whole answer, the actions in the conversation, and the state of that conversation.

use diesel::prelude::*;
use jiff::Timestamp;

use super::codec::{channel_word, time};
use super::schema::{inbound_events, outbox, tool_calls, turns};
use super::steps::CallRecord;
use super::{Conn, conversations};
use crate::conversation::action::{self, Emoji};
use crate::conversation::lifecycle::Lifecycle;
use crate::conversation::transcript::{CallRow, ChannelKind, EventId, TurnId, UserId};
use crate::conversation::triage::Wants;

/// A message, identified by the id that its source gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub event: EventId,
    pub user: UserId,
    pub body: String,
    pub wants: Wants,
    pub received_at: Timestamp,
}

pub fn known(conn: &mut Conn, channel: ChannelKind, external_id: &str) -> QueryResult<Option<Known>> {
    let same =
        inbound_events::channel.eq(channel_word(channel)).and(inbound_events::external_id.eq(external_id));
    let row: Option<(i64, i64, String, i64, i64)> = inbound_events::table
        .filter(same)
        .select((
            inbound_events::id,
            inbound_events::user_id,
            inbound_events::body,
            inbound_events::wants_answer,
            inbound_events::received_at,
        ))
        .first(conn)
        .optional()?;
    let Some((event, user, body, wants, received_at)) = row else { return Ok(None) };
    Ok(Some(Known {
        event: EventId(event),
        user: UserId(user),
        body,
        wants: if wants == 0 { Wants::NoAnswer } else { Wants::AnAnswer },
        received_at: time(received_at)?,
    }))
}

/// Result of a message so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub progress: Progress,
    /// The turn that processed the message, if there is one, and its state.
    pub turn: Option<(TurnId, String)>,
    pub content: String,
    pub actions: Vec<Did>,
    pub lifecycle: Option<Lifecycle>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The result is final.
    Over,
    UnderWay,
}

/// An action in the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Did {
    React(Emoji),
    SendPoster { name: String, url: String },
}

/// Loads the result of a message; `None` if the message does not exist.
pub fn of(conn: &mut Conn, event: EventId) -> QueryResult<Option<Answer>> {
    let row: Option<(Option<String>, Option<i64>, i64)> = inbound_events::table
        .find(event.0)
        .select((inbound_events::outcome, inbound_events::turn_id, inbound_events::user_id))
        .first(conn)
        .optional()?;
    let Some((outcome, turn, user)) = row else { return Ok(None) };
    let progress = if outcome.is_some() { Progress::Over } else { Progress::UnderWay };
    let Some(turn) = turn.map(TurnId) else {
        let content = without_turn(conn, event)?;
        return Ok(Some(Answer { progress, turn: None, content, actions: Vec::new(), lifecycle: None }));
    };
    let (state, answer): (String, Option<String>) =
        turns::table.find(turn.0).select((turns::state, turns::response_text)).first(conn)?;
    Ok(Some(Answer {
        progress,
        turn: Some((turn, state)),
        content: answer.unwrap_or_default(),
        actions: actions(conn, turn, UserId(user))?,
        lifecycle: Some(conversations::lifecycle(conn, turn)?),
    }))
}

/// Loads the answer to a message that code answered without a turn.
fn without_turn(conn: &mut Conn, event: EventId) -> QueryResult<String> {
    let answer: Option<String> = outbox::table
        .filter(outbox::dedupe_key.eq(format!("event:{event}:reply")))
        .select(outbox::body)
        .first(conn)
        .optional()?;
    Ok(answer.unwrap_or_default())
}

fn actions(conn: &mut Conn, turn: TurnId, user: UserId) -> QueryResult<Vec<Did>> {
    let calls: Vec<CallRecord> = tool_calls::table
        .filter(tool_calls::turn_id.eq(turn.0).and(tool_calls::state.eq("complete")))
        .order((tool_calls::step, tool_calls::ord))
        .select(CallRecord::as_select())
        .load(conn)?;
    let mut done = Vec::new();
    for record in calls {
        let call = record.read()?;
        if let Some(emoji) = action::reaction_of(&call) {
            done.push(Did::React(emoji));
        } else if call.name == action::SEND_POSTER {
            done.extend(poster(conn, call.row, user)?);
        }
    }
    Ok(done)
}

/// Loads the picture that a call has queued.
fn poster(conn: &mut Conn, call: CallRow, user: UserId) -> QueryResult<Option<Did>> {
    let sent: Option<(String, Option<String>)> = outbox::table
        .filter(outbox::dedupe_key.eq(format!("poster:{call}:user:{user}")))
        .select((outbox::body, outbox::media_url))
        .first(conn)
        .optional()?;
    Ok(sent.and_then(|(name, url)| Some(Did::SendPoster { name, url: url? })))
}
