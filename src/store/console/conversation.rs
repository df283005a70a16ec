//! Page of a conversation: its record, and the details that only the console shows.

use std::collections::HashMap;

use diesel::prelude::*;

use super::user_ref::{self, UserRef};
use crate::conversation::deletion::deletion_messages;
use crate::conversation::routing::message_origin::MessageOrigin;
use crate::conversation::stream_events::EventSeq;
use crate::conversation::transcript::ConversationId;
use crate::store::confirmation::pending_action;
use crate::store::conversation::record::conversations::{
    ConversationRecord, PendingActionRecord, load_conversation, load_pending_action,
};
use crate::store::conversation::record::pages::{self, ChangedEntries, PAGE_TURNS, PageContent};
use crate::store::schema::{llm_steps, turns};
use crate::store::stream::event_log::LogPosition;
use crate::store::{Conn, QueryResult, console_access};

/// Number of newest turns that are searched for the last model step.
const SEARCHED_TURN_LIMIT: i64 = 10;

/// Page of a conversation, and the event sequence number to which it corresponds.
#[derive(Debug, Clone)]
pub struct ConversationView {
    pub header: ConversationHeader,
    pub entries: ConversationEntries,
    pub footer: ConversationFooter,
    /// Cursor of the older turns, if there are any.
    pub older: Option<i64>,
    pub seq: EventSeq,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationHeader {
    pub conversation: ConversationRecord,
    pub user: UserRef,
}

/// Messages and turns of a page, with details from other tables.
#[derive(Debug, Clone)]
pub struct ConversationEntries {
    pub content: PageContent,
    /// Names of the API keys with which messages were sent, by their ids.
    pub key_names: HashMap<i64, String>,
}

/// Part of the page below the last message.
#[derive(Debug, Clone)]
pub struct ConversationFooter {
    pub pending_action: Option<PendingActionView>,
    /// Input tokens of the last model step.
    pub last_input_tokens: Option<i64>,
}

/// Deletion that waits for confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingActionView {
    pub record: PendingActionRecord,
    /// Names of the items that would be deleted, one name per item.
    pub items: Vec<String>,
}

/// Changed parts of a page.
#[derive(Debug, Clone)]
pub struct ConversationUpdate {
    pub header: ConversationHeader,
    pub entries: ConversationEntries,
    /// `None` if only entries changed.
    pub footer: Option<ConversationFooter>,
}

/// Loads the newest turns below `before` and the messages between them; `None` if the conversation does not exist. The
/// view corresponds to `position`.
pub fn load_conversation_view(
    conn: &mut Conn,
    id: ConversationId,
    before: i64,
    position: &LogPosition,
) -> QueryResult<Option<ConversationView>> {
    let page = pages::load_page(conn, id, (before, PAGE_TURNS), &position.streamed)?;
    let Some(page) = page else { return Ok(None) };
    let oldest = page.content.turns.first().map(|turn| turn.row.id.0);
    let mut content = page.content;
    // Of messages with the same time, the page shows the newest first.
    content.unassigned.notifications.reverse();
    content.unassigned.unanswered.reverse();
    Ok(Some(ConversationView {
        header: load_header(conn, page.conversation)?,
        entries: ConversationEntries::from_content(conn, content)?,
        footer: load_footer(conn, id, page.pending_action)?,
        older: oldest.filter(|_| page.truncated),
        seq: position.cursor,
    }))
}

/// Loads the changed entries, and the footer with the waiting messages if it changed too.
pub fn load_conversation_update(
    conn: &mut Conn,
    id: ConversationId,
    changed: ChangedEntries,
    position: &LogPosition,
    has_footer_changed: bool,
) -> QueryResult<ConversationUpdate> {
    let conversation = load_conversation(conn, id)?.ok_or(diesel::NotFound)?;
    let waiting_user = conversation.waiting_user().filter(|_| has_footer_changed);
    let content = PageContent::load_changed(conn, id, changed, &position.streamed, waiting_user)?;
    let footer = match has_footer_changed {
        true => {
            let pending_action = load_pending_action(conn, id)?;
            Some(load_footer(conn, id, pending_action)?)
        }
        false => None,
    };
    Ok(ConversationUpdate {
        header: load_header(conn, conversation)?,
        entries: ConversationEntries::from_content(conn, content)?,
        footer,
    })
}

fn load_header(conn: &mut Conn, conversation: ConversationRecord) -> QueryResult<ConversationHeader> {
    let user = user_ref::load_user_ref(conn, conversation.user)?;
    Ok(ConversationHeader { conversation, user })
}

impl ConversationEntries {
    fn from_content(conn: &mut Conn, content: PageContent) -> QueryResult<Self> {
        let mut key_names = HashMap::new();
        for message in content.inbound() {
            if let MessageOrigin::ApiKey(key) = message.origin()
                && !key_names.contains_key(&key)
            {
                key_names.insert(key, console_access::load_api_key_name(conn, key)?);
            }
        }
        Ok(Self { content, key_names })
    }
}

fn load_footer(
    conn: &mut Conn,
    id: ConversationId,
    pending_action: Option<PendingActionRecord>,
) -> QueryResult<ConversationFooter> {
    let pending_action = match pending_action {
        Some(record) => {
            let items = pending_action::load_deletion_items(conn, record.call)?;
            let items =
                items.iter().map(|item| deletion_messages::format_target_name(&item.target)).collect();
            Some(PendingActionView { record, items })
        }
        None => None,
    };
    Ok(ConversationFooter { pending_action, last_input_tokens: load_last_input_tokens(conn, id)? })
}

/// Loads the input tokens of the newest turn that called a model.
fn load_last_input_tokens(conn: &mut Conn, conversation: ConversationId) -> QueryResult<Option<i64>> {
    let newest_turns = turns::table
        .filter(turns::conversation_id.eq(conversation))
        .order(turns::id.desc())
        .limit(SEARCHED_TURN_LIMIT)
        .select(turns::id);
    llm_steps::table
        .filter(llm_steps::turn_id.eq_any(newest_turns).and(llm_steps::tokens_in.is_not_null()))
        .order((llm_steps::turn_id.desc(), llm_steps::step.desc(), llm_steps::attempt.desc()))
        .select(llm_steps::tokens_in.assume_not_null())
        .first(conn)
        .optional()
}
