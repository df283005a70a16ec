//! Notes with which a chat turn starts: what its messages do not contain.

use jiff::Timestamp;

use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::routing::prompt_notes;
use crate::conversation::transcript::User;
use crate::engine::settings::HouseholdSettings;
use crate::engine::turns::tool_context::load_title_requests;
use crate::store::{Conn, QueryResult};

/// Loads the notes of a turn about pictures in its messages and, if a message asks for them, about the recent requests
/// of the household.
pub(super) fn load_turn_notes(
    conn: &mut Conn,
    user: &User,
    messages: &[InboundEvent],
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<Vec<String>> {
    let mut notes: Vec<String> = prompt_notes::picture_note(messages).into_iter().collect();
    let is_private = messages.iter().all(|message| message.room.is_none());
    if is_private && messages.iter().any(|message| prompt_notes::asks_for_requests(&message.body)) {
        notes.extend(prompt_notes::format_requests(&load_title_requests(conn, user)?, &settings.zone, now));
    }
    Ok(notes)
}
