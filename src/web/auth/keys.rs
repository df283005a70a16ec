//! API keys: made and revoked on a page, told once.

use jiff::Timestamp;
use serde_json::json;

use super::token::SecretToken;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::database::db::{Db, DbError};
use crate::store::{Conn, console_access};
use crate::web::console_state::ConsoleState;
use crate::web::stream_limit::StreamOwner;

/// By which a key is known for one where it should not be, as in a repository.
pub(super) const PREFIX: &str = "dlr_";
/// Characters by which the owner knows it again.
const ENDING: usize = 4;

/// Makes a key and returns it. It is not to be had again.
pub(in crate::web) async fn create_key(db: &Db, name: String, now: Timestamp) -> Result<String, DbError> {
    let token = SecretToken::random();
    let key = format!("{PREFIX}{}", token.as_str());
    let ending = key[key.len() - ENDING..].to_owned();
    let make = move |conn: &mut Conn| {
        let id = console_access::create_api_key(conn, token.hash(), &name, &ending, now)?;
        let detail = json!({ "name": name });
        let entry =
            NewAuditEntry { actor: Actor::Console, kind: "key_made", subject: AuditSubject::Key(id), detail };
        audit::record_change(conn, &entry, now)
    };
    db.write(make).await?;
    Ok(key)
}

/// From here on the key opens nothing, and nothing that it opened is told on.
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
        // Here, since nobody may wait for the answer any more when it comes.
        streams.end_streams(StreamOwner::Key(id));
        Ok(())
    };
    console.db.write(revoke).await
}
