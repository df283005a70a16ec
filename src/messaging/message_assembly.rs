//! Assembly of a message that is handed to its channel, from its row in the outbox.

use std::time::Duration;

use jiff::SignedDuration;

use super::OutboundMessage;
use crate::conversation::routing::button_press::ButtonChoice;
use crate::store::confirmation::pending_lookup;
use crate::store::database::db::Db;
use crate::store::queue::outbox::{DueMessage, OutboundKind};

/// Period in which a channel may still send a message that is no prompt.
const MESSAGE_VALIDITY: Duration = Duration::from_secs(3600);

/// Returns the message of a row, without buttons. A prompt may be sent only while it can be answered.
pub(super) fn assemble_message(due: &DueMessage, confirm_for: SignedDuration) -> OutboundMessage {
    let DueMessage { id, kind, attempt, to, from, body, media, reacts_to, quotes, token } = due.clone();
    let valid_for = match kind {
        OutboundKind::ConfirmPrompt => Duration::try_from(confirm_for).unwrap_or(MESSAGE_VALIDITY),
        OutboundKind::Reply | OutboundKind::Notice => MESSAGE_VALIDITY,
    };
    OutboundMessage {
        id,
        attempt,
        to,
        from,
        body,
        media: media.into_iter().collect(),
        reacts_to,
        quotes,
        buttons: Vec::new(),
        valid_for,
        callback_token: token,
    }
}

/// Returns the buttons below a message, if its channel has buttons. A prompt with a code has none, because the code is to
/// be typed.
pub(super) async fn load_buttons(db: &Db, due: &DueMessage) -> Vec<ButtonChoice> {
    if !due.from.channel().profile().content.buttons {
        return Vec::new();
    }
    match due.kind {
        OutboundKind::ConfirmPrompt => {
            let id = due.id;
            let load = move |conn: &mut _| pending_lookup::is_confirmed_without_code(conn, id);
            match db.read(load).await {
                Ok(true) => vec![ButtonChoice::Yes, ButtonChoice::No],
                Ok(false) => Vec::new(),
                // The prompt can also be answered in words.
                Err(error) => {
                    tracing::error!(outbox = %id, %error, "failed to load the buttons of a prompt");
                    Vec::new()
                }
            }
        }
        OutboundKind::Reply => ButtonChoice::from_list(&due.body),
        OutboundKind::Notice => Vec::new(),
    }
}
