//! Reactions of people on our texts and theirs, and ours on theirs.

use diesel::prelude::*;
use jiff::Timestamp;

use super::Conn;
use super::codec::ms;
use super::schema::reactions;
use crate::conversation::action::Emoji;
use crate::conversation::route::Said;
use crate::conversation::transcript::{EventId, UserId};

/// A reaction that came as a text.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    pub user: UserId,
    /// The text it came as.
    pub said_in: EventId,
    /// `None` for a picture, or where the quoted text is not known.
    pub on: Option<Said>,
    /// `None` for a sticker.
    pub emoji: Option<&'a str>,
    pub removal: bool,
}

/// Keeps the reaction on the text that it quotes. One that takes another back is kept as taken back itself.
pub fn receive(conn: &mut Conn, received: &Received<'_>, now: Timestamp) -> QueryResult<()> {
    let (event, outbox) = match received.on {
        Some(Said::ByThem(event)) => (Some(event.0), None),
        Some(Said::ByUs(outbox)) => (None, Some(outbox.0)),
        None => (None, None),
    };
    // A person has one reaction on a text: the last.
    let theirs = reactions::author.eq("user").and(reactions::removed_at.is_null());
    match received.on {
        Some(Said::ByThem(event)) => {
            let before = reactions::table.filter(reactions::event_id.eq(event.0).and(theirs));
            diesel::update(before).set(reactions::removed_at.eq(ms(now))).execute(conn)?;
        }
        Some(Said::ByUs(outbox)) => {
            let before = reactions::table.filter(reactions::outbox_id.eq(outbox.0).and(theirs));
            diesel::update(before).set(reactions::removed_at.eq(ms(now))).execute(conn)?;
        }
        None => {}
    }
    diesel::insert_into(reactions::table)
        .values((
            reactions::user_id.eq(received.user.0),
            reactions::author.eq("user"),
            reactions::event_id.eq(event),
            reactions::outbox_id.eq(outbox),
            reactions::said_in.eq(received.said_in.0),
            reactions::emoji.eq(received.emoji),
            reactions::created_at.eq(ms(now)),
            reactions::removed_at.eq(received.removal.then(|| ms(now))),
        ))
        .on_conflict_do_nothing()
        .execute(conn)
        .map(drop)
}

/// Our reaction on a text of theirs, in place of an earlier one.
pub fn react(conn: &mut Conn, user: UserId, on: EventId, emoji: &Emoji, now: Timestamp) -> QueryResult<()> {
    let ours = reactions::event_id.eq(on.0).and(reactions::author.eq("assistant"));
    diesel::update(reactions::table.filter(ours.and(reactions::removed_at.is_null())))
        .set(reactions::removed_at.eq(ms(now)))
        .execute(conn)?;
    diesel::insert_into(reactions::table)
        .values((
            reactions::user_id.eq(user.0),
            reactions::author.eq("assistant"),
            reactions::event_id.eq(on.0),
            reactions::emoji.eq(emoji.as_str()),
            reactions::created_at.eq(ms(now)),
        ))
        .execute(conn)
        .map(drop)
}
