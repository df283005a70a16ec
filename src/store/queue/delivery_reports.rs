//! Delivery reports of the carrier about accepted messages. Reports may arrive late, twice and in any order, so the
//! delivery status only advances. A report that does not advance the status changes nothing.

use diesel::prelude::*;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::callbacks::{CallbackKey, CallbackToken};
use super::outbox::{self, AcceptanceOutcome, AcceptedMessage, OutboxState, SETTLED};
use super::outbox_events::ChangedMessage;
use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::notifications::quiet_hours::QuietHours;
use crate::conversation::routing::verification::is_same_party;
use crate::conversation::transcript::{Address, OutboxId};
use crate::store::Conn;
use crate::store::codec::{ms, to_json};
use crate::store::conversation::record::delivery::DeliveryFailure;
use crate::store::database::statement_cache::CacheStatement;
use crate::store::schema::outbox as rows;

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
    /// The acceptance that the report proves, and the final status if this report is the first one with a final
    /// status. A repeated or late report changes nothing.
    Recorded(AcceptanceOutcome, Option<DeliveryStatus>),
    /// The report matches no outbound message: nothing was changed.
    Unbound,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = rows)]
struct ReportedMessageRow {
    state: OutboxState,
    attempts: i64,
    to_addr: Address,
    provider_sid: Option<String>,
    delivery: Option<DeliveryStatus>,
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
    let Some(row) = row.filter(|row| row.matches_report(report, key)) else {
        return Ok(ReportOutcome::Unbound);
    };
    let acceptance = if row.provider_sid.is_some() {
        AcceptanceOutcome::Known
    } else if is_new_acceptance(conn, &row, &report.sid)? {
        // Any report proves that the message was accepted, whether or not the response to the request arrived.
        let accepted = AcceptedMessage { sid: &report.sid, created_at: None };
        outbox::record_acceptance(conn, key.outbox, &accepted, policy, now)?
    } else {
        return Ok(ReportOutcome::Recorded(AcceptanceOutcome::Known, None));
    };
    let final_status = advance_delivery(conn, key.outbox, row.delivery, report, now)?;
    Ok(ReportOutcome::Recorded(acceptance, final_status))
}

/// Returns whether the message is still to be accepted, and no other message has the carrier id.
fn is_new_acceptance(conn: &mut Conn, row: &ReportedMessageRow, sid: &str) -> QueryResult<bool> {
    Ok(!SETTLED.contains(&row.state) && outbox::find_first_unclaimed(conn, &[sid.to_owned()])?.is_some())
}

/// Advances the delivery status of an accepted message, never backwards, and stores the error code of the status.
/// Returns the status if it is the first final one.
fn advance_delivery(
    conn: &mut Conn,
    id: OutboxId,
    current: Option<DeliveryStatus>,
    report: &DeliveryReport,
    now: Timestamp,
) -> QueryResult<Option<DeliveryStatus>> {
    let Some(reported) = DeliveryStatus::from_carrier_status(&report.status) else { return Ok(None) };
    if current.is_some_and(|current| current.carrier_progress() >= reported.carrier_progress()) {
        return Ok(None);
    }
    let failure = report.error_code.map(DeliveryFailure::from_carrier_code);
    let changed: ChangedMessage = diesel::update(rows::table.find(id))
        .set((
            rows::delivery.eq(reported),
            rows::error.eq(failure.map(|failure| to_json(&failure)).transpose()?),
            rows::updated_at.eq(ms(now)),
        ))
        .returning(ChangedMessage::as_returning())
        .cached()
        .get_result(conn)?;
    changed.record_change(conn, now)?;
    let was_final = current.is_some_and(DeliveryStatus::is_final_report);
    Ok((reported.is_final_report() && !was_final).then_some(reported))
}
