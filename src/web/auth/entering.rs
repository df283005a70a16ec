//! Signing in and out. Each time it is another session, so that nobody can hand a browser one that they know.

use std::time::Duration;

use axum::http::HeaderMap;
use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::cookie::{self, Care};
use super::password::{PasswordError, Typed};
use super::throttle::{self, Try};
use super::token::Token;
use crate::store::access::{self, LinkUse};
use crate::store::audit::{self, By, Entry, Subject};
use crate::store::db::DbError;
use crate::store::{Conn, QueryResult};
use crate::web::console_state::ConsoleState;
use crate::web::places::{Follower, Places};

/// How long a session lasts after it was last used.
pub(super) const SESSION: SignedDuration = SignedDuration::from_secs(cookie::SECONDS);

/// What came of trying to sign in.
#[derive(Debug)]
pub(in crate::web) enum Entering {
    /// With the cookie that the browser is to keep.
    Entered(String),
    Refused,
    /// Too many passwords were wrong.
    Later(Duration),
}

pub(in crate::web) async fn by_password(
    console: &ConsoleState,
    headers: &HeaderMap,
    typed: SecretString,
) -> Result<Entering, PasswordError> {
    let Some(hash) = console.db.read(access::password).await? else { return Ok(Entering::Refused) };
    let now = console.clock.now();
    if let Try::Later(wait) = console.access.throttle().begin(now) {
        return Ok(Entering::Later(wait));
    }
    match console.access.hashing.compare(typed, hash.clone()).await? {
        Typed::Right => {
            let failed_before = console.access.throttle().succeeded();
            let token = Token::random();
            let (new, old) = (token.hash(), cookie::held(headers).map(|(old, _)| old));
            let streams = console.streams.clone();
            let enter = move |conn: &mut Conn| {
                // The password may have been another one for the time it took to compare.
                if access::password(conn)?.as_ref() != Some(&hash) {
                    return Ok(false);
                }
                record(conn, "sign_in", json!({ "with": "password", "failed_before": failed_before }), now)?;
                if let Some(old) = old {
                    end(conn, &streams, &old)?;
                }
                access::open_session(conn, new, now, now + SESSION)?;
                Ok(true)
            };
            let entered = console.db.write(enter).await?;
            Ok(if entered { given(&token, headers) } else { Entering::Refused })
        }
        Typed::Wrong => {
            let failed = console.access.throttle().failed();
            tracing::warn!(failed, "a wrong password was typed at the console");
            if throttle::is_remarkable(failed) {
                let tell =
                    move |conn: &mut _| record(conn, "sign_in_failed", json!({ "failed": failed }), now);
                console.db.write(tell).await?;
            }
            Ok(Entering::Refused)
        }
    }
}

pub(in crate::web) async fn by_link(
    console: &ConsoleState,
    headers: &HeaderMap,
    link: &str,
) -> Result<Entering, DbError> {
    let Some(link) = Token::read(link) else { return Ok(Entering::Refused) };
    let (token, now) = (Token::random(), console.clock.now());
    let (link, new, old) = (link.hash(), token.hash(), cookie::held(headers).map(|(old, _)| old));
    let streams = console.streams.clone();
    let enter = move |conn: &mut Conn| {
        match access::use_link(conn, link, now)? {
            LinkUse::Dead => return Ok(LinkUse::Dead),
            LinkUse::Opened => {}
        }
        record(conn, "sign_in", json!({ "with": "link" }), now)?;
        if let Some(old) = old {
            end(conn, &streams, &old)?;
        }
        access::open_session(conn, new, now, now + SESSION)?;
        Ok(LinkUse::Opened)
    };
    Ok(match console.db.write(enter).await? {
        LinkUse::Opened => given(&token, headers),
        LinkUse::Dead => Entering::Refused,
    })
}

/// Whether a link would open the console; it still does afterwards.
pub(in crate::web) async fn link_stands(console: &ConsoleState, link: &str) -> Result<bool, DbError> {
    let Some(link) = Token::read(link) else { return Ok(false) };
    let (link, now) = (link.hash(), console.clock.now());
    console.db.read(move |conn| access::link_stands(conn, link, now)).await
}

/// Ends the session that a request comes with, and returns what makes the browser forget it.
pub(in crate::web) async fn leave(
    console: &ConsoleState,
    headers: &HeaderMap,
) -> Result<[String; 2], DbError> {
    if let Some((token, _)) = cookie::held(headers) {
        let (streams, now) = (console.streams.clone(), console.clock.now());
        let leave = move |conn: &mut Conn| {
            record(conn, "sign_out", json!({}), now)?;
            end(conn, &streams, &token)
        };
        console.db.write(leave).await?;
    }
    Ok(cookie::take_back())
}

/// With the session ends what its pages follow.
fn end(conn: &mut Conn, streams: &Places, session: &Token) -> QueryResult<()> {
    access::end_session(conn, session.hash())?;
    streams.end(Follower::Session(session.of_forms()));
    Ok(())
}

fn given(token: &Token, headers: &HeaderMap) -> Entering {
    Entering::Entered(cookie::give(token, Care::of(headers)))
}

fn record(conn: &mut Conn, kind: &'static str, detail: Value, now: Timestamp) -> QueryResult<()> {
    let entry = Entry { by: By::Console, kind, subject: Subject::Console, detail };
    audit::record(conn, &entry, now)
}
