//! Content of the rows that events reference, for clients that cannot load the rows themselves.

use diesel::prelude::*;

use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::routing::route::MessageRef;
use crate::conversation::stream_events::{
    CallPhase, PromptState, ReactionState, StreamEvent, StreamEventKind,
};
use crate::store::codec::parse_call_result;
use crate::store::conversation::reactions::load_reaction_target;
use crate::store::queue::notifications;
use crate::store::schema::{inbound_events, outbox, pending_actions, reactions, tool_calls, turns};
use crate::store::{Conn, QueryResult};

/// Content of the row that an event references.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventDetails {
    /// Body of a message, name of a tool, result of a complete tool call, confirmation prompt, or emoji; `None` if the
    /// row has no text or is erased.
    pub text: Option<String>,
    /// Message that received a reaction.
    pub target: Option<MessageRef>,
}

/// Returns whether the row of an event contains details that the event does not.
pub fn has_details(event: &StreamEvent) -> bool {
    has_text(event) || matches!(event.kind, StreamEventKind::Reaction(..))
}

/// Returns whether the event carries text: the first event of a row, the completion of a tool call, and every event of
/// an inbound message, which may have waited in another conversation.
fn has_text(event: &StreamEvent) -> bool {
    matches!(
        event.kind,
        StreamEventKind::InboundMessage(..)
            | StreamEventKind::OutboundMessage(_, DeliveryStatus::Queued)
            | StreamEventKind::ToolCall(_, CallPhase::Created | CallPhase::Complete)
            | StreamEventKind::Prompt(_, PromptState::Sending)
            | StreamEventKind::Reaction(_, ReactionState::Given)
    )
}

pub fn load_event_details(conn: &mut Conn, event: &StreamEvent) -> QueryResult<EventDetails> {
    let mut details = EventDetails { text: load_event_text(conn, event)?, target: None };
    if let StreamEventKind::Reaction(id, _) = event.kind {
        details.target = load_reaction_target(conn, id)?;
    }
    Ok(details)
}

/// Returns whether the text of an event mentions what somebody has watched, which only the person who asked reads.
fn is_hidden(conn: &mut Conn, event: &StreamEvent) -> QueryResult<bool> {
    let about_viewing: Option<bool> = match event.kind {
        StreamEventKind::OutboundMessage(id, _) => {
            let columns = (outbox::dedupe_key, turns::about_viewing.nullable());
            let message: Option<(String, Option<bool>)> = outbox::table
                .left_join(turns::table)
                .filter(outbox::id.eq(id))
                .select(columns)
                .first(conn)
                .optional()?;
            message.map(|(key, turn)| turn == Some(true) || notifications::is_about_viewing(&key))
        }
        StreamEventKind::ToolCall(call, CallPhase::Complete) => tool_calls::table
            .inner_join(turns::table.on(turns::id.eq(tool_calls::turn_id)))
            .filter(tool_calls::id.eq(call))
            .select(turns::about_viewing)
            .first(conn)
            .optional()?,
        _ => None,
    };
    Ok(about_viewing == Some(true))
}

fn load_event_text(conn: &mut Conn, event: &StreamEvent) -> QueryResult<Option<String>> {
    if !has_text(event) || is_hidden(conn, event)? {
        return Ok(None);
    }
    let text: Option<Option<String>> = match event.kind {
        StreamEventKind::InboundMessage(id, _) => {
            inbound_events::table.find(id).select(inbound_events::body.nullable()).first(conn).optional()?
        }
        StreamEventKind::OutboundMessage(id, _) => {
            outbox::table.find(id).select(outbox::body.nullable()).first(conn).optional()?
        }
        StreamEventKind::ToolCall(call, CallPhase::Complete) => {
            let stored: Option<Option<String>> =
                tool_calls::table.find(call).select(tool_calls::response).first(conn).optional()?;
            stored
                .flatten()
                .map(|stored| parse_call_result(&stored).map(|result| Some(result.for_user)))
                .transpose()?
        }
        StreamEventKind::ToolCall(call, _) => {
            tool_calls::table.find(call).select(tool_calls::tool_name.nullable()).first(conn).optional()?
        }
        StreamEventKind::Prompt(id, _) => pending_actions::table
            .find(id)
            .select(pending_actions::summary.nullable())
            .first(conn)
            .optional()?,
        StreamEventKind::Reaction(id, _) => {
            reactions::table.find(id).select(reactions::emoji).first(conn).optional()?
        }
        StreamEventKind::Turn(_)
        | StreamEventKind::BlockStart(_)
        | StreamEventKind::BlockDelta(..)
        | StreamEventKind::BlockEnd(_)
        | StreamEventKind::StepAbandoned { .. }
        | StreamEventKind::Conversation(_) => None,
    };
    Ok(text.flatten().filter(|text| !text.is_empty()))
}
