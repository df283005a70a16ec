//! State transitions of one item of a confirmed deletion: start, reset and finish.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::deletion::deletion_messages::ItemOutcome;
use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::transcript::CallRow;
use crate::store::Conn;
use crate::store::codec::{fingerprint_json, ms, scope_json, to_json};
use crate::store::column_types::{StoredEnum, stored_enum};
use crate::store::library::kept_titles;
use crate::store::schema::tool_call_items;

stored_enum! {
    /// Stored state of an item.
    pub enum DeletionItemPhase {
        /// The deletion of the item has not started.
        Pending = "held",
        Running = "running",
        /// The program stopped while the item was running.
        Unknown = "unknown",
        /// The item is gone.
        Complete = "complete",
        Error = "error",
        Canceled = "canceled",
    }
}

/// Stores the items of a deletion that waits for its confirmation.
pub(super) fn insert_items(conn: &mut Conn, call: CallRow, items: &[DeletionTarget]) -> QueryResult<()> {
    for (ord, item) in (0_i64..).zip(items) {
        diesel::insert_into(tool_call_items::table)
            .values((
                tool_call_items::tool_call_id.eq(call),
                tool_call_items::ord.eq(ord),
                tool_call_items::instance.eq(&item.instance),
                tool_call_items::kind.eq(item.kind),
                tool_call_items::item_id.eq(item.id),
                tool_call_items::delete_files.eq(item.delete_files),
                tool_call_items::extent.eq(scope_json(&item.scope)?),
                tool_call_items::fingerprint.eq(fingerprint_json(&item.fingerprint)?),
                tool_call_items::state.eq(DeletionItemPhase::Pending),
            ))
            .execute(conn)?;
    }
    Ok(())
}

/// Outcome of starting an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemStartOutcome {
    Started,
    NotStartable,
    /// The instance was moved to another server.
    ServerMoved,
    /// Somebody protects the title.
    Protected,
}

/// Starts an item by writing the intent to delete it, unless somebody protects its title.
pub fn start_item(
    conn: &mut Conn,
    (call, ord): (CallRow, i64),
    target: &DeletionTarget,
    now: Timestamp,
) -> QueryResult<ItemStartOutcome> {
    let is_kept = diesel::dsl::exists(kept_titles::protections(target, now));
    let pending = tool_call_items::table
        .find((call, ord))
        .filter(tool_call_items::state.eq(DeletionItemPhase::Pending));
    let started = diesel::update(pending.filter(diesel::dsl::not(is_kept)))
        .set((
            tool_call_items::state.eq(DeletionItemPhase::Running),
            tool_call_items::started_at.eq(ms(now)),
            tool_call_items::attempts.eq(tool_call_items::attempts + 1),
        ))
        .execute(conn)?;
    if started == 1 {
        return Ok(ItemStartOutcome::Started);
    }
    let is_pending = diesel::select(diesel::dsl::exists(pending)).get_result(conn)?;
    Ok(if is_pending { ItemStartOutcome::Protected } else { ItemStartOutcome::NotStartable })
}

/// Resets an item that is known to have had no effect, so that the item may be started again.
pub fn reset_item(conn: &mut Conn, call: CallRow, ord: i64) -> QueryResult<()> {
    let started = tool_call_items::state
        .eq(DeletionItemPhase::Running)
        .or(tool_call_items::state.eq(DeletionItemPhase::Unknown));
    diesel::update(tool_call_items::table.find((call, ord)).filter(started))
        .set(tool_call_items::state.eq(DeletionItemPhase::Pending))
        .execute(conn)
        .map(drop)
}

pub fn finish_item(conn: &mut Conn, call: CallRow, ord: i64, outcome: ItemOutcome) -> QueryResult<()> {
    let state = match outcome {
        ItemOutcome::Deleted | ItemOutcome::AlreadyGone => DeletionItemPhase::Complete,
        ItemOutcome::Changed
        | ItemOutcome::Failed
        | ItemOutcome::NotPermitted
        | ItemOutcome::Stopped
        | ItemOutcome::StillThere
        | ItemOutcome::BeingWatched
        | ItemOutcome::ViewingUnknown
        | ItemOutcome::Protected
        | ItemOutcome::Unknown => DeletionItemPhase::Error,
    };
    let stored = to_json(&outcome.as_text())?;
    diesel::update(tool_call_items::table.find((call, ord)))
        .set((tool_call_items::state.eq(state), tool_call_items::result.eq(stored)))
        .execute(conn)
        .map(drop)
}
