//! Outbound messages with their delivery status.

use diesel::prelude::*;

use super::user_ref::{UserRef, UserRefRow};
use super::{ResultPage, query_limit};
use crate::conversation::transcript::{ConversationId, UserId};
use crate::store::conversation::record::delivery::{self, DeliveryFailure};
use crate::store::conversation::record::messages::OutboundRecord;
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
    pub message: OutboundRecord,
    pub to: UserRef,
    pub conversation: Option<ConversationId>,
    pub failure: DeliveryFailure,
    pub can_resend: bool,
}

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
        .select((OutboundRecord::as_select(), UserRefRow::as_select()));
    let below = outbox::id.lt(before);
    let rows: Vec<(OutboundRecord, UserRefRow)> = match which {
        DeliveryFilter::All => rows.filter(below).load(conn)?,
        DeliveryFilter::Waiting => rows.filter(texts::OPEN.and(below)).load(conn)?,
        DeliveryFilter::Failed => rows.filter(FAILED.and(below)).load(conn)?,
        DeliveryFilter::To(user) => rows.filter(outbox::user_id.eq(user).and(below)).load(conn)?,
    };
    let mut failures = delivery::load_delivery_failures(conn, rows.iter().map(|(message, _)| message))?;
    let summary = |(message, to): (OutboundRecord, UserRefRow)| {
        Ok(DeliverySummary {
            to: to.into(),
            conversation: match message.turn {
                Some(turn) => Some(turns::table.find(turn).select(turns::conversation_id).first(conn)?),
                None => None,
            },
            failure: failures.remove(&message.id).unwrap_or_default(),
            can_resend: message.status().has_failed() && resend::can_resend(conn, message.id.0)?,
            message,
        })
    };
    let summaries: Vec<DeliverySummary> = rows.into_iter().map(summary).collect::<QueryResult<_>>()?;
    Ok(ResultPage::from_rows(summaries, fits, |summary| summary.message.id.0))
}
