//! Call of a deletion that an admin has approved for another user.

use diesel::prelude::*;
use jiff::Timestamp;

use super::deletion_items;
use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::transcript::{CallRow, EventId, TurnId};
use crate::store::Conn;
use crate::store::schema::tool_calls;
use crate::store::turns::model_steps;

/// Deletion that an admin has approved for another user.
#[derive(Debug, Clone)]
pub struct ApprovedDeletion<'a> {
    pub turn: TurnId,
    /// Message that approved the deletion.
    pub approved_by: EventId,
    pub tool: &'a str,
    pub item: &'a DeletionTarget,
}

/// Creates the call that the turn executes. The call references the approving message from the start.
pub fn create_approved_call(
    conn: &mut Conn,
    approved: &ApprovedDeletion<'_>,
    now: Timestamp,
) -> QueryResult<CallRow> {
    let call = model_steps::add_call(conn, approved.turn, approved.tool, now)?;
    deletion_items::insert_items(conn, call, std::slice::from_ref(approved.item))?;
    diesel::update(tool_calls::table.find(call))
        .set((tool_calls::confirmed_by.eq(approved.approved_by), tool_calls::run_turn_id.eq(approved.turn)))
        .execute(conn)?;
    Ok(call)
}
