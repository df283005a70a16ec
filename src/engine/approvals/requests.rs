//! Requests for approvals, with the codes that the household uses.

use jiff::Timestamp;

use crate::conversation::transcript::{CallRow, UserId};
use crate::engine::settings::HouseholdSettings;
use crate::store::confirmation::approvals::{self, Approval, ApprovalKind, NewApproval};
use crate::store::{Conn, QueryResult};

/// Requests an approval about a user. `call` is the call of the user that asked for it.
pub(crate) fn request_approval(
    conn: &mut Conn,
    (user, call): (UserId, Option<CallRow>),
    kind: &ApprovalKind,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<Approval> {
    let mut codes = settings.codes.approval_codes();
    approvals::request_approval(conn, &NewApproval { user, kind, call }, &mut || codes.draw_code(), now)
}
