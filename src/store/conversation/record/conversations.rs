//! Record of a conversation itself, and of its pending action.

use diesel::prelude::*;
use jiff::Timestamp;
use serde::Serialize;

use crate::conversation::transcript::{CallRow, ConversationId, UserId};
use crate::store::conversation::conversations::EndReason;
use crate::store::schema::{conversations, outbox, pending_actions};
use crate::store::{Conn, QueryResult};

/// Conversation as stored, without its content.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Serialize)]
#[diesel(table_name = conversations)]
pub struct ConversationRecord {
    #[serde(skip)]
    pub id: ConversationId,
    #[serde(skip)]
    #[diesel(column_name = user_id)]
    pub user: UserId,
    /// Key of the agent that has it on behalf of the user.
    #[serde(skip)]
    #[diesel(column_name = agent_key_id)]
    pub agent: Option<i64>,
    pub name: String,
    pub started_at: Timestamp,
    pub last_activity_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub end_reason: Option<EndReason>,
}

impl ConversationRecord {
    /// Returns the user whose waiting messages belong to the conversation.
    pub fn waiting_user(&self) -> Option<UserId> {
        (self.ended_at.is_none() && self.agent.is_none()).then_some(self.user)
    }
}

/// Loads one conversation; `None` if it does not exist.
pub fn load_conversation(conn: &mut Conn, id: ConversationId) -> QueryResult<Option<ConversationRecord>> {
    conversations::table.find(id).select(ConversationRecord::as_select()).first(conn).optional()
}

pub fn conversation_exists(conn: &mut Conn, id: ConversationId) -> QueryResult<bool> {
    let row: Option<i64> = conversations::table.find(id).select(conversations::id).first(conn).optional()?;
    Ok(row.is_some())
}

/// Deletion that waits for confirmation.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Serialize)]
#[diesel(table_name = pending_actions)]
pub struct PendingActionRecord {
    #[serde(skip)]
    pub id: i64,
    #[serde(skip)]
    #[diesel(column_name = tool_call_id)]
    pub call: CallRow,
    #[serde(skip)]
    pub code: Option<String>,
    /// Exact text of the confirmation prompt.
    #[serde(rename = "question")]
    #[diesel(column_name = summary)]
    pub prompt: String,
    #[serde(rename = "asked_at")]
    created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    /// Time at which the channel accepted the last prompt. Only an answer to that prompt is accepted.
    #[serde(skip)]
    #[diesel(select_expression = outbox::accepted_at)]
    accepted_at: Option<Timestamp>,
}

impl PendingActionRecord {
    /// Returns the time up to which an answer is accepted; `None` while the prompt is being sent. A repeated prompt
    /// does not change the expiry.
    pub fn open_until(&self) -> Option<Timestamp> {
        self.accepted_at.and(self.expires_at)
    }
}

#[diesel::dsl::auto_type(no_type_alias)]
fn actions_with_prompts() -> _ {
    pending_actions::table.inner_join(outbox::table.on(outbox::id.eq(pending_actions::prompt_outbox_id)))
}

pub(in crate::store) fn load_pending_action(
    conn: &mut Conn,
    conversation: ConversationId,
) -> QueryResult<Option<PendingActionRecord>> {
    actions_with_prompts()
        .filter(pending_actions::conversation_id.eq(conversation))
        .select(PendingActionRecord::as_select())
        .first(conn)
        .optional()
}

pub(in crate::store) fn load_user_pending_action(
    conn: &mut Conn,
    user: UserId,
) -> QueryResult<Option<PendingActionRecord>> {
    actions_with_prompts()
        .filter(pending_actions::user_id.eq(user))
        .select(PendingActionRecord::as_select())
        .first(conn)
        .optional()
}
