//! Intake of arr events that Sonarr and Radarr report: they are stored now and lead to notifications later.

use super::Engine;
use crate::conversation::notices::Reported;
use crate::store::arr_events;
use crate::store::db::DbError;

/// The event could not be stored, so it must not be acknowledged.
#[derive(Debug, thiserror::Error)]
#[error("store the report")]
pub struct ReportError(#[from] DbError);

impl Engine {
    /// Returns the name of the instance that may report, if there is one with this name.
    pub fn reporter(&self, name: &str) -> Option<&'static str> {
        let library = &self.0.parts.library;
        let mut names = library.movie_names().into_iter().chain(library.series_names());
        names.find(|known| *known == name)
    }

    /// Stores the arr events of an instance. They are on disk when this returns; nothing else was waited for.
    pub async fn take_reports(
        &self,
        instance: &'static str,
        reported: Vec<Reported>,
    ) -> Result<(), ReportError> {
        if reported.is_empty() {
            return Ok(());
        }
        let now = self.now();
        let store = move |conn: &mut _| arr_events::store(conn, instance, &reported, now);
        let new = self.0.parts.db.write_or_busy(store).await?;
        self.0.parts.library.changed(instance);
        tracing::info!(instance, new, "report received");
        self.0.reported.notify_one();
        Ok(())
    }
}
