//! Range of a page of a conversation: consecutive turns, and the time range of the messages that belong to no turn.

use diesel::prelude::*;

use crate::conversation::transcript::{ConversationId, TurnId};
use crate::store::Conn;
use crate::store::schema::turns;

/// Range of turns, including both ends.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct TurnRange {
    pub(in crate::store) conversation: ConversationId,
    pub(in crate::store) from: TurnId,
    pub(in crate::store) to: TurnId,
}

impl TurnRange {
    pub(in crate::store) fn one(conversation: ConversationId, turn: TurnId) -> Self {
        Self { conversation, from: turn, to: turn }
    }

    pub(in crate::store) fn whole(conversation: ConversationId) -> Self {
        Self::from_turn(conversation, TurnId(0))
    }

    /// Range from one turn on.
    pub(in crate::store) fn from_turn(conversation: ConversationId, from: TurnId) -> Self {
        Self { conversation, from, to: TurnId(i64::MAX) }
    }
}

#[diesel::dsl::auto_type(no_type_alias)]
pub(in crate::store) fn select_turn_ids(turns_of: TurnRange) -> _ {
    let (conversation, from, to): (i64, i64, i64) = (turns_of.conversation.0, turns_of.from.0, turns_of.to.0);
    let wanted = turns::conversation_id.eq(conversation).and(turns::id.between(from, to));
    turns::table.filter(wanted).select(turns::id)
}

/// Time range of messages without a turn, from `from` (included) to `to` (excluded), in milliseconds as in the tables.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct MessageTimeRange {
    pub(in crate::store) conversation: ConversationId,
    pub(in crate::store) from: i64,
    pub(in crate::store) to: i64,
}

impl MessageTimeRange {
    /// Computes the time range of the page of turns below `before`. The range begins at the oldest turn of the page, or
    /// at the beginning of the conversation if there are no older turns, and ends at the oldest turn of the next newer
    /// page.
    pub(in crate::store) fn load_for_page(
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
