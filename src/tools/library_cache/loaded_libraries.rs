//! Cached libraries that a query covers, and the current state of single titles.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};

use super::entries::{CachedTitle, CachedTitles};
use super::refresh::{CachedLibrary, FreshnessPolicy, LoadResult, QueryVersion};
use super::within_limit;
use crate::arr::{ArrError, MediaKind};
use crate::conversation::transcript::{CallFailure, MediaRef};
use crate::http::HttpError;
use crate::tools::instance_ref::InstanceRef;
use crate::tools::library::{ArrInstances, INSTANCE_READ_TIMEOUT};

/// Cached libraries, and the failures of those that could not be loaded.
pub struct LoadedLibraries<'a> {
    pub libraries: Vec<LoadedLibrary<'a>>,
    pub failures: Vec<CallFailure>,
    now: Timestamp,
    started_at: Instant,
}

pub struct LoadedLibrary<'a> {
    pub(in crate::tools) instance: InstanceRef<'a>,
    pub cached: Arc<CachedLibrary>,
}

/// Current state of a title, which may have changed since its library was loaded.
pub enum CurrentTitle {
    /// Title in the library. Its genre set cannot be compared with those of other titles.
    Present(Box<CachedTitle>),
    Gone,
    Failed(CallFailure),
}

impl<'a> LoadedLibraries<'a> {
    pub async fn load_libraries(library: &'a ArrInstances, kind: Option<MediaKind>, now: Timestamp) -> Self {
        let movies = library.radarr_instances(kind).iter().map(InstanceRef::Movies);
        let series = library.sonarr_instances(kind).iter().map(InstanceRef::Series);
        let mut loaded =
            Self { libraries: Vec::new(), failures: Vec::new(), now, started_at: Instant::now() };
        loaded.add_libraries(movies.chain(series).collect(), FreshnessPolicy::Usual).await;
        loaded
    }

    /// Reloads the libraries for a query without a match. Returns `None` if the result is already final.
    pub async fn reload_if_stale(&self) -> Option<Self> {
        let is_final = |library: &LoadedLibrary<'_>| {
            library.cached.is_final(self.started_at, library.instance.query_version(self.now))
        };
        if self.libraries.iter().all(is_final) {
            return None;
        }
        let instances = self.libraries.iter().map(|library| library.instance).collect();
        let mut reloaded = Self { libraries: Vec::new(), failures: Vec::new(), ..*self };
        reloaded.add_libraries(instances, FreshnessPolicy::AfterMiss(self.started_at)).await;
        reloaded.failures.extend(self.failures.iter().cloned());
        Some(reloaded)
    }

    /// Returns the entries of each library.
    pub fn cached_titles(&self) -> Vec<&CachedTitles> {
        self.libraries.iter().map(|library| &library.cached.entries).collect()
    }

    /// Returns the names of all genres in the libraries, in alphabetical order.
    pub fn genre_names(&self) -> Vec<&str> {
        let all = self.libraries.iter().flat_map(|library| library.cached.entries.all_genres());
        all.collect::<BTreeSet<&str>>().into_iter().collect()
    }

    async fn add_libraries(&mut self, instances: Vec<InstanceRef<'a>>, freshness: FreshnessPolicy) {
        let results =
            join_all(instances.iter().map(|instance| instance.load_library(self.now, freshness))).await;
        for (instance, result) in instances.into_iter().zip(results) {
            match result {
                Ok(cached) => self.libraries.push(LoadedLibrary { instance, cached }),
                Err(error) => self.failures.push(instance.request_failure(&error)),
            }
        }
    }
}

impl LoadedLibrary<'_> {
    /// Fetches the current state of one title.
    pub async fn fetch_current(&self, id: i64, deadline: Instant) -> CurrentTitle {
        match timeout_at(deadline, self.instance.fetch_title(id)).await {
            Ok(Ok(Some(entry))) => CurrentTitle::Present(Box::new(entry)),
            Ok(Ok(None)) => {
                self.instance.common_api().record_change();
                CurrentTitle::Gone
            }
            Ok(Err(error)) => CurrentTitle::Failed(self.instance.request_failure(&error)),
            Err(_) => {
                let timed_out = ArrError::NoResponse(HttpError::TimedOut(INSTANCE_READ_TIMEOUT));
                CurrentTitle::Failed(self.instance.request_failure(&timed_out))
            }
        }
    }

    pub fn media_ref(&self, id: i64) -> MediaRef {
        self.instance.media_ref(id)
    }
}

impl InstanceRef<'_> {
    /// Returns the library as it was last loaded, regardless of its age.
    pub(in crate::tools) fn last_loaded(&self) -> Option<Arc<CachedLibrary>> {
        match self {
            Self::Movies(instance) => {
                Some(within_limit(instance.cache.last_loaded()?, instance.client.title_limit()))
            }
            Self::Series(instance) => {
                Some(within_limit(instance.cache.last_loaded()?, instance.client.title_limit()))
            }
        }
    }

    pub(in crate::tools) async fn load_library(
        &self,
        now: Timestamp,
        freshness: FreshnessPolicy,
    ) -> LoadResult {
        match self {
            Self::Movies(instance) => instance.load_library(now, freshness).await,
            Self::Series(instance) => instance.load_library(now, freshness).await,
        }
    }

    fn query_version(&self, now: Timestamp) -> QueryVersion {
        match self {
            Self::Movies(instance) => instance.query_version(now),
            Self::Series(instance) => instance.query_version(now),
        }
    }

    async fn fetch_title(&self, id: i64) -> Result<Option<CachedTitle>, ArrError> {
        let title = match self {
            Self::Movies(instance) => instance.client.fetch_library_title(id).await?,
            Self::Series(instance) => instance.client.fetch_library_title(id).await?,
        };
        Ok(title.map(|title| CachedTitles::default().build_title(title)))
    }

    fn request_failure(&self, error: &ArrError) -> CallFailure {
        match self {
            Self::Movies(instance) => instance.request_failure(error),
            Self::Series(instance) => instance.request_failure(error),
        }
    }
}
