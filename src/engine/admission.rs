//! Admission of incoming messages: each message is stored permanently, and effects that cannot wait for its turn happen
//! in the same transaction.

use serde_json::json;

use super::Engine;
use crate::conversation::inbound_message::Received;
use crate::conversation::route::{self, Urgency};
use crate::conversation::transcript::ChannelKind;
use crate::conversation::triage::Wants;
use crate::store::audit::{self, By, Entry, Subject};
use crate::store::db::DbError;
use crate::store::ledger::{self, Admission, Pace};
use crate::store::users::{self, OptChange};
use crate::store::{Conn, QueryResult, outbox, pending, turns};

/// Maximum wait after the first message of a burst for the messages that follow it.
const LONGEST_WAIT_MS: i64 = 4_000;

/// The message could not be stored, so it must not be acknowledged.
#[derive(Debug, thiserror::Error)]
#[error("store the text")]
pub struct AdmitError(#[from] pub(super) DbError);

impl From<AdmitError> for DbError {
    fn from(error: AdmitError) -> Self {
        error.0
    }
}

impl Engine {
    /// Stores a message and wakes the task of its user. The message is on disk when this returns; nothing else was
    /// waited for.
    pub async fn admit(&self, received: Received) -> Result<Admission, AdmitError> {
        let (channel, pressing) = (received.channel, self.pressing(&received));
        let admit = move |conn: &mut Conn| admit(conn, &received, pressing);
        let admission = self.0.parts.db.write_or_busy(admit).await?;
        self.taken_in(admission, channel);
        Ok(admission)
    }

    /// Stores a message that `by` sends in the name of a user. A message that wants no answer is only remembered.
    pub async fn text_as(&self, received: Received, wants: Wants, by: By) -> Result<Admission, AdmitError> {
        let (channel, pressing) = (received.channel, self.pressing(&received));
        let admit = move |conn: &mut Conn| {
            let admission = match wants {
                Wants::AnAnswer => admit(conn, &received, pressing)?,
                Wants::NoAnswer => ledger::admit_unanswered(conn, &received)?,
            };
            if let Admission::New { user, event } = admission {
                let detail = json!({ "text": event.0 });
                let entry = Entry { by, kind: "text_as", subject: Subject::User(user), detail };
                audit::record(conn, &entry, received.received_at)?;
            }
            Ok(admission)
        };
        let admission = self.0.parts.db.write_or_busy(admit).await?;
        self.taken_in(admission, channel);
        Ok(admission)
    }

    fn pressing(&self, received: &Received) -> Pressing {
        let settings = &self.0.parts.settings;
        let urgency = match route::urgency(received, &settings.languages) {
            // The message's fields are compared with the carrier's record first, in the message's own turn.
            Urgency::OptsOut if !received.authority.may_act() => Urgency::AtOnce,
            urgency => urgency,
        };
        let quiet_ms = match urgency {
            Urgency::MayWait => i64::try_from(settings.coalesce.as_millis()).unwrap_or(LONGEST_WAIT_MS),
            Urgency::AtOnce | Urgency::EndsTurn | Urgency::OptsOut | Urgency::EndsTurnOrAnswers => 0,
        };
        Pressing { urgency, pace: Pace { quiet_ms, at_most_ms: LONGEST_WAIT_MS } }
    }

    fn taken_in(&self, admission: Admission, channel: ChannelKind) {
        if let Admission::New { user, .. } = admission {
            self.0.parts.metrics.text_received(channel);
            self.wake(user);
        }
    }
}

/// Effect of a message before its turn, and the earliest time of that turn.
#[derive(Debug, Clone, Copy)]
struct Pressing {
    urgency: Urgency,
    pace: Pace,
}

fn admit(conn: &mut Conn, received: &Received, pressing: Pressing) -> QueryResult<Admission> {
    let admission = ledger::admit(conn, received, pressing.pace)?;
    let Admission::New { user, .. } = admission else { return Ok(admission) };
    let now = received.received_at;
    match pressing.urgency {
        Urgency::OptsOut => {
            // Applied now instead of in the message's turn: a reply that a running turn still writes must not be sent.
            if users::opt_out(conn, user, received.provider_at, now)? == OptChange::Done {
                outbox::suppress_all(conn, user, now)?;
                turns::request_cancel(conn, user, now)?;
            }
        }
        Urgency::EndsTurn => turns::request_cancel(conn, user, now)?,
        Urgency::EndsTurnOrAnswers => {
            if pending::open(conn, user)?.is_none() {
                turns::request_cancel(conn, user, now)?;
            }
        }
        Urgency::AtOnce | Urgency::MayWait => {}
    }
    Ok(admission)
}
