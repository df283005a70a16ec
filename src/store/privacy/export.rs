//! All data stored about a user, as one JSON object for the user to read.

use std::collections::HashMap;
use std::hash::Hash;

use diesel::prelude::*;
use serde::Serialize;

use super::erase::{ErasureScope, select_turn_ids};
use super::export_rows::{
    ExportAdditionRow, ExportAnswerRow, ExportApprovalRow, ExportAttemptRow, ExportAuditRow, ExportCallRow,
    ExportConversationRow, ExportDeletionItemRow, ExportFactRow, ExportFollowRow, ExportInboundRow,
    ExportNotificationRow, ExportOutboundRow, ExportPendingActionRow, ExportReactionRow,
    ExportTitleRequestRow, ExportTurnRow, ExportUsageRow, ExportUserRow,
};
use crate::conversation::transcript::UserId;
use crate::store::schema::{
    additions, agent_responses, approvals, audit_log, blocks, conversations, follows, inbound_events,
    llm_steps, notices, outbox, pending_actions, reactions, requests, tool_call_items, tool_calls, turns,
    usage, user_facts, users,
};
use crate::store::{Conn, QueryResult};

#[derive(Debug, Serialize)]
pub struct UserExport {
    person: ExportUserRow,
    conversations: Vec<ExportedConversation>,
    /// Messages that no turn processed, such as those of a newcomer.
    other_texts_received: Vec<ExportInboundRow>,
    /// Messages that no turn wrote, such as notifications.
    other_texts_sent: Vec<ExportOutboundRow>,
    open_question: Option<ExportPendingActionRow>,
    reactions: Vec<ExportReactionRow>,
    requests_to_admins: Vec<ExportApprovalRow>,
    titles_asked_for: Vec<ExportTitleRequestRow>,
    titles_to_hear_of: Vec<ExportFollowRow>,
    notices: Vec<ExportNotificationRow>,
    remembered: Vec<ExportAnswerRow>,
    facts: Vec<ExportFactRow>,
    additions: Vec<ExportAdditionRow>,
    usage_by_day: Vec<ExportUsageRow>,
    audit: Vec<ExportAuditRow>,
}

#[derive(Debug, Serialize)]
struct ExportedConversation {
    #[serde(flatten)]
    conversation: ExportConversationRow,
    turns: Vec<ExportedTurn>,
}

#[derive(Debug, Serialize)]
struct ExportedTurn {
    #[serde(flatten)]
    turn: ExportTurnRow,
    texts_received: Vec<ExportInboundRow>,
    steps: Vec<ExportedStep>,
    /// Tool calls made by code, which belong to no step.
    other_tool_calls: Vec<ExportedCall>,
    texts_sent: Vec<ExportOutboundRow>,
}

#[derive(Debug, Serialize)]
struct ExportedStep {
    #[serde(flatten)]
    attempt: ExportAttemptRow,
    text: Option<String>,
    thinking: Option<String>,
    tool_calls: Vec<ExportedCall>,
}

#[derive(Debug, Serialize)]
struct ExportedCall {
    #[serde(flatten)]
    call: ExportCallRow,
    items: Vec<ExportDeletionItemRow>,
}

/// Exports the data of a user. Each table is read once, so that the time grows only linearly with the length of the
/// history.
pub fn export_user(conn: &mut Conn, user: UserId) -> QueryResult<UserExport> {
    let mut received = load_export_inbound(conn, user)?;
    let mut sent = load_export_outbound(conn, user)?;
    let mut exchanges: HashMap<i64, Vec<ExportedTurn>> = HashMap::new();
    let (mut steps, mut calls) = load_export_steps(conn, user)?;
    for turn in load_export_turns(conn, user)? {
        let id = turn.id;
        exchanges.entry(turn.conversation_id).or_default().push(ExportedTurn {
            turn,
            texts_received: received.remove(&Some(id)).unwrap_or_default(),
            steps: steps.remove(&id).unwrap_or_default(),
            other_tool_calls: calls.remove(&id).unwrap_or_default(),
            texts_sent: sent.remove(&Some(id)).unwrap_or_default(),
        });
    }
    let talks = load_export_conversations(conn, user)?;
    let talk = |conversation: ExportConversationRow| ExportedConversation {
        turns: exchanges.remove(&conversation.id).unwrap_or_default(),
        conversation,
    };
    Ok(UserExport {
        person: users::table.find(user.0).select(ExportUserRow::as_select()).first(conn)?,
        conversations: talks.into_iter().map(talk).collect(),
        other_texts_received: received.remove(&None).unwrap_or_default(),
        other_texts_sent: sent.remove(&None).unwrap_or_default(),
        open_question: pending_actions::table
            .filter(pending_actions::user_id.eq(user.0))
            .select(ExportPendingActionRow::as_select())
            .first(conn)
            .optional()?,
        reactions: reactions::table
            .filter(reactions::user_id.eq(user.0))
            .order(reactions::id)
            .select(ExportReactionRow::as_select())
            .load(conn)?,
        requests_to_admins: approvals::table
            .filter(approvals::user_id.eq(user.0))
            .order(approvals::id)
            .select(ExportApprovalRow::as_select())
            .load(conn)?,
        titles_asked_for: requests::table
            .filter(requests::user_id.eq(user.0))
            .order(requests::id)
            .select(ExportTitleRequestRow::as_select())
            .load(conn)?,
        titles_to_hear_of: follows::table
            .filter(follows::user_id.eq(user.0))
            .order(follows::id)
            .select(ExportFollowRow::as_select())
            .load(conn)?,
        notices: notices::table
            .filter(notices::user_id.eq(user.0))
            .order(notices::id)
            .select(ExportNotificationRow::as_select())
            .load(conn)?,
        remembered: load_export_answers(conn, user)?,
        facts: user_facts::table
            .filter(user_facts::user_id.eq(user.0))
            .order(user_facts::id)
            .select(ExportFactRow::as_select())
            .load(conn)?,
        additions: load_export_additions(conn, user)?,
        usage_by_day: load_export_usage(conn, user)?,
        audit: audit_log::table
            .filter(audit_log::user_id.eq(user.0).or(audit_log::subject.eq(format!("user:{user}"))))
            .order(audit_log::id)
            .select(ExportAuditRow::as_select())
            .load(conn)?,
    })
}

fn load_export_conversations(conn: &mut Conn, user: UserId) -> QueryResult<Vec<ExportConversationRow>> {
    conversations::table
        .filter(conversations::user_id.eq(user.0))
        .order(conversations::id)
        .select(ExportConversationRow::as_select())
        .load(conn)
}

fn load_export_answers(conn: &mut Conn, user: UserId) -> QueryResult<Vec<ExportAnswerRow>> {
    agent_responses::table
        .filter(agent_responses::user_id.eq(user.0))
        .order(agent_responses::id)
        .select(ExportAnswerRow::as_select())
        .load(conn)
}

fn load_export_additions(conn: &mut Conn, user: UserId) -> QueryResult<Vec<ExportAdditionRow>> {
    additions::table
        .filter(additions::user_id.eq(user.0))
        .order(additions::id)
        .select(ExportAdditionRow::as_select())
        .load(conn)
}

fn load_export_usage(conn: &mut Conn, user: UserId) -> QueryResult<Vec<ExportUsageRow>> {
    usage::table
        .filter(usage::user_id.eq(user.0))
        .order(usage::day)
        .select(ExportUsageRow::as_select())
        .load(conn)
}

fn load_export_turns(conn: &mut Conn, user: UserId) -> QueryResult<Vec<ExportTurnRow>> {
    turns::table
        .filter(turns::id.eq_any(select_turn_ids(ErasureScope::User(user))))
        .order(turns::id)
        .select(ExportTurnRow::as_select())
        .load(conn)
}

fn load_export_inbound(
    conn: &mut Conn,
    user: UserId,
) -> QueryResult<HashMap<Option<i64>, Vec<ExportInboundRow>>> {
    let texts = inbound_events::table
        .filter(inbound_events::user_id.eq(user.0))
        .order(inbound_events::id)
        .select(ExportInboundRow::as_select())
        .load(conn)?;
    Ok(group_rows_by_key(texts, |text: &ExportInboundRow| text.turn_id))
}

fn load_export_outbound(
    conn: &mut Conn,
    user: UserId,
) -> QueryResult<HashMap<Option<i64>, Vec<ExportOutboundRow>>> {
    let texts = outbox::table
        .filter(outbox::user_id.eq(user.0))
        .order(outbox::id)
        .select(ExportOutboundRow::as_select())
        .load(conn)?;
    Ok(group_rows_by_key(texts, |text: &ExportOutboundRow| text.turn_id))
}

type ExportedByTurn<T> = HashMap<i64, Vec<T>>;
/// Turn, step and attempt of a block; its type and content.
type BlockContentRow = ((i64, i64, i64), (String, String));

/// Loads the steps of each turn, and the calls that belong to no step.
fn load_export_steps(
    conn: &mut Conn,
    user: UserId,
) -> QueryResult<(ExportedByTurn<ExportedStep>, ExportedByTurn<ExportedCall>)> {
    let attempts: Vec<ExportAttemptRow> = llm_steps::table
        .filter(llm_steps::turn_id.eq_any(select_turn_ids(ErasureScope::User(user))))
        .order((llm_steps::turn_id, llm_steps::step, llm_steps::attempt))
        .select(ExportAttemptRow::as_select())
        .load(conn)?;
    let contents: Vec<BlockContentRow> = blocks::table
        .filter(
            blocks::turn_id
                .eq_any(select_turn_ids(ErasureScope::User(user)))
                .and(blocks::type_.ne("tool_call")),
        )
        .select(((blocks::turn_id, blocks::step, blocks::attempt), (blocks::type_, blocks::content)))
        .load(conn)?;
    let mut contents: HashMap<_, String> =
        contents.into_iter().map(|(of, (kind, content))| ((of, kind), content)).collect();
    let mut calls = group_rows_by_key(load_export_calls(conn, user)?, |call: &ExportedCall| {
        (call.call.turn_id, call.call.step)
    });
    let mut steps: ExportedByTurn<ExportedStep> = HashMap::new();
    for attempt in attempts {
        let of = (attempt.turn_id, attempt.step, attempt.attempt);
        let tool_calls = match attempt.state.as_str() {
            "complete" => calls.remove(&(attempt.turn_id, attempt.step)).unwrap_or_default(),
            _ => Vec::new(),
        };
        steps.entry(attempt.turn_id).or_default().push(ExportedStep {
            text: contents.remove(&(of, "text".to_owned())),
            thinking: contents.remove(&(of, "thinking".to_owned())),
            attempt,
            tool_calls,
        });
    }
    let left = calls.into_values().flatten().collect();
    Ok((steps, group_rows_by_key(left, |call: &ExportedCall| call.call.turn_id)))
}

fn load_export_calls(conn: &mut Conn, user: UserId) -> QueryResult<Vec<ExportedCall>> {
    let calls: Vec<ExportCallRow> = tool_calls::table
        .filter(tool_calls::turn_id.eq_any(select_turn_ids(ErasureScope::User(user))))
        .order((tool_calls::turn_id, tool_calls::step, tool_calls::ord))
        .select(ExportCallRow::as_select())
        .load(conn)?;
    let theirs = tool_calls::table
        .filter(tool_calls::turn_id.eq_any(select_turn_ids(ErasureScope::User(user))))
        .select(tool_calls::id);
    let items: Vec<ExportDeletionItemRow> = tool_call_items::table
        .filter(tool_call_items::tool_call_id.eq_any(theirs))
        .order((tool_call_items::tool_call_id, tool_call_items::ord))
        .select(ExportDeletionItemRow::as_select())
        .load(conn)?;
    let mut items = group_rows_by_key(items, |item: &ExportDeletionItemRow| item.tool_call_id);
    let with_items =
        |call: ExportCallRow| ExportedCall { items: items.remove(&call.id).unwrap_or_default(), call };
    Ok(calls.into_iter().map(with_items).collect())
}

/// Groups rows by a key, and preserves their order.
fn group_rows_by_key<T, K: Eq + Hash>(rows: Vec<T>, key: impl Fn(&T) -> K) -> HashMap<K, Vec<T>> {
    let mut groups: HashMap<K, Vec<T>> = HashMap::new();
    for row in rows {
        groups.entry(key(&row)).or_default().push(row);
    }
    groups
}
