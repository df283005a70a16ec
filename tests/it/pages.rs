//! Texts of the console pages, and buttons that act like messages.

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::messaging::twilio::fake::FakeDelivery;
use dialarr::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use serde_json::{Value, json};

use crate::harness::browser::Page;
use crate::harness::model::{Holding, calls, finds, says};
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

const SAM: &str = "+15550100009";
const HOSTILE: &str = "<script>alert(1)</script> \"><img src=x onerror=alert(1)> \u{202e}txet";
const PAGES: [&str; 12] = [
    "/",
    "/users",
    "/users/1",
    "/viewer-accounts",
    "/make-room",
    "/deliveries",
    "/spend",
    "/memory",
    "/audit",
    "/requests",
    "/library",
    "/api",
];

/// Starts after Sam gave a name, without a decision.
async fn app_with_sam_at_the_door() -> TestApp {
    let app = TestApp::start_without_model().await;
    app.sms_from(SAM, "hi").await;
    app.sms_from(SAM, "Sam").await;
    app
}

/// Starts with a removal request of Bob, who may not delete.
async fn app_with_removal_request(title: &str) -> (TestApp, i64) {
    let app = TestApp::start().await;
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    let film = app.radarr().add(movie(title).year(2021).size_gb(21.4));
    let removal = calls("request_removal", json!({ "type": "movie", "id": film }));
    app.model_plays([finds(title), removal, says("I asked the admins.")]);
    app.sms_from(BOB, &format!("delete {title}")).await;
    (app, film)
}

/// Presses a button, and returns the location and the text of the next page.
async fn presses(app: &TestApp, path: &str, fields: &[(&str, &str)]) -> (String, Page) {
    let mut browser = app.browser().await;
    let answer = browser.submit(path, fields).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    let location = answer.location.unwrap();
    app.settle().await;
    let page = browser.get(&location).await;
    (location, page)
}

/// Returns the audited changes without sign-ins.
async fn changes(app: &TestApp) -> Vec<String> {
    let audit = app.audit().await;
    audit.into_iter().filter(|line| !line.contains(" console by ")).collect()
}

#[track_caller]
fn check_text(page: &Page, words: &[&str]) {
    let text = page.text();
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

#[tokio::test]
async fn home_page_without_open_work_is_one_line() {
    let app = TestApp::start_without_model().await;

    let page = app.browser().await.get("/").await;

    let text = page.text();
    let (attention, rest) = text.split_once(" Connections ").unwrap();
    let (_, rest) = rest.split_once("The bars show the last 24 hours. ").unwrap();
    let calm = "Home Connection lost. Reconnecting. Needs attention \u{2713} All clear.";
    let today =
        "Today Texts in 0 Texts out 0 Segments 0 Tokens 0 Conversations New test conversation No texts yet.";
    assert_eq!((page.status, attention, rest), (200, calm, today));
}

#[tokio::test]
async fn home_page_shows_the_last_reply_and_todays_counts() {
    let app = TestApp::start_without_model().await;
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    app.sms("status").await;

    let page = app.browser().await.get("/").await;

    check_text(
        &page,
        &["Texts in 1 Texts out 1 Segments 1", "Ann", "Open", "Dialarr: Nothing is downloading."],
    );
}

#[tokio::test]
async fn approve_button_equals_the_approve_message() {
    let (by_text, by_button) = (app_with_sam_at_the_door().await, app_with_sam_at_the_door().await);
    check_text(&by_button.browser().await.get("/").await, &["New number Sam +1 555 010 0009 Approve Block"]);

    by_text.sms("approve 4747").await;
    let (location, page) = presses(&by_button, "/users/2/approve", &[("from", "home")]).await;

    assert_eq!((location.as_str(), by_button.people().await), ("/?flash=let-in", by_text.people().await));
    assert_eq!(by_button.messages_to(SAM), by_text.messages_to(SAM));
    assert_eq!(changes(&by_button).await, ["approve user:2 by console"]);
    check_text(&page, &["Approved. This user can text now.", "All clear."]);
}

#[tokio::test]
async fn newcomer_blocked_by_button_gets_no_reply() {
    let app = app_with_sam_at_the_door().await;

    let (location, page) = presses(&app, "/users/2/block", &[]).await;

    assert_eq!(location, "/users/2?flash=blocked");
    check_text(&page, &["Sam Blocked", "Approve again"]);
    assert_eq!(app.sms_from(SAM, "hello?").await, "");
    assert_eq!(app.sms("approve 4747").await, "That number was already blocked.");
}

#[tokio::test]
async fn removal_request_approved_by_button_deletes_once() {
    let (app, dune) = app_with_removal_request("Dune").await;
    check_text(
        &app.browser().await.get("/").await,
        &["Deletion request Dune (2021) requested by Bob , 21.4 GB"],
    );

    let (location, page) = presses(&app, "/wishes/1/approve", &[]).await;
    let (again, _) = presses(&app, "/wishes/1/approve", &[]).await;

    assert_eq!((location.as_str(), again.as_str()), ("/?flash=approved", "/?flash=too-late"));
    check_text(&page, &["Deletion started.", "All clear."]);
    assert_eq!(app.radarr().removed_ids(), [dune]);
    assert_eq!(app.last_to(BOB), "An admin agreed: Dune (2021) is deleted.");
    assert_eq!(app.last_to(ANN), "Deleted Dune (2021). Freed 21.4 GB.");
    assert_eq!(
        changes(&app).await[1..],
        [
            "approve_deletion approval:1 by console",
            "approve_deletion approval:1 by +15550100002",
            "deleted tool_call:3 by +15550100002",
        ]
    );
}

#[tokio::test]
async fn removal_request_with_a_dead_code_is_approved_by_button() {
    let (app, dune) = app_with_removal_request("Dune").await;
    for wrong in ["approve 1111", "approve 2222", "approve 3333"] {
        app.sms(wrong).await;
    }

    presses(&app, "/wishes/1/approve", &[]).await;

    assert_eq!(app.radarr().removed_ids(), [dune]);
}

#[tokio::test]
async fn failed_approval_is_repeated_under_a_new_code() {
    let (mut app, dune) = app_with_removal_request("Dune").await;
    let model = Holding::closed();
    app.restart_with(|setup| setup.holding(&model)).await;
    app.post(app.text(ANN, "hold on, what was that?")).await;
    model.holds().await;
    let in_vain = app.browser().await.submit("/wishes/1/approve", &[]).await;
    assert_eq!(in_vain.location.as_deref(), Some("/?flash=approved"));
    app.pass(1);
    app.post(app.text(ANN, "STOP")).await;
    app.settle().await;
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
    app.sms("START").await;

    let (location, _) = presses(&app, "/wishes/1/approve", &[]).await;

    assert_eq!(location, "/?flash=approved");
    assert_eq!(app.radarr().removed_ids(), [dune]);
    let codes = "SELECT code || ' ' || state AS line FROM approvals ORDER BY id";
    assert_eq!(app.lines(codes).await, ["4747 replaced", "4748 approved"]);
}

#[tokio::test]
async fn deny_button_equals_the_deny_message() {
    let (app, _) = app_with_removal_request("Dune").await;

    let (location, _) = presses(&app, "/wishes/1/deny", &[]).await;

    assert_eq!(location, "/?flash=denied");
    assert_eq!(app.last_to(BOB), "An admin decided to keep Dune (2021).");
    assert_eq!(app.sms("approve 4747").await, "That was already denied.");
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test]
async fn removal_request_needs_an_admin_who_gets_messages() {
    let (app, _) = app_with_removal_request("Dune").await;
    app.sms("STOP").await;

    let (location, page) = presses(&app, "/wishes/1/approve", &[]).await;

    assert_eq!(location, "/?flash=no-admin");
    check_text(&page, &["Not deleted", "Deletion request Dune (2021)", "An admin has opted out Ann"]);
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test]
async fn expired_removal_request_is_not_executed() {
    let (app, _) = app_with_removal_request("Dune").await;
    app.pass(24 * 60 * 60);

    let (location, page) = presses(&app, "/wishes/1/approve", &[]).await;

    assert_eq!(location, "/?flash=too-late");
    check_text(&page, &["All clear."]);
}

#[tokio::test]
async fn pause_is_shown_and_ended_by_button() {
    let app = TestApp::start_without_model().await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    app.sms("pause").await;
    app.sms_from(BOB, "status").await;
    check_text(&app.browser().await.get("/").await, &["Paused since 21:04"]);

    let (location, page) = presses(&app, "/resume", &[]).await;

    assert_eq!(location, "/?flash=resumed");
    check_text(&page, &["All clear."]);
    assert_eq!(app.last_to(BOB), "Nothing is downloading.");
    assert_eq!(changes(&app).await, ["pause household by +15550100002", "resume household by console"]);
    assert_eq!(presses(&app, "/resume", &[]).await.0, "/?flash=not-paused");
}

#[tokio::test]
async fn refused_message_is_shown_with_the_meaning_of_its_code() {
    let app = TestApp::start_without_model().await;
    app.twilio().fail_next(400, 21614);
    app.sms("status").await;
    app.sms("upcoming").await;
    let report =
        app.twilio().status_callback(app.twilio().sent_messages().last().unwrap(), FakeDelivery::Delivered);
    app.request(report.unwrap().unwrap()).await;
    let mut browser = app.browser().await;

    let reason = "the number is not a mobile number (code 21614)";
    check_text(
        &browser.get("/").await,
        &["A text was not delivered +1 555 010 0002 21:04 Nothing is downloading.", reason],
    );
    let failed = browser.get("/deliveries?which=failed").await;
    check_text(&failed, &["\u{00d7} Failed", reason]);
    assert!(!failed.text().contains("Delivered"));
    check_text(&browser.get("/deliveries").await, &["\u{2713}\u{2713} Delivered", "\u{00d7} Failed"]);
    check_text(&browser.get("/deliveries?which=waiting").await, &["No texts are waiting"]);
}

#[tokio::test]
async fn delivery_status_has_the_same_label_on_every_page() {
    let app = TestApp::start_without_model().await;
    app.sms("status").await;
    let mut browser = app.browser().await;
    for (report, word) in [
        (FakeDelivery::Delivered, "\u{2713}\u{2713} Delivered"),
        (FakeDelivery::Undelivered(30003), "\u{00d7} Failed"),
    ] {
        app.sms("upcoming").await;
        let report = app.twilio().status_callback(app.twilio().sent_messages().last().unwrap(), report);
        app.request(report.unwrap().unwrap()).await;
        check_text(&browser.get("/deliveries").await, &[word]);
        check_text(&browser.get("/conversations/1").await, &[word]);
    }
    let reason = "(code 30003)";
    check_text(&browser.get("/deliveries").await, &[reason]);
    check_text(&browser.get("/conversations/1").await, &[reason]);
    check_text(&browser.get("/spend").await, &["Delivered 1 33 % Sent 1 33 % Waiting 0 0 % Failed 1 33 %"]);
}

#[tokio::test]
async fn audit_page_describes_and_links_each_entry() {
    let (app, _) = app_with_removal_request("Dune").await;
    presses(&app, "/wishes/1/approve", &[]).await;
    let now = app.now();
    let unknown = NewAuditEntry {
        actor: Actor::Console,
        kind: "painted_over",
        subject: AuditSubject::Household,
        detail: json!({ "title": "<b>", "colours": ["red", "blue"] }),
    };
    app.app().db.write(move |conn| audit::record_change(conn, &unknown, now)).await.unwrap();

    let page = app.browser().await.get("/audit").await;

    check_text(
        &page,
        &[
            "You, in the console painted over The household colours: red blue title: <b>",
            "You, in the console Approved a deletion Request from Bob",
            "Ann Deleted remove media, in approve 4747 : Dune (2021) delete files: yes instance: radarr size: 21.4 GB",
            "Bob Asked the admins to delete request removal, in delete Dune : Dune (2021)",
            "You, at the shell Created a sign-in link The console",
        ],
    );
    assert!(page.html.contains("/conversations/1?before="), "{}", page.html);
}

#[tokio::test]
async fn each_change_is_one_audit_row_with_its_target() {
    let app = TestApp::start_without_model().await;
    app.radarr().add_to_catalog(movie("Heat").year(1995).tmdb(949));
    app.sms("add heat").await;
    app.pass(60);
    app.sms("add heat").await;
    app.radarr().fail_next_write(400);
    app.radarr().add_to_catalog(movie("Alien").year(1979).tmdb(348));
    app.pass(60);
    app.sms("add alien").await;

    assert_eq!(
        changes(&app).await,
        [
            "write_done tool_call:2 by +15550100002",
            "write_unchanged tool_call:4 by +15550100002",
            "write_failed tool_call:6 by +15550100002",
        ]
    );
    let page = app.browser().await.get("/audit").await;
    let place = "add movie, in add heat";
    check_text(
        &page,
        &[
            &format!("+1 555 010 0002 Added {place} : Heat (1995) quality: HD-1080p"),
            &format!("+1 555 010 0002 Found it in the library {place} : Heat (1995)"),
        ],
    );
    assert!(!page.text().contains("949"), "{}", page.text());
}

#[tokio::test]
async fn refused_message_is_resent_once() {
    let app = TestApp::start_without_model().await;
    app.twilio().fail_next(400, 21614);
    app.sms("status").await;
    check_text(&app.browser().await.get("/deliveries").await, &["Resend"]);

    let (location, page) = presses(&app, "/deliveries/1/again", &[]).await;

    assert_eq!(location, "/deliveries?flash=sent-again");
    assert!(!page.text().contains("Resend"), "{}", page.text());
    assert_eq!(presses(&app, "/deliveries/1/again", &[]).await.0, "/deliveries?flash=not-sent-again");
    assert_eq!(app.messages_to(ANN), ["Nothing is downloading."]);
    assert_eq!(changes(&app).await, ["send_again user:1 by console"]);
}

#[tokio::test]
async fn delivered_messages_and_prompts_are_not_resent() {
    let app = TestApp::start_without_model().await;
    app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.sms("status").await;
    app.twilio().fail_next(400, 21614);
    app.sms("remove dune").await;

    for text in ["/deliveries/1/again", "/deliveries/2/again"] {
        assert_eq!(presses(&app, text, &[]).await.0, "/deliveries?flash=not-sent-again", "{text}");
    }
    assert_eq!(app.messages_to(ANN), ["Nothing is downloading."]);
}

#[tokio::test]
async fn user_page_changes_settings_like_the_shell() {
    let app = TestApp::start_without_model().await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    let settings = [
        ("name", "Robert"),
        ("role", "admin"),
        ("add", "on"),
        ("movies", "3"),
        ("seasons", ""),
        ("space", "200"),
        ("movie_age", "13"),
        ("show_age", ""),
        ("digest", "Friday 6pm"),
    ];

    let (location, page) = presses(&app, "/users/2/settings", &settings).await;

    assert_eq!(location, "/users/2?flash=saved");
    check_text(&page, &["Saved.", "Robert Active", "Role Admin"]);
    assert_eq!(changes(&app).await, ["set user:2 by console"]);
    let audit = app.browser().await.get("/audit?kind=set").await;
    check_text(
        &audit,
        &[
            "You, in the console Changed settings Robert",
            "movies: 3",
            "movie cap: 13",
            "role: admin",
            "space gb: 200",
            "digest: friday 18",
        ],
    );
    assert_eq!(presses(&app, "/users/2/settings", &settings).await.0, "/users/2?flash=unchanged");
    assert_eq!(changes(&app).await.len(), 1);
}

#[tokio::test]
async fn invalid_settings_are_refused_and_change_nothing() {
    let app = TestApp::start_without_model().await;
    let with = |name: &'static str, role: &'static str, movies: &'static str| {
        [
            ("name", name),
            ("role", role),
            ("add", "on"),
            ("delete", "on"),
            ("four_k", "on"),
            ("movies", movies),
            ("seasons", ""),
            ("space", ""),
            ("movie_age", ""),
            ("show_age", ""),
        ]
    };
    for (settings, flash) in [
        (with("", "member", ""), "last-admin"),
        (with("<b>", "admin", ""), "bad-name"),
        (with("", "admin", "many"), "bad-limit"),
    ] {
        let (location, page) = presses(&app, "/users/1/settings", &settings).await;
        assert_eq!(location, format!("/users/1?flash={flash}"));
        check_text(&page, &["Role Admin"]);
    }
    assert_eq!(presses(&app, "/users/1/block", &[]).await.0, "/users/1?flash=last-admin");
    assert_eq!(changes(&app).await, Vec::<String>::new());
}

#[tokio::test]
async fn user_is_erased_only_with_the_typed_word() {
    let app = TestApp::start_without_model().await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    app.sms_from(BOB, "status").await;

    assert_eq!(presses(&app, "/users/2/forget", &[("word", "forget")]).await.0, "/users/2?flash=not-typed");
    let (location, page) = presses(&app, "/users/2/forget", &[("word", "FORGET")]).await;

    assert_eq!(location, "/users?flash=forgotten");
    assert!(!page.text().contains("Bob"), "{}", page.text());
    assert_eq!(app.browser().await.get("/users/2").await.status, 404);
    check_text(&app.browser().await.get("/deliveries").await, &["Erased user", "Text erased."]);
    assert_eq!(presses(&app, "/users/1/forget", &[("word", "FORGET")]).await.0, "/users/1?flash=last-admin");
}

#[tokio::test]
async fn stored_data_of_a_user_can_be_downloaded() {
    let app = TestApp::start_without_model().await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    app.sms_from(BOB, "status").await;

    let answer = app.browser().await.submit("/users/2/export", &[]).await;

    let export: Value = serde_json::from_str(&answer.html).unwrap();
    assert_eq!(export, app.export_user(BOB));
    assert_eq!(changes(&app).await, ["export user:2 by console"]);
}

#[tokio::test]
async fn opted_out_user_must_text_start() {
    let app = TestApp::start_without_model().await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    app.sms_from(BOB, "STOP").await;
    let mut browser = app.browser().await;
    check_text(&browser.get("/users").await, &["Bob +1 555 010 0003 Member Active Opted out"]);
    check_text(
        &browser.get("/users/2").await,
        &["until they text START themselves. Nobody else can opt them in"],
    );
}

#[tokio::test]
async fn hostile_text_is_escaped_on_every_page() {
    let (app, _) = app_with_removal_request(HOSTILE).await;
    app.model_plays([says(HOSTILE), says(&"x".repeat(300))]);
    app.sms(HOSTILE).await;
    app.sms(&"w".repeat(500)).await;
    let mut browser = app.browser().await;
    for path in PAGES {
        let page = browser.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        assert_eq!(page.html.matches("<h1").count(), 1, "{path} has one heading above all");
        for dangerous in ["<script>alert", "<img src=x", " style=", "onerror=alert(1)>"] {
            assert!(!page.html.contains(dangerous), "{dangerous} on {path}: {}", page.html);
        }
    }
    check_text(&browser.get("/deliveries").await, &["<script>alert(1)</script>", &"x".repeat(300)]);
    check_text(&browser.get("/").await, &["<script>alert(1)</script>"]);
}

#[tokio::test]
async fn unknown_address_is_a_plain_page() {
    let app = TestApp::start_without_model().await;
    let mut browser = app.browser().await;
    for path in ["/users/99", "/users/x", "/users/-1", "/deliveries?user=99", "/deliveries?before=x"] {
        let page = browser.get(path).await;
        assert_eq!(
            (page.status, page.text().as_str()),
            (404, "Dialarr Not found There is no page at this URL. Home"),
            "{path}"
        );
    }
    for path in ["/users/99/approve", "/users/99/block", "/users/99/export"] {
        assert_eq!(browser.submit(path, &[]).await.status, 404, "{path}");
    }
    let page = browser.get("/?flash=%3Cscript%3E").await;
    assert!(
        page.text().starts_with("Home Connection lost. Reconnecting. Needs attention"),
        "{}",
        page.text()
    );
}

#[tokio::test]
async fn paging_shows_each_row_once() {
    let app = TestApp::start_without_model().await;
    for number in 0..57 {
        app.sms(&format!("quota Nobody{number}")).await;
        app.pass(60);
    }
    let mut browser = app.browser().await;
    let mut path = Some("/deliveries".to_owned());
    let mut seen = Vec::new();
    while let Some(here) = path {
        let page = browser.get(&here).await;
        let text = page.text();
        seen.extend((0..57).filter(|number| text.contains(&format!("named Nobody{number}."))));
        path = page.html.split_once("class=\"more-link\" href=\"").map(|(_, rest)| {
            rest.split('"').next().unwrap_or_default().replace("&amp;", "&").replace("&#38;", "&")
        });
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..57).collect::<Vec<_>>());
}

#[tokio::test]
async fn monthly_usage_is_drawn_and_listed() {
    let app = TestApp::start().await;
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    app.model_plays([says("Hello.")]);
    app.sms("hello, who are you?").await;

    let page = app.browser().await.get("/spend").await;

    check_text(&page, &["Texts per day", "Tokens per day", "Segments per day", "Delivery status", "Ann 1"]);
    assert!(page.html.contains("aria-label=\"Texts per day: 1 received, 1 sent.\""), "{}", page.html);
}

#[tokio::test]
async fn console_and_api_messages_do_not_count_as_texts() {
    let app = TestApp::start().await;
    app.model_plays([says("Hello."), says("Hello tester."), says("Hello program.")]);
    app.sms("hello, who are you?").await;
    let mut browser = app.browser().await;
    browser.submit("/conversations/new", &[]).await;
    browser.types(2, "hello there, can you hear me?").await;
    app.program().await.texts(json!({ "user": ANN, "text": "and what about me?" })).await;
    app.settle().await;

    let page = browser.get("/spend").await;

    for label in [
        "Texts per day: 1 received, 1 sent.",
        "Delivery status: 0 delivered, 1 sent, 0 waiting, 0 failed, 0 not sent.",
    ] {
        assert!(page.html.contains(&format!("aria-label=\"{label}\"")), "{label}: {}", page.html);
    }
}

#[tokio::test]
async fn asset_urls_contain_the_version() {
    let app = TestApp::start_without_model().await;
    let version = env!("CARGO_PKG_VERSION");
    let (page, sign_in) = (app.browser().await.get("/").await, app.anonymous_browser().get("/sign-in").await);
    for (html, asset) in [(&page.html, "style.css"), (&page.html, "live.js"), (&sign_in.html, "style.css")] {
        assert!(html.contains(&format!("\"/assets/{asset}?v={version}\"")), "{asset}: {html}");
    }
}

#[tokio::test]
async fn memory_page_shows_retention_periods() {
    let app = TestApp::start_without_model().await;
    let page = app.browser().await.get("/memory").await;
    check_text(&page, &["Message texts and replies 365 days", "Answers it remembers 0"]);
}

#[tokio::test]
async fn memory_page_counts_stored_answers_and_facts() {
    let app = Setup::default().with_embeddings().start().await;
    let note = json!({ "kind": "dislike", "value": "horror" });
    app.model_plays([calls("remember", note), says("Noted."), says("Try Slow Horses."), says("Open Plex.")]);
    app.sms("no horror please").await;
    app.sms("recommend a spy show").await;
    app.app().engine.indexer.index_due_answers().await.unwrap();
    app.sms("where do I watch it").await;
    let page = app.browser().await.get("/memory").await;
    let counted = ["Answers it remembers 2", "New answers 1", "Facts about people 1"];
    check_text(&page, &counted);
    check_text(&page, &["Recipient 2", "hashing-256/256 1"]);
}
