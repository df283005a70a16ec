//! Lookups of outbound messages in the carrier's list: of messages whose delivery status is unknown, and of queued
//! messages that may already have been sent by a run of the program that is missing from this database. A restored
//! backup contains no runs since the backup was made.

use std::time::Duration;

use diesel::dsl;
use diesel::prelude::*;
use jiff::Timestamp;

use super::due_message::DueMessageRow;
use super::outbox::{DueMessage, OPEN, OutboundKind, OutboxState, SendFailure, fail_message};
use super::outbox_events::{ChangedMessage, record_changed_messages};
use crate::conversation::channel::Channel;
use crate::conversation::channel_list::CHANNELS;
use crate::conversation::transcript::{Address, OutboxId, TurnId};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::database::literal_sql::literal_sql;
use crate::store::database::statement_cache::cached_update;
use crate::store::schema::{instance, outbox, turns};

/// Maximum number of attempts to read the list for a message from before this start. After the last failed attempt the
/// message is sent: a rare duplicate is better than a lost message, and a duplicate confirmation prompt does no harm.
const LOOKUPS_BEFORE_SENDING: i64 = 3;
/// Value of `lookups_left` for a message that needs lookups and has had none.
pub(super) const LOOKUPS_NOT_STARTED: i64 = LOOKUPS_BEFORE_SENDING + LOOKUPS_USED_UP;
/// Value of `lookups_left` for a message whose lookups all failed: the message is sent anyway.
const LOOKUPS_USED_UP: i64 = 1;
/// Failure of a message that an earlier carrier account may have sent.
const SENT_BY_EARLIER_ACCOUNT: &str = "may have been sent by the earlier account";
/// Failure of a message whose channel gave no answer and keeps no record.
const MAY_HAVE_ARRIVED: &str = "may have arrived: the channel gave no answer";

/// Returns whether a message with this `lookups_left` must be looked up before it is sent.
pub(in crate::store) fn is_lookup_needed(lookups_left: i64) -> bool {
    lookups_left > LOOKUPS_USED_UP
}

literal_sql! {
    /// Condition of messages that need no further lookup before they are sent.
    pub(in crate::store) const MAY_BE_SENT = "outbox.lookups_left <= 1";

    /// Condition of messages for which no lookup was started. Only the text of such messages may still change.
    pub(in crate::store) const NOT_LOOKED_UP = "outbox.lookups_left IN (0,4)";
}

/// Requires a lookup before sending for all messages that are queued when the program starts.
pub(in crate::store) fn require_lookup_for_queued(conn: &mut Conn) -> QueryResult<()> {
    for channel in CHANNELS.into_iter().filter(|channel| channel.keeps_records()) {
        for (id, state) in load_open_messages(conn, channel)? {
            if state == OutboxState::Queued {
                diesel::update(outbox::table.find(id))
                    .set(outbox::lookups_left.eq(LOOKUPS_NOT_STARTED))
                    .execute(conn)?;
            }
        }
    }
    Ok(())
}

/// Ends the lookups in the list of an earlier account of a channel. Messages with unknown delivery status fail, because they
/// may have been sent, and queued messages are sent without a lookup.
pub fn give_up_lookups(conn: &mut Conn, channel: Channel, now: Timestamp) -> QueryResult<()> {
    let failure = SendFailure { code: None, meaning: SENT_BY_EARLIER_ACCOUNT };
    for (id, state) in load_open_messages(conn, channel)? {
        match state {
            OutboxState::Unknown => fail_message(conn, id, &failure, now)?,
            OutboxState::Queued => {
                diesel::update(outbox::table.find(id)).set(outbox::lookups_left.eq(0)).execute(conn)?;
            }
            OutboxState::Attempting
            | OutboxState::Accepted
            | OutboxState::Failed
            | OutboxState::Suppressed => {}
        }
    }
    Ok(())
}

/// Makes the queued messages from another address of ours with the same prefix come from this address.
pub fn change_sender_of_queued(conn: &mut Conn, address: &Address) -> QueryResult<()> {
    let queued = outbox::table.filter(OPEN.and(outbox::state.eq(OutboxState::Queued)));
    let queued: Vec<(OutboxId, Address)> = queued.select((outbox::id, outbox::from_addr)).load(conn)?;
    let is_same_kind = |from: &Address| {
        from.channel() == address.channel() && from.prefix() == address.prefix() && from.phone().is_ok()
    };
    for (id, _) in queued.into_iter().filter(|(_, from)| is_same_kind(from)) {
        diesel::update(outbox::table.find(id)).set(outbox::from_addr.eq(address.as_str())).execute(conn)?;
    }
    Ok(())
}

/// Moves a claimed message to another address of ours, because its channel is not configured any more. The message was
/// certainly not accepted there.
pub fn move_to_sender(conn: &mut Conn, id: OutboxId, sender: &Address, now: Timestamp) -> QueryResult<()> {
    let to: Address = outbox::table.find(id).select(outbox::to_addr).first(conn)?;
    let to = format!("{}{}", sender.prefix(), &to.as_str()[to.prefix().len()..]);
    let changed = diesel::update(outbox::table.find(id).filter(outbox::state.eq(OutboxState::Attempting)))
        .set((
            outbox::from_addr.eq(sender.as_str()),
            outbox::to_addr.eq(to),
            outbox::state.eq(OutboxState::Queued),
            outbox::not_before.eq(ms(now)),
            outbox::updated_at.eq(ms(now)),
        ))
        .returning(ChangedMessage::as_returning())
        .get_results(conn)?;
    record_changed_messages(conn, changed, now)
}

/// Loads the open messages of a channel, with their states.
fn load_open_messages(conn: &mut Conn, channel: Channel) -> QueryResult<Vec<(OutboxId, OutboxState)>> {
    let open: Vec<(OutboxId, OutboxState, Address)> =
        outbox::table.filter(OPEN).select((outbox::id, outbox::state, outbox::from_addr)).load(conn)?;
    let of_channel = open.into_iter().filter(|(_, _, from)| from.channel() == channel);
    Ok(of_channel.map(|(id, state, _)| (id, state)).collect())
}

/// Condition that the turn of a new message started before this run. The message is then looked up before it is sent,
/// because a run that is missing from this database may have finished the turn and sent the message.
#[dsl::auto_type]
pub(super) fn is_turn_of_earlier_run(turn: Option<TurnId>) -> _ {
    let run_started_at = instance::table.select(instance::started_at).single_value();
    turns::table
        .filter(turns::id.nullable().eq(turn))
        .select(turns::created_at.nullable().lt(run_started_at))
        .single_value()
}

/// Claims a message for a lookup before it is sent; `None` if the message needs no lookup now. An interrupted or failed
/// lookup counts, and the next one follows after `pause`.
pub fn start_lookup_before_sending(
    conn: &mut Conn,
    id: OutboxId,
    pause: Duration,
    now: Timestamp,
) -> QueryResult<Option<UnresolvedMessage>> {
    let is_due_for_lookup = outbox::state
        .eq(OutboxState::Queued)
        .and(outbox::lookups_left.gt(LOOKUPS_USED_UP))
        .and(outbox::not_before.le(ms(now)));
    let claimed: Option<(DueMessageRow, Timestamp, Option<TurnId>)> =
        diesel::update(outbox::table.find(id).filter(is_due_for_lookup))
            .set((
                outbox::lookups_left.eq(outbox::lookups_left - 1),
                outbox::not_before.eq(ms(now + pause)),
                outbox::updated_at.eq(ms(now)),
            ))
            .returning((DueMessageRow::as_returning(), outbox::created_at, outbox::turn_id))
            .get_result(conn)
            .optional()?;
    let Some((due, created_at, turn)) = claimed else { return Ok(None) };
    let turn_started_at: Option<Timestamp> = match turn {
        Some(turn) => turns::table.find(turn).select(turns::created_at).first(conn).optional()?,
        None => None,
    };
    let since = turn_started_at.map_or(created_at, |started_at| started_at.min(created_at));
    Ok(Some(UnresolvedMessage { due: due.into_due_message()?, since, unsuccessful_lookups: 0 }))
}

/// Allows a message to be sent after the list was read and does not contain the message.
pub fn allow_sending(conn: &mut Conn, id: OutboxId, now: Timestamp) -> QueryResult<()> {
    diesel::update(outbox::table.find(id).filter(outbox::state.eq(OutboxState::Queued)))
        .set((outbox::lookups_left.eq(0), outbox::not_before.eq(ms(now)), outbox::updated_at.eq(ms(now))))
        .execute(conn)
        .map(drop)
}

/// Message whose delivery status is unknown, with the fields needed for a lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnresolvedMessage {
    pub due: DueMessage,
    /// Time from which the carrier's list may contain the message.
    pub since: Timestamp,
    /// Number of lookups that did not find the message.
    pub unsuccessful_lookups: i64,
}

/// Loads a message whose delivery status is unknown; `None` if no lookup of it is due. Two tasks may look up the same
/// message: the one that starts after the other has recorded its lookup must wait for the next.
pub fn load_unresolved_message(
    conn: &mut Conn,
    id: OutboxId,
    now: Timestamp,
) -> QueryResult<Option<UnresolvedMessage>> {
    let row: Option<(DueMessageRow, Timestamp, i64)> = outbox::table
        .find(id)
        .filter(outbox::state.eq(OutboxState::Unknown).and(outbox::not_before.le(ms(now))))
        .select((DueMessageRow::as_select(), outbox::created_at, outbox::looks))
        .first(conn)
        .optional()?;
    let Some((due, since, unsuccessful_lookups)) = row else { return Ok(None) };
    Ok(Some(UnresolvedMessage { due: due.into_due_message()?, since, unsuccessful_lookups }))
}

/// Outcome of recording an unsuccessful lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupOutcome {
    LookAgain,
    /// No lookup found the message, so it counts as not accepted and is queued again.
    SendAgain,
}

/// Lookup count of a message whose delivery status is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupCount {
    /// Number of unsuccessful lookups when this one started.
    pub earlier: i64,
    /// Number of unsuccessful lookups after which the message counts as not accepted.
    pub required: usize,
    /// Minimum time until the next lookup. A request that was interrupted may still reach the carrier, and after a change
    /// of the wall clock all lookups can be due at once.
    pub pause: Duration,
}

/// Counts an unsuccessful lookup. Of several concurrent lookups, only one counts.
pub fn record_unsuccessful_lookup(
    conn: &mut Conn,
    id: OutboxId,
    count: LookupCount,
    now: Timestamp,
) -> QueryResult<LookupOutcome> {
    let is_unchanged = outbox::state.eq(OutboxState::Unknown).and(outbox::looks.eq(count.earlier));
    let lookup_count: Option<i64> = cached_update(outbox::table.find(id).filter(is_unchanged))
        .set((
            outbox::looks.eq(outbox::looks + 1),
            outbox::not_before.eq(ms(now.saturating_add(count.pause).unwrap_or(Timestamp::MAX))),
            outbox::updated_at.eq(ms(now)),
        ))
        .returning(outbox::looks)
        .get_result(conn)
        .optional()?;
    let Some(lookup_count) = lookup_count else { return Ok(LookupOutcome::LookAgain) };
    if usize::try_from(lookup_count).is_ok_and(|lookup_count| lookup_count < count.required) {
        return Ok(LookupOutcome::LookAgain);
    }
    let changed = cached_update(outbox::table.find(id))
        .set((
            outbox::state.eq(OutboxState::Queued),
            outbox::looks.eq(0),
            outbox::not_before.eq(ms(now)),
            outbox::updated_at.eq(ms(now)),
        ))
        .returning(ChangedMessage::as_returning())
        .get_results(conn)?;
    record_changed_messages(conn, changed, now)?;
    Ok(LookupOutcome::SendAgain)
}

/// Outcome of an unknown delivery status on a channel that keeps no record of its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnrecordedOutcome {
    /// The message is sent a second time.
    SendAgain,
    /// The message is not sent again.
    GivenUp,
    /// The status is known by now.
    Known,
}

/// Resolves an unknown delivery status on a channel that keeps no record of its messages. A reply and a prompt are sent a
/// second time, because a duplicate is better than a lost message; a notification is not. The buttons of the first copy
/// are void.
pub fn resolve_unrecorded_message(
    conn: &mut Conn,
    id: OutboxId,
    now: Timestamp,
) -> QueryResult<UnrecordedOutcome> {
    let unknown = outbox::table.find(id).filter(outbox::state.eq(OutboxState::Unknown));
    let row: Option<(OutboundKind, i64)> =
        unknown.select((outbox::kind, outbox::lookups_left)).first(conn).optional()?;
    let Some((kind, lookups_left)) = row else { return Ok(UnrecordedOutcome::Known) };
    let may_be_repeated = match kind {
        OutboundKind::Reply | OutboundKind::ConfirmPrompt => lookups_left != LOOKUPS_USED_UP,
        OutboundKind::Notice => false,
    };
    if !may_be_repeated {
        let failure = SendFailure { code: None, meaning: MAY_HAVE_ARRIVED };
        fail_message(conn, id, &failure, now)?;
        return Ok(UnrecordedOutcome::GivenUp);
    }
    let changed = diesel::update(unknown)
        .set((
            outbox::state.eq(OutboxState::Queued),
            outbox::lookups_left.eq(LOOKUPS_USED_UP),
            outbox::callback_word.eq(None::<String>),
            outbox::not_before.eq(ms(now)),
            outbox::updated_at.eq(ms(now)),
        ))
        .returning(ChangedMessage::as_returning())
        .get_results(conn)?;
    record_changed_messages(conn, changed, now)?;
    Ok(UnrecordedOutcome::SendAgain)
}

/// Postpones a lookup because the carrier's list could not be read. Such a lookup does not count, and a message that is
/// too old fails.
pub fn postpone_lookup(
    conn: &mut Conn,
    id: OutboxId,
    not_before: Timestamp,
    now: Timestamp,
) -> QueryResult<()> {
    let unresolved = outbox::table.find(id).filter(outbox::state.eq(OutboxState::Unknown));
    let too_old_count: i64 = unresolved.filter(outbox::deadline_at.lt(ms(now))).count().get_result(conn)?;
    if too_old_count > 0 {
        return fail_message(
            conn,
            id,
            &SendFailure { code: None, meaning: "the carrier's list could not be read to confirm delivery" },
            now,
        );
    }
    cached_update(unresolved)
        .set((outbox::not_before.eq(ms(not_before)), outbox::updated_at.eq(ms(now))))
        .run(conn)
}
