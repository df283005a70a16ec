//! Received messages that count toward the rate limits, or exceed them.

use diesel::prelude::*;
use jiff::Timestamp;

use super::inbound_messages::{InboundOutcome, InboundState};
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::routing::message_origin::BUTTON_PREFIX;
use crate::conversation::transcript::{EventId, UserId};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::database::statement_cache::cached_update;
use crate::store::schema::inbound_events;

/// Loads the user's messages to the address of `event` that count towards the rate limits, with the time they were
/// sent, newest first; at most `limit` for each of the two limits. Waiting messages are excluded, because they may be
/// processed after `event`. Input from a button comes from the operator and does not count.
pub fn load_messages_counted_toward_limit(
    conn: &mut Conn,
    user: UserId,
    event: &InboundEvent,
    limit: u32,
) -> QueryResult<Vec<(Timestamp, String)>> {
    inbound_events::table
        .filter(inbound_events::user_id.eq(user).and(inbound_events::state.ne(InboundState::Pending)))
        .filter(inbound_events::to_addr.eq(event.to.as_str()))
        .filter(inbound_events::external_id.not_like(format!("{BUTTON_PREFIX}%")))
        .filter(inbound_events::over_limit.eq(false).and(inbound_events::wants_answer.eq(true)))
        .filter(inbound_events::addressed.eq(true))
        .order(inbound_events::id.desc())
        .limit(2 * i64::from(limit))
        .select((inbound_events::provider_at, inbound_events::body))
        .load(conn)
}

/// Marks a message as exceeding the rate limit.
pub fn mark_over_limit(conn: &mut Conn, event: EventId) -> QueryResult<()> {
    cached_update(inbound_events::table.find(event)).set(inbound_events::over_limit.eq(true)).run(conn)
}

/// Returns whether the user was notified since `since` of exceeding the rate limit, from the address to which `event`
/// was sent.
pub fn was_notified_of_limit(
    conn: &mut Conn,
    user: UserId,
    event: &InboundEvent,
    since: Timestamp,
) -> QueryResult<bool> {
    let notified: Option<i64> = inbound_events::table
        .filter(inbound_events::user_id.eq(user).and(inbound_events::provider_at.gt(ms(since))))
        .filter(inbound_events::to_addr.eq(event.to.as_str()))
        .filter(inbound_events::over_limit.eq(true).and(inbound_events::outcome.eq(InboundOutcome::Replied)))
        .order(inbound_events::id.desc())
        .select(inbound_events::id)
        .first(conn)
        .optional()?;
    Ok(notified.is_some())
}
