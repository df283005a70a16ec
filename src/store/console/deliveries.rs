//! Outbound messages with their delivery status.

use diesel::prelude::*;
use jiff::Timestamp;

use super::delivery_status::{self, DeliveryFailure, DeliveryStatus};
use super::user_ref::{self, UserRef};
use super::{ResultPage, query_limit};
use crate::conversation::transcript::{ConversationId, UserId};
use crate::store::codec::{convert_integer, timestamp_from_ms};
use crate::store::database::literal_sql::LiteralSql;
use crate::store::queue::{outbox as texts, resend};
use crate::store::schema::{outbox, turns, users};
use crate::store::{Conn, QueryResult};

/// Failed messages. Those that the carrier calls canceled are excluded: it reports that status only for scheduled
/// messages, and Dialarr schedules none.
const FAILED: LiteralSql =
    LiteralSql("(outbox.state = 'failed' OR outbox.delivery IN ('undelivered','failed'))");

/// Filter for the list of outbound messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryFilter {
    All,
    Waiting,
    Failed,
    To(UserId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliverySummary {
    pub id: i64,
    pub to: UserRef,
    pub conversation: Option<ConversationId>,
    pub body: String,
    pub has_picture: bool,
    pub segments: u32,
    pub status: DeliveryStatus,
    pub failure: DeliveryFailure,
    pub can_resend: bool,
    pub at: Timestamp,
}

type DeliverySummaryRow = (
    (i64, Option<i64>, String, Option<String>, i64, i64),
    delivery_status::DeliveryStatusRow,
    user_ref::UserRefRow,
);

/// Loads outbound messages, newest first, below `before`.
pub fn load_delivery_summaries(
    conn: &mut Conn,
    which: DeliveryFilter,
    before: i64,
    fits: usize,
) -> QueryResult<ResultPage<DeliverySummary>> {
    let rows = outbox::table
        .inner_join(users::table.on(users::id.eq(outbox::user_id)))
        .order(outbox::id.desc())
        .limit(query_limit(fits))
        .select((
            (
                outbox::id,
                outbox::turn_id,
                outbox::body,
                outbox::media_url,
                outbox::segments,
                outbox::created_at,
            ),
            delivery_status::DeliveryStatusRow::as_select(),
            user_ref::UserRefRow::as_select(),
        ));
    let below = outbox::id.lt(before);
    let rows: Vec<DeliverySummaryRow> = match which {
        DeliveryFilter::All => rows.filter(below).load(conn)?,
        DeliveryFilter::Waiting => rows.filter(texts::OPEN.and(below)).load(conn)?,
        DeliveryFilter::Failed => rows.filter(FAILED.and(below)).load(conn)?,
        DeliveryFilter::To(user) => rows.filter(outbox::user_id.eq(user.0).and(below)).load(conn)?,
    };
    let read: Vec<DeliverySummary> =
        rows.into_iter().map(|row| delivery_from_row(conn, row)).collect::<QueryResult<_>>()?;
    Ok(ResultPage::from_rows(read, fits, |delivery| delivery.id))
}

fn delivery_from_row(conn: &mut Conn, (text, row, who): DeliverySummaryRow) -> QueryResult<DeliverySummary> {
    let (id, turn, body, picture, segments, at) = text;
    let conversation: Option<i64> = match turn {
        Some(turn) => Some(turns::table.find(turn).select(turns::conversation_id).first(conn)?),
        None => None,
    };
    let (fate, why) = (row.delivery_status()?, row.load_delivery_failure(conn)?);
    let may_be_sent_again = fate == DeliveryStatus::Failed && resend::can_resend(conn, id)?;
    Ok(DeliverySummary {
        id,
        to: who.into_user_ref()?,
        conversation: conversation.map(ConversationId),
        body,
        has_picture: picture.is_some(),
        segments: convert_integer(segments)?,
        status: fate,
        failure: why,
        can_resend: may_be_sent_again,
        at: timestamp_from_ms(at)?,
    })
}
