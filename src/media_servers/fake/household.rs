//! Titles, people and sessions of a simulated media server. Each kind of server states them in its own format.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::clock::Clock;
use crate::conversation::transcript::MediaKind;
use crate::media_servers::CatalogIds;
use crate::server_api::fake::FakeFaults;

/// State of a simulated media server. Clones share it.
#[derive(Debug, Clone)]
pub struct FakeHousehold {
    clock: Clock,
    state: Arc<Mutex<HouseholdState>>,
}

#[derive(Debug, Default)]
pub(super) struct HouseholdState {
    pub(super) users: Vec<FakeUser>,
    pub(super) titles: Vec<FakeTitle>,
    /// User and item of each session; the item is a movie or an episode.
    pub(super) sessions: Vec<(u64, u64)>,
    /// What each user has watched of a movie or an episode.
    pub(super) views: BTreeMap<(u64, u64), FakeView>,
    /// Plays in their order. They outlive their titles.
    pub(super) plays: Vec<FakePlay>,
    pub(super) folders: Vec<(String, String)>,
    /// Paths that the server was asked to scan.
    pub(super) scans: Vec<String>,
    pub(super) faults: FakeFaults,
    /// Faults of the program that records the plays.
    pub(super) recorder_faults: FakeFaults,
    /// Titles were identified by the old agents of Plex.
    pub(super) has_old_agents: bool,
    /// Method and path of each request.
    pub(super) requests: Vec<String>,
    last_id: u64,
}

/// State of a movie or an episode for one user.
#[derive(Debug, Clone, Copy)]
pub(super) struct FakeView {
    /// 100 if it was finished.
    pub(super) percent: u8,
    pub(super) at: Timestamp,
}

/// Id of an episode, with its season and number.
pub(super) type FakeEpisode = (u64, (u32, u32));

/// Play of a movie or an episode.
#[derive(Debug, Clone)]
pub(super) struct FakePlay {
    pub(super) user: u64,
    /// Movie or show as it was then.
    pub(super) title: FakeTitle,
    /// Episode of a show.
    pub(super) episode: Option<FakeEpisode>,
    /// Percentage up to which it was played.
    pub(super) percent: u8,
    pub(super) at: Timestamp,
}

#[derive(Debug, Clone)]
pub(super) struct FakeUser {
    pub(super) id: u64,
    pub(super) name: String,
    /// Plays of the user are recorded.
    pub(super) is_recorded: bool,
}

/// Movie or show of a simulated server.
#[derive(Debug, Clone)]
pub struct FakeTitle {
    pub id: u64,
    pub kind: MediaKind,
    pub title: String,
    pub year: u16,
    pub ids: CatalogIds,
    /// Id of each episode with its season and number.
    pub episodes: Vec<(u64, (u32, u32))>,
    /// Episodes that are known only by their air date.
    pub missing: Vec<(u32, u32)>,
    /// Time at which a scan finds the title.
    pub visible_from: Timestamp,
}

impl FakeHousehold {
    pub fn new(clock: Clock) -> Self {
        let folders = [("Movies", "/media/movies"), ("Shows", "/media/shows")];
        let state = HouseholdState {
            folders: folders.map(|(name, path)| (name.to_owned(), path.to_owned())).to_vec(),
            ..HouseholdState::default()
        };
        Self { clock, state: Arc::new(Mutex::new(state)) }
    }

    /// Adds a user, and returns its id.
    pub fn add_user(&self, name: &str) -> u64 {
        let mut state = self.lock_state();
        let id = state.new_id();
        state.users.push(FakeUser { id, name: name.to_owned(), is_recorded: true });
        id
    }

    pub fn remove_user(&self, id: u64) {
        self.lock_state().users.retain(|user| user.id != id);
    }

    /// Adds a movie that the server shows after a delay, and returns its id.
    pub fn add_movie(&self, (title, year): (&str, u16), ids: CatalogIds, delay: SignedDuration) -> u64 {
        self.add_title(MediaKind::Movie, (title, year), ids, delay)
    }

    /// Adds a show without episodes that the server shows after a delay, and returns its id.
    pub fn add_show(&self, (title, year): (&str, u16), ids: CatalogIds, delay: SignedDuration) -> u64 {
        self.add_title(MediaKind::Series, (title, year), ids, delay)
    }

    fn add_title(
        &self,
        kind: MediaKind,
        (title, year): (&str, u16),
        ids: CatalogIds,
        delay: SignedDuration,
    ) -> u64 {
        let visible_from = self.clock.now() + delay;
        let mut state = self.lock_state();
        let id = state.new_id();
        state.titles.push(FakeTitle {
            id,
            kind,
            title: title.to_owned(),
            year,
            ids,
            episodes: Vec::new(),
            missing: Vec::new(),
            visible_from,
        });
        id
    }

    /// Adds the file of an episode, and returns its id. The show must exist.
    pub fn add_episode(&self, show: u64, episode: (u32, u32)) -> u64 {
        let mut state = self.lock_state();
        let id = state.new_id();
        if let Some(title) = state.titles.iter_mut().find(|title| title.id == show) {
            title.missing.retain(|missing| *missing != episode);
            title.episodes.push((id, episode));
        }
        id
    }

    /// Removes the file of an episode.
    pub fn remove_episode(&self, show: u64, episode: (u32, u32)) {
        if let Some(title) = self.lock_state().titles.iter_mut().find(|title| title.id == show) {
            title.episodes.retain(|(_, known)| *known != episode);
        }
    }

    /// Adds an episode of which the server knows only the air date.
    pub fn add_missing_episode(&self, show: u64, episode: (u32, u32)) {
        if let Some(title) = self.lock_state().titles.iter_mut().find(|title| title.id == show) {
            title.missing.push(episode);
        }
    }

    /// Removes the files of all episodes of a show.
    pub fn remove_episodes(&self, show: u64) {
        if let Some(title) = self.lock_state().titles.iter_mut().find(|title| title.id == show) {
            title.episodes.clear();
        }
    }

    /// Removes a title, as after the deletion of its files.
    pub fn remove_title(&self, id: u64) {
        self.lock_state().titles.retain(|title| title.id != id);
    }

    /// Changes the catalog ids of a title, as a correction of a wrong match does.
    pub fn match_title(&self, id: u64, ids: CatalogIds) {
        let now = self.clock.now();
        if let Some(title) = self.lock_state().titles.iter_mut().find(|title| title.id == id) {
            title.ids = ids;
            title.visible_from = now;
        }
    }

    /// Lets a user play a movie or an episode, instead of what the user played before.
    pub fn start_playing(&self, user: u64, item: u64) {
        let mut state = self.lock_state();
        state.sessions.retain(|(player, _)| *player != user);
        state.sessions.push((user, item));
    }

    pub fn stop_playing(&self, user: u64) {
        self.lock_state().sessions.retain(|(player, _)| *player != user);
    }

    /// Records that a user watched a movie or an episode up to a percentage; 100 finishes it.
    pub fn watch(&self, user: u64, item: u64, percent: u8) {
        self.watch_at((user, item), percent, self.clock.now());
    }

    /// Records that a user watched a movie or an episode at this time.
    pub fn watch_at(&self, (user, item): (u64, u64), percent: u8, at: Timestamp) {
        let mut state = self.lock_state();
        state.views.insert((user, item), FakeView { percent, at });
        let played = state.find_item(item).map(|(title, episode)| (title.clone(), episode));
        let play = played.map(|(title, episode)| FakePlay { user, title, episode, percent, at });
        state.plays.extend(play);
    }

    /// Lets the plays of a user be recorded, or not.
    pub fn set_recorded(&self, user: u64, is_recorded: bool) {
        if let Some(user) = self.lock_state().users.iter_mut().find(|known| known.id == user) {
            user.is_recorded = is_recorded;
        }
    }

    /// Lets Plex identify titles by its old agents, which know one catalog id of each.
    pub fn use_old_agents(&self) {
        self.lock_state().has_old_agents = true;
    }

    /// Replaces the folders that the server scans, each with the name of its library.
    pub fn set_folders(&self, folders: &[(&str, &str)]) {
        let owned = |(name, path): &(&str, &str)| ((*name).to_owned(), (*path).to_owned());
        self.lock_state().folders = folders.iter().map(owned).collect();
    }

    /// Lets every request fail with a status, or succeed again.
    pub fn set_status(&self, status: Option<u16>) {
        self.lock_state().faults.status = status;
    }

    /// Lets every request to the program that records the plays fail with a status, or succeed again.
    pub fn set_recorder_status(&self, status: Option<u16>) {
        self.lock_state().recorder_faults.status = status;
    }

    /// Lets every request wait without a response.
    pub fn set_silent(&self, is_silent: bool) {
        self.lock_state().faults.is_silent = is_silent;
    }

    /// Returns the paths that the server was asked to scan.
    pub fn scans(&self) -> Vec<String> {
        self.lock_state().scans.clone()
    }

    /// Returns the method and the path of each request.
    pub fn requests(&self) -> Vec<String> {
        self.lock_state().requests.clone()
    }

    pub(super) fn lock_state(&self) -> MutexGuard<'_, HouseholdState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl HouseholdState {
    fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Returns the title to which a movie or an episode belongs, and the episode.
    pub(super) fn find_item(&self, item: u64) -> Option<(&FakeTitle, Option<FakeEpisode>)> {
        self.titles.iter().find_map(|title| {
            let episode = title.episodes.iter().find(|(id, _)| *id == item);
            (title.id == item || episode.is_some()).then(|| (title, episode.copied()))
        })
    }

    /// Returns the titles that a scan has found by now.
    pub(super) fn visible_titles(&self, now: Timestamp) -> impl Iterator<Item = &FakeTitle> {
        self.titles.iter().filter(move |title| title.visible_from <= now)
    }
}
