//! Intake of arr events from Sonarr and Radarr. Events are stored now and cause notifications later.

use super::Engine;
use crate::conversation::notifications::arr_events::KeyedArrEvent;
use crate::store::database::db::DbError;
use crate::store::library::arr_events;

/// Error of an arr event that could not be stored, and must therefore not be acknowledged.
#[derive(Debug, thiserror::Error)]
#[error("store the report")]
pub struct StoreEventError(#[from] DbError);

impl Engine {
    /// Returns the name of the instance that may send events, if an instance has this name.
    pub fn find_reporting_instance(&self, name: &str) -> Option<&'static str> {
        let library = &self.0.parts.library;
        let mut names = library.movie_names().into_iter().chain(library.series_names());
        names.find(|known| *known == name)
    }

    /// Stores the arr events of an instance. The events are on disk when this function returns. The function waits for
    /// nothing else.
    pub async fn store_arr_events(
        &self,
        instance: &'static str,
        reported: Vec<KeyedArrEvent>,
    ) -> Result<(), StoreEventError> {
        if reported.is_empty() {
            return Ok(());
        }
        let now = self.now();
        let store = move |conn: &mut _| arr_events::store_arr_events(conn, instance, &reported, now);
        let new = self.0.parts.db.write_or_busy(store).await?;
        self.0.parts.library.mark_changed(instance);
        tracing::info!(instance, new, "received arr events");
        self.0.arr_event_stored.notify();
        Ok(())
    }
}
