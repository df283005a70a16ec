//! What each library holds, kept in memory, so that a question about all of it costs no reading of all of it.
//! `entries.rs` is what is kept of each title, `freshness.rs` when it is read again, `selection.rs` which titles a
//! question means, `stock.rs` the shelves of all libraries together.

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
    /// Begins to read all of it, so that the first question need not wait.
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
    /// What it holds.
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
    /// What it holds.
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

/// The reading goes on behind whoever stops waiting for it.
async fn in_time(held: impl Future<Output = Reading>) -> Reading {
    let slow = || Err(Arc::new(ArrError::NoAnswer(HttpError::TimedOut(READ_PATIENCE))));
    tokio::time::timeout(READ_PATIENCE, held).await.unwrap_or_else(|_| slow())
}
