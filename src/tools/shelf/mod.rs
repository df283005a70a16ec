//! In-memory cache of each library, so that a query about a whole library does not need to load it. `entries.rs`
//! defines the cached data of each title, `freshness.rs` the refresh policy, `selection.rs` the titles that match a
//! query, and `stock.rs` the combined caches of all libraries.

pub mod entries;
pub mod freshness;
pub mod selection;
pub mod stock;

use std::sync::Arc;

use jiff::Timestamp;

use super::library::{Instance, Library, READ_PATIENCE};
use crate::arr::ArrError;
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::http::HttpError;
use entries::Entries;
use freshness::{Moment, Need, Reading};

impl Library {
    /// Starts loading all libraries, so that the first query does not have to wait.
    pub fn read_ahead(&self, now: Timestamp) {
        for instance in &self.movies {
            instance.shelf.begin(instance.moment(now), || instance.read());
        }
        for instance in &self.series {
            instance.shelf.begin(instance.moment(now), || instance.read());
        }
    }
}

impl Instance<Radarr> {
    /// Contents of the library.
    pub async fn held(&self, now: Timestamp, need: Need) -> Reading {
        in_time(self.shelf.held(self.moment(now), need, || self.read())).await
    }

    pub fn moment(&self, now: Timestamp) -> Moment {
        Moment { now, changes: self.client.server().changes() }
    }

    fn read(&self) -> impl Future<Output = Result<Entries, ArrError>> + Send + use<> {
        let radarr = self.client.clone();
        async move {
            let mut entries = Entries::default();
            radarr.each_holding(|holding| entries.push(holding)).await?;
            Ok(entries)
        }
    }
}

impl Instance<Sonarr> {
    /// Contents of the library.
    pub async fn held(&self, now: Timestamp, need: Need) -> Reading {
        in_time(self.shelf.held(self.moment(now), need, || self.read())).await
    }

    pub fn moment(&self, now: Timestamp) -> Moment {
        Moment { now, changes: self.client.server().changes() }
    }

    fn read(&self) -> impl Future<Output = Result<Entries, ArrError>> + Send + use<> {
        let sonarr = self.client.clone();
        async move {
            let mut entries = Entries::default();
            sonarr.each_holding(|holding| entries.push(holding)).await?;
            Ok(entries)
        }
    }
}

/// Waits for a load within a time limit. The load continues in the background if the caller stops waiting.
async fn in_time(held: impl Future<Output = Reading>) -> Reading {
    let slow = || Err(Arc::new(ArrError::NoAnswer(HttpError::TimedOut(READ_PATIENCE))));
    tokio::time::timeout(READ_PATIENCE, held).await.unwrap_or_else(|_| slow())
}
