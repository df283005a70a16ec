//! Taking a text in: it is stored for good, and what cannot wait for its turn happens with it.

use super::Engine;
use crate::conversation::route::{self, Urgency};
use crate::conversation::transcript::{ChannelKind, Received};
use crate::store::db::DbError;
use crate::store::ledger::{self, Admission, Pace};
use crate::store::users::{self, OptChange};
use crate::store::{outbox, pending, turns};

/// A text of a burst is waited for this long after the first, at most.
const LONGEST_WAIT_MS: i64 = 4_000;

/// The text could not be stored, so it must not be acknowledged.
#[derive(Debug, thiserror::Error)]
#[error("store the text")]
pub struct AdmitError(#[from] pub(super) DbError);

impl From<AdmitError> for DbError {
    fn from(error: AdmitError) -> Self {
        error.0
    }
}

impl Engine {
    /// Stores a text that is only to be remembered, and sees to it.
    pub async fn remember(&self, received: Received) -> Result<Admission, AdmitError> {
        let now = Pace { quiet_ms: 0, at_most_ms: LONGEST_WAIT_MS };
        let channel = received.channel;
        let admit = move |conn: &mut _| {
            let admission = ledger::admit(conn, &received, now)?;
            if let Admission::New { event, .. } = admission {
                ledger::want_no_answer(conn, event)?;
            }
            Ok(admission)
        };
        let admission = self.0.parts.db.write_or_busy(admit).await?;
        self.taken_in(admission, channel);
        Ok(admission)
    }

    /// Stores a text and sees to it. When this returns, the text is on disk; nothing else was waited for.
    pub async fn admit(&self, received: Received) -> Result<Admission, AdmitError> {
        let channel = received.channel;
        let languages = &self.0.parts.settings.languages;
        let urgency = route::urgency(&received, languages);
        let quiet_ms = match urgency {
            Urgency::MayWait => {
                i64::try_from(self.0.parts.settings.coalesce.as_millis()).unwrap_or(LONGEST_WAIT_MS)
            }
            Urgency::AtOnce | Urgency::EndsTurn | Urgency::OptsOut | Urgency::EndsTurnOrAnswers => 0,
        };
        let pace = Pace { quiet_ms, at_most_ms: LONGEST_WAIT_MS };
        let admission = self
            .0
            .parts
            .db
            .write_or_busy(move |conn| {
                let admission = ledger::admit(conn, &received, pace)?;
                let Admission::New { user, .. } = admission else { return Ok(admission) };
                let now = received.received_at;
                match urgency {
                    Urgency::OptsOut => {
                        // At once, not in its turn: what a running turn still writes must not be sent.
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
            })
            .await?;
        self.taken_in(admission, channel);
        Ok(admission)
    }

    fn taken_in(&self, admission: Admission, channel: ChannelKind) {
        if let Admission::New { user, .. } = admission {
            self.0.parts.metrics.text_received(channel);
            self.wake(user);
        }
    }
}
