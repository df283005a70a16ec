//! Operator actions on turns: canceling a running turn, or resuming a failed turn.

use serde_json::json;

use crate::clock::Clock;
use crate::conversation::transcript::TurnId;
use crate::engine::inbound::scheduler::TurnScheduler;
use crate::engine::parts::EngineParts;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::database::db::{Db, DbError};
use crate::store::turns::turn_lifecycle::{self, TurnCancelOutcome};
use crate::store::turns::turn_resume::{self, ResumeBlocker, ResumeOutcome};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelRequestOutcome {
    /// The turn ends before its next effect. The turn waits for an effect that has begun, and reports completed
    /// changes.
    Requested,
    AlreadyOver,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeTurnOutcome {
    Resumed,
    NotResumable(ResumeBlocker),
    Unknown,
}

/// Actions of the operator on turns.
pub struct TurnActions {
    db: Db,
    clock: Clock,
    scheduler: TurnScheduler,
}

impl TurnActions {
    pub(crate) fn new(parts: &EngineParts, scheduler: TurnScheduler) -> Self {
        let EngineParts { db, clock, .. } = parts.clone();
        Self { db, clock, scheduler }
    }

    /// Requests the cancellation of a turn.
    pub async fn cancel_turn(&self, turn: TurnId, by: Actor) -> Result<CancelRequestOutcome, DbError> {
        let now = self.clock.now();
        let cancel = move |conn: &mut _| {
            let cancel = turn_lifecycle::cancel_turn(conn, turn, now)?;
            if let TurnCancelOutcome::Requested(_) = cancel {
                audit::record_change(conn, &turn_audit_entry(by, "cancel_turn", turn), now)?;
            }
            Ok(cancel)
        };
        Ok(match self.db.write(cancel).await? {
            TurnCancelOutcome::Requested(user) => {
                self.scheduler.wake_user(user);
                CancelRequestOutcome::Requested
            }
            TurnCancelOutcome::AlreadyFinished => CancelRequestOutcome::AlreadyOver,
            TurnCancelOutcome::Unknown => CancelRequestOutcome::Unknown,
        })
    }

    /// Resumes a failed turn from its log, with renewed time and attempts. The reply is sent in addition to the apology
    /// that was sent after the failure.
    pub async fn resume_turn(&self, turn: TurnId, by: Actor) -> Result<ResumeTurnOutcome, DbError> {
        let now = self.clock.now();
        let reopen = move |conn: &mut _| {
            let reopening = turn_resume::resume_turn(conn, turn, now)?;
            if let ResumeOutcome::Resumed(_) = reopening {
                audit::record_change(conn, &turn_audit_entry(by, "resume_turn", turn), now)?;
            }
            Ok(reopening)
        };
        Ok(match self.db.write(reopen).await? {
            ResumeOutcome::Resumed(user) => {
                self.scheduler.wake_user(user);
                ResumeTurnOutcome::Resumed
            }
            ResumeOutcome::Blocked(hindrance) => ResumeTurnOutcome::NotResumable(hindrance),
            ResumeOutcome::Unknown => ResumeTurnOutcome::Unknown,
        })
    }
}

fn turn_audit_entry(by: Actor, kind: &'static str, turn: TurnId) -> NewAuditEntry {
    NewAuditEntry { actor: by, kind, subject: AuditSubject::Turn(turn), detail: json!({}) }
}
