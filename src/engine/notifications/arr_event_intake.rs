//! Intake of arr events: events from Sonarr and Radarr are stored at once, and cause notifications later.

use crate::clock::Clock;
use crate::conversation::notifications::arr_events::KeyedArrEvent;
use crate::engine::parts::{EngineParts, LiveParts};
use crate::engine::work_signal::WorkSignal;
use crate::store::database::db::{Db, DbError};
use crate::store::library::arr_events;

/// Failure to store an arr event, which must therefore not be acknowledged.
#[derive(Debug, thiserror::Error)]
#[error("store the event")]
pub struct StoreEventError(#[from] DbError);

/// Intake of arr events.
pub struct ArrEventIntake {
    db: Db,
    clock: Clock,
    live: LiveParts,
    event_stored: WorkSignal,
    requests_changed: WorkSignal,
}

impl ArrEventIntake {
    pub(crate) fn new(parts: &EngineParts, event_stored: WorkSignal, requests_changed: WorkSignal) -> Self {
        let EngineParts { db, clock, live, .. } = parts.clone();
        Self { db, clock, live, event_stored, requests_changed }
    }

    /// Returns the configured instance with this name, which may send events.
    pub fn find_reporting_instance(&self, name: &str) -> Option<&'static str> {
        let library = &self.live.current().library;
        let mut names = library.movie_names().into_iter().chain(library.series_names());
        names.find(|known| *known == name)
    }

    /// Lets the requests at a Seerr be read at once, after it reported a change.
    pub fn note_seerr_change(&self) {
        self.requests_changed.notify();
    }

    /// Stores the arr events of an instance. Returns as soon as the events are on disk.
    pub async fn store_arr_events(
        &self,
        instance: &'static str,
        events: Vec<KeyedArrEvent>,
    ) -> Result<(), StoreEventError> {
        if events.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        let store = move |conn: &mut _| arr_events::store_arr_events(conn, instance, &events, now);
        let new = self.db.write_or_busy(store).await?;
        self.live.current().library.mark_changed(instance);
        tracing::info!(instance, new, "received arr events");
        self.event_stored.notify();
        Ok(())
    }
}
