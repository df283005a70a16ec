//! Newest test text of the setup assistant, and whether its recipient has replied.

use diesel::prelude::*;
use jiff::Timestamp;

use super::outbox::OutboxState;
use crate::conversation::channel::Channel;
use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::transcript::{Address, UserId};
use crate::store::Conn;
use crate::store::codec::from_json;
use crate::store::conversation::record::delivery::DeliveryFailure;
use crate::store::schema::{inbound_events, outbox};

/// Beginning of the keys of test texts.
pub const TEST_TEXT_KEY: &str = "test-text:";
/// First text that sorts after all these keys.
const AFTER_TEST_TEXT_KEYS: &str = "test-text;";
/// Number of newest messages of the recipient among which a reply is searched.
const NEWEST_MESSAGES: i64 = 20;

/// Test text that was queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestText {
    pub state: OutboxState,
    /// Status that the phone reports; `None` before its first report.
    pub delivery: Option<DeliveryStatus>,
    /// Reason of a failure or a delay.
    pub reason: Option<String>,
    pub queued_at: Timestamp,
    /// True if a message of the recipient arrived on the same channel since then.
    pub has_reply: bool,
}

type TestTextRow = (UserId, Address, OutboxState, Option<DeliveryStatus>, Option<String>, Timestamp);

/// Loads the newest test text.
pub fn load_newest_test_text(conn: &mut Conn) -> QueryResult<Option<TestText>> {
    let newest: Option<TestTextRow> = outbox::table
        .filter(outbox::dedupe_key.ge(TEST_TEXT_KEY).and(outbox::dedupe_key.lt(AFTER_TEST_TEXT_KEYS)))
        .order(outbox::dedupe_key.desc())
        .select((
            outbox::user_id,
            outbox::from_addr,
            outbox::state,
            outbox::delivery,
            outbox::error,
            outbox::created_at,
        ))
        .first(conn)
        .optional()?;
    let Some((user, from, state, delivery, error, queued_at)) = newest else { return Ok(None) };
    let failure: Option<DeliveryFailure> = error.map(|error| from_json("error", &error)).transpose()?;
    let reason = failure.and_then(|failure| failure.meaning);
    let has_reply = has_message_since(conn, (user, from.channel()), queued_at)?;
    Ok(Some(TestText { state, delivery, reason, queued_at, has_reply }))
}

fn has_message_since(
    conn: &mut Conn,
    (user, channel): (UserId, Channel),
    since: Timestamp,
) -> QueryResult<bool> {
    let newest: Vec<(Channel, Timestamp)> = inbound_events::table
        .filter(inbound_events::user_id.eq(user))
        .order(inbound_events::id.desc())
        .limit(NEWEST_MESSAGES)
        .select((inbound_events::channel, inbound_events::received_at))
        .load(conn)?;
    Ok(newest.into_iter().any(|(of, received_at)| of == channel && received_at >= since))
}
