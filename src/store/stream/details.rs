//! What stands in the rows that events name, for whoever cannot look them up.

use diesel::prelude::*;

use crate::conversation::route::Said;
use crate::conversation::stream::{CallPhase, Delivery, Event, QuestionState, ReactionState, What};
use crate::store::codec::result;
use crate::store::schema::{inbound_events, outbox, pending_actions, reactions, tool_calls};
use crate::store::{Conn, QueryResult, reactions as reaction_rows};

/// What the row of an event holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// A text's body, a tool's name and later what it says for people, a question, an emoji. `None` where there is
    /// nothing, or nothing any more.
    pub words: Option<String>,
    /// The text that a reaction is on.
    pub on: Option<Said>,
}

/// Whether there is something in the row that its event does not say.
pub fn has(event: &Event) -> bool {
    has_words(event) || matches!(event.what, What::Reaction(..))
}

/// The first time that a row is told of; each time for a text of theirs, which may have waited in another conversation.
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
