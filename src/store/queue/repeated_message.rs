//! Recognition of a message that a channel lists again under another id.

use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use crate::conversation::channel::Channel;
use crate::conversation::routing::inbound_message::ReceivedMessage;
use crate::conversation::transcript::UserId;
use crate::store::Conn;
use crate::store::schema::inbound_events;

/// Number of newest messages of a user among which a repeat is searched.
const NEWEST_MESSAGES: i64 = 50;

/// Returns whether the channel lists a known message under another id: the same text, sent within a few seconds.
pub(super) fn is_repeat(conn: &mut Conn, user: UserId, received: &ReceivedMessage) -> QueryResult<bool> {
    let Some(seconds) = received.channel.profile().receiving.repeat_seconds else { return Ok(false) };
    let newest: Vec<(Channel, String, Timestamp)> = inbound_events::table
        .filter(inbound_events::user_id.eq(user))
        .order(inbound_events::id.desc())
        .limit(NEWEST_MESSAGES)
        .select((inbound_events::channel, inbound_events::body, inbound_events::provider_at))
        .load(conn)?;
    let limit = SignedDuration::from_secs(seconds);
    Ok(newest.iter().any(|(channel, body, sent_at)| {
        *channel == received.channel
            && *body == received.body
            && received.provider_at.duration_since(*sent_at).abs() <= limit
    }))
}
