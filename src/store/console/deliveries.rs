//! Texts that we send, and what became of each.

use diesel::prelude::*;
use jiff::Timestamp;
use serde::Deserialize;

use super::who::{self, Who};
use super::{Listed, one_more};
use crate::conversation::transcript::{Address, ConversationId, UserId};
use crate::conversation::way::Way;
use crate::store::codec::{from_json, number, time};
use crate::store::schema::{delivery_events, outbox, turns, users};
use crate::store::written::Written;
use crate::store::{Conn, QueryResult, outbox as texts, resending};

const FAILED: Written = Written("(outbox.state = 'failed' OR outbox.delivery IN ('undelivered','failed'))");

/// Which texts are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    All,
    Waiting,
    Failed,
    To(UserId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub id: i64,
    pub to: Who,
    pub conversation: Option<ConversationId>,
    pub body: String,
    pub has_picture: bool,
    pub segments: u32,
    pub state: State,
    pub may_be_sent_again: bool,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Queued,
    /// It could not be sent yet, and why.
    Delayed(String),
    Sending,
    /// It may have been taken; that is being looked into.
    Unknown,
    /// Shown in the console or the terminal, and sent nowhere.
    Shown,
    /// The carrier has it.
    Sent,
    Delivered,
    Read,
    Failed(Why),
    Suppressed,
}

/// Why a text did not arrive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Why {
    /// The carrier's.
    pub code: Option<u32>,
    /// As it was noted when it failed.
    pub noted: Option<String>,
}

type Row = (
    (i64, Option<i64>, String, Option<String>, i64, i64),
    (String, Option<String>, Option<String>, Option<String>, String),
    who::Row,
);

/// Newest first, below `before`.
pub fn list(conn: &mut Conn, which: Which, before: i64, fits: usize) -> QueryResult<Listed<Delivery>> {
    let rows = outbox::table
        .inner_join(users::table.on(users::id.eq(outbox::user_id)))
        .order(outbox::id.desc())
        .limit(one_more(fits))
        .select((
            (
                outbox::id,
                outbox::turn_id,
                outbox::body,
                outbox::media_url,
                outbox::segments,
                outbox::created_at,
            ),
            (outbox::state, outbox::delivery, outbox::error, outbox::provider_sid, outbox::from_addr),
            who::Row::as_select(),
        ));
    let below = outbox::id.lt(before);
    let rows: Vec<Row> = match which {
        Which::All => rows.filter(below).load(conn)?,
        Which::Waiting => rows.filter(texts::OPEN.and(below)).load(conn)?,
        Which::Failed => rows.filter(FAILED.and(below)).load(conn)?,
        Which::To(user) => rows.filter(outbox::user_id.eq(user.0).and(below)).load(conn)?,
    };
    let read: Vec<Delivery> = rows.into_iter().map(|row| read(conn, row)).collect::<QueryResult<_>>()?;
    Ok(Listed::of(read, fits, |delivery| delivery.id))
}

fn read(conn: &mut Conn, (text, fate, who): Row) -> QueryResult<Delivery> {
    let (id, turn, body, picture, segments, at) = text;
    let conversation: Option<i64> = match turn {
        Some(turn) => Some(turns::table.find(turn).select(turns::conversation_id).first(conn)?),
        None => None,
    };
    let state = state(conn, fate)?;
    let may_be_sent_again = matches!(state, State::Failed(_)) && resending::may_be(conn, id)?;
    Ok(Delivery {
        id,
        to: who.read()?,
        conversation: conversation.map(ConversationId),
        body,
        has_picture: picture.is_some(),
        segments: number(segments)?,
        state,
        may_be_sent_again,
        at: time(at)?,
    })
}

/// What is noted of a text that was not taken.
#[derive(Deserialize)]
struct Noted {
    code: Option<u32>,
    meaning: Option<String>,
}

fn state(
    conn: &mut Conn,
    (state, delivery, error, sid, from): (String, Option<String>, Option<String>, Option<String>, String),
) -> QueryResult<State> {
    let noted = error.as_deref().map(|error| from_json::<Noted>("error", error)).transpose()?;
    Ok(match state.as_str() {
        "queued" => match noted.and_then(|noted| noted.meaning) {
            Some(meaning) => State::Delayed(meaning),
            None => State::Queued,
        },
        "attempting" => State::Sending,
        "unknown" => State::Unknown,
        "suppressed" => State::Suppressed,
        "failed" => State::Failed(
            noted.map_or_else(Why::default, |noted| Why { code: noted.code, noted: noted.meaning }),
        ),
        _ if Address::new(from).way() != Way::Carrier => State::Shown,
        _ => match (delivery.as_deref(), sid) {
            (Some("delivered"), _) => State::Delivered,
            (Some("read"), _) => State::Read,
            (Some("undelivered" | "failed" | "canceled"), Some(sid)) => {
                State::Failed(Why { code: reported(conn, &sid)?, noted: None })
            }
            (Some(_) | None, _) => State::Sent,
        },
    })
}

/// The code with which the carrier reported that a text did not arrive.
fn reported(conn: &mut Conn, sid: &str) -> QueryResult<Option<u32>> {
    let codes: Vec<i64> = delivery_events::table
        .filter(delivery_events::provider_sid.eq(sid).and(delivery_events::error_code.is_not_null()))
        .select(delivery_events::error_code.assume_not_null())
        .load(conn)?;
    codes.first().map(|code| number(*code)).transpose()
}
