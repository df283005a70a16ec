//! Operator actions on stored answers: adding one, sharing one with all users, and erasing one.

use serde_json::json;

use crate::clock::Clock;
use crate::conversation::transcript::UserId;
use crate::engine::parts::EngineParts;
use crate::engine::work_signal::WorkSignal;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::database::db::{Db, DbError};
use crate::store::memory::responses::{self, AnswerOwner};
use crate::store::memory::shared_answers::{self, ReviewOutcome};
use crate::store::privacy::erase_answer;

/// Users who may find a manual answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerAudience {
    User(UserId),
    Everyone,
}

/// Question and answer that the operator adds by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManualAnswer {
    pub audience: AnswerAudience,
    pub question: String,
    pub answer: String,
}

/// Operator's decision on an answer that the model suggests for sharing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharingDecision {
    /// All users may find the answer.
    Share,
    /// Only the user who got the answer may find it.
    KeepPrivate,
}

/// Actions of the operator on stored answers.
pub struct AnswerActions {
    db: Db,
    clock: Clock,
    /// Signal that an answer waits for indexing.
    answer_stored: WorkSignal,
}

impl AnswerActions {
    pub(crate) fn new(parts: &EngineParts, answer_stored: WorkSignal) -> Self {
        let EngineParts { db, clock, .. } = parts.clone();
        Self { db, clock, answer_stored }
    }

    /// Adds a question and answer that recall can find, and returns its row id.
    pub async fn add_manual_answer(&self, manual: ManualAnswer, actor: Actor) -> Result<i64, DbError> {
        let now = self.clock.now();
        let add = move |conn: &mut _| {
            let (owner, user, subject) = match manual.audience {
                AnswerAudience::User(user) => (AnswerOwner::User(user), Some(user), AuditSubject::User(user)),
                AnswerAudience::Everyone => (AnswerOwner::Everyone, None, AuditSubject::Household),
            };
            let entry = NewAuditEntry { actor, kind: "memory_added", subject, detail: json!({}) };
            audit::record_change(conn, &entry, now)?;
            let words = (manual.question.as_str(), manual.answer.as_str());
            responses::add_operator_answer(conn, owner, user, words, now)
        };
        let id = self.db.write(add).await?;
        self.answer_stored.notify();
        Ok(id)
    }

    /// Records the decision whether all users may find an answer.
    pub async fn decide_sharing(
        &self,
        id: i64,
        decision: SharingDecision,
        actor: Actor,
    ) -> Result<ReviewOutcome, DbError> {
        let now = self.clock.now();
        let decide = move |conn: &mut _| {
            let (outcome, kind) = match decision {
                SharingDecision::Share => (shared_answers::approve_answer(conn, id)?, "memory_shared"),
                SharingDecision::KeepPrivate => (shared_answers::refuse_answer(conn, id)?, "memory_kept"),
            };
            if let (ReviewOutcome::Applied, Some(user)) =
                (outcome, shared_answers::load_asking_user(conn, id)?)
            {
                let entry =
                    NewAuditEntry { actor, kind, subject: AuditSubject::User(user), detail: json!({}) };
                audit::record_change(conn, &entry, now)?;
            }
            Ok(outcome)
        };
        self.db.write(decide).await
    }

    /// Erases an answer from memory, regardless of its owner.
    pub async fn forget_answer(&self, id: i64, actor: Actor) -> Result<ReviewOutcome, DbError> {
        let now = self.clock.now();
        let forget = move |conn: &mut _| {
            let user = shared_answers::load_asking_user(conn, id)?;
            if !erase_answer(conn, id, now)? {
                return Ok(ReviewOutcome::TooLate);
            }
            let subject = user.map_or(AuditSubject::Household, AuditSubject::User);
            let entry = NewAuditEntry { actor, kind: "memory_erased", subject, detail: json!({}) };
            audit::record_change(conn, &entry, now)?;
            Ok(ReviewOutcome::Applied)
        };
        self.db.write(forget).await
    }
}
