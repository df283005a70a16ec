//! Approvals of requests at a Seerr: which requests were offered to the admins, and the decisions to pass on.

use diesel::prelude::*;
use jiff::Timestamp;

use super::approvals::{ApprovalState, OPEN, StoredApprovalKind};
use crate::conversation::transcript::UserId;
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::database::literal_sql::literal_sql;
use crate::store::schema::approvals;

literal_sql! {
    /// Condition of requests that were offered to the admins, matched by a partial index.
    const OFFERED = "approvals.kind = 'seerr' AND approvals.state <> 'replaced'";
    /// Condition of decisions that were not passed on, matched by a partial index.
    const TO_PASS_ON =
        "approvals.kind = 'seerr' AND approvals.passed_on_at IS NULL AND (approvals.state = 'approved' OR \
         approvals.state = 'denied')";
}

/// Decision of an admin on a request at a Seerr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeerrDecision {
    pub approval: i64,
    /// Id of the request at the Seerr.
    pub request: i64,
    /// Name of the title.
    pub title: String,
    pub admin: UserId,
    pub is_approved: bool,
    pub decided_at: Timestamp,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = approvals)]
struct DecisionRow {
    id: i64,
    item_id: Option<i64>,
    title: Option<String>,
    state: ApprovalState,
    settled_at: Option<Timestamp>,
    settled_by: Option<UserId>,
}

impl DecisionRow {
    /// Returns the decision; `None` without an admin or a request, so that nothing is passed on.
    fn into_decision(self) -> Option<SeerrDecision> {
        Some(SeerrDecision {
            approval: self.id,
            request: self.item_id?,
            title: self.title?,
            admin: self.settled_by?,
            is_approved: self.state == ApprovalState::Approved,
            decided_at: self.settled_at?,
        })
    }
}

/// Returns which of these requests at a Seerr were offered to the admins.
pub fn load_offered_requests(conn: &mut Conn, requests: &[i64]) -> QueryResult<Vec<i64>> {
    let offered: Vec<Option<i64>> = approvals::table
        .filter(OFFERED.and(approvals::item_id.eq_any(requests)))
        .select(approvals::item_id)
        .load(conn)?;
    Ok(offered.into_iter().flatten().collect())
}

/// Loads the ids of the open offers, each with the id of its request at the Seerr.
pub fn load_open_offers(conn: &mut Conn) -> QueryResult<Vec<(i64, i64)>> {
    let open: Vec<(i64, Option<i64>)> = approvals::table
        .filter(OPEN.and(approvals::kind.eq(StoredApprovalKind::SeerrRequest)))
        .order(approvals::id)
        .select((approvals::id, approvals::item_id))
        .load(conn)?;
    Ok(open.into_iter().filter_map(|(approval, request)| Some((approval, request?))).collect())
}

/// Loads the decisions that were not passed on to the Seerr yet, oldest first.
pub fn load_decisions_to_pass_on(conn: &mut Conn) -> QueryResult<Vec<SeerrDecision>> {
    let rows: Vec<DecisionRow> = approvals::table
        .filter(TO_PASS_ON)
        .order(approvals::id)
        .select(DecisionRow::as_select())
        .load(conn)?;
    Ok(rows.into_iter().filter_map(DecisionRow::into_decision).collect())
}

/// Outcome of recording that a decision was passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassOnOutcome {
    Recorded,
    AlreadyRecorded,
}

/// Records that a decision was passed on, or that nothing more is done about it.
pub fn record_passed_on(conn: &mut Conn, approval: i64, now: Timestamp) -> QueryResult<PassOnOutcome> {
    let waiting = approvals::table.find(approval).filter(approvals::passed_on_at.is_null());
    let updated = diesel::update(waiting).set(approvals::passed_on_at.eq(ms(now))).execute(conn)?;
    Ok(if updated == 1 { PassOnOutcome::Recorded } else { PassOnOutcome::AlreadyRecorded })
}
