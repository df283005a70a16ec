//! Outbound messages with their delivery status.

use diesel::prelude::*;
use jiff::Timestamp;

use super::fate::{self, Fate, Why};
use super::who::{self, Who};
use super::{Listed, one_more};
use crate::conversation::transcript::{ConversationId, UserId};
use crate::store::codec::{number, time};
use crate::store::schema::{outbox, turns, users};
use crate::store::written::Written;
use crate::store::{Conn, QueryResult, outbox as texts, resending};

/// Failed messages. Those that the carrier calls canceled are excluded: it reports that status only for scheduled
/// messages, and Dialarr schedules none.
const FAILED: Written = Written("(outbox.state = 'failed' OR outbox.delivery IN ('undelivered','failed'))");

/// Filter for the list of outbound messages.
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
    pub fate: Fate,
    pub why: Why,
    pub may_be_sent_again: bool,
    pub at: Timestamp,
}

type Row = ((i64, Option<i64>, String, Option<String>, i64, i64), fate::Row, who::Row);

/// Loads outbound messages, newest first, below `before`.
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
            fate::Row::as_select(),
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

fn read(conn: &mut Conn, (text, row, who): Row) -> QueryResult<Delivery> {
    let (id, turn, body, picture, segments, at) = text;
    let conversation: Option<i64> = match turn {
        Some(turn) => Some(turns::table.find(turn).select(turns::conversation_id).first(conn)?),
        None => None,
    };
    let (fate, why) = (row.fate()?, row.why(conn)?);
    let may_be_sent_again = fate == Fate::Failed && resending::may_be(conn, id)?;
    Ok(Delivery {
        id,
        to: who.read()?,
        conversation: conversation.map(ConversationId),
        body,
        has_picture: picture.is_some(),
        segments: number(segments)?,
        fate,
        why,
        may_be_sent_again,
        at: time(at)?,
    })
}
