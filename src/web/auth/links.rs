//! Sign-in links: created at the shell, valid once and for ten minutes. Opening a link only shows a button, because
//! messaging apps fetch links for previews; pressing the button signs in.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::token::SecretToken;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::{Conn, QueryResult, console_access};

/// Path of the page that sign-in links open.
pub const LINK_PATH: &str = "/sign-in/link";
const LINK_LIFETIME: SignedDuration = SignedDuration::from_mins(10);

/// Creates a sign-in link and returns the part of it that follows the console's base URL.
pub fn create_link(conn: &mut Conn, actor: Actor, now: Timestamp) -> QueryResult<String> {
    let entry =
        NewAuditEntry { actor, kind: "sign_in_link", subject: AuditSubject::Console, detail: json!({}) };
    audit::record_change(conn, &entry, now)?;
    let token = SecretToken::random();
    console_access::create_sign_in_link(conn, token.hash(), now, now + LINK_LIFETIME)?;
    Ok(format!("{LINK_PATH}?token={}", token.as_str()))
}
