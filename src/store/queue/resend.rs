//! Resending of messages that certainly did not arrive. Each message can be resent once.

use diesel::prelude::*;
use jiff::Timestamp;
use serde_json::json;

use super::notifications;
use super::outbox::{self, NewOutboundMessage, OutboundKind, OutboxState};
use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::transcript::{Address, AddressId, TurnId, UserId};
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::codec::convert_integer;
use crate::store::schema::{outbox as rows, turns};
use crate::store::{Conn, QueryResult};

/// Outcome of resending a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResendOutcome {
    Queued,
    /// The message may have arrived, was resent before, is a confirmation prompt, mentions what somebody has watched, or
    /// its text is erased.
    NotAllowed,
    /// No message has this id.
    Unknown,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = rows)]
struct ResendRow {
    user_id: UserId,
    kind: OutboundKind,
    address_id: Option<AddressId>,
    room_id: Option<UserId>,
    to_addr: Address,
    from_addr: Address,
    body: String,
    media_url: Option<String>,
    segments: i64,
    state: OutboxState,
    delivery: Option<DeliveryStatus>,
    error: Option<String>,
    turn_id: Option<TurnId>,
    dedupe_key: String,
}

impl ResendRow {
    /// Returns whether the message may be resent: the carrier has rejected it with an error code or reported it as not
    /// delivered. A confirmation prompt is never resent, because a later yes may be meant for another prompt.
    fn is_resendable(&self) -> bool {
        let was_rejected =
            self.state == OutboxState::Failed && self.error.as_deref().is_some_and(has_error_code);
        let was_undelivered =
            matches!(self.delivery, Some(DeliveryStatus::Undelivered | DeliveryStatus::Failed));
        (was_rejected || was_undelivered) && self.kind != OutboundKind::ConfirmPrompt && !self.body.is_empty()
    }
}

fn has_error_code(error: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(error).is_ok_and(|error| error["code"].is_u64())
}

fn resend_key(id: i64) -> String {
    format!("again:{id}")
}

/// Returns whether [`resend_message`] would queue the message.
pub fn can_resend(conn: &mut Conn, id: i64) -> QueryResult<bool> {
    let row: Option<ResendRow> =
        rows::table.find(id).select(ResendRow::as_select()).first(conn).optional()?;
    let Some(row) = row.filter(ResendRow::is_resendable) else { return Ok(false) };
    Ok(!was_resent(conn, id)? && !is_about_viewing(conn, &row)?)
}

/// Returns whether a message mentions what somebody has watched. A copy would be shown in the console, and not be erased
/// after a day.
fn is_about_viewing(conn: &mut Conn, row: &ResendRow) -> QueryResult<bool> {
    let Some(turn) = row.turn_id else { return Ok(notifications::is_about_viewing(&row.dedupe_key)) };
    turns::table.find(turn).select(turns::about_viewing).first(conn)
}

fn was_resent(conn: &mut Conn, id: i64) -> QueryResult<bool> {
    let resent: Option<i64> =
        rows::table.filter(rows::dedupe_key.eq(resend_key(id))).select(rows::id).first(conn).optional()?;
    Ok(resent.is_some())
}

/// Queues a copy of the message. The copy is a notification, so that it is never sent between a confirmation prompt and
/// its reply.
pub fn resend_message(conn: &mut Conn, id: i64, actor: Actor, now: Timestamp) -> QueryResult<ResendOutcome> {
    let row: Option<ResendRow> =
        rows::table.find(id).select(ResendRow::as_select()).first(conn).optional()?;
    let Some(row) = row else { return Ok(ResendOutcome::Unknown) };
    if !row.is_resendable() || was_resent(conn, id)? || is_about_viewing(conn, &row)? {
        return Ok(ResendOutcome::NotAllowed);
    }
    let user = row.user_id;
    let entry = NewAuditEntry {
        actor,
        kind: "send_again",
        subject: AuditSubject::User(user),
        detail: json!({ "text": id }),
    };
    audit::record_change(conn, &entry, now)?;
    let message = NewOutboundMessage {
        key: resend_key(id),
        user,
        address: row.address_id,
        turn: None,
        kind: OutboundKind::Notice,
        to: row.to_addr,
        from: row.from_addr,
        body: row.body,
        media: row.media_url,
        reacts_to: None,
        quotes: None,
        room: row.room_id,
        vote: None,
        segments: convert_integer(row.segments)?,
    };
    outbox::queue_message(conn, &message, now)?;
    Ok(ResendOutcome::Queued)
}
