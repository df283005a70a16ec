//! Changes of rooms by the operator.

use serde_json::json;

use super::decisions::OperatorDecisions;
use crate::conversation::digest::schedule::DigestSchedule;
use crate::conversation::routing::rooms::RoomMode;
use crate::conversation::transcript::UserId;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::database::db::DbError;
use crate::store::people::rooms;
use crate::store::{Conn, digests};

/// Settings of a room that the operator can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomSettings {
    pub mode: RoomMode,
    pub remembers: bool,
    /// Time of the weekly digest; `None` without one.
    pub digest: Option<DigestSchedule>,
}

/// Outcome of changing a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomChangeOutcome {
    Changed,
    /// The room already has these settings.
    Unchanged,
    /// No room has this id.
    UnknownRoom,
}

impl OperatorDecisions {
    /// Stores which messages of a room are answered, and whether its words are remembered.
    pub async fn change_room(
        &self,
        room: UserId,
        settings: RoomSettings,
        actor: Actor,
    ) -> Result<RoomChangeOutcome, DbError> {
        let now = self.clock.now();
        let change = move |conn: &mut Conn| {
            let Some(current) = rooms::load_room(conn, room)? else {
                return Ok(RoomChangeOutcome::UnknownRoom);
            };
            let digest = digests::load_schedule(conn, room)?;
            if (RoomSettings { mode: current.mode, remembers: current.remembers, digest }) == settings {
                return Ok(RoomChangeOutcome::Unchanged);
            }
            let words = settings.digest.map_or_else(|| "off".to_owned(), DigestSchedule::to_words);
            let detail = json!({
                "mode": settings.mode.as_word(), "remembers": settings.remembers, "digest": words,
            });
            let entry =
                NewAuditEntry { actor, kind: "change_room", subject: AuditSubject::User(room), detail };
            audit::record_change(conn, &entry, now)?;
            rooms::set_mode(conn, room, settings.mode)?;
            rooms::set_remembers(conn, room, settings.remembers)?;
            digests::store_schedule(conn, room, settings.digest, now)?;
            Ok(RoomChangeOutcome::Changed)
        };
        self.db.write(change).await
    }
}
