//! Combined caches of all libraries that a query covers, and the current state of single titles.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};

use super::entries::{CachedTitle, CachedTitles};
use super::refresh::{CachedLibrary, FreshnessPolicy, LoadResult, QueryMoment};
use crate::arr::{ArrError, MediaKind};
use crate::conversation::transcript::{CallFailure, MediaRef};
use crate::http::HttpError;
use crate::tools::instance_ref::InstanceRef;
use crate::tools::library::{ArrInstances, READ_PATIENCE};

/// Contents of the libraries, and the failures of libraries that could not be loaded.
pub struct LoadedLibraries<'a> {
    pub libraries: Vec<LoadedLibrary<'a>>,
    pub failures: Vec<CallFailure>,
    now: Timestamp,
    asked: Instant,
}

pub struct LoadedLibrary<'a> {
    pub(in crate::tools) instance: InstanceRef<'a>,
    pub cached: Arc<CachedLibrary>,
}

/// Current state of a title, which may have changed since its library was loaded.
pub enum CurrentTitle {
    /// Title that is in the library. Its genres are numbered for this entry alone.
    Present(Box<CachedTitle>),
    Gone,
    Failed(CallFailure),
}

impl<'a> LoadedLibraries<'a> {
    pub async fn load_libraries(library: &'a ArrInstances, kind: Option<MediaKind>, now: Timestamp) -> Self {
        let movies = library.movies_of(kind).iter().map(InstanceRef::Movies);
        let series = library.series_of(kind).iter().map(InstanceRef::Series);
        let mut stock = Self { libraries: Vec::new(), failures: Vec::new(), now, asked: Instant::now() };
        stock.add_libraries(movies.chain(series).collect(), FreshnessPolicy::Usual).await;
        stock
    }

    /// Loads the libraries again for a query that matched nothing. Returns `None` if that result is already up to date.
    pub async fn reload_if_stale(&self) -> Option<Self> {
        let is_final = |shelf: &LoadedLibrary<'_>| {
            shelf.cached.is_final(self.asked, shelf.instance.query_moment(self.now))
        };
        if self.libraries.iter().all(is_final) {
            return None;
        }
        let places = self.libraries.iter().map(|shelf| shelf.instance).collect();
        let mut renewed = Self { libraries: Vec::new(), failures: Vec::new(), ..*self };
        renewed.add_libraries(places, FreshnessPolicy::Missed(self.asked)).await;
        renewed.failures.extend(self.failures.iter().cloned());
        Some(renewed)
    }

    /// Returns the entries of each library.
    pub fn cached_titles(&self) -> Vec<&CachedTitles> {
        self.libraries.iter().map(|shelf| &shelf.cached.entries).collect()
    }

    /// Returns the names of all existing genres, in alphabetical order.
    pub fn genre_names(&self) -> Vec<&str> {
        let all = self.libraries.iter().flat_map(|shelf| shelf.cached.entries.all_genres());
        all.collect::<BTreeSet<&str>>().into_iter().collect()
    }

    async fn add_libraries(&mut self, places: Vec<InstanceRef<'a>>, freshness: FreshnessPolicy) {
        let read = join_all(places.iter().map(|place| place.load_library(self.now, freshness))).await;
        for (place, held) in places.into_iter().zip(read) {
            match held {
                Ok(held) => self.libraries.push(LoadedLibrary { instance: place, cached: held }),
                Err(error) => self.failures.push(place.request_failure(&error)),
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
                let late = ArrError::NoResponse(HttpError::TimedOut(READ_PATIENCE));
                CurrentTitle::Failed(self.instance.request_failure(&late))
            }
        }
    }

    pub fn media_ref(&self, id: i64) -> MediaRef {
        self.instance.media_ref(id)
    }
}

impl InstanceRef<'_> {
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

    fn query_moment(&self, now: Timestamp) -> QueryMoment {
        match self {
            Self::Movies(instance) => instance.query_moment(now),
            Self::Series(instance) => instance.query_moment(now),
        }
    }

    async fn fetch_title(&self, id: i64) -> Result<Option<CachedTitle>, ArrError> {
        let holding = match self {
            Self::Movies(instance) => instance.client.fetch_library_title(id).await?,
            Self::Series(instance) => instance.client.fetch_library_title(id).await?,
        };
        Ok(holding.map(|holding| CachedTitles::default().build_title(holding)))
    }

    fn request_failure(&self, error: &ArrError) -> CallFailure {
        match self {
            Self::Movies(instance) => instance.request_failure(error),
            Self::Series(instance) => instance.request_failure(error),
        }
    }
}
