//! Erasure of text, table by table. Every remaining value is still readable.

use diesel::dsl::{exists, not, sql};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text};
use diesel::sqlite::Sqlite;
use jiff::Timestamp;
use serde_json::json;

use super::text_index;
use crate::conversation::stream_events::CallPhase;
use crate::conversation::transcript::{CallResult, ToolArguments, UserId};
use crate::store::confirmation::approvals::ApprovalState;
use crate::store::confirmation::pending_action::{self, CloseReason};
use crate::store::conversation::conversations::{self as talk_rows, EndReason};
use crate::store::memory::responses::{self, AnswerState, OPERATOR};
use crate::store::memory::{facts, groups, shared_answers};
use crate::store::people::join_requests;
use crate::store::queue::inbound_messages::InboundState;
use crate::store::queue::notifications as notice_rows;
use crate::store::queue::outbox::SETTLED;
use crate::store::schema::{
    agent_responses, approvals, blocks, conversations, follows, inbound_events, llm_steps, notices, outbox,
    reactions, requests as asked_titles, stream_events, tool_call_items, tool_calls, turns,
};
use crate::store::stream::pruning;
use crate::store::turns::{model_steps, turn_lifecycle as turn_rows};
use crate::store::{Conn, QueryResult, codec, column_types};

/// Name of an erased conversation.
const FORGOTTEN: &str = "Forgotten";

/// Rows to erase.
#[derive(Debug, Clone, Copy)]
pub(super) enum ErasureScope {
    User(UserId),
    /// Rows of one table after one id, up to and including another.
    Rows {
        after: i64,
        up_to: i64,
    },
}

/// Builds the query for the ids of a scope in a table.
macro_rules! ids {
    ($table:ident, $scope:expr) => {{
        let ids = $table::table.select($table::id).into_boxed::<Sqlite>();
        match $scope {
            ErasureScope::User(user) => ids.filter($table::user_id.eq(user)),
            ErasureScope::Rows { after, up_to } => ids.filter($table::id.gt(after).and($table::id.le(up_to))),
        }
    }};
}

/// Erases all messages from and to a user, with the facts about them, and ends their conversation. The text of
/// unsettled rows is not erased: messages that wait for a turn, messages that may still be sent, and requests that an
/// admin has yet to decide. The titles the user wanted are no longer retried, and waiting notifications are not sent,
/// except those of requests that admins decide. The user must have no live turn other than the one that calls this
/// function.
pub fn erase_conversations(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    pending_action::close_pending_action(conn, user, CloseReason::Dropped, now)?;
    if let Some(open) = talk_rows::load_open_conversation(conn, user)? {
        talk_rows::end_conversation(conn, open.id, EndReason::Cleared, now)?;
    }
    notice_rows::suppress_all(conn, user, now)?;
    let theirs = ErasureScope::User(user);
    text_index::erase_indexed_user_text(conn, user, now, |conn| {
        erase_inbound_messages(conn, theirs)?;
        erase_outbound_messages(conn, theirs)?;
        erase_remembered_answers(conn, theirs)
    })?;
    erase_turns(conn, theirs)?;
    pruning::force_reload(conn, user, now)?;
    erase_reactions(conn, theirs)?;
    erase_approval_titles(conn, theirs)?;
    delete_title_requests(conn, theirs)?;
    delete_notifications(conn, theirs)?;
    groups::leave_groups(conn, user)?;
    facts::erase_facts(conn, user, now)?;
    join_requests::erase_first_request(conn, user)?;
    diesel::delete(follows::table.filter(follows::user_id.eq(user))).execute(conn).map(drop)
}

/// Replaces the names of ended conversations, which are derived from their first message.
fn erase_conversation_names(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    let talks: Vec<i64> = match scope {
        ErasureScope::User(_) => ids!(conversations, scope).load(conn)?,
        ErasureScope::Rows { .. } => turns::table
            .filter(turns::id.eq_any(select_turn_ids(scope)))
            .select(turns::conversation_id)
            .distinct()
            .load(conn)?,
    };
    // Each conversation is a separate update: while there are few conversations, SQLite would otherwise read those of
    // all users.
    for id in talks {
        diesel::update(conversations::table.find(id)).set(conversations::name.eq(FORGOTTEN)).execute(conn)?;
    }
    Ok(())
}

pub(super) fn erase_inbound_messages(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    let texts = inbound_events::id.eq_any(ids!(inbound_events, scope));
    diesel::update(inbound_events::table.filter(texts.and(inbound_events::state.ne(InboundState::Pending))))
        .set((inbound_events::body.eq(""), inbound_events::media.eq(None::<String>)))
        .execute(conn)
        .map(drop)
}

pub(super) fn erase_outbound_messages(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    let texts = outbox::id.eq_any(ids!(outbox, scope));
    let settled = outbox::state.eq_any(SETTLED);
    diesel::update(outbox::table.filter(texts.and(settled)))
        .set((outbox::body.eq(""), outbox::media_url.eq(None::<String>)))
        .execute(conn)
        .map(drop)
}

pub(super) fn erase_reactions(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    diesel::update(reactions::table.filter(reactions::id.eq_any(ids!(reactions, scope))))
        .set(reactions::emoji.eq(None::<String>))
        .execute(conn)
        .map(drop)
}

/// Erases the titles in requests to admins, except in a request that is being executed.
pub(super) fn erase_approval_titles(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    let asked = approvals::id.eq_any(ids!(approvals, scope));
    let settled = approvals::state.ne(ApprovalState::Open).and(approvals::fingerprint.is_not_null());
    let carried_out = tool_calls::table
        .filter(tool_calls::id.nullable().eq(approvals::run_call_id))
        .filter(tool_calls::finished_at.is_null());
    diesel::update(approvals::table.filter(asked.and(settled).and(not(exists(carried_out)))))
        .set(approvals::fingerprint.eq(sql::<Nullable<Text>>(codec::FINGERPRINT_WITHOUT_TEXT)))
        .execute(conn)
        .map(drop)
}

/// Deletes the title requests in a scope.
pub(super) fn delete_title_requests(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    let asked = asked_titles::id.eq_any(ids!(asked_titles, scope));
    diesel::delete(asked_titles::table.filter(asked)).execute(conn).map(drop)
}

/// Deletes the rows of notifications in a scope.
pub(super) fn delete_notifications(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    let told = notices::id.eq_any(ids!(notices, scope));
    diesel::delete(notices::table.filter(told)).execute(conn).map(drop)
}

/// Erases remembered answers. Answers that the operator added have no retention period.
pub(super) fn erase_remembered_answers(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    let rows = ids!(agent_responses, scope);
    let to_go = match scope {
        ErasureScope::User(_) => rows,
        ErasureScope::Rows { .. } => rows.filter(agent_responses::agent.ne(OPERATOR)),
    };
    erase_selected_answers(conn, to_go).map(drop)
}

/// Erases one answer, for all users who could find it. Returns whether it existed.
pub fn erase_answer(conn: &mut Conn, id: i64, now: Timestamp) -> QueryResult<bool> {
    let row = agent_responses::table.select(agent_responses::id).into_boxed::<Sqlite>();
    shared_answers::refuse_future_copies(conn, id)?;
    let erased = erase_selected_answers(conn, row.filter(agent_responses::id.eq(id)))? > 0;
    if erased {
        text_index::schedule_answer_index_rebuild(conn, now)?;
    }
    Ok(erased)
}

fn erase_selected_answers(
    conn: &mut Conn,
    ids: agent_responses::BoxedQuery<'_, Sqlite, BigInt>,
) -> QueryResult<usize> {
    let to_go = agent_responses::id.eq_any(ids).and(agent_responses::state.ne(AnswerState::Erased));
    let revision = responses::next_revision(conn)?;
    let nothing = || None::<Vec<u8>>;
    diesel::update(agent_responses::table.filter(to_go))
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
                agent_responses::trigger_vec.eq(nothing()),
                agent_responses::response_vec.eq(nothing()),
                agent_responses::processed_at
                    .eq(sql::<Nullable<column_types::Timestamp>>("coalesce(processed_at, created_at)")),
                // Each row gets its own revision, so that a reader that continues from any revision misses no row.
                agent_responses::revision.eq(agent_responses::id + revision),
            ),
        ))
        .execute(conn)
}

/// Erases plans and answers of turns, with all output of models and tools in them, and the names of their
/// conversations.
pub(super) fn erase_turns(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    erase_conversation_names(conn, scope)?;
    let plan = sql::<Text>(turn_rows::PLAN_WITHOUT_TEXT);
    diesel::update(turns::table.filter(turns::id.eq_any(select_turn_ids(scope))))
        .set((turns::response_text.eq(None::<String>), turns::prompt.eq(plan)))
        .execute(conn)?;
    diesel::update(blocks::table.filter(blocks::turn_id.eq_any(select_turn_ids(scope))))
        .set(blocks::content.eq(""))
        .execute(conn)?;
    let theirs = stream_events::turn_id.assume_not_null().eq_any(select_turn_ids(scope));
    let told = diesel::delete(stream_events::table.filter(theirs))
        .returning((stream_events::conversation_id, stream_events::seq))
        .get_results(conn)?;
    pruning::raise_floors(conn, told)?;
    let failed = llm_steps::turn_id.eq_any(select_turn_ids(scope)).and(llm_steps::error.is_not_null());
    diesel::update(llm_steps::table.filter(failed))
        .set(llm_steps::error.eq(sql::<Nullable<Text>>(model_steps::FAILURE_WITHOUT_TEXT)))
        .execute(conn)?;
    erase_tool_calls(conn, scope)
}

fn select_turn_ids(scope: ErasureScope) -> turns::BoxedQuery<'static, Sqlite, BigInt> {
    let ids = turns::table.select(turns::id).into_boxed();
    match scope {
        // Selected through their conversations: turns have no index by user.
        ErasureScope::User(user) => {
            ids.filter(turns::conversation_id.eq_any(
                conversations::table.filter(conversations::user_id.eq(user)).select(conversations::id),
            ))
        }
        ErasureScope::Rows { after, up_to } => ids.filter(turns::id.gt(after).and(turns::id.le(up_to))),
    }
}

fn erase_tool_calls(conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
    let theirs = || tool_calls::turn_id.eq_any(select_turn_ids(scope));
    let nothing_asked = codec::arguments_json(&ToolArguments::Object(serde_json::Map::new()));
    diesel::update(tool_calls::table.filter(theirs()))
        .set(tool_calls::request.eq(nothing_asked))
        .execute(conn)?;
    let nothing_told =
        CallResult { for_model: json!({ "forgotten": true }), for_user: String::new(), shown: Vec::new() };
    diesel::update(tool_calls::table.filter(theirs().and(tool_calls::response.is_not_null())))
        .set(tool_calls::response.eq(codec::call_result_json(&nothing_told)?))
        .execute(conn)?;
    diesel::update(tool_calls::table.filter(theirs().and(tool_calls::state.eq(CallPhase::Error))))
        .set(tool_calls::error.eq(sql::<Nullable<Text>>(codec::FAILURE_WITHOUT_TEXT)))
        .execute(conn)?;
    let items =
        tool_call_items::tool_call_id.eq_any(tool_calls::table.filter(theirs()).select(tool_calls::id));
    diesel::update(tool_call_items::table.filter(items))
        .set(tool_call_items::fingerprint.eq(sql::<Text>(codec::FINGERPRINT_WITHOUT_TEXT)))
        .execute(conn)
        .map(drop)
}
