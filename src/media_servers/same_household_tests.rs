//! Tests that two kinds of servers give the same answers about the same household.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::fake::{FakeHousehold, FakeJellyfin, FakePlex};
use super::jellyfin::Jellyfin;
use super::playability::{AskedTitle, MediaServers, TitlePart, WatchingNow};
use super::plex::Plex;
use super::{CatalogIds, MediaServer, PlayProgress};
use crate::clock::Clock;
use crate::conversation::notifications::readiness::Playability;
use crate::conversation::transcript::MediaKind;
use crate::conversation::viewer_accounts::{MediaServerKind, ViewerAccount};
use crate::http::HttpClient;

const START: Timestamp = Timestamp::constant(1_770_000_000, 0);
const HEAT: CatalogIds = CatalogIds { tmdb: Some(949), tvdb: None, imdb: Some(113_277) };
const BEAR: CatalogIds = CatalogIds { tmdb: Some(136_315), tvdb: Some(403_245), imdb: None };

/// Household with a Jellyfin and a Plex, each asked on its own.
struct World {
    clock: Clock,
    household: FakeHousehold,
    jellyfin: MediaServers,
    plex: MediaServers,
}

impl World {
    fn new() -> Self {
        let clock = Clock::stopped_at(START);
        let household = FakeHousehold::new(clock.clone());
        let jellyfin = FakeJellyfin::with_household("key", household.clone());
        let plex = FakePlex::with_household("token", household.clone());
        let url = || "http://home.invalid".parse().unwrap();
        let http = HttpClient::in_process;
        let jellyfin: Arc<dyn MediaServer> =
            Arc::new(Jellyfin::new(http(jellyfin.in_process()), url(), &jellyfin.key()));
        let plex: Arc<dyn MediaServer> = Arc::new(Plex::new(http(plex.in_process()), url(), &plex.token()));
        let (jellyfin, plex) = (MediaServers::new(vec![jellyfin]), MediaServers::new(vec![plex]));
        Self { clock, household, jellyfin, plex }
    }

    fn advance(&self, by: SignedDuration) {
        self.clock.advance(by.unsigned_abs());
    }

    /// Checks that both servers give this answer to whether a title can be played.
    async fn check_playability(&self, title: &AskedTitle, expected: Playability) {
        let now = self.clock.now();
        let answers = [
            self.jellyfin.check_playability(title, now).await,
            self.plex.check_playability(title, now).await,
        ];
        assert_eq!(answers, [expected; 2], "{title:?}");
    }

    /// Checks that both servers name these users as those who are watching a title.
    async fn check_watching(&self, title: &AskedTitle, expected: &[&str]) {
        for servers in [&self.jellyfin, &self.plex] {
            let names: Vec<String> = match servers.check_watching(title, self.clock.now()).await {
                WatchingNow::By(users) => users.into_iter().map(|user| user.name).collect(),
                WatchingNow::Nobody => Vec::new(),
                WatchingNow::Unknown => vec!["unknown".into()],
            };
            assert_eq!(names, expected, "{:?}", servers.labels());
        }
    }
}

/// Returns the accounts of a user at Jellyfin and at Plex.
fn accounts_of(world: &World, user: u64) -> [ViewerAccount; 2] {
    let account = |server, id| ViewerAccount { server, id, name: "Ann".into() };
    let plex = FakePlex::with_household("token", world.household.clone());
    [
        account(MediaServerKind::Jellyfin, FakeJellyfin::user_id(user)),
        account(MediaServerKind::Plex, plex.account_id(user)),
    ]
}

fn movie(tmdb: i64) -> AskedTitle {
    let ids = CatalogIds::of_library(MediaKind::Movie, tmdb);
    AskedTitle { kind: MediaKind::Movie, ids, part: TitlePart::Whole }
}

fn show(part: TitlePart) -> AskedTitle {
    AskedTitle { kind: MediaKind::Series, ids: CatalogIds::of_library(MediaKind::Series, 403_245), part }
}

#[tokio::test]
async fn both_servers_agree_on_what_can_be_played() {
    let world = World::new();
    let delay = SignedDuration::from_mins(3);
    world.household.add_movie(("Heat", 1995), HEAT, delay);
    let bear = world.household.add_show(("The Bear", 2022), BEAR, SignedDuration::ZERO);
    world.household.add_episode(bear, (1, 1));
    world.household.add_missing_episode(bear, (1, 2));
    let episodes = |episodes: &[(u32, u32)]| show(TitlePart::Episodes(episodes.to_vec()));
    world.check_playability(&movie(949), Playability::NotYet).await;
    world.check_playability(&episodes(&[(1, 1)]), Playability::Playable).await;
    world.check_playability(&episodes(&[(1, 1), (1, 2)]), Playability::NotYet).await;
    world.check_playability(&show(TitlePart::Seasons(vec![2])), Playability::NotYet).await;
    world.advance(delay);
    world.household.add_episode(bear, (1, 2));
    world.check_playability(&movie(949), Playability::Playable).await;
    world.check_playability(&movie(950), Playability::NotYet).await;
    world.check_playability(&episodes(&[(1, 1), (1, 2)]), Playability::Playable).await;
}

#[tokio::test]
async fn both_servers_notice_deleted_and_rematched_titles() {
    let world = World::new();
    let heat = world.household.add_movie(("Heat", 1995), HEAT, SignedDuration::ZERO);
    let alien = world.household.add_movie(("Alien", 1979), HEAT, SignedDuration::ZERO);
    world.check_playability(&movie(949), Playability::Playable).await;
    world.household.remove_title(heat);
    world.advance(SignedDuration::from_mins(1));
    world.household.match_title(alien, CatalogIds { tmdb: Some(348), ..CatalogIds::default() });
    world.check_playability(&movie(949), Playability::NotYet).await;
    world.check_playability(&movie(348), Playability::Playable).await;
}

#[tokio::test]
async fn both_servers_leave_the_answer_unknown_while_they_fail() {
    let world = World::new();
    world.household.set_status(Some(503));
    world.check_playability(&movie(949), Playability::Unknown).await;
    world.check_watching(&movie(949), &["unknown"]).await;
}

#[tokio::test]
async fn both_servers_name_the_same_viewers() {
    let world = World::new();
    let (ann, bob) = (world.household.add_user("Ann"), world.household.add_user("Bob"));
    let heat = world.household.add_movie(("Heat", 1995), HEAT, SignedDuration::ZERO);
    let bear = world.household.add_show(("The Bear", 2022), BEAR, SignedDuration::ZERO);
    let episode = world.household.add_episode(bear, (2, 3));
    world.check_watching(&movie(949), &[]).await;
    world.household.start_playing(ann, heat);
    world.household.start_playing(bob, episode);
    world.check_watching(&movie(949), &["Ann"]).await;
    world.check_watching(&movie(348), &[]).await;
    world.check_watching(&show(TitlePart::Seasons(vec![2])), &["Bob"]).await;
    world.check_watching(&show(TitlePart::Seasons(vec![1])), &[]).await;
}

#[tokio::test]
async fn both_servers_list_the_same_finished_episodes() {
    let world = World::new();
    let (ann, bob) = (world.household.add_user("Ann"), world.household.add_user("Bob"));
    let bear = world.household.add_show(("The Bear", 2022), BEAR, SignedDuration::ZERO);
    let dark = world.household.add_show(("Dark", 2017), CatalogIds::default(), SignedDuration::ZERO);
    let episodes = [(1, 1), (1, 2), (2, 1)].map(|episode| world.household.add_episode(bear, episode));
    world.household.watch(ann, episodes[0], 100);
    world.household.watch(ann, episodes[2], 100);
    world.household.watch(ann, episodes[1], 40);
    world.household.watch(bob, episodes[1], 100);
    world.household.watch(ann, world.household.add_episode(dark, (1, 3)), 100);
    let accounts = accounts_of(&world, ann);
    for (servers, account) in [&world.jellyfin, &world.plex].into_iter().zip(&accounts) {
        let plays = servers.fetch_episode_plays(std::slice::from_ref(account), &BEAR, START).await.unwrap();
        let finished = plays.iter().filter(|play| play.progress == PlayProgress::Finished);
        let mut finished: Vec<(u32, u32)> =
            finished.map(|play| (play.file.season, play.file.first)).collect();
        finished.sort_unstable();
        assert_eq!(finished, [(1, 1), (2, 1)], "{:?}", servers.labels());
        assert!(plays.iter().all(|play| play.at == Some(START)));
        assert_eq!(servers.fetch_episode_plays(&accounts, &BEAR, START).await, None, "one is not there");
    }
    world.household.set_status(Some(503));
    let plays = world.jellyfin.fetch_episode_plays(&accounts[..1], &BEAR, START).await;
    assert_eq!(plays, None);
}
