//! Content of the rows that events name, for clients that cannot look them up.

use diesel::prelude::*;

use crate::conversation::route::Said;
use crate::conversation::stream::{CallPhase, Delivery, Event, QuestionState, ReactionState, What};
use crate::store::codec::result;
use crate::store::schema::{inbound_events, outbox, pending_actions, reactions, tool_calls};
use crate::store::{Conn, QueryResult, reactions as reaction_rows};

/// Content of the row of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// Body of a message, name of a tool and later its result for people, a confirmation prompt, or an emoji. `None` if
    /// the row has no text, or has been erased.
    pub words: Option<String>,
    /// Message that received a reaction.
    pub on: Option<Said>,
}

/// Returns whether the row contains details that its event does not.
pub fn has(event: &Event) -> bool {
    has_words(event) || matches!(event.what, What::Reaction(..))
}

/// Returns whether the event carries text: the first event of a row, the completion of a tool call, and every event of
/// an inbound message, which may have waited in another conversation.
fn has_words(event: &Event) -> bool {
    matches!(
        event.what,
        What::TextIn(..)
            | What::TextOut(_, Delivery::Queued)
            | What::ToolCall(_, CallPhase::Created | CallPhase::Complete)
            | What::Question(_, QuestionState::Asked)
            | What::Reaction(_, ReactionState::Given)
    )
}

pub fn of(conn: &mut Conn, event: &Event) -> QueryResult<Details> {
    let on = match event.what {
        What::Reaction(id, _) => reaction_rows::text_of(conn, id)?,
        What::Turn(_)
        | What::BlockStart(_)
        | What::BlockDelta(..)
        | What::BlockEnd(_)
        | What::StepAbandoned { .. }
        | What::ToolCall(..)
        | What::TextIn(..)
        | What::TextOut(..)
        | What::Question(..)
        | What::Conversation(_) => None,
    };
    Ok(Details { words: words(conn, event)?, on })
}

fn words(conn: &mut Conn, event: &Event) -> QueryResult<Option<String>> {
    if !has_words(event) {
        return Ok(None);
    }
    let words: Option<Option<String>> = match event.what {
        What::TextIn(id, _) => {
            inbound_events::table.find(id.0).select(inbound_events::body.nullable()).first(conn).optional()?
        }
        What::TextOut(id, _) => {
            outbox::table.find(id.0).select(outbox::body.nullable()).first(conn).optional()?
        }
        What::ToolCall(call, CallPhase::Complete) => {
            let stored: Option<Option<String>> =
                tool_calls::table.find(call.0).select(tool_calls::response).first(conn).optional()?;
            stored.flatten().map(|stored| result(&stored).map(|result| Some(result.for_user))).transpose()?
        }
        What::ToolCall(call, _) => {
            tool_calls::table.find(call.0).select(tool_calls::tool_name.nullable()).first(conn).optional()?
        }
        What::Question(id, _) => pending_actions::table
            .find(id)
            .select(pending_actions::summary.nullable())
            .first(conn)
            .optional()?,
        What::Reaction(id, _) => reactions::table.find(id).select(reactions::emoji).first(conn).optional()?,
        What::Turn(_)
        | What::BlockStart(_)
        | What::BlockDelta(..)
        | What::BlockEnd(_)
        | What::StepAbandoned { .. }
        | What::Conversation(_) => None,
    };
    Ok(words.flatten().filter(|words| !words.is_empty()))
}
