//! Header and footer of a conversation's page: its user, its state, and the items that wait for an answer.

use diesel::prelude::*;
use jiff::Timestamp;

use super::texts::{self, Received};
use crate::conversation::deletion;
use crate::conversation::transcript::{CallRow, ConversationId, TurnId, UserId};
use crate::store::codec::{time, unreadable};
use crate::store::console::who::{self, Who};
use crate::store::conversations::EndReason;
use crate::store::schema::{conversations, llm_steps, outbox, pending_actions, turns};
use crate::store::{Conn, QueryResult, pending};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub id: ConversationId,
    pub name: String,
    pub user: UserId,
    pub with: Who,
    pub started_at: Timestamp,
    pub end: Option<(Timestamp, EndReason)>,
}

/// Part of the page below the last message.
#[derive(Debug, Clone)]
pub struct Tail {
    pub question: Option<Question>,
    /// Messages that no turn has processed yet.
    pub waiting: Vec<Received>,
    /// Running turn.
    pub live: Option<TurnId>,
    /// Input tokens of the last model step.
    pub last_prompt: Option<i64>,
}

/// Deletion that waits for confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub id: i64,
    /// Exact text of the confirmation prompt.
    pub words: String,
    pub code: Option<String>,
    /// Names of the items that would be deleted, one name per item.
    pub items: Vec<String>,
    pub standing: Standing,
}

/// Status of a confirmation prompt: an answer is accepted only while the prompt is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The confirmation prompt has not been sent yet.
    OnItsWay,
    OpenUntil(Timestamp),
}

/// Loads the header of a conversation; returns an error if the conversation does not exist.
pub fn read(conn: &mut Conn, id: ConversationId) -> QueryResult<Head> {
    type Row = (String, i64, i64, Option<i64>, Option<String>);
    let (name, user, started_at, ended_at, reason): Row = conversations::table
        .find(id.0)
        .select((
            conversations::name,
            conversations::user_id,
            conversations::started_at,
            conversations::ended_at,
            conversations::end_reason,
        ))
        .first(conn)?;
    let end = match ended_at.zip(reason) {
        Some((at, reason)) => Some((time(at)?, EndReason::read(&reason)?)),
        None => None,
    };
    let user = UserId(user);
    let with = who::by_id(conn, user)?;
    Ok(Head { id, name, user, with, started_at: time(started_at)?, end })
}

pub fn tail(conn: &mut Conn, head: &Head) -> QueryResult<Tail> {
    let live: Option<i64> = turns::table
        .filter(turns::user_id.eq(head.user.0).and(turns::finished_at.is_null()))
        .filter(turns::conversation_id.eq(head.id.0))
        .select(turns::id)
        .first(conn)
        .optional()?;
    let waiting = match head.end {
        None => texts::waiting(conn, head.user)?,
        Some(_) => Vec::new(),
    };
    Ok(Tail {
        question: question(conn, head.id)?,
        waiting,
        live: live.map(TurnId),
        last_prompt: last_prompt(conn, head.id)?,
    })
}

fn question(conn: &mut Conn, conversation: ConversationId) -> QueryResult<Option<Question>> {
    type Row = (i64, String, Option<String>, i64, Option<i64>, Option<i64>);
    let row: Option<Row> = pending_actions::table
        .inner_join(outbox::table.on(outbox::id.eq(pending_actions::prompt_outbox_id)))
        .filter(pending_actions::conversation_id.eq(conversation.0))
        .select((
            pending_actions::id,
            pending_actions::summary,
            pending_actions::code,
            pending_actions::tool_call_id,
            pending_actions::expires_at,
            outbox::accepted_at,
        ))
        .first(conn)
        .optional()?;
    let Some((id, words, code, call, expires_at, accepted_at)) = row else { return Ok(None) };
    // A repeated prompt keeps the expiry, and only an answer to the repeated prompt is accepted.
    let standing = match accepted_at.and(expires_at) {
        Some(until) => Standing::OpenUntil(time(until)?),
        None => Standing::OnItsWay,
    };
    let items = pending::items(conn, CallRow(call))?.iter().map(|item| deletion::name(&item.item)).collect();
    Ok(Some(Question { id, words, code, items, standing }))
}

/// Loads the input tokens of the newest turn that called a model.
fn last_prompt(conn: &mut Conn, conversation: ConversationId) -> QueryResult<Option<i64>> {
    let newest: Vec<i64> = turns::table
        .filter(turns::conversation_id.eq(conversation.0))
        .order(turns::id.desc())
        .limit(10)
        .select(turns::id)
        .load(conn)?;
    for turn in newest {
        let tokens: Option<Option<i64>> = llm_steps::table
            .filter(llm_steps::turn_id.eq(turn).and(llm_steps::tokens_in.is_not_null()))
            .order((llm_steps::step.desc(), llm_steps::attempt.desc()))
            .select(llm_steps::tokens_in)
            .first(conn)
            .optional()?;
        if let Some(tokens) = tokens.flatten() {
            return Ok(Some(tokens));
        }
    }
    Ok(None)
}

impl EndReason {
    fn read(word: &str) -> QueryResult<Self> {
        match word {
            "idle" => Ok(Self::Idle),
            "cleared" => Ok(Self::Cleared),
            "blocked" => Ok(Self::Blocked),
            "admin" => Ok(Self::Operator),
            _ => Err(unreadable("end of a conversation")),
        }
    }
}
