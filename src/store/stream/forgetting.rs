//! Events that are over are deleted. Whoever stood before them learns it from the floor of their conversation.

use std::collections::BTreeMap;

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::stream::Seq;
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::schema::{conversations, stream_events, turns};

/// Events that one transaction looks at: few, since texts that come in wait for its end.
const LOOKED_AT: i64 = 500;

/// Whether there may be more to forget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgotten {
    /// The next piece begins after this event.
    UpTo(Seq),
    Everything,
}

/// Deletes the oldest events after `after` that are from before `before`, unless their turn still runs; their content
/// stands in the tables they tell of.
pub fn forget(conn: &mut Conn, after: Seq, before: Timestamp) -> QueryResult<Forgotten> {
    let next: Vec<(i64, i64)> = stream_events::table
        .filter(stream_events::seq.gt(after.0))
        .order(stream_events::seq)
        .limit(LOOKED_AT)
        .select((stream_events::seq, stream_events::created_at))
        .load(conn)?;
    let old = next.iter().take_while(|(_, at)| *at < ms(before));
    let Some(&(up_to, _)) = old.last() else { return Ok(Forgotten::Everything) };
    let running = turns::table.filter(turns::finished_at.is_null()).select(turns::id.nullable());
    let over = stream_events::turn_id.is_null().or(stream_events::turn_id.ne_all(running));
    let piece = stream_events::seq.gt(after.0).and(stream_events::seq.le(up_to));
    let deleted = diesel::delete(stream_events::table.filter(piece.and(over)))
        .returning((stream_events::conversation_id, stream_events::seq))
        .get_results(conn)?;
    raise_floors(conn, deleted)?;
    let all_old = next.last().is_some_and(|(seq, _)| *seq == up_to);
    let full = i64::try_from(next.len()).is_ok_and(|count| count >= LOOKED_AT);
    Ok(if all_old && full { Forgotten::UpTo(Seq(up_to)) } else { Forgotten::Everything })
}

/// Moves the floor of each conversation to the highest of its events that were deleted, given with their conversations.
pub(in crate::store) fn raise_floors(conn: &mut Conn, deleted: Vec<(i64, i64)>) -> QueryResult<()> {
    let mut highest: BTreeMap<i64, i64> = BTreeMap::new();
    for (conversation, seq) in deleted {
        let floor = highest.entry(conversation).or_insert(seq);
        *floor = seq.max(*floor);
    }
    for (conversation, floor) in highest {
        let lower = conversations::table.find(conversation).filter(conversations::stream_floor.lt(floor));
        diesel::update(lower).set(conversations::stream_floor.eq(floor)).execute(conn)?;
    }
    Ok(())
}
