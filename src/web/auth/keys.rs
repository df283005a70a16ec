//! API keys: created and revoked in the console. A key is shown only once.

use jiff::Timestamp;
use serde_json::json;

use super::token::SecretToken;
use crate::conversation::transcript::UserId;
use crate::store::Conn;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::console_access::{self, KeyScope, NewApiKey};
use crate::store::database::db::{Db, DbError};
use crate::web::console_state::ConsoleState;
use crate::web::stream_limit::StreamOwner;

/// Prefix that makes a leaked key recognizable as such, e.g. in a repository.
pub(super) const KEY_PREFIX: &str = "dlr_";
/// Number of characters at the end of a key that are stored, so that the operator can identify it.
const ENDING_LENGTH: usize = 4;

/// Creates a key, for a program or for an agent that acts for a person, and returns it. The key cannot be retrieved later.
pub async fn create_key(
    db: &Db,
    (name, scope, agent_of): (String, KeyScope, Option<UserId>),
    now: Timestamp,
) -> Result<String, DbError> {
    let token = SecretToken::random();
    let key = format!("{KEY_PREFIX}{}", token.as_str());
    let ending = key[key.len() - ENDING_LENGTH..].to_owned();
    let new_key = NewApiKey { hash: token.hash(), name, ending, scope, agent_of };
    let create = move |conn: &mut Conn| {
        let id = console_access::create_api_key(conn, &new_key, now)?;
        let mut detail = json!({ "name": new_key.name, "scope": scope });
        if let Some(person) = agent_of {
            detail["agent_of"] = json!(person.0);
        }
        let entry =
            NewAuditEntry { actor: Actor::Console, kind: "key_made", subject: AuditSubject::Key(id), detail };
        audit::record_change(conn, &entry, now)
    };
    db.write(create).await?;
    Ok(key)
}

/// Revokes a key: from now on requests with it are refused, and the streams that it opened are ended.
pub(in crate::web) async fn revoke_key(console: &ConsoleState, id: i64) -> Result<(), DbError> {
    let (streams, now) = (console.streams.clone(), console.clock.now());
    let revoke = move |conn: &mut Conn| {
        let Some(name) = console_access::revoke_api_key(conn, id, now)? else { return Ok(()) };
        let detail = json!({ "name": name });
        let entry = NewAuditEntry {
            actor: Actor::Console,
            kind: "key_revoked",
            subject: AuditSubject::Key(id),
            detail,
        };
        audit::record_change(conn, &entry, now)?;
        // The streams end inside the transaction: if the client disconnects, code after the write never runs.
        streams.end_streams(StreamOwner::Key(id));
        Ok(())
    };
    console.db.write(revoke).await
}
