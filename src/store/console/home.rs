//! Items that need the operator's attention.

use diesel::prelude::*;
use jiff::Timestamp;

use super::NEWEST;
use super::who::{self, Who};
use crate::conversation::transcript::{ConversationId, User, UserId};
use crate::store::approvals::{self, Approval, Matter};
use crate::store::codec::time;
use crate::store::schema::{conversations, outbox, pauses, tool_calls, turns};
use crate::store::spend::Day;
use crate::store::written::Written;
use crate::store::{Conn, QueryResult, code_misses, joining, outbox as texts, users as people};

const FAILED_TURN: Written = Written("turns.state IN ('FAILED','ERROR')");
const UNKNOWN_CALL: Written = Written("tool_calls.state = 'unknown'");
const PAUSED: Written = Written("pauses.ended_at IS NULL");
/// Maximum number of failed turns that are listed.
const TURNS: i64 = 8;

/// All items that wait for a decision or a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Needs {
    pub paused_since: Option<Timestamp>,
    /// Newcomers who have given their name, longest waiting first.
    pub newcomers: Vec<User>,
    pub wishes: Vec<(Approval, User)>,
    /// Admins who get no messages because they have opted out.
    pub silent_admins: Vec<User>,
    /// Users who may not delete or approve anything by text today.
    pub suspended: Vec<User>,
    /// Messages and changes with an unknown outcome.
    pub unknown: Vec<Unknown>,
    pub broken: Vec<Broken>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    pub what: UnknownWhat,
    pub since: Timestamp,
    pub conversation: Option<ConversationId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnknownWhat {
    Text,
    /// Name of the interrupted tool.
    Call(String),
}

/// Turn that ended without doing the requested work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub conversation: ConversationId,
    pub name: String,
    pub who: Who,
    pub at: Timestamp,
}

/// Loads all items that need attention. `since` limits how old the listed failures may be.
pub fn needs(conn: &mut Conn, since: Timestamp, today: &Day, now: Timestamp) -> QueryResult<Needs> {
    let paused: Option<i64> = pauses::table.filter(PAUSED).select(pauses::begun_at).first(conn).optional()?;
    let named = joining::named(conn)?;
    let newcomers = named.into_iter().map(|id| people::get(conn, id)).collect::<QueryResult<_>>()?;
    let mut wishes = Vec::new();
    for open in approvals::open(conn)? {
        if open.matter != Matter::Join && !open.is_over(now) {
            let about = people::get(conn, open.user)?;
            wishes.push((open, about));
        }
    }
    let silent_admins = people::admins(conn)?.into_iter().filter(|admin| admin.opted_out).collect();
    Ok(Needs {
        paused_since: paused.map(time).transpose()?,
        newcomers,
        wishes,
        silent_admins,
        suspended: code_misses::load_suspended(conn, today)?,
        unknown: unknown(conn)?,
        broken: broken(conn, since)?,
    })
}

fn unknown(conn: &mut Conn) -> QueryResult<Vec<Unknown>> {
    let lost: Vec<(i64, Option<i64>)> = outbox::table
        .filter(texts::OPEN.and(outbox::state.eq("unknown")))
        .select((outbox::unknown_at.assume_not_null(), outbox::turn_id))
        .load(conn)?;
    let calls: Vec<(i64, i64, String)> = tool_calls::table
        .filter(UNKNOWN_CALL)
        .select((tool_calls::unknown_at.assume_not_null(), tool_calls::turn_id, tool_calls::tool_name))
        .load(conn)?;
    let lost = lost.into_iter().map(|(at, turn)| (at, turn, UnknownWhat::Text));
    let calls = calls.into_iter().map(|(at, turn, tool)| (at, Some(turn), UnknownWhat::Call(tool)));
    let mut unknown = Vec::new();
    for (at, turn, what) in lost.chain(calls) {
        let conversation: Option<i64> = match turn {
            Some(turn) => Some(turns::table.find(turn).select(turns::conversation_id).first(conn)?),
            None => None,
        };
        unknown.push(Unknown { what, since: time(at)?, conversation: conversation.map(ConversationId) });
    }
    unknown.sort_by_key(|unknown| std::cmp::Reverse(unknown.since));
    Ok(unknown)
}

fn broken(conn: &mut Conn, since: Timestamp) -> QueryResult<Vec<Broken>> {
    let rows: Vec<(i64, i64, i64)> = turns::table
        .filter(FAILED_TURN.and(turns::id.lt(NEWEST)))
        .order(turns::id.desc())
        .limit(TURNS)
        .select((turns::conversation_id, turns::user_id, turns::updated_at))
        .load(conn)?;
    let mut broken = Vec::with_capacity(rows.len());
    for (id, user, at) in rows {
        let name = conversations::table.find(id).select(conversations::name).first(conn)?;
        let who = who::by_id(conn, UserId(user))?;
        broken.push(Broken { conversation: ConversationId(id), name, who, at: time(at)? });
    }
    Ok(broken.into_iter().filter(|turn| turn.at >= since).collect())
}
