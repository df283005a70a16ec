//! The operator begins afresh with somebody, as they do themselves with /clear.

use serde_json::json;

use super::Engine;
use crate::conversation::transcript::{ConversationId, UserId};
use crate::store::audit::{self, By, Entry, Subject};
use crate::store::conversations::{self, EndReason};
use crate::store::db::DbError;
use crate::store::pending::{self, Closing};
use crate::store::{roster, turns};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clearing {
    Ended(ConversationId),
    NothingOpen,
    /// Nobody is known by this id.
    Nobody,
}

impl Engine {
    /// Ends what runs, drops the open question and ends the open conversation.
    pub async fn clear(&self, user: UserId) -> Result<Clearing, DbError> {
        let now = self.now();
        let clear = move |conn: &mut _| {
            if roster::known(conn, user)?.is_none() {
                return Ok(Clearing::Nobody);
            }
            let entry =
                Entry { by: By::Console, kind: "clear", subject: Subject::User(user), detail: json!({}) };
            audit::record(conn, &entry, now)?;
            turns::request_cancel(conn, user, now)?;
            pending::close(conn, user, Closing::Dropped, now)?;
            let Some(open) = conversations::open(conn, user)? else { return Ok(Clearing::NothingOpen) };
            conversations::end(conn, open.id, EndReason::Cleared, now)?;
            Ok(Clearing::Ended(open.id))
        };
        let clearing = self.0.parts.db.write(clear).await?;
        // A turn that waits for the model looks whether it was taken back.
        self.wake(user);
        Ok(clearing)
    }
}
