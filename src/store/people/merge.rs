//! Merge of two users who are the same person: all rows of one become rows of the other, who keeps the stricter rights.

use diesel::prelude::*;
use diesel::sql_types::BigInt;
use jiff::Timestamp;
use serde_json::json;

use super::{addresses, age_limits, join_requests, users as user_rows};
use crate::conversation::transcript::{User, UserId, UserRights, UserRole, UserStatus};
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::approvals;
use crate::store::confirmation::pending_action::{self, CloseReason};
use crate::store::conversation::conversations::{self as conversation_rows, EndReason};
use crate::store::library::quotas::{self, QuotaOverride};
use crate::store::library::space_answers;
use crate::store::memory::{facts, groups};
use crate::store::queue::suppression;
use crate::store::schema::{conversations, inbound_events, outbox, requests, user_facts, users};
use crate::store::stream::recording;
use crate::store::turns::turn_lifecycle;
use crate::store::{Conn, console_access};

/// Users of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergedUsers {
    /// User whose rows are moved.
    pub from: UserId,
    /// User who remains.
    pub into: UserId,
}

/// Outcome of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeOutcome {
    Merged,
    /// A turn of one of the users is running.
    Busy,
    /// The stricter rights would leave no active admin.
    LastAdmin,
    /// One of the users does not exist or is erased, is a test user, or both are the same.
    NotMergeable,
}

/// Contents and result of a merge, as shown before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergePreview {
    pub from: User,
    pub into: User,
    /// Rows that move.
    pub messages: i64,
    pub conversations: i64,
    pub requests: i64,
    pub facts: i64,
    pub addresses: usize,
    /// Whether an open confirmation prompt of either user is closed.
    pub closes_prompt: bool,
    pub status: UserStatus,
    pub rights: UserRights,
}

/// Loads the preview of a merge; `None` if the users cannot be merged.
pub fn preview_merge(conn: &mut Conn, merged: MergedUsers) -> QueryResult<Option<MergePreview>> {
    let Some((from, into)) = load_users(conn, merged)? else { return Ok(None) };
    let received: i64 =
        inbound_events::table.filter(inbound_events::user_id.eq(from.id)).count().get_result(conn)?;
    let sent: i64 = outbox::table.filter(outbox::user_id.eq(from.id)).count().get_result(conn)?;
    let (status, rights) = stricter_access(&from, &into);
    Ok(Some(MergePreview {
        messages: received + sent,
        conversations: conversations::table
            .filter(conversations::user_id.eq(from.id))
            .count()
            .get_result(conn)?,
        requests: requests::table.filter(requests::user_id.eq(from.id)).count().get_result(conn)?,
        facts: user_facts::table.filter(user_facts::user_id.eq(from.id)).count().get_result(conn)?,
        addresses: addresses::load_addresses(conn, from.id)?.len(),
        closes_prompt: pending_action::load_pending_action(conn, from.id)?.is_some()
            || pending_action::load_pending_action(conn, into.id)?.is_some(),
        status,
        rights,
        from,
        into,
    }))
}

/// Merges two users. `household` are the limits of users without limits of their own.
pub fn merge_users(
    conn: &mut Conn,
    merged: MergedUsers,
    household: QuotaOverride,
    actor: Actor,
    now: Timestamp,
) -> QueryResult<MergeOutcome> {
    let Some((from, into)) = load_users(conn, merged)? else { return Ok(MergeOutcome::NotMergeable) };
    for user in [from.id, into.id] {
        if turn_lifecycle::load_active_turn(conn, user)?.is_some() {
            return Ok(MergeOutcome::Busy);
        }
    }
    let (status, rights) = stricter_access(&from, &into);
    let keeps_admin = status == UserStatus::Active && rights.role == UserRole::Admin;
    let admins = user_rows::load_admins(conn)?;
    let is_other = |admin: &User| admin.id != from.id && admin.id != into.id;
    if !keeps_admin && !admins.is_empty() && !admins.iter().any(is_other) {
        return Ok(MergeOutcome::LastAdmin);
    }
    pending_action::close_pending_action(conn, into.id, CloseReason::Dropped, now)?;
    move_user(conn, (&from, &into), (household, actor), now)?;
    join_requests::end_wait(conn, into.id, status, now)?;
    user_rows::set_rights(conn, into.id, rights, now)?;
    age_limits::set_rating_caps(conn, into.id, rights.caps, now)?;
    age_limits::set_parent(conn, into.id, rights.parent, now)?;
    if !rights.rating_caps().is_unlimited() {
        // The texts of the other user may name titles over the caps.
        age_limits::withdraw_readable_texts(conn, into.id, now)?;
    }
    Ok(MergeOutcome::Merged)
}

/// Makes the address of a newcomer, and the newcomer's messages, those of a user, who keeps all rights. A newcomer has no
/// rights that could be stricter.
pub fn absorb_newcomer(
    conn: &mut Conn,
    merged: MergedUsers,
    actor: Actor,
    now: Timestamp,
) -> QueryResult<MergeOutcome> {
    let Some((from, into)) = load_users(conn, merged)? else { return Ok(MergeOutcome::NotMergeable) };
    if from.status != UserStatus::Pending {
        return Ok(MergeOutcome::NotMergeable);
    }
    if turn_lifecycle::load_active_turn(conn, from.id)?.is_some() {
        return Ok(MergeOutcome::Busy);
    }
    move_user(conn, (&from, &into), (QuotaOverride::default(), actor), now)?;
    Ok(MergeOutcome::Merged)
}

fn load_users(conn: &mut Conn, merged: MergedUsers) -> QueryResult<Option<(User, User)>> {
    let mut load = |id| super::user_admin::find_known_user(conn, id);
    let users = load(merged.from)?.zip(load(merged.into)?);
    Ok(users.filter(|(from, into)| from.id != into.id && !from.test && !into.test))
}

/// Returns the stricter status and rights. A newcomer was never given any rights, so those of the other user count.
fn stricter_access(from: &User, into: &User) -> (UserStatus, UserRights) {
    let status = match (from.status, into.status) {
        (UserStatus::Blocked, _) | (_, UserStatus::Blocked) => UserStatus::Blocked,
        (UserStatus::Active, _) | (_, UserStatus::Active) => UserStatus::Active,
        (UserStatus::Pending, UserStatus::Pending) => UserStatus::Pending,
    };
    let rights = match (from.status, into.status) {
        (UserStatus::Pending, _) => into.rights,
        (_, UserStatus::Pending) => from.rights,
        _ => UserRights {
            role: match (from.rights.role, into.rights.role) {
                (UserRole::Admin, UserRole::Admin) => UserRole::Admin,
                (UserRole::Member, _) | (_, UserRole::Member) => UserRole::Member,
            },
            add: from.rights.may_add() && into.rights.may_add(),
            delete: from.rights.may_delete() && into.rights.may_delete(),
            four_k: from.rights.may_use_four_k() && into.rights.may_use_four_k(),
            parent: from.rights.parent && into.rights.parent,
            caps: from.rights.caps.strictest(into.rights.caps),
        },
    };
    (status, rights)
}

fn move_user(
    conn: &mut Conn,
    (from, into): (&User, &User),
    (household, actor): (QuotaOverride, Actor),
    now: Timestamp,
) -> QueryResult<()> {
    let (from_id, into_id) = (from.id, into.id);
    let detail = json!({ "merged": from_id.0 });
    let entry = NewAuditEntry { actor, kind: "merge", subject: AuditSubject::User(into_id), detail };
    audit::record_change(conn, &entry, now)?;
    pending_action::close_pending_action(conn, from_id, CloseReason::Dropped, now)?;
    // A key was given for a person with that person's rights.
    console_access::revoke_agent_keys(conn, from_id, now)?;
    approvals::withdraw_approvals(conn, from_id, now)?;
    for approval in approvals::load_approval_ids_about(conn, from_id)? {
        suppression::suppress_messages_by_key(conn, &format!("approval:{approval}"), now)?;
    }
    if let Some(open) = conversation_rows::load_open_conversation(conn, from_id)? {
        conversation_rows::end_conversation(conn, open.id, EndReason::Superseded, now)?;
    }
    groups::detach_groups(conn, from_id)?;
    // The numbers in the texts of the two users stand for different titles.
    space_answers::withdraw_questions(conn, from_id, now)?;
    facts::move_facts(conn, (from_id, into_id), now)?;
    if from.status != UserStatus::Pending {
        let quota = stricter_quota(conn, (from_id, into_id), household)?;
        quotas::store_quota_override(conn, into_id, quota, now)?;
    }
    for statement in MOVE_STATEMENTS {
        diesel::sql_query(*statement).bind::<BigInt, _>(from_id).bind::<BigInt, _>(into_id).execute(conn)?;
    }
    diesel::delete(users::table.find(from_id)).execute(conn)?;
    // Cached turns, and the readers of the pages, refer to the user who no longer exists.
    recording::record_changed_history();
    recording::record_reset();
    Ok(())
}

/// Returns the lower limits. A user without a limit of their own has the household's.
fn stricter_quota(
    conn: &mut Conn,
    (from, into): (UserId, UserId),
    household: QuotaOverride,
) -> QueryResult<QuotaOverride> {
    let (from, into) = (quotas::load_quota_override(conn, from)?, quotas::load_quota_override(conn, into)?);
    let stricter = |from: Option<u32>, into: Option<u32>, household: Option<u32>| {
        let unlimited = household.unwrap_or(u32::MAX);
        let lower = from.unwrap_or(unlimited).min(into.unwrap_or(unlimited));
        if from.is_none() && into.is_none() || lower == unlimited { None } else { Some(lower) }
    };
    Ok(QuotaOverride {
        movies: stricter(from.movies, into.movies, household.movies),
        seasons: stricter(from.seasons, into.seasons, household.seasons),
        space_gb: stricter(from.space_gb, into.space_gb, household.space_gb),
    })
}

/// Statements that move the rows of user `?1` to user `?2`. Where both have a row that may exist once, the other user's
/// remains.
const MOVE_STATEMENTS: &[&str] = &[
    // Open messages without an address would otherwise be sent to an address of the other user.
    "UPDATE outbox SET address_id = (SELECT min(id) FROM user_addresses WHERE user_id = ?1) WHERE user_id = ?1 AND ?2 > 0 \
     AND address_id IS NULL AND state IN ('queued','attempting','unknown') AND from_addr NOT IN ('console','local')",
    "UPDATE inbound_events SET address_id = (SELECT min(id) FROM user_addresses WHERE user_id = ?1) WHERE user_id = ?1 \
     AND ?2 > 0 AND address_id IS NULL AND state IN ('pending','processing') AND to_addr NOT IN ('console','local')",
    "UPDATE user_addresses SET preferred_from = NULL WHERE user_id = ?1 AND ?2 > 0",
    "UPDATE user_addresses SET user_id = ?2 WHERE user_id = ?1",
    "DELETE FROM link_codes WHERE user_id = ?1 AND ?2 > 0",
    "DELETE FROM viewer_accounts WHERE user_id = ?1 AND server = 'seerr' AND EXISTS \
     (SELECT 1 FROM viewer_accounts WHERE user_id = ?2 AND server = 'seerr')",
    "UPDATE viewer_accounts SET user_id = ?2 WHERE user_id = ?1",
    "UPDATE conversations SET user_id = ?2 WHERE user_id = ?1",
    "UPDATE turns SET user_id = ?2 WHERE user_id = ?1",
    "UPDATE api_keys SET user_id = ?2 WHERE user_id = ?1",
    "UPDATE agent_calls SET user_id = ?2 WHERE user_id = ?1",
    "UPDATE inbound_events SET user_id = ?2 WHERE user_id = ?1",
    "UPDATE outbox SET user_id = ?2 WHERE user_id = ?1",
    "UPDATE votes SET user_id = ?2 WHERE user_id = ?1",
    "UPDATE OR IGNORE ballots SET user_id = ?2 WHERE user_id = ?1",
    "DELETE FROM ballots WHERE user_id = ?1 AND ?2 > 0",
    "UPDATE OR IGNORE digest_settings SET user_id = ?2 WHERE user_id = ?1",
    "DELETE FROM digest_settings WHERE user_id = ?1 AND ?2 > 0",
    "UPDATE approvals SET user_id = ?2 WHERE user_id = ?1",
    "UPDATE OR IGNORE approved_titles SET user_id = ?2 WHERE user_id = ?1",
    "DELETE FROM approved_titles WHERE user_id = ?1 AND ?2 > 0",
    "UPDATE approvals SET settled_by = ?2 WHERE settled_by = ?1",
    "UPDATE pauses SET begun_by = ?2 WHERE begun_by = ?1",
    "UPDATE pauses SET ended_by = ?2 WHERE ended_by = ?1",
    "UPDATE additions SET user_id = ?2 WHERE user_id = ?1",
    "UPDATE requests SET user_id = ?2 WHERE user_id = ?1",
    "INSERT INTO title_attributions SELECT ?2, instance, kind, catalog_id, first_requested_at FROM title_attributions \
     WHERE user_id = ?1 ON CONFLICT (user_id, instance, kind, catalog_id) DO UPDATE SET \
     first_requested_at = min(title_attributions.first_requested_at, excluded.first_requested_at)",
    "DELETE FROM title_attributions WHERE user_id = ?1 AND ?2 > 0",
    "UPDATE space_proposals SET user_id = ?2 WHERE user_id = ?1",
    "UPDATE OR IGNORE space_proposal_answers SET user_id = ?2 WHERE user_id = ?1",
    "DELETE FROM space_proposal_answers WHERE user_id = ?1 AND ?2 > 0",
    "UPDATE OR IGNORE kept_titles SET user_id = ?2 WHERE user_id = ?1",
    "DELETE FROM kept_titles WHERE user_id = ?1 AND ?2 > 0",
    "UPDATE reactions SET user_id = ?2 WHERE user_id = ?1",
    "UPDATE audit_log SET user_id = ?2 WHERE user_id = ?1",
    "UPDATE audit_log SET subject = 'user:' || ?2 WHERE subject = 'user:' || ?1",
    "UPDATE follows SET ended_at = created_at WHERE user_id = ?1 AND ended_at IS NULL AND EXISTS (SELECT 1 FROM follows f \
     WHERE f.user_id = ?2 AND f.ended_at IS NULL AND (f.kind, f.catalog_id, f.instance) = \
     (follows.kind, follows.catalog_id, follows.instance) AND f.season IS follows.season)",
    "UPDATE follows SET user_id = ?2 WHERE user_id = ?1",
    "DELETE FROM notices WHERE user_id = ?1 AND matter IN (SELECT matter FROM notices WHERE user_id = ?2)",
    "UPDATE notices SET user_id = ?2 WHERE user_id = ?1",
    "INSERT INTO usage SELECT day, ?2, model_calls, tokens_in, tokens_cached, tokens_out, cost_micros, segments \
     FROM usage WHERE user_id = ?1 ON CONFLICT (day, user_id) DO UPDATE SET \
     model_calls = usage.model_calls + excluded.model_calls, tokens_in = usage.tokens_in + excluded.tokens_in, \
     tokens_cached = usage.tokens_cached + excluded.tokens_cached, tokens_out = usage.tokens_out + excluded.tokens_out, \
     cost_micros = usage.cost_micros + excluded.cost_micros, segments = usage.segments + excluded.segments",
    "DELETE FROM usage WHERE user_id = ?1 AND ?2 > 0",
    "DELETE FROM memory_group_members WHERE user_id = ?1 AND group_id IN (SELECT group_id FROM memory_group_members \
     WHERE user_id = ?2)",
    "UPDATE memory_group_members SET user_id = ?2 WHERE user_id = ?1",
    "UPDATE agent_responses SET user_id = ?2, owner = CASE scope WHEN 'user' THEN 'u' || ?2 ELSE owner END, \
     revision = id + (SELECT max(revision) + 1 FROM agent_responses) \
     WHERE owner = 'u' || ?1 OR (scope <> 'user' AND user_id = ?1)",
    "UPDATE users SET display_name = coalesce(display_name, (SELECT display_name FROM users WHERE id = ?1)), \
     code_misses = max(code_misses, (SELECT code_misses FROM users WHERE id = ?1)), \
     code_misses_day = coalesce(max(code_misses_day, (SELECT code_misses_day FROM users WHERE id = ?1)), \
     code_misses_day, (SELECT code_misses_day FROM users WHERE id = ?1)) WHERE id = ?2",
];
