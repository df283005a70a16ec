//! Outbound messages with their delivery status.

use diesel::prelude::*;

use super::user_ref::{UserRef, UserRefRow};
use super::{ResultPage, query_limit};
use crate::conversation::transcript::{ConversationId, UserId};
use crate::store::conversation::record::messages::OutboundRecord;
use crate::store::database::literal_sql::literal_sql;
use crate::store::queue::outbox::OPEN as OPEN_MESSAGE;
use crate::store::queue::resend;
use crate::store::schema::{outbox, turns, users};
use crate::store::{Conn, QueryResult};

literal_sql! {
    /// Condition of a failed message. The status `canceled` is not included: the carrier reports it only for scheduled
    /// messages, and Dialarr schedules none.
    const FAILED = "(outbox.state = 'failed' OR outbox.delivery IN ('undelivered','failed'))";
}

/// Filter for the list of outbound messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryFilter {
    All,
    Waiting,
    Failed,
    To(UserId),
}

/// Outbound message as shown in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliverySummary {
    pub message: OutboundRecord,
    pub to: UserRef,
    pub conversation: Option<ConversationId>,
    pub can_resend: bool,
}

/// Loads the outbound messages below `before`, newest first.
pub fn load_delivery_summaries(
    conn: &mut Conn,
    filter: DeliveryFilter,
    before: i64,
    page_size: usize,
) -> QueryResult<ResultPage<DeliverySummary>> {
    let query = outbox::table
        .inner_join(users::table.on(users::id.eq(outbox::user_id)))
        .order(outbox::id.desc())
        .limit(query_limit(page_size))
        .select((OutboundRecord::as_select(), UserRefRow::as_select()));
    let is_below = outbox::id.lt(before);
    let rows: Vec<(OutboundRecord, UserRefRow)> = match filter {
        DeliveryFilter::All => query.filter(is_below).load(conn)?,
        DeliveryFilter::Waiting => query.filter(OPEN_MESSAGE.and(is_below)).load(conn)?,
        DeliveryFilter::Failed => query.filter(FAILED.and(is_below)).load(conn)?,
        DeliveryFilter::To(user) => query.filter(outbox::user_id.eq(user).and(is_below)).load(conn)?,
    };
    let load_summary = |(mut message, to): (OutboundRecord, UserRefRow)| {
        let turn: Option<(ConversationId, bool)> = match message.turn {
            Some(turn) => Some(
                turns::table.find(turn).select((turns::conversation_id, turns::about_viewing)).first(conn)?,
            ),
            None => None,
        };
        message.hide_viewing();
        if turn.is_some_and(|(_, about_viewing)| about_viewing) {
            message.hide_body();
        }
        Ok(DeliverySummary {
            to: to.into(),
            conversation: turn.map(|(conversation, _)| conversation),
            can_resend: message.status().has_failed() && resend::can_resend(conn, message.id.0)?,
            message,
        })
    };
    let summaries: Vec<DeliverySummary> = rows.into_iter().map(load_summary).collect::<QueryResult<_>>()?;
    Ok(ResultPage::from_rows(summaries, page_size, |summary| summary.message.id.0))
}
