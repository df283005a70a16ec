//! Row of a received message, as loaded for routing.

use diesel::prelude::*;

use crate::conversation::grammar::triage::TriageDecision;
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::routing::message_origin::MessageOrigin;
use crate::conversation::transcript::{Address, EventId, OptWord};
use crate::store::codec::{authority, channel, parse_media, timestamp_from_ms, unreadable_column, via};
use crate::store::schema::inbound_events;

#[derive(Queryable, Selectable)]
#[diesel(table_name = inbound_events)]
pub(super) struct InboundMessageRow {
    id: i64,
    channel: String,
    pub(super) external_id: String,
    pub(super) to_addr: String,
    pub(super) body: String,
    pub(super) media: Option<String>,
    via: String,
    authority: String,
    carrier_word: Option<String>,
    provider_at: i64,
    received_at: i64,
    wants_answer: i64,
}

/// Returns the keyword that the carrier reports; the carrier reports only these three.
pub(super) fn carrier_word(word: Option<OptWord>) -> Option<&'static str> {
    match word? {
        OptWord::Out => Some("stop"),
        OptWord::In => Some("start"),
        OptWord::Help => Some("help"),
        OptWord::Yes => None,
    }
}

impl InboundMessageRow {
    pub(super) fn into_events(rows: Vec<Self>) -> QueryResult<Vec<InboundEvent>> {
        rows.into_iter().map(Self::into_event).collect()
    }

    pub(super) fn into_event(self) -> QueryResult<InboundEvent> {
        let channel = channel(&self.channel)?;
        Ok(InboundEvent {
            id: EventId(self.id),
            channel,
            origin: MessageOrigin::from_message_id(channel, &self.external_id),
            to: Address::new(self.to_addr),
            body: self.body,
            media: parse_media(self.media.as_deref())?,
            via: via(&self.via)?,
            authority: authority(&self.authority)?,
            carrier_word: match self.carrier_word.as_deref() {
                None => None,
                Some("stop") => Some(OptWord::Out),
                Some("start") => Some(OptWord::In),
                Some("help") => Some(OptWord::Help),
                Some(_) => return Err(unreadable_column("carrier word")),
            },
            sent_at: timestamp_from_ms(self.provider_at)?,
            received_at: timestamp_from_ms(self.received_at)?,
            triage: if self.wants_answer == 0 { TriageDecision::NoAnswer } else { TriageDecision::Answer },
        })
    }
}
