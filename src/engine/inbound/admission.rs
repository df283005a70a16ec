//! Admission of inbound messages: each message is stored, and effects that cannot wait for its turn are applied in the
//! same transaction.

use jiff::Timestamp;
use serde_json::json;

use super::message_storage::{AdmissionPlan, store_message};
use super::room_admission::RoomAdmission;
use super::scheduler::TurnScheduler;
use crate::conversation::channel::Channel;
use crate::conversation::grammar::triage::TriageDecision;
use crate::conversation::routing::inbound_message::ReceivedMessage;
use crate::conversation::routing::urgency::{self, MessageUrgency};
use crate::engine::parts::{EngineParts, LiveParts};
use crate::messaging::outbox_relay::OutboxSignal;
use crate::metrics::Metrics;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::pending_action;
use crate::store::database::db::{Db, DbError};
use crate::store::people::addresses::OptTarget;
use crate::store::queue::inbound_messages::{self, AdmissionOutcome, DebouncePolicy};
use crate::store::turns::turn_lifecycle;
use crate::store::{Conn, QueryResult};

/// Maximum debounce time, from the first message of a burst.
const MAX_DEBOUNCE_MS: i64 = 4_000;

/// Failure to store a message, which must therefore not be acknowledged.
#[derive(Debug, thiserror::Error)]
#[error("store the text")]
pub struct AdmitError(#[from] DbError);

impl From<AdmitError> for DbError {
    fn from(error: AdmitError) -> Self {
        error.0
    }
}

/// Admission of inbound messages.
pub struct Admission {
    db: Db,
    live: LiveParts,
    metrics: Metrics,
    outbox: OutboxSignal,
    scheduler: TurnScheduler,
}

impl Admission {
    pub(crate) fn new(parts: &EngineParts, scheduler: TurnScheduler) -> Self {
        let EngineParts { db, metrics, live, outbox, .. } = parts.clone();
        Self { db, live, metrics, outbox, scheduler }
    }

    /// Stores a message and wakes the task of its user. Returns as soon as the message is on disk.
    pub async fn admit_message(&self, received: ReceivedMessage) -> Result<AdmissionOutcome, AdmitError> {
        self.open_batch().admit_message(received).await
    }

    /// Opens a batch of messages that were received together.
    pub fn open_batch(&self) -> AdmissionBatch<'_> {
        AdmissionBatch { admission: self, admitted: Vec::new() }
    }

    /// Stores a message that `actor` sends in the name of a user. A message that needs no answer is only stored.
    pub async fn admit_message_as(
        &self,
        received: ReceivedMessage,
        triage: TriageDecision,
        actor: Actor,
    ) -> Result<AdmissionOutcome, AdmitError> {
        let (channel, plan) = (received.channel, self.plan_admission(&received));
        let admit = move |conn: &mut Conn| {
            let admission = match triage {
                TriageDecision::Answer => store_message(conn, &received, plan)?,
                TriageDecision::NoAnswer => inbound_messages::admit_unanswered_message(conn, &received)?,
            };
            if let AdmissionOutcome::New { user, event, .. } = admission {
                let detail = json!({ "text": event.0 });
                let entry =
                    NewAuditEntry { actor, kind: "text_as", subject: AuditSubject::User(user), detail };
                audit::record_change(conn, &entry, received.received_at)?;
            }
            Ok(admission)
        };
        let admission = self.db.write_or_busy(admit).await?;
        self.finish_admission(admission, channel);
        Ok(admission)
    }

    fn plan_admission(&self, received: &ReceivedMessage) -> AdmissionPlan {
        let settings = self.live.settings();
        let urgency = match urgency::classify_urgency(received, &settings.languages) {
            // The message is verified against the carrier's record before it acts, when its user's task processes it.
            MessageUrgency::OptsOut if !received.authority.may_act() => MessageUrgency::Immediate,
            urgency => urgency,
        };
        let quiet_ms = match urgency {
            MessageUrgency::MayWait => {
                i64::try_from(settings.debounce.as_millis()).unwrap_or(MAX_DEBOUNCE_MS)
            }
            MessageUrgency::Immediate
            | MessageUrgency::CancelsTurn
            | MessageUrgency::OptsOut
            | MessageUrgency::CancelsTurnOrAnswers => 0,
        };
        AdmissionPlan { urgency, debounce: DebouncePolicy { quiet_ms, max_delay_ms: MAX_DEBOUNCE_MS } }
    }

    fn finish_admission(&self, admission: AdmissionOutcome, channel: Channel) {
        match admission {
            AdmissionOutcome::New { user, .. } => {
                self.metrics.text_received(channel);
                self.scheduler.wake_user(user);
            }
            // A change of a room may have queued a message.
            AdmissionOutcome::NotKept => self.outbox.notify(),
            AdmissionOutcome::Duplicate | AdmissionOutcome::NoUser => {}
        }
    }
}

/// Messages that were received together. When the batch is dropped, also by a canceled task, it wakes the tasks of the
/// users: a yes is not processed before the no that followed it is stored.
pub struct AdmissionBatch<'a> {
    admission: &'a Admission,
    admitted: Vec<(AdmissionOutcome, Channel)>,
}

impl AdmissionBatch<'_> {
    /// Stores a message. Returns as soon as it is on disk.
    pub async fn admit_message(&mut self, received: ReceivedMessage) -> Result<AdmissionOutcome, AdmitError> {
        let (channel, plan) = (received.channel, self.admission.plan_admission(&received));
        let parts = self.admission.live.current();
        let admit = move |conn: &mut Conn| match &received.room {
            None => store_message(conn, &received, plan),
            Some(update) => {
                let start_link = parts.channels.iter().find_map(|port| port.start_link());
                let mut admission = RoomAdmission {
                    conn: &mut *conn,
                    settings: &parts.settings,
                    start_link: start_link.as_deref(),
                    received: &received,
                    debounce: plan.debounce,
                };
                let outcome = admission.admit(update)?;
                cancel_turn_in_room(conn, outcome, plan.urgency, received.received_at)?;
                Ok(outcome)
            }
        };
        let admission = self.admission.db.write_or_busy(admit).await?;
        self.admitted.push((admission, channel));
        Ok(admission)
    }
}

impl Drop for AdmissionBatch<'_> {
    fn drop(&mut self) {
        for (admission, channel) in self.admitted.drain(..) {
            self.admission.finish_admission(admission, channel);
        }
    }
}

/// Cancels the author's running turn in a room, if the message asks for it.
fn cancel_turn_in_room(
    conn: &mut Conn,
    outcome: AdmissionOutcome,
    urgency: MessageUrgency,
    now: Timestamp,
) -> QueryResult<()> {
    let AdmissionOutcome::New { user, address, .. } = outcome else { return Ok(()) };
    let is_canceled = match urgency {
        MessageUrgency::CancelsTurn => true,
        MessageUrgency::CancelsTurnOrAnswers => pending_action::load_pending_action(conn, user)?.is_none(),
        MessageUrgency::OptsOut | MessageUrgency::Immediate | MessageUrgency::MayWait => false,
    };
    if is_canceled {
        turn_lifecycle::request_cancel_from(conn, OptTarget { user, address }, now)?;
    }
    Ok(())
}
