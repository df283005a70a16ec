//! Questions about one title to all media servers: whether it can be played, and whether somebody is watching it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};

use super::watch_cache::WatchCache;
use super::{
    CatalogIds, MediaServer, PlayableEpisode, PlayingTitle, ServerError, ServerTitle, ServerUser, TitleIndex,
    TitleList, path_mapping,
};
use crate::conversation::notifications::readiness::{MissingCause, Playability};
use crate::conversation::text::title_key::title_key;
use crate::conversation::transcript::MediaKind;
use crate::telemetry;

/// Age up to which the list of titles answers a question.
const MAX_LIST_AGE: SignedDuration = SignedDuration::from_secs(30);

/// Time limit of one server to state what is playing, after which that is unknown.
const WATCHING_TIMEOUT: Duration = Duration::from_secs(8);
/// Time after a failure in which a server is not asked whether titles can be played, because each question could wait for
/// its timeout.
const FAILURE_PAUSE: SignedDuration = SignedDuration::from_secs(30);
/// Minimum time between two scans of one folder.
const SCAN_INTERVAL: SignedDuration = SignedDuration::from_mins(10);

/// Configured media servers, each with the list of its titles. Clones share the lists.
#[derive(Debug, Clone, Default)]
pub struct MediaServers(Vec<Arc<ConnectedServer>>);

/// Media server with the list of its titles.
#[derive(Debug)]
pub struct ConnectedServer {
    pub server: Arc<dyn MediaServer>,
    titles: TitleList,
    pub(super) watched: WatchCache,
    /// Paths of the scans within the last minutes, each with its time.
    scans: Mutex<Vec<(String, Timestamp)>>,
    /// Time of the last failure that concerns all titles.
    failed_at: Mutex<Option<Timestamp>>,
}

/// Title of the library about which a question is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedTitle {
    pub kind: MediaKind,
    pub ids: CatalogIds,
    pub part: TitlePart,
}

/// Imported title that no server shows.
#[derive(Debug, Clone, Copy)]
pub struct MissingTitle<'a> {
    pub asked: &'a AskedTitle,
    pub name: &'a str,
    /// Year, or 0 if unknown.
    pub year: u16,
    /// Folder of the title as Sonarr or Radarr sees it, if it is known.
    pub path: Option<&'a str>,
}

/// Part of a title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TitlePart {
    Whole,
    Seasons(Vec<u32>),
    /// Episodes by season and number.
    Episodes(Vec<(u32, u32)>),
}

impl TitlePart {
    fn contains(&self, episode: (u32, u32)) -> bool {
        match self {
            Self::Whole => true,
            Self::Seasons(seasons) => seasons.contains(&episode.0),
            Self::Episodes(episodes) => episodes.contains(&episode),
        }
    }
}

/// Part of a title that can be played on any server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlayablePart {
    /// True if the movie, or the show as a whole, is there.
    is_whole: bool,
    episodes: Vec<PlayableEpisode>,
    /// Names of the servers that have all of the title.
    complete_servers: Vec<&'static str>,
    /// True if a server did not answer.
    is_unknown: bool,
}

impl PlayablePart {
    pub fn has_episode(&self, episode: (u32, u32)) -> bool {
        self.episodes.iter().any(|file| file.contains(episode))
    }

    /// Returns the names of the servers that have all of the title.
    pub fn complete_servers(&self) -> &[&'static str] {
        &self.complete_servers
    }

    /// Returns whether any of the title can be played.
    pub fn has_any_of(&self, title: &AskedTitle) -> bool {
        match &title.part {
            TitlePart::Whole => self.is_whole,
            TitlePart::Seasons(seasons) => self.episodes.iter().any(|file| seasons.contains(&file.season)),
            TitlePart::Episodes(episodes) => episodes.iter().any(|episode| self.has_episode(*episode)),
        }
    }

    /// Returns whether all of a title can be played.
    pub fn playability(&self, title: &AskedTitle) -> Playability {
        let is_there = match &title.part {
            TitlePart::Whole => self.is_whole,
            TitlePart::Seasons(seasons) => {
                seasons.iter().all(|season| self.episodes.iter().any(|file| file.season == *season))
            }
            TitlePart::Episodes(episodes) => episodes.iter().all(|episode| self.has_episode(*episode)),
        };
        match (is_there, self.is_unknown) {
            (true, _) => Playability::Playable,
            (false, true) => Playability::Unknown,
            (false, false) => Playability::NotYet,
        }
    }
}

/// People who are watching a title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchingNow {
    Nobody,
    By(Vec<ServerUser>),
    /// A server did not answer, or plays something that cannot be told apart from the title.
    Unknown,
}

impl MediaServers {
    pub fn new(servers: Vec<Arc<dyn MediaServer>>) -> Self {
        let connect = |server| {
            let (titles, watched) = (TitleList::default(), WatchCache::default());
            let (scans, failed_at) = (Mutex::default(), Mutex::default());
            Arc::new(ConnectedServer { server, titles, watched, scans, failed_at })
        };
        Self(servers.into_iter().map(connect).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn connected(&self) -> &[Arc<ConnectedServer>] {
        &self.0
    }

    pub fn servers(&self) -> impl Iterator<Item = &Arc<dyn MediaServer>> {
        self.0.iter().map(|connected| &connected.server)
    }

    /// Returns the names of the products, such as `Jellyfin`.
    pub fn labels(&self) -> Vec<&'static str> {
        self.servers().map(|server| server.label()).collect()
    }

    /// Starts to read the titles of all servers, so that the first question does not wait for them.
    pub fn preload_titles(&self, now: Timestamp) {
        for connected in &self.0 {
            let connected = Arc::clone(connected);
            tokio::spawn(async move {
                if let Err(error) = connected.load_titles(now).await {
                    connected.log_failure(&error);
                }
            });
        }
    }

    /// Asks all servers which part of a title can be played.
    pub async fn find_playable(&self, title: &AskedTitle, now: Timestamp) -> PlayablePart {
        let answers = join_all(self.0.iter().map(|connected| connected.find_playable(title, now))).await;
        self.merge_playable(title, answers)
    }

    /// Asks all servers which part of a title can be played. What a server does not answer in time is unknown.
    pub async fn find_playable_within(
        &self,
        limit: Duration,
        title: &AskedTitle,
        now: Timestamp,
    ) -> PlayablePart {
        let ask =
            |connected| tokio::time::timeout(limit, ConnectedServer::find_playable(connected, title, now));
        let answers = join_all(self.0.iter().map(ask)).await;
        self.merge_playable(title, answers.into_iter().map(|answer| answer.unwrap_or(Ok(None))))
    }

    fn merge_playable(
        &self,
        title: &AskedTitle,
        answers: impl IntoIterator<Item = Result<Option<PlayablePart>, ServerError>>,
    ) -> PlayablePart {
        let mut playable = PlayablePart::default();
        for (connected, answer) in self.0.iter().zip(answers) {
            match answer {
                Ok(Some(found)) => {
                    if found.playability(title) == Playability::Playable {
                        playable.complete_servers.push(connected.server.label());
                    }
                    playable.is_whole |= found.is_whole;
                    playable.episodes.extend(found.episodes);
                }
                Ok(None) => playable.is_unknown = true,
                Err(error) => {
                    connected.log_failure(&error);
                    playable.is_unknown = true;
                }
            }
        }
        playable
    }

    /// Asks all servers which of several titles can be played, each as a whole. What a server does not answer in time is
    /// unknown.
    pub async fn check_titles_within(
        &self,
        limit: Duration,
        titles: &[AskedTitle],
        now: Timestamp,
    ) -> Vec<Playability> {
        let load =
            |connected| tokio::time::timeout(limit, ConnectedServer::load_usable_titles(connected, now));
        let loaded = join_all(self.0.iter().map(load)).await;
        let indexes: Vec<Option<Arc<TitleIndex>>> =
            loaded.into_iter().map(|index| index.ok().flatten()).collect();
        let is_unknown = indexes.iter().any(Option::is_none);
        let check = |title: &AskedTitle| {
            let mut copies = indexes.iter().flatten().flat_map(|index| index.find(title.kind, &title.ids));
            let is_whole = copies.any(|copy| copy.is_playable);
            match (is_whole, is_unknown) {
                (true, _) => Playability::Playable,
                (false, true) => Playability::Unknown,
                (false, false) => Playability::NotYet,
            }
        };
        titles.iter().map(check).collect()
    }

    /// Asks all servers whether a title can be played.
    pub async fn check_playability(&self, title: &AskedTitle, now: Timestamp) -> Playability {
        self.find_playable(title, now).await.playability(title)
    }

    /// Asks all servers whether somebody is watching a title.
    pub async fn check_watching(&self, title: &AskedTitle, now: Timestamp) -> WatchingNow {
        let ask = |connected: &Arc<ConnectedServer>| {
            let connected = connected.clone();
            async move {
                let answer = tokio::time::timeout(WATCHING_TIMEOUT, connected.who_watches(title, now));
                answer.await.unwrap_or(Ok(WatchingNow::Unknown))
            }
        };
        let answers = join_all(self.0.iter().map(ask)).await;
        let (mut users, mut is_unknown) = (Vec::new(), false);
        for (connected, answer) in self.0.iter().zip(answers) {
            match answer {
                Ok(WatchingNow::By(found)) => users.extend(found),
                Ok(WatchingNow::Nobody) => {}
                Ok(WatchingNow::Unknown) => is_unknown = true,
                Err(error) => {
                    connected.log_failure(&error);
                    is_unknown = true;
                }
            }
        }
        match (users.is_empty(), is_unknown) {
            (false, _) => WatchingNow::By(users),
            (true, true) => WatchingNow::Unknown,
            (true, false) => WatchingNow::Nobody,
        }
    }

    /// Asks all servers to look for new files in a folder, given by the path that Sonarr or Radarr uses. A server that
    /// refuses, or whose folders cannot be matched, finds them by itself later. A scan that was requested within the last
    /// minutes is not requested again.
    pub async fn request_scan(&self, path: &str, now: Timestamp) {
        for connected in &self.0 {
            if connected.begin_scan(path, now)
                && let Err(error) = connected.request_scan(path).await
            {
                connected.log_failure(&error);
            }
        }
    }

    /// Returns the server that does not show a title, and the likely cause. `path` is the folder of the title as Sonarr or
    /// Radarr sees it, if it is known.
    pub async fn find_missing_cause(
        &self,
        title: &MissingTitle<'_>,
        now: Timestamp,
    ) -> Option<(&'static str, MissingCause)> {
        let connected = self.0.first()?;
        let cause = connected.find_missing_cause(title, now).await.unwrap_or_else(|error| {
            connected.log_failure(&error);
            MissingCause::NoAnswer
        });
        Some((connected.server.label(), cause))
    }
}

impl ConnectedServer {
    /// Returns the titles. The list is read in a task of its own, which completes and records a failure even if the caller
    /// stops waiting.
    pub(super) async fn load_titles(
        self: &Arc<Self>,
        now: Timestamp,
    ) -> Result<Arc<TitleIndex>, ServerError> {
        let connected = self.clone();
        let load = async move {
            let loaded = connected.titles.load(&*connected.server, MAX_LIST_AGE, now).await;
            if let Err(error) = &loaded {
                connected.record_failure(error, now);
            }
            loaded
        };
        let loaded = tokio::spawn(load).await;
        loaded.unwrap_or_else(|error| Err(ServerError::from_panic(error)))
    }

    /// Returns `None` if the server failed a moment ago.
    async fn find_playable(
        self: &Arc<Self>,
        title: &AskedTitle,
        now: Timestamp,
    ) -> Result<Option<PlayablePart>, ServerError> {
        if self.has_failed_lately(now) {
            return Ok(None);
        }
        let found = self.read_playable(title, now).await;
        if let Err(error) = &found {
            self.record_failure(error, now);
        }
        found.map(Some)
    }

    /// Returns the titles, or `None` if the server failed now or a moment ago.
    async fn load_usable_titles(self: &Arc<Self>, now: Timestamp) -> Option<Arc<TitleIndex>> {
        if self.has_failed_lately(now) {
            return None;
        }
        let loaded = self.load_titles(now).await;
        loaded.inspect_err(|error| self.log_failure(error)).ok()
    }

    fn record_failure(&self, error: &ServerError, now: Timestamp) {
        if error.affects_all_titles() {
            *self.failed_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        }
    }

    fn has_failed_lately(&self, now: Timestamp) -> bool {
        let failed_at = *self.failed_at.lock().unwrap_or_else(PoisonError::into_inner);
        failed_at.is_some_and(|at| at <= now && now.duration_since(at) < FAILURE_PAUSE)
    }

    async fn read_playable(
        self: &Arc<Self>,
        title: &AskedTitle,
        now: Timestamp,
    ) -> Result<PlayablePart, ServerError> {
        let index = self.load_titles(now).await?;
        let copies = index.find(title.kind, &title.ids);
        let mut playable = PlayablePart::default();
        if title.part == TitlePart::Whole {
            playable.is_whole = copies.iter().any(|copy| copy.is_playable);
            return Ok(playable);
        }
        for copy in copies {
            playable.episodes.extend(self.server.fetch_episodes(&copy.item).await?);
        }
        Ok(playable)
    }

    /// Records a scan, and returns whether it is due.
    fn begin_scan(&self, path: &str, now: Timestamp) -> bool {
        let mut scans = self.scans.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |at: Timestamp| at <= now && now.duration_since(at) < SCAN_INTERVAL;
        scans.retain(|(_, at)| is_recent(*at));
        let is_due = !scans.iter().any(|(known, _)| known == path);
        if is_due {
            scans.push((path.to_owned(), now));
        }
        is_due
    }

    async fn request_scan(&self, path: &str) -> Result<(), ServerError> {
        let folders = self.server.fetch_folders().await?;
        match path_mapping::map_path(path, &folders) {
            Some(path) => self.server.request_scan(&path).await,
            None => Ok(()),
        }
    }

    async fn find_missing_cause(
        self: &Arc<Self>,
        title: &MissingTitle<'_>,
        now: Timestamp,
    ) -> Result<MissingCause, ServerError> {
        let index = self.load_titles(now).await?;
        let has_same_name = |other: &ServerTitle| {
            let same_year = title.year == 0 || other.year == 0 || other.year.abs_diff(title.year) <= 1;
            other.kind == title.asked.kind && same_year && title_key(&other.title) == title_key(title.name)
        };
        let is_there = !index.find(title.asked.kind, &title.asked.ids).is_empty();
        if !is_there && index.titles().iter().any(has_same_name) {
            return Ok(MissingCause::WrongMatch);
        }
        let folders = self.server.fetch_folders().await?;
        let is_mapped = title.path.is_none_or(|path| path_mapping::map_path(path, &folders).is_some());
        Ok(if is_mapped { MissingCause::NotScanned } else { MissingCause::FolderNotInLibrary })
    }

    async fn who_watches(
        self: &Arc<Self>,
        title: &AskedTitle,
        now: Timestamp,
    ) -> Result<WatchingNow, ServerError> {
        let playing = self.server.fetch_playing().await?;
        let (mut users, mut undecided) = (Vec::new(), Vec::new());
        for playing in playing.into_iter().filter(|playing| playing.kind == title.kind) {
            match is_same_title(title, &playing, playing.ids) {
                Some(true) => users.push(playing.user),
                Some(false) => {}
                None => undecided.push(playing),
            }
        }
        let mut is_unknown = false;
        if users.is_empty() && !undecided.is_empty() {
            // The response names only the item, as for every episode.
            let index = self.load_titles(now).await?;
            for playing in undecided {
                let ids = index.find_item(&playing.item).map(|known| known.ids);
                match is_same_title(title, &playing, ids.unwrap_or_default()) {
                    Some(true) => users.push(playing.user),
                    Some(false) => {}
                    None => is_unknown = true,
                }
            }
        }
        Ok(match (users.is_empty(), is_unknown) {
            (false, _) => WatchingNow::By(users),
            (true, true) => WatchingNow::Unknown,
            (true, false) => WatchingNow::Nobody,
        })
    }

    pub(super) fn log_failure(&self, error: &ServerError) {
        let server = self.server.label();
        tracing::warn!(server, error = telemetry::error_chain(error), "request to the media server failed");
    }
}

/// Returns whether somebody is watching this title, by the ids of what is played; `None` if no catalog has both.
fn is_same_title(title: &AskedTitle, playing: &PlayingTitle, ids: CatalogIds) -> Option<bool> {
    let is_of_title = ids.ids(playing.kind).any(|id| title.ids.ids(title.kind).any(|asked| asked == id));
    if is_of_title {
        return Some(playing.episode.is_none_or(|episode| title.part.contains(episode)));
    }
    // An id of the same catalog that differs shows that it is another title.
    let asked = &title.ids;
    let has_same_catalog = (asked.tmdb.is_some() && ids.tmdb.is_some())
        || (asked.tvdb.is_some() && ids.tvdb.is_some())
        || (asked.imdb.is_some() && ids.imdb.is_some());
    has_same_catalog.then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::http::HttpClient;
    use crate::media_servers::fake::FakeJellyfin;
    use crate::media_servers::jellyfin::Jellyfin;

    const START: Timestamp = Timestamp::constant(1_770_000_000, 0);
    const HEAT: CatalogIds = CatalogIds { tmdb: Some(949), tvdb: None, imdb: Some(113_277) };
    const BEAR: CatalogIds = CatalogIds { tmdb: Some(136_315), tvdb: Some(403_245), imdb: None };

    /// Jellyfin with a clock that the test sets.
    struct World {
        clock: Clock,
        jellyfin: FakeJellyfin,
        servers: MediaServers,
    }

    impl World {
        fn new() -> Self {
            let clock = Clock::stopped_at(START);
            let jellyfin = FakeJellyfin::new("a key with \"signs\"", clock.clone());
            let client = client_of(&jellyfin, &jellyfin.key());
            Self { clock, jellyfin, servers: MediaServers::new(vec![client]) }
        }

        fn advance(&self, by: SignedDuration) {
            self.clock.advance(by.unsigned_abs());
        }

        async fn playability(&self, title: &AskedTitle) -> Playability {
            self.servers.check_playability(title, self.clock.now()).await
        }

        async fn watching(&self, title: &AskedTitle) -> WatchingNow {
            self.servers.check_watching(title, self.clock.now()).await
        }
    }

    fn client_of(jellyfin: &FakeJellyfin, key: &secrecy::SecretString) -> Arc<dyn MediaServer> {
        let http = HttpClient::in_process(jellyfin.in_process());
        Arc::new(Jellyfin::new(http, "http://home.invalid/jellyfin/".parse().unwrap(), key))
    }

    fn movie(tmdb: i64) -> AskedTitle {
        let ids = CatalogIds::of_library(MediaKind::Movie, tmdb);
        AskedTitle { kind: MediaKind::Movie, ids, part: TitlePart::Whole }
    }

    fn show(part: TitlePart) -> AskedTitle {
        AskedTitle { kind: MediaKind::Series, ids: CatalogIds::of_library(MediaKind::Series, 403_245), part }
    }

    #[tokio::test]
    async fn movie_becomes_playable_once_a_scan_finds_it() {
        let world = World::new();
        let delay = SignedDuration::from_mins(3);
        world.jellyfin.household.add_movie(("Heat", 1995), HEAT, delay);
        assert_eq!(world.playability(&movie(949)).await, Playability::NotYet);
        world.advance(delay);
        assert_eq!(world.playability(&movie(949)).await, Playability::Playable);
        assert_eq!(world.playability(&movie(950)).await, Playability::NotYet);
    }

    #[tokio::test]
    async fn episode_is_playable_if_its_file_is_there() {
        let world = World::new();
        let household = &world.jellyfin.household;
        let bear = household.add_show(("The Bear", 2022), BEAR, SignedDuration::ZERO);
        household.add_episode(bear, (1, 1));
        household.add_missing_episode(bear, (1, 2));
        let episodes = |episodes: &[(u32, u32)]| show(TitlePart::Episodes(episodes.to_vec()));
        assert_eq!(world.playability(&episodes(&[(1, 1)])).await, Playability::Playable);
        assert_eq!(world.playability(&episodes(&[(1, 1), (1, 2)])).await, Playability::NotYet);
        assert_eq!(world.playability(&show(TitlePart::Seasons(vec![2]))).await, Playability::NotYet);
        household.add_episode(bear, (1, 2));
        assert_eq!(world.playability(&episodes(&[(1, 1), (1, 2)])).await, Playability::Playable);
    }

    #[tokio::test]
    async fn server_that_fails_or_refuses_the_key_leaves_the_answer_unknown() {
        let world = World::new();
        world.jellyfin.household.set_status(Some(503));
        assert_eq!(world.playability(&movie(949)).await, Playability::Unknown);
        assert_eq!(world.watching(&movie(949)).await, WatchingNow::Unknown);
        world.jellyfin.household.set_status(None);
        let wrong = client_of(&world.jellyfin, &secrecy::SecretString::from("wrong"));
        let wrong = MediaServers::new(vec![wrong]);
        assert_eq!(wrong.check_playability(&movie(949), START).await, Playability::Unknown);
    }

    #[tokio::test]
    async fn second_server_answers_for_one_that_is_down() {
        let world = World::new();
        let other = FakeJellyfin::new("other", world.clock.clone());
        let both = MediaServers::new(vec![
            client_of(&world.jellyfin, &world.jellyfin.key()),
            client_of(&other, &other.key()),
        ]);
        world.jellyfin.household.set_status(Some(500));
        assert_eq!(both.check_playability(&movie(949), START).await, Playability::Unknown);
        other.household.add_movie(("Heat", 1995), HEAT, SignedDuration::ZERO);
        world.advance(SignedDuration::from_mins(1));
        let now = world.clock.now();
        assert_eq!(both.check_playability(&movie(949), now).await, Playability::Playable);
    }

    #[tokio::test]
    async fn deleted_and_rematched_titles_are_noticed_by_the_next_refresh() {
        let world = World::new();
        let household = &world.jellyfin.household;
        let heat = household.add_movie(("Heat", 1995), HEAT, SignedDuration::ZERO);
        let alien = household.add_movie(("Alien", 1979), HEAT, SignedDuration::ZERO);
        assert_eq!(world.playability(&movie(949)).await, Playability::Playable);
        household.remove_title(heat);
        world.advance(SignedDuration::from_mins(1));
        household.match_title(alien, CatalogIds { tmdb: Some(348), ..CatalogIds::default() });
        assert_eq!(world.playability(&movie(949)).await, Playability::NotYet);
        assert_eq!(world.playability(&movie(348)).await, Playability::Playable);
    }

    #[tokio::test]
    async fn later_questions_read_only_what_changed() {
        let world = World::new();
        for number in 1..=450 {
            let ids = CatalogIds { tmdb: Some(number), ..CatalogIds::default() };
            world.jellyfin.household.add_movie(("Movie", 2000), ids, SignedDuration::ZERO);
        }
        assert_eq!(world.playability(&movie(450)).await, Playability::Playable);
        assert_eq!(world.jellyfin.household.requests().len(), 3);
        assert_eq!(world.playability(&movie(451)).await, Playability::NotYet);
        assert_eq!(world.jellyfin.household.requests().len(), 3);
        let mut counts = Vec::new();
        for _ in 0..2 {
            world.advance(SignedDuration::from_mins(20));
            assert_eq!(world.playability(&movie(451)).await, Playability::NotYet);
            counts.push(world.jellyfin.household.requests().len());
        }
        // The first refresh reads everything again that was saved shortly before the full pass.
        assert_eq!(counts, [7, 9]);
    }

    #[tokio::test]
    async fn person_who_watches_the_title_is_named() {
        let world = World::new();
        let household = &world.jellyfin.household;
        let (ann, bob) = (household.add_user("Ann"), household.add_user("Bob"));
        let heat = household.add_movie(("Heat", 1995), HEAT, SignedDuration::ZERO);
        let bear = household.add_show(("The Bear", 2022), BEAR, SignedDuration::ZERO);
        let episode = household.add_episode(bear, (2, 3));
        assert_eq!(world.watching(&movie(949)).await, WatchingNow::Nobody);
        household.start_playing(ann, heat);
        household.start_playing(bob, episode);
        let names = |watching: WatchingNow| match watching {
            WatchingNow::By(users) => users.into_iter().map(|user| user.name).collect(),
            other => vec![format!("{other:?}")],
        };
        assert_eq!(names(world.watching(&movie(949)).await), ["Ann"]);
        assert_eq!(names(world.watching(&movie(348)).await), ["Nobody"]);
        assert_eq!(names(world.watching(&show(TitlePart::Whole)).await), ["Bob"]);
        assert_eq!(names(world.watching(&show(TitlePart::Seasons(vec![2]))).await), ["Bob"]);
        assert_eq!(names(world.watching(&show(TitlePart::Seasons(vec![1]))).await), ["Nobody"]);
        household.stop_playing(bob);
        assert_eq!(names(world.watching(&show(TitlePart::Whole)).await), ["Nobody"]);
    }

    #[tokio::test]
    async fn playing_title_without_a_comparable_id_may_be_the_asked_one() {
        let world = World::new();
        let ann = world.jellyfin.household.add_user("Ann");
        let home_video =
            world.jellyfin.household.add_movie(("Heat", 1995), CatalogIds::default(), SignedDuration::ZERO);
        world.jellyfin.household.start_playing(ann, home_video);
        assert_eq!(world.watching(&movie(949)).await, WatchingNow::Unknown);
        assert_eq!(world.watching(&show(TitlePart::Whole)).await, WatchingNow::Nobody);
    }

    async fn missing_cause(world: &World, title: &AskedTitle, path: &str) -> MissingCause {
        let missing = MissingTitle { asked: title, name: "Heat", year: 1995, path: Some(path) };
        let found = world.servers.find_missing_cause(&missing, world.clock.now()).await;
        let (server, cause) = found.unwrap();
        assert_eq!(server, "Jellyfin");
        cause
    }

    #[tokio::test]
    async fn likely_cause_is_the_folder_the_match_the_scan_or_no_answer() {
        let world = World::new();
        let heat = movie(949);
        let in_library = "/data/movies/Heat (1995)";
        assert_eq!(missing_cause(&world, &heat, in_library).await, MissingCause::NotScanned);
        assert_eq!(missing_cause(&world, &heat, "/kids/Heat").await, MissingCause::FolderNotInLibrary);
        let other = CatalogIds { tmdb: Some(1), ..CatalogIds::default() };
        world.jellyfin.household.add_movie(("Heat", 1995), other, SignedDuration::ZERO);
        world.advance(SignedDuration::from_mins(1));
        assert_eq!(missing_cause(&world, &heat, in_library).await, MissingCause::WrongMatch);
        world.jellyfin.household.set_status(Some(502));
        world.advance(SignedDuration::from_mins(1));
        assert_eq!(missing_cause(&world, &heat, in_library).await, MissingCause::NoAnswer);
    }

    #[tokio::test(start_paused = true)]
    async fn many_titles_are_checked_with_one_reading_of_the_list() {
        let world = World::new();
        world.jellyfin.household.add_movie(("Heat", 1995), HEAT, SignedDuration::ZERO);
        let titles = [movie(949), movie(950)];
        let limit = Duration::from_secs(2);
        let checked = world.servers.check_titles_within(limit, &titles, START).await;
        assert_eq!(checked, [Playability::Playable, Playability::NotYet]);
        assert_eq!(world.jellyfin.household.requests().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn server_that_hangs_is_not_asked_again_at_once() {
        let world = World::new();
        world.jellyfin.household.set_silent(true);
        let (titles, limit) = ([movie(949)], Duration::from_secs(2));
        let servers = &world.servers;
        assert_eq!(servers.check_titles_within(limit, &titles, START).await, [Playability::Unknown]);
        tokio::time::sleep(Duration::from_secs(20)).await;
        let started = tokio::time::Instant::now();
        let later = START + SignedDuration::from_secs(22);
        assert_eq!(servers.check_titles_within(limit, &titles, later).await, [Playability::Unknown]);
        assert_eq!(started.elapsed(), Duration::ZERO);
    }

    #[tokio::test]
    async fn scan_names_the_folder_as_the_server_sees_it() {
        let world = World::new();
        world.servers.request_scan("/data/movies/Heat (1995)", START).await;
        world.servers.request_scan("/kids/Up (2009)", START).await;
        assert_eq!(world.jellyfin.household.scans(), ["/media/movies/Heat (1995)"]);
    }

    #[tokio::test]
    async fn scan_of_one_folder_is_requested_every_ten_minutes_at_most() {
        let world = World::new();
        for minutes in [0, 1, 9, 11] {
            let now = START + SignedDuration::from_mins(minutes);
            world.servers.request_scan("/data/movies/Heat (1995)", now).await;
        }
        assert_eq!(world.jellyfin.household.scans().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn viewer_on_one_server_counts_while_another_hangs() {
        let world = World::new();
        let other = FakeJellyfin::new("other", world.clock.clone());
        other.household.set_silent(true);
        let both = MediaServers::new(vec![
            client_of(&other, &other.key()),
            client_of(&world.jellyfin, &world.jellyfin.key()),
        ]);
        let household = &world.jellyfin.household;
        let heat = household.add_movie(("Heat", 1995), HEAT, SignedDuration::ZERO);
        assert_eq!(both.check_watching(&movie(949), START).await, WatchingNow::Unknown);
        let ann = household.add_user("Ann");
        household.start_playing(ann, heat);
        let watching = both.check_watching(&movie(949), START).await;
        assert!(matches!(watching, WatchingNow::By(users) if users.len() == 1));
    }
}
