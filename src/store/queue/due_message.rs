//! Messages that are due for sending.

use diesel::prelude::*;

use super::callbacks::CallbackToken;
use super::outbox::{NewOutboundMessage, OutboundKind};
use crate::conversation::transcript::{Address, OutboxId};
use crate::store::codec::convert_integer;
use crate::store::schema::outbox;

/// Message that is due for sending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueMessage {
    pub id: OutboxId,
    pub kind: OutboundKind,
    pub attempt: u32,
    pub to: Address,
    pub from: Address,
    pub body: String,
    pub media: Option<String>,
    /// Channel's id of the received message that the message is a reaction to.
    pub reacts_to: Option<String>,
    /// Channel's id of the received message that the message quotes.
    pub quotes: Option<String>,
    /// Random token by which status callbacks identify this row.
    pub token: CallbackToken,
}

impl DueMessage {
    /// Returns the first attempt of a message that was claimed when it was queued.
    pub(super) fn first_attempt(id: OutboxId, message: &NewOutboundMessage, token: CallbackToken) -> Self {
        let NewOutboundMessage { kind, to, from, body, media, reacts_to, quotes, .. } = message.clone();
        Self { id, kind, attempt: 1, to, from, body, media, reacts_to, quotes, token }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = outbox)]
pub(in crate::store) struct DueMessageRow {
    id: OutboxId,
    kind: OutboundKind,
    attempts: i64,
    to_addr: Address,
    from_addr: Address,
    body: String,
    media_url: Option<String>,
    reacts_to: Option<String>,
    quotes: Option<String>,
    callback_word: Option<String>,
}

impl DueMessageRow {
    pub(in crate::store) fn into_due_message(self) -> QueryResult<DueMessage> {
        Ok(DueMessage {
            id: self.id,
            kind: self.kind,
            attempt: convert_integer(self.attempts)?,
            to: self.to_addr,
            from: self.from_addr,
            body: self.body,
            media: self.media_url,
            reacts_to: self.reacts_to,
            quotes: self.quotes,
            // A row that was last attempted by an older version may have no token; no callback can identify it.
            token: CallbackToken::from_stored(self.callback_word.unwrap_or_default()),
        })
    }
}
