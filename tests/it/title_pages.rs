//! Pages about titles: requests, library and posters, and the operator's actions there.

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::arr::fake::posters::FakePoster;
use dialarr::media_servers::CatalogIds;
use diesel::connection::SimpleConnection;
use http::Request;
use http::header::{CONTENT_TYPE, COOKIE, HOST};
use jiff::SignedDuration;
use serde_json::json;

use crate::harness::model::{adds_movie, calls, finds, removes_movie, says};
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

const ALIEN: i64 = 348;
const JPEG: &[u8] = b"\xff\xd8\xff\xe0 a small picture";

/// Starts after Bob asked for Alien.
async fn app_with_request() -> TestApp {
    ask_for_alien(TestApp::start().await).await
}

async fn ask_for_alien(app: TestApp) -> TestApp {
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    app.radarr().add_to_catalog(movie("Alien").year(1979).tmdb(ALIEN));
    let [searches, adds] = adds_movie("Alien", ALIEN);
    app.model_plays([searches, adds, says("OK.")]);
    app.sms_from(BOB, "add alien").await;
    app
}

/// Starts after Bob asked for Alien while Radarr was down.
async fn app_with_waiting_request() -> TestApp {
    let app = TestApp::start().await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    app.radarr().add_to_catalog(movie("Alien").year(1979).tmdb(ALIEN));
    let [searches, adds] = adds_movie("Alien", ALIEN);
    app.model_plays([searches, says("Alien (1979)?"), adds, says("I'll keep trying.")]);
    app.sms_from(BOB, "search alien").await;
    app.radarr().set_down(true);
    app.sms_from(BOB, "yes, add it").await;
    app
}

/// Starts with Dune, of 21.4 GB, in the library.
async fn app_with_dune() -> TestApp {
    let app = TestApp::start().await;
    app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app
}

/// Returns the content type and the content of a poster.
async fn poster(app: &TestApp, path: &str) -> (String, Vec<u8>) {
    let browser = app.browser().await;
    let request = Request::get(format!("http://localhost:3001{path}"))
        .header(HOST, "localhost:3001")
        .header(COOKIE, browser.cookie().unwrap());
    let response = app.ask_console(request.body(bytes::Bytes::new()).unwrap()).await;
    assert_eq!(response.status(), 200);
    let content_type = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
    (content_type, response.into_body().to_vec())
}

#[tokio::test]
async fn request_is_shown_with_its_progress_until_it_is_ready() {
    let app = app_with_request().await;
    let mut browser = app.browser().await;
    browser.get("/requests").await.assert_shows(200, "Alien (1979) Bob");
    browser.get("/requests").await.assert_shows(200, "Searching");

    app.radarr().add_download("Alien", 45, 30);
    browser.get("/requests").await.assert_shows(200, "Downloading 30 min left");
    app.radarr().clear_queue();
    app.radarr().add_stuck_download("Alien", "No files found are eligible for import");
    browser.get("/requests").await.assert_shows(200, "Failed No files found are eligible for import");
    app.radarr().finish_download("Alien");
    app.pass(120);
    browser.get("/requests").await.assert_shows(200, "Ready");
}

#[tokio::test]
async fn pages_tell_whether_a_title_on_disk_plays() {
    let app = ask_for_alien(Setup::default().jellyfin().start().await).await;
    app.radarr().add(movie("Dune").year(2021));
    app.radarr().download_and_import("Alien");
    app.pass(120);
    let mut browser = app.browser().await;
    browser.get("/requests").await.assert_shows(200, "On disk Not on Jellyfin yet");
    let library = browser.get("/library").await;
    library.assert_shows(200, "Alien (1979) On disk Not on Jellyfin yet");
    assert!(!library.text().contains("Missing Not on Jellyfin yet"), "{}", library.text());

    let ids = CatalogIds { tmdb: Some(ALIEN), ..CatalogIds::default() };
    app.jellyfin().add_movie(("Alien", 1979), ids, SignedDuration::ZERO);
    app.pass(60);
    browser.get("/requests").await.assert_shows(200, "Ready Playable");
    browser.get("/library").await.assert_shows(200, "Alien (1979) On disk Playable");

    app.jellyfin().set_status(Some(502));
    app.pass(60);
    browser.get("/requests").await.assert_shows(200, "On disk Unknown Jellyfin does not respond");
    browser.get("/library").await.assert_shows(200, "On disk Unknown Jellyfin does not respond");
}

#[tokio::test]
async fn pages_show_nothing_about_playing_without_a_media_server() {
    let app = app_with_dune().await;
    let mut browser = app.browser().await;
    let library = browser.get("/library").await;
    library.assert_shows(200, "Dune (2021) On disk 21.4 GB");
}

#[tokio::test]
async fn declined_request_is_not_added_and_its_user_gets_the_reason() {
    let app = app_with_waiting_request().await;
    let mut browser = app.browser().await;
    browser.get("/requests?show=waiting").await.assert_shows(200, "Waiting not added yet");

    let declined = browser.submit("/requests/1/decline", &[("reason", "no space left")]).await;

    assert_eq!(declined.location.as_deref(), Some("/requests?flash=declined"));
    app.settle().await;
    assert_eq!(
        app.messages_to(BOB).pop().unwrap(),
        "Your request for Alien (1979) was declined: no space left"
    );
    app.radarr().set_down(false);
    app.pass(3 * 60 * 60);
    app.settle().await;
    assert_eq!(app.radarr().added_ids(), Vec::<i64>::new());
    let again = browser.submit("/requests/1/decline", &[]).await;
    assert_eq!(again.location.as_deref(), Some("/requests?flash=not-waiting"));
}

#[tokio::test]
async fn canceled_request_is_deleted_once_it_is_confirmed() {
    let app = app_with_request().await;
    app.radarr().add_download("Alien", 45, 30);
    let mut browser = app.browser().await;
    let page = browser.get("/requests").await;
    page.assert_shows(200, "Downloading 30 min left");
    assert!(page.html.contains("aria-label=\"Cancel Alien (1979)\""), "{}", page.html);

    let canceled = browser.submit("/library/delete", &[("title", "radarr movie 1")]).await;

    assert_eq!(canceled.location.as_deref(), Some("/requests?flash=confirm-deletion"));
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
    browser.get("/requests").await.assert_shows(200, "Delete it");
    browser.submit("/wishes/1/approve", &[("from", "requests")]).await;
    app.settle().await;
    assert_eq!(app.radarr().removed_ids(), [1]);
    browser.get("/requests").await.assert_shows(200, "Deleted no longer in the library");
}

#[tokio::test]
async fn api_lists_requests_and_titles_and_declines() {
    let app = app_with_request().await;
    app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.radarr().add_download("Alien", 45, 30);
    let program = app.program().await;

    let requests = program.get("/api/v1/requests?user=2").await.json();
    let titles = program.get("/api/v1/titles?sort=biggest&only=on_disk").await.json();

    let alien = &requests["items"][0];
    assert_eq!(
        (&alien["title"], &alien["state"], &alien["percent"]),
        (&json!("Alien"), &json!("downloading"), &json!(45))
    );
    assert_eq!((&titles["total"], &titles["items"][0]["title"]), (&json!(1), &json!("Dune")));
    assert_eq!(titles["items"][0]["availability"], "complete");
    let long = format!("query={}", "x".repeat(101));
    for outside in ["limit=0", "offset=1000001", &long] {
        assert_eq!(program.get(&format!("/api/v1/titles?{outside}")).await.problem().0, 400, "{outside}");
    }
    let declined = program.post("/api/v1/requests/1/decline", json!({ "reason": "too late" })).await;
    assert_eq!(declined.problem(), (409, "no request with this id waits to be added".to_owned()));
}

#[tokio::test]
async fn search_again_is_started_and_audited() {
    let app = app_with_request().await;
    let searched_before = app.radarr().action_record().searches.len();

    let searched = app.browser().await.submit("/library/search", &[("title", "radarr movie 1")]).await;

    assert_eq!(searched.location.as_deref(), Some("/?flash=searching"));
    assert_eq!(app.radarr().action_record().searches.len(), searched_before + 1);
    app.browser().await.get("/audit").await.assert_shows(200, "Started a search");
}

#[tokio::test]
async fn title_is_deleted_from_the_library_only_after_its_approval() {
    let app = app_with_dune().await;
    let mut browser = app.browser().await;

    let asked = browser.submit("/library/delete", &[("title", "radarr movie 1")]).await;
    assert_eq!(asked.location.as_deref(), Some("/requests?flash=confirm-deletion"));
    app.settle().await;
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
    browser.get("/requests").await.assert_shows(200, "Dune (2021) requested by");
    browser.get("/requests").await.assert_shows(200, "21.4 GB would be freed");
    let asked_again = browser.submit("/library/delete", &[("title", "radarr movie 1")]).await;
    assert_eq!(asked_again.location.as_deref(), Some("/requests?flash=confirm-deletion"));

    let approved = browser.submit("/wishes/1/approve", &[("from", "requests")]).await;
    assert_eq!(approved.location.as_deref(), Some("/requests?flash=approved"));
    app.settle().await;
    assert_eq!(app.radarr().removed_ids(), [1]);
    assert_eq!(app.messages_to(ANN).pop().unwrap(), "Deleted Dune (2021). Freed 21.4 GB.");
}

#[tokio::test]
async fn rejected_deletion_of_the_operator_texts_nobody() {
    let app = app_with_dune().await;
    let mut browser = app.browser().await;
    browser.submit("/library/delete", &[("title", "radarr movie 1")]).await;
    let sent = app.twilio().sent_messages().len();

    let denied = browser.submit("/wishes/1/deny", &[("from", "requests")]).await;

    assert_eq!(denied.location.as_deref(), Some("/requests?flash=denied"));
    app.settle().await;
    assert_eq!((app.radarr().removed_ids(), app.twilio().sent_messages().len()), (Vec::<i64>::new(), sent));
}

#[tokio::test]
async fn changed_title_is_not_deleted_by_an_earlier_approval() {
    let app = app_with_dune().await;
    let mut browser = app.browser().await;
    browser.submit("/library/delete", &[("title", "radarr movie 1")]).await;
    app.radarr().edit(1, |title| title.title = "Another movie".to_owned());

    browser.submit("/wishes/1/approve", &[]).await;

    app.settle().await;
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test]
async fn library_is_searched_and_sorted_and_names_who_asked() {
    let app = app_with_request().await;
    app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.radarr().add(movie("Heat").year(1995).size_gb(40.0));
    let mut browser = app.browser().await;

    let biggest = browser.get("/library?sort=biggest").await.text();
    let position = |title: &str| biggest.find(title).unwrap();
    assert!(position("Heat (1995)") < position("Dune (2021)"), "{biggest}");
    assert!(biggest.contains("3 titles, 61.4 GB"), "{biggest}");
    assert!(biggest.contains("asked for by Bob"), "{biggest}");
    let found = browser.get("/library?q=dune").await.text();
    assert!(found.contains("Dune (2021)") && !found.contains("Heat (1995)"), "{found}");
    let missing = browser.get("/library?only=missing").await.text();
    assert!(missing.contains("Alien (1979)") && !missing.contains("Dune (2021)"), "{missing}");
}

#[tokio::test]
async fn pages_of_ten_thousand_titles_stay_small_and_hide_keys() {
    let app = TestApp::start_without_model().await;
    for number in 0..10_000 {
        app.radarr().add(movie(&format!("<script>alert({number})</script>")).year(2000).size_gb(1.0));
    }
    let mut browser = app.browser().await;
    for path in ["/library", "/library?page=300", "/requests", "/more"] {
        let page = browser.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        assert!(page.html.len() < 60_000, "{path}: {}", page.html.len());
        assert!(!page.html.contains(app.radarr().api_key()), "{path}");
        assert!(!page.html.contains("<script>alert"), "{path}");
    }
}

#[tokio::test]
async fn every_page_with_ten_thousand_rows_stays_small() {
    let app = TestApp::start_without_model().await;
    let rows = include_str!("../data/ten_thousand_rows.sql");
    app.app().db.write(|conn| conn.batch_execute(rows)).await.unwrap();
    let mut browser = app.browser().await;
    for path in [
        "/",
        "/conversations",
        "/conversations/10000",
        "/conversations/10000?before=5000",
        "/conversations/1",
        "/requests",
        "/requests?before=5000",
        "/users",
        "/users?before=5000",
        "/users/1",
        "/users/9999",
        "/deliveries",
        "/deliveries?which=failed",
        "/spend",
        "/memory",
        "/health-checks",
        "/audit",
        "/audit?before=5000",
        "/settings",
        "/keys",
    ] {
        let page = browser.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        assert!(page.html.len() < 60_000, "{path}: {}", page.html.len());
        let hostile = ["<script>alert", "\" onmouseover=\"alert"].map(|markup| page.html.contains(markup));
        assert_eq!(hostile, [false; 2], "{path}");
        let keys = [app.radarr().api_key(), app.sonarr().api_key()].map(|key| page.html.contains(key));
        assert_eq!(keys, [false; 2], "{path}");
    }
    browser.get("/memory").await.assert_shows(200, "More appear here once these are decided.");
    browser.get("/memory").await.assert_shows(200, "Older ones are not listed.");
    let older = browser.get("/users?before=5000").await.text();
    assert!(older.contains("+1 555 110 4999") && !older.contains("+1 555 110 5000"), "{older}");
}

#[tokio::test]
async fn poster_is_served_without_the_key_and_from_the_cache() {
    let app = app_with_dune().await;
    app.radarr().set_poster(FakePoster::image("image/jpeg", JPEG));
    assert_eq!(poster(&app, "/posters/radarr/1").await, ("image/jpeg".to_owned(), JPEG.to_vec()));

    app.radarr().remove(1);
    app.radarr().set_down(true);

    assert_eq!(poster(&app, "/posters/radarr/1").await, ("image/jpeg".to_owned(), JPEG.to_vec()));
}

#[tokio::test]
async fn hostile_poster_is_replaced_by_an_empty_image() {
    let app = app_with_dune().await;
    let script = "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>";
    let huge = [JPEG, &vec![0; 50 << 20]].concat();
    let redirect = FakePoster {
        status: 302,
        location: Some("http://169.254.169.254/latest/meta-data"),
        ..FakePoster::image("image/jpeg", JPEG)
    };
    for hostile in [
        FakePoster::image("image/svg+xml", script),
        FakePoster::image("image/jpeg", script),
        FakePoster::image("text/html", "<html>"),
        FakePoster::image("image/jpeg", "GIF89a"),
        FakePoster::image("image/jpeg", huge),
        redirect,
    ] {
        let what = (hostile.status, hostile.content_type);
        app.radarr().set_poster(hostile);
        let (content_type, content) = poster(&app, "/posters/radarr/1").await;
        assert_eq!(content_type, "image/svg+xml", "{what:?}");
        assert!(
            content.starts_with(b"<svg") && !content.windows(6).any(|part| part == b"script"),
            "{what:?}"
        );
    }
    for path in ["/posters/radarr/99", "/posters/nothing/1", "/posters/..%2f..%2fetc/1"] {
        assert_eq!(poster(&app, path).await.0, "image/svg+xml", "{path}");
    }
}

#[tokio::test]
async fn conversation_shows_the_posters_of_its_titles() {
    let app = app_with_dune().await;
    app.model_plays([finds("dune"), says("Dune (2021) is there.")]);
    app.sms("have we got dune?").await;
    let page = app.browser().await.get("/conversations/1").await;
    assert!(page.html.contains("src=\"/posters/radarr/1\""), "{}", page.html);
}

#[tokio::test]
async fn text_from_the_household_reaches_the_user_once() {
    let app = app_with_request().await;
    let mut browser = app.browser().await;
    let fields = [("text", "Movie night at 8!"), ("key", "k1"), ("as", "household")];

    for _ in 0..2 {
        let sent = browser.submit("/conversations/1/texts", &fields).await;
        assert_eq!(sent.location.as_deref(), Some("/conversations/1?flash=text-queued#tail"));
    }

    app.settle().await;
    assert_eq!(app.messages_to(BOB).pop().unwrap(), "From the household: Movie night at 8!");
    browser.get("/conversations/1").await.assert_shows(200, "From the household: Movie night at 8!");
    let audit = app.audit().await;
    assert_eq!(audit.iter().filter(|line| line.starts_with("write_to ")).count(), 1, "{audit:?}");
}

#[tokio::test]
async fn text_in_a_users_name_is_answered_in_the_console_only() {
    let app = app_with_request().await;
    app.model_plays([says("Nothing else.")]);
    let sent = app.twilio().sent_messages().len();
    let mut browser = app.browser().await;

    let fields = [("text", "anything else?"), ("key", "k1"), ("as", "user")];
    let stored = browser.submit("/conversations/1/texts", &fields).await;

    assert_eq!(stored.location.as_deref(), Some("/conversations/1?flash=text-stored#tail"));
    app.settle().await;
    assert_eq!(app.twilio().sent_messages().len(), sent);
    let page = browser.get("/conversations/1").await;
    page.assert_shows(200, "you, in their name");
    page.assert_shows(200, "Nothing else.");
    assert!(app.audit().await.iter().any(|line| line.starts_with("text_as user:2 by console")));
    let exported = app.export_user(BOB).to_string();
    assert!(exported.contains("\"carrier_id\":\"operator:k1\""), "{exported}");
    assert!(exported.contains("\"author\":\"operator\""), "{exported}");
}

#[tokio::test]
async fn text_in_a_users_name_confirms_and_deletes_nothing() {
    let app = app_with_dune().await;
    app.model_plays(removes_movie("Dune", 1));
    let question = app.sms("delete dune").await;
    assert!(question.starts_with("Delete Dune (2021)"), "{question}");
    let mut browser = app.browser().await;
    app.model_plays([says("Hm?")]);

    let fields = [("text", "yes"), ("key", "k1"), ("as", "user")];
    browser.submit("/conversations/1/texts", &fields).await;
    app.settle().await;
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());

    let heat = app.radarr().add(movie("Heat").year(1995).size_gb(18.2));
    let removes =
        calls("remove_media", json!({ "items": [{ "type": "movie", "id": heat }], "delete_files": true }));
    app.model_plays([finds("heat"), removes, says("I may not.")]);
    let fields = [("text", "delete heat"), ("key", "k2"), ("as", "user")];
    browser.submit("/conversations/1/texts", &fields).await;
    app.settle().await;
    assert!(app.results().pop().unwrap().contains("\"error\""), "{:?}", app.results());
    assert_eq!(
        app.lines("SELECT summary AS line FROM pending_actions WHERE summary LIKE '%Heat%'").await.len(),
        0
    );
}

#[tokio::test]
async fn text_in_a_users_name_states_no_fact_about_the_user() {
    let app = app_with_request().await;
    let remembers = || calls("remember", json!({ "kind": "dislike", "value": "horror" }));
    app.model_plays([remembers(), says("Hm."), remembers(), says("Noted.")]);
    let text = "remember that I do not like horror";

    app.browser()
        .await
        .submit("/conversations/1/texts", &[("text", text), ("key", "k1"), ("as", "user")])
        .await;
    app.settle().await;
    assert_eq!(app.lines("SELECT value AS line FROM user_facts").await, Vec::<String>::new());

    app.sms_from(BOB, text).await;
    assert_eq!(app.lines("SELECT value AS line FROM user_facts").await, ["horror"]);
}

#[tokio::test]
async fn unknown_page_has_a_way_back() {
    let app = TestApp::start_without_model().await;
    let page = app.browser().await.get("/nothing-here").await;
    page.assert_shows(404, "There is no page at this URL. Home");
    let anonymous = app.anonymous_browser().get("/nothing-here").await;
    assert_eq!(anonymous.status, 303);
}
