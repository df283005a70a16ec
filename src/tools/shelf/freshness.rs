//! When a library is read again. A reading runs as a task of its own, one at a time, so that it is finished even where
//! whoever asked has stopped waiting.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::entries::Entries;
use crate::arr::ArrError;
use crate::http::HttpError;

/// What was read less long ago is used as it is.
const FRESH_FOR: SignedDuration = SignedDuration::from_secs(60);
/// A library that is read within this time, and has no more titles than this, is quick to read: so it is read again
/// before an answer, and any other behind it,
const QUICK: Duration = Duration::from_millis(500);
const FEW_TITLES: usize = 2_000;
/// as long as it was read less long ago than this, and nothing is known to have changed since.
const OLD_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// The shelf of one library. Clones are the same.
#[derive(Clone, Default)]
pub struct Shelf(Arc<Mutex<State>>);

/// What a library held when it was read last.
#[derive(Debug)]
pub struct Held {
    pub entries: Entries,
    read_at: Timestamp,
    took: Duration,
    ended: Instant,
    changes: u64,
}

/// The moment of a question: its time, and how often the library may have changed by then.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub now: Timestamp,
    pub changes: u64,
}

/// How true an answer has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Whatever is there, however old.
    Rough,
    /// What is there and old will do where reading it again takes long.
    Usual,
    /// Something was looked for in vain, in a question of this moment.
    Missed(Instant),
}

pub type Reading = Result<Arc<Held>, Arc<ArrError>>;

#[derive(Default)]
struct State {
    held: Option<Arc<Held>>,
    under_way: Option<UnderWay>,
}

struct UnderWay {
    changes: u64,
    /// `None` until it has ended.
    outcome: watch::Receiver<Option<Reading>>,
    task: AbortHandle,
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(reading) = &self.under_way {
            // Nobody is left who could use what it reads.
            reading.task.abort();
        }
    }
}

/// What a question gets at once.
enum Offer {
    Held(Arc<Held>),
    /// Old, and to be read again behind the answer.
    Old(Arc<Held>),
    Nothing,
}

impl Held {
    /// Whether it may be told as what is there now.
    pub fn is_fresh(&self, moment: Moment) -> bool {
        self.is_within(FRESH_FOR, moment)
    }

    /// Whether what is not in it may be told as not there. A library that is read quickly is read again for that, since
    /// others change it as well.
    pub fn is_final(&self, asked: Instant, moment: Moment) -> bool {
        self.is_fresh(moment) && (self.ended >= asked || !self.is_quick())
    }

    fn is_quick(&self) -> bool {
        self.took < QUICK && self.entries.titles().len() <= FEW_TITLES
    }

    fn is_within(&self, limit: SignedDuration, moment: Moment) -> bool {
        let age = moment.now.duration_since(self.read_at);
        // A clock that was set back makes everything old.
        self.changes >= moment.changes && !age.is_negative() && age < limit
    }
}

impl Shelf {
    /// What is there, as fresh as it is needed. `read` reads all of the library; it is not used where nothing has to
    /// be read, or where a reading is under way that will do.
    pub async fn held<Read>(&self, moment: Moment, need: Need, read: impl Fn() -> Read) -> Reading
    where
        Read: Future<Output = Result<Entries, ArrError>> + Send + 'static,
    {
        match self.offer(moment, need) {
            Offer::Held(held) => return Ok(held),
            Offer::Old(held) => {
                self.join(moment, &read);
                return Ok(held);
            }
            Offer::Nothing => {}
        }
        loop {
            let (changes, mut outcome) = self.join(moment, &read);
            let ended = match outcome.wait_for(Option::is_some).await {
                Ok(ended) => ended.clone(),
                Err(_) => None,
            };
            match ended {
                // It began before the last change that we know of.
                Some(Ok(_)) if changes < moment.changes => {}
                Some(reading) => return reading,
                None => {
                    let cause = "the reading of the library was given up".into();
                    return Err(Arc::new(ArrError::NoAnswer(HttpError::Broken(cause))));
                }
            }
        }
    }

    /// Begins a reading that nobody waits for yet.
    pub fn begin<Read>(&self, moment: Moment, read: impl Fn() -> Read)
    where
        Read: Future<Output = Result<Entries, ArrError>> + Send + 'static,
    {
        self.join(moment, read);
    }

    fn offer(&self, moment: Moment, need: Need) -> Offer {
        let Some(held) = self.lock().held.clone() else { return Offer::Nothing };
        match need {
            Need::Rough => Offer::Held(held),
            Need::Usual if held.is_fresh(moment) => Offer::Held(held),
            Need::Missed(asked) if held.is_final(asked, moment) => Offer::Held(held),
            Need::Usual if !held.is_quick() && held.is_within(OLD_AFTER, moment) => Offer::Old(held),
            Need::Usual | Need::Missed(_) => Offer::Nothing,
        }
    }

    /// The reading that is under way, or one that begins now; with the number of changes it began at.
    fn join<Read>(&self, moment: Moment, read: impl Fn() -> Read) -> (u64, watch::Receiver<Option<Reading>>)
    where
        Read: Future<Output = Result<Entries, ArrError>> + Send + 'static,
    {
        let mut state = self.lock();
        if let Some(reading) = &state.under_way
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
            let Moment { now, changes } = moment;
            let ended = Instant::now();
            let took = ended - begin;
            let reading = match read {
                Ok(entries) => Ok(Arc::new(Held { entries, read_at: now, took, ended, changes })),
                Err(error) => Err(Arc::new(error)),
            };
            if let Some(shelf) = shelf.upgrade() {
                let mut state = shelf.lock().unwrap_or_else(PoisonError::into_inner);
                state.under_way = None;
                if let Ok(held) = &reading {
                    state.held = Some(Arc::clone(held));
                }
            }
            sender.send_replace(Some(reading));
        });
        state.under_way =
            Some(UnderWay { changes: moment.changes, outcome: outcome.clone(), task: task.abort_handle() });
        (moment.changes, outcome)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles = self.lock().held.as_ref().map(|held| held.entries.titles().len());
        f.debug_struct("Shelf").field("titles", &titles).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures_util::future::join_all;

    use super::*;
    use crate::arr::holding::{Detail, Holding};

    const BEGIN: Timestamp = Timestamp::constant(1_770_000_000, 0);

    /// A library of one title whose id is the number of the reading that it comes from.
    struct Read {
        shelf: Shelf,
        readings: Arc<AtomicU64>,
        takes: Duration,
    }

    impl Read {
        fn taking(takes: Duration) -> Self {
            Self { shelf: Shelf::default(), readings: Arc::default(), takes }
        }

        async fn ask(&self, seconds: i64, changes: u64, need: Need) -> i64 {
            let now = BEGIN + SignedDuration::from_secs(seconds);
            let held = self.shelf.held(Moment { now, changes }, need, || self.read()).await.unwrap();
            held.entries.titles()[0].id
        }

        fn read(&self) -> impl Future<Output = Result<Entries, ArrError>> + Send + use<> {
            let number = self.readings.fetch_add(1, Ordering::Relaxed) + 1;
            let done = tokio::time::interval_at(Instant::now() + self.takes, Duration::from_secs(1));
            async move {
                let mut done = done;
                done.tick().await;
                let mut entries = Entries::default();
                entries.push(title(number.try_into().unwrap()));
                Ok(entries)
            }
        }
    }

    fn title(id: i64) -> Holding {
        Holding {
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
            detail: Detail::Movie { has_file: false, available: true, collection: None },
        }
    }

    fn missed() -> Need {
        Need::Missed(Instant::now())
    }

    /// Which reading each question is answered from: `(seconds, changes, need, reading)`.
    async fn check(takes: Duration, asked: &[(i64, u64, Need, i64)]) {
        let library = Read::taking(takes);
        for &(seconds, changes, need, reading) in asked {
            let need = match need {
                // What was read before counts as read before the question.
                Need::Missed(_) => Need::Missed(Instant::now()),
                Need::Rough | Need::Usual => need,
            };
            let answered = library.ask(seconds, changes, need).await;
            assert_eq!(answered, reading, "after {seconds} s, {changes} changes, {need:?}");
            // What is read behind an answer is read by the next question.
            tokio::time::advance(takes).await;
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_library_is_read_again_when_it_is_old_or_known_to_have_changed() {
        check(
            Duration::from_millis(200),
            &[
                (0, 0, Need::Usual, 1),
                (59, 0, Need::Usual, 1),
                (60, 0, Need::Rough, 1),
                (60, 0, Need::Usual, 2),
                (61, 1, Need::Rough, 2),
                (61, 1, Need::Usual, 3),
                (62, 1, Need::Usual, 3),
                (5, 1, Need::Usual, 4),
            ],
        )
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_slow_to_read_is_read_behind_the_answer_unless_it_changed() {
        check(
            Duration::from_secs(3),
            &[
                (0, 0, Need::Usual, 1),
                (500, 0, Need::Usual, 1),
                (501, 0, Need::Usual, 2),
                (502, 0, missed(), 2),
                (600, 0, missed(), 3),
                (601, 1, Need::Usual, 4),
                (1300, 1, Need::Usual, 5),
            ],
        )
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_there_is_looked_for_again_where_that_is_quick() {
        let missed = missed();
        let takes = Duration::from_millis(200);
        check(takes, &[(0, 0, Need::Usual, 1), (1, 0, missed, 2), (2, 0, missed, 3)]).await;
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_ask_at_the_same_time_share_a_reading() {
        let library = Read::taking(Duration::from_secs(1));
        let answered = join_all((0..5).map(|_| library.ask(0, 0, Need::Usual))).await;
        assert_eq!(answered, [1; 5]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_knows_of_a_change_waits_for_a_reading_that_began_after_it() {
        let library = Read::taking(Duration::from_secs(1));
        let (before, after) = tokio::join!(library.ask(0, 0, Need::Usual), library.ask(0, 1, Need::Usual));
        assert_eq!((before, after), (1, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reading_goes_on_when_nobody_waits_for_it_any_more() {
        let library = Read::taking(Duration::from_secs(30));
        let patience = Duration::from_secs(8);
        let given_up = tokio::time::timeout(patience, library.ask(0, 0, Need::Usual)).await.is_err();
        let answered = library.ask(40, 0, Need::Usual).await;
        assert_eq!((given_up, answered), (true, 1));
    }

    #[tokio::test]
    async fn a_reading_that_fails_is_told_to_all_who_wait_and_tried_again() {
        let shelf = Shelf::default();
        let readings = AtomicU64::new(0);
        let moment = Moment { now: BEGIN, changes: 0 };
        let ask = || async {
            let read = || {
                readings.fetch_add(1, Ordering::Relaxed);
                std::future::ready(Err(ArrError::Unauthorized))
            };
            shelf.held(moment, Need::Usual, read).await.unwrap_err().to_string()
        };
        let mut told = join_all([ask(), ask()]).await;
        told.push(ask().await);
        assert_eq!(told, vec![ArrError::Unauthorized.to_string(); 3]);
        assert_eq!(readings.into_inner(), 2);
    }
}
