//! Partial additions, further seasons and episodes of existing titles, and changes of monitoring.

use dialarr::arr::fake::media_fixtures::{FakeSeries, movie, series};
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::conversation::rate_limit::RateLimit;
use dialarr::llm::scripted::ScriptedReply;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::harness::model::{calls, says};
use crate::harness::world::World;
use crate::harness::{ANN, BOB, Has, TestApp};

impl TestApp {
    /// Sends a message of Ann. The model searches the library and makes these calls without a text of its own.
    async fn asks(&self, text: &str, made: &[(&str, Value)]) -> String {
        self.is_asked_by(ANN, text, made).await
    }

    async fn is_asked_by(&self, who: &str, text: &str, made: &[(&str, Value)]) -> String {
        let found = ["find_in_library", "search_media"].map(|tool| calls(tool, json!({ "query": "the" })));
        let made = made.iter().map(|(tool, arguments)| calls(tool, arguments.clone()));
        self.model_plays(
            found.into_iter().chain(made).chain([says(""), says("")]).collect::<Vec<ScriptedReply>>(),
        );
        self.sms_from(who, text).await
    }

    fn wanted(&self, id: i64) -> Vec<(u32, u32)> {
        self.sonarr().title(id).unwrap().monitored_episodes()
    }
}

fn get(id: i64, seasons: &Value) -> [(&'static str, Value); 1] {
    [("get_more", json!({ "type": "series", "id": id, "seasons": seasons }))]
}

fn change(id: i64, what: Value) -> [(&'static str, Value); 1] {
    let mut arguments = json!({ "type": "series", "id": id });
    let (Value::Object(map), Value::Object(what)) = (&mut arguments, what) else { panic!("no object") };
    map.extend(what);
    [("change_media", arguments)]
}

/// Show of three seasons with two episodes each; only the first season is monitored, and it is on disk.
fn the_bear() -> FakeSeries {
    let show = series("The Bear").year(2022).seasons(3).episodes(6).size_gb(6.0).missing(4);
    show.unmonitored_season(2).unmonitored_season(3)
}

/// The same show, still running: the second episode of the last season is in the future.
fn running(app: &TestApp) -> FakeSeries {
    let next = app.now() + SignedDuration::from_hours(24 * 30);
    the_bear().airs(3, 2, next)
}

#[tokio::test]
async fn movie_is_added_only_to_the_named_folder() {
    let app = TestApp::start().await;
    let heat = app.radarr().add_to_catalog(movie("The Heat").year(1995));
    app.radarr().add_root_folder("/mnt/big/movies-kids", Some(9_000_000_000_000));
    app.radarr().add_root_folder("/mnt/big/anime", Some(1));
    let add = |folder: &str| [("add_movie", json!({ "tmdb": heat, "folder": folder }))];
    assert_eq!(
        app.asks("put heat with the cartoons", &add("cartoons")).await,
        "Which folder: movies, movies-kids and anime?"
    );
    assert_eq!(app.radarr().post_count(), 0);
    assert_eq!(app.asks("with the movies", &add("movies")).await, "Added The Heat (1995).");
    let path = app.radarr().title(1).unwrap().path;
    assert_eq!(path, "/movies/The Heat (1995)");
}

#[tokio::test]
async fn long_show_is_added_for_future_or_pilot_without_a_question() {
    for (seasons, reply, wanted, new_seasons) in [
        ("future", "Added The Office (US) (2005), only what is still to come.", vec![(9, 2)], true),
        ("pilot", "Added The Office (US) (2005), only the first episode.", vec![(1, 1)], false),
    ] {
        let app = TestApp::start().await;
        let next = app.now() + SignedDuration::from_hours(48);
        let office = series("The Office (US)").year(2005).seasons(9).episodes(18).airs(9, 2, next);
        let tvdb = app.sonarr().add_to_catalog(office);
        let add = [("add_series", json!({ "tvdb": tvdb, "seasons": seasons }))];
        assert_eq!(app.asks("add the office", &add).await, reply);
        assert_eq!(app.wanted(1), wanted);
        assert_eq!(app.sonarr().title(1).unwrap().details.new_seasons, new_seasons);
    }
}

#[tokio::test]
async fn show_is_added_as_anime_on_request() {
    let app = TestApp::start().await;
    let bleach = app.sonarr().add_to_catalog(series("The Bleach").year(2004).seasons(1));
    let news = app.sonarr().add_to_catalog(series("The News").year(2010).seasons(1).daily());
    app.asks("add bleach, it is anime", &[("add_series", json!({ "tvdb": bleach, "anime": true }))]).await;
    app.asks("add the news", &[("add_series", json!({ "tvdb": news }))]).await;
    let kinds = [1, 2].map(|id| app.sonarr().title(id).unwrap().details.series_type);
    assert_eq!(kinds, ["anime", "daily"]);
}

#[tokio::test]
async fn season_of_an_existing_show_is_monitored_and_searched() {
    let app = TestApp::start().await;
    let bear = app.sonarr().add(the_bear());
    app.sonarr().add_release("The Bear S02");
    assert_eq!(
        app.asks("get season 2 of the bear", &get(bear, &json!([2]))).await,
        "Looking for season 2 of The Bear (2022) now."
    );
    assert_eq!(app.wanted(bear), [(1, 1), (1, 2), (2, 1), (2, 2)]);
    assert_eq!(app.sonarr().action_record().searches, ["The Bear S02"]);
    assert_eq!(app.sms("status").await, "The Bear season 2 0%, 30 min left.");
}

#[tokio::test]
async fn episodes_and_future_seasons_are_monitored_without_the_rest() {
    let app = TestApp::start().await;
    let bear = app.sonarr().add(running(&app));
    assert_eq!(
        app.asks("get s02e01 of the bear", &get(bear, &json!(["S02E01"]))).await,
        "Looking for S02E01 of The Bear (2022) now."
    );
    assert_eq!(app.wanted(bear), [(1, 1), (1, 2), (2, 1)]);
    assert_eq!(
        app.asks("and whatever is new of it", &get(bear, &json!("future"))).await,
        "New episodes of The Bear (2022) will be fetched as they air."
    );
    assert_eq!(app.wanted(bear), [(1, 1), (1, 2), (2, 1), (3, 2)]);
    assert_eq!(app.sonarr().action_record().searches, ["The Bear S02E01"]);
    assert_eq!(
        app.asks("season 3 too", &get(bear, &json!(["3"]))).await,
        "Looking for season 3 of The Bear (2022) now. Episodes still to come are fetched as they air."
    );
}

#[tokio::test]
async fn season_of_an_unmonitored_show_is_monitored_alone() {
    let app = TestApp::start().await;
    let bear = app.sonarr().add(series("The Bear").year(2022).seasons(3).episodes(6).unmonitored());
    app.asks("get season 3 of the bear", &get(bear, &json!([3]))).await;
    assert!(app.sonarr().title(bear).unwrap().monitored);
    assert_eq!(app.wanted(bear), [(3, 1), (3, 2)]);
}

#[tokio::test]
async fn seasons_on_disk_are_not_searched() {
    let app = TestApp::start().await;
    let bear = app.sonarr().add(the_bear());
    assert_eq!(
        app.asks("get season 1 of the bear", &get(bear, &json!("1"))).await,
        "You already have season 1 of The Bear (2022)."
    );
    app.sonarr().edit(bear, |show| show.details.seasons[0].monitored = false);
    assert_eq!(
        app.asks("get s01e01", &get(bear, &json!(["1x01"]))).await,
        "You already have S01E01 of The Bear (2022)."
    );
    assert_eq!(
        app.asks("get more of the bear", &get(bear, &json!([]))).await,
        "Of The Bear (2022), seasons 2 and 3 can be fetched as well. Which ones do you want?"
    );
    app.asks("season 7 then", &get(bear, &json!([7]))).await;
    assert!(app.results().last().unwrap().contains("numbers from 1 to 3"));
    assert_eq!(app.sonarr().post_count(), 0);
}

#[tokio::test]
async fn more_than_three_seasons_need_an_explicit_request() {
    let app = TestApp::start().await;
    let office = series("The Office (US)").year(2005).seasons(9).episodes(18);
    let office = (1..=9).fold(office, FakeSeries::unmonitored_season);
    let office = app.sonarr().add(office);
    assert_eq!(
        app.asks("get the office", &get(office, &json!("all"))).await,
        "The Office (US) (2005) has 9 seasons. Which ones: all, first, latest, or numbers?"
    );
    assert_eq!(app.sonarr().post_count(), 0);
    assert_eq!(
        app.asks("all of them", &get(office, &json!("all"))).await,
        "Looking for seasons 1, 2, 3, 4, 5, 6, 7, 8 and 9 of The Office (US) (2005) now."
    );
    assert_eq!(app.wanted(office).len(), 18);
    assert_eq!(app.sonarr().action_record().searches, ["The Office (US) missing"]);
}

#[tokio::test]
async fn more_seasons_count_once_towards_the_quota() {
    let app = TestApp::with(|settings| {
        settings.quotas.seasons = Some(RateLimit { max: 2, period: SignedDuration::from_hours(7 * 24) });
    })
    .await;
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    let bear = app.sonarr().add(the_bear());
    let dark = app.sonarr().add(series("The Dark").year(2017).seasons(1).unmonitored_season(1));
    app.sonarr().complete_next_write_with_status(500);
    assert_eq!(
        app.is_asked_by(BOB, "season 2 of the bear", &get(bear, &json!([2]))).await,
        "Looking for season 2 of The Bear (2022) now."
    );
    // A search that is already running is started again without a charge.
    app.is_asked_by(BOB, "again", &get(bear, &json!([2]))).await;
    app.is_asked_by(BOB, "season 3 of the bear", &get(bear, &json!([3]))).await;
    assert_eq!(
        app.is_asked_by(BOB, "season 1 of dark", &get(dark, &json!([1]))).await,
        "That is over your limit of 2 seasons within 7 days. There is room again on Fri Nov 27 at 21:04. Ask Ann if \
         you need more."
    );
    assert_eq!(
        app.is_asked_by(BOB, "then monitor it", &change(dark, json!({ "monitored": true, "seasons": [1] })))
            .await,
        "That is over your limit of 2 seasons within 7 days. There is room again on Fri Nov 27 at 21:04. Ask Ann if \
         you need more."
    );
    assert_eq!(app.wanted(dark), []);
}

#[tokio::test]
async fn missing_titles_are_searched_again() {
    let app = TestApp::start().await;
    let heat = app.radarr().add(movie("The Heat").year(1995));
    let dune = app.radarr().add(movie("The Dune").year(2026).unreleased().unmonitored());
    let bear = app.sonarr().add(series("The Bear").year(2022).seasons(1).size_gb(8.0).missing(2));
    let again = |kind: &str, id: i64| [("get_more", json!({ "type": kind, "id": id }))];
    assert_eq!(
        app.asks("look for heat again", &again("movie", heat)).await,
        "Looking for The Heat (1995) now."
    );
    assert_eq!(
        app.asks("and dune", &again("movie", dune)).await,
        "Looking for The Dune (2026) now. It is not out yet, so there may be nothing to find."
    );
    assert!(app.radarr().title(dune).unwrap().monitored);
    assert_eq!(
        app.asks("and the bear", &again("series", bear)).await,
        "Looking again for 2 missing episodes of The Bear (2022)."
    );
    assert_eq!(app.radarr().action_record().searches, ["The Heat", "The Dune"]);
    assert_eq!(app.sonarr().action_record().searches, ["The Bear missing"]);
}

#[tokio::test]
async fn search_with_a_lost_response_is_not_repeated() {
    let app = TestApp::start().await;
    let heat = app.radarr().add(movie("The Heat").year(1995));
    app.radarr().complete_next_write_with_status(504);
    assert_eq!(
        app.asks("look for heat", &[("get_more", json!({ "type": "movie", "id": heat }))]).await,
        "Looking for The Heat (1995) now."
    );
    assert_eq!(app.radarr().action_record().searches, ["The Heat"]);
}

/// Starts with a first write to Sonarr whose response is lost.
async fn world_with_a_lost_write(what: &[(&str, Value)]) -> World {
    let world = World::start().await;
    world.sonarr().add(the_bear().profile("SD"));
    world.sonarr().drop_next_write_response();
    let found = calls("find_in_library", json!({ "query": "the bear" }));
    let made = what.iter().map(|(tool, arguments)| calls(tool, arguments.clone()));
    world.model_plays([found].into_iter().chain(made).chain([says(""), says("")]));
    world.texts("more of the bear").await;
    world.pass(5).await;
    world
}

#[tokio::test(start_paused = true)]
async fn season_request_interrupted_by_a_crash_runs_once() {
    let mut world = world_with_a_lost_write(&get(1, &json!([2]))).await;
    world.kill().await;
    assert_eq!(world.sonarr().action_record().searches, Vec::<String>::new());
    world.start_again().await;
    world.pass(60).await;
    assert_eq!(world.sent_texts(), ["Looking for season 2 of The Bear (2022) now."]);
    assert_eq!(world.sonarr().title(1).unwrap().monitored_episodes(), [(1, 1), (1, 2), (2, 1), (2, 2)]);
    assert_eq!(world.sonarr().action_record().searches, ["The Bear S02"]);
    assert_eq!(world.sonarr().post_count(), 2);
}

#[tokio::test(start_paused = true)]
async fn change_with_a_lost_response_is_verified_and_reported() {
    let world =
        world_with_a_lost_write(&change(1, json!({ "monitored": false, "quality": "HD-1080p" }))).await;
    world.pass(60).await;
    let reply = "The Bear (2022): it is not looked for, the quality is HD-1080p.";
    assert_eq!(world.sent_texts(), ["Still working on it.", reply]);
    assert_eq!(world.sonarr().post_count(), 1);
}

#[tokio::test]
async fn failed_search_is_reported_and_the_season_stays_monitored() {
    let app = TestApp::start().await;
    let bear = app.sonarr().add(the_bear());
    let kept = app.sonarr().clone();
    // The first changing request writes the flags, and the second one is the search.
    kept.complete_next_write_with_status(202);
    kept.complete_next_write_with_status(500);
    assert_eq!(
        app.asks("get season 2 of the bear", &get(bear, &json!([2]))).await,
        "The Bear (2022): season 2 will be fetched from now on, but Sonarr did not start the search."
    );
    assert_eq!(app.wanted(bear), [(1, 1), (1, 2), (2, 1), (2, 2)]);
}

#[tokio::test]
async fn unreachable_library_is_named_without_a_claim() {
    let app = TestApp::start().await;
    let bear = app.sonarr().add(the_bear());
    app.asks("the bear?", &[]).await;
    app.sonarr().set_down(true);
    for call in [get(bear, &json!([2])), change(bear, json!({ "monitored": false }))] {
        app.model_plays([calls(call[0].0, call[0].1.clone()), says(""), says("")]);
        assert_eq!(app.sms("do it").await, "Sonarr can't be reached right now.");
    }
    assert_eq!(app.wanted(bear), [(1, 1), (1, 2)]);
}

#[tokio::test]
async fn monitoring_changes_are_verified_and_reported() {
    let app = TestApp::start().await;
    let bear = app.sonarr().add(running(&app));
    let all = app.sonarr().add(series("The Wire").year(2002).seasons(2).episodes(4));
    for (id, what, reply, wanted) in [
        (
            all,
            json!({ "monitored": false, "seasons": [1] }),
            "The Wire (2002): season 1 is not looked for.",
            vec![(2, 1), (2, 2)],
        ),
        (
            all,
            json!({ "monitored": false, "seasons": ["S02E01"] }),
            "The Wire (2002): S02E01 is not looked for.",
            vec![(2, 2)],
        ),
        (
            bear,
            json!({ "monitored": true, "seasons": ["2", "3"] }),
            "The Bear (2022): seasons 2 and 3 are looked for.",
            vec![(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)],
        ),
        (
            bear,
            json!({ "only_future": true }),
            "The Bear (2022): only episodes still to come are looked for.",
            vec![(3, 2)],
        ),
    ] {
        assert_eq!(app.asks("change the show", &change(id, what)).await, reply);
        assert_eq!(app.wanted(id), wanted);
    }
    assert_eq!(app.sonarr().action_record().searches, Vec::<String>::new());
}

#[tokio::test]
async fn settings_of_a_title_are_changed_in_one_request() {
    let app = TestApp::start().await;
    app.sonarr().set_profiles(&["HD-1080p", "Ultra-HD"]);
    let bear = app.sonarr().add(the_bear());
    let what = json!({ "quality": "ultra hd", "anime": true, "new_seasons": false, "monitored": false });
    let reply = "The Bear (2022): it is not looked for, the quality is Ultra-HD, it is anime, new seasons are not fetched.";
    assert_eq!(app.asks("change the bear", &change(bear, what.clone())).await, reply);
    let show = app.sonarr().title(bear).unwrap();
    assert_eq!(
        (show.monitored, show.profile.as_str(), show.details.series_type, show.details.new_seasons),
        (false, "Ultra-HD", "anime", false)
    );
    assert_eq!(app.asks("once more", &change(bear, what)).await, reply);
    assert_eq!(app.sonarr().post_count(), 1);

    let heat = app.radarr().add(movie("The Heat").year(1995));
    let what = json!({ "type": "movie", "id": heat, "monitored": false, "quality": "Ultra-HD" });
    app.radarr().complete_next_write_with_status(500);
    assert_eq!(
        app.asks("stop looking for heat", &[("change_media", what)]).await,
        "The Heat (1995): it is not looked for, the quality is Ultra-HD."
    );
    let film = app.radarr().title(heat).unwrap();
    assert_eq!((film.monitored, film.profile.as_str()), (false, "Ultra-HD"));
    assert_eq!(app.radarr().post_count(), 1);
}

#[tokio::test]
async fn without_the_right_to_add_titles_are_not_changed() {
    let app = TestApp::start().await;
    app.register_user(ANN, Has::NoRights).await;
    let bear = app.sonarr().add(the_bear());
    for call in [get(bear, &json!([2])), change(bear, json!({ "monitored": false }))] {
        assert_eq!(app.asks("please", &call).await, "You can't add titles here. Please ask an admin.");
    }
    assert_eq!(app.sonarr().post_count(), 0);
}

#[tokio::test]
async fn four_k_library_needs_the_right_and_is_named() {
    let four_k = FakeRadarr::new();
    let app = TestApp::start_with_four_k(&four_k).await;
    let heat = four_k.add(movie("The Heat").year(1995));
    let bear = app.sonarr().add(the_bear());
    app.register_user(ANN, Has::AddRight).await;
    let look = |arguments: Value| [("get_more", arguments)];
    let in_four_k = json!({ "type": "movie", "id": heat, "instance": "radarr-4k" });
    assert_eq!(
        app.asks("look for heat in 4k", &look(in_four_k.clone())).await,
        "You can't add titles in 4K. Please ask an admin."
    );
    app.register_user(ANN, Has::EveryRight).await;
    let unnamed = look(json!({ "type": "movie", "id": heat }));
    app.asks("look for heat", &unnamed).await;
    assert!(app.results().last().unwrap().contains("shown with the instance radarr-4k"));
    assert_eq!(four_k.post_count(), 0);
    assert_eq!(app.asks("in 4k", &look(in_four_k)).await, "Looking for The Heat (1995) now.");
    assert_eq!(
        app.asks("and the bear", &get(bear, &json!([2]))).await,
        "Looking for season 2 of The Bear (2022) now."
    );
}

#[tokio::test]
async fn model_request_of_a_ping_is_below_8_kb() {
    let app = TestApp::start().await;
    app.model_plays([says("pong")]);
    app.sms("ping").await;
    let size = app.last_request().byte_size();
    assert!(size < 8_192, "{size}");
}

#[tokio::test]
async fn user_who_requests_more_follows_it() {
    let app = TestApp::start().await;
    let bear = app.sonarr().add(the_bear().tvdb(403_294));
    let heat = app.radarr().add(movie("The Heat").year(1995).tmdb(949));
    app.asks("get season 2 of the bear", &get(bear, &json!(["2"]))).await;
    app.asks("look for the heat again", &[("get_more", json!({ "type": "movie", "id": heat }))]).await;
    assert_eq!(
        app.follows().await,
        [format!("{ANN} sonarr series 403294 season 2"), format!("{ANN} radarr movie 949")]
    );
}

#[tokio::test]
async fn more_of_a_show_without_regular_seasons_monitors_new_seasons() {
    for seasons in [json!(["all"]), json!(["latest"]), json!([1])] {
        let app = TestApp::start().await;
        let mut show = series("The Testaments").year(2027).seasons(0);
        show.details.new_seasons = false;
        let id = app.sonarr().add(show);
        assert_eq!(
            app.asks("get the testaments", &get(id, &seasons)).await,
            "New episodes of The Testaments (2027) will be fetched as they air."
        );
        assert!(app.sonarr().title(id).unwrap().details.new_seasons, "{seasons}");
    }
}

#[tokio::test]
async fn specials_are_monitored_and_unmonitored_with_their_season() {
    let app = TestApp::start().await;
    let bear = app.sonarr().add(series("The Bear").year(2022).seasons(1).episodes(1).specials(2));
    let specials = || app.sonarr().title(bear).unwrap().details.specials_monitored;
    assert_eq!(
        app.asks("get the specials of the bear", &get(bear, &json!([0]))).await,
        "Looking for the specials of The Bear (2022) now."
    );
    assert_eq!((specials(), app.wanted(bear)), (true, vec![(1, 1), (0, 1), (0, 2)]));
    assert_eq!(
        app.asks("no specials", &change(bear, json!({ "monitored": false, "seasons": ["0"] }))).await,
        "The Bear (2022): the specials are not looked for."
    );
    assert_eq!((specials(), app.wanted(bear)), (false, vec![(1, 1)]));
}

#[tokio::test]
async fn profile_that_allows_4k_needs_the_right_in_every_tool() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::AddRight).await;
    app.radarr().set_profiles(&["HD-1080p", "Best"]);
    app.radarr().allow_four_k("Best");
    app.sonarr().set_profiles(&["HD-1080p", "Best"]);
    app.sonarr().allow_four_k("Best");
    let heat = app.radarr().add_to_catalog(movie("The Heat").year(1995));
    let wire = app.sonarr().add_to_catalog(series("The Wire").year(2002).seasons(1));
    let matrix = app.radarr().add(movie("The Matrix").year(1999));
    let bear = app.sonarr().add(series("The Bear").year(2022).seasons(1));
    let of_matrix = json!({ "type": "movie", "id": matrix, "quality": "Best" });
    for call in [
        ("add_movie", json!({ "tmdb": heat, "quality": "Best" })),
        ("add_series", json!({ "tvdb": wire, "quality": "best" })),
        ("change_media", of_matrix.clone()),
        ("change_media", json!({ "type": "series", "id": bear, "quality": "Best" })),
    ] {
        let reply = app.is_asked_by(BOB, "in the best quality", std::slice::from_ref(&call)).await;
        assert_eq!(reply, "You can't add titles in 4K. Please ask an admin.", "{call:?}");
    }
    assert_eq!((app.radarr().post_count(), app.sonarr().post_count()), (0, 0));
    assert_eq!(
        app.asks("the matrix in the best quality", &[("change_media", of_matrix)]).await,
        "The Matrix (1999): the quality is Best."
    );
}
