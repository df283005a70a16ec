//! In-memory cache of each library, so that a query about a whole library does not need to load it. `entries.rs`
//! defines the cached data of each title, `refresh.rs` the refresh policy, `query.rs` the titles that match a query,
//! and `loaded_libraries.rs` the combined caches of all libraries.

pub mod entries;
pub mod loaded_libraries;
pub mod query;
pub mod refresh;

use std::sync::Arc;

use jiff::Timestamp;

use super::library::{ArrInstances, Instance, READ_PATIENCE};
use crate::arr::ArrError;
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::http::HttpError;
use entries::CachedTitles;
use refresh::{FreshnessPolicy, LoadResult, QueryMoment};

impl ArrInstances {
    /// Starts loading all libraries, so that the first query does not have to wait.
    pub fn preload_caches(&self, now: Timestamp) {
        for instance in &self.movies {
            instance.cache.start_load(instance.query_moment(now), || instance.fetch_titles());
        }
        for instance in &self.series {
            instance.cache.start_load(instance.query_moment(now), || instance.fetch_titles());
        }
    }
}

impl Instance<Radarr> {
    /// Loads the contents of the library.
    pub async fn load_library(&self, now: Timestamp, freshness: FreshnessPolicy) -> LoadResult {
        with_time_limit(self.cache.load_library(self.query_moment(now), freshness, || self.fetch_titles()))
            .await
    }

    pub fn query_moment(&self, now: Timestamp) -> QueryMoment {
        QueryMoment { now, changes: self.client.common_api().change_count() }
    }

    fn fetch_titles(&self) -> impl Future<Output = Result<CachedTitles, ArrError>> + Send + use<> {
        let radarr = self.client.clone();
        async move {
            let mut entries = CachedTitles::default();
            radarr.for_each_title(|holding| entries.push(holding)).await?;
            Ok(entries)
        }
    }
}

impl Instance<Sonarr> {
    /// Loads the contents of the library.
    pub async fn load_library(&self, now: Timestamp, freshness: FreshnessPolicy) -> LoadResult {
        with_time_limit(self.cache.load_library(self.query_moment(now), freshness, || self.fetch_titles()))
            .await
    }

    pub fn query_moment(&self, now: Timestamp) -> QueryMoment {
        QueryMoment { now, changes: self.client.common_api().change_count() }
    }

    fn fetch_titles(&self) -> impl Future<Output = Result<CachedTitles, ArrError>> + Send + use<> {
        let sonarr = self.client.clone();
        async move {
            let mut entries = CachedTitles::default();
            sonarr.for_each_title(|holding| entries.push(holding)).await?;
            Ok(entries)
        }
    }
}

/// Waits for a load within a time limit. The load continues in the background if the caller stops waiting.
async fn with_time_limit(held: impl Future<Output = LoadResult>) -> LoadResult {
    let slow = || Err(Arc::new(ArrError::NoResponse(HttpError::TimedOut(READ_PATIENCE))));
    tokio::time::timeout(READ_PATIENCE, held).await.unwrap_or_else(|_| slow())
}
