//! What the users of a server have watched, in memory for a day at most.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::title_list::is_age_within;
use super::{
    CatalogIds, ItemId, MediaServer, PlayProgress, RecentPlay, ServerError, ServerTitle, ServerUserId,
    TitleIndex, WatchEvidence, WatchState, WatchStates,
};
use crate::conversation::transcript::MediaKind;
use crate::telemetry;

/// Age up to which the states answer a question without a request.
const FRESH_FOR: SignedDuration = SignedDuration::from_mins(1);
/// Age after which all states are read again. Marks that a person sets or removes by hand, and new episodes of a show that
/// was finished, show only then.
const FULL_READ_INTERVAL: SignedDuration = SignedDuration::from_hours(1);
/// Age after which states are forgotten.
const MAX_AGE: SignedDuration = SignedDuration::from_hours(24);
/// Overlap of two readings of the plays, since the clocks differ.
const OVERLAP: SignedDuration = SignedDuration::from_mins(10);
/// Number of plays that an update reads.
const MAX_UPDATE_PLAYS: usize = 50;
/// Number of titles whose states an update reads one by one.
const MAX_UPDATE_TITLES: usize = 20;

/// States of the titles for each user who was asked about.
#[derive(Debug, Default)]
pub(super) struct WatchCache {
    stored: Mutex<HashMap<ServerUserId, StoredStates>>,
    /// Held during a refresh, so that callers share it.
    refresh: tokio::sync::Mutex<()>,
}

/// States of one user for a question.
#[derive(Debug, Clone)]
pub(super) struct LoadedStates {
    titles: TitleStates,
    /// [`WatchEvidence::NotAnswered`] if the server failed, so that nothing is known but what was finished earlier.
    pub(super) evidence: WatchEvidence,
}

/// States of the titles of an index, by their positions there, so that a question about all titles compares no ids of
/// items.
#[derive(Debug, Clone)]
struct TitleStates {
    index: Arc<TitleIndex>,
    states: Arc<[WatchState]>,
}

impl TitleStates {
    fn new(states: &WatchStates, index: &Arc<TitleIndex>) -> Self {
        let state = |title: &ServerTitle| states.known.get(&title.item).copied().unwrap_or(states.others);
        Self { index: index.clone(), states: index.titles().iter().map(state).collect() }
    }
}

impl LoadedStates {
    /// Calls a function with the states of the copies of a title.
    pub(super) fn visit(&self, kind: MediaKind, ids: &CatalogIds, mut visit: impl FnMut(WatchState)) {
        let TitleStates { index, states } = &self.titles;
        index.visit_positions(kind, ids, |position| {
            if let Some(state) = states.get(position) {
                visit(*state);
            }
        });
    }
}

#[derive(Debug, Clone)]
struct StoredStates {
    states: Arc<WatchStates>,
    titles: TitleStates,
    /// Start of the last full reading.
    loaded_at: Timestamp,
    /// Start of the last update.
    refreshed_at: Timestamp,
}

impl StoredStates {
    fn is_fresh(&self, now: Timestamp) -> bool {
        is_age_within(self.refreshed_at, FRESH_FOR, now)
    }

    fn can_be_updated(&self, now: Timestamp) -> bool {
        is_age_within(self.loaded_at, FULL_READ_INTERVAL, now)
    }

    fn complete(self) -> LoadedStates {
        let evidence = match self.states.others {
            WatchState::Unknown => WatchEvidence::NotRecorded,
            WatchState::Finished { .. }
            | WatchState::Started { .. }
            | WatchState::Never
            | WatchState::NoFinishedPlay => WatchEvidence::Complete,
        };
        LoadedStates { titles: self.titles, evidence }
    }

    /// Returns what remains certain if the server no longer answers: what was finished.
    fn certain_states(&self, index: &Arc<TitleIndex>) -> LoadedStates {
        let TitleStates { index, states } = TitleStates::new(&self.states, index);
        let only_finished = |state: &WatchState| match state {
            WatchState::Finished { .. } => *state,
            WatchState::Started { .. }
            | WatchState::Never
            | WatchState::NoFinishedPlay
            | WatchState::Unknown => WatchState::Unknown,
        };
        let states = states.iter().map(only_finished).collect();
        LoadedStates { titles: TitleStates { index, states }, evidence: WatchEvidence::NotAnswered }
    }

    fn is_evidence(&self, now: Timestamp) -> bool {
        is_age_within(self.loaded_at, MAX_AGE, now)
    }
}

impl WatchCache {
    /// Returns the states of a user. If the server fails, only what was finished within the last day is known.
    pub(super) async fn load(
        &self,
        server: &dyn MediaServer,
        (user, index): (&ServerUserId, &Arc<TitleIndex>),
        now: Timestamp,
    ) -> Result<LoadedStates, ServerError> {
        if let Some(stored) = self.stored(user).filter(|stored| stored.is_fresh(now)) {
            return Ok(self.complete_states(user, stored, index));
        }
        let _refresh = self.refresh.lock().await;
        let stored = self.stored(user).filter(|stored| stored.is_evidence(now));
        if let Some(stored) = stored.as_ref().filter(|stored| stored.is_fresh(now)) {
            return Ok(self.complete_states(user, stored.clone(), index));
        }
        let updated = match stored.as_ref().filter(|stored| stored.can_be_updated(now)) {
            Some(stored) => update(server, (user, index), stored, now).await,
            None => Ok(None),
        };
        let states = match updated {
            Ok(Some(states)) => Ok(states),
            Ok(None) => load_all(server, (user, index), now).await,
            Err(error) => Err(error),
        };
        match (states, stored) {
            (Ok(states), _) => {
                self.lock().insert(user.clone(), states.clone());
                Ok(states.complete())
            }
            (Err(error), Some(stored)) => {
                let error = telemetry::error_chain(&error);
                tracing::warn!(server = server.label(), error, "failed to read what a user has watched");
                Ok(stored.certain_states(index))
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Returns stored states by the positions of `index`, which may be newer than they are.
    fn complete_states(
        &self,
        user: &ServerUserId,
        mut stored: StoredStates,
        index: &Arc<TitleIndex>,
    ) -> LoadedStates {
        if !Arc::ptr_eq(&stored.titles.index, index) {
            stored.titles = TitleStates::new(&stored.states, index);
            let mut all = self.lock();
            // Another caller may have stored newer states meanwhile.
            if let Some(current) =
                all.get_mut(user).filter(|current| Arc::ptr_eq(&current.states, &stored.states))
            {
                current.titles = stored.titles.clone();
            }
        }
        stored.complete()
    }

    /// Forgets the states that are too old to be evidence.
    pub(super) fn drop_old(&self, now: Timestamp) {
        self.lock().retain(|_, stored| stored.is_evidence(now));
    }

    fn stored(&self, user: &ServerUserId) -> Option<StoredStates> {
        self.lock().get(user).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ServerUserId, StoredStates>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn load_all(
    server: &dyn MediaServer,
    (user, index): (&ServerUserId, &Arc<TitleIndex>),
    now: Timestamp,
) -> Result<StoredStates, ServerError> {
    let states = Arc::new(server.fetch_watch_states(user).await?);
    let titles = TitleStates::new(&states, index);
    Ok(StoredStates { states, titles, loaded_at: now, refreshed_at: now })
}

/// Reads the states of the titles that were played since the last refresh, and of those that were not finished, whose time
/// may be that of their start. Returns `None` if these are too many.
async fn update(
    server: &dyn MediaServer,
    (user, index): (&ServerUserId, &Arc<TitleIndex>),
    stored: &StoredStates,
    now: Timestamp,
) -> Result<Option<StoredStates>, ServerError> {
    let since = stored.refreshed_at - OVERLAP;
    let plays = server.fetch_recent_plays(user, MAX_UPDATE_PLAYS).await?;
    let is_new =
        |play: &&RecentPlay| play.progress != PlayProgress::Finished || play.at.is_some_and(|at| at >= since);
    let played: HashSet<&ItemId> = plays.iter().filter(is_new).map(|play| &play.item).collect();
    if played.len() > MAX_UPDATE_TITLES
        || plays.len() == MAX_UPDATE_PLAYS && plays.iter().all(|play| is_new(&play))
    {
        return Ok(None);
    }
    let mut states = Arc::clone(&stored.states);
    for title in played.into_iter().filter_map(|item| index.find_item(item)) {
        let state = server.fetch_watch_state(user, title).await?;
        Arc::make_mut(&mut states).known.insert(title.item.clone(), state);
    }
    let titles = TitleStates::new(&states, index);
    Ok(Some(StoredStates { states, titles, loaded_at: stored.loaded_at, refreshed_at: now }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::http::HttpClient;
    use crate::media_servers::fake::FakeJellyfin;
    use crate::media_servers::jellyfin::Jellyfin;

    const START: Timestamp = Timestamp::constant(1_770_000_000, 0);
    const MINUTE: SignedDuration = SignedDuration::from_mins(1);
    const SECOND: SignedDuration = SignedDuration::from_secs(1);
    const FINISHED_AT_START: WatchState = WatchState::Finished { at: Some(START) };

    /// Person who has finished Heat, stopped in the middle of Alien, and not seen Dune.
    struct World {
        clock: Clock,
        fake: FakeJellyfin,
        client: Jellyfin,
        cache: WatchCache,
        person: u64,
        heat: u64,
        alien: u64,
        dune: u64,
    }

    impl World {
        fn new() -> Self {
            let clock = Clock::stopped_at(START);
            let fake = FakeJellyfin::new("key", clock.clone());
            let url = "http://jellyfin.invalid".parse().unwrap();
            let client = Jellyfin::new(HttpClient::in_process(fake.in_process()), url, &fake.key());
            let person = fake.household.add_user("Ann");
            let [heat, alien, dune] = ["Heat", "Alien", "Dune"].map(|title| add_movie(&fake, title));
            fake.household.watch(person, heat, 100);
            fake.household.watch(person, alien, 41);
            Self { clock, fake, client, cache: WatchCache::default(), person, heat, alien, dune }
        }

        async fn load(&self) -> Result<LoadedStates, ServerError> {
            self.load_with(&self.index().await?).await
        }

        async fn index(&self) -> Result<Arc<TitleIndex>, ServerError> {
            Ok(Arc::new(TitleIndex::new(self.client.fetch_titles(0, None).await?.titles)))
        }

        async fn load_with(&self, index: &Arc<TitleIndex>) -> Result<LoadedStates, ServerError> {
            let user = ServerUserId::new(&FakeJellyfin::user_id(self.person));
            self.cache.load(&self.client, (&user, index), self.clock.now()).await
        }

        async fn state(&self, title: u64) -> WatchState {
            state_in(&self.load().await.unwrap(), title)
        }

        /// Records a play or a mark of a time at which an update does not look.
        fn mark_as_played(&self, title: u64) {
            let long_ago = START - SignedDuration::from_hours(100);
            self.fake.household.watch_at((self.person, title), 100, long_ago);
        }

        fn pass(&self, duration: SignedDuration) {
            self.clock.advance(duration.unsigned_abs());
        }
    }

    fn add_movie(fake: &FakeJellyfin, title: &str) -> u64 {
        fake.household.add_movie((title, 1995), CatalogIds::default(), SignedDuration::ZERO)
    }

    fn state_in(loaded: &LoadedStates, title: u64) -> WatchState {
        let TitleStates { index, states } = &loaded.titles;
        let item = ItemId::new(&format!("{title:032x}"));
        states[index.titles().iter().position(|title| title.item == item).unwrap()]
    }

    #[tokio::test]
    async fn states_of_the_last_minute_are_read_once() {
        let world = World::new();
        assert_eq!(world.state(world.dune).await, WatchState::Never);
        world.pass(MINUTE);
        world.fake.household.watch(world.person, world.dune, 100);
        assert_eq!(world.state(world.dune).await, WatchState::Never);
        world.pass(SECOND);
        assert_eq!(world.state(world.dune).await, WatchState::Finished { at: Some(START + MINUTE) });
    }

    #[tokio::test]
    async fn fresh_states_include_newly_added_titles() {
        let world = World::new();
        assert_eq!(world.state(world.heat).await, FINISHED_AT_START);
        let arrival = add_movie(&world.fake, "Arrival");
        assert_eq!(world.state(arrival).await, WatchState::Never);
        assert_eq!(world.state(world.heat).await, FINISHED_AT_START);
    }

    #[tokio::test]
    async fn states_are_read_in_full_every_hour() {
        let world = World::new();
        world.load().await.unwrap();
        world.mark_as_played(world.dune);
        world.pass(59 * MINUTE);
        world.fake.household.watch(world.person, world.alien, 100);
        let newest = WatchState::Finished { at: Some(START + 59 * MINUTE) };
        assert_eq!(world.state(world.alien).await, newest);
        assert_eq!(world.state(world.dune).await, WatchState::Never);
        world.pass(MINUTE + SECOND);
        assert!(matches!(world.state(world.dune).await, WatchState::Finished { .. }));
    }

    #[tokio::test]
    async fn more_plays_than_an_update_reads_are_all_known() {
        let world = World::new();
        let movies: Vec<u64> =
            (0..=MAX_UPDATE_PLAYS).map(|number| add_movie(&world.fake, &number.to_string())).collect();
        world.load().await.unwrap();
        world.pass(2 * MINUTE);
        for movie in &movies {
            world.fake.household.watch(world.person, *movie, 100);
        }
        let states = world.load().await.unwrap();
        let finished = WatchState::Finished { at: Some(START + 2 * MINUTE) };
        assert!(movies.iter().all(|movie| state_in(&states, *movie) == finished), "{states:?}");
    }

    #[tokio::test]
    async fn only_finished_titles_are_certain_while_the_server_fails() {
        let world = World::new();
        let index = world.index().await.unwrap();
        let before = world.load_with(&index).await.unwrap();
        assert!(matches!(state_in(&before, world.alien), WatchState::Started { .. }));
        assert_eq!(state_in(&before, world.dune), WatchState::Never);
        for (passed, status) in [(2 * MINUTE, 503), (2 * SignedDuration::from_hours(1), 401)] {
            world.pass(passed);
            world.fake.household.set_status(Some(status));
            let states = world.load_with(&index).await.unwrap();
            assert_eq!(states.evidence, WatchEvidence::NotAnswered);
            assert_eq!(state_in(&states, world.heat), FINISHED_AT_START);
            assert_eq!(state_in(&states, world.alien), WatchState::Unknown);
            assert_eq!(state_in(&states, world.dune), WatchState::Unknown);
        }
        world.fake.household.set_status(None);
        let again = world.load_with(&index).await.unwrap();
        assert_eq!((&again.titles.states, again.evidence), (&before.titles.states, WatchEvidence::Complete));
    }

    #[tokio::test]
    async fn states_expire_a_day_after_they_were_read_in_full() {
        let world = World::new();
        let index = world.index().await.unwrap();
        world.load_with(&index).await.unwrap();
        // An update does not make the states younger.
        world.pass(30 * MINUTE);
        world.load_with(&index).await.unwrap();
        world.fake.household.set_status(Some(503));
        world.pass(MAX_AGE - 30 * MINUTE);
        world.cache.drop_old(world.clock.now());
        let states = world.load_with(&index).await.unwrap();
        assert_eq!(state_in(&states, world.heat), FINISHED_AT_START);
        world.pass(SECOND);
        assert!(matches!(world.load_with(&index).await, Err(ServerError::Unavailable(503))));
    }

    #[tokio::test]
    async fn old_states_are_dropped_from_memory() {
        let world = World::new();
        world.load().await.unwrap();
        world.pass(MAX_AGE);
        world.cache.drop_old(world.clock.now());
        assert_eq!(world.cache.lock().len(), 1);
        world.pass(SECOND);
        world.cache.drop_old(world.clock.now());
        assert_eq!(world.cache.lock().len(), 0);
    }
}
