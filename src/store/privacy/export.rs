//! Export of all data stored about a user, as one JSON object.

use std::collections::HashMap;

use diesel::prelude::*;
use serde::Serialize;

use super::export_rows::{
    ExportAdditionRow, ExportAddressRow, ExportAnswerRow, ExportApprovalRow, ExportApprovedTitleRow,
    ExportAuditRow, ExportBallotRow, ExportDeletionItemRow, ExportDigestLineRow, ExportDigestRow,
    ExportFactRow, ExportFollowRow, ExportKeptTitleRow, ExportNotificationRow, ExportProposalAnswerRow,
    ExportReactionRow, ExportTitleAttributionRow, ExportTitleRequestRow, ExportUsageRow, ExportUserRow,
    ExportViewerAccountRow, ExportVoteRow,
};
use crate::conversation::routing::message_origin::MessageOrigin;
use crate::conversation::stream_events::BlockKind;
use crate::conversation::transcript::{CallRow, ConversationId, UserId};
use crate::store::conversation::record::conversations::{
    self as conversation_records, ConversationRecord, PendingActionRecord,
};
use crate::store::conversation::record::messages::{self, InboundRecord, OutboundRecord};
use crate::store::conversation::record::steps::{
    AttemptRecord, AttemptRow, AttemptState, StepRecord, ToolCallRecord,
};
use crate::store::conversation::record::turn_range::{TurnRange, select_turn_ids};
use crate::store::conversation::record::turns::{self as turn_records, TurnRecord, TurnRow};
use crate::store::memory::responses;
use crate::store::people::rooms::IS_ROOM_CONVERSATION;
use crate::store::schema::{
    additions, agent_responses, approvals, approved_titles, audit_log, ballots, conversations, digest_lines,
    digest_settings, follows, kept_titles, notices, outbox, reactions, requests, space_proposal_answers,
    space_proposal_titles, title_attributions, tool_call_items, tool_calls, turns, usage, user_addresses,
    user_facts, users, viewer_accounts, votes,
};
use crate::store::{Conn, QueryResult};

#[derive(Debug, Serialize)]
pub struct UserExport {
    person: ExportUserRow,
    addresses: Vec<ExportAddressRow>,
    conversations: Vec<ExportedConversation>,
    /// Messages that no turn processed, such as the messages of a newcomer.
    other_texts_received: Vec<ExportedText>,
    /// Messages that no turn wrote, such as notifications.
    other_texts_sent: Vec<OutboundRecord>,
    open_question: Option<PendingActionRecord>,
    reactions: Vec<ExportReactionRow>,
    requests_to_admins: Vec<ExportApprovalRow>,
    titles_asked_for: Vec<ExportTitleRequestRow>,
    /// Titles that count toward the space of the user.
    titles_counted: Vec<ExportTitleAttributionRow>,
    titles_to_hear_of: Vec<ExportFollowRow>,
    notices: Vec<ExportNotificationRow>,
    remembered: Vec<ExportAnswerRow>,
    facts: Vec<ExportFactRow>,
    votes_started: Vec<ExportVoteRow>,
    votes_given: Vec<ExportBallotRow>,
    titles_kept: Vec<ExportKeptTitleRow>,
    /// Answers about titles that could go.
    answers_about_titles: Vec<ExportProposalAnswerRow>,
    additions: Vec<ExportAdditionRow>,
    usage_by_day: Vec<ExportUsageRow>,
    audit: Vec<ExportAuditRow>,
    /// Users of media servers that are linked to the person. What they watched is stored only there.
    media_server_accounts: Vec<ExportViewerAccountRow>,
    approved_titles: Vec<ExportApprovedTitleRow>,
    digest: Option<ExportDigestRow>,
    digest_lines: Vec<ExportDigestLineRow>,
}

#[derive(Debug, Serialize)]
struct ExportedConversation {
    #[serde(flatten)]
    conversation: ConversationRecord,
    turns: Vec<ExportedTurn>,
}

#[derive(Debug, Serialize)]
struct ExportedTurn {
    #[serde(flatten)]
    turn: TurnRow,
    texts_received: Vec<ExportedText>,
    steps: Vec<ExportedStep>,
    /// Tool calls made by code, which belong to no step.
    other_tool_calls: Vec<ExportedCall>,
    texts_sent: Vec<OutboundRecord>,
}

/// Received text and its author.
#[derive(Debug, Serialize)]
struct ExportedText {
    #[serde(flatten)]
    text: InboundRecord,
    author: TextAuthor,
}

/// Author of a text that was received as a user's.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum TextAuthor {
    User,
    Operator,
    /// Program with an API key.
    Program,
}

impl From<InboundRecord> for ExportedText {
    fn from(text: InboundRecord) -> Self {
        let author = match text.origin() {
            MessageOrigin::Sender => TextAuthor::User,
            MessageOrigin::TestUser
            | MessageOrigin::Button
            | MessageOrigin::Operator
            | MessageOrigin::Session => TextAuthor::Operator,
            MessageOrigin::ApiKey(_) => TextAuthor::Program,
        };
        Self { text, author }
    }
}

#[derive(Debug, Serialize)]
struct ExportedStep {
    #[serde(flatten)]
    attempt: AttemptRow,
    text: Option<String>,
    thinking: Option<String>,
    tool_calls: Vec<ExportedCall>,
}

#[derive(Debug, Serialize)]
struct ExportedCall {
    #[serde(flatten)]
    call: ToolCallRecord,
    items: Vec<ExportDeletionItemRow>,
}

/// Loads the rows of a user in a table, oldest first.
macro_rules! user_rows {
    ($conn:ident, $user:ident, $table:ident) => {
        $table::table
            .filter($table::user_id.eq($user.0))
            .order($table::id)
            .select(SelectableHelper::as_select())
            .load($conn)
    };
}

/// Exports the data of a user. Each conversation is read only once, so that the time grows linearly with the length of
/// the history.
pub fn export_user(conn: &mut Conn, user: UserId) -> QueryResult<UserExport> {
    let (other_texts_received, other_texts_sent) = messages::load_user_messages_without_turn(conn, user)?;
    Ok(UserExport {
        person: users::table.find(user).select(ExportUserRow::as_select()).first(conn)?,
        addresses: user_addresses::table
            .filter(user_addresses::user_id.eq(user))
            .order(user_addresses::id)
            .select(ExportAddressRow::as_select())
            .load(conn)?,
        conversations: export_conversations(conn, user)?,
        other_texts_received: other_texts_received.into_iter().map(ExportedText::from).collect(),
        other_texts_sent,
        open_question: conversation_records::load_user_pending_action(conn, user)?,
        reactions: user_rows!(conn, user, reactions)?,
        requests_to_admins: user_rows!(conn, user, approvals)?,
        titles_asked_for: user_rows!(conn, user, requests)?,
        titles_counted: title_attributions::table
            .filter(title_attributions::user_id.eq(user))
            .order((title_attributions::first_requested_at, title_attributions::catalog_id))
            .select(ExportTitleAttributionRow::as_select())
            .load(conn)?,
        titles_to_hear_of: user_rows!(conn, user, follows)?,
        notices: user_rows!(conn, user, notices)?,
        remembered: agent_responses::table
            .filter(responses::is_answer_to(user))
            .order(agent_responses::id)
            .select(SelectableHelper::as_select())
            .load(conn)?,
        facts: user_rows!(conn, user, user_facts)?,
        votes_started: user_rows!(conn, user, votes)?,
        votes_given: ballots::table
            .inner_join(votes::table)
            .filter(ballots::user_id.eq(user))
            .order(ballots::id)
            .select(ExportBallotRow::as_select())
            .load(conn)?,
        titles_kept: load_kept_titles(conn, user)?,
        answers_about_titles: load_proposal_answers(conn, user)?,
        additions: user_rows!(conn, user, additions)?,
        usage_by_day: usage::table
            .filter(usage::user_id.eq(user))
            .order(usage::day)
            .select(ExportUsageRow::as_select())
            .load(conn)?,
        audit: audit_log::table
            .filter(audit_log::user_id.eq(user).or(audit_log::subject.eq(format!("user:{user}"))))
            .order(audit_log::id)
            .select(ExportAuditRow::as_select())
            .load(conn)?,
        media_server_accounts: viewer_accounts::table
            .filter(viewer_accounts::user_id.eq(user))
            .order((viewer_accounts::server, viewer_accounts::account_id))
            .select(ExportViewerAccountRow::as_select())
            .load(conn)?,
        approved_titles: approved_titles::table
            .filter(approved_titles::user_id.eq(user))
            .order((approved_titles::kind, approved_titles::catalog_id))
            .select(ExportApprovedTitleRow::as_select())
            .load(conn)?,
        digest: digest_settings::table
            .find(user)
            .select(ExportDigestRow::as_select())
            .first(conn)
            .optional()?,
        digest_lines: load_digest_lines(conn, user)?,
    })
}

/// Loads the lines of the digests of a user.
fn load_digest_lines(conn: &mut Conn, user: UserId) -> QueryResult<Vec<ExportDigestLineRow>> {
    digest_lines::table
        .inner_join(outbox::table)
        .filter(outbox::user_id.eq(user))
        .order((digest_lines::outbox_id, digest_lines::number))
        .select(ExportDigestLineRow::as_select())
        .load(conn)
}

/// Loads the titles that a user keeps.
fn load_kept_titles(conn: &mut Conn, user: UserId) -> QueryResult<Vec<ExportKeptTitleRow>> {
    kept_titles::table
        .filter(kept_titles::user_id.eq(user))
        .order((kept_titles::kept_at, kept_titles::catalog_id))
        .select(ExportKeptTitleRow::as_select())
        .load(conn)
}

/// Loads the answers of a user about titles that could go.
fn load_proposal_answers(conn: &mut Conn, user: UserId) -> QueryResult<Vec<ExportProposalAnswerRow>> {
    space_proposal_answers::table
        .inner_join(
            space_proposal_titles::table.on(space_proposal_titles::proposal_id
                .eq(space_proposal_answers::proposal_id)
                .and(space_proposal_titles::number.eq(space_proposal_answers::number))),
        )
        .filter(space_proposal_answers::user_id.eq(user))
        .order((space_proposal_answers::proposal_id, space_proposal_answers::number))
        .select(ExportProposalAnswerRow::as_select())
        .load(conn)
}

fn export_conversations(conn: &mut Conn, user: UserId) -> QueryResult<Vec<ExportedConversation>> {
    let mut conversations: Vec<ConversationRecord> = user_rows!(conn, user, conversations)?;
    conversations.extend(load_room_conversations(conn, user)?);
    let export = |conversation: ConversationRecord| {
        let turns = turn_records::load_all_turns(conn, conversation.id)?;
        let mut items = load_deletion_items(conn, conversation.id)?;
        let own = turns.into_iter().filter(|turn| turn.row.user == user);
        let turns = own.map(|turn| export_turn(turn, user, &mut items)).collect();
        Ok(ExportedConversation { conversation, turns })
    };
    conversations.into_iter().map(export).collect()
}

/// Loads the conversations in rooms in which the user took part, without their names, which are words of anybody there.
fn load_room_conversations(conn: &mut Conn, user: UserId) -> QueryResult<Vec<ConversationRecord>> {
    let own_turns = turns::table
        .filter(turns::conversation_id.eq(conversations::id).and(turns::user_id.eq(user)))
        .select(turns::id);
    let mut conversations: Vec<ConversationRecord> = conversations::table
        .filter(IS_ROOM_CONVERSATION.and(diesel::dsl::exists(own_turns)))
        .order(conversations::id)
        .select(ConversationRecord::as_select())
        .load(conn)?;
    conversations.iter_mut().for_each(|conversation| conversation.name.clear());
    Ok(conversations)
}

fn export_turn(turn: TurnRecord, user: UserId, items: &mut DeletionItems) -> ExportedTurn {
    let TurnRecord { row, mut received, steps: step_records, mut sent, executed_calls: _ } = turn;
    received.sort_by_key(|message| message.id);
    sent.retain(|message| message.user == user);
    let (mut steps, mut other_tool_calls) = (Vec::new(), Vec::new());
    for StepRecord { attempts, calls, .. } in step_records {
        let mut calls: Vec<ExportedCall> = calls
            .into_iter()
            .map(|call| ExportedCall { items: items.remove(&call.id).unwrap_or_default(), call })
            .collect();
        steps.extend(attempts.into_iter().map(|attempt| export_step(attempt, &mut calls)));
        other_tool_calls.append(&mut calls);
    }
    let texts_received = received.into_iter().map(ExportedText::from).collect();
    ExportedTurn { turn: row, texts_received, steps, other_tool_calls, texts_sent: sent }
}

/// Exports one attempt. `calls` are those of its step, which belong to the complete attempt.
fn export_step(attempt: AttemptRecord, calls: &mut Vec<ExportedCall>) -> ExportedStep {
    let is_complete = attempt.row.state == AttemptState::Complete;
    // A response in progress is exported once it is recorded.
    let text = |kind| attempt.text(kind).filter(|_| !attempt.is_running());
    ExportedStep {
        text: text(BlockKind::Text),
        thinking: text(BlockKind::Thinking),
        attempt: attempt.row,
        tool_calls: if is_complete { std::mem::take(calls) } else { Vec::new() },
    }
}

type DeletionItems = HashMap<CallRow, Vec<ExportDeletionItemRow>>;

fn load_deletion_items(conn: &mut Conn, conversation: ConversationId) -> QueryResult<DeletionItems> {
    let turns = select_turn_ids(TurnRange::whole_conversation(conversation));
    let calls = tool_calls::table.filter(tool_calls::turn_id.eq_any(turns)).select(tool_calls::id);
    let rows: Vec<ExportDeletionItemRow> = tool_call_items::table
        .filter(tool_call_items::tool_call_id.eq_any(calls))
        .order((tool_call_items::tool_call_id, tool_call_items::ord))
        .select(ExportDeletionItemRow::as_select())
        .load(conn)?;
    let mut items = DeletionItems::new();
    for row in rows {
        items.entry(row.tool_call_id).or_default().push(row);
    }
    Ok(items)
}
