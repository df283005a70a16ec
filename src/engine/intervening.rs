//! Operator control of turns: ending one that runs, or resuming one that failed.

use serde_json::json;

use super::Engine;
use crate::conversation::transcript::TurnId;
use crate::store::audit::{self, By, Entry, Subject};
use crate::store::db::DbError;
use crate::store::resuming::{self, Hindrance, Reopening};
use crate::store::turns::{self, Cancel};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancellation {
    /// The turn ends before its next effect; an effect that has begun is waited for, and completed changes are
    /// reported.
    Requested,
    AlreadyOver,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumption {
    Resumed,
    NotResumable(Hindrance),
    Unknown,
}

impl Engine {
    /// Requests the end of a turn.
    pub async fn cancel_turn(&self, turn: TurnId, by: By) -> Result<Cancellation, DbError> {
        let now = self.now();
        let cancel = move |conn: &mut _| {
            let cancel = turns::cancel(conn, turn, now)?;
            if let Cancel::Requested(_) = cancel {
                audit::record(conn, &entry(by, "cancel_turn", turn), now)?;
            }
            Ok(cancel)
        };
        Ok(match self.0.parts.db.write(cancel).await? {
            Cancel::Requested(user) => {
                self.wake(user);
                Cancellation::Requested
            }
            Cancel::AlreadyOver => Cancellation::AlreadyOver,
            Cancel::Unknown => Cancellation::Unknown,
        })
    }

    /// Lets a failed turn continue from its log, with its time and its attempts renewed. Its answer is sent in addition
    /// to the excuse that was sent when it failed.
    pub async fn resume_turn(&self, turn: TurnId, by: By) -> Result<Resumption, DbError> {
        let now = self.now();
        let reopen = move |conn: &mut _| {
            let reopening = resuming::reopen(conn, turn, now)?;
            if let Reopening::Reopened(_) = reopening {
                audit::record(conn, &entry(by, "resume_turn", turn), now)?;
            }
            Ok(reopening)
        };
        Ok(match self.0.parts.db.write(reopen).await? {
            Reopening::Reopened(user) => {
                self.wake(user);
                Resumption::Resumed
            }
            Reopening::Not(hindrance) => Resumption::NotResumable(hindrance),
            Reopening::Unknown => Resumption::Unknown,
        })
    }
}

fn entry(by: By, kind: &'static str, turn: TurnId) -> Entry {
    Entry { by, kind, subject: Subject::Turn(turn), detail: json!({}) }
}
