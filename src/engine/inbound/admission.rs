//! Admission of incoming messages: each message is stored permanently, and effects that cannot wait for the turn are
//! applied in the same transaction.

use std::sync::Arc;

use serde_json::json;

use super::scheduler::TurnScheduler;
use crate::conversation::grammar::triage::TriageDecision;
use crate::conversation::routing::inbound_message::ReceivedMessage;
use crate::conversation::routing::route::{self, MessageUrgency};
use crate::conversation::transcript::ChannelKind;
use crate::engine::parts::EngineParts;
use crate::engine::settings::HouseholdSettings;
use crate::metrics::Metrics;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::pending_action;
use crate::store::database::db::{Db, DbError};
use crate::store::people::users::{self, OptOutcome};
use crate::store::queue::inbound_messages::{self, AdmissionOutcome, DebouncePolicy};
use crate::store::queue::outbox;
use crate::store::turns::turn_lifecycle;
use crate::store::{Conn, QueryResult};

/// Maximum wait after the first message of a burst for the messages that follow it.
const MAX_DEBOUNCE_MS: i64 = 4_000;

/// Error of a message that could not be stored, and must therefore not be acknowledged.
#[derive(Debug, thiserror::Error)]
#[error("store the text")]
pub struct AdmitError(#[from] DbError);

impl From<AdmitError> for DbError {
    fn from(error: AdmitError) -> Self {
        error.0
    }
}

/// Admission of messages.
pub struct Admission {
    db: Db,
    settings: Arc<HouseholdSettings>,
    metrics: Metrics,
    scheduler: TurnScheduler,
}

impl Admission {
    pub(crate) fn new(parts: &EngineParts, scheduler: TurnScheduler) -> Self {
        let EngineParts { db, settings, metrics, .. } = parts.clone();
        Self { db, settings, metrics, scheduler }
    }

    /// Stores a message and wakes the task of its user. The message is on disk when this function returns. The function
    /// waits for nothing else.
    pub async fn admit_message(&self, received: ReceivedMessage) -> Result<AdmissionOutcome, AdmitError> {
        let (channel, pressing) = (received.channel, self.plan_admission(&received));
        let admit = move |conn: &mut Conn| store_message(conn, &received, pressing);
        let admission = self.db.write_or_busy(admit).await?;
        self.finish_admission(admission, channel);
        Ok(admission)
    }

    /// Stores a message that `by` sends in the name of a user. A message that needs no answer is only stored.
    pub async fn admit_message_as(
        &self,
        received: ReceivedMessage,
        wants: TriageDecision,
        by: Actor,
    ) -> Result<AdmissionOutcome, AdmitError> {
        let (channel, pressing) = (received.channel, self.plan_admission(&received));
        let admit = move |conn: &mut Conn| {
            let admission = match wants {
                TriageDecision::Answer => store_message(conn, &received, pressing)?,
                TriageDecision::NoAnswer => inbound_messages::admit_unanswered_message(conn, &received)?,
            };
            if let AdmissionOutcome::New { user, event } = admission {
                let detail = json!({ "text": event.0 });
                let entry =
                    NewAuditEntry { actor: by, kind: "text_as", subject: AuditSubject::User(user), detail };
                audit::record_change(conn, &entry, received.received_at)?;
            }
            Ok(admission)
        };
        let admission = self.db.write_or_busy(admit).await?;
        self.finish_admission(admission, channel);
        Ok(admission)
    }

    fn plan_admission(&self, received: &ReceivedMessage) -> AdmissionPlan {
        let urgency = match route::classify_urgency(received, &self.settings.languages) {
            // The message's fields are compared with the carrier's record first, in the message's own turn.
            MessageUrgency::OptsOut if !received.authority.may_act() => MessageUrgency::Immediate,
            urgency => urgency,
        };
        let quiet_ms = match urgency {
            MessageUrgency::MayWait => {
                i64::try_from(self.settings.coalesce.as_millis()).unwrap_or(MAX_DEBOUNCE_MS)
            }
            MessageUrgency::Immediate
            | MessageUrgency::CancelsTurn
            | MessageUrgency::OptsOut
            | MessageUrgency::CancelsTurnOrAnswers => 0,
        };
        AdmissionPlan { urgency, debounce: DebouncePolicy { quiet_ms, max_delay_ms: MAX_DEBOUNCE_MS } }
    }

    fn finish_admission(&self, admission: AdmissionOutcome, channel: ChannelKind) {
        if let AdmissionOutcome::New { user, .. } = admission {
            self.metrics.text_received(channel);
            self.scheduler.wake_user(user);
        }
    }
}

/// Effect of a message before its turn, and the earliest time of that turn.
#[derive(Debug, Clone, Copy)]
struct AdmissionPlan {
    urgency: MessageUrgency,
    debounce: DebouncePolicy,
}

fn store_message(
    conn: &mut Conn,
    received: &ReceivedMessage,
    pressing: AdmissionPlan,
) -> QueryResult<AdmissionOutcome> {
    let admission = inbound_messages::admit_message(conn, received, pressing.debounce)?;
    let AdmissionOutcome::New { user, .. } = admission else { return Ok(admission) };
    let now = received.received_at;
    match pressing.urgency {
        MessageUrgency::OptsOut => {
            // The opt-out is applied now and not in the message's turn: a reply that a running turn still writes must
            // not be sent.
            if users::opt_out(conn, user, received.provider_at, now)? == OptOutcome::Changed {
                outbox::suppress_user_messages(conn, user, now)?;
                turn_lifecycle::request_cancel(conn, user, now)?;
            }
        }
        MessageUrgency::CancelsTurn => turn_lifecycle::request_cancel(conn, user, now)?,
        MessageUrgency::CancelsTurnOrAnswers => {
            if pending_action::load_pending_action(conn, user)?.is_none() {
                turn_lifecycle::request_cancel(conn, user, now)?;
            }
        }
        MessageUrgency::Immediate | MessageUrgency::MayWait => {}
    }
    Ok(admission)
}
