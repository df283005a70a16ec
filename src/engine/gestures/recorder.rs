//! Recorder of gestures.

use super::{GestureOutcome, poll_answers, reactions};
use crate::clock::Clock;
use crate::engine::parts::EngineParts;
use crate::messaging::Gesture;
use crate::store::Conn;
use crate::store::database::db::{Db, DbError};

/// Recorder of gestures.
pub struct GestureRecorder {
    db: Db,
    clock: Clock,
}

impl GestureRecorder {
    pub(crate) fn new(parts: &EngineParts) -> Self {
        let EngineParts { db, clock, .. } = parts.clone();
        Self { db, clock }
    }

    /// Records a gesture. Recording it again changes nothing.
    pub async fn record(&self, gesture: Gesture) -> Result<GestureOutcome, DbError> {
        let now = self.clock.now();
        let record = move |conn: &mut Conn| match &gesture {
            Gesture::PollAnswer(answer) => poll_answers::store_answer(conn, answer, now),
            Gesture::Reaction(reaction) => reactions::store_reaction(conn, reaction, now),
        };
        self.db.write_or_busy(record).await
    }
}
