//! What the users of a server have watched, in memory for a day at most.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::title_list::is_age_within;
use super::{
    ItemId, MediaServer, PlayProgress, RecentPlay, ServerError, ServerUserId, TitleIndex, WatchState,
    WatchStates,
};
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
    pub(super) states: Arc<WatchStates>,
    /// True if the server failed, so that nothing is known but what was finished earlier.
    pub(super) is_incomplete: bool,
}

#[derive(Debug, Clone)]
struct StoredStates {
    states: Arc<WatchStates>,
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
        LoadedStates { states: self.states, is_incomplete: false }
    }

    /// Returns what remains certain if the server no longer answers: what was finished.
    fn certain_states(&self) -> LoadedStates {
        let is_finished = |state: &WatchState| matches!(state, WatchState::Finished { .. });
        let known = self.states.known.iter().filter(|(_, state)| is_finished(state));
        let known = known.map(|(item, state)| (item.clone(), *state)).collect();
        let states = Arc::new(WatchStates { known, others: WatchState::Unknown });
        LoadedStates { states, is_incomplete: true }
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
        (user, index): (&ServerUserId, &TitleIndex),
        now: Timestamp,
    ) -> Result<LoadedStates, ServerError> {
        if let Some(stored) = self.stored(user).filter(|stored| stored.is_fresh(now)) {
            return Ok(stored.complete());
        }
        let _refresh = self.refresh.lock().await;
        let stored = self.stored(user).filter(|stored| stored.is_evidence(now));
        if let Some(stored) = stored.as_ref().filter(|stored| stored.is_fresh(now)) {
            return Ok(stored.clone().complete());
        }
        let updated = match stored.as_ref().filter(|stored| stored.can_be_updated(now)) {
            Some(stored) => update(server, (user, index), stored, now).await,
            None => Ok(None),
        };
        let states = match updated {
            Ok(Some(states)) => Ok(states),
            Ok(None) => load_all(server, user, now).await,
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
                Ok(stored.certain_states())
            }
            (Err(error), None) => Err(error),
        }
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
    user: &ServerUserId,
    now: Timestamp,
) -> Result<StoredStates, ServerError> {
    let states = Arc::new(server.fetch_watch_states(user).await?);
    Ok(StoredStates { states, loaded_at: now, refreshed_at: now })
}

/// Reads the states of the titles that were played since the last refresh, and of those that were not finished, whose time
/// may be that of their start. Returns `None` if these are too many.
async fn update(
    server: &dyn MediaServer,
    (user, index): (&ServerUserId, &TitleIndex),
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
    Ok(Some(StoredStates { states, loaded_at: stored.loaded_at, refreshed_at: now }))
}
