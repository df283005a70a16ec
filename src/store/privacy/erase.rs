//! Erasure of text, table by table. Erased JSON columns keep a shape that still parses.

use std::collections::BTreeSet;

use diesel::dsl::{exists, not, sql};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text};
use diesel::sqlite::Sqlite;
use jiff::Timestamp;
use serde_json::json;

use crate::conversation::stream_events::CallPhase;
use crate::conversation::transcript::{CallResult, ToolArguments, UserId};
use crate::store::confirmation::approval_subjects::ERASED_WANTED_TITLE;
use crate::store::confirmation::approvals::{
    self as stored_approvals, ApprovalKind, ApprovalOutcome, ApprovalState,
};
use crate::store::confirmation::pending_action::{self, CloseReason};
use crate::store::conversation::conversations::{self as conversation_rows, EndReason};
use crate::store::library::{kept_titles, space_answers};
use crate::store::memory::responses::{self, AnswerState, OPERATOR};
use crate::store::memory::{facts, groups, shared_answers};
use crate::store::people::{join_requests, viewer_accounts};
use crate::store::queue::inbound_messages::InboundState;
use crate::store::queue::notifications as notification_rows;
use crate::store::queue::outbox::SETTLED;
use crate::store::schema::{
    agent_responses, approvals, blocks, conversations, digest_lines, follows, inbound_events, llm_steps,
    notices, outbox, reactions, requests as title_requests, tool_call_items, tool_calls, turns,
};
use crate::store::stream::recording;
use crate::store::turns::{model_steps, turn_lifecycle};
use crate::store::{Conn, QueryResult, agent_calls, codec, column_types, text_index, votes};

/// Name of an erased conversation.
const ERASED_NAME: &str = "Forgotten";

/// Rows to erase.
#[derive(Debug, Clone, Copy)]
pub(super) enum ErasureScope {
    User(UserId),
    /// Rows of one table with ids after `after`, up to and including `up_to`.
    Rows {
        after: i64,
        up_to: i64,
    },
}

/// Builds the query for the ids of a scope in a table.
macro_rules! select_ids {
    ($table:ident, $scope:expr) => {{
        let ids = $table::table.select($table::id).into_boxed::<Sqlite>();
        match $scope {
            ErasureScope::User(user) => ids.filter($table::user_id.eq(user)),
            ErasureScope::Rows { after, up_to } => ids.filter($table::id.gt(after).and($table::id.le(up_to))),
        }
    }};
}

/// Erases the content of a user, and ends the open conversation: messages from and to the user, stored answers, facts,
/// reactions, the first request, the titles of approvals, and the links of accounts. Title requests, deferred additions, follows and
/// notifications are deleted. The text of unsettled rows remains: messages that wait for a turn, messages that may still
/// be sent, and open approvals. The caller ensures that no other turn of the user is running.
pub fn erase_user_content(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    pending_action::close_pending_action(conn, user, CloseReason::Dropped, now)?;
    if let Some(open) = conversation_rows::load_open_conversation(conn, user)? {
        conversation_rows::end_conversation(conn, open.id, EndReason::Cleared, now)?;
    }
    notification_rows::suppress_notifications(conn, user, now)?;
    let scope = ErasureScope::User(user);
    text_index::erase_indexed_user_text(conn, user, now, |conn| {
        erase_inbound_messages(conn, scope)?;
        erase_outbound_messages(conn, scope)?;
        erase_stored_answers(conn, scope)
    })?;
    agent_calls::drop_calls_for(conn, user)?;
    conversation_rows::end_agent_conversations(conn, user, EndReason::Cleared, now)?;
    erase_turns(conn, scope)?;
    erase_turns_in_rooms(conn, user)?;
    // Readers have received the erased content.
    recording::record_reset();
    erase_reactions(conn, scope)?;
    // Only the titles of decided approvals are erased.
    withdraw_requests(conn, user, now)?;
    erase_approval_titles(conn, scope)?;
    delete_title_requests(conn, scope)?;
    delete_notifications(conn, scope)?;
    groups::leave_groups(conn, user)?;
    facts::erase_facts(conn, user, now)?;
    votes::erase_votes_of(conn, user)?;
    space_answers::delete_answers_of(conn, user, now)?;
    kept_titles::delete_kept_titles_of(conn, user)?;
    viewer_accounts::delete_accounts(conn, user)?;
    join_requests::erase_first_request(conn, user)?;
    diesel::delete(follows::table.filter(follows::user_id.eq(user))).execute(conn).map(drop)
}

/// Withdraws the open requests of a user for links of accounts, for titles at a Seerr, and for titles over the caps.
fn withdraw_requests(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    for open in stored_approvals::load_open_approvals_about(conn, user)? {
        if matches!(
            open.kind,
            ApprovalKind::LinkAccount(_) | ApprovalKind::SeerrRequest(_) | ApprovalKind::Title(_)
        ) {
            stored_approvals::settle_approval(conn, open.id, ApprovalOutcome::Withdrawn, None, now)?;
        }
    }
    Ok(())
}

/// Replaces the names of conversations, which are derived from their first message.
fn erase_conversation_names(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    let conversation_ids: Vec<i64> = match scope {
        ErasureScope::User(_) => select_ids!(conversations, scope).load(conn)?,
        ErasureScope::Rows { .. } => turns::table
            .filter(turns::id.eq_any(select_turn_ids(scope)))
            .select(turns::conversation_id)
            .distinct()
            .load(conn)?,
    };
    // Each conversation is a separate update: with a list of ids and few conversations, SQLite would read the
    // conversations of all users.
    for id in conversation_ids {
        diesel::update(conversations::table.find(id))
            .set(conversations::name.eq(ERASED_NAME))
            .execute(conn)?;
    }
    Ok(())
}

pub(super) fn erase_inbound_messages(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    recording::record_changed_history();
    let in_scope = inbound_events::id.eq_any(select_ids!(inbound_events, scope));
    diesel::update(
        inbound_events::table.filter(in_scope.and(inbound_events::state.ne(InboundState::Pending))),
    )
    .set((inbound_events::body.eq(""), inbound_events::media.eq(None::<String>)))
    .execute(conn)
    .map(drop)
}

pub(super) fn erase_outbound_messages(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    let in_scope = outbox::id.eq_any(select_ids!(outbox, scope));
    let is_decided_with_title = outbox::state.eq_any(SETTLED);
    let lines = digest_lines::outbox_id.eq_any(select_ids!(outbox, scope));
    diesel::delete(digest_lines::table.filter(lines)).execute(conn)?;
    diesel::update(outbox::table.filter(in_scope.and(is_decided_with_title)))
        .set((outbox::body.eq(""), outbox::media_url.eq(None::<String>)))
        .execute(conn)
        .map(drop)
}

pub(super) fn erase_reactions(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    diesel::update(reactions::table.filter(reactions::id.eq_any(select_ids!(reactions, scope))))
        .set(reactions::emoji.eq(None::<String>))
        .execute(conn)
        .map(drop)
}

/// Erases the titles and accounts in decided approvals, except in one whose deletion is running.
pub(super) fn erase_approval_titles(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    let in_scope = approvals::id.eq_any(select_ids!(approvals, scope));
    let is_decided_with_title =
        approvals::state.ne(ApprovalState::Open).and(approvals::fingerprint.is_not_null());
    let running_call = tool_calls::table
        .filter(tool_calls::id.nullable().eq(approvals::run_call_id))
        .filter(tool_calls::finished_at.is_null());
    diesel::update(
        approvals::table.filter(in_scope.and(is_decided_with_title).and(not(exists(running_call)))),
    )
    .set(approvals::fingerprint.eq(sql::<Nullable<Text>>(codec::FINGERPRINT_WITHOUT_TEXT)))
    .execute(conn)?;
    let in_scope = approvals::id.eq_any(select_ids!(approvals, scope));
    let has_account = approvals::state.ne(ApprovalState::Open).and(approvals::account_id.is_not_null());
    diesel::update(approvals::table.filter(in_scope.and(has_account)))
        .set((approvals::account_id.eq(""), approvals::account_name.eq("")))
        .execute(conn)?;
    let in_scope = approvals::id.eq_any(select_ids!(approvals, scope));
    let has_title = approvals::state.ne(ApprovalState::Open).and(approvals::title.is_not_null());
    diesel::update(approvals::table.filter(in_scope.and(has_title)))
        .set(approvals::title.eq("a title"))
        .execute(conn)?;
    let in_scope = approvals::id.eq_any(select_ids!(approvals, scope));
    let is_wanted = approvals::state.ne(ApprovalState::Open).and(approvals::wanted.is_not_null());
    diesel::update(approvals::table.filter(in_scope.and(is_wanted)))
        .set(approvals::wanted.eq(ERASED_WANTED_TITLE))
        .execute(conn)
        .map(drop)
}

/// Deletes the title requests in a scope.
pub(super) fn delete_title_requests(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    let in_scope = title_requests::id.eq_any(select_ids!(title_requests, scope));
    diesel::delete(title_requests::table.filter(in_scope)).execute(conn).map(drop)
}

/// Deletes the rows of notifications in a scope.
pub(super) fn delete_notifications(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    let in_scope = notices::id.eq_any(select_ids!(notices, scope));
    diesel::delete(notices::table.filter(in_scope)).execute(conn).map(drop)
}

/// Erases stored answers. With [`ErasureScope::Rows`], answers that the operator added are kept, because they have no
/// retention period.
pub(super) fn erase_stored_answers(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    let ids = agent_responses::table.select(agent_responses::id).into_boxed::<Sqlite>();
    let selected = match scope {
        ErasureScope::User(user) => ids.filter(responses::is_answer_to(user)),
        ErasureScope::Rows { after, up_to } => ids
            .filter(agent_responses::id.gt(after).and(agent_responses::id.le(up_to)))
            .filter(agent_responses::agent.ne(OPERATOR)),
    };
    erase_selected_answers(conn, selected).map(drop)
}

/// Erases one answer, for all users who can find it. Returns whether the answer existed and was not erased yet.
pub fn erase_answer(conn: &mut Conn, id: i64, now: Timestamp) -> QueryResult<bool> {
    let ids = agent_responses::table.select(agent_responses::id).into_boxed::<Sqlite>();
    shared_answers::refuse_future_copies(conn, id)?;
    let is_erased = erase_selected_answers(conn, ids.filter(agent_responses::id.eq(id)))? > 0;
    if is_erased {
        text_index::schedule_answer_index_rebuild(conn, now)?;
    }
    Ok(is_erased)
}

fn erase_selected_answers(
    conn: &mut Conn,
    ids: agent_responses::BoxedQuery<'_, Sqlite, BigInt>,
) -> QueryResult<usize> {
    let is_selected = agent_responses::id.eq_any(ids).and(agent_responses::state.ne(AnswerState::Erased));
    let revision = responses::next_revision(conn)?;
    let no_vector = || None::<Vec<u8>>;
    diesel::update(agent_responses::table.filter(is_selected))
        .set((
            (
                agent_responses::state.eq(AnswerState::Erased),
                agent_responses::trigger_text.eq(""),
                agent_responses::response_text.eq(""),
                agent_responses::summary.eq(""),
                agent_responses::topics.eq("[]"),
                agent_responses::keywords.eq("[]"),
                agent_responses::likeness.eq(0),
            ),
            (
                agent_responses::embed_model.eq(None::<String>),
                agent_responses::trigger_vec.eq(no_vector()),
                agent_responses::response_vec.eq(no_vector()),
                agent_responses::processed_at
                    .eq(sql::<Nullable<column_types::Timestamp>>("coalesce(processed_at, created_at)")),
                // Each row gets its own revision, so that a reader that resumes at any revision misses no row.
                agent_responses::revision.eq(agent_responses::id + revision),
            ),
        ))
        .execute(conn)
}

/// Erases the plans and answers of turns, the output of their models and tools, and the names of their conversations.
pub(super) fn erase_turns(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    erase_conversation_names(conn, scope)?;
    erase_turn_content(conn, scope)
}

/// Erases the plans and answers of turns, and the output of their models and tools.
fn erase_turn_content(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    recording::record_changed_history();
    let erased_plan = sql::<Text>(turn_lifecycle::PLAN_WITHOUT_TEXT);
    diesel::update(turns::table.filter(turns::id.eq_any(select_turn_ids(scope))))
        .set((turns::response_text.eq(None::<String>), turns::prompt.eq(erased_plan)))
        .execute(conn)?;
    diesel::update(blocks::table.filter(blocks::turn_id.eq_any(select_turn_ids(scope))))
        .set(blocks::content.eq(""))
        .execute(conn)?;
    let has_error = llm_steps::turn_id.eq_any(select_turn_ids(scope)).and(llm_steps::error.is_not_null());
    diesel::update(llm_steps::table.filter(has_error))
        .set(llm_steps::error.eq(sql::<Nullable<Text>>(model_steps::FAILURE_WITHOUT_TEXT)))
        .execute(conn)?;
    erase_tool_calls(conn, scope)
}

/// Erases the text of a finished turn and its messages, because it mentions what somebody has watched. The received
/// messages remain. Returns whether all messages of the turn were settled; otherwise it is erased again later.
pub(super) fn erase_viewing_turn(conn: &mut Conn, turn: i64) -> QueryResult<bool> {
    erase_turn_content(conn, ErasureScope::Rows { after: turn - 1, up_to: turn })?;
    let messages = outbox::table.filter(outbox::turn_id.eq(turn)).select(outbox::id).load::<i64>(conn)?;
    for id in messages {
        erase_outbound_messages(conn, ErasureScope::Rows { after: id - 1, up_to: id })?;
    }
    let unsettled = outbox::table.filter(outbox::turn_id.eq(turn).and(outbox::state.ne_all(SETTLED)));
    let is_settled = !diesel::select(exists(unsettled)).get_result::<bool>(conn)?;
    if is_settled {
        diesel::update(turns::table.find(turn)).set(turns::about_viewing.eq(false)).execute(conn)?;
    }
    Ok(is_settled)
}

/// Erases the text of a settled message without a turn, because it mentions what its user has watched. Returns whether
/// the message was settled; otherwise it is erased later.
pub(super) fn erase_viewing_message(conn: &mut Conn, message: i64) -> QueryResult<bool> {
    erase_outbound_messages(conn, ErasureScope::Rows { after: message - 1, up_to: message })?;
    let columns = (outbox::user_id, outbox::created_at, outbox::body);
    let (user, created_at, body): (UserId, Timestamp, String) =
        outbox::table.find(message).select(columns).first(conn)?;
    if !body.is_empty() {
        return Ok(false);
    }
    // The user and the time select the notifications by their index.
    let of_message = notices::user_id.eq(user).and(notices::created_at.ge(codec::ms(created_at)));
    diesel::update(notices::table.filter(of_message.and(notices::outbox_id.eq(message))))
        .set(notices::words.eq(None::<String>))
        .execute(conn)?;
    Ok(true)
}

/// Erases the turns that answered a user in rooms, and what later turns there repeat of them.
fn erase_turns_in_rooms(conn: &mut Conn, user: UserId) -> QueryResult<()> {
    let in_rooms = inbound_events::table
        .filter(inbound_events::user_id.eq(user).and(inbound_events::room_id.is_not_null()))
        .select((inbound_events::turn_id, inbound_events::room_id));
    let rows: Vec<(Option<i64>, Option<UserId>)> = in_rooms.load(conn)?;
    for turn in rows.iter().filter_map(|(turn, _)| *turn).collect::<BTreeSet<_>>() {
        erase_turns(conn, ErasureScope::Rows { after: turn - 1, up_to: turn })?;
    }
    let rooms = rows.into_iter().filter_map(|(_, room)| room).collect::<BTreeSet<_>>();
    rooms.into_iter().try_for_each(|room| turn_lifecycle::erase_contexts(conn, room))
}

fn select_turn_ids(scope: ErasureScope) -> turns::BoxedQuery<'static, Sqlite, BigInt> {
    let ids = turns::table.select(turns::id).into_boxed();
    match scope {
        // Selected through their conversations, because turns have no index by user.
        ErasureScope::User(user) => {
            ids.filter(turns::conversation_id.eq_any(
                conversations::table.filter(conversations::user_id.eq(user)).select(conversations::id),
            ))
        }
        ErasureScope::Rows { after, up_to } => ids.filter(turns::id.gt(after).and(turns::id.le(up_to))),
    }
}

fn erase_tool_calls(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    let in_scope = || tool_calls::turn_id.eq_any(select_turn_ids(scope));
    let empty_arguments = codec::arguments_json(&ToolArguments::Object(serde_json::Map::new()));
    diesel::update(tool_calls::table.filter(in_scope()))
        .set(tool_calls::request.eq(empty_arguments))
        .execute(conn)?;
    let erased_result =
        CallResult { for_model: json!({ "forgotten": true }), for_user: String::new(), shown: Vec::new() };
    diesel::update(tool_calls::table.filter(in_scope().and(tool_calls::response.is_not_null())))
        .set(tool_calls::response.eq(codec::call_result_json(&erased_result)?))
        .execute(conn)?;
    diesel::update(tool_calls::table.filter(in_scope().and(tool_calls::state.eq(CallPhase::Error))))
        .set(tool_calls::error.eq(sql::<Nullable<Text>>(codec::FAILURE_WITHOUT_TEXT)))
        .execute(conn)?;
    let items =
        tool_call_items::tool_call_id.eq_any(tool_calls::table.filter(in_scope()).select(tool_calls::id));
    diesel::update(tool_call_items::table.filter(items))
        .set(tool_call_items::fingerprint.eq(sql::<Text>(codec::FINGERPRINT_WITHOUT_TEXT)))
        .execute(conn)
        .map(drop)
}
