//! Second attempt to send a message that its channel accepted and whose radio failed to send it.

use diesel::prelude::*;
use jiff::Timestamp;
use serde_json::json;

use super::outbox::OutboxState;
use super::outbox_events::{ChangedMessage, record_changed_messages};
use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::transcript::OutboxId;
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::schema::outbox;

/// Ending of the id of a second attempt, which makes it another message for the channel.
const SECOND_ATTEMPT_SUFFIX: &str = "-2";

/// Returns whether the message with this id at its channel is a second attempt, which is the last one.
pub fn is_second_attempt(id: &str) -> bool {
    id.ends_with(SECOND_ATTEMPT_SUFFIX)
}

/// Queues a message again under another id. A repeated report about the first attempt finds no message any more.
pub(super) fn queue_second_attempt(
    conn: &mut Conn,
    (id, sid): (OutboxId, &str),
    meaning: Option<&str>,
    send_at: Timestamp,
    now: Timestamp,
) -> QueryResult<()> {
    let changed = diesel::update(outbox::table.find(id).filter(outbox::state.eq(OutboxState::Accepted)))
        .set((
            outbox::state.eq(OutboxState::Queued),
            outbox::callback_word.eq(format!("{sid}{SECOND_ATTEMPT_SUFFIX}")),
            outbox::provider_sid.eq(None::<String>),
            outbox::accepted_at.eq(None::<Timestamp>),
            outbox::delivery.eq(None::<DeliveryStatus>),
            outbox::not_before.eq(ms(send_at)),
            outbox::error.eq(json!({ "meaning": meaning }).to_string()),
            outbox::updated_at.eq(ms(now)),
        ))
        .returning(ChangedMessage::as_returning())
        .get_results(conn)?;
    record_changed_messages(conn, changed, now)
}
