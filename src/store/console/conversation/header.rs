//! Header and footer of a conversation's page: its user, its state, and the items that wait for an answer.

use diesel::prelude::*;
use jiff::Timestamp;

use super::message_entries::{self, InboundEntry};
use crate::conversation::deletion::deletion_messages;
use crate::conversation::transcript::{CallRow, ConversationId, TurnId, UserId};
use crate::store::codec::{timestamp_from_ms, unreadable_column};
use crate::store::confirmation::pending_action;
use crate::store::console::user_ref::{self, UserRef};
use crate::store::conversation::conversations::EndReason;
use crate::store::schema::{conversations, llm_steps, outbox, pending_actions, turns};
use crate::store::{Conn, QueryResult};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationHeader {
    pub id: ConversationId,
    pub name: String,
    pub user: UserId,
    pub user_ref: UserRef,
    pub started_at: Timestamp,
    pub end: Option<(Timestamp, EndReason)>,
}

/// Part of the page below the last message.
#[derive(Debug, Clone)]
pub struct ConversationFooter {
    pub pending_action: Option<PendingActionView>,
    /// Messages that no turn has processed yet.
    pub waiting: Vec<InboundEntry>,
    /// Running turn.
    pub live_turn: Option<TurnId>,
    /// Input tokens of the last model step.
    pub last_prompt: Option<i64>,
}

/// Deletion that waits for confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingActionView {
    pub id: i64,
    /// Exact text of the confirmation prompt.
    pub summary: String,
    pub code: Option<String>,
    /// Names of the items that would be deleted, one name per item.
    pub items: Vec<String>,
    pub status: PromptStatus,
}

/// Status of a confirmation prompt: an answer is accepted only while the prompt is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptStatus {
    /// The confirmation prompt has not been sent yet.
    InTransit,
    OpenUntil(Timestamp),
}

/// Loads the header of a conversation; returns an error if the conversation does not exist.
pub fn load_conversation_header(conn: &mut Conn, id: ConversationId) -> QueryResult<ConversationHeader> {
    type HeaderRow = (String, i64, i64, Option<i64>, Option<String>);
    let (name, user, started_at, ended_at, reason): HeaderRow = conversations::table
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
        Some((at, reason)) => Some((timestamp_from_ms(at)?, EndReason::parse_word(&reason)?)),
        None => None,
    };
    let user = UserId(user);
    let with = user_ref::load_user_ref(conn, user)?;
    Ok(ConversationHeader { id, name, user, user_ref: with, started_at: timestamp_from_ms(started_at)?, end })
}

pub fn load_conversation_footer(
    conn: &mut Conn,
    head: &ConversationHeader,
) -> QueryResult<ConversationFooter> {
    let live: Option<i64> = turns::table
        .filter(turns::user_id.eq(head.user.0).and(turns::finished_at.is_null()))
        .filter(turns::conversation_id.eq(head.id.0))
        .select(turns::id)
        .first(conn)
        .optional()?;
    let waiting = match head.end {
        None => message_entries::load_waiting_entries(conn, head.user)?,
        Some(_) => Vec::new(),
    };
    Ok(ConversationFooter {
        pending_action: load_pending_action_view(conn, head.id)?,
        waiting,
        live_turn: live.map(TurnId),
        last_prompt: load_last_prompt_tokens(conn, head.id)?,
    })
}

fn load_pending_action_view(
    conn: &mut Conn,
    conversation: ConversationId,
) -> QueryResult<Option<PendingActionView>> {
    type PendingActionViewRow = (i64, String, Option<String>, i64, Option<i64>, Option<i64>);
    let row: Option<PendingActionViewRow> = pending_actions::table
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
    // A repeated prompt does not change the expiry, and only an answer to the repeated prompt is accepted.
    let standing = match accepted_at.and(expires_at) {
        Some(until) => PromptStatus::OpenUntil(timestamp_from_ms(until)?),
        None => PromptStatus::InTransit,
    };
    let items = pending_action::load_deletion_items(conn, CallRow(call))?
        .iter()
        .map(|item| deletion_messages::format_target_name(&item.target))
        .collect();
    Ok(Some(PendingActionView { id, summary: words, code, items, status: standing }))
}

/// Loads the input tokens of the newest turn that called a model.
fn load_last_prompt_tokens(conn: &mut Conn, conversation: ConversationId) -> QueryResult<Option<i64>> {
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
    fn parse_word(word: &str) -> QueryResult<Self> {
        match word {
            "idle" => Ok(Self::Idle),
            "cleared" => Ok(Self::Cleared),
            "blocked" => Ok(Self::Blocked),
            "admin" => Ok(Self::Operator),
            _ => Err(unreadable_column("end of a conversation")),
        }
    }
}
