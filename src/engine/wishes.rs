//! Members' removal requests, and their settlement by an admin or the operator.

use jiff::Timestamp;
use serde_json::json;

use super::ending::WayBack;
use crate::conversation::deletion;
use crate::conversation::transcript::Address;
use crate::store::approvals::{self, Approval, End, Matter, Settled};
use crate::store::audit::{self, By, Entry, Subject};
use crate::store::{Conn, QueryResult, outbox, users};

/// Key of the notification about the outcome of an approved removal request.
pub(super) fn done_key(wish: i64) -> String {
    format!("approval:{wish}:done")
}

/// Denies a removal request: the title stays, and the member is notified. `number` is ours, if one is configured.
pub(super) fn deny(
    conn: &mut Conn,
    wish: &Approval,
    by: By,
    number: Option<&Address>,
    now: Timestamp,
) -> QueryResult<Settled> {
    let Matter::Delete(item) = &wish.matter else { return Ok(Settled::TooLate) };
    if approvals::settle(conn, wish.id, End::Denied, by.user(), now)? == Settled::TooLate {
        return Ok(Settled::TooLate);
    }
    let subject = Subject::Approval(wish.id);
    audit::record(conn, &Entry { by, kind: "deny_deletion", subject, detail: json!({}) }, now)?;
    let member = users::get(conn, wish.user)?;
    let key = format!("approval:{}:denied", wish.id);
    let way = WayBack::to_user(conn, &member, number)?;
    outbox::queue_once(conn, &way.notice(&key, &deletion::wish_denied(item)), now)?;
    Ok(Settled::Done)
}
