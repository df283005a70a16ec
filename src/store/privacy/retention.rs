//! Automatic erasure of text after its retention period. Each run erases a batch of the oldest rows and continues where
//! the previous run ended.

use std::collections::HashSet;

use diesel::prelude::*;
use jiff::Timestamp;

use super::erase::{self, ErasureScope};
use crate::conversation::transcript::UserId;
use crate::store::codec::ms;
use crate::store::confirmation::pending_action::{self, CloseReason};
use crate::store::database::literal_sql::literal_sql;
use crate::store::memory::facts;
use crate::store::people::join_requests;
use crate::store::queue::inbound_messages::InboundOutcome;
use crate::store::queue::notifications;
use crate::store::queue::outbox::{OutboxState, SETTLED};
use crate::store::schema::{
    agent_responses, approvals, follows, inbound_events, notices, outbox, pending_actions, reactions,
    requests, sweeps, tool_calls, turns,
};
use crate::store::text_index::{self, TextIndexProgress};
use crate::store::{Conn, QueryResult};

/// Progress of erasure by batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetentionProgress {
    /// More text may be left to erase.
    More,
    Done,
}

/// Erases text from before `before`, in at most `limit` rows of each table.
pub fn erase_expired_text(
    conn: &mut Conn,
    before: Timestamp,
    limit: i64,
    now: Timestamp,
) -> QueryResult<RetentionProgress> {
    // Runs first, because the text in these indexes was erased earlier.
    if text_index::rebuild_due_index(conn, now)? == TextIndexProgress::More {
        return Ok(RetentionProgress::More);
    }
    join_requests::erase_old_first_requests(conn, now)?;
    close_overdue_actions(conn, before)?;
    let mut progress = delete_ended_follows(conn, before, limit)?;
    // Ended facts are found by their end time, because a fact may be active for years.
    if facts::erase_ended_facts(conn, before, limit, now)? >= limit {
        progress = RetentionProgress::More;
    }
    for table in RetentionTable::ALL {
        let after = load_sweep_cursor(conn, table.name())?.unwrap_or(0);
        let rows = table.load_rows(conn, after, limit)?;
        // An unsettled row blocks the rows after it, so that the cursor skips no row.
        let expired = rows.iter().take_while(|row| row.settled_at.is_some_and(|at| at < before));
        let (count, last) = expired.fold((0, None), |(count, _), row| (count + 1, Some(row.id)));
        let Some(up_to) = last else { continue };
        table.erase_rows(conn, ErasureScope::Rows { after, up_to })?;
        if table.is_indexed() {
            text_index::schedule_index_rebuilds(conn, now)?;
        }
        store_sweep_cursor(conn, table.name(), up_to, now)?;
        if count >= limit {
            progress = RetentionProgress::More;
        }
    }
    Ok(progress)
}

/// Erases the answers that mention what somebody has watched, of turns that finished before `before`, and such messages
/// without a turn that were written before then, at most `limit` of each.
pub fn erase_viewing_texts(
    conn: &mut Conn,
    before: Timestamp,
    limit: i64,
    now: Timestamp,
) -> QueryResult<RetentionProgress> {
    let is_due = ABOUT_VIEWING.and(turns::finished_at.lt(ms(before)));
    let due: Vec<i64> =
        turns::table.filter(is_due).order(turns::finished_at).limit(limit).select(turns::id).load(conn)?;
    let mut erased = 0;
    for turn in due {
        erased += i64::from(erase::erase_viewing_turn(conn, turn)?);
    }
    let messages = erase_viewing_messages(conn, before, limit)?;
    if erased + messages > 0 {
        text_index::schedule_index_rebuilds(conn, now)?;
    }
    Ok(if erased.max(messages) >= limit { RetentionProgress::More } else { RetentionProgress::Done })
}

/// Erases the messages without a turn that mention what their user has watched and were written before `before`. Returns
/// their number.
fn erase_viewing_messages(conn: &mut Conn, before: Timestamp, limit: i64) -> QueryResult<i64> {
    let is_due = notifications::ABOUT_VIEWING.and(outbox::created_at.lt(ms(before)));
    let due: Vec<i64> =
        outbox::table.filter(is_due).order(outbox::created_at).limit(limit).select(outbox::id).load(conn)?;
    let mut erased = 0;
    for message in due {
        erased += i64::from(erase::erase_viewing_message(conn, message)?);
    }
    Ok(erased)
}

literal_sql! {
    /// Condition of a turn whose answer mentions what somebody has watched.
    const ABOUT_VIEWING = "turns.about_viewing = 1";
}

/// Closes the pending actions that expired before `before`, and those created before then whose confirmation prompt
/// failed or was suppressed.
fn close_overdue_actions(conn: &mut Conn, before: Timestamp) -> QueryResult<()> {
    let open: Vec<(UserId, Option<Timestamp>, Timestamp, OutboxState)> = pending_actions::table
        .inner_join(outbox::table.on(outbox::id.eq(pending_actions::prompt_outbox_id)))
        .select((
            pending_actions::user_id,
            pending_actions::expires_at,
            pending_actions::created_at,
            outbox::state,
        ))
        .load(conn)?;
    for (user, expires_at, created_at, state) in open {
        let overdue_since = match (expires_at, state) {
            (Some(at), _) => Some(at),
            (None, OutboxState::Failed | OutboxState::Suppressed) => Some(created_at),
            (None, _) => None,
        };
        if let Some(at) = overdue_since.filter(|at| *at < before) {
            pending_action::close_pending_action(conn, user, CloseReason::Expired, at)?;
        }
    }
    Ok(())
}

/// Deletes the follows that ended before `before`. The rows are found by their end time, because a follow may be open
/// for years and would block all later rows.
fn delete_ended_follows(conn: &mut Conn, before: Timestamp, limit: i64) -> QueryResult<RetentionProgress> {
    let ended: Vec<i64> = follows::table
        .filter(follows::ended_at.lt(ms(before)))
        .order(follows::ended_at)
        .limit(limit)
        .select(follows::id)
        .load(conn)?;
    let reached_limit = i64::try_from(ended.len()).is_ok_and(|count| count >= limit);
    for id in ended {
        diesel::delete(follows::table.find(id)).execute(conn)?;
    }
    Ok(if reached_limit { RetentionProgress::More } else { RetentionProgress::Done })
}

/// Table whose rows are erased in the order of their ids.
#[derive(Debug, Clone, Copy)]
enum RetentionTable {
    InboundMessages,
    Turns,
    OutboundMessages,
    Reactions,
    Approvals,
    TitleRequests,
    Notifications,
    StoredAnswers,
}

/// Row of a table, with the time since which the row is settled.
#[derive(Queryable)]
struct RetentionRow {
    id: i64,
    settled_at: Option<Timestamp>,
}

impl RetentionTable {
    const ALL: [Self; 8] = [
        Self::InboundMessages,
        Self::Turns,
        Self::OutboundMessages,
        Self::Reactions,
        Self::Approvals,
        Self::TitleRequests,
        Self::Notifications,
        Self::StoredAnswers,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::InboundMessages => "inbound_events",
            Self::Turns => "turns",
            Self::OutboundMessages => "outbox",
            Self::Reactions => "reactions",
            Self::Approvals => "approvals",
            Self::TitleRequests => "requests",
            Self::Notifications => "notices",
            Self::StoredAnswers => "agent_responses",
        }
    }

    /// Loads the next rows after an id, in order.
    fn load_rows(self, conn: &mut Conn, after: i64, limit: i64) -> QueryResult<Vec<RetentionRow>> {
        match self {
            Self::InboundMessages => load_inbound_rows(conn, after, limit),
            Self::Turns => load_turn_rows(conn, after, limit),
            Self::OutboundMessages => load_outbound_rows(conn, after, limit),
            Self::Reactions => load_reaction_rows(conn, after, limit),
            Self::Approvals => load_approval_rows(conn, after, limit),
            Self::TitleRequests => load_title_request_rows(conn, after, limit),
            Self::Notifications => load_notification_rows(conn, after, limit),
            Self::StoredAnswers => load_answer_rows(conn, after, limit),
        }
    }

    /// Returns whether the rows of the table are in a full-text index.
    fn is_indexed(self) -> bool {
        match self {
            Self::InboundMessages | Self::OutboundMessages | Self::StoredAnswers => true,
            Self::Turns | Self::Reactions | Self::Approvals | Self::TitleRequests | Self::Notifications => {
                false
            }
        }
    }

    fn erase_rows(self, conn: &mut Conn, scope: ErasureScope) -> QueryResult<()> {
        match self {
            Self::InboundMessages => erase::erase_inbound_messages(conn, scope),
            Self::Turns => erase::erase_turns(conn, scope),
            Self::OutboundMessages => erase::erase_outbound_messages(conn, scope),
            Self::Reactions => erase::erase_reactions(conn, scope),
            Self::Approvals => erase::erase_approval_titles(conn, scope),
            Self::TitleRequests => erase::delete_title_requests(conn, scope),
            Self::Notifications => erase::delete_notifications(conn, scope),
            Self::StoredAnswers => erase::erase_stored_answers(conn, scope),
        }
    }
}

fn load_inbound_rows(conn: &mut Conn, after: i64, limit: i64) -> QueryResult<Vec<RetentionRow>> {
    let rows: Vec<(i64, Timestamp, Option<InboundOutcome>)> = inbound_events::table
        .filter(inbound_events::id.gt(after))
        .order(inbound_events::id)
        .limit(limit)
        .select((inbound_events::id, inbound_events::received_at, inbound_events::outcome))
        .load(conn)?;
    Ok(rows
        .into_iter()
        .map(|(id, at, outcome)| RetentionRow { id, settled_at: outcome.map(|_| at) })
        .collect())
}

/// Loads turns with the time they finished. A turn is unsettled while its confirmation prompt is open, or while a later
/// turn executes the deletion.
fn load_turn_rows(conn: &mut Conn, after: i64, limit: i64) -> QueryResult<Vec<RetentionRow>> {
    // Separate queries, because a join would read every tool call.
    let held_calls = pending_actions::table.select(pending_actions::tool_call_id);
    let prompting: Vec<i64> =
        tool_calls::table.filter(tool_calls::id.eq_any(held_calls)).select(tool_calls::turn_id).load(conn)?;
    let running = turns::table.filter(turns::finished_at.is_null()).select(turns::id.nullable());
    let deleting: Vec<i64> = tool_calls::table
        .filter(tool_calls::run_turn_id.eq_any(running))
        .select(tool_calls::turn_id)
        .load(conn)?;
    let unsettled: HashSet<i64> = prompting.into_iter().chain(deleting).collect();
    let mut rows: Vec<RetentionRow> = turns::table
        .filter(turns::id.gt(after))
        .order(turns::id)
        .limit(limit)
        .select((turns::id, turns::finished_at))
        .load(conn)?;
    for row in &mut rows {
        row.settled_at = row.settled_at.filter(|_| !unsettled.contains(&row.id));
    }
    Ok(rows)
}

fn load_outbound_rows(conn: &mut Conn, after: i64, limit: i64) -> QueryResult<Vec<RetentionRow>> {
    let rows: Vec<(i64, Timestamp, OutboxState)> = outbox::table
        .filter(outbox::id.gt(after))
        .order(outbox::id)
        .limit(limit)
        .select((outbox::id, outbox::created_at, outbox::state))
        .load(conn)?;
    let row = |(id, at, state): (i64, Timestamp, OutboxState)| RetentionRow {
        id,
        settled_at: SETTLED.contains(&state).then_some(at),
    };
    Ok(rows.into_iter().map(row).collect())
}

fn load_reaction_rows(conn: &mut Conn, after: i64, limit: i64) -> QueryResult<Vec<RetentionRow>> {
    reactions::table
        .filter(reactions::id.gt(after))
        .order(reactions::id)
        .limit(limit)
        .select((reactions::id, reactions::created_at.nullable()))
        .load(conn)
}

fn load_approval_rows(conn: &mut Conn, after: i64, limit: i64) -> QueryResult<Vec<RetentionRow>> {
    approvals::table
        .filter(approvals::id.gt(after))
        .order(approvals::id)
        .limit(limit)
        .select((approvals::id, approvals::settled_at))
        .load(conn)
}

fn load_title_request_rows(conn: &mut Conn, after: i64, limit: i64) -> QueryResult<Vec<RetentionRow>> {
    requests::table
        .filter(requests::id.gt(after))
        .order(requests::id)
        .limit(limit)
        .select((requests::id, requests::settled_at))
        .load(conn)
}

fn load_notification_rows(conn: &mut Conn, after: i64, limit: i64) -> QueryResult<Vec<RetentionRow>> {
    notices::table
        .filter(notices::id.gt(after))
        .order(notices::id)
        .limit(limit)
        .select((notices::id, notices::created_at.nullable()))
        .load(conn)
}

fn load_answer_rows(conn: &mut Conn, after: i64, limit: i64) -> QueryResult<Vec<RetentionRow>> {
    agent_responses::table
        .filter(agent_responses::id.gt(after))
        .order(agent_responses::id)
        .limit(limit)
        .select((agent_responses::id, agent_responses::created_at.nullable()))
        .load(conn)
}

/// Returns the cursor of a table: the id of the last row that was erased.
fn load_sweep_cursor(conn: &mut Conn, name: &str) -> QueryResult<Option<i64>> {
    sweeps::table.find(name).select(sweeps::last_id).first(conn).optional()
}

fn store_sweep_cursor(conn: &mut Conn, name: &str, cursor: i64, now: Timestamp) -> QueryResult<()> {
    diesel::insert_into(sweeps::table)
        .values((sweeps::name.eq(name), sweeps::last_id.eq(cursor), sweeps::updated_at.eq(ms(now))))
        .on_conflict(sweeps::name)
        .do_update()
        .set((sweeps::last_id.eq(cursor), sweeps::updated_at.eq(ms(now))))
        .execute(conn)
        .map(drop)
}
