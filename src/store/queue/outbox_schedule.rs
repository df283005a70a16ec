//! Schedule of the outbox: the messages to send or to look up now, and the messages that wait for their time.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use diesel::prelude::*;
use jiff::Timestamp;

use super::lookups;
use super::outbox::{OPEN, OutboundKind, OutboxState};
use crate::conversation::transcript::{OutboxId, UserId};
use crate::store::Conn;
use crate::store::schema::{outbox, pending_actions, turns};

/// Work that is due for the relay, and the time of the next work.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutboxSchedule {
    /// Due rows; at most one per user, since the messages of a user are sent in order.
    pub due: Vec<(OutboxId, OutboxTask)>,
    /// Time at which the next waiting row is due.
    pub next: Option<Timestamp>,
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
    let asked = match rows.iter().any(|row| row.kind == OutboundKind::Notice) {
        true => load_prompted_users(conn, now)?,
        false => HashMap::new(),
    };
    let answered = match rows.iter().any(|row| row.is_picture) {
        true => load_users_with_live_turn(conn)?,
        false => HashSet::new(),
    };
    let on_the_way: HashSet<UserId> =
        rows.iter().filter(|row| row.state == OutboxState::Attempting).map(|row| row.user_id).collect();
    for row in rows {
        let OpenMessageRow { id, user_id: user, kind, is_picture, state, not_before, .. } = row;
        if is_picture && answered.contains(&user) {
            // The text messages of a turn are sent before a picture; the end of the turn wakes the relay.
            continue;
        }
        let is_queued = state == OutboxState::Queued;
        if kind == OutboundKind::ConfirmPrompt && is_queued && on_the_way.contains(&user) {
            // A picture that is being sent would arrive between the confirmation prompt and its reply.
            last_user = Some(user);
            continue;
        }
        if kind == OutboundKind::Notice
            && is_queued
            && let Some(until) = asked.get(&user)
        {
            // The notification waits for the reply, and no other message waits for the notification.
            agenda.next = earlier_time(agenda.next, *until);
            continue;
        }
        if kind == OutboundKind::Notice && is_queued && not_before > now {
            // No message waits for a message that is not due yet.
            agenda.next = earlier_time(agenda.next, Some(not_before));
            continue;
        }
        // Only the oldest open row of each user counts: a row whose delivery status is unknown blocks the others.
        if last_user.replace(user) == Some(user) {
            continue;
        }
        let (todo, at) = match state {
            OutboxState::Queued if lookups::is_lookup_needed(row.lookups_left) => {
                (OutboxTask::LookUpThenSend, not_before)
            }
            OutboxState::Queued => (OutboxTask::Send, not_before),
            OutboxState::Unknown => {
                let wait = usize::try_from(row.looks).ok().and_then(|looks| look_after.get(looks));
                let wait = wait.or(look_after.last()).copied().unwrap_or_default();
                let at = row.unknown_at.unwrap_or_default().saturating_add(wait).unwrap_or(Timestamp::MAX);
                (OutboxTask::LookUp, not_before.max(at))
            }
            OutboxState::Attempting
            | OutboxState::Accepted
            | OutboxState::Failed
            | OutboxState::Suppressed => continue,
        };
        if at <= now {
            agenda.due.push((id, todo));
        } else {
            agenda.next = earlier_time(agenda.next, Some(at));
        }
    }
    Ok(agenda)
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = outbox)]
struct OpenMessageRow {
    id: OutboxId,
    user_id: UserId,
    kind: OutboundKind,
    #[diesel(select_expression = outbox::media_url.is_not_null())]
    is_picture: bool,
    state: OutboxState,
    not_before: Timestamp,
    looks: i64,
    unknown_at: Option<Timestamp>,
    lookups_left: i64,
}

/// Loads the open rows, grouped by user, in the order in which they are sent.
fn load_open_messages(conn: &mut Conn) -> QueryResult<Vec<OpenMessageRow>> {
    outbox::table
        .filter(OPEN)
        // A picture is optional: no text message waits for it.
        .order((outbox::user_id, outbox::media_url.is_not_null(), outbox::id))
        .select(OpenMessageRow::as_select())
        .load(conn)
}

/// Loads the users with a running turn.
fn load_users_with_live_turn(conn: &mut Conn) -> QueryResult<HashSet<UserId>> {
    let live = turns::table.filter(turns::finished_at.is_null()).select(turns::user_id);
    Ok(live.load::<UserId>(conn)?.into_iter().collect())
}

fn earlier_time(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}

/// Loads the users with a confirmation prompt that is open or in transit, each with the expiry if known.
pub(in crate::store) fn load_prompted_users(
    conn: &mut Conn,
    now: Timestamp,
) -> QueryResult<HashMap<UserId, Option<Timestamp>>> {
    let open: Vec<(UserId, Option<Timestamp>, OutboxState)> = pending_actions::table
        .inner_join(outbox::table.on(outbox::id.eq(pending_actions::prompt_outbox_id)))
        .select((pending_actions::user_id, pending_actions::expires_at, outbox::state))
        .load(conn)?;
    let asked = open.into_iter().filter_map(|(user, expires_at, state)| match expires_at {
        Some(at) if at <= now => None,
        None if matches!(state, OutboxState::Failed | OutboxState::Suppressed) => None,
        until => Some((user, until)),
    });
    Ok(asked.collect())
}
