//! Tests of every tool against a fake Radarr and a fake Sonarr, from JSON arguments to the results for the model and
//! the user.

use std::sync::Arc;

use futures_util::future::join_all;
use jiff::Timestamp;
use jiff::civil::date;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::approval::{self, CallDecision};
use super::library::{ArrInstances, Instance};
use super::making_room::SpaceRecords;
use super::quota_allowance::QuotaAllowance;
use super::registry::ToolRegistry;
use super::remove_media::RemoveMedia;
use super::tonight::gathering::Gathering;
use super::typed_tool::DeletionTool;
use super::viewing::Viewers;
use super::{
    CallReferences, InterruptedRun, RecoveryOutcome, RequestTiming, Tool, ToolContext, ToolError, ToolOutput,
};
use crate::arr::fake::activity::download;
use crate::arr::fake::media_fixtures::{movie, series};
use crate::arr::fake::radarr::FakeRadarr;
use crate::arr::fake::sonarr::FakeSonarr;
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::clock::Clock;
use crate::conversation::catalog_ids::CatalogIds;
use crate::conversation::deletion::target::{
    DeletionScope, DeletionTarget, TargetFingerprint, ViewingKnowledge,
};
use crate::conversation::people::age_ratings::AgeLimit;
use crate::conversation::people::facts::{FactKind, StoredFact, UserFact, UserFacts};
use crate::conversation::routing::rooms::Audience;
use crate::conversation::transcript::{
    CallId, CallResult, CallRow, CallState, MediaKind, MediaRef, Responder, ToolArguments, ToolCall, TurnId,
    UserRights, UserRole,
};
use crate::discovery::Discovery;
use crate::http::HttpClient;
use crate::media_servers::playability::MediaServers;

const NOW: &str = "2026-03-06T19:00:00-05:00";
const UNREACHABLE: &str = "Radarr can't be reached right now.";

/// Household with one Radarr and one Sonarr.
struct House {
    radarr: FakeRadarr,
    sonarr: FakeSonarr,
    library: Arc<ArrInstances>,
}

impl House {
    fn new() -> Self {
        let clock = Clock::stopped_at(now());
        let (radarr, sonarr) = (FakeRadarr::with_clock(clock.clone()), FakeSonarr::with_clock(clock));
        let library = ArrInstances {
            movies: vec![radarr_instance("radarr", &radarr)],
            series: vec![Instance::new("sonarr", false, sonarr_client(&sonarr))],
            media_servers: MediaServers::default(),
            discovery: Discovery::default(),
            requests: None,
        };
        Self { radarr, sonarr, library: Arc::new(library) }
    }

    /// Builds a household with some titles in its libraries and catalogs.
    fn with_titles() -> Self {
        let house = Self::new();
        house.radarr.add(movie("Dune").id(7).tmdb(438_631).year(2021).size_gb(21.4));
        house.radarr.add(movie("Heat").id(8).tmdb(949).year(1995).size_gb(18.2));
        house.radarr.add(movie("Paddington").id(9).tmdb(116_149).year(2014));
        house.radarr.add_to_catalog(movie("The Matrix").tmdb(603).year(1999));
        house.radarr.add_to_catalog(movie("Dune: Part Two").tmdb(693_134).year(2024));
        house.radarr.add_to_catalog(movie("Dune: Part Three").tmdb(1_170_608).year(2026).unreleased());
        house
            .sonarr
            .add(series("The Bear").id(4).tvdb(403_294).year(2022).seasons(3).episodes(28).size_gb(44.0));
        house.sonarr.add_to_catalog(series("The Office (US)").tvdb(73_244).year(2005).seasons(9));
        house.sonarr.add_to_catalog(series("Severance").tvdb(371_980).year(2022).seasons(2));
        house
    }

    /// Builds a household with a second Radarr, for 4K.
    fn with_four_k() -> Self {
        let mut house = Self::with_titles();
        let mut library = (*house.library).clone();
        library.movies.push(Instance { four_k: true, ..radarr_instance("radarr-4k", &FakeRadarr::new()) });
        house.library = Arc::new(library);
        house
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        crate::tool_list::all_tools(&self.library, crate::tool_list::PicturePolicy::Sent)
    }

    fn tool(&self, name: &str) -> Arc<dyn Tool> {
        ToolRegistry::new(self.tools()).get(name).unwrap().clone()
    }

    async fn run(&self, tool: &str, args: Value) -> Result<ToolOutput, ToolError> {
        self.run_in(&context(), tool, args).await
    }

    /// Runs a call as the engine does. The ids in it count as shown.
    async fn run_in(&self, context: &ToolContext, tool: &str, args: Value) -> Result<ToolOutput, ToolError> {
        let tool = self.tool(tool);
        let (spec, arguments) = (tool.spec(), arguments(args));
        let references = tool.check_arguments(&arguments)?;
        let call = ToolCall {
            row: CallRow(1),
            id: CallId::from_position(TurnId(1), 0, 0),
            step: 0,
            name: spec.name.to_owned(),
            arguments,
            effect_level: spec.effect_level,
            state: CallState::Created,
        };
        match approval::decide_call(
            spec,
            &call,
            &references,
            (context.rights, context.audience),
            &references.refs,
        ) {
            CallDecision::Run(approved) => tool.run(&approved, context).await,
            other => panic!("{other:?}"),
        }
    }

    async fn search(&self, args: Value) -> Result<CallResult, ToolError> {
        self.run("search_media", args).await.map(|output| output.result)
    }

    async fn find(&self, args: Value) -> Result<CallResult, ToolError> {
        self.run("find_in_library", args).await.map(|output| output.result)
    }

    async fn recover(&self, tool: &str, args: Value) -> RecoveryOutcome {
        let arguments = arguments(args);
        self.tool(tool).recover_outcome(InterruptedRun::Call(&arguments), &context()).await.unwrap()
    }

    async fn preview_removal(&self, args: Value) -> Result<Vec<DeletionTarget>, ToolError> {
        self.tool("remove_media").preview_items(&arguments(args), &context()).await
    }

    async fn remove(&self, item: &DeletionTarget) -> Result<CallResult, ToolError> {
        RemoveMedia::delete_item(item, &self.library).await
    }

    async fn recover_removal(&self, item: &DeletionTarget) -> RecoveryOutcome {
        RemoveMedia::recover_item(item, &self.library).await.unwrap()
    }

    async fn freeze_item(&self, kind: &str, id: i64) -> DeletionTarget {
        let args = json!({"items": [{"type": kind, "id": id}], "delete_files": true});
        self.preview_removal(args).await.unwrap().remove(0)
    }
}

pub(super) fn radarr_instance(name: &'static str, fake: &FakeRadarr) -> Instance<Radarr> {
    let http = HttpClient::in_process(fake.in_process());
    let client = Radarr::new(http, "http://radarr.test".parse().unwrap(), fake.api_key().into());
    Instance::new(name, false, client)
}

fn sonarr_client(fake: &FakeSonarr) -> Sonarr {
    let http = HttpClient::in_process(fake.in_process());
    Sonarr::new(http, "http://sonarr.test".parse().unwrap(), fake.api_key().into())
}

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

pub(super) fn context() -> ToolContext {
    let rights =
        UserRights { role: UserRole::Admin, add: true, delete: true, four_k: true, ..UserRights::MEMBER };
    ToolContext {
        now: now(),
        zone: TimeZone::get("America/New_York").unwrap(),
        rights,
        turn_messages: Vec::new(),
        last_three_messages: Vec::new(),
        audience: Audience::Author,
        age_limit: AgeLimit::default(),
        parents: None,
        titles_asked_for: Vec::new(),
        languages: Vec::new(),
        allowance: QuotaAllowance::default(),
        removal_requests: Vec::new(),
        admins: 1,
        title_requests: Vec::new(),
        own_titles: Vec::new(),
        space: SpaceRecords::default(),
        facts: UserFacts::default(),
        viewers: Viewers::default(),
        gathering: Gathering::default(),
        seerr_account: None,
        agent_request: None,
        request_timing: RequestTiming::Now,
    }
}

fn arguments(args: Value) -> ToolArguments {
    ToolArguments::parse(args)
}

fn item(kind: MediaKind, id: i64) -> MediaRef {
    let instance = if kind == MediaKind::Movie { "radarr" } else { "sonarr" };
    MediaRef::Item { instance: instance.to_owned(), kind, id }
}

/// Checks the sentence for the user, or the error code of the failure and its sentence.
#[track_caller]
pub(super) fn check(outcome: Result<impl Into<ToolOutput>, ToolError>, expected: &str) {
    let actual = match outcome {
        Ok(output) => output.into().result.for_user,
        Err(ToolError::CallFailed(failure)) => {
            format!("{}: {}", failure.code, failure.for_user.unwrap_or_else(|| failure.for_model.to_string()))
        }
        Err(ToolError::Unknown(reason)) => format!("unknown: {reason}"),
        Err(ToolError::Fatal(error)) => format!("fatal: {error}"),
    };
    assert_eq!(actual, expected);
}

#[tokio::test]
async fn search_of_both_kinds_ranks_the_exact_title_first() {
    let house = House::with_titles();
    house.sonarr.add_to_catalog(series("Dune: Prophecy").tvdb(367_118).year(2024).seasons(1));
    let found = house.search(json!({"query": "dune", "type": null})).await.unwrap();
    let titles: Vec<&Value> =
        found.for_model["results"].as_array().unwrap().iter().map(|result| &result["title"]).collect();
    assert_eq!(titles[0], "Dune");
    assert_eq!(found.for_model["total"], 4);
    assert!(titles.contains(&&json!("Dune: Prophecy")));
    assert_eq!(found.shown[..2], [MediaRef::Tmdb(438_631), item(MediaKind::Movie, 7)]);
}

#[tokio::test]
async fn search_result_has_a_stable_form() {
    let house = House::new();
    house.radarr.add_to_catalog(
        movie("Arrival").tmdb(329_865).year(2016).overview("A linguist\u{202e} meets\nguests."),
    );
    house.sonarr.add_to_catalog(series("The Office (US)").tvdb(73_244).year(2005).seasons(9).overview(""));
    let result = |found: CallResult| found.for_model["results"][0].clone();
    assert_eq!(
        result(house.search(json!({"query": "arrival"})).await.unwrap()),
        json!({"type": "movie", "title": "Arrival", "year": 2016, "tmdb": 329_865, "in_library": false,
            "overview": "A linguist meets guests."})
    );
    let mut office = result(house.search(json!({"query": "the office", "type": "series"})).await.unwrap());
    office.as_object_mut().unwrap().remove("overview");
    assert_eq!(
        office,
        json!({"type": "series", "title": "The Office (US)", "year": 2005, "tvdb": 73_244, "seasons": 9,
            "in_library": false})
    );
}

#[tokio::test]
async fn failing_service_does_not_hide_the_other() {
    let house = House::with_titles();
    house.radarr.set_down(true);
    check(
        house.search(json!({"query": "severance"})).await,
        &format!("I found Severance (2022). {UNREACHABLE}"),
    );
    check(
        house.search(json!({"query": "dune", "type": "movie"})).await,
        &format!("radarr_unreachable: {UNREACHABLE}"),
    );
    house.sonarr.add_to_queue(download("The Bear S02E03").percent(10).minutes_left(30));
    check(
        house.run("check_status", json!({})).await,
        &format!("The Bear S02E03 10%, 30 min left. {UNREACHABLE}"),
    );
}

#[tokio::test(start_paused = true)]
async fn hanging_service_does_not_hide_the_other() {
    let house = House::with_titles();
    house.radarr.hang_next();
    check(
        house.find(json!({"query": "bear"})).await,
        &format!("In the library: The Bear (2022), 28 of 28 episodes, 44 GB. {UNREACHABLE}"),
    );
}

#[tokio::test]
async fn empty_query_is_rejected() {
    let failure = r#"{"error":"bad_arguments","expected":"text","field":"query","hint":"Title, then year."}"#;
    check(House::new().search(json!({"query": "  "})).await, &format!("bad_arguments: {failure}"));
}

#[tokio::test]
async fn library_is_searched_by_title_words() {
    let house = House::with_titles();
    let found = house.find(json!({"query": "heat 1995"})).await.unwrap();
    assert_eq!(
        found.for_model,
        json!({"results": [{"type": "movie", "id": 8, "instance": "radarr", "title": "Heat", "year": 1995,
            "size_gb": 18.2, "on_disk": true}], "total": 1})
    );
    assert_eq!(found.shown, [MediaRef::Tmdb(949), item(MediaKind::Movie, 8)]);
    check(Ok(found), "In the library: Heat (1995), 18.2 GB.");
    check(
        house.find(json!({"query": "paddington"})).await,
        "In the library: Paddington (2014), not on disk yet.",
    );
    check(
        house.find(json!({"query": "bear"})).await,
        "In the library: The Bear (2022), 28 of 28 episodes, 44 GB.",
    );
    check(
        house.find(json!({"query": "heat", "type": "series"})).await,
        "Nothing in the library matches \"heat\".",
    );
}

#[tokio::test]
async fn query_without_arguments_returns_only_totals() {
    let house = House::with_titles();
    let totals = house.find(json!({})).await.unwrap();
    assert_eq!(
        totals.for_model,
        json!({"results": [], "total": 4, "movies": 3, "series": 1, "missing": 1, "size_gb": 83.6,
            "note": "name a title to see it"})
    );
    assert_eq!(totals.shown, vec![]);
    check(Ok(totals), "The library has 3 movies and 1 show.");
    check(
        house.find(json!({"query": "", "type": "series"})).await,
        "In the library: The Bear (2022), 28 of 28 episodes, 44 GB.",
    );
}

#[tokio::test]
async fn library_is_listed_by_status() {
    let house = House::with_titles();
    check(house.find(json!({"only": "missing"})).await, "Missing: Paddington (2014), not on disk yet.");
    check(
        house.find(json!({"sort": "biggest", "type": "movie"})).await,
        "In the library: Dune (2021), 21.4 GB; Heat (1995), 18.2 GB; Paddington (2014), not on disk yet.",
    );
    check(house.find(json!({"only": "unmonitored"})).await, "No title in the library matches.");
}

#[tokio::test]
async fn five_of_many_titles_are_listed_with_the_rest_counted() {
    let house = House::new();
    for number in 1..=7 {
        house.radarr.add(movie(&format!("Rocky {number}")).year(1980));
    }
    let found = house.find(json!({"query": "rocky", "sort": "title"})).await.unwrap();
    assert_eq!((found.for_model["total"].clone(), found.shown.len()), (json!(7), 10));
    assert_eq!(found.for_model["note"], "2 more: ask for page 2, or narrow it down");
    let titles = (1..=5).map(|number| format!("Rocky {number} (1980), not on disk yet")).collect::<Vec<_>>();
    check(Ok(found), &format!("In the library: {}; and 2 more.", titles.join("; ")));
}

#[tokio::test]
async fn repeated_queries_load_the_library_once() {
    let house = House::with_titles();
    for query in ["heat", "dune", "heat 1995", "the bear"] {
        house.find(json!({"query": query})).await.unwrap();
    }
    house.run("add_movie", json!({"tmdb": 949})).await.unwrap();
    assert_eq!((house.radarr.listing_count(), house.sonarr.listing_count()), (1, 1));
}

#[tokio::test]
async fn concurrent_queries_share_one_download() {
    let house = House::with_titles();
    let queries = ["heat", "dune", "bear", "nothing"].map(|query| house.find(json!({"query": query})));
    for found in join_all(queries).await {
        found.unwrap();
    }
    assert_eq!((house.radarr.listing_count(), house.sonarr.listing_count()), (1, 1));
}

#[tokio::test]
async fn own_additions_and_deletions_are_visible_immediately() {
    let house = House::with_titles();
    let part_two = || house.find(json!({"query": "dune part two"}));
    check(part_two().await, "Nothing in the library matches \"dune part two\".");
    house.run("add_movie", json!({"tmdb": 693_134})).await.unwrap();
    check(part_two().await, "In the library: Dune: Part Two (2024), not on disk yet.");
    let heat = house.freeze_item("movie", 8).await;
    house.remove(&heat).await.unwrap();
    check(house.find(json!({"query": "heat"})).await, "Nothing in the library matches \"heat\".");
}

#[tokio::test]
async fn external_deletion_is_visible_immediately() {
    let house = House::with_titles();
    house.find(json!({"query": "heat"})).await.unwrap();
    house.radarr.remove(8);
    check(house.find(json!({"query": "heat"})).await, "Nothing in the library matches \"heat\".");
    check(house.find(json!({})).await, "The library has 2 movies and 1 show.");
}

#[tokio::test]
async fn unreachable_library_returns_no_cached_titles() {
    let house = House::with_titles();
    house.find(json!({"query": "dune"})).await.unwrap();
    house.radarr.set_down(true);
    let movie = json!({"query": "dune", "type": "movie"});
    check(house.find(movie).await, &format!("radarr_unreachable: {UNREACHABLE}"));
    check(
        house.find(json!({"sort": "biggest"})).await,
        &format!("In the library: The Bear (2022), 28 of 28 episodes, 44 GB. {UNREACHABLE}"),
    );
}

#[tokio::test]
async fn truncated_list_is_reported_as_a_failure() {
    let house = House::with_titles();
    house.radarr.truncate_next();
    let heat = || house.find(json!({"query": "heat", "type": "movie"}));
    check(heat().await, "radarr_unreadable: Radarr had an error.");
    check(heat().await, "In the library: Heat (1995), 18.2 GB.");
}

#[tokio::test]
async fn movie_is_added_and_verified() {
    let house = House::with_titles();
    let added = house.run("add_movie", json!({"tmdb": "693134"})).await.unwrap();
    assert_eq!(added.result.for_model["status"], "added");
    assert_eq!(house.radarr.added_ids(), [693_134]);
    check(Ok(added), "Added Dune: Part Two (2024).");
}

#[tokio::test]
async fn existing_movie_is_not_added_again() {
    let house = House::with_titles();
    check(house.run("add_movie", json!({"tmdb": 438_631})).await, "You already have Dune (2021).");
    check(
        house.run("add_movie", json!({"tmdb": 116_149})).await,
        "Paddington (2014) is already in the library and is being looked for. Text TELL ME and I will let you know when it \
         is ready.",
    );
    assert_eq!(house.radarr.post_count(), 0);
}

#[tokio::test]
async fn unreleased_movie_is_reported_as_unreleased() {
    check(
        House::with_titles().run("add_movie", json!({"tmdb": 1_170_608})).await,
        "Added Dune: Part Three (2026). It is not out yet and will be fetched when it is.",
    );
}

#[tokio::test]
async fn quality_is_the_named_or_the_most_used_profile() {
    let house = House::with_titles();
    house.radarr.set_profiles(&["SD", "HD-1080p", "Ultra-HD"]);
    house.run("add_movie", json!({"tmdb": 693_134})).await.unwrap();
    house.run("add_movie", json!({"tmdb": 603, "quality": "ultra hd"})).await.unwrap();
    let profiles = [693_134, 603].map(|tmdb| house.radarr.added_profile(tmdb).unwrap());
    assert_eq!(profiles, ["HD-1080p", "Ultra-HD"]);
    check(
        house.run("add_movie", json!({"tmdb": 1_170_608, "quality": "8K"})).await,
        r#"bad_arguments: {"error":"bad_arguments","expected":"one of SD, HD-1080p, Ultra-HD","field":"quality","hint":"if it is not clear, ask the user"}"#,
    );
}

#[tokio::test]
async fn addition_with_a_lost_response_is_verified_by_a_read() {
    let house = House::with_titles();
    let args = json!({"tmdb": 603});
    assert_eq!(house.recover("add_movie", args.clone()).await, RecoveryOutcome::NotDone);
    house.radarr.set_down(true);
    assert_eq!(house.recover("add_movie", args.clone()).await, RecoveryOutcome::Unknown);
    let expected = format!("{UNREACHABLE} I'll keep trying for a day and text you.");
    check(house.run("add_movie", args.clone()).await, &expected);
    house.radarr.set_down(false);
    house.run("add_movie", args.clone()).await.unwrap();
    let RecoveryOutcome::Done(result) = house.recover("add_movie", args.clone()).await else {
        panic!("the movie is there")
    };
    check(Ok(result), "Added The Matrix (1999).");
}

#[tokio::test]
async fn unknown_catalog_id_adds_nothing() {
    let house = House::with_titles();
    check(house.run("add_movie", json!({"tmdb": 1})).await, "unknown_id: I can't find that movie.");
    check(house.run("add_series", json!({"tvdb": 1})).await, "unknown_id: I can't find that show.");
}

#[tokio::test]
async fn long_series_is_added_only_with_selected_seasons() {
    let house = House::with_titles();
    check(
        house.run("add_series", json!({"tvdb": 73_244})).await,
        "which_seasons: The Office (US) (2005) has 9 seasons. Which ones: all, first, latest, or numbers?",
    );
    assert_eq!(house.sonarr.post_count(), 0);
    check(
        house.run("add_series", json!({"tvdb": 73_244, "seasons": [1, 2]})).await,
        "Added The Office (US) (2005), seasons 1 and 2.",
    );
}

#[tokio::test]
async fn seasons_are_accepted_by_word_or_number_if_they_exist() {
    for (seasons, expected) in [
        (json!(null), "Added Severance (2022)."),
        (json!("all"), "Added Severance (2022)."),
        (json!("first"), "Added Severance (2022), season 1."),
        (json!("latest"), "Added Severance (2022), season 2."),
        (json!(2), "Added Severance (2022), season 2."),
        (json!([3]), "bad_arguments: Severance (2022) has no season 3, only seasons 1 to 2."),
    ] {
        let house = House::with_titles();
        check(house.run("add_series", json!({"tvdb": 371_980, "seasons": seasons})).await, expected);
    }
}

#[tokio::test]
async fn only_selected_seasons_are_monitored() {
    let house = House::with_titles();
    house.run("add_series", json!({"tvdb": 73_244, "seasons": "latest"})).await.unwrap();
    let added = house.library.series[0].client.fetch_series_by_tvdb(73_244).await.unwrap().unwrap();
    let monitored: Vec<u32> =
        added.seasons.iter().filter(|season| season.monitored).map(|season| season.number).collect();
    assert_eq!(monitored, [9]);
}

#[tokio::test]
async fn series_without_regular_seasons_is_added_as_a_whole() {
    for seasons in [json!(null), json!("all"), json!("latest"), json!("first"), json!([1])] {
        let house = House::new();
        house.sonarr.add_to_catalog(series("Blade Runner 2099").tvdb(425_000).year(2027).seasons(0));
        let mut args = json!({ "tvdb": 425_000 });
        if !seasons.is_null() {
            args["seasons"] = seasons;
        }
        let added = house.run("add_series", args.clone()).await;
        check(
            added,
            "Added Blade Runner 2099 (2027). Nothing of it is out yet; new episodes will be fetched as they air.",
        );
        assert!(house.sonarr.title(1).unwrap().details.new_seasons, "{args}");
        check(
            house.run("add_series", args).await,
            "Blade Runner 2099 (2027) is already in the library, but no episode of it is listed yet. \
             Text TELL ME and I will let you know when it is ready.",
        );
    }
}

#[tokio::test]
async fn specials_alone_are_added_without_later_seasons() {
    let house = House::new();
    house.sonarr.add_to_catalog(series("Blade Runner 2099").tvdb(425_000).year(2027).seasons(0));
    let args = json!({ "tvdb": 425_000, "seasons": [0] });
    check(house.run("add_series", args).await, "Added Blade Runner 2099 (2027), the specials.");
    let details = house.sonarr.title(1).unwrap().details;
    assert_eq!((details.specials_monitored, details.new_seasons), (true, false));
}

#[tokio::test]
async fn existing_series_is_not_added_again() {
    let house = House::with_titles();
    check(house.run("add_series", json!({"tvdb": 403_294})).await, "You already have The Bear (2022).");
    assert_eq!(house.sonarr.post_count(), 0);
}

#[tokio::test]
async fn downloads_are_listed_soonest_first_and_stuck_ones_explained() {
    let house = House::with_titles();
    check(house.run("check_status", json!({})).await, "Nothing is downloading.");
    house.radarr.add_download("Paddington", 62, 12);
    house.sonarr.add_stuck_download("The Bear S02E03", "No files found in /data/torrents/The.Bear");
    house.sonarr.add_to_queue(download("The Bear S01E01").percent(5).minutes_left(80));
    check(
        house.run("check_status", json!({})).await,
        "Paddington (2014) 62%, 12 min left; The Bear S01E01 5%, 1 h 20 min left; \
         The Bear S02E03 stuck: No files found.",
    );
}

#[tokio::test]
async fn upcoming_releases_use_the_users_time_zone() {
    let house = House::with_titles();
    house.sonarr.add_calendar_entry("The Bear S04E03", "2026-03-12T02:00:00Z".parse().unwrap());
    house.radarr.add_calendar_entry("Dune: Part Three", date(2026, 3, 7));
    let upcoming = house.run("upcoming", json!({"days": 7})).await.unwrap();
    assert_eq!(upcoming.result.for_model["results"][1]["when"], "Wed Mar 11, 22:00");
    check(Ok(upcoming), "Dune: Part Three online tomorrow and The Bear S04E03 on Wed.");
    check(house.run("upcoming", json!({"days": 1})).await, "Dune: Part Three online tomorrow.");
    check(House::new().run("upcoming", json!({"days": 7})).await, "Nothing comes out in the next 7 days.");
}

#[tokio::test]
async fn upcoming_covers_whole_local_days() {
    // The current time is 19:00 in New York.
    let house = House::with_titles();
    house.sonarr.add_calendar_entry("The Bear S04E01", "2026-03-06T04:30:00Z".parse().unwrap());
    house.sonarr.add_calendar_entry("The Bear S04E02", "2026-03-06T13:00:00Z".parse().unwrap());
    house.sonarr.add_calendar_entry("The Bear S04E03", "2026-03-08T01:00:00Z".parse().unwrap());
    house.sonarr.add_calendar_entry("The Bear S04E04", "2026-03-08T06:00:00Z".parse().unwrap());
    check(
        house.run("upcoming", json!({"days": 1})).await,
        "The Bear S04E02 today and The Bear S04E03 tomorrow.",
    );
}

#[tokio::test]
async fn recent_imports_are_listed_newest_first() {
    let house = House::with_titles();
    house.radarr.add_import("Dune", "2026-03-05T12:00:00Z".parse().unwrap());
    house.sonarr.add_import("The Bear S02E03", "2026-03-06T12:00:00Z".parse().unwrap());
    house.radarr.add_import("Heat", "2026-01-01T12:00:00Z".parse().unwrap());
    check(house.run("recently_added", json!({"days": 7})).await, "New: The Bear S02E03 and Dune (2021).");
    check(
        House::new().run("recently_added", json!({"days": 7})).await,
        "Nothing arrived in the last 7 days.",
    );
}

#[tokio::test]
async fn removal_freezes_the_prompted_items() {
    let house = House::with_titles();
    let duplicates = json!({"items": [{"type": "movie", "id": 7}, {"type": "movie", "id": "7"}], "delete_files": true,
        "user_confirmed": true});
    let current = house.library.movies[0].client.fetch_movie(7).await.unwrap().unwrap();
    assert_eq!(
        house.preview_removal(duplicates).await.unwrap(),
        [DeletionTarget {
            instance: "radarr".to_owned(),
            kind: MediaKind::Movie,
            id: 7,
            delete_files: true,
            scope: DeletionScope::Whole,
            fingerprint: TargetFingerprint {
                title: "Dune".to_owned(),
                year: 2021,
                path: current.path,
                size_bytes: 21_400_000_000,
                seasons: None,
                ids: CatalogIds::of_library(MediaKind::Movie, 438_631),
                viewing: ViewingKnowledge::default(),
            },
        }]
    );
    assert_eq!(house.freeze_item("series", 4).await.fingerprint.seasons, Some(3));
    assert_eq!((house.radarr.post_count(), house.sonarr.post_count()), (0, 0));
}

#[tokio::test]
async fn removal_of_missing_or_too_many_titles_is_refused() {
    let house = House::with_titles();
    let preview = async |ids: &[i64]| {
        let items: Vec<Value> = ids.iter().map(|id| json!({"type": "movie", "id": id})).collect();
        let args = json!({"items": items, "delete_files": true});
        match house.preview_removal(args).await {
            Err(ToolError::CallFailed(failure)) => failure.for_model,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        preview(&[7, 70]).await,
        json!({"error": "unknown_id", "id": 70, "hint": "call find_in_library and use an id it gives"})
    );
    assert_eq!(
        preview(&(1..=21).collect::<Vec<_>>()).await,
        json!({
            "error": "bad_arguments",
            "field": "items",
            "expected": "list of at most 20",
            "hint": "All of them; code asks about 5 at a time.",
        })
    );
}

#[tokio::test]
async fn deletion_runs_once_and_reports_freed_space() {
    let house = House::with_titles();
    let dune = house.freeze_item("movie", 7).await;
    assert_eq!(house.recover_removal(&dune).await, RecoveryOutcome::NotDone);
    let deleted = house.remove(&dune).await.unwrap();
    assert_eq!(
        deleted.for_model,
        json!({"status": "deleted", "title": "Dune", "year": 2021, "freed_bytes": 21_400_000_000_u64})
    );
    assert_eq!(house.recover_removal(&dune).await, RecoveryOutcome::Done(deleted.into()));
    let again = house.remove(&dune).await.unwrap();
    assert_eq!(again.for_model, json!({"status": "already_gone", "title": "Dune", "year": 2021}));
    assert_eq!(house.radarr.removed_ids(), [7]);

    let bear = house.freeze_item("series", 4).await;
    house.remove(&bear).await.unwrap();
    assert_eq!(house.sonarr.removed_ids(), [4]);
}

#[tokio::test]
async fn title_changed_since_the_prompt_is_not_deleted() {
    let house = House::with_titles();
    let (dune, heat) = (house.freeze_item("movie", 7).await, house.freeze_item("movie", 8).await);
    house.radarr.edit(7, |movie| movie.size_bytes = 30_000_000_000);
    house.radarr.edit(8, |movie| movie.size_bytes += 1_000_000_000);
    check(
        house.remove(&dune).await,
        "changed: Dune (2021) has changed since I asked, so I did not delete it.",
    );
    check(house.remove(&heat).await, "Heat (1995)");
    assert_eq!(house.radarr.removed_ids(), [8]);
}

#[tokio::test]
async fn deletion_that_cannot_start_has_a_known_outcome() {
    let house = House::with_titles();
    let dune = house.freeze_item("movie", 7).await;
    house.radarr.set_down(true);
    check(house.remove(&dune).await, &format!("radarr_unreachable: {UNREACHABLE}"));
    assert_eq!(house.recover_removal(&dune).await, RecoveryOutcome::Unknown);
}

#[test]
fn argument_check_returns_the_ids_in_the_call() {
    let house = House::with_four_k();
    let check_arguments = |tool, args| {
        house
            .tool(tool)
            .check_arguments(&arguments(args))
            .map_err(|failure| failure.for_model["expected"].clone())
    };
    assert_eq!(
        check_arguments("add_movie", json!({"tmdb": 603, "instance": "radarr-4k"})),
        Ok(CallReferences { refs: vec![MediaRef::Tmdb(603)], four_k: true })
    );
    let ordinary = Ok(CallReferences { refs: vec![MediaRef::Tmdb(603)], four_k: false });
    assert_eq!(check_arguments("add_movie", json!({"tmdb": 603})), ordinary);
    assert_eq!(
        check_arguments("add_movie", json!({"tmdb": 603, "quality": "4K"})),
        Ok(CallReferences { refs: vec![MediaRef::Tmdb(603)], four_k: true })
    );
    assert_eq!(
        check_arguments("add_movie", json!({"tmdb": 603, "instance": "plex"})),
        Err(json!("one of radarr, radarr-4k"))
    );
    assert_eq!(
        check_arguments("add_series", json!({"tvdb": 78_107, "instance": "sonarr-4k"})),
        Ok(CallReferences { refs: vec![MediaRef::Tvdb(78_107)], four_k: false })
    );
    assert_eq!(
        check_arguments(
            "remove_media",
            json!({"items": [{"type": "series", "id": 4}], "delete_files": false})
        ),
        Ok(CallReferences { refs: vec![item(MediaKind::Series, 4)], four_k: false })
    );
}

/// Builds a tool context with this message of the user and these stored facts.
fn context_with_facts(message: &str, facts: &[(FactKind, Option<&str>, &str)]) -> ToolContext {
    let stored = (1..).zip(facts).map(|(number, (kind, about, value))| StoredFact {
        number,
        fact: UserFact::new(*kind, *about, value).unwrap(),
        since: now(),
    });
    ToolContext { turn_messages: vec![message.to_owned()], facts: UserFacts(stored.collect()), ..context() }
}

/// Returns the result and the effects of a tool of [`super::memory`] as text.
async fn run_memory_tool(tool: &str, args: Value, context: &ToolContext) -> String {
    match House::new().run_in(context, tool, args).await {
        Ok(ToolOutput { result, effects }) => format!("{} {effects:?}", result.for_user),
        Err(ToolError::CallFailed(failure)) => failure.for_model.to_string(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn fact_needs_the_users_words_and_a_free_slot() {
    let context = context_with_facts("the office means the UK one, in 4k", &[]);
    let remember = |args| run_memory_tool("remember", args, &context);
    assert_eq!(
        remember(json!({"kind": "quality", "about": "films", "value": "4K"})).await,
        r#"Noted: 4K quality for movies. [Remember(UserFact { kind: Quality, key: "movies", value: "4K" })]"#
    );
    assert_eq!(
        remember(json!({"kind": "like", "value": "horror"})).await,
        r#"{"error":"not_said","hint":"the user did not say so: use their own words, or ask them"}"#
    );
    let likes: Vec<String> = (0..40).map(|n| format!("office {n}")).collect();
    let likes: Vec<_> = likes.iter().map(|like| (FactKind::Like, None, like.as_str())).collect();
    let full_context = context_with_facts("office", &likes);
    let result = run_memory_tool("remember", json!({"kind": "like", "value": "office"}), &full_context).await;
    assert_eq!(result, r#"{"error":"too_many","hint":"tell them to forget one first","limit":40}"#);
    assert_eq!(
        remember(json!({"kind": "alias", "value": "Dune"})).await,
        r#"{"error":"bad_arguments","expected":"what the user calls the title","field":"about"}"#
    );
}

#[tokio::test]
async fn named_fact_is_forgotten() {
    let context = context_with_facts(
        "please forget that",
        &[
            (FactKind::Dislike, None, "horror"),
            (FactKind::Dislike, None, "musicals"),
            (FactKind::Alias, Some("the office"), "The Office (UK)"),
        ],
    );
    for (what, expected) in [
        ("Musicals", r#"Forgot: Dislikes musicals. [Forget(Dislike, "musicals")]"#),
        ("1", r#"Forgot: Dislikes horror. [Forget(Dislike, "horror")]"#),
        ("the office", r#"Forgot: "the office" means The Office (UK). [Forget(Alias, "the office")]"#),
        (
            "comedy",
            r#"{"error":"not_known","hint":"use the words of a known fact, or say that it is not stored","known":["Dislikes horror","Dislikes musicals","\"the office\" means The Office (UK)"]}"#,
        ),
    ] {
        assert_eq!(run_memory_tool("forget", json!({ "what": what }), &context).await, expected);
    }
    let unrelated_context = ToolContext { turn_messages: vec!["what is dune about".to_owned()], ..context };
    assert_eq!(
        run_memory_tool("forget", json!({ "what": "1" }), &unrelated_context).await,
        r#"{"error":"not_said","hint":"the user did not ask to forget that: ask them"}"#
    );
}

/// Checks the size of the tools that an admin and a member are offered, as sent to a model server.
#[test]
fn tool_descriptions_are_small() {
    let admin = context().rights;
    let member = UserRights { role: UserRole::Member, delete: false, four_k: false, ..admin };
    for house in [House::with_titles(), House::with_four_k()] {
        for rights in [admin, member] {
            let specs =
                ToolRegistry::new(house.tools()).offered_tools(rights, Audience::Author, Responder::Model);
            let serialized = specs.iter().map(|spec| {
                json!({"type": "function", "function": {"name": spec.name,
                "description": spec.description, "parameters": spec.parameters.raw()}})
            });
            let length = serialized.collect::<Value>().to_string().len();
            assert!(length < 9_100, "{length}");
        }
    }
}

/// Arguments that several tools share, which the system prompt describes.
const SHARED_ARGUMENTS: [&str; 4] = ["type", "id", "instance", "season"];
/// Arguments that a description would only repeat.
const SELF_EXPLANATORY_ARGUMENTS: [&str; 11] = [
    "anime",
    "emoji",
    "genre",
    "kind",
    "max_minutes",
    "min_rating",
    "minutes",
    "only",
    "sort",
    "trending",
    "year",
];

#[test]
fn every_tool_and_argument_has_a_description() {
    let is_described = |(name, argument): (&String, &Value)| {
        let name = name.as_str();
        SHARED_ARGUMENTS.contains(&name)
            || SELF_EXPLANATORY_ARGUMENTS.contains(&name)
            || argument["description"].is_string()
    };
    for tool in House::with_four_k().tools() {
        let spec = tool.spec();
        let schema: Value = serde_json::from_str(spec.parameters.text()).unwrap();
        let nested = schema["properties"]["items"]["items"]["properties"].as_object();
        let mut arguments = schema["properties"].as_object().into_iter().chain(nested).flatten();
        assert!(arguments.all(is_described), "{}: {schema}", spec.name);
        assert!(spec.description.ends_with('.') && spec.description.len() <= 160, "{}", spec.description);
    }
}

/// Returns the schema of a tool's arguments, as offered to a user with these rights.
fn offered_schema(registry: &ToolRegistry, tool: &str, rights: UserRights) -> Value {
    let offered = registry.offered_tools(rights, Audience::Author, Responder::Model);
    let spec = offered.iter().find(|spec| spec.name == tool).unwrap();
    serde_json::from_str(spec.parameters.text()).unwrap()
}

#[test]
fn tools_of_the_same_rights_are_built_once() {
    let registry = ToolRegistry::new(House::with_titles().tools());
    let rights = context().rights;
    let [first, second] = [
        registry.offered_tools(rights, Audience::Author, Responder::Model),
        registry.offered_tools(rights, Audience::Author, Responder::Model),
    ];
    assert!(!first.is_empty() && std::ptr::eq(&*first, &*second));
}

#[tokio::test]
async fn offered_quality_lists_the_profiles_that_the_user_may_use() {
    let house = House::with_titles();
    house.radarr.set_profiles(&["SD", "HD-1080p", "Ultra-HD"]);
    let registry = ToolRegistry::new(house.tools());
    let offered = |rights: UserRights, name: &str| -> Value {
        offered_schema(&registry, "add_movie", rights)["properties"][name].clone()
    };
    let member = UserRights { role: UserRole::Member, four_k: false, ..context().rights };
    assert_eq!(offered(context().rights, "quality")["enum"], Value::Null);
    house.run("add_movie", json!({"tmdb": 603})).await.unwrap();
    assert_eq!(offered(context().rights, "quality")["enum"], json!(["SD", "HD-1080p", "Ultra-HD", "4K"]));
    assert_eq!(offered(member, "quality")["enum"], json!(["SD", "HD-1080p"]));
}

#[test]
fn instance_is_offered_only_with_the_4k_right() {
    let registry = ToolRegistry::new(House::with_four_k().tools());
    let member = UserRights { role: UserRole::Member, four_k: false, ..context().rights };
    for (tool, pointer) in [
        ("add_movie", "/properties/instance"),
        ("get_more", "/properties/instance"),
        ("remove_media", "/properties/items/items/properties/instance"),
    ] {
        let is_offered =
            |rights: UserRights| offered_schema(&registry, tool, rights).pointer(pointer).is_some();
        assert_eq!((is_offered(context().rights), is_offered(member)), (true, false), "{tool}");
    }
}

#[test]
fn tool_schemas_match_the_snapshot() {
    let house = House::with_titles();
    let schemas: Vec<String> = house
        .tools()
        .iter()
        .map(|tool| {
            let spec = tool.spec();
            format!("{}: {}\n{}", spec.name, spec.description, spec.parameters.text())
        })
        .collect();
    insta::assert_snapshot!(schemas.join("\n"));
}
