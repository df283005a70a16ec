//! Notes with which a chat turn starts: what its messages do not contain.

use jiff::Timestamp;

use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::routing::prompt_notes;
use crate::conversation::transcript::UserId;
use crate::engine::settings::HouseholdSettings;
use crate::store::library::title_requests;
use crate::store::{Conn, QueryResult};

/// Loads the notes of a turn about pictures in its messages and, if a message asks for them, about the user's own
/// requests.
pub(super) fn load_turn_notes(
    conn: &mut Conn,
    user: UserId,
    messages: &[InboundEvent],
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<Vec<String>> {
    let mut notes: Vec<String> = prompt_notes::picture_note(messages).into_iter().collect();
    if messages.iter().any(|message| prompt_notes::asks_for_requests(&message.body)) {
        let requests: Vec<(Timestamp, String)> = title_requests::load_recent_title_requests(conn)?
            .into_iter()
            .filter(|request| request.user == user)
            .map(|request| (request.requested_at, request.title.format_name()))
            .collect();
        notes.extend(prompt_notes::format_own_requests(&requests, &settings.zone, now));
    }
    Ok(notes)
}
