//! Recognition of servers that were moved: samples of the libraries, and the operator's statement that a moved instance
//! is the same server.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::parts::{EngineParts, LiveParts};
use crate::clock::Clock;
use crate::conversation::library_sample::{SampleComparison, ServerTitles, compare_sample, pick_sample};
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::database::db::{Db, DbError};
use crate::store::service_identities::{self, MovedInstance};
use crate::store::{Conn, QueryResult, library_samples};

/// Interval between two samples of a library.
const SAMPLE_INTERVAL: SignedDuration = SignedDuration::from_hours(24);

/// Outcome of the statement that a moved instance is the same server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SameServerOutcome {
    /// What was shown before the move is valid again.
    Confirmed,
    /// The instance is not configured, or was not moved since the last statement.
    NotMoved,
    /// An id belongs to another title on the server.
    Different,
    /// Fewer than 20 stored titles are on the server.
    TooFewTitles,
    /// The server did not respond, for this reason.
    Unreachable(String),
}

/// Component that recognizes moved servers.
pub struct MovedServers {
    db: Db,
    clock: Clock,
    live: LiveParts,
    /// Newest sample of each slot.
    sampled: Mutex<HashMap<&'static str, Sampled>>,
}

/// Stored sample of a server.
struct Sampled {
    identity: String,
    at: Timestamp,
}

impl MovedServers {
    pub(super) fn new(parts: &EngineParts) -> Self {
        let EngineParts { db, clock, live, .. } = parts.clone();
        Self { db, clock, live, sampled: Mutex::default() }
    }

    /// Stores a sample of each loaded library, of each server once a day.
    pub async fn store_samples(&self) -> Result<(), DbError> {
        let now = self.clock.now();
        for loaded in self.live.current().library.loaded_titles() {
            let (slot, identity) = (loaded.slot, loaded.identity.clone());
            let is_recent = |sampled: &Sampled| {
                sampled.identity == identity && now.duration_since(sampled.at).abs() < SAMPLE_INTERVAL
            };
            if self.lock_sampled().get(slot).is_some_and(is_recent) {
                continue;
            }
            let sample = ServerTitles { titles: pick_sample(loaded.titles), ..loaded };
            self.db.write(move |conn| library_samples::store_sample(conn, &sample)).await?;
            self.lock_sampled().insert(slot, Sampled { identity, at: now });
        }
        Ok(())
    }

    /// Returns the instances about whose last move the operator has stated nothing.
    pub async fn list_moved(&self) -> Result<Vec<MovedInstance>, DbError> {
        self.db.read(service_identities::load_moved_instances).await
    }

    /// Checks and records the statement that the last move of an instance was to the same server.
    pub async fn confirm_same_server(&self, slot: &str, actor: Actor) -> Result<SameServerOutcome, DbError> {
        let earlier_slot = slot.to_owned();
        let load = move |conn: &mut Conn| library_samples::load_earlier_sample(conn, &earlier_slot);
        let Some(earlier) = self.db.read(load).await? else { return Ok(SameServerOutcome::NotMoved) };
        let now = self.clock.now();
        let current = match self.live.current().library.load_titles(slot, now).await {
            None => return Ok(SameServerOutcome::NotMoved),
            Some(Err(error)) => return Ok(SameServerOutcome::Unreachable(error.to_string())),
            Some(Ok(current)) => current,
        };
        match compare_sample(&earlier, &current.titles) {
            SampleComparison::Different => return Ok(SameServerOutcome::Different),
            SampleComparison::TooFewTitles => return Ok(SameServerOutcome::TooFewTitles),
            SampleComparison::Same => {}
        }
        let record = move |conn: &mut Conn| -> QueryResult<SameServerOutcome> {
            if !service_identities::record_same_server(conn, current.slot, &current.identity)? {
                return Ok(SameServerOutcome::NotMoved);
            }
            audit::record_change(conn, &audit_entry("same_server", current.slot, actor), now)?;
            Ok(SameServerOutcome::Confirmed)
        };
        self.db.write(record).await
    }

    /// Records the statement that this move of an instance was to another server. Returns `false` if it is not the last
    /// move, or was stated before.
    pub async fn confirm_other_server(&self, moved: MovedInstance, actor: Actor) -> Result<bool, DbError> {
        let now = self.clock.now();
        let record = move |conn: &mut Conn| -> QueryResult<bool> {
            let is_recorded = service_identities::record_other_server(conn, &moved)?;
            if is_recorded {
                audit::record_change(conn, &audit_entry("other_server", &moved.slot, actor), now)?;
            }
            Ok(is_recorded)
        };
        self.db.write(record).await
    }

    fn lock_sampled(&self) -> MutexGuard<'_, HashMap<&'static str, Sampled>> {
        self.sampled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn audit_entry(kind: &'static str, slot: &str, actor: Actor) -> NewAuditEntry {
    NewAuditEntry { actor, kind, subject: AuditSubject::Settings, detail: json!({ "instance": slot }) }
}
