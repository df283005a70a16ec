//! What was said before: for the model's window, for MORE, for matching reactions and numbers.

use diesel::prelude::*;

use super::schema::{inbound_events, outbox, turns};
use super::{Conn, steps};
use crate::conversation::prompt::PastTurn;
use crate::conversation::route::LastList;
use crate::conversation::transcript::{Brain, ConversationId, TurnId, UserId};

/// Finished turns that are read for a window; the prompt cuts further.
const TURNS_READ: i64 = 20;
const RECENT_TEXTS: i64 = 20;

/// The finished turns of a conversation, oldest first. Turns that were taken back are not part of it.
pub fn past_turns(conn: &mut Conn, conversation: ConversationId) -> QueryResult<Vec<PastTurn>> {
    let mut rows: Vec<(i64, Option<String>)> = turns::table
        .filter(
            turns::conversation_id
                .eq(conversation.0)
                .and(turns::finished_at.is_not_null())
                .and(turns::state.ne("CANCELED")),
        )
        .order(turns::id.desc())
        .limit(TURNS_READ)
        .select((turns::id, turns::response_text))
        .load(conn)?;
    rows.reverse();
    let Some(oldest) = rows.first().map(|(id, _)| TurnId(*id)) else { return Ok(Vec::new()) };
    let mut steps = steps::of_turns(conn, conversation, oldest)?;
    let texts: Vec<(Option<i64>, String)> = inbound_events::table
        .filter(inbound_events::turn_id.eq_any(super::turns::ids_from(conversation, oldest).nullable()))
        .order((inbound_events::provider_at, inbound_events::id))
        .select((inbound_events::turn_id, inbound_events::body))
        .load(conn)?;
    let past: Vec<PastTurn> = rows
        .into_iter()
        .map(|(id, answer)| PastTurn {
            texts: texts.iter().filter(|(turn, _)| *turn == Some(id)).map(|(_, body)| body.clone()).collect(),
            steps: steps.remove(&TurnId(id)).unwrap_or_default(),
            answer,
        })
        .collect();
    // A turn whose words are erased tells a model nothing, and some servers refuse empty messages.
    let is_told = |turn: &PastTurn| turn.answer.is_some() || turn.texts.iter().any(|text| !text.is_empty());
    Ok(past.into_iter().filter(is_told).collect())
}

/// The whole answer of the last finished turn, of which the first page was sent.
pub fn last_answer(conn: &mut Conn, conversation: ConversationId) -> QueryResult<Option<String>> {
    let answer: Option<Option<String>> = turns::table
        .filter(turns::conversation_id.eq(conversation.0).and(turns::finished_at.is_not_null()))
        .order(turns::id.desc())
        .select(turns::response_text)
        .first(conn)
        .optional()?;
    Ok(answer.flatten())
}

/// Who wrote the last answer, where it was a numbered list.
pub fn last_list(conn: &mut Conn, conversation: ConversationId) -> QueryResult<LastList> {
    let last: Option<(i64, Option<String>)> = turns::table
        .filter(turns::conversation_id.eq(conversation.0).and(turns::finished_at.is_not_null()))
        .order(turns::id.desc())
        .select((turns::id, turns::response_text))
        .first(conn)
        .optional()?;
    let Some((turn, Some(answer))) = last else { return Ok(LastList::ModelOrNone) };
    if !answer.contains("1. ") {
        return Ok(LastList::ModelOrNone);
    }
    let steps = steps::of_turns(conn, conversation, TurnId(turn))?.remove(&TurnId(turn)).unwrap_or_default();
    let by_code = steps.last().is_some_and(|step| step.brain == Brain::Keyword);
    Ok(if by_code { LastList::Code } else { LastList::ModelOrNone })
}

/// Texts of both sides that a reaction may quote, newest first.
pub fn recent_texts(conn: &mut Conn, user: UserId) -> QueryResult<Vec<String>> {
    let mut texts: Vec<String> = outbox::table
        .filter(outbox::user_id.eq(user.0))
        .order(outbox::id.desc())
        .limit(RECENT_TEXTS)
        .select(outbox::body)
        .load(conn)?;
    texts.extend(super::ledger::bodies_up_to(conn, user, None, RECENT_TEXTS)?);
    Ok(texts)
}
