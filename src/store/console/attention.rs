//! Items that need the operator's attention.

use diesel::prelude::*;
use jiff::Timestamp;

use super::NEWEST;
use super::user_ref::{self, UserRef};
use crate::conversation::transcript::{ConversationId, TurnId, User, UserId};
use crate::store::confirmation::approvals::{self, Approval};
use crate::store::confirmation::code_misses;
use crate::store::database::backup::load_backup_failure;
use crate::store::database::literal_sql::literal_sql;
use crate::store::people::{join_requests, users};
use crate::store::queue::outbox::{OPEN as OPEN_MESSAGE, OutboxState};
use crate::store::schema::{conversations, outbox, pauses, tool_calls, turns};
use crate::store::turns::daily_budget::Day;
use crate::store::{Conn, QueryResult};

literal_sql! {
    const FAILED_TURN = "turns.state IN ('FAILED','ERROR')";
    const UNKNOWN_CALL = "tool_calls.state = 'unknown'";
    const OPEN_PAUSE = "pauses.ended_at IS NULL";
}
/// Maximum number of failed turns that are listed.
const FAILED_TURN_LIMIT: i64 = 8;

/// Items that wait for a decision or a check by the operator.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionItems {
    pub paused_since: Option<Timestamp>,
    /// Newcomers who have given their name, oldest first.
    pub newcomers: Vec<User>,
    pub removal_requests: Vec<(Approval, User)>,
    /// Admins who get no messages because they have opted out.
    pub opted_out_admins: Vec<User>,
    /// Users who cannot delete or approve by message today, after too many wrong codes.
    pub suspended_users: Vec<User>,
    /// Messages and changes with an unknown outcome.
    pub unresolved: Vec<UnresolvedEffect>,
    pub failed_turns: Vec<FailedTurnSummary>,
    /// Time of the last backup, if it failed.
    pub backup_failed_at: Option<Timestamp>,
}

/// Message or tool call with an unknown outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnresolvedEffect {
    pub kind: UnresolvedEffectKind,
    pub since: Timestamp,
    pub conversation: Option<ConversationId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnresolvedEffectKind {
    Message,
    /// Name of the interrupted tool.
    Call(String),
}

/// Turn that ended without doing the requested work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedTurnSummary {
    pub conversation: ConversationId,
    pub name: String,
    pub user: UserRef,
    pub at: Timestamp,
}

/// Loads all items that need attention. Failed turns are listed only if they ended at `since` or later.
pub fn load_attention_items(
    conn: &mut Conn,
    since: Timestamp,
    today: &Day,
    now: Timestamp,
) -> QueryResult<AttentionItems> {
    let paused_since = pauses::table.filter(OPEN_PAUSE).select(pauses::begun_at).first(conn).optional()?;
    let named = join_requests::load_named_newcomers(conn)?;
    let newcomers = named.into_iter().map(|id| users::load_user(conn, id)).collect::<QueryResult<_>>()?;
    let mut removal_requests = Vec::new();
    for approval in approvals::load_open_approvals(conn)? {
        if approval.kind.is_removal() && !approval.has_expired(now) {
            let requester = users::load_user(conn, approval.user)?;
            removal_requests.push((approval, requester));
        }
    }
    let opted_out_admins = users::load_admins(conn)?.into_iter().filter(|admin| admin.opted_out).collect();
    Ok(AttentionItems {
        paused_since,
        newcomers,
        removal_requests,
        opted_out_admins,
        suspended_users: code_misses::load_suspended_users(conn, today)?,
        unresolved: load_unresolved_effects(conn)?,
        failed_turns: load_failed_turns(conn, since)?,
        backup_failed_at: load_backup_failure(conn)?,
    })
}

fn load_unresolved_effects(conn: &mut Conn) -> QueryResult<Vec<UnresolvedEffect>> {
    let messages: Vec<(Timestamp, Option<TurnId>)> = outbox::table
        .filter(OPEN_MESSAGE.and(outbox::state.eq(OutboxState::Unknown)))
        .select((outbox::unknown_at.assume_not_null(), outbox::turn_id))
        .load(conn)?;
    let calls: Vec<(Timestamp, TurnId, String)> = tool_calls::table
        .filter(UNKNOWN_CALL)
        .select((tool_calls::unknown_at.assume_not_null(), tool_calls::turn_id, tool_calls::tool_name))
        .load(conn)?;
    let messages = messages.into_iter().map(|(at, turn)| (at, turn, UnresolvedEffectKind::Message));
    let calls = calls.into_iter().map(|(at, turn, tool)| (at, Some(turn), UnresolvedEffectKind::Call(tool)));
    let mut effects = Vec::new();
    for (since, turn, kind) in messages.chain(calls) {
        let conversation = match turn {
            Some(turn) => Some(turns::table.find(turn).select(turns::conversation_id).first(conn)?),
            None => None,
        };
        effects.push(UnresolvedEffect { kind, since, conversation });
    }
    effects.sort_by_key(|effect| std::cmp::Reverse(effect.since));
    Ok(effects)
}

fn load_failed_turns(conn: &mut Conn, since: Timestamp) -> QueryResult<Vec<FailedTurnSummary>> {
    let rows: Vec<(ConversationId, UserId, Timestamp)> = turns::table
        .filter(FAILED_TURN.and(turns::id.lt(NEWEST)))
        .order(turns::id.desc())
        .limit(FAILED_TURN_LIMIT)
        .select((turns::conversation_id, turns::user_id, turns::updated_at))
        .load(conn)?;
    let mut failed_turns = Vec::with_capacity(rows.len());
    for (id, user, at) in rows {
        let name = conversations::table.find(id).select(conversations::name).first(conn)?;
        let user = user_ref::load_user_ref(conn, user)?;
        failed_turns.push(FailedTurnSummary { conversation: id, name, user, at });
    }
    Ok(failed_turns.into_iter().filter(|turn| turn.at >= since).collect())
}
