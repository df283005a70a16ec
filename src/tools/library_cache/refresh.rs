//! Cache of one library and its refresh policy. Loads run one after the other, each in its own task, so that a load
//! completes even if its caller stops waiting.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::entries::CachedTitles;
use crate::arr::ArrError;
use crate::arr::title_limit::TitleLimit;
use crate::http::HttpError;

/// Age up to which a cached library is used without a refresh.
const MAX_FRESH_AGE: SignedDuration = SignedDuration::from_secs(60);
/// Load time below which a library with at most `MAX_QUICK_TITLES` titles is quick. A quick library is reloaded before
/// a response, any other library in the background after the response.
const QUICK_LOAD_TIME: Duration = Duration::from_millis(500);
const MAX_QUICK_TITLES: usize = 2_000;
/// Age up to which the cached data of a slow library is used, if no change since the load is known.
const MAX_STALE_AGE: SignedDuration = SignedDuration::from_mins(10);

/// Cache of one library. Clones share the same cache.
#[derive(Clone, Default)]
pub struct LibraryCache(Arc<Mutex<CacheState>>);

/// Contents of a library at its last load.
#[derive(Debug)]
pub struct CachedLibrary {
    pub entries: CachedTitles,
    loaded_at: Timestamp,
    load_time: Duration,
    /// End of the load.
    finished_at: Instant,
    /// Number of known changes at the start of the load.
    changes: u64,
}

/// Time of a query, and the number of known changes to the library up to then.
#[derive(Debug, Clone, Copy)]
pub struct QueryVersion {
    pub now: Timestamp,
    pub changes: u64,
}

/// Required freshness of the data for a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreshnessPolicy {
    /// Any cached data, regardless of its age.
    AnyAge,
    /// Old data is acceptable if the library is slow to load.
    Usual,
    /// Data for the repetition of a query that started at this instant and found no match.
    AfterMiss(Instant),
}

pub type LoadResult = Result<Arc<CachedLibrary>, Arc<ArrError>>;

#[derive(Default)]
struct CacheState {
    cached: Option<Arc<CachedLibrary>>,
    running: Option<RunningLoad>,
}

struct RunningLoad {
    changes: u64,
    /// Result of the load. `None` until it has finished.
    outcome: watch::Receiver<Option<LoadResult>>,
    task: AbortHandle,
}

impl Drop for CacheState {
    fn drop(&mut self) {
        if let Some(load) = &self.running {
            // Without the cache, the result of the load is useless.
            load.task.abort();
        }
    }
}

/// Result of a lookup in the cache.
enum CacheLookup {
    Fresh(Arc<CachedLibrary>),
    /// Old data that is used while the library is reloaded in the background.
    Stale(Arc<CachedLibrary>),
    Missing,
}

impl CachedLibrary {
    /// Returns the library without the titles that a limit does not allow.
    pub fn within_limit(&self, limit: &TitleLimit) -> Self {
        Self { entries: self.entries.within_limit(limit), ..*self }
    }

    /// Returns whether the data may be reported as the current state.
    pub fn is_fresh(&self, version: QueryVersion) -> bool {
        self.is_younger_than(MAX_FRESH_AGE, version)
    }

    /// Returns whether a query without a match is final. A quick library is reloaded first, since other programs and
    /// users change it as well.
    pub fn is_final(&self, query_start: Instant, version: QueryVersion) -> bool {
        self.is_fresh(version) && (self.finished_at >= query_start || !self.is_quick())
    }

    fn is_quick(&self) -> bool {
        self.load_time < QUICK_LOAD_TIME && self.entries.titles().len() <= MAX_QUICK_TITLES
    }

    fn is_younger_than(&self, limit: SignedDuration, version: QueryVersion) -> bool {
        let age = version.now.duration_since(self.loaded_at);
        // After the clock was set back, all cached data is old.
        self.changes >= version.changes && !age.is_negative() && age < limit
    }
}

impl LibraryCache {
    /// Returns the contents of the library, as fresh as required. `fetch` loads the whole library, unless no load is
    /// necessary or one is already running.
    pub async fn load_library<Fetch>(
        &self,
        version: QueryVersion,
        freshness: FreshnessPolicy,
        fetch: impl Fn() -> Fetch,
    ) -> LoadResult
    where
        Fetch: Future<Output = Result<CachedTitles, ArrError>> + Send + 'static,
    {
        match self.lookup_cached(version, freshness) {
            CacheLookup::Fresh(cached) => return Ok(cached),
            CacheLookup::Stale(cached) => {
                self.join_load(version, &fetch);
                return Ok(cached);
            }
            CacheLookup::Missing => {}
        }
        loop {
            let (changes, mut outcome) = self.join_load(version, &fetch);
            let result = match outcome.wait_for(Option::is_some).await {
                Ok(result) => result.clone(),
                Err(_) => None,
            };
            match result {
                // This load started before the last known change.
                Some(Ok(_)) if changes < version.changes => {}
                Some(result) => return result,
                None => {
                    let cause = "the load of the library was aborted".into();
                    return Err(Arc::new(ArrError::NoResponse(HttpError::Broken(cause))));
                }
            }
        }
    }

    /// Starts a load without waiting for it.
    pub fn start_load(
        &self,
        version: QueryVersion,
        load: impl Future<Output = Result<CachedTitles, ArrError>> + Send + 'static,
    ) {
        self.join_load(version, || load);
    }

    /// Returns the contents of the last load.
    pub fn last_loaded(&self) -> Option<Arc<CachedLibrary>> {
        self.lock_state().cached.clone()
    }

    fn lookup_cached(&self, version: QueryVersion, freshness: FreshnessPolicy) -> CacheLookup {
        let Some(cached) = self.lock_state().cached.clone() else { return CacheLookup::Missing };
        match freshness {
            FreshnessPolicy::AnyAge => CacheLookup::Fresh(cached),
            FreshnessPolicy::Usual if cached.is_fresh(version) => CacheLookup::Fresh(cached),
            FreshnessPolicy::AfterMiss(query_start) if cached.is_final(query_start, version) => {
                CacheLookup::Fresh(cached)
            }
            FreshnessPolicy::Usual
                if !cached.is_quick() && cached.is_younger_than(MAX_STALE_AGE, version) =>
            {
                CacheLookup::Stale(cached)
            }
            FreshnessPolicy::Usual | FreshnessPolicy::AfterMiss(_) => CacheLookup::Missing,
        }
    }

    /// Joins the load that is running, or starts one now. Returns its result channel with the number of changes at its
    /// start.
    fn join_load<Fetch>(
        &self,
        version: QueryVersion,
        fetch: impl FnOnce() -> Fetch,
    ) -> (u64, watch::Receiver<Option<LoadResult>>)
    where
        Fetch: Future<Output = Result<CachedTitles, ArrError>> + Send + 'static,
    {
        let mut state = self.lock_state();
        if let Some(load) = &state.running
            && !load.task.is_finished()
        {
            return (load.changes, load.outcome.clone());
        }
        let (sender, outcome) = watch::channel(None);
        let cache = Arc::downgrade(&self.0);
        let fetch = fetch();
        let started_at = Instant::now();
        let task = tokio::spawn(async move {
            let fetched = fetch.await;
            let QueryVersion { now, changes } = version;
            let finished_at = Instant::now();
            let load_time = finished_at - started_at;
            let result = match fetched {
                Ok(entries) => {
                    Ok(Arc::new(CachedLibrary { entries, loaded_at: now, load_time, finished_at, changes }))
                }
                Err(error) => Err(Arc::new(error)),
            };
            if let Some(cache) = cache.upgrade() {
                let mut state = cache.lock().unwrap_or_else(PoisonError::into_inner);
                state.running = None;
                if let Ok(cached) = &result {
                    state.cached = Some(Arc::clone(cached));
                }
            }
            sender.send_replace(Some(result));
        });
        state.running = Some(RunningLoad {
            changes: version.changes,
            outcome: outcome.clone(),
            task: task.abort_handle(),
        });
        (version.changes, outcome)
    }

    fn lock_state(&self) -> MutexGuard<'_, CacheState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LibraryCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles = self.lock_state().cached.as_ref().map(|cached| cached.entries.titles().len());
        f.debug_struct("LibraryCache").field("titles", &titles).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures_util::future::join_all;

    use super::*;
    use crate::arr::library_title::{LibraryTitle, LibraryTitleDetails};

    const START: Timestamp = Timestamp::constant(1_770_000_000, 0);

    /// Library with one title whose id is the number of the load that returned it.
    struct NumberedLibrary {
        cache: LibraryCache,
        load_count: Arc<AtomicU64>,
        load_time: Duration,
    }

    impl NumberedLibrary {
        fn with_load_time(load_time: Duration) -> Self {
            Self { cache: LibraryCache::default(), load_count: Arc::default(), load_time }
        }

        async fn query(&self, seconds: i64, changes: u64, freshness: FreshnessPolicy) -> i64 {
            let now = START + SignedDuration::from_secs(seconds);
            let cached = self
                .cache
                .load_library(QueryVersion { now, changes }, freshness, || self.fetch())
                .await
                .unwrap();
            cached.entries.titles()[0].id
        }

        fn fetch(&self) -> impl Future<Output = Result<CachedTitles, ArrError>> + Send + use<> {
            let number = self.load_count.fetch_add(1, Ordering::Relaxed) + 1;
            let timer = tokio::time::interval_at(Instant::now() + self.load_time, Duration::from_secs(1));
            async move {
                let mut timer = timer;
                timer.tick().await;
                let mut entries = CachedTitles::default();
                entries.push(title(number.try_into().unwrap()));
                Ok(entries)
            }
        }
    }

    fn title(id: i64) -> LibraryTitle {
        LibraryTitle {
            id,
            catalog: 949,
            tmdb: None,
            imdb: None,
            title: "Heat".into(),
            other_titles: Vec::new(),
            year: 1995,
            monitored: true,
            size_bytes: 0,
            profile: 4,
            genres: Vec::new(),
            certification: String::new(),
            added: None,
            rating: 0.0,
            minutes: 0,
            detail: LibraryTitleDetails::Movie { has_file: false, available: true, collection: None },
        }
    }

    fn after_miss() -> FreshnessPolicy {
        FreshnessPolicy::AfterMiss(Instant::now())
    }

    /// Checks the load that is used for each query: `(seconds, changes, freshness, load number)`.
    async fn check(load_time: Duration, queries: &[(i64, u64, FreshnessPolicy, i64)]) {
        let library = NumberedLibrary::with_load_time(load_time);
        for &(seconds, changes, freshness, expected) in queries {
            let freshness = match freshness {
                // Data of earlier loads counts as loaded before the query.
                FreshnessPolicy::AfterMiss(_) => FreshnessPolicy::AfterMiss(Instant::now()),
                FreshnessPolicy::AnyAge | FreshnessPolicy::Usual => freshness,
            };
            let load = library.query(seconds, changes, freshness).await;
            assert_eq!(load, expected, "after {seconds} s, {changes} changes, {freshness:?}");
            // A load in the background finishes before the next query.
            tokio::time::advance(load_time).await;
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn library_is_reloaded_when_old_or_changed() {
        check(
            Duration::from_millis(200),
            &[
                (0, 0, FreshnessPolicy::Usual, 1),
                (59, 0, FreshnessPolicy::Usual, 1),
                (60, 0, FreshnessPolicy::AnyAge, 1),
                (60, 0, FreshnessPolicy::Usual, 2),
                (61, 1, FreshnessPolicy::AnyAge, 2),
                (61, 1, FreshnessPolicy::Usual, 3),
                (62, 1, FreshnessPolicy::Usual, 3),
                (5, 1, FreshnessPolicy::Usual, 4),
            ],
        )
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn slow_library_is_reloaded_in_the_background_unless_changed() {
        check(
            Duration::from_secs(3),
            &[
                (0, 0, FreshnessPolicy::Usual, 1),
                (500, 0, FreshnessPolicy::Usual, 1),
                (501, 0, FreshnessPolicy::Usual, 2),
                (502, 0, after_miss(), 2),
                (600, 0, after_miss(), 3),
                (601, 1, FreshnessPolicy::Usual, 4),
                (1300, 1, FreshnessPolicy::Usual, 5),
            ],
        )
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn query_without_a_match_reloads_a_quick_library() {
        let after_miss = after_miss();
        let load_time = Duration::from_millis(200);
        check(load_time, &[(0, 0, FreshnessPolicy::Usual, 1), (1, 0, after_miss, 2), (2, 0, after_miss, 3)])
            .await;
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_queries_share_a_load() {
        let library = NumberedLibrary::with_load_time(Duration::from_secs(1));
        let loads = join_all((0..5).map(|_| library.query(0, 0, FreshnessPolicy::Usual))).await;
        assert_eq!(loads, [1; 5]);
    }

    #[tokio::test(start_paused = true)]
    async fn query_after_a_change_waits_for_a_later_load() {
        let library = NumberedLibrary::with_load_time(Duration::from_secs(1));
        let (before, after) = tokio::join!(
            library.query(0, 0, FreshnessPolicy::Usual),
            library.query(0, 1, FreshnessPolicy::Usual)
        );
        assert_eq!((before, after), (1, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn load_continues_without_waiting_queries() {
        let library = NumberedLibrary::with_load_time(Duration::from_secs(30));
        let time_limit = Duration::from_secs(8);
        let timed_out =
            tokio::time::timeout(time_limit, library.query(0, 0, FreshnessPolicy::Usual)).await.is_err();
        let load = library.query(40, 0, FreshnessPolicy::Usual).await;
        assert_eq!((timed_out, load), (true, 1));
    }

    #[tokio::test]
    async fn failed_load_is_reported_to_all_waiting_queries_and_retried() {
        let cache = LibraryCache::default();
        let load_count = AtomicU64::new(0);
        let version = QueryVersion { now: START, changes: 0 };
        let query = || async {
            let fetch = || {
                load_count.fetch_add(1, Ordering::Relaxed);
                std::future::ready(Err(ArrError::Unauthorized))
            };
            cache.load_library(version, FreshnessPolicy::Usual, fetch).await.unwrap_err().to_string()
        };
        let mut errors = join_all([query(), query()]).await;
        errors.push(query().await);
        assert_eq!(errors, vec![ArrError::Unauthorized.to_string(); 3]);
        assert_eq!(load_count.into_inner(), 2);
    }
}
