//! Tests of the client against the simulated server: what each user has watched.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Jellyfin;
use crate::clock::Clock;
use crate::conversation::transcript::MediaKind;
use crate::http::HttpClient;
use crate::media_servers::fake::FakeJellyfin;
use crate::media_servers::{
    CatalogIds, LibraryFolder, MediaServer, PlayProgress, ServerError, ServerStatus, ServerTitle,
    ServerUserId, WatchState,
};

const START: Timestamp = Timestamp::constant(1_770_000_000, 0);

/// Household in which Ann has finished Heat, and Bob has stopped it at 41 percent.
struct World {
    clock: Clock,
    fake: FakeJellyfin,
    client: Jellyfin,
    ann: u64,
    bob: u64,
    heat: u64,
}

impl World {
    fn new() -> Self {
        let clock = Clock::stopped_at(START);
        let fake = FakeJellyfin::new("0123456789abcdef", clock.clone());
        let http = HttpClient::in_process(fake.in_process());
        let client = Jellyfin::new(http, "http://jellyfin.invalid".parse().unwrap(), &fake.key());
        let household = &fake.household;
        let (ann, bob) = (household.add_user("Ann"), household.add_user("Bob"));
        let ids = CatalogIds { tmdb: Some(949), ..CatalogIds::default() };
        let heat = household.add_movie(("Heat", 1995), ids, SignedDuration::ZERO);
        household.watch(ann, heat, 100);
        household.watch(bob, heat, 41);
        Self { clock, fake, client, ann, bob, heat }
    }

    /// Adds a show with ten episodes, and returns its id and those of its episodes.
    fn add_show(&self) -> (u64, Vec<u64>) {
        let ids = CatalogIds { tvdb: Some(403_245), ..CatalogIds::default() };
        let show = self.fake.household.add_show(("The Bear", 2022), ids, SignedDuration::ZERO);
        let episodes = (1..=10).map(|number| self.fake.household.add_episode(show, (1, number))).collect();
        (show, episodes)
    }

    fn pass_a_minute(&self) {
        self.clock.advance(Duration::from_mins(1));
    }

    async fn title(&self, id: u64) -> ServerTitle {
        let titles = self.client.fetch_titles(0, None).await.unwrap().titles;
        titles.into_iter().find(|title| title.item.as_str() == format!("{id:032x}")).unwrap()
    }

    async fn state(&self, user: u64, title: u64) -> WatchState {
        let title = self.title(title).await;
        self.client.fetch_watch_state(&user_id(user), &title).await.unwrap()
    }

    /// Returns the state of a title in the list of all states of a user.
    async fn listed_state(&self, user: u64, title: u64) -> WatchState {
        let title = self.title(title).await;
        let states = self.client.fetch_watch_states(&user_id(user)).await.unwrap();
        states.known.get(&title.item).copied().unwrap_or(states.others)
    }
}

fn user_id(id: u64) -> ServerUserId {
    ServerUserId::new(&format!("{id:032x}"))
}

#[tokio::test]
async fn finished_and_half_seen_movies_are_told_apart_by_person() {
    let world = World::new();
    let carol = world.fake.household.add_user("Carol");
    let expected = [
        (world.ann, WatchState::Finished { at: Some(START) }),
        (world.bob, WatchState::Started { percent: Some(41), at: Some(START) }),
        (carol, WatchState::Never),
    ];
    for (user, state) in expected {
        assert_eq!(world.state(user, world.heat).await, state);
        assert_eq!(world.listed_state(user, world.heat).await, state);
    }
}

#[tokio::test]
async fn show_is_finished_with_its_last_episode() {
    let world = World::new();
    let (show, episodes) = world.add_show();
    assert_eq!(world.state(world.ann, show).await, WatchState::Never);
    world.fake.household.watch(world.ann, episodes[0], 30);
    let started = WatchState::Started { percent: Some(0), at: Some(START) };
    assert_eq!(world.state(world.ann, show).await, started);
    let listed = WatchState::Started { percent: None, at: Some(START) };
    assert_eq!(world.listed_state(world.ann, show).await, listed);
    for episode in &episodes[..9] {
        world.fake.household.watch(world.ann, *episode, 100);
    }
    let most = WatchState::Started { percent: Some(90), at: Some(START) };
    assert_eq!(world.state(world.ann, show).await, most);
    world.fake.household.watch(world.ann, episodes[9], 100);
    assert_eq!(world.state(world.ann, show).await, WatchState::Finished { at: Some(START) });
    assert_eq!(world.listed_state(world.ann, show).await, WatchState::Finished { at: None });
    assert_eq!(world.state(world.bob, show).await, WatchState::Never);
}

#[tokio::test]
async fn recent_plays_list_each_title_once_with_its_newest_play() {
    let world = World::new();
    let (_, episodes) = world.add_show();
    world.pass_a_minute();
    world.fake.household.watch(world.bob, episodes[0], 100);
    world.pass_a_minute();
    world.fake.household.watch(world.bob, episodes[1], 20);
    let plays = world.client.fetch_recent_plays(&user_id(world.bob), 5).await.unwrap();
    let lines: Vec<_> = plays.iter().map(|play| (play.title.as_str(), play.episode, play.progress)).collect();
    let expected = [
        ("The Bear", Some((1, 2)), PlayProgress::StoppedAt { percent: 20 }),
        ("Heat", None, PlayProgress::StoppedAt { percent: 41 }),
    ];
    assert_eq!(lines, expected);
    let kinds: Vec<MediaKind> = plays.iter().map(|play| play.kind).collect();
    assert_eq!(kinds, [MediaKind::Series, MediaKind::Movie]);
    assert_eq!(world.client.fetch_recent_plays(&user_id(world.bob), 1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn server_states_its_version_people_and_folders() {
    let world = World::new();
    let status = ServerStatus { name: "Home".into(), version: "12.0.0".into() };
    assert_eq!(world.client.fetch_status().await.unwrap(), status);
    let users = world.client.fetch_users().await.unwrap();
    assert_eq!(users.iter().map(|user| user.name.as_str()).collect::<Vec<_>>(), ["Ann", "Bob"]);
    let folder = |library: &str, path: &str| LibraryFolder { library: library.into(), path: path.into() };
    let folders = [folder("Movies", "/media/movies"), folder("Shows", "/media/shows")];
    assert_eq!(world.client.fetch_folders().await.unwrap(), folders);
    world.client.request_scan("/media/movies/Heat (1995)").await.unwrap();
    assert_eq!(world.fake.household.scans(), ["/media/movies/Heat (1995)"]);
}

#[tokio::test]
async fn errors_of_the_server_are_classified_by_what_helps() {
    let world = World::new();
    let error = async |status| {
        world.fake.household.set_status(Some(status));
        world.client.fetch_status().await.unwrap_err()
    };
    assert!(matches!(error(401).await, ServerError::Unauthorized));
    assert!(matches!(error(302).await, ServerError::WrongUrl(_)));
    assert!(matches!(error(404).await, ServerError::NotFound));
    assert!(matches!(error(400).await, ServerError::Refused(400)));
    assert!(matches!(error(503).await, ServerError::Unavailable(503)));
}
