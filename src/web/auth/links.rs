//! Sign-in links: made at the shell, good once and for ten minutes. Opening one shows a button and changes nothing, since
//! messengers look at links before people do; pressing it signs in.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::token::SecretToken;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::{Conn, QueryResult, console_access};

/// Where links lead.
pub const LINK_PATH: &str = "/sign-in/link";
const LASTS: SignedDuration = SignedDuration::from_mins(10);

/// Returns what follows the console's address.
pub fn create_link(conn: &mut Conn, by: Actor, now: Timestamp) -> QueryResult<String> {
    let entry =
        NewAuditEntry { actor: by, kind: "sign_in_link", subject: AuditSubject::Console, detail: json!({}) };
    audit::record_change(conn, &entry, now)?;
    let token = SecretToken::random();
    console_access::create_sign_in_link(conn, token.hash(), now, now + LASTS)?;
    Ok(format!("{LINK_PATH}?token={}", token.as_str()))
}
