//! Texts of the messages that the next turn of a user probably answers.

use diesel::dsl::exists;
use diesel::prelude::*;
use jiff::Timestamp;

use super::inbound_messages::{MAX_PER_TURN, PENDING};
use crate::conversation::transcript::{UserId, UserStatus};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::schema::{inbound_events, users as user_rows};

/// Loads the texts of the due messages of an active user in private chats, in the order they were sent.
pub fn load_due_texts(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<Vec<String>> {
    inbound_events::table
        .filter(inbound_events::user_id.eq(user).and(PENDING).and(inbound_events::room_id.is_null()))
        .filter(inbound_events::not_before.le(ms(now)))
        .filter(exists(user_rows::table.find(user).filter(user_rows::status.eq(UserStatus::Active))))
        .order((inbound_events::provider_at, inbound_events::id))
        .limit(MAX_PER_TURN)
        .select(inbound_events::body)
        .load(conn)
}
