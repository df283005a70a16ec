//! Sign-in links: made at the shell, good once and for ten minutes. Opening one shows a button and changes nothing, since
//! messengers look at links before people do; pressing it signs in.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::token::Token;
use crate::store::audit::{self, By, Entry, Subject};
use crate::store::{Conn, QueryResult, access};

/// Where links lead.
pub const LINK_PATH: &str = "/sign-in/link";
const LASTS: SignedDuration = SignedDuration::from_mins(10);

/// Returns what follows the console's address.
pub fn offer(conn: &mut Conn, by: By, now: Timestamp) -> QueryResult<String> {
    let entry = Entry { by, kind: "sign_in_link", subject: Subject::Console, detail: json!({}) };
    audit::record(conn, &entry, now)?;
    let token = Token::random();
    access::offer_link(conn, token.hash(), now, now + LASTS)?;
    Ok(format!("{LINK_PATH}?token={}", token.as_str()))
}
