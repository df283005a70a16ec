//! Schedule of the outbox: the messages to send or to look up now, and the messages that wait for their time.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use diesel::prelude::*;
use jiff::Timestamp;

use super::lookups;
use super::outbox::OPEN;
use crate::conversation::transcript::OutboxId;
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::schema::{outbox, pending_actions, turns};

/// Work that is due for the relay, and the time of the next work.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutboxSchedule {
    /// Due rows; at most one per user, since the messages of a user are sent in order.
    pub due: Vec<(OutboxId, OutboxTask)>,
    /// Time at which the next waiting row is due, in milliseconds.
    pub next_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutboxTask {
    Send,
    /// The message was queued before this start: the relay checks whether it was sent since, then sends it.
    LookUpThenSend,
    /// The delivery status is unknown: the relay checks whether the carrier accepted the message.
    LookUp,
}

/// Computes the schedule. `look_after` holds the delays of the lookups, counted from the time the delivery status
/// became unknown.
pub fn load_outbox_schedule(
    conn: &mut Conn,
    look_after: &[Duration],
    now: Timestamp,
) -> QueryResult<OutboxSchedule> {
    let rows = load_open_messages(conn)?;
    let mut agenda = OutboxSchedule::default();
    let mut last_user = None;
    let asked = match rows.iter().any(|(_, _, kind, ..)| kind == "notice") {
        true => load_prompted_users(conn, now)?,
        false => HashMap::new(),
    };
    let answered = match rows.iter().any(|(_, _, _, picture, ..)| *picture) {
        true => load_users_with_live_turn(conn)?,
        false => HashSet::new(),
    };
    let on_the_way: HashSet<i64> = rows
        .iter()
        .filter(|(.., state, _, _, _, _)| state == "attempting")
        .map(|(_, user, ..)| *user)
        .collect();
    for (id, user, kind, picture, state, not_before, looks, unknown_at, lookups_left) in rows {
        if picture && answered.contains(&user) {
            // The text messages of a turn are sent before a picture; the end of the turn wakes the relay.
            continue;
        }
        if kind == "confirm_prompt" && state == "queued" && on_the_way.contains(&user) {
            // A picture that is being sent would arrive between the confirmation prompt and its reply.
            last_user = Some(user);
            continue;
        }
        if kind == "notice"
            && state == "queued"
            && let Some(until) = asked.get(&user)
        {
            // The notification waits for the reply, and no other message waits for the notification.
            agenda.next_ms = earlier_time(agenda.next_ms, *until);
            continue;
        }
        if kind == "notice" && state == "queued" && not_before > ms(now) {
            // No message waits for a message that is not due yet.
            agenda.next_ms = earlier_time(agenda.next_ms, Some(not_before));
            continue;
        }
        // Only the oldest open row of each user counts: a row whose delivery status is unknown blocks the others.
        if last_user.replace(user) == Some(user) {
            continue;
        }
        let (todo, at) = match state.as_str() {
            "queued" if lookups::is_lookup_needed(lookups_left) => (OutboxTask::LookUpThenSend, not_before),
            "queued" => (OutboxTask::Send, not_before),
            "unknown" => {
                let wait = usize::try_from(looks).ok().and_then(|looks| look_after.get(looks));
                let wait = wait.or(look_after.last()).copied().unwrap_or_default();
                let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
                (OutboxTask::LookUp, not_before.max(unknown_at.unwrap_or_default().saturating_add(wait)))
            }
            _ => continue,
        };
        if at <= ms(now) {
            agenda.due.push((OutboxId(id), todo));
        } else {
            agenda.next_ms = earlier_time(agenda.next_ms, Some(at));
        }
    }
    Ok(agenda)
}

/// Columns: id, user, kind, true for a picture, state, not before, number of lookups, time since which the delivery
/// status is unknown, and lookups left before the message may be sent.
type OpenMessageRow = (i64, i64, String, bool, String, i64, i64, Option<i64>, i64);

/// Loads the open rows, grouped by user, in the order in which they are sent.
fn load_open_messages(conn: &mut Conn) -> QueryResult<Vec<OpenMessageRow>> {
    outbox::table
        .filter(OPEN)
        // A picture is optional: no text message waits for it.
        .order((outbox::user_id, outbox::media_url.is_not_null(), outbox::id))
        .select((
            outbox::id,
            outbox::user_id,
            outbox::kind,
            outbox::media_url.is_not_null(),
            outbox::state,
            outbox::not_before,
            outbox::looks,
            outbox::unknown_at,
            outbox::lookups_left,
        ))
        .load(conn)
}

/// Loads the users with a running turn.
fn load_users_with_live_turn(conn: &mut Conn) -> QueryResult<HashSet<i64>> {
    let live = turns::table.filter(turns::finished_at.is_null()).select(turns::user_id);
    Ok(live.load::<i64>(conn)?.into_iter().collect())
}

fn earlier_time(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    a.into_iter().chain(b).min()
}

/// Loads the users with a confirmation prompt that is open or in transit, each with the expiry if known.
pub(in crate::store) fn load_prompted_users(
    conn: &mut Conn,
    now: Timestamp,
) -> QueryResult<HashMap<i64, Option<i64>>> {
    let open: Vec<(i64, Option<i64>, String)> = pending_actions::table
        .inner_join(outbox::table.on(outbox::id.eq(pending_actions::prompt_outbox_id)))
        .select((pending_actions::user_id, pending_actions::expires_at, outbox::state))
        .load(conn)?;
    let asked = open.into_iter().filter_map(|(user, expires_at, state)| match expires_at {
        Some(at) if at <= ms(now) => None,
        None if matches!(state.as_str(), "failed" | "suppressed") => None,
        until => Some((user, until)),
    });
    Ok(asked.collect())
}
