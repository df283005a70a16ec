//! Schedule of the outbox: the messages to send or to look up now, and the time of the next one.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use diesel::dsl::exists;
use diesel::prelude::*;
use jiff::Timestamp;

use super::lookups;
use super::outbox::{OPEN, OutboundKind, OutboxState};
use crate::conversation::transcript::{OutboxId, UserId};
use crate::store::Conn;
use crate::store::schema::{outbox, pending_actions, turns};

/// Tasks of the relay that are due, and the time of the next task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutboxSchedule {
    /// Due messages; at most one per user, because the messages of a user are sent in order.
    pub due: Vec<(OutboxId, OutboxTask)>,
    /// Time at which the next waiting message is due.
    pub next: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutboxTask {
    Send,
    /// The message may have been sent by an earlier run: the relay looks it up before it sends it.
    LookUpThenSend,
    /// The delivery status is unknown: the relay looks up whether the carrier accepted the message.
    LookUp,
}

/// Returns whether a message may have a task: whether any is open and not being handed over. A single statement.
pub fn has_waiting_messages(conn: &mut Conn) -> QueryResult<bool> {
    let waiting = outbox::table.filter(OPEN.and(outbox::state.ne(OutboxState::Attempting)));
    diesel::select(exists(waiting)).get_result(conn)
}

/// Computes the schedule. `lookup_delays` are counted from the time at which the delivery status became unknown.
pub fn load_outbox_schedule(
    conn: &mut Conn,
    lookup_delays: &[Duration],
    now: Timestamp,
) -> QueryResult<OutboxSchedule> {
    let rows = load_open_messages(conn)?;
    let mut schedule = OutboxSchedule::default();
    let mut last_user = None;
    let prompted = match rows.iter().any(|row| row.kind == OutboundKind::Notice) {
        true => load_prompted_users(conn, now)?,
        false => HashMap::new(),
    };
    let users_in_turn = match rows.iter().any(|row| row.is_picture) {
        true => load_users_with_running_turn(conn)?,
        false => HashSet::new(),
    };
    let recipients_in_flight: HashSet<UserId> =
        rows.iter().filter(|row| row.state == OutboxState::Attempting).map(|row| row.user_id).collect();
    for row in rows {
        let OpenMessageRow { id, user_id: user, kind, is_picture, state, not_before, .. } = row;
        if is_picture && users_in_turn.contains(&user) {
            // A picture is sent after the text messages of the turn, whose end wakes the relay.
            continue;
        }
        let is_queued = state == OutboxState::Queued;
        if kind == OutboundKind::ConfirmPrompt && is_queued && recipients_in_flight.contains(&user) {
            // A message that is being sent could arrive between the confirmation prompt and its reply.
            last_user = Some(user);
            continue;
        }
        if kind == OutboundKind::Notice
            && is_queued
            && let Some(until) = prompted.get(&user)
        {
            // The notification waits for the reply to the prompt, and does not delay other messages.
            schedule.next = earlier_time(schedule.next, *until);
            continue;
        }
        if kind == OutboundKind::Notice && is_queued && not_before > now {
            // A notification that is not due yet does not delay other messages.
            schedule.next = earlier_time(schedule.next, Some(not_before));
            continue;
        }
        // Only the first open row of each user counts: a row whose delivery status is unknown blocks the others.
        if last_user.replace(user) == Some(user) {
            continue;
        }
        let (task, at) = match state {
            OutboxState::Queued if lookups::is_lookup_needed(row.lookups_left) => {
                (OutboxTask::LookUpThenSend, not_before)
            }
            OutboxState::Queued => (OutboxTask::Send, not_before),
            OutboxState::Unknown => {
                let delay = usize::try_from(row.looks).ok().and_then(|looks| lookup_delays.get(looks));
                let delay = delay.or(lookup_delays.last()).copied().unwrap_or_default();
                let at = row.unknown_at.unwrap_or_default().saturating_add(delay).unwrap_or(Timestamp::MAX);
                (OutboxTask::LookUp, not_before.max(at))
            }
            OutboxState::Attempting
            | OutboxState::Accepted
            | OutboxState::Failed
            | OutboxState::Suppressed => continue,
        };
        if at <= now {
            schedule.due.push((id, task));
        } else {
            schedule.next = earlier_time(schedule.next, Some(at));
        }
    }
    Ok(schedule)
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

/// Loads the open messages, grouped by user, in the order in which they are sent.
fn load_open_messages(conn: &mut Conn) -> QueryResult<Vec<OpenMessageRow>> {
    outbox::table
        .filter(OPEN)
        // A picture is sent last, so that no text message waits for it.
        .order((outbox::user_id, outbox::media_url.is_not_null(), outbox::id))
        .select(OpenMessageRow::as_select())
        .load(conn)
}

/// Loads the users with a running turn.
fn load_users_with_running_turn(conn: &mut Conn) -> QueryResult<HashSet<UserId>> {
    let users = turns::table.filter(turns::finished_at.is_null()).select(turns::user_id);
    Ok(users.load::<UserId>(conn)?.into_iter().collect())
}

fn earlier_time(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}

/// Loads the users with a confirmation prompt that is open or not sent yet, each with the expiry if it is open.
pub(in crate::store) fn load_prompted_users(
    conn: &mut Conn,
    now: Timestamp,
) -> QueryResult<HashMap<UserId, Option<Timestamp>>> {
    let open: Vec<(UserId, Option<Timestamp>, OutboxState)> = pending_actions::table
        .inner_join(outbox::table.on(outbox::id.eq(pending_actions::prompt_outbox_id)))
        .select((pending_actions::user_id, pending_actions::expires_at, outbox::state))
        .load(conn)?;
    let prompted = open.into_iter().filter_map(|(user, expires_at, state)| match expires_at {
        Some(at) if at <= now => None,
        None if matches!(state, OutboxState::Failed | OutboxState::Suppressed) => None,
        until => Some((user, until)),
    });
    Ok(prompted.collect())
}
