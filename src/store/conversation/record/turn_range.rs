//! Range of a page of a conversation: consecutive turns, and the time range of the messages that belong to no turn.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::transcript::{ConversationId, TurnId};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::column_types::Millis;
use crate::store::schema::turns;

/// Inclusive range of turns of one conversation.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct TurnRange {
    pub(in crate::store) conversation: ConversationId,
    pub(in crate::store) from: TurnId,
    pub(in crate::store) to: TurnId,
}

impl TurnRange {
    pub(in crate::store) fn single_turn(conversation: ConversationId, turn: TurnId) -> Self {
        Self { conversation, from: turn, to: turn }
    }

    pub(in crate::store) fn whole_conversation(conversation: ConversationId) -> Self {
        Self::from_turn(conversation, TurnId(0))
    }

    /// Range of all turns from `from` on.
    pub(in crate::store) fn from_turn(conversation: ConversationId, from: TurnId) -> Self {
        Self { conversation, from, to: TurnId(i64::MAX) }
    }
}

#[diesel::dsl::auto_type(no_type_alias)]
pub(in crate::store) fn select_turn_ids(range: TurnRange) -> _ {
    let (conversation, from, to): (ConversationId, TurnId, TurnId) =
        (range.conversation, range.from, range.to);
    let in_range = turns::conversation_id.eq(conversation).and(turns::id.between(from, to));
    turns::table.filter(in_range).select(turns::id)
}

/// Time range of messages without a turn: from `from` (inclusive) to `to` (exclusive).
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct MessageTimeRange {
    pub(in crate::store) conversation: ConversationId,
    pub(in crate::store) from: Millis,
    pub(in crate::store) to: Millis,
}

impl MessageTimeRange {
    /// Loads the time range of the page of turns below `before`. The range starts with the oldest turn of the page, or
    /// is unbounded if `oldest` is `None` because there are no older turns, and ends with the first turn of the next
    /// page.
    pub(in crate::store) fn load_for_page(
        conn: &mut Conn,
        conversation: ConversationId,
        oldest: Option<Timestamp>,
        before: i64,
    ) -> QueryResult<Self> {
        let next_start: Option<Timestamp> = turns::table
            .filter(turns::conversation_id.eq(conversation).and(turns::id.ge(before)))
            .order(turns::id)
            .select(turns::created_at)
            .first(conn)
            .optional()?;
        let (from, to) = (oldest.unwrap_or(Timestamp::MIN), next_start.unwrap_or(Timestamp::MAX));
        Ok(Self { conversation, from: ms(from), to: ms(to) })
    }
}
