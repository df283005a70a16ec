//! Reactions of users to messages, and Dialarr's reactions to messages of users.

use std::collections::HashMap;

use diesel::dsl;
use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use crate::conversation::channel::Channel;
use crate::conversation::routing::route::MessageRef;
use crate::conversation::stream_events::{ReactionState, StreamEventKind};
use crate::conversation::transcript::{EventId, OutboxId, UserId};
use crate::conversation::turn::model_action::Emoji;
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::column_types::stored_enum;
use crate::store::schema::{inbound_events, outbox, reactions};
use crate::store::stream::recording::{self, EventOwner, record_event};

/// Time after which the numbers of reports are no longer compared.
const MAX_REPORT_AGE: SignedDuration = SignedDuration::from_hours(6 * 24);

stored_enum! {
    /// Author of a reaction.
    pub enum ReactionAuthor {
        User = "user",
        Assistant = "assistant",
    }
}

/// Reaction that was received as a message.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedReaction<'a> {
    pub user: UserId,
    /// Message that contained the reaction.
    pub message: EventId,
    /// Quoted message; `None` for a picture, or if no recent message matches the quote.
    pub target: Option<MessageRef>,
    /// Emoji of the reaction; `None` for a sticker.
    pub emoji: Option<&'a str>,
    /// True if the reaction removes an earlier one.
    pub is_removal: bool,
}

/// Stores a user's reaction to the message that it quotes. A reaction that removes an earlier one is stored as already
/// removed.
pub fn store_user_reaction(
    conn: &mut Conn,
    received: &ReceivedReaction<'_>,
    now: Timestamp,
) -> QueryResult<()> {
    // A message that contains a reaction is no part of its turn.
    recording::record_changed_history();
    let (event, outbox) = match received.target {
        Some(MessageRef::Inbound(event)) => (Some(event), None),
        Some(MessageRef::Outbound(outbox)) => (None, Some(outbox)),
        None => (None, None),
    };
    if let Some(target) = received.target {
        // A user has at most one reaction to a message: the last one.
        remove_reactions(conn, target, (ReactionAuthor::User, received.user), now)?;
    }
    let stored = diesel::insert_into(reactions::table)
        .values((
            reactions::user_id.eq(received.user),
            reactions::author.eq(ReactionAuthor::User),
            reactions::event_id.eq(event),
            reactions::outbox_id.eq(outbox),
            reactions::said_in.eq(received.message),
            reactions::emoji.eq(received.emoji),
            reactions::created_at.eq(ms(now)),
            reactions::removed_at.eq(received.is_removal.then_some(now)),
        ))
        .on_conflict_do_nothing()
        .returning(reactions::id)
        .get_result(conn)
        .optional()?;
    let state = if received.is_removal { ReactionState::Removed } else { ReactionState::Given };
    match (received.target, stored) {
        (Some(target), Some(id)) => record_reactions(conn, target, &[id], state, now),
        (Some(_), None) | (None, _) => Ok(()),
    }
}

/// Finds the stored message with a channel's id: one that we sent, or one that a person wrote.
pub fn find_target(conn: &mut Conn, (channel, id): (Channel, &str)) -> QueryResult<Option<MessageRef>> {
    let sent: Option<OutboxId> =
        outbox::table.filter(outbox::provider_sid.eq(id)).select(outbox::id).first(conn).optional()?;
    if let Some(sent) = sent {
        return Ok(Some(MessageRef::Outbound(sent)));
    }
    let received: Option<EventId> = inbound_events::table
        .filter(inbound_events::channel.eq(channel).and(inbound_events::external_id.eq(id)))
        .select(inbound_events::id)
        .first(conn)
        .optional()?;
    Ok(received.map(MessageRef::Inbound))
}

/// Returns whether a later report about the reaction of a user to a message is stored, so that the report with this number
/// is a repeated one. After a week without reports, Telegram may continue with a smaller number.
pub fn is_reported_later(
    conn: &mut Conn,
    (user, target): (UserId, MessageRef),
    number: i64,
    now: Timestamp,
) -> QueryResult<bool> {
    let later = reactions::table
        .filter(reactions::user_id.eq(user).and(reactions::update_id.ge(number)))
        .filter(reactions::created_at.gt(ms(now - MAX_REPORT_AGE)));
    match target {
        MessageRef::Inbound(event) => {
            dsl::select(dsl::exists(later.filter(reactions::event_id.eq(event)))).get_result(conn)
        }
        MessageRef::Outbound(sent) => {
            dsl::select(dsl::exists(later.filter(reactions::outbox_id.eq(sent)))).get_result(conn)
        }
    }
}

/// Stores the reaction that a user has to a message now, in place of an earlier one. `number` is that of the report.
pub fn place_user_reaction(
    conn: &mut Conn,
    (user, target): (UserId, MessageRef),
    (emoji, number): (Option<&str>, i64),
    now: Timestamp,
) -> QueryResult<()> {
    remove_reactions(conn, target, (ReactionAuthor::User, user), now)?;
    let (event, outbox) = match target {
        MessageRef::Inbound(event) => (Some(event), None),
        MessageRef::Outbound(outbox) => (None, Some(outbox)),
    };
    let id = diesel::insert_into(reactions::table)
        .values((
            reactions::user_id.eq(user),
            reactions::author.eq(ReactionAuthor::User),
            reactions::event_id.eq(event),
            reactions::outbox_id.eq(outbox),
            reactions::emoji.eq(emoji),
            reactions::update_id.eq(number),
            reactions::created_at.eq(ms(now)),
        ))
        .returning(reactions::id)
        .get_result(conn)?;
    record_reactions(conn, target, &[id], ReactionState::Given, now)
}

/// Removes the reaction of a user to a message. `number` is that of the report.
pub fn remove_user_reaction(
    conn: &mut Conn,
    (user, target): (UserId, MessageRef),
    number: i64,
    now: Timestamp,
) -> QueryResult<()> {
    let active = reactions::table.filter(reactions::user_id.eq(user).and(reactions::removed_at.is_null()));
    let reported = reactions::update_id.eq(number);
    match target {
        MessageRef::Inbound(event) => {
            diesel::update(active.filter(reactions::event_id.eq(event))).set(reported).execute(conn)?
        }
        MessageRef::Outbound(sent) => {
            diesel::update(active.filter(reactions::outbox_id.eq(sent))).set(reported).execute(conn)?
        }
    };
    remove_reactions(conn, target, (ReactionAuthor::User, user), now)
}

/// Removes the reactions of an author to a message. In a room, several people can have one.
fn remove_reactions(
    conn: &mut Conn,
    target: MessageRef,
    (author, user): (ReactionAuthor, UserId),
    now: Timestamp,
) -> QueryResult<()> {
    let of_author = reactions::author.eq(author).and(reactions::user_id.eq(user));
    let active = reactions::table.filter(of_author.and(reactions::removed_at.is_null()));
    let removal = reactions::removed_at.eq(ms(now));
    let removed: Vec<i64> = match target {
        MessageRef::Inbound(event) => {
            let earlier = active.filter(reactions::event_id.eq(event));
            diesel::update(earlier).set(removal).returning(reactions::id).get_results(conn)?
        }
        MessageRef::Outbound(outbox) => {
            let earlier = active.filter(reactions::outbox_id.eq(outbox));
            diesel::update(earlier).set(removal).returning(reactions::id).get_results(conn)?
        }
    };
    record_reactions(conn, target, &removed, ReactionState::Removed, now)
}

/// Records the state of reactions in the conversation of their message.
fn record_reactions(
    conn: &mut Conn,
    target: MessageRef,
    reactions: &[i64],
    state: ReactionState,
    now: Timestamp,
) -> QueryResult<()> {
    if reactions.is_empty() {
        return Ok(());
    }
    let (turn, conversation) = match target {
        MessageRef::Inbound(event) => inbound_events::table
            .find(event)
            .select((inbound_events::turn_id, inbound_events::conversation_id))
            .first(conn)?,
        MessageRef::Outbound(message) => {
            outbox::table.find(message).select((outbox::turn_id, outbox::conversation_id)).first(conn)?
        }
    };
    let owner = EventOwner { turn, conversation };
    reactions.iter().try_for_each(|id| record_event(conn, owner, now, StreamEventKind::Reaction(*id, state)))
}

/// Stores Dialarr's reaction to a message of the user, and removes an earlier one.
pub fn store_own_reaction(
    conn: &mut Conn,
    user: UserId,
    message: EventId,
    emoji: &Emoji,
    now: Timestamp,
) -> QueryResult<()> {
    let target = MessageRef::Inbound(message);
    remove_reactions(conn, target, (ReactionAuthor::Assistant, user), now)?;
    let id = diesel::insert_into(reactions::table)
        .values((
            reactions::user_id.eq(user),
            reactions::author.eq(ReactionAuthor::Assistant),
            reactions::event_id.eq(message),
            reactions::emoji.eq(emoji.as_str()),
            reactions::created_at.eq(ms(now)),
        ))
        .returning(reactions::id)
        .get_result(conn)?;
    record_reactions(conn, target, &[id], ReactionState::Given, now)
}

/// Reaction that was not removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveReaction {
    pub id: i64,
    /// Emoji of the reaction; `None` for a sticker, or if the emoji was erased.
    pub emoji: Option<String>,
}

/// Reactions that were not removed, by message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reactions(HashMap<MessageRef, Vec<ActiveReaction>>);

impl Reactions {
    /// Loads the reactions to these messages.
    pub(in crate::store) fn load_active(
        conn: &mut Conn,
        inbound: Vec<EventId>,
        outbound: Vec<OutboxId>,
    ) -> QueryResult<Self> {
        let is_active = reactions::removed_at.is_null();
        let mut active = Self::default();
        if !inbound.is_empty() {
            let rows: Vec<(EventId, i64, Option<String>)> = reactions::table
                .filter(reactions::event_id.eq_any(inbound.into_iter().map(Some)).and(is_active))
                .order(reactions::id)
                .select((reactions::event_id.assume_not_null(), reactions::id, reactions::emoji))
                .load(conn)?;
            rows.into_iter()
                .for_each(|(event, id, emoji)| active.add_reaction(MessageRef::Inbound(event), id, emoji));
        }
        if !outbound.is_empty() {
            let rows: Vec<(OutboxId, i64, Option<String>)> = reactions::table
                .filter(reactions::outbox_id.eq_any(outbound.into_iter().map(Some)).and(is_active))
                .order(reactions::id)
                .select((reactions::outbox_id.assume_not_null(), reactions::id, reactions::emoji))
                .load(conn)?;
            rows.into_iter()
                .for_each(|(outbox, id, emoji)| active.add_reaction(MessageRef::Outbound(outbox), id, emoji));
        }
        Ok(active)
    }

    fn add_reaction(&mut self, message: MessageRef, id: i64, emoji: Option<String>) {
        self.0.entry(message).or_default().push(ActiveReaction { id, emoji });
    }

    /// Returns the reactions to one message.
    pub fn get(&self, message: MessageRef) -> &[ActiveReaction] {
        self.0.get(&message).map_or(&[], Vec::as_slice)
    }
}

/// Loads the message to which a reaction was made; `None` if the message is unknown, as for a picture.
pub fn load_reaction_target(conn: &mut Conn, reaction: i64) -> QueryResult<Option<MessageRef>> {
    let row: Option<(Option<EventId>, Option<OutboxId>)> = reactions::table
        .find(reaction)
        .select((reactions::event_id, reactions::outbox_id))
        .first(conn)
        .optional()?;
    let (event, outbox) = row.unwrap_or_default();
    Ok(event.map(MessageRef::Inbound).or(outbox.map(MessageRef::Outbound)))
}
