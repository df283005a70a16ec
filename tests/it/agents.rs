//! Agents that act for a person: the address for agents, the tools and resources, and the questions about deletions, which
//! only the person answers.

use bytes::Bytes;
use dialarr::arr::fake::media_fixtures::movie;
use dialarr::cli::mcp::{AgentAddress, pass_messages};
use dialarr::conversation::rating_caps::{MinimumAge, RatingCaps};
use dialarr::conversation::transcript::PhoneNumber;
use dialarr::http::HttpClient;
use dialarr::media_servers::CatalogIds;
use dialarr::store::agent_tickets::CallProgress;
use dialarr::store::people::{age_limits, users};
use dialarr::store::privacy::forget::ErasureOutcome;
use dialarr::web;
use http::StatusCode;
use http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN, WWW_AUTHENTICATE};
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::harness::agent::{Agent, EARLIER};
use crate::harness::world::World;
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

const CAT: &str = "+15550100004";
const HEAT: i64 = 949;
const DUNE: i64 = 438_631;

/// Household of Ann, an admin, and Bob, who may add. Heat and Dune are in the library.
async fn start() -> TestApp {
    start_with(Setup::default().keyword_responder()).await
}

async fn start_with(setup: Setup) -> TestApp {
    let app = setup.start().await;
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    app.radarr().add(movie("Heat").id(2).tmdb(HEAT).year(1995).size_gb(18.0));
    app.radarr().add(movie("Dune").id(1).tmdb(DUNE).year(2021).size_gb(30.0));
    app
}

/// Returns the words that confirm a question, with its code.
fn yes_in(question: &str) -> String {
    let (_, rest) = question.split_once("Reply YES ").unwrap_or_else(|| panic!("{question}"));
    format!("YES {}", rest.split(' ').next().unwrap())
}

fn has_heat(app: &TestApp) -> bool {
    titles(app).contains(&"Heat".to_owned())
}

fn titles(app: &TestApp) -> Vec<String> {
    app.radarr().titles().iter().map(|title| title.title.clone()).collect()
}

/// Returns the id of the conversation of an agent.
async fn agent_conversation(app: &TestApp) -> i64 {
    let ids = app.lines("SELECT id AS line FROM conversations WHERE agent_key_id IS NOT NULL").await;
    ids[0].parse().unwrap()
}

/// Returns the questions of agents to a person.
fn questions_to(app: &TestApp, phone: &str) -> Vec<String> {
    app.messages_to(phone).into_iter().filter(|text| text.contains(" asks: ")).collect()
}

#[tokio::test]
async fn address_for_agents_admits_only_keys_for_agents() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "read").await;
    let list = agent.body("tools/list", json!({}));
    let without_key = || {
        let mut request = agent.request("tools/list", None);
        request.headers_mut().unwrap().remove(AUTHORIZATION);
        request
    };
    let unauthorized = agent.send(without_key(), &list).await;
    assert_eq!(unauthorized.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(unauthorized.headers()[WWW_AUTHENTICATE], "Bearer");

    let browser = app.browser().await;
    let cookie = browser.cookie().unwrap();
    let with_cookie = without_key().header(COOKIE, cookie).header(ORIGIN, "http://localhost:3001");
    assert_eq!(agent.send(with_cookie, &list).await.status(), StatusCode::UNAUTHORIZED);

    let wrong = without_key().header(AUTHORIZATION, format!("Bearer {}x", agent.key));
    assert_eq!(agent.send(wrong, &list).await.status(), StatusCode::UNAUTHORIZED);
    let in_other_header = without_key().header("x-api-key", &agent.key);
    assert_eq!(agent.send(in_other_header, &list).await.status(), StatusCode::UNAUTHORIZED);

    let program = app.program_with_scope("admin").await;
    let api_key =
        program.to(http::Method::POST, "/mcp").header("accept", "application/json, text/event-stream");
    let refused = program.send(api_key, &list.to_string()).await;
    assert_eq!(refused.problem(), (403, "This key is not for an agent.".to_owned()));

    assert_eq!(agent.send(agent.request("tools/list", None), &list).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn key_for_an_agent_opens_nothing_but_its_address() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    for path in ["/api/v1/users", "/api/v1/conversations", "/metrics"] {
        let request = http::Request::get(path)
            .header(HOST, "localhost:3001")
            .header(AUTHORIZATION, format!("Bearer {}", agent.key));
        assert_eq!(agent.send(request, &Value::Null).await.status(), StatusCode::FORBIDDEN, "{path}");
    }
    let page = http::Request::get("/keys").header(HOST, "localhost:3001");
    let page = page.header(AUTHORIZATION, format!("Bearer {}", agent.key));
    assert_eq!(agent.send(page, &Value::Null).await.status(), StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn pages_of_other_sites_cannot_use_the_key_of_an_agent() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "read").await;
    let list = agent.body("tools/list", json!({}));
    let foreign = agent.request("tools/list", None).header(ORIGIN, "https://evil.example");
    assert_eq!(agent.send(foreign, &list).await.status(), StatusCode::FORBIDDEN);
    let own = agent.request("tools/list", None).header(ORIGIN, "http://localhost:3001");
    assert_eq!(agent.send(own, &list).await.status(), StatusCode::OK);
    let mut rebound = agent.request("tools/list", None);
    rebound.headers_mut().unwrap().insert(HOST, "evil.example".parse().unwrap());
    assert_eq!(agent.send(rebound, &list).await.status(), StatusCode::MISDIRECTED_REQUEST);
    let large =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "x": "y".repeat(70_000) } });
    let too_large = agent.send(agent.request("tools/list", None), &large).await;
    assert_eq!(too_large.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn client_that_looks_for_a_sign_in_finds_none() {
    let app = start().await;
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server/mcp"] {
        let request = http::Request::get(path).header(HOST, "localhost:3001").body(Bytes::new()).unwrap();
        assert_eq!(app.ask_console(request).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn list_of_tools_follows_the_scope_and_rights_of_the_key() {
    let app = start().await;
    let reads = app.agent("phone", ANN, "read").await.tools().await;
    assert!(reads.contains(&"find_in_library".to_owned()), "{reads:?}");
    for absent in ["add_movie", "remove_media", "react", "remember", "make_room", "tonight"] {
        assert!(!reads.contains(&absent.to_owned()), "{absent}");
    }
    let admin = app.agent("desk", ANN, "write").await;
    let offered = admin.tools().await;
    for present in ["add_movie", "change_media", "remove_media", "remove_download", "check_ticket"] {
        assert!(offered.contains(&present.to_owned()), "{present}");
    }
    let mut sorted = offered.clone();
    sorted.sort();
    assert_eq!(offered, sorted);
    let member = app.agent("bob", BOB, "write").await.tools().await;
    assert!(member.contains(&"add_movie".to_owned()) && !member.contains(&"remove_media".to_owned()));
    assert!(!member.contains(&"request_removal".to_owned()));
    let answer = admin.ask("tools/list", json!({})).await;
    assert_eq!(answer["result"]["cacheScope"], "private");
}

#[tokio::test]
async fn deletion_is_not_offered_while_the_person_cannot_be_asked() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    app.sms("STOP").await;
    assert!(!agent.tools().await.contains(&"remove_media".to_owned()));
    let id = agent.find_movie("heat").await;
    let arguments = json!({ "items": [{ "type": "movie", "id": id }], "delete_files": true });
    let refused = agent.ask("tools/call", json!({ "name": "remove_media", "arguments": arguments })).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert!(has_heat(&app));
}

#[tokio::test]
async fn earlier_client_gets_the_same_tools_without_a_session() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    let send = async |body: Value| {
        let mut request = agent.request("tools/list", None);
        let headers = request.headers_mut().unwrap();
        headers.remove("mcp-method");
        headers.insert("mcp-protocol-version", EARLIER.parse().unwrap());
        let response = agent.send(request, &body).await;
        serde_json::from_slice::<Value>(response.body()).unwrap_or_else(|_| panic!("{response:?}"))
    };
    let hello = send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": EARLIER, "capabilities": {}, "clientInfo": { "name": "Cursor", "version": "1" } } }))
    .await;
    assert_eq!(hello["result"]["protocolVersion"], EARLIER, "{hello}");
    assert_eq!(hello["result"]["serverInfo"]["name"], "dialarr");
    let listed = send(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" })).await;
    let names = listed["result"]["tools"].as_array().unwrap().iter();
    let names: Vec<String> = names.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, agent.tools().await);
    let called = send(json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call",
        "params": { "name": "find_in_library", "arguments": { "query": "heat" } } }))
    .await;
    assert_eq!(called["result"]["structuredContent"]["results"][0]["title"], "Heat", "{called}");
    let removal = json!({ "items": [{ "type": "movie", "id": 2 }], "delete_files": true });
    send(json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/call",
        "params": { "name": "remove_media", "arguments": removal } }))
    .await;
    app.settle().await;
    assert!(app.last_to(ANN).starts_with("Cursor (key \"desk\") asks: delete Heat"), "{}", app.last_to(ANN));
}

#[tokio::test]
async fn addition_of_an_agent_counts_as_the_persons_own() {
    let app = start().await;
    app.radarr().add_to_catalog(movie("Alien").tmdb(348).year(1979));
    let agent = app.agent("desk", BOB, "write").await;
    let found = agent.call("search_media", json!({ "query": "alien", "type": "movie" })).await;
    let tmdb = found["results"][0]["tmdb"].clone();
    let added = agent.call("add_movie", json!({ "tmdb": tmdb })).await;
    assert_eq!(added["status"], "added", "{added}");
    assert!(titles(&app).contains(&"Alien".to_owned()));
    let requests = agent.read("dialarr://requests").await;
    assert_eq!(requests["results"][0]["title"], "Alien", "{requests}");
    assert_eq!(requests["results"][0]["asked_by"], "you");
    let audited = app
        .lines(
            "SELECT kind || ' ' || user_id || ' ' || (detail ->> '$.agent_key') AS line FROM audit_log \
                WHERE detail ->> '$.agent_key' IS NOT NULL ORDER BY id",
        )
        .await;
    assert_eq!(audited, ["write_done 2 desk"]);
    assert!(app.messages_to(BOB).is_empty());
    let page = app.browser().await.get("/conversations").await.text();
    assert!(page.contains("Claude (key \"desk\")"), "{page}");
}

#[tokio::test]
async fn call_without_the_right_or_a_shown_id_is_refused() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    let unseen = json!({ "items": [{ "type": "movie", "id": 2 }], "delete_files": true });
    let refused = agent.call("remove_media", unseen).await;
    assert_eq!(refused["error"], "unknown_id", "{refused}");
    let bad = agent.call("find_in_library", json!({ "type": "novel" })).await;
    assert_eq!(bad["error"], "bad_arguments", "{bad}");
    assert!(questions_to(&app, ANN).is_empty());
}

#[tokio::test]
async fn deletion_of_an_agent_runs_once_after_the_person_says_yes() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    let asked = agent.delete_movie("heat").await;
    assert_eq!((asked["state"].as_str(), asked["asked"].as_str()), (Some("asked"), Some("Ann")), "{asked}");
    app.settle().await;
    let question = app.last_to(ANN);
    assert!(
        question
            .starts_with("Claude (key \"desk\") asks: delete Heat (1995) and its file, 18 GB? Reply YES "),
        "{question}"
    );
    assert!(has_heat(&app));
    assert_eq!(agent.check(&asked).await["state"], "asked");

    let report = app.sms(&yes_in(&question)).await;
    assert_eq!(report, "Deleted Heat (1995). Freed 18 GB.");
    assert!(!has_heat(&app));
    for _ in 0..2 {
        let done = agent.check(&asked).await;
        assert_eq!(
            (&done["state"], &done["result"]["status"]),
            (&json!("done"), &json!("deleted")),
            "{done}"
        );
    }
    assert_eq!(app.radarr().removed_ids().len(), 1);
    let audited = "SELECT kind || ' ' || (detail ->> '$.agent_key') AS line FROM audit_log \
                   WHERE detail ->> '$.agent_key' IS NOT NULL";
    assert_eq!(app.lines(audited).await, ["deleted desk"]);
    assert!(!asked.to_string().contains(&yes_in(&question)), "{asked}");
}

#[tokio::test]
async fn question_of_an_agent_can_be_answered_in_the_console() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    let asked = agent.delete_movie("heat").await;
    app.settle().await;
    let conversation = agent_conversation(&app).await;
    app.browser().await.answers(conversation, "yes").await;
    assert!(!has_heat(&app));
    assert_eq!(agent.check(&asked).await["state"], "done");
    assert_eq!(app.last_to(ANN), "Deleted Heat (1995). Freed 18 GB.");
}

#[tokio::test]
async fn bare_yes_never_confirms_the_question_of_an_agent() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    let asked = agent.delete_movie("heat").await;
    app.settle().await;
    let repeated = app.sms("yes").await;
    assert!(repeated.contains("Claude (key \"desk\") asks: delete Heat (1995)"), "{repeated}");
    assert!(has_heat(&app));
    app.sms("no").await;
    assert_eq!(agent.check(&asked).await["state"], "refused");
    assert!(has_heat(&app));
}

#[tokio::test]
async fn repeated_call_of_an_agent_returns_the_same_ticket() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    let asked = agent.delete_movie("heat").await;
    app.settle().await;
    let again = agent.delete_movie("heat").await;
    assert_eq!(again["ticket"], asked["ticket"]);
    app.settle().await;
    assert_eq!(questions_to(&app, ANN).len(), 1);
    app.sms(&yes_in(&app.last_to(ANN))).await;
    assert_eq!(agent.check(&asked).await["state"], "done");
    assert_eq!(app.radarr().removed_ids().len(), 1);
}

#[tokio::test]
async fn ticket_is_not_found_with_another_key() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    let asked = agent.delete_movie("heat").await;
    for (name, phone) in [("laptop", ANN), ("bob", BOB)] {
        let other = app.agent(name, phone, "write").await;
        assert_eq!(other.check(&asked).await, json!({ "error": "not found" }));
    }
    assert_eq!(agent.call("check_ticket", json!({ "ticket": "x" })).await, json!({ "error": "not found" }));
    assert_eq!(agent.call("check_ticket", json!({})).await["error"], "bad_arguments");
}

/// Lets an agent ask Ann whether to delete Heat, and passes the time to answer. Returns the ticket and the question.
async fn ask_in_vain(app: &TestApp, agent: &Agent<'_>) -> (Value, String) {
    let asked = agent.delete_movie("heat").await;
    app.settle().await;
    let question = app.last_to(ANN);
    app.pass(5 * 60 + 1);
    assert_eq!(agent.check(&asked).await["state"], "expired");
    (asked, question)
}

#[tokio::test]
async fn question_of_an_agent_expires_without_an_answer() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    let (asked, question) = ask_in_vain(&app, &agent).await;
    app.sms(&yes_in(&question)).await;
    assert!(has_heat(&app));
    assert_eq!(agent.check(&asked).await["state"], "expired");
}

#[tokio::test]
async fn expired_ticket_stays_expired_when_the_clock_goes_back() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    let (asked, question) = ask_in_vain(&app, &agent).await;
    app.clock_is_set_back(10 * 60);
    app.sms(&yes_in(&question)).await;
    app.sms("status").await;
    assert!(has_heat(&app));
    assert_eq!(agent.check(&asked).await["state"], "expired");
}

#[tokio::test]
async fn changed_title_is_asked_about_again_in_the_name_of_the_agent() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    let asked = agent.delete_movie("heat").await;
    app.settle().await;
    let question = app.last_to(ANN);
    app.radarr().edit(2, |heat| *heat = heat.clone().size_gb(40.0));
    let again = app.sms(&yes_in(&question)).await;
    assert!(again.contains("Claude (key \"desk\") asks: delete Heat (1995) and its file, 40 GB?"), "{again}");
    assert!(has_heat(&app));
    assert_eq!(agent.check(&asked).await["state"], "asked");
    assert_eq!(agent.delete_movie("heat").await["ticket"], asked["ticket"]);
    app.sms(&yes_in(&again)).await;
    assert!(!has_heat(&app));
    assert_eq!(agent.check(&asked).await["state"], "done");
}

#[tokio::test]
async fn revoking_the_key_closes_the_open_question() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    let asked = agent.delete_movie("heat").await;
    app.settle().await;
    let question = app.last_to(ANN);
    let key = app.lines("SELECT id AS line FROM api_keys").await.remove(0);
    app.browser().await.submit(&format!("/keys/{key}/revoke"), &[]).await;
    app.sms(&yes_in(&question)).await;
    assert!(has_heat(&app));
    let refused = agent.send(agent.request("tools/list", None), &agent.body("tools/list", json!({}))).await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert!(asked["ticket"].is_string());
}

#[tokio::test]
async fn question_of_an_agent_waits_for_the_persons_own_question() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    let own = app.sms("delete dune").await;
    assert!(own.starts_with("Delete Dune (2021)"), "{own}");
    let asked = agent.delete_movie("heat").await;
    assert_eq!(asked["state"], "waiting", "{asked}");
    assert!(questions_to(&app, ANN).is_empty());
    let answers = app.sms("yes").await;
    assert!(answers.contains("Deleted Dune (2021)"), "{answers}");
    assert_eq!(agent.check(&asked).await["state"], "asked");
    let question = questions_to(&app, ANN).remove(0);
    app.sms(&yes_in(&question)).await;
    assert_eq!(agent.check(&asked).await["state"], "done");
    assert_eq!(titles(&app), Vec::<String>::new());
}

#[tokio::test]
async fn agents_ask_one_after_the_other() {
    let app = start().await;
    let desk = app.agent("desk", ANN, "write").await;
    let laptop = app.agent("laptop", ANN, "write").await.named("Cursor");
    let heat = desk.delete_movie("heat").await;
    app.settle().await;
    let dune = laptop.delete_movie("dune").await;
    assert_eq!((&heat["state"], &dune["state"]), (&json!("asked"), &json!("waiting")));
    app.sms("no").await;
    let question = app.last_to(ANN);
    assert!(question.starts_with("Cursor (key \"laptop\") asks: delete Dune (2021)"), "{question}");
    app.sms(&yes_in(&question)).await;
    assert_eq!(desk.check(&heat).await["state"], "refused");
    assert_eq!(laptop.check(&dune).await["state"], "done");
    assert_eq!(titles(&app), ["Heat"]);
}

#[tokio::test]
async fn no_text_with_an_api_key_confirms_a_deletion() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    let asked = agent.delete_movie("heat").await;
    app.settle().await;
    let question = app.last_to(ANN);
    let program = app.program_with_scope("admin").await;
    for text in [yes_in(&question), "YES".to_owned(), "YES 0000".to_owned(), "yes delete heat".to_owned()] {
        let answer = program.texts(json!({ "user": ANN, "text": text })).await.json();
        assert_eq!(
            answer["content"],
            "Only a person can confirm this, in their own chat or in the console. Nothing was done.",
            "{text}"
        );
    }
    assert!(has_heat(&app));
    assert_eq!(agent.check(&asked).await["state"], "asked");

    app.sms(&yes_in(&question)).await;
    assert!(!has_heat(&app));
}

#[tokio::test]
async fn no_text_with_an_api_key_approves_a_newcomer() {
    let app = start().await;
    let program = app.program_with_scope("admin").await;
    app.sms_from(CAT, "hi").await;
    app.sms_from(CAT, "Cat").await;
    let request = app.messages_to(ANN).into_iter().find(|text| text.contains("APPROVE ")).unwrap();
    let code: String = request.split_once("APPROVE ").unwrap().1.chars().take(4).collect();
    let answer = program.texts(json!({ "user": ANN, "text": format!("APPROVE {code}") })).await.json();
    assert!(answer["content"].as_str().unwrap().starts_with("Only a person can confirm"), "{answer}");
    assert!(app.sms(&format!("APPROVE {code}")).await.contains("Cat"));
}

#[tokio::test]
async fn question_that_cannot_be_sent_blocks_no_other_agent() {
    let app = start().await;
    let desk = app.agent("desk", ANN, "write").await;
    let laptop = app.agent("laptop", ANN, "write").await;
    app.twilio().fail_next(400, 21_211);
    let heat = desk.delete_movie("heat").await;
    app.settle().await;
    app.app().relay.wait_until_settled().await.unwrap();
    assert_eq!(desk.check(&heat).await["state"], "expired");
    let dune = laptop.delete_movie("dune").await;
    assert_eq!(dune["state"], "asked", "{dune}");
    app.settle().await;
    app.sms(&yes_in(&app.last_to(ANN))).await;
    assert_eq!(laptop.check(&dune).await["state"], "done");
    assert_eq!(titles(&app), ["Heat"]);
    assert_eq!(desk.check(&heat).await["state"], "expired");
}

#[tokio::test]
async fn agent_is_not_told_who_is_watching() {
    let app = start_with(Setup::default().keyword_responder().jellyfin()).await;
    let (cat, ids) =
        (app.jellyfin().add_user("cat"), CatalogIds { tmdb: Some(HEAT), ..CatalogIds::default() });
    let heat = app.jellyfin().add_movie(("Heat", 1995), ids, SignedDuration::ZERO);
    app.register_named_user("Cat", CAT, Has::AddRight).await;
    app.link_viewer(CAT, cat).await;
    let agent = app.agent("desk", ANN, "write").await;
    let asked = agent.delete_movie("heat").await;
    app.settle().await;
    app.jellyfin().start_playing(cat, heat);
    let report = app.sms(&yes_in(&app.last_to(ANN))).await;
    assert!(report.contains("watching"), "{report}");
    let failed = agent.check(&asked).await;
    assert_eq!(failed["state"], "failed", "{failed}");
    assert!(!failed.to_string().contains("Cat"), "{failed}");
}

#[tokio::test]
async fn agents_ask_at_most_three_times_a_day_without_a_yes() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    for _ in 0..3 {
        let asked = agent.delete_movie("heat").await;
        assert_eq!(asked["state"], "asked", "{asked}");
        app.settle().await;
        app.sms("no").await;
    }
    let refused = agent.delete_movie("heat").await;
    assert_eq!(refused["error"], "limit", "{refused}");
    let other = app.agent("laptop", ANN, "write").await;
    assert_eq!(other.delete_movie("dune").await["error"], "limit");
    assert_eq!(questions_to(&app, ANN).len(), 3);
    app.pass(24 * 60 * 60);
    assert_eq!(agent.delete_movie("heat").await["state"], "asked");
}

#[tokio::test]
async fn agent_asks_nothing_during_quiet_hours() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    app.sms("quiet 20-23").await;
    let refused = agent.delete_movie("heat").await;
    assert_eq!(refused["error"], "not_run", "{refused}");
    assert!(refused["details"]["quiet_until"].is_string(), "{refused}");
    assert!(questions_to(&app, ANN).is_empty());
    app.pass(3 * 60 * 60);
    assert_eq!(agent.delete_movie("heat").await["state"], "asked");
}

#[tokio::test]
async fn restart_keeps_the_question_and_its_ticket() {
    let mut app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    let (key, asked) = (agent.key.clone(), agent.delete_movie("heat").await);
    app.settle().await;
    let question = app.last_to(ANN);
    app.restart().await;
    let agent = Agent::with_key(&app, key);
    assert_eq!(agent.check(&asked).await["state"], "asked");
    app.sms(&yes_in(&question)).await;
    assert_eq!(agent.check(&asked).await["state"], "done");
}

#[tokio::test]
async fn resources_are_read_page_by_page() {
    let app = start().await;
    for number in 0..6_i64 {
        app.radarr().add(movie(&format!("Saga {number}")).id(10 + number).tmdb(9_000 + number).year(2000));
    }
    let agent = app.agent("desk", ANN, "read").await;
    let listed = agent.ask("resources/list", json!({})).await;
    let uris = listed["result"]["resources"].as_array().unwrap().iter();
    let uris: Vec<&str> = uris.map(|resource| resource["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, ["dialarr://library", "dialarr://queue", "dialarr://upcoming", "dialarr://requests"]);
    let first = agent.read("dialarr://library").await;
    assert_eq!(first["total"], 8, "{first}");
    let second = agent.read(first["next"].as_str().unwrap()).await;
    assert_eq!(second["results"].as_array().unwrap().len(), 3, "{second}");
    assert_eq!(second["next"], Value::Null);
    for uri in ["dialarr://queue", "dialarr://upcoming"] {
        assert!(agent.read(uri).await["total"].is_number(), "{uri}");
    }
    let unknown = agent.ask("resources/read", json!({ "uri": "dialarr://users" })).await;
    assert!(unknown["error"]["message"].as_str().unwrap().contains("no such resource"), "{unknown}");
}

#[tokio::test]
async fn conversation_of_an_agent_is_shown_in_the_console_without_a_text_box() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    agent.delete_movie("heat").await;
    app.settle().await;
    let id = agent_conversation(&app).await;
    let page = app.browser().await.get(&format!("/conversations/{id}")).await;
    let text = page.text();
    assert!(text.contains("find_in_library") || text.contains("remove_media"), "{text}");
    assert!(text.contains("Claude (key \"desk\") asks: delete Heat (1995)"), "{text}");
    assert!(!page.html.contains("<textarea"), "{}", page.html);
}

#[tokio::test]
async fn loop_of_an_agent_is_stopped_by_the_hourly_limit() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "read").await;
    let mut answers = Vec::new();
    for _ in 0..301 {
        answers.push(agent.call("server_status", json!({})).await["error"].clone());
    }
    assert_eq!(answers.iter().filter(|error| error.is_null()).count(), 300);
    assert_eq!(answers[300], "limit");
    app.pass(60 * 60);
    assert!(agent.call("server_status", json!({})).await["error"].is_null());
}

#[tokio::test]
async fn local_agent_reaches_the_service_over_standard_input() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    let send = async |key: &str, lines: &[Value]| -> Vec<Value> {
        let input = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let (output, mut read) = tokio::io::duplex(1 << 20);
        let address = AgentAddress { url: "http://localhost:3001/mcp".to_owned(), key: key.to_owned() };
        let console = web::in_process(web::console_router(app.app().console.clone()));
        pass_messages(HttpClient::in_process(console), address, input.as_bytes(), output).await.unwrap();
        let mut text = String::new();
        read.read_to_string(&mut text).await.unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let arguments = json!({ "name": "find_in_library", "arguments": { "query": "heat" } });
    let call = agent.body("tools/call", arguments);
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let answers = send(&agent.key, &[note, call]).await;
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0]["result"]["structuredContent"]["results"][0]["title"], "Heat", "{answers:?}");
    let refused = send("dlr_wrong", &[agent.body("tools/list", json!({}))]).await;
    assert_eq!(refused[0]["error"]["message"], "The service refuses the key.", "{refused:?}");
    assert_eq!(refused[0]["id"], 3);
}

#[tokio::test]
async fn agent_of_a_person_with_caps_sees_and_adds_nothing_over_them() {
    let app = start().await;
    let caps = RatingCaps { movies: Some(MinimumAge(13)), shows: Some(MinimumAge(10)) };
    let (phone, now) = (PhoneNumber::parse(BOB).unwrap(), app.now());
    let limit = move |conn: &mut _| {
        let user = users::find_user_by_phone(conn, &phone)?.unwrap();
        age_limits::set_rating_caps(conn, user.id, caps, now)
    };
    app.app().db.write(limit).await.unwrap();
    app.radarr().add(movie("Up").id(3).tmdb(14_160).year(2009).certification("PG"));
    app.radarr().add(movie("Saw").id(4).tmdb(176).year(2004).certification("R"));
    app.radarr().add_to_catalog(movie("Hostel").tmdb(1_690).year(2005).certification("R"));
    let agent = app.agent("desk", BOB, "write").await;
    let library = agent.read("dialarr://library").await.to_string();
    assert!(library.contains("Up") && !library.contains("Saw"), "{library}");
    let found = agent.call("search_media", json!({ "query": "hostel", "type": "movie" })).await;
    assert!(!found.to_string().contains("1690"), "{found}");
    let refused = agent.call("add_movie", json!({ "tmdb": 1_690 })).await;
    assert_eq!(refused["error"], "unknown_id", "{refused}");
    assert!(!agent.tools().await.contains(&"ask_parents".to_owned()));
}

#[tokio::test]
async fn person_who_loses_the_right_to_delete_confirms_nothing() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    let asked = agent.delete_movie("heat").await;
    app.settle().await;
    let question = app.last_to(ANN);
    app.run_statement("UPDATE users SET role = 'member', can_delete = 0").await;
    app.sms(&yes_in(&question)).await;
    assert!(has_heat(&app));
    assert_eq!(agent.check(&asked).await["state"], "failed");
    assert!(!agent.tools().await.contains(&"remove_media".to_owned()));
}

#[tokio::test]
async fn agent_of_a_blocked_person_is_offered_nothing() {
    let app = start().await;
    let agent = app.agent("desk", BOB, "write").await;
    app.block(BOB).await;
    assert_eq!(agent.tools().await, ["check_ticket"]);
    let refused = agent.ask("tools/call", json!({ "name": "find_in_library", "arguments": {} })).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[tokio::test]
async fn erasing_a_person_revokes_the_keys_of_their_agents() {
    let app = start().await;
    let agent = app.agent("desk", BOB, "write").await;
    agent.call("find_in_library", json!({ "query": "heat" })).await;
    assert_eq!(app.forget_user(BOB), ErasureOutcome::Erased);
    let refused = agent.send(agent.request("tools/list", None), &agent.body("tools/list", json!({}))).await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let words = app
        .lines("SELECT coalesce(response, '') || request AS line FROM tool_calls WHERE tool_name = 'find_in_library'")
        .await;
    assert!(words.iter().all(|line| !line.to_lowercase().contains("heat")), "{words:?}");
}

#[tokio::test(start_paused = true)]
async fn write_with_a_lost_answer_is_found_in_the_library_and_made_once() {
    let world = World::start().await;
    let alien = world.radarr().add_to_catalog(movie("Alien").year(1979));
    world.radarr().drop_next_write_response();
    let search = ("search_media", json!({ "query": "alien", "type": "movie" }));
    let calls = world.agent_calls(ANN, &[search, ("add_movie", json!({ "tmdb": alien }))]).await;
    let CallProgress::Done(added) = &calls.last().unwrap().progress else { panic!("{calls:?}") };
    assert_eq!(added.for_model["status"], "added", "{calls:?}");
    assert_eq!(world.radarr().titles().len(), 1);
}

#[tokio::test]
async fn another_text_of_the_person_closes_the_question_of_an_agent() {
    let app = start().await;
    let agent = app.agent("desk", ANN, "write").await;
    let asked = agent.delete_movie("heat").await;
    app.settle().await;
    let answer = app.sms("status").await;
    assert!(answer.contains("Heat (1995) is kept"), "{answer}");
    let closed = agent.check(&asked).await;
    assert_eq!(closed["state"], "closed", "{closed}");
    assert!(has_heat(&app));
}
