//! Taking a text in: it is stored for good, and what cannot wait for its turn happens with it.

use super::Engine;
use crate::conversation::route;
use crate::conversation::transcript::Received;
use crate::store::db::DbError;
use crate::store::ledger::{self, Admission, Pace};
use crate::store::{outbox, pending, turns, users};

/// A text of a burst is waited for this long after the first, at most.
const LONGEST_WAIT_MS: i64 = 4_000;

/// The text could not be stored, so it must not be acknowledged.
#[derive(Debug, thiserror::Error)]
#[error("store the text")]
pub struct AdmitError(#[from] DbError);

impl Engine {
    /// Stores a text and sees to it. When this returns, the text is on disk; nothing else was waited for.
    pub async fn admit(&self, received: Received) -> Result<Admission, AdmitError> {
        let languages = &self.0.parts.settings.languages;
        let urgency = route::urgency(&received, languages);
        let quiet_ms = match urgency {
            route::Urgency::MayWait => {
                i64::try_from(self.0.parts.settings.coalesce.as_millis()).unwrap_or(LONGEST_WAIT_MS)
            }
            route::Urgency::AtOnce | route::Urgency::EndsTurn | route::Urgency::EndsTurnOrAnswers => 0,
        };
        let pace = Pace { quiet_ms, at_most_ms: LONGEST_WAIT_MS };
        let admission = self
            .0
            .parts
            .db
            .write_or_busy(move |conn| {
                let admission = ledger::admit(conn, &received, pace)?;
                let Admission::New { user, .. } = admission else { return Ok(admission) };
                let takes_back = match urgency {
                    route::Urgency::EndsTurn => true,
                    route::Urgency::EndsTurnOrAnswers => pending::open(conn, user)?.is_none(),
                    route::Urgency::AtOnce | route::Urgency::MayWait => false,
                };
                if takes_back {
                    turns::request_cancel(conn, user, received.received_at)?;
                }
                if route::opts_out(received.channel, &received.body) {
                    // The text's turn may have to wait; nothing may be sent meanwhile.
                    users::opt_out(conn, user, received.received_at)?;
                    outbox::suppress_all(conn, user, received.received_at)?;
                }
                Ok(admission)
            })
            .await?;
        if let Admission::New { user, .. } = admission {
            self.wake(user);
        }
        Ok(admission)
    }
}
