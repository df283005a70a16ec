//! State changes of one item of a confirmed deletion: start, reset and finish.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::deletion::deletion_messages::ItemOutcome;
use crate::conversation::transcript::CallRow;
use crate::store::Conn;
use crate::store::codec::{ms, outcome_word, to_json};
use crate::store::schema::tool_call_items;

/// Outcome of starting an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemStartOutcome {
    Started,
    NotStartable,
}

/// Starts an item by writing the intent to delete it.
pub fn start_item(conn: &mut Conn, call: CallRow, ord: i64, now: Timestamp) -> QueryResult<ItemStartOutcome> {
    let started =
        diesel::update(tool_call_items::table.find((call.0, ord)).filter(tool_call_items::state.eq("held")))
            .set((
                tool_call_items::state.eq("running"),
                tool_call_items::started_at.eq(ms(now)),
                tool_call_items::attempts.eq(tool_call_items::attempts + 1),
            ))
            .execute(conn)?;
    Ok(if started == 1 { ItemStartOutcome::Started } else { ItemStartOutcome::NotStartable })
}

/// Resets an item that is known to have had no effect, so that the item may be started again.
pub fn reset_item(conn: &mut Conn, call: CallRow, ord: i64) -> QueryResult<()> {
    let open = tool_call_items::state.eq("running").or(tool_call_items::state.eq("unknown"));
    diesel::update(tool_call_items::table.find((call.0, ord)).filter(open))
        .set(tool_call_items::state.eq("held"))
        .execute(conn)
        .map(drop)
}

pub fn finish_item(conn: &mut Conn, call: CallRow, ord: i64, outcome: ItemOutcome) -> QueryResult<()> {
    let state = match outcome {
        ItemOutcome::Deleted | ItemOutcome::AlreadyGone => "complete",
        ItemOutcome::Changed
        | ItemOutcome::Failed
        | ItemOutcome::NotPermitted
        | ItemOutcome::Stopped
        | ItemOutcome::StillThere
        | ItemOutcome::Unknown => "error",
    };
    let stored = to_json(&outcome_word(outcome))?;
    diesel::update(tool_call_items::table.find((call.0, ord)))
        .set((tool_call_items::state.eq(state), tool_call_items::result.eq(stored)))
        .execute(conn)
        .map(drop)
}
