//! Tests of the client with a simulated Tautulli: users, and what each of them has watched.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Plex;
use crate::clock::Clock;
use crate::http::HttpClient;
use crate::media_servers::fake::{FakeHousehold, FakePlex, FakeTautulli};
use crate::media_servers::tautulli::Tautulli;
use crate::media_servers::{
    CatalogIds, ItemId, MediaServer, PlayProgress, ServerError, ServerTitle, ServerUserId, WatchState,
};

const START: Timestamp = Timestamp::constant(1_770_000_000, 0);
const HEAT: CatalogIds = CatalogIds { tmdb: Some(949), tvdb: None, imdb: Some(113_277) };
const BEAR: CatalogIds = CatalogIds { tmdb: None, tvdb: Some(403_245), imdb: None };
const FINISHED: WatchState = WatchState::Finished { at: Some(START) };

/// Household in which Ann, who owns the server, has finished Heat, and Bob has stopped it at 41 percent.
struct World {
    clock: Clock,
    household: FakeHousehold,
    tautulli: FakeTautulli,
    client: Plex,
    ann: u64,
    bob: u64,
    heat: u64,
}

impl World {
    fn new() -> Self {
        let clock = Clock::stopped_at(START);
        let plex = FakePlex::new("owner-token", clock.clone());
        let household = plex.household.clone();
        let tautulli = FakeTautulli::with_household("api key & more", household.clone());
        let url = |text: &str| text.parse().unwrap();
        let statistics = Tautulli::new(
            HttpClient::in_process(tautulli.in_process()),
            url("http://tautulli.invalid"),
            &tautulli.key(),
        );
        let http = HttpClient::in_process(plex.in_process());
        let client = Plex::new(http, url("http://plex.invalid"), &plex.token()).with_tautulli(statistics);
        let (ann, bob) = (household.add_user("Ann"), household.add_user("Bob"));
        let heat = household.add_movie(("Heat", 1995), HEAT, SignedDuration::ZERO);
        household.watch(ann, heat, 100);
        household.watch(bob, heat, 41);
        Self { clock, household, tautulli, client, ann, bob, heat }
    }

    /// Adds a show with four episodes, and returns its id and those of its episodes.
    fn add_show(&self) -> (u64, Vec<u64>) {
        let show = self.household.add_show(("The Bear", 2022), BEAR, SignedDuration::ZERO);
        let episodes = (1..=4).map(|number| self.household.add_episode(show, (1, number))).collect();
        (show, episodes)
    }

    fn user(&self, user: u64) -> ServerUserId {
        ServerUserId::new(&self.tautulli.user_id(user))
    }

    async fn title(&self, id: u64) -> ServerTitle {
        let titles = self.client.fetch_titles(0, None).await.unwrap().titles;
        titles.into_iter().find(|title| title.item == item(id)).unwrap()
    }

    /// Checks the state of a title, asked alone and in the list of all states of a user.
    async fn check_state(&self, user: &ServerUserId, title: u64, expected: WatchState) {
        let title = self.title(title).await;
        assert_eq!(self.client.fetch_watch_state(user, &title).await.unwrap(), expected);
        let states = self.client.fetch_watch_states(user).await.unwrap();
        assert_eq!(states.known.get(&title.item).copied().unwrap_or(states.others), expected);
    }
}

fn item(id: u64) -> ItemId {
    ItemId::new(&id.to_string())
}

#[tokio::test]
async fn finished_half_seen_and_new_movies_are_told_apart() {
    let world = World::new();
    let carol = world.household.add_user("Carol");
    world.household.watch(carol, world.heat, 4);
    world.check_state(&world.user(world.ann), world.heat, FINISHED).await;
    let stopped = WatchState::Started { percent: Some(41), at: Some(START) };
    world.check_state(&world.user(world.bob), world.heat, stopped).await;
    world.check_state(&world.user(carol), world.heat, WatchState::Never).await;
}

#[tokio::test]
async fn started_and_finished_episodes_make_the_state_of_a_show() {
    let world = World::new();
    let (show, episodes) = world.add_show();
    let bob = world.user(world.bob);
    world.check_state(&bob, show, WatchState::Never).await;
    world.household.watch(world.bob, episodes[0], 30);
    world.check_state(&bob, show, WatchState::Started { percent: Some(0), at: Some(START) }).await;
    for episode in &episodes[..3] {
        world.household.watch(world.bob, *episode, 86);
    }
    world.check_state(&bob, show, WatchState::Started { percent: Some(75), at: Some(START) }).await;
    world.household.watch(world.bob, episodes[3], 100);
    world.check_state(&bob, show, FINISHED).await;
}

#[tokio::test]
async fn users_without_records_have_unknown_states() {
    let world = World::new();
    world.household.set_recorded(world.bob, false);
    world.check_state(&world.user(world.bob), world.heat, WatchState::Unknown).await;
    let stranger = ServerUserId::new("4711");
    world.check_state(&stranger, world.heat, WatchState::Unknown).await;
    let plays = world.client.fetch_recent_plays(&stranger, 5).await;
    assert!(matches!(plays, Err(ServerError::NotFound)));
}

#[tokio::test]
async fn failure_of_tautulli_is_an_error_and_not_never() {
    let world = World::new();
    let (user, heat) = (world.user(world.bob), world.title(world.heat).await);
    for status in [500, 401] {
        world.household.set_recorder_status(Some(status));
        assert!(world.client.fetch_watch_state(&user, &heat).await.is_err());
        assert!(world.client.fetch_watch_states(&user).await.is_err());
        assert!(world.client.fetch_recent_plays(&user, 5).await.is_err());
        assert!(world.client.fetch_users().await.is_err());
    }
}

#[tokio::test]
async fn movie_that_was_added_again_is_still_finished() {
    let world = World::new();
    world.household.remove_title(world.heat);
    let again = world.household.add_movie(("Heat", 1995), HEAT, SignedDuration::ZERO);
    let remake = CatalogIds { tmdb: Some(950), ..CatalogIds::default() };
    let remake = world.household.add_movie(("Heat", 2030), remake, SignedDuration::ZERO);
    world.check_state(&world.user(world.ann), again, FINISHED).await;
    world.check_state(&world.user(world.ann), remake, WatchState::Never).await;
}

#[tokio::test]
async fn show_that_was_added_again_is_unknown_to_its_viewers() {
    let world = World::new();
    let (old, episodes) = world.add_show();
    world.household.watch(world.bob, episodes[0], 100);
    world.household.remove_title(old);
    let (again, _) = world.add_show();
    world.check_state(&world.user(world.bob), again, WatchState::Unknown).await;
    world.check_state(&world.user(world.ann), again, WatchState::Never).await;
}

#[tokio::test]
async fn owner_is_found_by_the_id_of_either_program() {
    let world = World::new();
    let ann = world.user(world.ann);
    world.check_state(&ServerUserId::new("1"), world.heat, FINISHED).await;
    world.household.start_playing(world.ann, world.heat);
    let playing = world.client.fetch_playing().await.unwrap();
    assert_eq!(playing[0].user.id, ann);
    let users = world.client.fetch_users().await.unwrap();
    let users: Vec<_> = users.iter().map(|user| (&user.id, user.name.as_str())).collect();
    assert_eq!(users, [(&ann, "Ann"), (&world.user(world.bob), "Bob")]);
}

#[tokio::test]
async fn sessions_are_known_while_tautulli_fails() {
    let world = World::new();
    world.household.start_playing(world.ann, world.heat);
    world.household.set_recorder_status(Some(500));
    let playing = world.client.fetch_playing().await.unwrap();
    assert_eq!((playing[0].user.id.as_str(), playing[0].user.name.as_str()), ("1", "Ann"));
}

#[tokio::test]
async fn recent_plays_include_those_that_were_stopped() {
    let world = World::new();
    let (_, episodes) = world.add_show();
    world.clock.advance(Duration::from_mins(1));
    world.household.watch(world.bob, episodes[1], 20);
    let plays = world.client.fetch_recent_plays(&world.user(world.bob), 5).await.unwrap();
    let lines: Vec<_> = plays.iter().map(|play| (play.title.as_str(), play.episode, play.progress)).collect();
    let expected = [
        ("The Bear", Some((1, 2)), PlayProgress::StoppedAt { percent: 20 }),
        ("Heat", None, PlayProgress::StoppedAt { percent: 41 }),
    ];
    assert_eq!(lines, expected);
}
