//! Assembly of a message that is handed to its channel, from its row in the outbox.

use std::time::Duration;

use jiff::SignedDuration;

use super::{OutboundMessage, PollAction};
use crate::conversation::routing::button_press::ButtonChoice;
use crate::conversation::votes::VoteMessage;
use crate::store::confirmation::pending_lookup;
use crate::store::database::db::Db;
use crate::store::queue::outbox::{DueMessage, OutboundKind};
use crate::store::{Conn, QueryResult, votes};

/// Period in which a channel may still send a message that is no prompt.
const MESSAGE_VALIDITY: Duration = Duration::from_secs(3600);

/// Returns the message of a row, without buttons and polls. A prompt may be sent only while it can be answered.
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
        poll: None,
        buttons: Vec::new(),
        valid_for,
        callback_token: token,
    }
}

/// Parts of a message that only some channels have.
#[derive(Debug, Default)]
pub(super) struct ChannelExtras {
    pub(super) buttons: Vec<ButtonChoice>,
    pub(super) poll: Option<PollAction>,
}

/// Loads the buttons and the poll of a message, if its channel has them. Without them, people can answer in words.
pub(super) async fn load_extras(db: &Db, due: &DueMessage) -> ChannelExtras {
    if !due.from.channel().profile().content.buttons {
        return ChannelExtras::default();
    }
    let due = due.clone();
    let id = due.id;
    let load = move |conn: &mut _| match votes::find_message(conn, due.id)? {
        Some(message) => load_vote_extras(conn, &due, message),
        None => Ok(ChannelExtras { buttons: load_buttons(conn, &due)?, poll: None }),
    };
    db.read(load).await.unwrap_or_else(|error| {
        tracing::error!(outbox = %id, %error, "failed to load the buttons of a message");
        ChannelExtras::default()
    })
}

/// Loads the buttons below a message. A prompt with a code has none, because the code is to be typed.
fn load_buttons(conn: &mut Conn, due: &DueMessage) -> QueryResult<Vec<ButtonChoice>> {
    Ok(match due.kind {
        OutboundKind::ConfirmPrompt if pending_lookup::is_confirmed_without_code(conn, due.id)? => {
            vec![ButtonChoice::Yes, ButtonChoice::No]
        }
        OutboundKind::Reply => ButtonChoice::from_list(&due.body),
        OutboundKind::ConfirmPrompt | OutboundKind::Notice => Vec::new(),
    })
}

/// Loads the poll of a vote in a room, or the buttons of one in a private chat.
fn load_vote_extras(conn: &mut Conn, due: &DueMessage, message: VoteMessage) -> QueryResult<ChannelExtras> {
    let has_polls = due.from.channel().profile().content.polls;
    let mut extras = ChannelExtras::default();
    match message {
        VoteMessage::Asks(id) => match votes::load_vote(conn, id)?.filter(|vote| vote.closed_at.is_none()) {
            Some(vote) if vote.room.is_some() && has_polls => {
                extras.poll = Some(PollAction::Ask(vote.question))
            }
            Some(_) => extras.buttons = ButtonChoice::from_list(&due.body),
            None => {}
        },
        VoteMessage::Announces(id) if has_polls => {
            extras.poll = Some(PollAction::End(votes::load_poll_messages(conn, id)?));
        }
        VoteMessage::Announces(_) | VoteMessage::AsksStarter => {}
    }
    Ok(extras)
}
