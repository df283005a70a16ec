//! Delivery reports of the carrier about accepted messages. Reports may arrive late, twice and in any order, so the
//! delivery status only advances.

use diesel::prelude::*;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::callbacks::{CallbackKey, CallbackToken};
use super::outbox::{self, AcceptanceOutcome, AcceptedMessage};
use super::outbox_events::{ChangedMessage, record_changed_messages};
use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::notifications::quiet_hours::QuietHours;
use crate::conversation::routing::verification::is_same_party;
use crate::conversation::transcript::{Address, OutboxId};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::database::statement_cache::CacheStatement;
use crate::store::schema::{delivery_events, outbox as rows};

/// Household settings that apply when messages are sent and accepted.
#[derive(Debug, Clone)]
pub struct AcceptancePolicy {
    /// Period for which a confirmation prompt stays open.
    pub confirm_for: SignedDuration,
    /// Time zone of the household, which determines the day that segments count towards.
    pub zone: TimeZone,
    /// Quiet hours of the household.
    pub quiet: Option<QuietHours>,
}

/// Status callback of the carrier about one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryReport {
    pub sid: String,
    pub status: String,
    /// Key in the URL of the callback; `None` for a URL without a valid key.
    pub key: Option<CallbackKey>,
    pub to: Address,
    pub error_code: Option<u32>,
}

/// Outcome of recording a delivery report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportOutcome {
    /// The report is new. The fields are the acceptance that the report proves, and the final status if this report is
    /// the first one with a final status.
    New(AcceptanceOutcome, Option<DeliveryStatus>),
    Known,
    /// The report matches no outbound message: nothing was changed.
    Unbound,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = rows)]
struct ReportedMessageRow {
    attempts: i64,
    to_addr: Address,
    provider_sid: Option<String>,
    callback_word: Option<String>,
}

impl ReportedMessageRow {
    /// Returns whether a report is about this message. The report must name an attempt that was made, the token of the
    /// row, the same recipient and, if the message has a carrier id, that id. No report matches a row without a token.
    fn matches_report(&self, report: &DeliveryReport, key: &CallbackKey) -> bool {
        let token_matches =
            self.callback_word.as_deref().is_some_and(|token| CallbackToken::from_stored(token) == key.token);
        let attempt_matches = (1..=self.attempts).contains(&i64::from(key.attempt));
        let recipient_matches = is_same_party(&self.to_addr, &report.to);
        let sid_matches = self.provider_sid.as_ref().is_none_or(|sid| *sid == report.sid);
        token_matches && attempt_matches && recipient_matches && sid_matches
    }
}

/// Records a report about the message that its callback URL names, and the acceptance that the report proves.
pub fn record_delivery_report(
    conn: &mut Conn,
    report: &DeliveryReport,
    policy: &AcceptancePolicy,
    now: Timestamp,
) -> QueryResult<ReportOutcome> {
    let Some(key) = &report.key else { return Ok(ReportOutcome::Unbound) };
    let row: Option<ReportedMessageRow> =
        rows::table.find(key.outbox).select(ReportedMessageRow::as_select()).first(conn).optional()?;
    if !row.is_some_and(|row| row.matches_report(report, key)) {
        return Ok(ReportOutcome::Unbound);
    }
    let inserted = diesel::insert_into(delivery_events::table)
        .values((
            delivery_events::provider_sid.eq(&report.sid),
            delivery_events::status.eq(&report.status),
            delivery_events::outbox_id.eq(key.outbox),
            delivery_events::attempt.eq(i64::from(key.attempt)),
            delivery_events::error_code.eq(report.error_code.map(i64::from)),
            delivery_events::received_at.eq(ms(now)),
        ))
        .on_conflict_do_nothing()
        .execute(conn)?;
    if inserted == 0 {
        return Ok(ReportOutcome::Known);
    }
    // Any report proves that the message was accepted, whether or not the response to the request arrived.
    let accepted = AcceptedMessage { sid: &report.sid, created_at: None };
    let acceptance = outbox::record_reported_acceptance(conn, key.outbox, &accepted, policy, now)?;
    let final_status = advance_delivery(conn, key.outbox, &report.sid, &report.status, now)?;
    Ok(ReportOutcome::New(acceptance, final_status))
}

/// Advances the delivery status of the message with this carrier id, never backwards. Returns the status if it is the
/// first final one.
pub(in crate::store) fn advance_delivery(
    conn: &mut Conn,
    id: OutboxId,
    sid: &str,
    status: &str,
    now: Timestamp,
) -> QueryResult<Option<DeliveryStatus>> {
    let Some(reported) = DeliveryStatus::from_carrier_status(status) else { return Ok(None) };
    let current: Option<Option<DeliveryStatus>> = rows::table
        .find(id)
        .filter(rows::provider_sid.eq(sid))
        .select(rows::delivery)
        .first(conn)
        .optional()?;
    let Some(current) = current else { return Ok(None) };
    if current.is_some_and(|current| current.carrier_progress() >= reported.carrier_progress()) {
        return Ok(None);
    }
    let changed = diesel::update(rows::table.find(id))
        .set((rows::delivery.eq(reported), rows::updated_at.eq(ms(now))))
        .returning(ChangedMessage::as_returning())
        .cached()
        .get_results(conn)?;
    record_changed_messages(conn, changed, now)?;
    let was_final = current.is_some_and(DeliveryStatus::is_final_report);
    Ok((reported.is_final_report() && !was_final).then_some(reported))
}
