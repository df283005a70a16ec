//! Tests of answers about watching with Plex and Tautulli: in a room, and while Tautulli alone fails.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::Viewers;
use super::recently_watched::RecentlyWatched;
use crate::arr::fake::media_fixtures::movie;
use crate::arr::fake::radarr::FakeRadarr;
use crate::clock::Clock;
use crate::conversation::catalog_ids::CatalogIds;
use crate::conversation::routing::rooms::Audience;
use crate::conversation::transcript::{CallResult, MediaKind};
use crate::conversation::viewer_accounts::{MediaServerKind, ViewerAccount, WatchSharing};
use crate::discovery::Discovery;
use crate::http::HttpClient;
use crate::media_servers::fake::{FakeHousehold, FakePlex, FakeTautulli};
use crate::media_servers::playability::MediaServers;
use crate::media_servers::plex::Plex;
use crate::media_servers::tautulli::Tautulli;
use crate::tools::find_in_library::FindInLibrary;
use crate::tools::library::ArrInstances;
use crate::tools::media_details::MediaDetails;
use crate::tools::recommend::RecommendTitles;
use crate::tools::tests::{check, context, radarr_instance};
use crate::tools::typed_tool::TypedTool;
use crate::tools::{ToolContext, ToolError, ToolOutput};

const UNKNOWN: &str = "I can't see right now what was watched. Please ask again later.";
/// Titles, with their ids in Radarr and at TMDB.
const TITLES: [(&str, i64, i64); 3] = [("Heat", 1, 949), ("Alien", 2, 348), ("Dune", 3, 438_631)];

/// Household with Plex and Tautulli, in which Ann has finished Heat, stopped in the middle of Alien, and not seen Dune.
struct World {
    clock: Clock,
    household: FakeHousehold,
    ann: u64,
    library: ArrInstances,
    account: ViewerAccount,
    sharing: WatchSharing,
}

impl World {
    fn new() -> Self {
        let clock = Clock::stopped_at(context().now);
        let plex = FakePlex::new("token", clock.clone());
        let household = plex.household.clone();
        let tautulli = FakeTautulli::with_household("key", household.clone());
        let url = |text: &str| text.parse().unwrap();
        let http = HttpClient::in_process;
        let statistics =
            Tautulli::new(http(tautulli.in_process()), url("http://tautulli.invalid"), &tautulli.key());
        let client = Plex::new(http(plex.in_process()), url("http://plex.invalid"), &plex.token());
        let radarr = FakeRadarr::with_clock(clock.clone());
        let ann = household.add_user("Ann");
        let [heat, alien, _] = TITLES.map(|(title, id, tmdb)| {
            radarr.add(movie(title).id(id).tmdb(tmdb).year(1995).size_gb(2.0));
            let ids = CatalogIds::of_library(MediaKind::Movie, tmdb);
            household.add_movie((title, 1995), ids, SignedDuration::ZERO)
        });
        household.watch(ann, heat, 100);
        household.watch(ann, alien, 41);
        let library = ArrInstances {
            movies: vec![radarr_instance("radarr", &radarr)],
            series: Vec::new(),
            media_servers: MediaServers::new(vec![Arc::new(client.with_tautulli(statistics))]),
            discovery: Discovery::default(),
            requests: None,
        };
        let (server, id) = (MediaServerKind::Plex, tautulli.user_id(ann));
        let account = ViewerAccount { server, id, name: "Ann".to_owned() };
        Self { clock, household, ann, library, account, sharing: WatchSharing::Household }
    }

    /// Lets every request to Tautulli fail, but none to Plex.
    fn fail(&self) {
        self.household.set_recorder_status(Some(500));
    }

    async fn run<T: TypedTool>(&self, audience: Audience, arguments: Value) -> Result<ToolOutput, ToolError> {
        let viewers = Viewers::new(vec![self.account.clone()], self.sharing);
        let context = ToolContext { now: self.clock.now(), audience, viewers, ..context() };
        let tool: T = serde_json::from_value(arguments).unwrap();
        tool.run(&self.library, &context).await
    }

    async fn call<T: TypedTool>(&self, arguments: Value) -> CallResult {
        self.run::<T>(Audience::Author, arguments).await.unwrap().result
    }

    async fn answer<T: TypedTool>(&self, arguments: Value) -> String {
        self.call::<T>(arguments).await.for_user
    }

    /// Returns the state of each title in its details.
    async fn states(&self) -> Vec<String> {
        let mut states = Vec::new();
        for (_, id, _) in TITLES {
            let details = self.call::<MediaDetails>(json!({ "type": "movie", "id": id })).await;
            let (answer, state) = (details.for_user, &details.for_model["watched"]["you"]);
            assert!(answer.contains("It is ready on Plex."), "{answer}");
            states.push(state.as_str().unwrap().to_owned());
        }
        states
    }
}

#[tokio::test]
async fn failing_tautulli_makes_no_title_unwatched() {
    let world = World::new();
    world.fail();
    assert_eq!(world.states().await, ["unknown"; 3]);
    for filter in ["unwatched", "started", "watched"] {
        assert_eq!(world.answer::<FindInLibrary>(json!({ "watched": filter })).await, UNKNOWN);
    }
    assert_eq!(world.answer::<FindInLibrary>(json!({ "not_watched_days": 30 })).await, UNKNOWN);
    let recent = world.answer::<RecentlyWatched>(json!({})).await;
    assert_eq!(recent, "I can't see that right now. Please ask again later.");
    let recommended = world.answer::<RecommendTitles>(json!({ "in_library": true })).await;
    assert_eq!(recommended, "I can't see right now what you have watched. Please ask again later.");
}

#[tokio::test]
async fn only_finished_titles_stay_known_while_tautulli_fails() {
    let world = World::new();
    assert_eq!(
        world.states().await,
        ["finished on Mar 6, 2026", "stopped at 41% on Mar 6, 2026", "not started"]
    );
    world.fail();
    world.clock.advance(Duration::from_mins(2));
    assert_eq!(world.states().await, ["finished on Mar 6, 2026", "unknown", "unknown"]);
    let watched = world.answer::<FindInLibrary>(json!({ "watched": "watched" })).await;
    assert_eq!(watched, "Watched: Heat (1995), 2 GB.");
    for filter in ["unwatched", "started"] {
        assert_eq!(world.answer::<FindInLibrary>(json!({ "watched": filter })).await, UNKNOWN);
    }
    // Ann may have watched Heat again since then.
    world.clock.advance(Duration::from_hours(23));
    assert_eq!(world.answer::<FindInLibrary>(json!({ "not_watched_days": 1 })).await, UNKNOWN);
}

#[tokio::test]
async fn person_without_recorded_plays_gets_no_list() {
    let world = World::new();
    world.household.set_recorded(world.ann, false);
    assert_eq!(world.states().await, ["unknown"; 3]);
    for filter in ["unwatched", "started", "watched"] {
        let answer = world.answer::<FindInLibrary>(json!({ "watched": filter })).await;
        assert_eq!(answer, "I can't tell, because not everything that was watched is recorded.");
    }
    let recommended = world.answer::<RecommendTitles>(json!({ "in_library": true })).await;
    assert_eq!(recommended, "I can't tell, because not everything that you watch is recorded.");
}

#[tokio::test]
async fn question_about_another_person_omits_own_state() {
    let mut world = World::new();
    let asked = json!({ "type": "movie", "id": 1, "watched_by": "bob" });
    let answer = world.answer::<MediaDetails>(asked.clone()).await;
    assert!(answer.ends_with("I don't know what \"bob\" has watched."), "{answer}");
    world.sharing = WatchSharing::Off;
    let answer = world.answer::<MediaDetails>(asked).await;
    let refused = "I keep what people watch to myself. I can only tell you about your own.";
    assert!(answer.ends_with(refused) && !answer.contains("You finished"), "{answer}");
    let own = world.answer::<MediaDetails>(json!({ "type": "movie", "id": 1 })).await;
    assert!(own.ends_with("You finished it on Mar 6, 2026."), "{own}");
}

#[tokio::test]
async fn room_reads_nothing_of_what_was_watched() {
    let world = World::new();
    let details = world.run::<MediaDetails>(Audience::Room, json!({ "type": "movie", "id": 1 })).await;
    let details = details.unwrap().result;
    assert_eq!(details.for_model.get("watched"), None);
    assert!(details.for_user.ends_with("It is ready on Plex."), "{}", details.for_user);
    let refused =
        "not_permitted: Please ask me that in private. Here everybody would read what you have watched.";
    check(world.run::<RecentlyWatched>(Audience::Room, json!({})).await, refused);
    check(world.run::<FindInLibrary>(Audience::Room, json!({ "watched": "watched" })).await, refused);
    let recommended = world.run::<RecommendTitles>(Audience::Room, json!({ "in_library": true })).await;
    let recommended = recommended.unwrap().result.for_user;
    assert!(recommended.contains("Heat") && !recommended.contains("You have not seen"), "{recommended}");
}
