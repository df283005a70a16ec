//! Property of caps on age ratings: over generated libraries and ratings, no tool, notification and no recalled answer
//! brings a title over a cap to a person with the cap, nor into the requests of this person to the model.

use std::sync::Arc;

use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::conversation::rating_caps::{MinimumAge, RatingCaps};
use dialarr::conversation::transcript::PhoneNumber;
use dialarr::conversation::viewer_accounts::{MediaServerKind, ViewerAccount, WatchSharing};
use dialarr::discovery::fake::{FakeCatalog, FakeEntry};
use dialarr::media_servers::CatalogIds;
use dialarr::media_servers::fake::FakeJellyfin;
use dialarr::store::audit::Actor;
use dialarr::store::people::{age_limits, users, viewer_accounts};
use jiff::SignedDuration;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::harness::model::{calls, request_text, says};
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

/// Ratings of movies with their ages; `None` without an age.
const MOVIE_RATINGS: [(&str, Option<u8>); 7] = [
    ("G", Some(0)),
    ("PG", Some(10)),
    ("PG-13", Some(13)),
    ("R", Some(17)),
    ("NC-17", Some(18)),
    ("NR", None),
    ("", None),
];
const SHOW_RATINGS: [(&str, Option<u8>); 6] = [
    ("TV-Y", Some(0)),
    ("TV-PG", Some(10)),
    ("TV-14", Some(14)),
    ("TV-MA", Some(17)),
    ("12", None),
    ("", None),
];
const MOVIES: usize = 8;
const SHOWS: usize = 5;

/// Generated household: the rating of each title, whether the library has it, and the caps of Bob.
#[derive(Debug, Clone)]
struct Generated {
    movies: Vec<(usize, bool)>,
    shows: Vec<(usize, bool)>,
    caps: (Option<u8>, Option<u8>),
}

fn generated() -> impl Strategy<Value = Generated> {
    let titles = |ratings: usize, count| prop::collection::vec((0..ratings, any::<bool>()), count);
    let caps = (prop::option::weighted(0.9, 0_u8..18), prop::option::weighted(0.9, 0_u8..18));
    let caps = caps.prop_filter("at least one cap", |caps| caps.0.is_some() || caps.1.is_some());
    (titles(MOVIE_RATINGS.len(), MOVIES), titles(SHOW_RATINGS.len(), SHOWS), caps)
        .prop_map(|(movies, shows, caps)| Generated { movies, shows, caps })
}

/// Name of a title, which occurs nowhere else.
fn movie_name(index: usize) -> String {
    format!("Qumovie{index}x")
}

fn show_name(index: usize) -> String {
    format!("Qushow{index}x")
}

fn tmdb(index: usize) -> i64 {
    70_000 + i64::try_from(index).unwrap()
}

fn tvdb(index: usize) -> i64 {
    80_000 + i64::try_from(index).unwrap()
}

impl Generated {
    /// Returns the names of the titles that Bob must not read.
    fn hidden(&self) -> Vec<String> {
        let is_over =
            |cap: Option<u8>, age: Option<u8>| cap.is_some_and(|cap| age.is_none_or(|age| age > cap));
        let movies = self.movies.iter().enumerate();
        let movies = movies.filter(|(_, (rating, _))| is_over(self.caps.0, MOVIE_RATINGS[*rating].1));
        let shows = self.shows.iter().enumerate();
        let shows = shows.filter(|(_, (rating, _))| is_over(self.caps.1, SHOW_RATINGS[*rating].1));
        movies.map(|(index, _)| movie_name(index)).chain(shows.map(|(index, _)| show_name(index))).collect()
    }
}

/// Starts a household with the generated titles, on which Ann, an admin, and Bob have accounts at the media server.
async fn start(generated: &Generated) -> TestApp {
    let catalog = FakeCatalog::default();
    let all: Vec<i64> = (0..MOVIES).map(tmdb).collect();
    for index in 0..MOVIES {
        catalog.add(FakeEntry::movie((&movie_name(index), 2000), tmdb(index)).similar_to(&all));
    }
    let app = Setup::default()
        .tmdb(catalog)
        .jellyfin()
        .with(|settings| (settings.watch_sharing, settings.rate_limit) = (WatchSharing::Household, None))
        .start()
        .await;
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    let viewers = [app.jellyfin().add_user("ann"), app.jellyfin().add_user("bob")];
    for (index, (rating, is_owned)) in generated.movies.iter().enumerate() {
        let title = movie(&movie_name(index)).year(2000).tmdb(tmdb(index)).genres(&["Drama"]);
        let title = match MOVIE_RATINGS[*rating].0 {
            "" => title,
            certification => title.certification(certification),
        };
        if !is_owned {
            app.radarr().add_popular(title);
            continue;
        }
        app.radarr().add(title.size_gb(2.0));
        app.radarr().add_import(&movie_name(index), app.now());
        let ids = CatalogIds { tmdb: Some(tmdb(index)), ..CatalogIds::default() };
        let item = app.jellyfin().add_movie((&movie_name(index), 2000), ids, SignedDuration::ZERO);
        viewers.iter().for_each(|viewer| app.jellyfin().watch(*viewer, item, 100));
    }
    for (index, (rating, is_owned)) in generated.shows.iter().enumerate() {
        let title = series(&show_name(index)).year(2001).tvdb(tvdb(index)).genres(&["Drama"]);
        let title = match SHOW_RATINGS[*rating].0 {
            "" => title,
            certification => title.certification(certification),
        };
        if *is_owned {
            app.sonarr().add(title.size_gb(3.0).missing(1));
            app.sonarr().add_download(&format!("{} S01E08", show_name(index)), 40, 10);
        } else {
            app.sonarr().add_to_catalog(title);
        }
    }
    for (phone, viewer, name) in [(ANN, viewers[0], "ann"), (BOB, viewers[1], "bob")] {
        let account = ViewerAccount {
            server: MediaServerKind::Jellyfin,
            id: FakeJellyfin::user_id(viewer),
            name: name.to_owned(),
        };
        let (phone, now) = (PhoneNumber::parse(phone).unwrap(), app.now());
        let link = move |conn: &mut _| {
            let user = users::find_user_by_phone(conn, &phone)?.unwrap();
            viewer_accounts::link_account(conn, user.id, &account, Actor::Shell, now).map(drop)
        };
        app.app().db.write(link).await.unwrap();
    }
    app
}

/// Returns calls of every tool that reads, with the ids of every title.
fn tool_calls() -> Vec<(&'static str, Value)> {
    let mut all = vec![
        ("find_in_library", json!({})),
        ("find_in_library", json!({ "sort": "newest" })),
        ("find_in_library", json!({ "only": "missing" })),
        ("find_in_library", json!({ "genre": "drama" })),
        ("check_status", json!({})),
        ("server_status", json!({})),
        ("upcoming", json!({ "days": 30 })),
        ("recently_added", json!({ "days": 30 })),
        ("recommend", json!({})),
        ("recommend", json!({ "trending": true })),
        ("recommend", json!({ "in_library": true })),
        ("recently_watched", json!({})),
        ("recently_watched", json!({ "by": "Ann" })),
    ];
    for index in 0..MOVIES {
        all.push(("search_media", json!({ "query": movie_name(index) })));
        all.push(("find_in_library", json!({ "query": movie_name(index) })));
        all.push(("recommend", json!({ "like": movie_name(index) })));
        all.push(("send_poster", json!({ "tmdb": tmdb(index) })));
        all.push(("media_details", json!({ "type": "movie", "id": index + 1 })));
        all.push(("why_missing", json!({ "type": "movie", "id": index + 1 })));
    }
    for index in 0..SHOWS {
        all.push(("search_media", json!({ "query": show_name(index) })));
        all.push(("find_in_library", json!({ "query": show_name(index) })));
        all.push(("media_details", json!({ "type": "series", "id": index + 1 })));
        all.push(("why_missing", json!({ "type": "series", "id": index + 1 })));
    }
    all
}

async fn check(generated: &Generated) -> Result<(), TestCaseError> {
    let app = start(generated).await;
    let hidden = generated.hidden();
    // Answers to everybody and to Bob from before the caps, which recall would find.
    for phone in [ANN, BOB] {
        app.model_plays([calls("find_in_library", json!({})), says("Those are all of them.")]);
        app.sms_from(phone, "which titles do we have?").await;
    }
    let (movies, shows) = generated.caps;
    let caps = RatingCaps { movies: movies.map(MinimumAge), shows: shows.map(MinimumAge) };
    let (phone, now) = (PhoneNumber::parse(BOB).unwrap(), app.now());
    let set = move |conn: &mut _| {
        let bob = users::find_user_by_phone(conn, &phone)?.unwrap();
        age_limits::set_rating_caps(conn, bob.id, caps, now)
    };
    app.app().db.write(set).await.unwrap();
    let (requests, texts) = (app.model().request_count(), app.messages_to(BOB).len());
    for batch in tool_calls().chunks(4) {
        let lines = batch.iter().map(|(tool, arguments)| calls(tool, arguments.clone()));
        app.model_plays(lines.chain([says("Fine.")]));
        app.sms_from(BOB, "which titles do we have now?").await;
    }
    app.model().replace_script(Vec::new());
    let sent = app.messages_to(BOB).split_off(texts).join("\n");
    let seen: Vec<String> = app.model().requests()[requests..].iter().map(request_text).collect();
    prop_assert!(seen.len() > tool_calls().len(), "{} requests", seen.len());
    for name in (0..MOVIES).map(movie_name).filter(|name| !hidden.contains(name)) {
        prop_assert!(seen.iter().any(|request| request.contains(&name)), "{name} was not found");
    }
    for name in &hidden {
        prop_assert!(!sent.contains(name), "{name} was texted");
        prop_assert!(!seen.iter().any(|request| request.contains(name)), "{name} was in a request");
    }
    Ok(())
}

/// Lets every title of the library arrive or come out, and reads the digests of Bob and the answers to their numbers.
async fn check_digest(generated: &Generated) -> Result<(), TestCaseError> {
    let app = start(generated).await;
    // The first reading of the history stores its start.
    app.later(0).await;
    for index in (0..MOVIES).filter(|index| generated.movies[*index].1) {
        let name = movie_name(index);
        app.radarr().download_and_import(&name);
        app.receive_event("radarr", &app.radarr().import_event_json(&name)).await;
        app.radarr().add_calendar_entry(&name, jiff::civil::date(2026, 11, 24));
    }
    for index in (0..SHOWS).filter(|index| generated.shows[*index].1) {
        let name = show_name(index);
        app.sonarr().download_and_import(&format!("{name} S01E08"));
        app.receive_event("sonarr", &app.sonarr().import_event_json(&format!("{name} S01E08"))).await;
        app.sonarr().add_calendar_entry(&format!("{name} S01E09"), "2026-11-23T20:00:00Z".parse().unwrap());
    }
    let (movies, shows) = generated.caps;
    let caps = RatingCaps { movies: movies.map(MinimumAge), shows: shows.map(MinimumAge) };
    let phone = PhoneNumber::parse(BOB).unwrap();
    app.sms_from(BOB, "digest friday 22").await;
    // A digest from before the caps, whose numbers are answered after they were set.
    app.sms_from(BOB, "digest").await;
    app.later(0).await;
    let (before, now) = (app.messages_to(BOB).len(), app.now());
    let set = move |conn: &mut _| {
        let bob = users::find_user_by_phone(conn, &phone)?.unwrap();
        age_limits::set_rating_caps(conn, bob.id, caps, now)
    };
    app.app().db.write(set).await.unwrap();
    app.model_plays([says("I don't know.")]);
    app.sms_from(BOB, "1").await;
    app.model().replace_script(Vec::new());
    app.later(60 * 60).await;
    for number in 1..=9 {
        app.model_plays([says("I don't know.")]);
        app.sms_from(BOB, &number.to_string()).await;
        app.model().replace_script(Vec::new());
        app.sms_from(BOB, "digest").await;
        app.later(0).await;
    }
    let sent = app.messages_to(BOB).split_off(before).join("\n");
    for name in generated.hidden() {
        prop_assert!(!sent.contains(&name), "{name} was texted: {sent}");
    }
    Ok(())
}

#[test]
fn no_digest_names_a_title_over_a_cap_of_its_reader() {
    let mut runner = TestRunner::new(Config { cases: 8, failure_persistence: None, ..Config::default() });
    let runtime =
        Arc::new(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap());
    runner.run(&generated(), |generated| runtime.block_on(check_digest(&generated))).unwrap();
}

#[test]
fn nothing_over_a_cap_reaches_a_person_with_the_cap() {
    let mut runner = TestRunner::new(Config { cases: 8, failure_persistence: None, ..Config::default() });
    let runtime =
        Arc::new(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap());
    runner.run(&generated(), |generated| runtime.block_on(check(&generated))).unwrap();
}
