//! Tests of the list of a user's titles, and of the limit of their space.

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::json;

use super::OwnTitle;
use super::my_space::MySpace;
use super::space_limit::{check_known_space, check_space, measure_space};
use crate::arr::fake::media_fixtures::movie;
use crate::arr::fake::radarr::FakeRadarr;
use crate::clock::Clock;
use crate::conversation::catalog_ids::CatalogIds;
use crate::conversation::routing::rooms::Audience;
use crate::conversation::transcript::{CallFailure, CallResult, MediaKind};
use crate::conversation::viewer_accounts::{MediaServerKind, ViewerAccount, WatchSharing};
use crate::discovery::Discovery;
use crate::http::HttpClient;
use crate::media_servers::fake::{FakeHousehold, FakeJellyfin};
use crate::media_servers::jellyfin::Jellyfin;
use crate::media_servers::playability::MediaServers;
use crate::tools::add_movie::AddMovie;
use crate::tools::library::ArrInstances;
use crate::tools::quota_allowance::QuotaAllowance;
use crate::tools::tests::{context, radarr_instance};
use crate::tools::typed_tool::TypedTool;
use crate::tools::viewing::Viewers;
use crate::tools::{ToolContext, ToolEffect, ToolOutput};

/// Library of seven movies of the user, of 1 to 7 GB, of which the user has finished the largest.
struct World {
    clock: Clock,
    radarr: FakeRadarr,
    library: ArrInstances,
    account: ViewerAccount,
}

impl World {
    fn new() -> Self {
        let clock = Clock::stopped_at(context().now);
        let radarr = FakeRadarr::with_clock(clock.clone());
        let jellyfin = FakeJellyfin::new("key", clock.clone());
        let household: FakeHousehold = jellyfin.household.clone();
        let ann = household.add_user("Ann");
        for number in 1..=7_u32 {
            let (title, tmdb) = (format!("Movie {number}"), i64::from(number));
            radarr.add(movie(&title).id(tmdb).tmdb(tmdb).year(1995).size_gb(f64::from(number)));
            let ids = CatalogIds::of_library(MediaKind::Movie, tmdb);
            let added = household.add_movie((&title, 1995), ids, SignedDuration::ZERO);
            if number == 7 {
                household.watch(ann, added, 100);
            }
        }
        let url = "http://jellyfin.invalid".parse().unwrap();
        let client = Jellyfin::new(HttpClient::in_process(jellyfin.in_process()), url, &jellyfin.key());
        let library = ArrInstances {
            movies: vec![radarr_instance("radarr", &radarr)],
            series: Vec::new(),
            media_servers: MediaServers::new(vec![Arc::new(client)]),
            discovery: Discovery::default(),
            requests: None,
        };
        let (server, id) = (MediaServerKind::Jellyfin, FakeJellyfin::user_id(ann));
        let account = ViewerAccount { server, id, name: "Ann".to_owned() };
        Self { clock, radarr, library, account }
    }

    fn context(&self, limit: Option<u32>) -> ToolContext {
        let own_title = |catalog_id| {
            let (instance, kind) = ("radarr".to_owned(), MediaKind::Movie);
            OwnTitle { instance, kind, catalog_id, shared_with: Vec::new() }
        };
        let contact = "Ann".to_owned();
        ToolContext {
            now: self.clock.now(),
            own_titles: (1..=7).map(own_title).collect(),
            viewers: Viewers::new(vec![self.account.clone()], WatchSharing::Off),
            allowance: QuotaAllowance { space_limit_gb: limit, contact, ..QuotaAllowance::default() },
            ..context()
        }
    }

    async fn list(&self, page: Option<u32>, context: &ToolContext) -> ToolOutput {
        let tool: MySpace = serde_json::from_value(json!({ "page": page })).unwrap();
        tool.run(&self.library, context).await.unwrap()
    }

    /// Measures the space as before an addition.
    async fn measure(&self, limit: u32) -> ToolContext {
        measure_space::<AddMovie>(&self.context(Some(limit)), &self.library).await.into_owned()
    }
}

fn numbers(result: &CallResult) -> Vec<u64> {
    let results = result.for_model["results"].as_array().unwrap().iter();
    results.map(|title| title["number"].as_u64().unwrap()).collect()
}

fn failure_text(outcome: Result<(), CallFailure>) -> String {
    let failure = outcome.unwrap_err();
    format!("{}: {}", failure.code, failure.for_user.unwrap())
}

#[tokio::test]
async fn five_titles_fit_a_page_and_keep_their_numbers() {
    let world = World::new();
    let context = world.context(None);
    let first = world.list(None, &context).await.result;
    assert_eq!(numbers(&first), [1, 2, 3, 4, 5]);
    assert!(
        first.for_user.contains("\n5. Movie 3 (1995), 3 GB\nAnd 2 more.\nText DROP 1"),
        "{}",
        first.for_user
    );
    let second = world.list(Some(2), &context).await.result;
    assert_eq!(numbers(&second), [6, 7]);
    assert!(second.for_user.ends_with("Text DROP 6, or DROP 6 7, to delete them."), "{}", second.for_user);
    assert_eq!(second.shown.len(), 2);
    assert_eq!(numbers(&world.list(Some(3), &context).await.result), [0; 0]);
}

#[tokio::test]
async fn finished_title_is_marked_unless_somebody_else_asks() {
    let world = World::new();
    let own = world.list(None, &world.context(None)).await;
    assert!(own.result.for_user.contains("1. Movie 7 (1995), 7 GB, finished in "), "{}", own.result.for_user);
    assert_eq!(own.effects, [ToolEffect::MentionViewing]);
    let mut hidden = world.context(None);
    hidden.viewers = hidden.viewers.hidden();
    let in_room = ToolContext { audience: Audience::Room, ..world.context(None) };
    for context in [hidden, in_room] {
        let output = world.list(None, &context).await;
        assert!(!output.result.for_user.contains("finished"), "{}", output.result.for_user);
        assert_eq!(output.effects, []);
    }
}

#[tokio::test]
async fn addition_is_allowed_below_the_space_limit() {
    let world = World::new();
    assert_eq!(check_space(&world.measure(29).await), Ok(()));
    let refused = "quota: Your titles hold 28 of 28 GB. Text MY SPACE to see them, or ask Ann for more.";
    let context = world.measure(28).await;
    assert_eq!(failure_text(check_space(&context)), refused);
    assert_eq!(failure_text(check_known_space(&context)), refused);
    let in_room = ToolContext { audience: Audience::Room, ..context };
    let private = "quota: That is over your limit. Ask me in our private chat for the details.";
    assert_eq!(failure_text(check_space(&in_room)), private);
}

#[tokio::test]
async fn unknown_space_refuses_an_addition_until_it_is_known() {
    let world = World::new();
    world.radarr.set_down(true);
    let context = world.measure(100).await;
    let refused = "radarr_unreachable: I can't see right now how much space your titles hold.";
    assert_eq!(failure_text(check_space(&context)), refused);
    assert_eq!(check_known_space(&context), Ok(()));
    assert!(check_space(&world.context(Some(100))).is_err());
    assert_eq!(check_space(&world.context(None)), Ok(()));
}
