//! What people have watched on a media server: links of their accounts, answers, and privacy.

use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::conversation::stream_events::EventSeq;
use dialarr::conversation::transcript::ConversationId;
use dialarr::conversation::viewer_accounts::WatchSharing;
use dialarr::media_servers::CatalogIds;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::harness::model::{calls, finds, offered, removes_movie, request_text, says};
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

const DUNE: i64 = 438_631;
const HEAT: i64 = 949;
const ALIEN: i64 = 348;
const THE_BEAR: i64 = 403_294;
const NOT_LINKED: &str = "I don't know who you are on Jellyfin. Text LINK JELLYFIN and your name there.";
/// What Bob has watched of Heat, which nobody else may read.
const BOBS_PROGRESS: &str = "41%";
const NONE: [String; 0] = [];

/// Household of Ann, who is an admin, and Bob. On Jellyfin, Bob has finished Dune, stopped in the middle of Heat, and seen
/// one of two episodes of The Bear; Ann has finished Alien.
struct Home {
    app: TestApp,
    bob: u64,
    heat: u64,
}

impl Home {
    async fn start(setup: Setup) -> Self {
        let app = setup.jellyfin().start().await;
        app.register_named_user("Ann", ANN, Has::EveryRight).await;
        app.register_named_user("Bob", BOB, Has::AddRight).await;
        let radarr = app.radarr();
        radarr.add(movie("Dune").id(7).tmdb(DUNE).year(2021).size_gb(21.4).genres(&["Drama"]).rating(8.0));
        radarr.add(movie("Heat").id(8).tmdb(HEAT).year(1995).size_gb(18.2).genres(&["Crime"]).rating(8.3));
        radarr.add(movie("Alien").id(9).tmdb(ALIEN).year(1979).size_gb(12.0).genres(&["Drama"]).rating(8.5));
        app.sonarr()
            .add(series("The Bear").id(4).tvdb(THE_BEAR).year(2022).seasons(1).episodes(2).size_gb(4.0));
        let jellyfin = app.jellyfin();
        let add = |title, tmdb| {
            let ids = CatalogIds { tmdb: Some(tmdb), ..CatalogIds::default() };
            jellyfin.add_movie(title, ids, SignedDuration::ZERO)
        };
        let (dune, heat, alien) =
            (add(("Dune", 2021), DUNE), add(("Heat", 1995), HEAT), add(("Alien", 1979), ALIEN));
        let ids = CatalogIds { tvdb: Some(THE_BEAR), ..CatalogIds::default() };
        let bear = jellyfin.add_show(("The Bear", 2022), ids, SignedDuration::ZERO);
        let first = jellyfin.add_episode(bear, (1, 1));
        jellyfin.add_episode(bear, (1, 2));
        let (ann, bob) = (jellyfin.add_user("ann"), jellyfin.add_user("bobby"));
        jellyfin.watch(ann, alien, 100);
        jellyfin.watch(bob, first, 100);
        jellyfin.watch(bob, dune, 100);
        jellyfin.watch(bob, heat, 41);
        Self { app, bob, heat }
    }

    async fn linked(setup: Setup) -> Self {
        let home = Self::start(setup).await;
        home.link(BOB, "bobby").await;
        home.link(ANN, "ann").await;
        home
    }

    /// Links the account with this name by text.
    async fn link(&self, phone: &str, name: &str) {
        let request = self.ask_for_link(phone, name).await;
        self.app.sms(&format!("approve {}", code_of(&request))).await;
    }

    /// Asks for the link of an account, and returns the request that Ann gets.
    async fn ask_for_link(&self, phone: &str, name: &str) -> String {
        self.answers(phone, "link_account", json!({ "name": name })).await;
        let texts = self.app.messages_to(ANN);
        texts.into_iter().rfind(|text| text.contains("asks to be linked")).unwrap_or_default()
    }

    /// Lets the model call a tool, and returns the result as the user reads it.
    async fn answers(&self, phone: &str, tool: &str, arguments: Value) -> String {
        self.app.model_plays([calls(tool, arguments), says(""), says("")]);
        self.app.sms_from(phone, "what about what I watch?").await
    }

    /// Returns the titles that the library finds for a user.
    async fn finds(&self, phone: &str, arguments: Value) -> String {
        self.answers(phone, "find_in_library", arguments).await
    }

    /// Returns the number of Bob's newest conversation.
    async fn conversation_of_bob(&self) -> String {
        let newest = "SELECT CAST(max(id) AS TEXT) AS line FROM conversations WHERE user_id = 2";
        self.app.lines(newest).await.concat()
    }

    /// Returns the live events of Bob's newest conversation.
    async fn events_of_bob(&self) -> String {
        let conversation = ConversationId(self.conversation_of_bob().await.parse().unwrap());
        let events = self.app.app().db.event_log().events_since(conversation, EventSeq(0), usize::MAX);
        format!("{:?}", events.unwrap())
    }

    /// Returns the details of Heat for a user.
    async fn details_of_heat(&self, phone: &str) -> String {
        let details = calls("media_details", json!({ "type": "movie", "id": 8 }));
        self.app.model_plays([finds("heat"), details, says(""), says("")]);
        self.app.sms_from(phone, "what about heat?").await
    }
}

fn code_of(request: &str) -> String {
    let (_, rest) = request.split_once("APPROVE ").unwrap_or_else(|| panic!("no code: {request}"));
    rest.chars().take(4).collect()
}

fn sharing() -> Setup {
    Setup::default().with(|settings| settings.watch_sharing = WatchSharing::Household)
}

#[tokio::test]
async fn account_is_linked_once_an_admin_approves_its_code() {
    let home = Home::start(Setup::default()).await;
    assert_eq!(home.answers(BOB, "recently_watched", json!({})).await, NOT_LINKED);
    let request = home.ask_for_link(BOB, "Bobby").await;
    let code = code_of(&request);
    assert_eq!(
        request,
        format!(
            "Bob asks to be linked to the Jellyfin user bobby, to ask me what this user has watched. Reply APPROVE {code} \
             or DENY {code}"
        )
    );
    assert_eq!(home.answers(BOB, "recently_watched", json!({})).await, NOT_LINKED);
    assert_eq!(home.app.sms(&format!("approve {code}")).await, "Bob is linked now.");
    assert_eq!(
        home.app.last_to(BOB),
        "You are linked to the Jellyfin user bobby. Ask me what you were watching, or what you have not seen."
    );
    let watched = home.answers(BOB, "recently_watched", json!({})).await;
    assert!(watched.starts_with("You stopped watching Heat (1995) at 41%"), "{watched}");
}

#[tokio::test]
async fn request_for_a_link_is_denied_or_expires() {
    let home = Home::start(Setup::default()).await;
    let code = code_of(&home.ask_for_link(BOB, "bobby").await);
    assert_eq!(home.app.sms(&format!("deny {code}")).await, "OK, Bob is not linked.");
    assert_eq!(home.app.last_to(BOB), "An admin decided not to link you to the Jellyfin user bobby.");
    home.ask_for_link(BOB, "bobby").await;
    home.app.days_pass(2).await;
    assert_eq!(
        home.app.last_to(BOB),
        "No admin answered your request for the Jellyfin user bobby, so it is not linked. You can ask again."
    );
    assert_eq!(home.answers(BOB, "recently_watched", json!({})).await, NOT_LINKED);
}

#[tokio::test]
async fn account_of_another_person_is_not_linked_twice() {
    let home = Home::linked(Setup::default()).await;
    let reply = home.answers(ANN, "link_account", json!({ "name": "bobby" })).await;
    assert_eq!(reply, "The Jellyfin user bobby belongs to somebody else I know.");
    let unknown = home.answers(ANN, "link_account", json!({ "name": "zoe" })).await;
    assert_eq!(unknown, "Nobody on Jellyfin is named \"zoe\". Please check the name.");
}

#[tokio::test]
async fn person_is_told_where_they_stopped_and_what_they_finished() {
    let home = Home::linked(Setup::default()).await;
    let watched = home.answers(BOB, "recently_watched", json!({})).await;
    let day = "(";
    assert!(
        watched.contains("You stopped watching Heat (1995) at 41% (") && watched.contains(day),
        "{watched}"
    );
    assert!(watched.contains("Finished lately: Dune (2021)"), "{watched}");
    assert!(watched.contains("The Bear (2022) S01E01"), "{watched}");
    assert!(!watched.contains("Alien"), "{watched}");
}

#[tokio::test]
async fn details_of_a_title_state_what_the_person_has_seen() {
    let home = Home::linked(Setup::default()).await;
    assert!(home.details_of_heat(BOB).await.contains("You stopped at 41% on "));
    let anns = home.details_of_heat(ANN).await;
    assert!(anns.contains("You have not started it."), "{anns}");
}

#[tokio::test]
async fn library_is_filtered_by_what_the_person_has_watched() {
    let home = Home::linked(Setup::default()).await;
    let unwatched = home.finds(BOB, json!({ "watched": "unwatched" })).await;
    assert_eq!(unwatched, "Not watched: Alien (1979), 12 GB.");
    assert_eq!(home.finds(BOB, json!({ "watched": "watched" })).await, "Watched: Dune (2021), 21.4 GB.");
    let started = home.finds(BOB, json!({ "watched": "started", "type": "series" })).await;
    assert_eq!(started, "Started: The Bear (2022), 2 of 2 episodes, 4 GB.");
    home.app.pass(100 * 24 * 60 * 60);
    let old = home.finds(BOB, json!({ "not_watched_days": 90, "type": "movie", "sort": "title" })).await;
    assert!(old.starts_with("Not watched since then: Alien (1979)") && old.contains("Heat"), "{old}");
    home.app.jellyfin().watch(home.bob, home.heat, 100);
    // Answers of the last minute are still in memory.
    home.app.pass(2 * 60);
    let old = home.finds(BOB, json!({ "not_watched_days": 90, "type": "movie" })).await;
    assert!(!old.contains("Heat"), "{old}");
    let newest = home.finds(BOB, json!({ "last_watched": true, "watched": "watched" })).await;
    assert!(newest.starts_with("Watched: Heat (1995)"), "{newest}");
}

#[tokio::test]
async fn recommendation_from_the_library_is_unseen_by_the_person() {
    let home = Home::linked(Setup::default()).await;
    assert_eq!(
        home.answers(BOB, "recommend", json!({ "in_library": true })).await,
        "You have not seen Alien (1979)."
    );
    let anns = home.answers(ANN, "recommend", json!({ "in_library": true, "type": "movie" })).await;
    assert_eq!(anns, "You have not seen Dune (2021) and Heat (1995).");
}

#[tokio::test]
async fn server_that_is_down_makes_nothing_unwatched() {
    let home = Home::linked(Setup::default()).await;
    home.app.jellyfin().set_status(Some(503));
    let unseen = "I can't see right now what was watched. Please ask again later.";
    assert_eq!(home.finds(BOB, json!({ "watched": "unwatched" })).await, unseen);
    assert!(!home.details_of_heat(BOB).await.contains("You have not"));
    let recent = home.answers(BOB, "recently_watched", json!({})).await;
    assert_eq!(recent, "I can't see that right now. Please ask again later.");
}

#[tokio::test]
async fn watching_of_one_person_reaches_nobody_else() {
    let home = Home::linked(Setup::default()).await;
    let before = home.app.messages_to(ANN).len();
    assert!(home.details_of_heat(BOB).await.contains(BOBS_PROGRESS));
    assert!(home.answers(BOB, "recently_watched", json!({})).await.contains(BOBS_PROGRESS));
    let refused = "I keep what people watch to myself. I can only tell you about your own.";
    for by in ["Bob", "anyone"] {
        assert_eq!(home.answers(ANN, "recently_watched", json!({ "by": by })).await, refused);
    }
    assert_eq!(home.finds(ANN, json!({ "watched": "started", "watched_by": "Bob" })).await, refused);
    home.details_of_heat(ANN).await;
    let prompt = request_text(&home.app.last_request());
    assert!(!prompt.contains(BOBS_PROGRESS) && !prompt.contains("stopped"), "{prompt}");
    let texts = home.app.messages_to(ANN).split_off(before);
    assert!(!texts.iter().any(|text| text.contains(BOBS_PROGRESS)), "{texts:?}");
}

#[tokio::test]
async fn console_and_api_hide_answers_about_watching() {
    let home = Home::linked(Setup::default()).await;
    home.app.model_plays([calls("recently_watched", json!({})), says("You stopped Heat at 41%.")]);
    assert_eq!(home.app.sms_from(BOB, "what was i watching?").await, "You stopped Heat at 41%.");
    let mut browser = home.app.browser().await;
    let conversation = format!("/conversations/{}", home.conversation_of_bob().await);
    let pages = [
        "/",
        "/users/2",
        "/deliveries",
        "/conversations",
        "/conversations?q=stopped",
        "/viewer-accounts",
        "/memory",
    ];
    for path in pages.into_iter().chain([conversation.as_str()]) {
        let page = browser.get(path).await;
        assert!(!page.html.contains(BOBS_PROGRESS), "{path}: {}", page.text());
    }
    let page = browser.get(&conversation).await;
    page.assert_shows(200, "(An answer about what somebody has watched.)");
    let program = home.app.program().await;
    let api = format!("/api/v1/conversations/{}", home.conversation_of_bob().await);
    let answered = program.get(&api).await;
    assert!(!answered.json().to_string().contains(BOBS_PROGRESS));
}

#[tokio::test]
async fn answer_about_watching_is_erased_after_a_day_and_never_remembered() {
    let home = Home::linked(Setup::default()).await;
    home.app.model_plays([calls("recently_watched", json!({})), says("You stopped Heat at 41%.")]);
    home.app.sms_from(BOB, "what was i watching?").await;
    assert!(home.app.export_user(BOB).to_string().contains(BOBS_PROGRESS));
    assert_eq!(home.app.lines("SELECT 1 AS line FROM agent_responses WHERE turn_id IN (SELECT id FROM turns WHERE about_viewing)").await, NONE);
    home.app.days_pass(2).await;
    let export = home.app.export_user(BOB);
    assert!(!export.to_string().contains(BOBS_PROGRESS), "{export:#}");
    assert!(export.to_string().contains("what was i watching?"));
}

#[tokio::test]
async fn answers_that_may_repeat_watching_are_hidden_too() {
    let home = Home::linked(Setup::default()).await;
    home.app.model_plays([calls("recently_watched", json!({})), says("You stopped Heat at 41%.")]);
    home.app.sms_from(BOB, "what was i watching?").await;
    home.app.model_plays([says("As I said, at 41%.")]);
    assert_eq!(home.app.sms_from(BOB, "where did I stop again?").await, "As I said, at 41%.");
    home.app.model_plays([finds("dune"), says("Dune is there.")]);
    home.app.sms_from(BOB, "do we have dune?").await;
    let mut browser = home.app.browser().await;
    let page = browser.get(&format!("/conversations/{}", home.conversation_of_bob().await)).await;
    assert!(!page.html.contains(BOBS_PROGRESS), "{}", page.text());
    assert!(!page.html.contains("Dune is there."), "{}", page.text());
    let streamed = home.events_of_bob().await;
    assert!(streamed.contains("BlockDelta") && !streamed.contains(BOBS_PROGRESS), "{streamed}");
}

#[tokio::test]
async fn shared_watching_is_told_by_name() {
    let home = Home::linked(sharing()).await;
    let bobs = home.answers(ANN, "recently_watched", json!({ "by": "bob" })).await;
    assert!(bobs.starts_with("Bob stopped watching Heat (1995) at 41%"), "{bobs}");
    assert!(home.details_of_heat(ANN).await.contains("Bob stopped at 41% on "));
    let unseen = home.finds(ANN, json!({ "watched": "unwatched", "watched_by": "anyone" })).await;
    assert_eq!(unseen, "No title in the library matches.");
    let unknown = home.answers(ANN, "recently_watched", json!({ "by": "zoe" })).await;
    assert_eq!(unknown, "I don't know what \"zoe\" has watched.");
}

#[tokio::test]
async fn keyword_question_about_another_person_respects_sharing() {
    for (setup, expected) in [
        (Setup::default(), "I keep what people watch to myself. I can only tell you about your own."),
        (sharing(), "Bob stopped at 41% on Nov 20, 2026."),
    ] {
        let mut home = Home::linked(setup).await;
        home.app.reconfigure(Setup::keyword_responder).await;
        let answer = home.app.sms("did bob finish heat").await;
        assert!(answer.contains(expected) && !answer.contains("You "), "{answer}");
    }
}

#[tokio::test]
async fn viewer_of_a_title_to_delete_is_named_if_sharing_allows() {
    for (setup, who) in [(sharing(), "Bob is"), (Setup::default(), "Someone is")] {
        let home = Home::linked(setup).await;
        home.app.model_plays(removes_movie("heat", 8));
        let prompt = home.app.sms("delete heat").await;
        assert!(prompt.starts_with("Delete Heat"), "{prompt}");
        home.app.jellyfin().start_playing(home.bob, home.heat);
        let kept = format!("{who} watching Heat (1995) right now, so I kept it.");
        assert_eq!(home.app.sms("yes").await, kept);
    }
}

#[tokio::test]
async fn operator_who_asks_as_a_user_is_told_nothing() {
    let home = Home::linked(Setup::default()).await;
    home.app.model_plays([calls("recently_watched", json!({})), says(""), says("")]);
    let program = home.app.program_with_scope("admin").await;
    program.texts(json!({ "user": 2, "text": "what was i watching?" })).await;
    home.app.settle().await;
    assert!(
        home.app.results().iter().all(|result| !result.contains(BOBS_PROGRESS)),
        "{:?}",
        home.app.results()
    );
}

#[tokio::test]
async fn unlinked_and_forgotten_people_leave_no_account() {
    let home = Home::linked(Setup::default()).await;
    let reply = home.answers(BOB, "link_account", json!({ "unlink": true })).await;
    assert_eq!(reply, "You are not linked any more. I no longer see what you watch.");
    assert_eq!(home.answers(BOB, "recently_watched", json!({})).await, NOT_LINKED);
    home.link(BOB, "bobby").await;
    assert!(home.app.export_user(BOB)["media_server_accounts"].to_string().contains("bobby"));
    home.app.forget_user(BOB);
    assert_eq!(home.app.lines("SELECT account_name AS line FROM viewer_accounts").await, ["ann"]);
    assert_eq!(home.app.lines("SELECT 1 AS line FROM approvals WHERE account_name = 'bobby'").await, NONE);
}

#[tokio::test]
async fn operator_links_accounts_on_a_page_of_names() {
    let home = Home::start(Setup::default()).await;
    let mut browser = home.app.browser().await;
    let page = browser.get("/viewer-accounts").await;
    page.assert_shows(200, "bobby");
    let page = browser.presses(&page, "Link", &[]).await;
    page.assert_shows(200, "Linked.");
    page.assert_shows(200, "linked to Ann");
    let page = browser.presses(&page, "Unlink", &[]).await;
    page.assert_shows(200, "Unlinked.");
    home.app.jellyfin().set_status(Some(503));
    browser.get("/viewer-accounts").await.assert_shows(200, "A server does not respond.");
}

#[tokio::test]
async fn linked_account_that_its_server_lacks_is_marked() {
    let home = Home::linked(Setup::default()).await;
    let mut browser = home.app.browser().await;
    let is_marked = |page: &str| page.contains("not found");
    assert!(!is_marked(&browser.get("/viewer-accounts").await.html));
    home.app.jellyfin().remove_user(home.bob);
    assert!(is_marked(&browser.get("/viewer-accounts").await.html));
    home.app.jellyfin().set_status(Some(503));
    assert!(!is_marked(&browser.get("/viewer-accounts").await.html));
}

#[tokio::test]
async fn tools_about_watching_are_offered_only_with_a_media_server() {
    let tools = ["recently_watched", "link_account"];
    let app = TestApp::start().await;
    app.model_plays([says("Hi.")]);
    app.sms("hello there my friend").await;
    assert!(!offered(&app.last_request()).iter().any(|tool| tools.contains(tool)));
    let home = Home::start(Setup::default()).await;
    home.app.model_plays([says("Hi.")]);
    home.app.sms("hello there my friend").await;
    let offered = offered(&home.app.last_request()).into_iter().filter(|tool| tools.contains(tool)).count();
    assert_eq!(offered, 2);
}
