//! Signing in and out. Each sign-in creates a new session, against session fixation.

use std::time::Duration;

use axum::http::HeaderMap;
use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::cookie::{self, CookieSecurity};
use super::password::{PasswordCheck, PasswordError};
use super::throttle::{self, PasswordAttempt};
use super::token::SecretToken;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::console_access::{self, SignInLinkOutcome};
use crate::store::database::db::DbError;
use crate::store::{Conn, QueryResult};
use crate::web::console_state::ConsoleState;
use crate::web::stream_limit::{StreamLimit, StreamOwner};

/// Lifetime of a session after its last use.
pub(super) const SESSION_LIFETIME: SignedDuration = SignedDuration::from_secs(cookie::MAX_AGE_SECONDS);

/// Outcome of an attempt to sign in.
#[derive(Debug)]
pub(in crate::web) enum SignInOutcome {
    /// Success, with the cookie that the browser must store.
    SignedIn(String),
    Refused,
    /// Refusal after too many wrong passwords, with the time to wait.
    RetryAfter(Duration),
}

pub(in crate::web) async fn sign_in_with_password(
    console: &ConsoleState,
    headers: &HeaderMap,
    entered: SecretString,
) -> Result<SignInOutcome, PasswordError> {
    let Some(hash) = console.db.read(console_access::load_password_hash).await? else {
        return Ok(SignInOutcome::Refused);
    };
    let now = console.clock.now();
    if let PasswordAttempt::RetryAfter(wait) = console.access.lock_throttle().begin_attempt(now) {
        return Ok(SignInOutcome::RetryAfter(wait));
    }
    match console.access.hashing.compare_password(entered, hash.clone()).await? {
        PasswordCheck::Correct => {
            let failed_before = console.access.lock_throttle().record_success();
            let token = SecretToken::random();
            let (new, old) = (token.hash(), cookie::parse_session(headers).map(|(old, _)| old));
            let streams = console.streams.clone();
            let open_session = move |conn: &mut Conn| {
                // The password may have been changed during the comparison.
                if console_access::load_password_hash(conn)?.as_ref() != Some(&hash) {
                    return Ok(false);
                }
                record_audit(
                    conn,
                    "sign_in",
                    json!({ "with": "password", "failed_before": failed_before }),
                    now,
                )?;
                if let Some(old) = &old {
                    end_session(conn, &streams, old)?;
                }
                console_access::open_session(conn, new, now, now + SESSION_LIFETIME)?;
                Ok(true)
            };
            let is_open = console.db.write(open_session).await?;
            Ok(if is_open { signed_in_outcome(&token, headers) } else { SignInOutcome::Refused })
        }
        PasswordCheck::Wrong => {
            let failed = console.access.lock_throttle().failure_count();
            tracing::warn!(failed, "refused a sign-in with a wrong password");
            if throttle::is_audited(failed) {
                let record = move |conn: &mut _| {
                    record_audit(conn, "sign_in_failed", json!({ "failed": failed }), now)
                };
                console.db.write(record).await?;
            }
            Ok(SignInOutcome::Refused)
        }
    }
}

pub(in crate::web) async fn sign_in_with_link(
    console: &ConsoleState,
    headers: &HeaderMap,
    link: &str,
) -> Result<SignInOutcome, DbError> {
    let Some(link) = SecretToken::parse(link) else { return Ok(SignInOutcome::Refused) };
    let (token, now) = (SecretToken::random(), console.clock.now());
    let (link, new, old) = (link.hash(), token.hash(), cookie::parse_session(headers).map(|(old, _)| old));
    let streams = console.streams.clone();
    let open_session = move |conn: &mut Conn| {
        match console_access::redeem_sign_in_link(conn, link, now)? {
            SignInLinkOutcome::Invalid => return Ok(SignInLinkOutcome::Invalid),
            SignInLinkOutcome::Redeemed => {}
        }
        record_audit(conn, "sign_in", json!({ "with": "link" }), now)?;
        if let Some(old) = &old {
            end_session(conn, &streams, old)?;
        }
        console_access::open_session(conn, new, now, now + SESSION_LIFETIME)?;
        Ok(SignInLinkOutcome::Redeemed)
    };
    Ok(match console.db.write(open_session).await? {
        SignInLinkOutcome::Redeemed => signed_in_outcome(&token, headers),
        SignInLinkOutcome::Invalid => SignInOutcome::Refused,
    })
}

/// Returns whether a link can be redeemed. The check does not redeem it.
pub(in crate::web) async fn is_link_valid(console: &ConsoleState, link: &str) -> Result<bool, DbError> {
    let Some(link) = SecretToken::parse(link) else { return Ok(false) };
    let (link, now) = (link.hash(), console.clock.now());
    console.db.read(move |conn| console_access::is_sign_in_link_valid(conn, link, now)).await
}

/// Ends the session of a request, and returns the cookies that make the browser delete its token.
pub(in crate::web) async fn sign_out(
    console: &ConsoleState,
    headers: &HeaderMap,
) -> Result<[String; 2], DbError> {
    if let Some((token, _)) = cookie::parse_session(headers) {
        let (streams, now) = (console.streams.clone(), console.clock.now());
        let close_session = move |conn: &mut Conn| {
            record_audit(conn, "sign_out", json!({}), now)?;
            end_session(conn, &streams, &token)
        };
        console.db.write(close_session).await?;
    }
    Ok(cookie::expired_cookies())
}

/// Ends a session and the streams of its pages.
fn end_session(conn: &mut Conn, streams: &StreamLimit, session: &SecretToken) -> QueryResult<()> {
    console_access::end_session(conn, session.hash())?;
    streams.end_streams(StreamOwner::Session(session.form_token()));
    Ok(())
}

fn signed_in_outcome(token: &SecretToken, headers: &HeaderMap) -> SignInOutcome {
    SignInOutcome::SignedIn(cookie::session_cookie(token, CookieSecurity::from_headers(headers)))
}

fn record_audit(conn: &mut Conn, kind: &'static str, detail: Value, now: Timestamp) -> QueryResult<()> {
    let entry = NewAuditEntry { actor: Actor::Console, kind, subject: AuditSubject::Console, detail };
    audit::record_change(conn, &entry, now)
}
