//! Refresh policy of a cached library. Loads run one after the other, each in its own task, so that a load completes
//! even if the caller has stopped waiting.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::entries::CachedTitles;
use crate::arr::ArrError;
use crate::http::HttpError;

/// Maximum age at which a cached library is used as it is.
const FRESH_FOR: SignedDuration = SignedDuration::from_secs(60);
/// Load time below which a library is quick to load, if it also has no more titles than `FEW_TITLES`. A quick library
/// is loaded again before a response, and any other library in the background after the response.
const QUICK: Duration = Duration::from_millis(500);
const FEW_TITLES: usize = 2_000;
/// Age below which the cached data of a slow library may still be used for a query, if no change since the load is
/// known.
const OLD_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// Cache of one library. Clones share the same cache.
#[derive(Clone, Default)]
pub struct LibraryCache(Arc<Mutex<CacheState>>);

/// Contents of a library when it was last loaded.
#[derive(Debug)]
pub struct CachedLibrary {
    pub entries: CachedTitles,
    read_at: Timestamp,
    load_time: Duration,
    ended: Instant,
    changes: u64,
}

/// Moment of a query: its time, and the number of possible changes to the library up to then.
#[derive(Debug, Clone, Copy)]
pub struct QueryMoment {
    pub now: Timestamp,
    pub changes: u64,
}

/// Required accuracy of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreshnessPolicy {
    /// Any cached data, regardless of its age.
    Rough,
    /// Old cached data is acceptable if loading the library again takes long.
    Usual,
    /// Data for a query that started at this moment and found no match.
    Missed(Instant),
}

pub type LoadResult = Result<Arc<CachedLibrary>, Arc<ArrError>>;

#[derive(Default)]
struct CacheState {
    held: Option<Arc<CachedLibrary>>,
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
        if let Some(reading) = &self.running {
            // The cache no longer exists, so the result of the load has no use.
            reading.task.abort();
        }
    }
}

/// Data that is available to a query immediately.
enum CacheLookup {
    Fresh(Arc<CachedLibrary>),
    /// Old data. The library is loaded again in the background, after the response.
    Stale(Arc<CachedLibrary>),
    Missing,
}

impl CachedLibrary {
    /// Returns whether the data may be reported as the current state.
    pub fn is_fresh(&self, moment: QueryMoment) -> bool {
        self.is_younger_than(FRESH_FOR, moment)
    }

    /// Returns whether a title that is not in the data may be reported as missing from the library. A library that is
    /// quick to load is loaded again for this purpose, since other programs and users change it as well.
    pub fn is_final(&self, asked: Instant, moment: QueryMoment) -> bool {
        self.is_fresh(moment) && (self.ended >= asked || !self.is_quick())
    }

    fn is_quick(&self) -> bool {
        self.load_time < QUICK && self.entries.titles().len() <= FEW_TITLES
    }

    fn is_younger_than(&self, limit: SignedDuration, moment: QueryMoment) -> bool {
        let age = moment.now.duration_since(self.read_at);
        // Setting back the clock makes all cached data old.
        self.changes >= moment.changes && !age.is_negative() && age < limit
    }
}

impl LibraryCache {
    /// Returns the contents of the library, as fresh as required. `read` loads the whole library. `read` is not called
    /// if no load is necessary, or if a sufficient load is already running.
    pub async fn load_library<Read>(
        &self,
        moment: QueryMoment,
        freshness: FreshnessPolicy,
        read: impl Fn() -> Read,
    ) -> LoadResult
    where
        Read: Future<Output = Result<CachedTitles, ArrError>> + Send + 'static,
    {
        match self.lookup_cached(moment, freshness) {
            CacheLookup::Fresh(held) => return Ok(held),
            CacheLookup::Stale(held) => {
                self.join_load(moment, &read);
                return Ok(held);
            }
            CacheLookup::Missing => {}
        }
        loop {
            let (changes, mut outcome) = self.join_load(moment, &read);
            let ended = match outcome.wait_for(Option::is_some).await {
                Ok(ended) => ended.clone(),
                Err(_) => None,
            };
            match ended {
                // This load started before the last known change.
                Some(Ok(_)) if changes < moment.changes => {}
                Some(reading) => return reading,
                None => {
                    let cause = "the reading of the library was given up".into();
                    return Err(Arc::new(ArrError::NoResponse(HttpError::Broken(cause))));
                }
            }
        }
    }

    /// Starts a load that no caller waits for yet.
    pub fn start_load<Read>(&self, moment: QueryMoment, read: impl Fn() -> Read)
    where
        Read: Future<Output = Result<CachedTitles, ArrError>> + Send + 'static,
    {
        self.join_load(moment, read);
    }

    fn lookup_cached(&self, moment: QueryMoment, freshness: FreshnessPolicy) -> CacheLookup {
        let Some(held) = self.lock_state().held.clone() else { return CacheLookup::Missing };
        match freshness {
            FreshnessPolicy::Rough => CacheLookup::Fresh(held),
            FreshnessPolicy::Usual if held.is_fresh(moment) => CacheLookup::Fresh(held),
            FreshnessPolicy::Missed(asked) if held.is_final(asked, moment) => CacheLookup::Fresh(held),
            FreshnessPolicy::Usual if !held.is_quick() && held.is_younger_than(OLD_AFTER, moment) => {
                CacheLookup::Stale(held)
            }
            FreshnessPolicy::Usual | FreshnessPolicy::Missed(_) => CacheLookup::Missing,
        }
    }

    /// Joins the load that is running, or starts one now. Returns its result channel with the number of changes at its
    /// start.
    fn join_load<Read>(
        &self,
        moment: QueryMoment,
        read: impl Fn() -> Read,
    ) -> (u64, watch::Receiver<Option<LoadResult>>)
    where
        Read: Future<Output = Result<CachedTitles, ArrError>> + Send + 'static,
    {
        let mut state = self.lock_state();
        if let Some(reading) = &state.running
            && !reading.task.is_finished()
        {
            return (reading.changes, reading.outcome.clone());
        }
        let (sender, outcome) = watch::channel(None);
        let shelf = Arc::downgrade(&self.0);
        let read = read();
        let begin = Instant::now();
        let task = tokio::spawn(async move {
            let read = read.await;
            let QueryMoment { now, changes } = moment;
            let ended = Instant::now();
            let took = ended - begin;
            let reading = match read {
                Ok(entries) => {
                    Ok(Arc::new(CachedLibrary { entries, read_at: now, load_time: took, ended, changes }))
                }
                Err(error) => Err(Arc::new(error)),
            };
            if let Some(shelf) = shelf.upgrade() {
                let mut state = shelf.lock().unwrap_or_else(PoisonError::into_inner);
                state.running = None;
                if let Ok(held) = &reading {
                    state.held = Some(Arc::clone(held));
                }
            }
            sender.send_replace(Some(reading));
        });
        state.running = Some(RunningLoad {
            changes: moment.changes,
            outcome: outcome.clone(),
            task: task.abort_handle(),
        });
        (moment.changes, outcome)
    }

    fn lock_state(&self) -> MutexGuard<'_, CacheState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LibraryCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles = self.lock_state().held.as_ref().map(|held| held.entries.titles().len());
        f.debug_struct("LibraryCache").field("titles", &titles).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures_util::future::join_all;

    use super::*;
    use crate::arr::library_title::{LibraryTitle, LibraryTitleDetails};

    const BEGIN: Timestamp = Timestamp::constant(1_770_000_000, 0);

    /// Library with one title whose id is the number of the load that returned it.
    struct Read {
        shelf: LibraryCache,
        readings: Arc<AtomicU64>,
        takes: Duration,
    }

    impl Read {
        fn taking(takes: Duration) -> Self {
            Self { shelf: LibraryCache::default(), readings: Arc::default(), takes }
        }

        async fn ask(&self, seconds: i64, changes: u64, freshness: FreshnessPolicy) -> i64 {
            let now = BEGIN + SignedDuration::from_secs(seconds);
            let held = self
                .shelf
                .load_library(QueryMoment { now, changes }, freshness, || self.read())
                .await
                .unwrap();
            held.entries.titles()[0].id
        }

        fn read(&self) -> impl Future<Output = Result<CachedTitles, ArrError>> + Send + use<> {
            let number = self.readings.fetch_add(1, Ordering::Relaxed) + 1;
            let done = tokio::time::interval_at(Instant::now() + self.takes, Duration::from_secs(1));
            async move {
                let mut done = done;
                done.tick().await;
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
            title: "Heat".into(),
            other_titles: Vec::new(),
            year: 1995,
            monitored: true,
            size_bytes: 0,
            profile: 4,
            genres: Vec::new(),
            added: None,
            rating: 0.0,
            detail: LibraryTitleDetails::Movie { has_file: false, available: true, collection: None },
        }
    }

    fn missed() -> FreshnessPolicy {
        FreshnessPolicy::Missed(Instant::now())
    }

    /// Checks the load that is used for each query: `(seconds, changes, freshness, reading)`.
    async fn check(takes: Duration, asked: &[(i64, u64, FreshnessPolicy, i64)]) {
        let library = Read::taking(takes);
        for &(seconds, changes, freshness, reading) in asked {
            let freshness = match freshness {
                // Data that was loaded before counts as loaded before the query.
                FreshnessPolicy::Missed(_) => FreshnessPolicy::Missed(Instant::now()),
                FreshnessPolicy::Rough | FreshnessPolicy::Usual => freshness,
            };
            let answered = library.ask(seconds, changes, freshness).await;
            assert_eq!(answered, reading, "after {seconds} s, {changes} changes, {freshness:?}");
            // A load in the background finishes before the next query.
            tokio::time::advance(takes).await;
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
                (60, 0, FreshnessPolicy::Rough, 1),
                (60, 0, FreshnessPolicy::Usual, 2),
                (61, 1, FreshnessPolicy::Rough, 2),
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
                (502, 0, missed(), 2),
                (600, 0, missed(), 3),
                (601, 1, FreshnessPolicy::Usual, 4),
                (1300, 1, FreshnessPolicy::Usual, 5),
            ],
        )
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn missing_title_reloads_a_fast_library() {
        let missed = missed();
        let takes = Duration::from_millis(200);
        check(takes, &[(0, 0, FreshnessPolicy::Usual, 1), (1, 0, missed, 2), (2, 0, missed, 3)]).await;
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_queries_share_a_load() {
        let library = Read::taking(Duration::from_secs(1));
        let answered = join_all((0..5).map(|_| library.ask(0, 0, FreshnessPolicy::Usual))).await;
        assert_eq!(answered, [1; 5]);
    }

    #[tokio::test(start_paused = true)]
    async fn query_after_a_change_waits_for_a_later_load() {
        let library = Read::taking(Duration::from_secs(1));
        let (before, after) = tokio::join!(
            library.ask(0, 0, FreshnessPolicy::Usual),
            library.ask(0, 1, FreshnessPolicy::Usual)
        );
        assert_eq!((before, after), (1, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn load_continues_without_waiting_queries() {
        let library = Read::taking(Duration::from_secs(30));
        let patience = Duration::from_secs(8);
        let given_up =
            tokio::time::timeout(patience, library.ask(0, 0, FreshnessPolicy::Usual)).await.is_err();
        let answered = library.ask(40, 0, FreshnessPolicy::Usual).await;
        assert_eq!((given_up, answered), (true, 1));
    }

    #[tokio::test]
    async fn failed_load_is_reported_to_all_waiting_queries_and_retried() {
        let shelf = LibraryCache::default();
        let readings = AtomicU64::new(0);
        let moment = QueryMoment { now: BEGIN, changes: 0 };
        let ask = || async {
            let read = || {
                readings.fetch_add(1, Ordering::Relaxed);
                std::future::ready(Err(ArrError::Unauthorized))
            };
            shelf.load_library(moment, FreshnessPolicy::Usual, read).await.unwrap_err().to_string()
        };
        let mut told = join_all([ask(), ask()]).await;
        told.push(ask().await);
        assert_eq!(told, vec![ArrError::Unauthorized.to_string(); 3]);
        assert_eq!(readings.into_inner(), 2);
    }
}
