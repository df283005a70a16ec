//! Tests of the client against the simulated server: titles, and what its history shows of each user.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;

use super::{Plex, is_below};
use crate::clock::Clock;
use crate::conversation::transcript::MediaKind;
use crate::http::HttpClient;
use crate::media_servers::fake::FakePlex;
use crate::media_servers::{
    CatalogIds, ItemId, LibraryFolder, MediaServer, PAGE_TITLES, PlayProgress, PlayableEpisode, ServerError,
    ServerStatus, ServerTitle, ServerUserId, WatchState,
};

const START: Timestamp = Timestamp::constant(1_770_000_000, 0);
const HEAT: CatalogIds = CatalogIds { tmdb: Some(949), tvdb: None, imdb: Some(113_277) };
const BEAR: CatalogIds = CatalogIds { tmdb: None, tvdb: Some(403_245), imdb: None };

/// Household in which Ann, who owns the server, has finished Heat, and Bob has stopped it at 41 percent.
struct World {
    clock: Clock,
    fake: FakePlex,
    client: Plex,
    ann: u64,
    bob: u64,
    heat: u64,
}

impl World {
    fn new() -> Self {
        let clock = Clock::stopped_at(START);
        let fake = FakePlex::new("owner-token", clock.clone());
        let client = client_of(&fake, &fake.token());
        let household = &fake.household;
        let (ann, bob) = (household.add_user("Ann"), household.add_user("Bob"));
        let heat = household.add_movie(("Heat", 1995), HEAT, SignedDuration::ZERO);
        household.watch(ann, heat, 100);
        household.watch(bob, heat, 41);
        Self { clock, fake, client, ann, bob, heat }
    }

    /// Adds a show with ten episodes, and returns its id and those of its episodes.
    fn add_show(&self) -> (u64, Vec<u64>) {
        let show = self.fake.household.add_show(("The Bear", 2022), BEAR, SignedDuration::ZERO);
        let episodes = (1..=10).map(|number| self.fake.household.add_episode(show, (1, number))).collect();
        (show, episodes)
    }

    fn pass_a_minute(&self) {
        self.clock.advance(Duration::from_mins(1));
    }

    fn user(&self, user: u64) -> ServerUserId {
        ServerUserId::new(&self.fake.account_id(user))
    }

    async fn title(&self, id: u64) -> ServerTitle {
        let titles = self.client.fetch_titles(0, None).await.unwrap().titles;
        titles.into_iter().find(|title| title.item == item(id)).unwrap()
    }

    async fn state(&self, user: u64, title: u64) -> WatchState {
        let title = self.title(title).await;
        self.client.fetch_watch_state(&self.user(user), &title).await.unwrap()
    }

    /// Returns the state of a title in the list of all states of a user.
    async fn listed_state(&self, user: u64, title: u64) -> WatchState {
        let title = self.title(title).await;
        let states = self.client.fetch_watch_states(&self.user(user)).await.unwrap();
        states.known.get(&title.item).copied().unwrap_or(states.others)
    }
}

fn client_of(fake: &FakePlex, token: &SecretString) -> Plex {
    let http = HttpClient::in_process(fake.in_process());
    Plex::new(http, "http://plex.invalid:32400".parse().unwrap(), token)
}

fn item(id: u64) -> ItemId {
    ItemId::new(&id.to_string())
}

#[tokio::test]
async fn history_shows_finished_movies_and_nothing_of_other_plays() {
    let world = World::new();
    let expected =
        [(world.ann, WatchState::Finished { at: Some(START) }), (world.bob, WatchState::NoFinishedPlay)];
    for (user, state) in expected {
        assert_eq!(world.state(user, world.heat).await, state);
        assert_eq!(world.listed_state(user, world.heat).await, state);
    }
}

#[tokio::test]
async fn show_is_finished_with_the_last_episode_in_the_history() {
    let world = World::new();
    let (show, episodes) = world.add_show();
    let household = &world.fake.household;
    household.watch(world.bob, episodes[0], 30);
    assert_eq!(world.state(world.bob, show).await, WatchState::NoFinishedPlay);
    for episode in &episodes[..9] {
        household.watch(world.bob, *episode, 100);
    }
    // The second play of an episode does not count.
    household.watch(world.bob, episodes[0], 95);
    let most = WatchState::Started { percent: Some(90), at: Some(START) };
    assert_eq!(world.state(world.bob, show).await, most);
    assert_eq!(world.listed_state(world.bob, show).await, most);
    household.watch(world.bob, episodes[9], 100);
    let finished = WatchState::Finished { at: Some(START) };
    assert_eq!(world.state(world.bob, show).await, finished);
    assert_eq!(world.listed_state(world.bob, show).await, finished);
    assert_eq!(world.state(world.ann, show).await, WatchState::NoFinishedPlay);
    household.add_episode(show, (2, 1));
    assert_eq!(world.listed_state(world.bob, show).await, most);
}

#[tokio::test]
async fn plays_of_deleted_episodes_do_not_finish_a_show() {
    let world = World::new();
    let household = &world.fake.household;
    let (old, episodes) = world.add_show();
    for episode in &episodes {
        household.watch(world.bob, *episode, 100);
    }
    household.remove_episodes(old);
    household.add_episode(old, (1, 9));
    household.add_episode(old, (2, 1));
    let half = WatchState::Started { percent: Some(50), at: Some(START) };
    assert_eq!(world.state(world.bob, old).await, half);
    assert_eq!(world.listed_state(world.bob, old).await, half);
}

#[tokio::test]
async fn movie_that_was_added_again_has_no_known_play() {
    let world = World::new();
    world.fake.household.remove_title(world.heat);
    let again = world.fake.household.add_movie(("Heat", 1995), HEAT, SignedDuration::ZERO);
    assert_eq!(world.state(world.ann, again).await, WatchState::NoFinishedPlay);
    assert_eq!(world.listed_state(world.ann, again).await, WatchState::NoFinishedPlay);
}

#[tokio::test]
async fn recent_plays_list_each_title_once_with_its_newest_play() {
    let world = World::new();
    let (show, episodes) = world.add_show();
    for episode in &episodes[..2] {
        world.pass_a_minute();
        world.fake.household.watch(world.ann, *episode, 100);
    }
    let plays = world.client.fetch_recent_plays(&world.user(world.ann), 5).await.unwrap();
    let lines: Vec<_> = plays.iter().map(|play| (play.title.as_str(), play.episode, &play.item)).collect();
    let expected = [("The Bear", Some((1, 2)), &item(show)), ("Heat", None, &item(world.heat))];
    assert_eq!(lines, expected);
    assert!(plays.iter().all(|play| play.progress == PlayProgress::Finished));
    assert_eq!(world.client.fetch_recent_plays(&world.user(world.ann), 1).await.unwrap().len(), 1);
    assert_eq!(world.client.fetch_recent_plays(&world.user(world.bob), 5).await.unwrap(), []);
}

#[tokio::test]
async fn long_history_is_read_in_pages() {
    let world = World::new();
    for _ in 0..1_100 {
        world.fake.household.watch(world.bob, world.heat, 100);
    }
    world.pass_a_minute();
    world.fake.household.watch(world.bob, world.heat, 100);
    let before = world.fake.household.requests().len();
    let states = world.client.fetch_watch_states(&world.user(world.bob)).await.unwrap();
    let newest = WatchState::Finished { at: Some(world.clock.now()) };
    assert_eq!(states.known.get(&item(world.heat)), Some(&newest));
    assert_eq!(world.fake.household.requests().len() - before, 3);
}

#[tokio::test]
async fn titles_of_several_libraries_are_one_list_of_pages() {
    let world = World::new();
    let folders = [("Movies", "/media/movies"), ("Kids", "/media/kids"), ("Shows", "/media/shows")];
    world.fake.household.set_folders(&folders);
    for number in 1..=300 {
        let ids = CatalogIds { tmdb: Some(number), ..CatalogIds::default() };
        world.fake.household.add_movie(("Movie", 2000), ids, SignedDuration::ZERO);
    }
    for _ in 0..150 {
        world.add_show();
    }
    let (mut items, mut sizes) = (Vec::new(), Vec::new());
    for page in 0..3 {
        let page = world.client.fetch_titles(page * PAGE_TITLES, None).await.unwrap();
        assert_eq!(page.total, 451);
        sizes.push(page.titles.len());
        items.extend(page.titles.into_iter().map(|title| title.item));
    }
    assert_eq!(sizes, [200, 200, 51]);
    // The libraries, the sizes of three, and a request for each part of a page that is in one library.
    assert_eq!(world.fake.household.requests().len(), 1 + 3 + 5);
    items.sort();
    items.dedup();
    assert_eq!(items.len(), 451);
    assert_eq!(world.client.fetch_title_count().await.unwrap(), 451);
}

#[tokio::test]
async fn only_titles_that_changed_since_a_time_are_listed() {
    let world = World::new();
    world.pass_a_minute();
    let (show, _) = world.add_show();
    let changed = world.client.fetch_titles(0, Some(world.clock.now())).await.unwrap();
    assert_eq!(changed.total, 1);
    assert_eq!(changed.titles[0].item, item(show));
    assert_eq!(world.client.fetch_titles(0, Some(START)).await.unwrap().total, 2);
}

#[tokio::test]
async fn catalog_ids_of_old_and_new_agents_are_read() {
    let world = World::new();
    let (show, _) = world.add_show();
    let ids = async |id| world.title(id).await.ids;
    assert_eq!((ids(world.heat).await, ids(show).await), (HEAT, BEAR));
    world.fake.household.use_old_agents();
    let imdb = CatalogIds { imdb: HEAT.imdb, ..CatalogIds::default() };
    assert_eq!((ids(world.heat).await, ids(show).await), (imdb, BEAR));
}

#[tokio::test]
async fn episodes_with_files_are_playable() {
    let world = World::new();
    let (show, _) = world.add_show();
    world.fake.household.add_missing_episode(show, (1, 11));
    let episodes = world.client.fetch_episodes(&item(show)).await.unwrap();
    assert_eq!(episodes.len(), 10);
    assert_eq!(episodes[9], PlayableEpisode { season: 1, first: 10, last: 10 });
    assert_eq!(world.client.fetch_episodes(&item(99_999)).await.unwrap(), []);
}

#[tokio::test]
async fn sessions_name_the_movie_or_show_and_its_viewer() {
    let world = World::new();
    let (show, episodes) = world.add_show();
    world.fake.household.start_playing(world.ann, world.heat);
    world.fake.household.start_playing(world.bob, episodes[2]);
    let playing = world.client.fetch_playing().await.unwrap();
    let lines: Vec<_> = playing
        .iter()
        .map(|playing| (playing.user.name.as_str(), playing.kind, &playing.item, playing.episode))
        .collect();
    let expected = [
        ("Ann", MediaKind::Movie, &item(world.heat), None),
        ("Bob", MediaKind::Series, &item(show), Some((1, 3))),
    ];
    assert_eq!(lines, expected);
    assert_eq!(playing[0].user.id, world.user(world.ann));
    assert_eq!(world.user(world.ann), ServerUserId::new("1"));
}

#[tokio::test]
async fn server_states_its_version_people_and_folders() {
    let world = World::new();
    let status = ServerStatus { name: "Home".into(), version: "1.41.0.0-aaaaaaaaa".into() };
    assert_eq!(world.client.fetch_status().await.unwrap(), status);
    let users = world.client.fetch_users().await.unwrap();
    let users: Vec<_> = users.iter().map(|user| (user.id.as_str(), user.name.as_str())).collect();
    assert_eq!(users, [("1", "Ann"), (world.user(world.bob).as_str(), "Bob")]);
    let folder = |library: &str, path: &str| LibraryFolder { library: library.into(), path: path.into() };
    let folders =
        [folder("Movies", "/media/movies"), folder("Shows", "/media/shows"), folder("Music", "/media/music")];
    assert_eq!(world.client.fetch_folders().await.unwrap(), folders);
}

#[tokio::test]
async fn scan_is_requested_from_the_library_with_the_folder() {
    let world = World::new();
    world.client.request_scan("/media/movies/Heat (1995)").await.unwrap();
    world.client.request_scan("/elsewhere/movies/Heat (1995)").await.unwrap();
    assert_eq!(world.fake.household.scans(), ["/media/movies/Heat (1995)"]);
    let requests = world.fake.household.requests();
    let is_scan = |request: &&String| request.ends_with("/refresh");
    let scans: Vec<&String> = requests.iter().filter(is_scan).collect();
    assert_eq!(scans, ["GET /library/sections/1/refresh"]);
}

#[test]
fn folder_contains_itself_and_what_is_below_it() {
    assert!(is_below("/media/movies", "/media/movies/"));
    assert!(is_below("/media/movies/Heat", "/media/movies"));
    assert!(is_below(r"D:\Movies\Heat", r"D:\Movies"));
    assert!(!is_below("/media/movies 4k/Heat", "/media/movies"));
    assert!(!is_below("/media/movies", ""));
}

#[tokio::test]
async fn errors_of_the_server_are_classified_by_what_helps() {
    let world = World::new();
    let wrong = client_of(&world.fake, &SecretString::from("wrong"));
    assert!(matches!(wrong.fetch_status().await, Err(ServerError::Unauthorized)));
    let unusable = client_of(&world.fake, &SecretString::from("line\nbreak"));
    assert!(matches!(unusable.fetch_status().await, Err(ServerError::Unauthorized)));
    let error = async |status| {
        world.fake.household.set_status(Some(status));
        world.client.fetch_status().await.unwrap_err()
    };
    assert!(matches!(error(401).await, ServerError::Unauthorized));
    assert!(matches!(error(302).await, ServerError::WrongUrl(_)));
    assert!(matches!(error(404).await, ServerError::NotFound));
    assert!(matches!(error(503).await, ServerError::Unavailable(503)));
    let scan = world.client.request_scan("/media/movies/Heat (1995)").await;
    assert!(matches!(scan, Err(ServerError::Unavailable(503))));
}
