//! Titles of a user with the space that they hold: the list, the removal by its numbers, and the limit.

use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::media_servers::CatalogIds;
use dialarr::store::library::quotas::{self, QuotaOverride};
use dialarr::store::people::users;
use diesel::RunQueryDsl;
use jiff::SignedDuration;
use serde_json::json;

use crate::harness::model::{adds_movie, calls, offered, removes, says};
use crate::harness::world::World;
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

const ALIEN: i64 = 348;
const HEAT: i64 = 949;
const DARK: i64 = 334_824;
const LIST: &str = "Your 3 titles hold 60.2 GB of the 72.2 GB in the library.\n1. Dark (2017), 30 GB\n\
    2. Heat (1995), 18.2 GB\n3. Alien (1979), 12 GB\n";
const OVER_LIMIT: &str = "Your titles hold 60.2 of 50 GB. Text MY SPACE to see them, or ask Ann for more.";

/// Household of Ann, an admin, and Bob, a member. Three of the four titles are those of Bob.
async fn start(setup: Setup) -> TestApp {
    let app = setup.start().await;
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    let radarr = app.radarr();
    radarr.add(movie("Alien").id(9).tmdb(ALIEN).year(1979).size_gb(12.0));
    radarr.add(movie("Heat").id(8).tmdb(HEAT).year(1995).size_gb(18.2));
    radarr.add(movie("Dune").id(7).tmdb(438_631).year(2021).size_gb(12.0));
    radarr.add_to_catalog(movie("Arrival").year(2016).tmdb(329_865));
    app.sonarr().add(series("Dark").id(4).tvdb(DARK).year(2017).seasons(1).episodes(10).size_gb(30.0));
    for title in ["'radarr', 'movie', 348", "'radarr', 'movie', 949", "'sonarr', 'series', 334824"] {
        attribute(&app, "Bob", title).await;
    }
    app
}

async fn start_without_model() -> TestApp {
    start(Setup::default().keyword_responder()).await
}

/// Lets a title count toward the space of a user, as after a request.
async fn attribute(app: &TestApp, name: &str, title: &str) {
    let insert = format!(
        "INSERT INTO title_attributions (user_id, instance, kind, catalog_id, first_requested_at) \
         SELECT id, {title}, 1 FROM users WHERE display_name = '{name}'"
    );
    app.app().db.write(move |conn| diesel::sql_query(&insert).execute(conn)).await.unwrap();
}

/// Returns the titles that count toward the space of each user: `Bob 348`.
async fn attributed(app: &TestApp) -> Vec<String> {
    let query = "SELECT display_name || ' ' || catalog_id AS line FROM title_attributions \
        JOIN users ON users.id = user_id ORDER BY line";
    app.lines(query).await
}

async fn limit_bob(app: &TestApp, gigabytes: u32) {
    let now = app.now();
    let limit = move |conn: &mut _| {
        let bob = users::load_known_users(conn)?.into_iter().find(|user| user.name.as_deref() == Some("Bob"));
        let quota = QuotaOverride { space_gb: Some(gigabytes), ..QuotaOverride::default() };
        quotas::store_quota_override(conn, bob.unwrap().id, quota, now)
    };
    app.app().db.write(limit).await.unwrap();
}

#[tokio::test]
async fn titles_of_a_person_are_listed_the_largest_first() {
    let app = start_without_model().await;
    let expected = format!("{LIST}Text DROP 1, or DROP 1 2, to ask for their removal.");
    for text in ["my space", "My spce?", "how much space do I use", "what space do my titles take"] {
        assert_eq!(app.sms_from(BOB, text).await, expected, "{text}");
    }
    assert_eq!(app.sms("my space").await, "Nothing that you asked for is in the library.");
}

#[tokio::test]
async fn requested_title_counts_after_its_request_is_erased() {
    let app = start_without_model().await;
    app.sms("add arrival").await;
    let list = "Your 1 title holds 0 MB of the 72.2 GB in the library.\n1. Arrival (2016), not on disk yet\n\
        Text DROP 1 to delete it.";
    assert_eq!(app.sms("my space").await, list);
    app.days_pass(500).await;
    app.run_maintenance().await;
    assert_eq!(app.requests().await, [""; 0]);
    assert_eq!(app.sms("my space").await, list);
}

#[tokio::test]
async fn title_of_two_people_names_the_other_one() {
    let app = start_without_model().await;
    attribute(&app, "Ann", "'radarr', 'movie', 949").await;
    let anns = "Your 1 title holds 18.2 GB of the 72.2 GB in the library.\n\
        1. Heat (1995), 18.2 GB, also asked for by Bob\nText DROP 1 to delete it.";
    assert_eq!(app.sms("my space").await, anns);
    let bobs = app.sms_from(BOB, "my space").await;
    assert!(bobs.contains("2. Heat (1995), 18.2 GB, also asked for by Ann\n"), "{bobs}");
}

#[tokio::test]
async fn finished_titles_are_marked_for_their_viewer_alone() {
    let app = start(Setup::default().keyword_responder().jellyfin()).await;
    let jellyfin = app.jellyfin();
    let ids = CatalogIds { tmdb: Some(HEAT), ..CatalogIds::default() };
    let heat = jellyfin.add_movie(("Heat", 1995), ids, SignedDuration::ZERO);
    let viewer = jellyfin.add_user("bobby");
    jellyfin.watch(viewer, heat, 100);
    let unmarked = app.sms_from(BOB, "my space").await;
    assert!(unmarked.contains("2. Heat (1995), 18.2 GB\n"), "{unmarked}");
    app.sms_from(BOB, "link jellyfin bobby").await;
    let (_, code) =
        app.last_to(ANN).split_once("APPROVE ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    app.sms(&format!("approve {}", &code[..4])).await;

    let marked = app.sms_from(BOB, "my space").await;

    assert!(marked.contains("2. Heat (1995), 18.2 GB, finished in "), "{marked}");
    assert!(marked.contains("1. Dark (2017), 30 GB\n"), "{marked}");
    attribute(&app, "Ann", "'radarr', 'movie', 949").await;
    let anns = app.sms("my space").await;
    assert!(!anns.contains("finished"), "{anns}");
    let private = "SELECT CAST(count(*) AS TEXT) AS line FROM turns WHERE about_viewing = 1";
    assert_eq!(app.lines(private).await, ["1"]);
}

#[tokio::test]
async fn admin_drops_titles_after_the_usual_question() {
    let app = start_without_model().await;
    attribute(&app, "Ann", "'radarr', 'movie', 949").await;
    attribute(&app, "Ann", "'radarr', 'movie', 438631").await;
    let list = app.sms("my space").await;
    assert!(list.ends_with("Text DROP 1, or DROP 1 2, to delete them."), "{list}");

    let prompt = app.sms("drop 1 and 2").await;

    assert_eq!(
        prompt,
        "Delete 2: Heat (1995), 18.2 GB; Dune (2021), 12 GB? Total 30.2 GB. Reply YES 47 or NO."
    );
    assert_eq!(app.radarr().removed_ids(), [0; 0]);
    let report = app.sms("yes 47").await;
    assert!(report.starts_with("Deleted"), "{report}");
    assert_eq!(app.radarr().removed_ids(), [8, 7]);
    assert_eq!(attributed(&app).await, ["Bob 334824", "Bob 348"]);
}

#[tokio::test]
async fn member_asks_the_admins_to_remove_dropped_titles() {
    let app = start_without_model().await;
    app.sms_from(BOB, "my space").await;
    let reply = app.sms_from(BOB, "drop 1 3").await;
    assert_eq!(
        reply,
        "I asked the admins to delete Dark (2017). I'll text you their decision. I asked the admins to delete Alien \
         (1979). I'll text you their decision."
    );
    let request = app.last_to(ANN);
    assert!(request.contains("Bob") && request.contains("Alien (1979)"), "{request}");
    assert_eq!(app.radarr().removed_ids(), [0; 0]);
    let (_, code) = request.split_once("APPROVE ").unwrap();
    app.sms(&format!("approve {}", &code[..4])).await;
    assert_eq!(app.radarr().removed_ids(), [9]);
    assert_eq!(attributed(&app).await, ["Bob 334824", "Bob 949"]);
}

#[tokio::test]
async fn drop_of_an_unknown_number_asks_which_title() {
    let app = start_without_model().await;
    let no_list = "Text MY SPACE first, and then DROP and a number. To delete a title by its name, text REMOVE and the name.";
    assert_eq!(app.sms_from(BOB, "drop 1").await, no_list);
    app.sms_from(BOB, "my space").await;
    let question = "Which one? Text DROP and its number.\n1. Dark (2017)\n2. Heat (1995)\n3. Alien (1979)";
    assert_eq!(app.sms_from(BOB, "drop 2 and 5").await, question);
    let approvals = "SELECT kind AS line FROM approvals";
    assert_eq!(app.lines(approvals).await, [""; 0]);
}

#[tokio::test]
async fn drop_confirms_no_open_question() {
    let app = start_without_model().await;
    app.sms("delete alien").await;
    app.sms("drop 1").await;
    app.sms("drop 9").await;
    assert_eq!(app.radarr().removed_ids(), [0; 0]);
}

#[tokio::test]
async fn model_drops_titles_by_the_ids_of_the_list() {
    let app = start(Setup::default()).await;
    attribute(&app, "Ann", "'radarr', 'movie', 949").await;
    app.model_plays([calls("my_space", json!({})), says("1. Heat, 18.2 GB")]);
    app.sms("what space do my titles take?").await;
    assert!(offered(&app.last_request()).contains(&"my_space"));
    app.model_plays([removes(&json!([{ "type": "movie", "id": 8 }]))]);
    assert_eq!(app.sms("drop 1").await, "Delete Heat (1995) and its file, 18.2 GB? Reply YES or NO.");
}

#[tokio::test]
async fn addition_over_the_space_limit_is_refused() {
    let app =
        start(Setup::default().keyword_responder().with(|settings| settings.quotas.space_gb = Some(50)))
            .await;
    assert_eq!(app.sms_from(BOB, "add arrival").await, OVER_LIMIT);
    assert_eq!(app.radarr().added_ids(), [0; 0]);
    let list = app.sms_from(BOB, "my space").await;
    assert!(
        list.starts_with("Your 3 titles hold 60.2 GB of the 72.2 GB in the library. Your limit is 50 GB.\n")
    );

    app.radarr().remove(8);
    app.pass(120);
    assert!(app.sms_from(BOB, "add arrival").await.starts_with("Added Arrival (2016)"));
}

#[tokio::test]
async fn own_space_limit_of_a_person_replaces_that_of_the_household() {
    let app =
        start(Setup::default().keyword_responder().with(|settings| settings.quotas.space_gb = Some(50)))
            .await;
    limit_bob(&app, 61).await;
    assert!(app.sms_from(BOB, "add arrival").await.starts_with("Added Arrival (2016)"));
    assert!(app.sms("quota bob").await.ends_with("and hold 61 GB."));
    limit_bob(&app, 60).await;
    app.radarr().add_to_catalog(movie("Sicario").year(2015).tmdb(273_481));
    assert_eq!(app.sms_from(BOB, "add sicario").await, OVER_LIMIT.replace("50", "60"));
}

#[tokio::test]
async fn admin_has_no_space_limit() {
    let app =
        start(Setup::default().keyword_responder().with(|settings| settings.quotas.space_gb = Some(1))).await;
    attribute(&app, "Ann", "'radarr', 'movie', 949").await;
    assert!(app.sms("add arrival").await.starts_with("Added Arrival (2016)"));
}

#[tokio::test]
async fn addition_waits_while_the_space_is_unknown() {
    let app =
        start(Setup::default().keyword_responder().with(|settings| settings.quotas.space_gb = Some(50)))
            .await;
    app.sonarr().set_down(true);
    assert_eq!(
        app.sms_from(BOB, "add arrival").await,
        "I can't see right now how much space your titles hold. I'll keep trying for a day and text you."
    );
    assert_eq!(app.radarr().added_ids(), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn deferred_addition_is_refused_over_the_space_limit() {
    let world = World::start().await;
    world.register_user(BOB).await;
    world.radarr().add(movie("Heat").tmdb(HEAT).year(1995).size_gb(18.2));
    world.radarr().add_to_catalog(movie("Alien").year(1979).tmdb(ALIEN));
    let attribute_heat = "INSERT INTO title_attributions SELECT user_id, 'radarr', 'movie', 949, 1 FROM user_addresses \
        WHERE address = '+15550100003'";
    world.damage_rows(attribute_heat).await;
    let [searches, adds] = adds_movie("alien", ALIEN);
    world.model_plays([searches, says("Alien (1979)?"), adds, says("Later.")]);
    world.sms_from(BOB, "search alien").await;
    world.radarr().set_down(true);
    world.sms_from(BOB, "add it").await;
    assert_eq!(world.requests().await, ["+15550100003 queued radarr Alien (1979)"]);
    world.damage_rows("UPDATE users SET space_limit = 18").await;
    world.radarr().set_down(false);
    world.pass(3_600).await;
    let refused = world.messages_to(BOB).pop().unwrap();
    assert!(
        refused.starts_with("I could not add Alien (1979). Your titles hold 18.2 of 18 GB."),
        "{refused}"
    );
    assert_eq!(world.radarr().added_ids(), [0; 0]);
}

#[tokio::test]
async fn user_page_shows_the_space_of_the_requested_titles() {
    let app =
        start(Setup::default().keyword_responder().with(|settings| settings.quotas.space_gb = Some(50)))
            .await;
    app.sms_from(BOB, "my space").await;
    let page = app.browser().await.get("/users/2").await.text();
    assert!(page.contains("Gigabytes of 3 requested titles 60.2 of 50"), "{page}");
    assert!(page.contains("Gigabytes (household: 50)"), "{page}");
}
