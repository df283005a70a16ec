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

/// Outcome of requesting the cancellation of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelRequestOutcome {
    /// The turn ends before its next effect. An effect in progress is completed first, and completed changes are
    /// reported.
    Requested,
    AlreadyEnded,
    Unknown,
}

/// Outcome of resuming a turn.
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
    pub async fn cancel_turn(&self, turn: TurnId, actor: Actor) -> Result<CancelRequestOutcome, DbError> {
        let now = self.clock.now();
        let cancel = move |conn: &mut _| {
            let outcome = turn_lifecycle::cancel_turn(conn, turn, now)?;
            if let TurnCancelOutcome::Requested(_) = outcome {
                audit::record_change(conn, &turn_audit_entry(actor, "cancel_turn", turn), now)?;
            }
            Ok(outcome)
        };
        Ok(match self.db.write(cancel).await? {
            TurnCancelOutcome::Requested(user) => {
                self.scheduler.wake_user(user);
                CancelRequestOutcome::Requested
            }
            TurnCancelOutcome::AlreadyFinished => CancelRequestOutcome::AlreadyEnded,
            TurnCancelOutcome::Unknown => CancelRequestOutcome::Unknown,
        })
    }

    /// Resumes a failed turn from its log, with a new deadline and new attempts. The user gets a reply in addition to
    /// the apology that followed the failure.
    pub async fn resume_turn(&self, turn: TurnId, actor: Actor) -> Result<ResumeTurnOutcome, DbError> {
        let now = self.clock.now();
        let resume = move |conn: &mut _| {
            let outcome = turn_resume::resume_turn(conn, turn, now)?;
            if let ResumeOutcome::Resumed(_) = outcome {
                audit::record_change(conn, &turn_audit_entry(actor, "resume_turn", turn), now)?;
            }
            Ok(outcome)
        };
        Ok(match self.db.write(resume).await? {
            ResumeOutcome::Resumed(user) => {
                self.scheduler.wake_user(user);
                ResumeTurnOutcome::Resumed
            }
            ResumeOutcome::Blocked(blocker) => ResumeTurnOutcome::NotResumable(blocker),
            ResumeOutcome::Unknown => ResumeTurnOutcome::Unknown,
        })
    }
}

fn turn_audit_entry(actor: Actor, kind: &'static str, turn: TurnId) -> NewAuditEntry {
    NewAuditEntry { actor, kind, subject: AuditSubject::Turn(turn), detail: json!({}) }
}
