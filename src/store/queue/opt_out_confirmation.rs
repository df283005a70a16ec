//! Message that confirms an opt-out, the last one to its user.

use diesel::prelude::*;

use super::outbox::OutboxState;
use crate::conversation::transcript::{EventId, UserId};
use crate::store::Conn;
use crate::store::schema::outbox;

/// Prefix of the keys of messages that confirm an opt-out.
const OPT_OUT_KEY_PREFIX: &str = "optout:";

/// Returns whether the message with this key confirms an opt-out.
pub(super) fn is_opt_out_confirmation(key: &str) -> bool {
    key.starts_with(OPT_OUT_KEY_PREFIX)
}

/// Returns the key of the message that confirms the opt-out in a received message; `None` if the last message to the user
/// confirms an opt-out, so that a repeated STOP gets no reply.
pub fn opt_out_confirmation_key(
    conn: &mut Conn,
    user: UserId,
    event: EventId,
) -> QueryResult<Option<String>> {
    let last: Option<String> = outbox::table
        .filter(outbox::user_id.eq(user).and(outbox::state.ne(OutboxState::Suppressed)))
        .order(outbox::id.desc())
        .select(outbox::dedupe_key)
        .first(conn)
        .optional()?;
    let is_confirmed = last.is_some_and(|key| is_opt_out_confirmation(&key));
    Ok((!is_confirmed).then(|| format!("{OPT_OUT_KEY_PREFIX}{event}")))
}
