//! Delivery reports of the carrier about accepted messages. Reports may arrive late, twice and in any order, so the
//! delivery status only advances. A report that does not advance the status changes nothing.

use diesel::prelude::*;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::callbacks::{CallbackKey, CallbackToken};
use super::outbox::{self, AcceptanceOutcome, AcceptedMessage, OPEN, OutboundKind, OutboxState, SETTLED};
use super::outbox_events::ChangedMessage;
use super::second_attempt;
use crate::conversation::channel::Channel;
use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::notifications::quiet_hours::QuietHours;
use crate::conversation::routing::verification::is_same_party;
use crate::conversation::transcript::{Address, OutboxId};
use crate::store::Conn;
use crate::store::codec::{ms, to_json};
use crate::store::confirmation::pending_action;
use crate::store::conversation::record::delivery::DeliveryFailure;
use crate::store::database::statement_cache::cached_update;
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
    pub key: ReportKey,
    pub to: Address,
    pub error_code: Option<u32>,
    /// Reason of a failure in the words of the channel.
    pub error_meaning: Option<String>,
    /// Delay after which the message is sent once more; `None` if the report is no failure of a first attempt that may
    /// succeed later.
    pub second_attempt_after: Option<SignedDuration>,
}

/// Binding of a report to the message that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportKey {
    /// Key in the URL of a callback; `None` for a URL without a valid key.
    Callback(Option<CallbackKey>),
    /// The id of the message is its random token, which only we and the channel know.
    MessageId(ReportWay),
}

/// Way by which a report about a message id arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportWay {
    /// A poll, which read the received messages after the state.
    Poll,
    /// A webhook. It opens no prompt, because texts from before the prompt may not have been read yet.
    Webhook,
}

/// Accepted message whose final delivery status is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedMessage {
    /// Id at the channel.
    pub sid: String,
    pub accepted_at: Timestamp,
    pub delivery: Option<DeliveryStatus>,
}

impl UnfinishedMessage {
    pub fn was_sent(&self) -> bool {
        self.delivery.is_some_and(|status| status >= DeliveryStatus::Sent)
    }
}

/// Number of newest messages among which unfinished ones are searched, so that a search reads few rows.
const NEWEST_MESSAGES: i64 = 100;
/// Age up to which the delivery status of a message is asked for. A channel may hold a message for an hour.
const MAX_UNFINISHED_AGE: SignedDuration = SignedDuration::from_mins(70);

/// Loads the unfinished messages of a channel, oldest first.
pub fn load_unfinished_messages(
    conn: &mut Conn,
    channel: Channel,
    now: Timestamp,
) -> QueryResult<Vec<UnfinishedMessage>> {
    type Row = (Address, Option<String>, Option<Timestamp>, Option<DeliveryStatus>);
    let newest: Vec<Row> = rows::table
        .order(rows::id.desc())
        .limit(NEWEST_MESSAGES)
        .select((rows::from_addr, rows::provider_sid, rows::accepted_at, rows::delivery))
        .load(conn)?;
    let unfinished = |(from, sid, accepted_at, delivery): Row| {
        let (sid, accepted_at) = sid.zip(accepted_at)?;
        let is_unfinished = from.channel() == channel
            && delivery.is_none_or(|status| !status.is_final_report())
            && now.duration_since(accepted_at) < MAX_UNFINISHED_AGE;
        is_unfinished.then_some(UnfinishedMessage { sid, accepted_at, delivery })
    };
    let mut unfinished: Vec<UnfinishedMessage> = newest.into_iter().filter_map(unfinished).collect();
    unfinished.reverse();
    Ok(unfinished)
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
    kind: OutboundKind,
    from_addr: Address,
}

impl ReportedMessageRow {
    /// Returns whether the report of a callback is about this message. The report must name an attempt that was made, the
    /// token of the row, the same recipient and, if the message has a carrier id, that id. No report matches a row
    /// without a token.
    fn matches_callback(&self, report: &DeliveryReport, key: &CallbackKey) -> bool {
        let token_matches =
            self.callback_word.as_deref().is_some_and(|token| CallbackToken::from_stored(token) == key.token);
        let attempt_matches = (1..=self.attempts).contains(&i64::from(key.attempt));
        let recipient_matches = is_same_party(&self.to_addr, &report.to);
        let sid_matches = self.provider_sid.as_ref().is_none_or(|sid| *sid == report.sid);
        token_matches && attempt_matches && recipient_matches && sid_matches
    }

    /// Returns whether a confirmation prompt opens with this report: the first one that the prompt was sent.
    fn opens_with(&self, report: &DeliveryReport) -> bool {
        let was_sent = |status: DeliveryStatus| status >= DeliveryStatus::Sent && !status.has_failed();
        let reported = DeliveryStatus::from_carrier_status(&report.status);
        self.kind == OutboundKind::ConfirmPrompt
            && self.from_addr.channel().opens_prompts_when_sent()
            && reported.is_some_and(was_sent)
            && self.delivery.is_none_or(|status| status < DeliveryStatus::Sent)
    }

    /// Returns the delay after which the message is sent once more, if it was not sent.
    fn second_attempt_delay(&self, report: &DeliveryReport) -> Option<SignedDuration> {
        let was_sent = self.delivery.is_some_and(|status| status >= DeliveryStatus::Sent);
        report.second_attempt_after.filter(|_| !was_sent)
    }
}

/// Records a report about the message that its callback URL names, and the acceptance that the report proves.
pub fn record_delivery_report(
    conn: &mut Conn,
    report: &DeliveryReport,
    policy: &AcceptancePolicy,
    now: Timestamp,
) -> QueryResult<ReportOutcome> {
    let Some((id, row)) = find_reported_message(conn, report)? else { return Ok(ReportOutcome::Unbound) };
    let acceptance = if row.provider_sid.is_some() {
        AcceptanceOutcome::Known
    } else if is_new_acceptance(conn, &row, &report.sid)? {
        // Any report proves that the message was accepted, whether or not the response to the request arrived.
        let accepted = AcceptedMessage { sid: &report.sid, created_at: None };
        outbox::record_acceptance(conn, id, &accepted, policy, now)?
    } else {
        return Ok(ReportOutcome::Recorded(AcceptanceOutcome::Known, None));
    };
    if row.opens_with(report) {
        if report.key == ReportKey::MessageId(ReportWay::Webhook) {
            return Ok(ReportOutcome::Recorded(acceptance, None));
        }
        pending_action::arm_pending_action(conn, id, policy.confirm_for, now)?;
    }
    if let Some(delay) = row.second_attempt_delay(report) {
        let meaning = report.error_meaning.as_deref();
        second_attempt::queue_second_attempt(conn, (id, &report.sid), meaning, now + delay, now)?;
        return Ok(ReportOutcome::Recorded(acceptance, None));
    }
    let final_status = advance_delivery(conn, id, &row, report, now)?;
    Ok(ReportOutcome::Recorded(acceptance, final_status))
}

/// Finds the message that a report is about.
fn find_reported_message(
    conn: &mut Conn,
    report: &DeliveryReport,
) -> QueryResult<Option<(OutboxId, ReportedMessageRow)>> {
    let id = match &report.key {
        ReportKey::Callback(key) => key.as_ref().map(|key| key.outbox),
        ReportKey::MessageId(_) => find_message_by_id(conn, &report.sid)?,
    };
    let Some(id) = id else { return Ok(None) };
    let row: Option<ReportedMessageRow> =
        rows::table.find(id).select(ReportedMessageRow::as_select()).first(conn).optional()?;
    let matches = |row: &ReportedMessageRow| match &report.key {
        ReportKey::Callback(key) => key.as_ref().is_some_and(|key| row.matches_callback(report, key)),
        ReportKey::MessageId(_) => row.from_addr.channel() == report.to.channel(),
    };
    Ok(row.filter(matches).map(|row| (id, row)))
}

/// Finds a message by its id at the channel, which is its token until its acceptance is recorded.
fn find_message_by_id(conn: &mut Conn, sid: &str) -> QueryResult<Option<OutboxId>> {
    let accepted: Option<OutboxId> =
        rows::table.filter(rows::provider_sid.eq(sid)).select(rows::id).first(conn).optional()?;
    if accepted.is_some() {
        return Ok(accepted);
    }
    rows::table.filter(OPEN).filter(rows::callback_word.eq(sid)).select(rows::id).first(conn).optional()
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
    row: &ReportedMessageRow,
    report: &DeliveryReport,
    now: Timestamp,
) -> QueryResult<Option<DeliveryStatus>> {
    let current = row.delivery;
    let Some(reported) = DeliveryStatus::from_carrier_status(&report.status) else { return Ok(None) };
    if current.is_some_and(|current| current.carrier_progress() >= reported.carrier_progress()) {
        return Ok(None);
    }
    let failure = match (report.error_code, &report.error_meaning) {
        (None, None) => None,
        (code, meaning) => Some(DeliveryFailure { code, meaning: meaning.clone() }),
    };
    let changed: ChangedMessage = cached_update(rows::table.find(id))
        .set((
            rows::delivery.eq(reported),
            rows::error.eq(failure.map(|failure| to_json(&failure)).transpose()?),
            rows::updated_at.eq(ms(now)),
        ))
        .returning(ChangedMessage::as_returning())
        .get_result(conn)?;
    changed.record_change(conn, now)?;
    let was_final = current.is_some_and(DeliveryStatus::is_final_report);
    Ok((reported.is_final_report() && !was_final).then_some(reported))
}
