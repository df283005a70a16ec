//! In-memory cache of each library, so that queries do not have to load it. `entries.rs` contains the cached titles,
//! `refresh.rs` the refresh policy, `query.rs` the selection of titles, `loaded_libraries.rs` the caches of all
//! libraries that a query covers, and `overview.rs` the lists for the operator.

pub mod entries;
pub mod loaded_libraries;
pub mod overview;
pub mod query;
pub mod refresh;

use std::sync::Arc;

use jiff::Timestamp;

use super::library::{ArrInstances, INSTANCE_READ_TIMEOUT, Instance};
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::title_limit::TitleLimit;
use crate::arr::{ArrError, QualityProfile};
use crate::http::HttpError;
use entries::CachedTitles;
use refresh::{CachedLibrary, FreshnessPolicy, LoadResult, QueryVersion};

impl ArrInstances {
    /// Starts loading all libraries with their quality profiles, and the titles of the media servers, so that the first
    /// query does not have to wait.
    pub fn preload_caches(&self, now: Timestamp) {
        for instance in &self.movies {
            let (radarr, titles) = (instance.client.clone(), instance.fetch_titles());
            let load = with_profiles(instance.name, async move { radarr.fetch_profiles().await }, titles);
            instance.cache.start_load(instance.query_version(now), load);
        }
        for instance in &self.series {
            let (sonarr, titles) = (instance.client.clone(), instance.fetch_titles());
            let load = with_profiles(instance.name, async move { sonarr.fetch_profiles().await }, titles);
            instance.cache.start_load(instance.query_version(now), load);
        }
        self.media_servers.preload_titles(now);
    }
}

/// Loads the profiles before the titles. The client remembers the profiles, and a failure to load them is only logged,
/// because each addition loads them again.
async fn with_profiles(
    instance: &'static str,
    profiles: impl Future<Output = Result<Vec<QualityProfile>, ArrError>>,
    titles: impl Future<Output = Result<CachedTitles, ArrError>>,
) -> Result<CachedTitles, ArrError> {
    if let Err(error) = profiles.await {
        tracing::warn!(instance, %error, "failed to load the quality profiles");
    }
    titles.await
}

impl Instance<Radarr> {
    /// Returns the cached titles, after a refresh if `freshness` requires one.
    pub async fn load_library(&self, now: Timestamp, freshness: FreshnessPolicy) -> LoadResult {
        let load = self.cache.load_library(self.query_version(now), freshness, || self.fetch_titles());
        with_time_limit(load).await.map(|library| within_limit(library, self.client.title_limit()))
    }

    pub fn query_version(&self, now: Timestamp) -> QueryVersion {
        QueryVersion { now, changes: self.client.common_api().change_count() }
    }

    fn fetch_titles(&self) -> impl Future<Output = Result<CachedTitles, ArrError>> + Send + use<> {
        // The readers of the cache have different limits.
        let radarr = self.client.unlimited();
        async move {
            let mut entries = CachedTitles::default();
            radarr.for_each_title(|title| entries.push(title)).await?;
            Ok(entries)
        }
    }
}

impl Instance<Sonarr> {
    /// Returns the cached titles, after a refresh if `freshness` requires one.
    pub async fn load_library(&self, now: Timestamp, freshness: FreshnessPolicy) -> LoadResult {
        let load = self.cache.load_library(self.query_version(now), freshness, || self.fetch_titles());
        with_time_limit(load).await.map(|library| within_limit(library, self.client.title_limit()))
    }

    pub fn query_version(&self, now: Timestamp) -> QueryVersion {
        QueryVersion { now, changes: self.client.common_api().change_count() }
    }

    fn fetch_titles(&self) -> impl Future<Output = Result<CachedTitles, ArrError>> + Send + use<> {
        let sonarr = self.client.unlimited();
        async move {
            let mut entries = CachedTitles::default();
            sonarr.for_each_title(|title| entries.push(title)).await?;
            Ok(entries)
        }
    }
}

/// Returns what the reader may see of a library.
pub(super) fn within_limit(library: Arc<CachedLibrary>, limit: Option<&TitleLimit>) -> Arc<CachedLibrary> {
    match limit {
        Some(limit) => Arc::new(library.within_limit(limit)),
        None => library,
    }
}

/// Waits for a load within a time limit. The load continues in the background if the caller stops waiting.
async fn with_time_limit(load: impl Future<Output = LoadResult>) -> LoadResult {
    let timed_out = || Err(Arc::new(ArrError::NoResponse(HttpError::TimedOut(INSTANCE_READ_TIMEOUT))));
    tokio::time::timeout(INSTANCE_READ_TIMEOUT, load).await.unwrap_or_else(|_| timed_out())
}
