//! `dialarr doctor`: its lines about a working household, and about each problem.

use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use dialarr::clock::Clock;
use dialarr::conversation::people::facts::{FactKind, UserFact};
use dialarr::conversation::transcript::{Address, OutboxId, PhoneNumber};
use dialarr::http::HttpClient;
use dialarr::media_servers::fake::{FakeHousehold, FakePlex, FakeTautulli};
use dialarr::messaging::twilio::Twilio;
use dialarr::messaging::twilio::fake::FakeDelivery;
use dialarr::messaging::{ChannelPort, OutboundMessage};
use dialarr::store::database::db::Db;
use dialarr::store::memory::facts::{self, FactSource};
use dialarr::store::memory::indexing_queue;
use dialarr::store::memory::responses::{self, AnswerOwner};
use dialarr::store::people::users::{self, FirstContactRole};
use dialarr::store::queue::callbacks::CallbackToken;
use jiff::Timestamp;

use crate::harness::cli::Ended;
use crate::harness::served::{
    Answers, BOT_TOKEN, SECRET, ServedPeers, TOKEN, embeddings, model, model_that_refuses_the_key, serve,
    set_webhook_elsewhere, signature_check, telegram,
};

/// Context length that is enough for every request of a turn.
const LONG: usize = 16_384;

/// Starts a complete household that was set up and used before.
async fn household() -> ServedPeers {
    let mut peers = ServedPeers::open().await;
    peers.set("PUBLIC_URL", &serve(signature_check()).await);
    peers.run(&["setup", "--apply"]);
    Db::open(&peers.cli.path("dialarr.db")).unwrap().close().await;
    peers.set("LLM_BASE_URL", &format!("{}/v1", serve(model(Answers::WithTheCall, LONG)).await));
    peers.set("LLM_MODEL", "a-model");
    peers.set("EMBEDDINGS_BASE_URL", &format!("{}/v1", serve(embeddings(0.2)).await));
    peers.set("EMBEDDINGS_MODEL", "an-embedder");
    peers
}

/// Returns the lines about `subject`. The output must contain no secret.
#[track_caller]
fn finding_text(ended: &Ended, subject: &str) -> String {
    let secrets = [SECRET, TOKEN, BOT_TOKEN, "5550100000", "5550100002"];
    assert!(!secrets.iter().any(|secret| ended.output.contains(secret)), "{}", ended.output);
    let mut about = false;
    let lines = ended.output.lines().filter(|line| {
        let hint = line.trim_start().starts_with("hint:");
        about = if hint { about } else { line.get(9..).is_some_and(|rest| rest.starts_with(subject)) };
        about
    });
    lines.map(without_time).collect::<Vec<_>>().join("\n")
}

/// Removes the duration from a line.
fn without_time(line: &str) -> String {
    match line.strip_suffix(" ms").and_then(|line| line.rsplit_once(' ')) {
        Some((line, _)) => format!("{line} # ms"),
        None => line.to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_a_line_for_each_passed_check() {
    let peers = household().await;
    let ended = peers.run(&["doctor"]);
    assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""), "{}", ended.output);
    let lines = ended.output.lines().filter(|line| !line.contains("free beside the database"));
    let lines = lines.map(without_time).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(lines.replace(peers.get("PUBLIC_URL"), "https://sms.example.org"), @r"
    ok       configuration: all values are valid
    ok       database: dialarr.db opens, and its schema is current
    ok       database: no damage found
    ok       database: no overdue messages
    ok       memory: 0 stored answers, 0 waiting to be indexed; facts about users: 0
    ok       clock: within 30 s of the clock of Twilio
    ok       Sonarr: reachable, version 4.0.19.2979
    ok       Sonarr: root folders accessible, 1.2 TB free
    ok       Sonarr: quality profiles: 2
    ok       Sonarr: reports no health problems
    ok       Sonarr: webhook set, and its test succeeded
    ok       Radarr: reachable, version 6.3.0.10514
    ok       Radarr: root folders accessible, 1.2 TB free
    ok       Radarr: quality profiles: 2
    ok       Radarr: reports no health problems
    ok       Radarr: webhook set, and its test succeeded
    ok       webhook: https://sms.example.org/webhook/twilio reaches Dialarr
    ok       Twilio: the number +***00 belongs to the account and can send texts
    ok       Twilio: webhook and fallback of the number set
    ok       Twilio: the number can send posters
    ok       Twilio: no text failed in the last week because of a missing registration
    ok       model: a-model responds and calls tools (118 tokens), in # ms
    ok       model: long requests are read completely (10101 tokens)
    ok       model: daily limit of 3,000,000 tokens (DAILY_TOKENS)
    ok       embeddings: an-embedder returned 5 dimensions for 8 sentences in # ms
    ok       embeddings: similarity of unrelated sentences up to 0.20, of related ones at least 1.00; the floor is 0.30
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_checks_tautulli_without_printing_its_key() {
    let mut peers = ServedPeers::open().await;
    let household = FakeHousehold::new(Clock::System);
    household.add_user("Ann");
    let plex = FakePlex::with_household("a-plex-token", household.clone());
    let tautulli = FakeTautulli::with_household("a-tautulli-key", household.clone());
    peers.set("PLEX_URL", &serve(plex.router()).await);
    peers.set("PLEX_TOKEN", "a-plex-token");
    peers.set("TAUTULLI_URL", &serve(tautulli.router()).await);
    let mut text = String::new();
    for key in ["a-tautulli-key", "a-wrong-key"] {
        peers.set("TAUTULLI_API_KEY", key);
        peers.set("RUST_LOG", "debug");
        let ended = peers.run(&["doctor"]);
        assert!(!format!("{}{}", ended.output, ended.errors).contains(key), "{}", ended.output);
        text.push_str(&format!("{}\n", finding_text(&ended, "Tautulli")));
    }
    insta::assert_snapshot!(text, @r"
    ok       Tautulli: reachable, version v2.17.2
    ok       Tautulli: users: 1
    failure  Tautulli: failed to authenticate: the key was rejected
             hint: copy its API key again: Settings, Web Interface
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_configuration_errors_per_variable() {
    let mut peers = ServedPeers::open().await;
    peers.set("PORT", "many");
    peers.set("SONARR_URL", "");
    let ended = peers.run(&["doctor"]);
    assert_eq!(ended.code, Some(1));
    insta::assert_snapshot!(ended.output, @r"
    failure  configuration: PORT: not a port from 0 to 65535
             hint: for example PORT=3000
    failure  configuration: SONARR_URL: needed with SONARR_API_KEY
             hint: for example SONARR_URL=http://sonarr:8989
    ");
    insta::assert_snapshot!(ended.errors, @"error: failed to pass 2 of 2 checks");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_suggests_the_name_of_a_misspelled_variable() {
    let mut peers = household().await;
    peers.cli.write(".env", "RATE_LIMTI=sesame\nREADARR_API_KEY=sesame\n");
    let ended = peers.run(&["doctor"]);
    assert_eq!((ended.code, ended.output.contains("sesame")), (Some(0), false));
    insta::assert_snapshot!(finding_text(&ended, "configuration"), @r"
    ok       configuration: all values are valid
    warning  configuration: RATE_LIMTI: unknown setting
             hint: if RATE_LIMIT is meant, rename it
    ");

    peers.set("LLM_MODEL", "");
    peers.set("LLM_MODLE", "a-model");
    insta::assert_snapshot!(finding_text(&peers.run(&["doctor"]), "configuration"), @r"
    failure  configuration: LLM_MODEL: needed with LLM_API_KEY or LLM_BASE_URL
             hint: for example LLM_MODEL=gpt-5.4-mini
    warning  configuration: LLM_MODLE: unknown setting
             hint: if LLM_MODEL is meant, rename it
    warning  configuration: RATE_LIMTI: unknown setting
             hint: if RATE_LIMIT is meant, rename it
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_warns_of_a_value_cut_at_a_dollar_sign() {
    let peers = household().await;
    peers.cli.write(".env", "TZ=UTC\nCONSOLE_PASSWORD=\"correct$horse battery\"\n");
    let ended = peers.run(&["doctor"]);
    assert_eq!((ended.code, ended.output.contains("horse")), (Some(0), false));
    insta::assert_snapshot!(finding_text(&ended, "configuration"), @r"
    ok       configuration: all values are valid
    warning  configuration: CONSOLE_PASSWORD, line 2 of .env: the value has a $; earlier versions removed the $ and the name after it
             hint: put the value in single quotes, and use the full value wherever you entered the shortened one
    ");
    peers.cli.write(".env", "TZ=UTC\nCONSOLE_PASSWORD==19=19456,t=2,p=1\n");
    let ended = peers.run(&["doctor"]);
    assert_eq!((ended.code, ended.output.contains("19456")), (Some(1), false));
    insta::assert_snapshot!(finding_text(&ended, "configuration"), @r"
    failure  configuration: CONSOLE_PASSWORD, line 2 of .env: only a part of an argon2id hash; put the complete hash in single quotes
             hint: for example CONSOLE_PASSWORD='four words you remember'
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_fails_on_a_file_that_is_not_a_database() {
    let peers = household().await;
    peers.cli.write("dialarr.db", &"This is no database. ".repeat(400));
    let ended = peers.run(&["doctor"]);
    assert_eq!(ended.code, Some(1));
    insta::assert_snapshot!(finding_text(&ended, "database"), @r"
    failure  database: dialarr.db cannot be read: failed to query the database: file is not a database
             hint: restore a backup if the file is damaged
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_distinguishes_wrong_key_wrong_address_and_outage() {
    let mut peers = household().await;
    peers.set("SONARR_API_KEY", "anotherkey");
    peers.set("RADARR_4K_URL", "http://127.0.0.1:9");
    peers.set("RADARR_4K_API_KEY", "akey");
    let ended = peers.run(&["doctor"]);
    assert_eq!(ended.code, Some(1));
    insta::assert_snapshot!([finding_text(&ended, "Sonarr"), finding_text(&ended, "Radarr 4K")].join("\n"), @r"
    failure  Sonarr: failed to authenticate: the API key was rejected
             hint: copy its API key again: Settings, General, Security
    failure  Radarr 4K: failed to connect
             hint: check its URL, and that it is running
    ");

    let radarr = serve(peers.radarr.router()).await;
    peers.set("SONARR_URL", &radarr);
    peers.set("SONARR_API_KEY", peers.radarr.api_key());
    insta::assert_snapshot!(finding_text(&peers.run(&["doctor"]), "Sonarr"), @r"
    failure  Sonarr: Radarr responds at its URL
             hint: the URLs may be swapped; set the URL of Sonarr
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_library_gaps_and_health_problems() {
    let peers = household().await;
    peers.radarr.set_profiles(&[]);
    peers.radarr.add_root_folder("/more", None);
    peers.radarr.add_health_problem(
        "error",
        "IndexerStatusCheck",
        "All indexers are unavailable due to failures.",
    );
    peers.radarr.add_health_problem("notice", "UpdateCheck", "New update is available.");
    peers.radarr.fail_connection_tests("HTTP request failed: [401:Unauthorized]");
    let ended = peers.run(&["doctor"]);
    assert_eq!(ended.code, Some(1));
    insta::assert_snapshot!(finding_text(&ended, "Radarr"), @r"
    ok       Radarr: reachable, version 6.3.0.10514
    warning  Radarr: 1 of 2 root folders not accessible
             hint: check in Settings, Media Management, Root Folders that the disk is mounted and writable
    failure  Radarr: no quality profile
             hint: create one in Settings, Profiles; without a profile, nothing can be added
    warning  Radarr: reports: All indexers are unavailable due to failures
             hint: see System, Status in its web interface
    warning  Radarr: webhook set, but the test was unsuccessful: failed to get the request accepted: Unable to send test message. Error: HTTP request failed: [401:Unauthorized]
             hint: Dialarr must be running and reachable at NOTIFICATION_URL; after a change of NOTIFICATION_SECRET, install the webhooks again in the setup assistant of the console, or with dialarr setup --apply --renew-secret
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_missing_and_misdirected_webhooks() {
    let peers = household().await;
    peers.sonarr.add_connect_entry(
        "Dialarr too",
        "http://dialarr:3000/webhook/sonarr",
        &["onImportComplete"],
    );
    peers.sonarr.add_connect_entry(
        "dialarr",
        "http://me:hush@other:3000/webhook/sonarr",
        &["onImportComplete"],
    );
    peers.twilio.set_number_field("sms_url", "https://old.example/sms");
    peers.twilio.set_number_field("mms", "false");
    let ended = peers.run(&["doctor"]);
    let findings = ["Sonarr: 2", "Sonarr: the webhook", "Twilio: number:", "Twilio: the number cannot"]
        .map(|subject| finding_text(&ended, subject))
        .join("\n");
    insta::assert_snapshot!(findings.replace(peers.get("PUBLIC_URL"), "https://sms.example.org"), @r"
    warning  Sonarr: 2 webhooks point here; one is enough
             hint: remove all but one: Settings, Connect
    warning  Sonarr: the webhook dialarr at http://other:3000/webhook/sonarr points to another Dialarr, or to an old URL
             hint: remove it in its settings, Connect, if no other Dialarr uses it
    failure  Twilio: number: webhook: https://old.example/sms -> https://sms.example.org/webhook/twilio#rc=3&rp=5xx,ct,rt&rt=5000
             hint: install the webhooks in the setup assistant of the console, or with dialarr setup --apply
    warning  Twilio: the number cannot send posters
             hint: set TWILIO_MMS=off
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_fails_if_the_carrier_refuses_the_account() {
    let mut peers = household().await;
    peers.set("TWILIO_AUTH_TOKEN", "another-token");
    let ended = peers.run(&["doctor"]);
    assert_eq!(ended.code, Some(1));
    insta::assert_snapshot!(finding_text(&ended, "Twilio"), @r"
    failure  Twilio: failed to use the Twilio account: Twilio refused the account's credentials
             hint: check TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN, or the API key, which must not be restricted
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_messages_that_failed_for_missing_registration() {
    let peers = household().await;
    let account = peers.twilio.client_account("http://twilio");
    let carrier = Twilio::new(account, HttpClient::in_process(peers.twilio.in_process()));
    let text = OutboundMessage {
        id: OutboxId(1),
        attempt: 1,
        to: Address::new("+15550100002"),
        from: Address::new("+15550100000"),
        body: "Added Dune (2021).".to_owned(),
        media: Vec::new(),
        reacts_to: None,
        quotes: None,
        poll: None,
        buttons: Vec::new(),
        valid_for: Duration::from_secs(3600),
        callback_token: CallbackToken::from_stored("0123"),
    };
    carrier.send(&text).await.unwrap();
    peers.twilio.status_callback(&peers.twilio.sent_messages()[0], FakeDelivery::Undelivered(30034)).unwrap();
    let ended = peers.run(&["doctor"]);
    assert_eq!(ended.code, Some(1));
    insta::assert_snapshot!(finding_text(&ended, "Twilio: 1 of"), @r#"
    failure  Twilio: 1 of the last 1 texts failed: the number is not registered for A2P 10DLC (30034)
             hint: see "When texts do not arrive" in docs/TROUBLESHOOTING.md
    "#);
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_fails_a_model_without_tools_and_warns_of_short_context() {
    let mut peers = household().await;
    let mut of_the_model = async |answers, context| {
        peers.set("LLM_BASE_URL", &format!("{}/v1", serve(model(answers, context)).await));
        finding_text(&peers.run(&["doctor"]), "model")
    };
    insta::assert_snapshot!(of_the_model(Answers::WithWords, LONG).await, @r#"
    failure  model: a-model responds, but did not call the requested tool (118 tokens), in # ms
             hint: set LLM_MODEL to a model that supports tools; with Ollama, its page has the tag "tools"
    ok       model: long requests are read completely (10101 tokens)
    ok       model: daily limit of 3,000,000 tokens (DAILY_TOKENS)
    "#);
    insta::assert_snapshot!(of_the_model(Answers::WithTheCall, 4096).await, @r"
    ok       model: a-model responds and calls tools (118 tokens), in # ms
    warning  model: the server read only 4096 tokens of a request with at least 5621: the context is too short
             hint: give it 16,384 or more: OLLAMA_CONTEXT_LENGTH for Ollama, --ctx-size for llama.cpp
    ok       model: daily limit of 3,000,000 tokens (DAILY_TOKENS)
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_names_a_wrong_key_from_an_error_list() {
    let mut peers = household().await;
    peers.set("LLM_BASE_URL", &format!("{}/v1", serve(model_that_refuses_the_key()).await));
    insta::assert_snapshot!(finding_text(&peers.run(&["doctor"]), "model: a-model"), @r"
    failure  model: a-model: failed to authenticate with the model server: API key not valid. Please pass a valid API key.
             hint: check LLM_API_KEY and its permissions
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_sends_a_long_request_only_on_demand() {
    let mut peers = household().await;
    peers.set("LLM_API_KEY", "sk-0123");
    insta::assert_snapshot!(finding_text(&peers.run(&["doctor"]), "model: context"), @"ok       model: context length not checked; dialarr doctor --model checks it with about 9,000 tokens");
    insta::assert_snapshot!(finding_text(&peers.run(&["doctor", "--model"]), "model: long requests"), @"ok       model: long requests are read completely (10101 tokens)");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_bad_and_missing_embeddings() {
    let mut peers = household().await;
    let mut of_the_embeddings = async |server| {
        peers.set("EMBEDDINGS_BASE_URL", &format!("{}/v1", serve(server).await));
        finding_text(&peers.run(&["doctor"]), "embeddings")
    };
    let alike = of_the_embeddings(embeddings(0.45)).await;
    insta::assert_snapshot!(alike.lines().skip(1).collect::<Vec<_>>().join("\n"), @r"
    warning  embeddings: similarity of unrelated sentences up to 0.45, of related ones at least 1.00, but the floor of 0.30 is too low
             hint: set EMBEDDINGS_FLOOR=0.50
    ");
    insta::assert_snapshot!(of_the_embeddings(model(Answers::WithWords, LONG)).await, @r"
    failure  embeddings: an-embedder: failed to embed the texts: the server rejected the request: HTTP 404
             hint: check EMBEDDINGS_MODEL, which must be one for embeddings, and that its server has it (ollama pull)
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_counts_facts_and_stored_answers() {
    let peers = household().await;
    let db = Db::open(&peers.cli.path("dialarr.db")).unwrap();
    let remember = |conn: &mut _| {
        let (now, ann) = (Timestamp::UNIX_EPOCH, PhoneNumber::parse("+15550100002").unwrap());
        let ann = users::ensure_user(conn, &ann, FirstContactRole::Admin, now)?;
        for words in ["one", "two"] {
            responses::add_operator_answer(conn, AnswerOwner::Everyone, None, (words, words), now)?;
        }
        indexing_queue::exclude_answers(conn, &[2], now)?;
        responses::add_operator_answer(conn, AnswerOwner::User(ann), Some(ann), ("three", "three"), now)?;
        let fact = UserFact::new(FactKind::Dislike, None, "horror").unwrap();
        facts::record_fact(conn, ann, &fact, FactSource::Operator, now)
    };
    db.write(remember).await.unwrap();
    db.close().await;
    assert_eq!(
        finding_text(&peers.run(&["doctor"]), "memory:"),
        "ok       memory: 2 stored answers, 2 waiting to be indexed; facts about users: 1\n\
         ok       memory: by scope: global 1, user 1; by state: pending 2, skipped 1"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_connections_are_reported_without_a_failure() {
    let peers = household().await;
    let bare: [(&str, &str); 1] = [("TZ", "UTC")];
    let ended = tokio::task::block_in_place(|| peers.cli.run(&["doctor"], &bare));
    assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""));
    let lines = ended.output.lines().filter(|line| !line.contains("free beside the database"));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r"
    ok       configuration: all values are valid
    ok       database: dialarr.db opens, and its schema is current
    ok       database: no damage found
    ok       database: no overdue messages
    ok       memory: 0 stored answers, 0 waiting to be indexed; facts about users: 0
    warning  libraries: none is configured, so nothing can be requested
             hint: set SONARR_URL and SONARR_API_KEY, or RADARR_URL and RADARR_API_KEY
    warning  Twilio: no account is configured, so texting is off
             hint: set the TWILIO_ or SMSGATE_ values, or TELEGRAM_BOT_TOKEN; dialarr chat works with ADMIN_PHONE alone
    ok       model: none is configured; only common requests are understood
    ok       embeddings: no model is configured; memory uses full-text search only
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_checks_the_token_and_the_webhook_of_a_bot() {
    let mut peers = ServedPeers::open().await;
    let bot = telegram();
    peers.set("TELEGRAM_API_URL", &serve(bot.router()).await);
    peers.set("TELEGRAM_BOT_TOKEN", BOT_TOKEN);
    for variable in ["TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN", "TWILIO_PHONE_NUMBER"] {
        peers.set(variable, "");
    }
    let ended = peers.run(&["doctor"]);
    assert_eq!(finding_text(&ended, "Twilio"), "");
    insta::assert_snapshot!(finding_text(&ended, "Telegram"), @r"
    ok       Telegram: the bot is @films_bot
    ok       Telegram: messages are polled
    ");

    set_webhook_elsewhere(&bot).await;
    insta::assert_snapshot!(finding_text(&peers.run(&["doctor"]), "Telegram"), @r"
    ok       Telegram: the bot is @films_bot
    failure  Telegram: a webhook is set elsewhere: other.example
             hint: if no other program uses the bot, run dialarr setup --apply, or install the webhooks in the setup assistant of the console
    ");

    peers.set("TELEGRAM_BOT_TOKEN", "501:revoked");
    insta::assert_snapshot!(finding_text(&peers.run(&["doctor"]), "Telegram"), @r"
    failure  Telegram: refuses the token
             hint: copy the token from BotFather to TELEGRAM_BOT_TOKEN again
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_sends_a_test_message_to_each_alert_target() {
    let mut peers = ServedPeers::open().await;
    peers.set("NTFY_URL", &format!("{}/topic", serve(answers_posts_with(StatusCode::OK)).await));
    let webhook = serve(answers_posts_with(StatusCode::NOT_FOUND)).await;
    peers.set("OPERATOR_WEBHOOK_URL", &format!("{webhook}/topic"));
    insta::assert_snapshot!(finding_text(&peers.run(&["doctor"]), "alerts"), @r"
    ok       alerts: ntfy accepted a test message
    failure  alerts: webhook: failed to get status 200: the status is 404
             hint: check OPERATOR_WEBHOOK_URL, and the log of the program behind it
    ");
}

fn answers_posts_with(status: StatusCode) -> Router {
    Router::new().route("/topic", post(move || async move { status }))
}
