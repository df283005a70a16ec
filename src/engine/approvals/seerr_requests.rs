//! Decisions of admins by text on requests at a Seerr.

use jiff::Timestamp;

use crate::conversation::seerr_requests::{ADMIN_NOT_LINKED, DECISION_NOTED};
use crate::conversation::transcript::UserId;
use crate::store::confirmation::approvals::{self, Approval, ApprovalOutcome, SettleApprovalOutcome};
use crate::store::people::viewer_accounts;
use crate::store::{Conn, QueryResult};

/// Stores the decision of an admin, which the request watcher passes on. Returns the reply to the admin.
pub(crate) fn decide_request(
    conn: &mut Conn,
    request: &Approval,
    (admin, outcome): (UserId, ApprovalOutcome),
    now: Timestamp,
) -> QueryResult<&'static str> {
    if viewer_accounts::load_seerr_account(conn, admin)?.is_none() {
        return Ok(ADMIN_NOT_LINKED);
    }
    Ok(match approvals::settle_approval(conn, request.id, outcome, Some(admin), now)? {
        SettleApprovalOutcome::Settled => DECISION_NOTED,
        SettleApprovalOutcome::AlreadySettled => "That was already answered.",
    })
}
