//! A page of a conversation: consecutive turns, and the time range of the messages that belong to no turn.

use diesel::prelude::*;

use super::Conn;
use super::schema::turns;
use crate::conversation::transcript::{ConversationId, TurnId};

/// Turns from one on, up to and with another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turns {
    pub(super) conversation: ConversationId,
    pub(super) from: TurnId,
    pub(super) to: TurnId,
}

#[diesel::dsl::auto_type(no_type_alias)]
pub(super) fn ids(turns_of: Turns) -> _ {
    let (conversation, from, to): (i64, i64, i64) = (turns_of.conversation.0, turns_of.from.0, turns_of.to.0);
    let wanted = turns::conversation_id.eq(conversation).and(turns::id.between(from, to));
    turns::table.filter(wanted).select(turns::id)
}

/// Time range of messages without a turn: from `from` on and before `to`, in the units of the tables.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time {
    pub(super) conversation: ConversationId,
    pub(super) from: i64,
    pub(super) to: i64,
}

impl Time {
    /// Computes the range of the page of turns below `before`: from its oldest turn on, or from the beginning if there
    /// are none before that, up to the oldest turn of the page above it.
    pub(super) fn of(
        conn: &mut Conn,
        conversation: ConversationId,
        oldest: Option<i64>,
        before: i64,
    ) -> QueryResult<Self> {
        let next: Option<i64> = turns::table
            .filter(turns::conversation_id.eq(conversation.0).and(turns::id.ge(before)))
            .order(turns::id)
            .select(turns::created_at)
            .first(conn)
            .optional()?;
        Ok(Self { conversation, from: oldest.unwrap_or(i64::MIN), to: next.unwrap_or(i64::MAX) })
    }
}
