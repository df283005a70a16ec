//! Several addresses of one user: linking by codes, unlinking and merging in the console, opt-outs, and where answers and
//! notifications go.

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::channel_list;
use dialarr::conversation::routing::inbound_message::{MessageSource, ReceivedMessage};
use dialarr::conversation::routing::verification::FieldAuthority;
use dialarr::conversation::transcript::{Address, UserAddress};
use dialarr::engine::operator::addresses::AdminCodeOutcome;

use crate::harness::model::{removes_movie, request_text, says};
use crate::harness::{ANN, BOB, Has, TestApp};

const NEW_PHONE: &str = "+15550100077";
const STRANGER: &str = "+15550100088";
const ADDRESSES: &str =
    "SELECT user_id || ' ' || address || iif(opted_out_at IS NULL, '', ' opted out') AS line
                         FROM user_addresses ORDER BY id";

/// Returns the six digits in a message.
fn code_in(text: &str) -> String {
    let code: String = text.split_once("LINK ").expect(text).1.chars().take(6).collect();
    assert!(code.bytes().all(|byte| byte.is_ascii_digit()), "{text}");
    code
}

/// Links the new phone to Ann with both codes.
async fn link_new_phone(app: &TestApp) {
    let first = code_in(&app.sms("link").await);
    let second = code_in(&app.sms_from(NEW_PHONE, &format!("link {first}")).await);
    app.sms(&format!("LINK {second}")).await;
}

/// Receives a message from an account of a channel without phone numbers, whose replies are only shown.
async fn account_types(app: &TestApp, account: &str, body: &str) {
    app.pass(1);
    let now = app.now();
    let typed = ReceivedMessage {
        channel: channel_list::TERMINAL,
        external_id: format!("account-{now}"),
        from: UserAddress::parse(account).unwrap(),
        to: Address::local(),
        body: body.to_owned(),
        media: Vec::new(),
        via: MessageSource::Local,
        authority: FieldAuthority::Certain,
        carrier_word: None,
        pressed: None,
        room: None,
        provider_at: now,
        received_at: now,
    };
    app.app().engine.admission.admit_message(typed).await.unwrap();
    app.settle().await;
}

/// Returns the last message to an account.
async fn last_shown(app: &TestApp, name: &str) -> String {
    let sent = app.lines("SELECT to_addr || ' ' || body AS line FROM outbox ORDER BY id DESC").await;
    let to_account = |line: &String| line.strip_prefix(name).map(|body| body.trim_start().to_owned());
    sent.iter().find_map(to_account).unwrap_or_default()
}

#[tokio::test]
async fn phone_is_linked_by_a_code_in_each_direction() {
    let app = TestApp::start_without_model().await;
    app.register_named_user("Bob", BOB, Has::EveryRight).await;

    let first = app.sms_from(BOB, "Link my phone").await;
    assert!(first.contains("from your other phone or app within 10 minutes"), "{first}");
    let second = app.sms_from(NEW_PHONE, &format!("LINK {}", code_in(&first))).await;
    assert!(second.starts_with("Almost done."), "{second}");
    assert_ne!(code_in(&first), code_in(&second));
    let linked = app.sms_from(BOB, &format!("link {}", code_in(&second))).await;

    assert!(linked.starts_with("+1 555 010 0077 is yours too now"), "{linked}");
    assert_eq!(app.last_to(NEW_PHONE), "Linked. I know you as Bob here too.");
    assert_eq!(app.last_to(ANN), "Bob linked +1 555 010 0077: texts from it count as Bob's.");
    assert_eq!(app.lines(ADDRESSES).await, ["1 +15550100002", "2 +15550100003", "2 +15550100077"]);
    assert_eq!(
        app.sms_from(NEW_PHONE, "what do you know").await,
        app.sms_from(BOB, "what do you know").await
    );
    assert_eq!(app.audit().await, ["merge user:2 by +15550100003", "link user:2 by +15550100003"]);
}

#[tokio::test]
async fn code_shown_to_an_attacker_and_sent_by_a_forged_text_links_nothing() {
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::EveryRight).await;

    // A stranger's LINK gets no code at all.
    let stranger = app.sms_from(STRANGER, "link").await;
    assert!(!stranger.contains("LINK"), "{stranger}");
    // A member gets one, and forges a text from the admin's number, and from a number that nobody has texted from.
    let code = code_in(&app.sms_from(BOB, "link").await);
    let taken = app.sms(&format!("link {code}")).await;
    assert!(taken.starts_with("This one belongs to somebody else"), "{taken}");
    let code = code_in(&app.sms_from(BOB, "link").await);
    let to_victim = app.sms_from(NEW_PHONE, &format!("link {code}")).await;
    assert!(to_victim.starts_with("Almost done."), "{to_victim}");
    // The second code went to the victim, so the attacker can only guess.
    let guess = app.sms_from(BOB, "link 000000").await;
    assert!(guess.starts_with("That code does not work"), "{guess}");

    assert_eq!(
        app.lines(ADDRESSES).await,
        ["1 +15550100002", "2 +15550100003", "3 +15550100088", "4 +15550100077"]
    );
}

#[tokio::test]
async fn second_code_counts_only_on_the_users_own_phone() {
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::EveryRight).await;
    let first = code_in(&app.sms("link").await);
    let second = code_in(&app.sms_from(NEW_PHONE, &format!("link {first}")).await);

    let on_new_phone = app.sms_from(NEW_PHONE, &format!("link {second}")).await;
    assert_eq!(on_new_phone, "Text this code from the phone or app that you already use with me.");
    let by_another_member = app.sms_from(BOB, &format!("link {second}")).await;
    assert!(by_another_member.starts_with("That code does not work"), "{by_another_member}");
    assert_eq!(app.lines(ADDRESSES).await, ["1 +15550100002", "2 +15550100003", "3 +15550100077"]);

    app.sms(&format!("link {second}")).await;
    assert_eq!(app.lines(ADDRESSES).await, ["1 +15550100002", "2 +15550100003", "1 +15550100077"]);
}

#[tokio::test]
async fn link_code_ends_after_ten_minutes_or_five_guesses() {
    let app = TestApp::start_without_model().await;
    let late = code_in(&app.sms("link").await);
    app.pass(600);
    let reply = app.sms_from(NEW_PHONE, &format!("link {late}")).await;
    assert!(!reply.contains("Almost done"), "{reply}");

    let guessed = code_in(&app.sms("link").await);
    let wrong = if guessed == "111111" { "222222" } else { "111111" };
    for _ in 0..5 {
        app.sms_from(STRANGER, &format!("link {wrong}")).await;
    }
    assert_eq!(app.sms_from(NEW_PHONE, &format!("link {guessed}")).await, "");
    assert_eq!(app.lines("SELECT count(*) AS line FROM link_codes").await, ["0"]);
}

#[tokio::test]
async fn account_without_phone_number_is_linked_by_one_code() {
    let app = TestApp::start_without_model().await;
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    let code = code_in(&app.sms("link").await);

    account_types(&app, "pigeon:501", &format!("link {code}")).await;

    assert_eq!(last_shown(&app, "501").await, "Linked. I know you as Ann here too.");
    assert!(app.last_to(ANN).starts_with("pigeon 501 is yours too now"), "{}", app.last_to(ANN));
    assert_eq!(app.lines(ADDRESSES).await, ["1 +15550100002", "1 pigeon:501"]);
    // A code that is shown to an account links nothing when a text repeats it.
    account_types(&app, "pigeon:666", "link").await;
    assert!(!last_shown(&app, "666").await.contains("LINK"));
}

#[tokio::test]
async fn answer_goes_to_the_phone_that_asked() {
    let app = TestApp::start().await;
    link_new_phone(&app).await;
    app.model_plays([says("Nothing new."), says("Still nothing.")]);

    assert_eq!(app.sms_from(NEW_PHONE, "anything new?").await, "Nothing new.");
    assert_eq!(app.sms("and now?").await, "Still nothing.");

    assert!(request_text(&app.last_request()).contains("anything new?"));
}

#[tokio::test]
async fn question_is_answered_only_from_the_phone_that_was_asked() {
    let app = TestApp::start().await;
    app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    link_new_phone(&app).await;
    app.model_plays(removes_movie("Dune", 1));
    let question = app.sms("delete dune").await;
    assert!(question.starts_with("Delete Dune (2021)"), "{question}");

    let elsewhere = app.sms_from(NEW_PHONE, "yes").await;

    assert!(elsewhere.starts_with("Delete Dune (2021)"), "{elsewhere}");
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
    // The repeat was asked at the new phone, so the old one cannot answer it.
    app.sms("yes").await;
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test]
async fn admin_names_a_user_by_any_phone_number() {
    let app = TestApp::start_without_model().await;
    app.register_named_user("Ann", ANN, Has::EveryRight).await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    app.browser().await.submit("/users/2/addresses", &[("address", NEW_PHONE)]).await;

    assert!(app.sms(&format!("quota {NEW_PHONE}")).await.starts_with("Bob may add"));
}

#[tokio::test]
async fn stop_ends_the_texts_to_one_phone_only() {
    let app = TestApp::start_without_model().await;
    link_new_phone(&app).await;

    assert_eq!(app.sms_from(NEW_PHONE, "STOP").await, "");
    assert_eq!(app.sms_from(NEW_PHONE, "commands").await, "");

    assert!(app.sms("commands").await.starts_with("You can text"));
    assert_eq!(app.lines(ADDRESSES).await, ["1 +15550100002", "1 +15550100077 opted out"]);
    app.sms_from(NEW_PHONE, "START").await;
    assert!(app.sms_from(NEW_PHONE, "commands").await.starts_with("You can text"));
}

#[tokio::test]
async fn blocked_user_is_blocked_on_every_phone() {
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::EveryRight).await;
    let first = code_in(&app.sms_from(BOB, "link").await);
    let second = code_in(&app.sms_from(NEW_PHONE, &format!("link {first}")).await);
    app.sms_from(BOB, &format!("link {second}")).await;

    app.block(BOB).await;

    assert_eq!(app.sms_from(NEW_PHONE, "commands").await, "");
    assert_eq!(app.sms_from(BOB, "commands").await, "");
}

#[tokio::test]
async fn notifications_go_to_the_preferred_phone_or_the_last_used() {
    let app = TestApp::start_without_model().await;
    link_new_phone(&app).await;
    let newcomer_arrives = async |phone: &str, name: &str| {
        app.sms_from(phone, "hi").await;
        app.sms_from(phone, name).await;
    };
    app.sms_from(NEW_PHONE, "commands").await;
    newcomer_arrives(STRANGER, "Carl").await;
    assert!(app.last_to(NEW_PHONE).starts_with("New number +1 555 010 0088"), "{}", app.last_to(NEW_PHONE));

    assert_eq!(
        app.sms("Text me here").await,
        "OK, news goes to +1 555 010 0002. Answers still go where you ask."
    );
    app.sms_from(NEW_PHONE, "commands").await;
    newcomer_arrives("+15550100089", "Dora").await;
    assert!(app.last_to(ANN).starts_with("New number +1 555 010 0089"), "{}", app.last_to(ANN));

    assert_eq!(
        app.sms("text me on +1 555 010 0077").await,
        "OK, news goes to +1 555 010 0077. Answers still go where you ask."
    );
    newcomer_arrives("+15550100090", "Eric").await;
    assert!(app.last_to(NEW_PHONE).starts_with("New number +1 555 010 0090"), "{}", app.last_to(NEW_PHONE));
    let unknown = app.sms("text me on whatsapp").await;
    assert!(unknown.starts_with("I don't know that phone"), "{unknown}");
    assert_eq!(app.sms("text me where I last texted").await, "OK, news goes to where you last texted me.");
}

#[tokio::test]
async fn setup_code_makes_the_first_sender_the_admin_once() {
    let app = TestApp::start_without_model().await;
    let admin_code = async || app.app().engine.decisions.create_admin_code().await.unwrap();
    assert_eq!(admin_code().await, AdminCodeOutcome::HasAdmin);
    app.demote_admins().await;

    let AdminCodeOutcome::Created(code) = admin_code().await else { panic!("there is no admin") };
    account_types(&app, "pigeon:501", &format!("LINK {code}")).await;

    assert!(last_shown(&app, "501").await.starts_with("Welcome. You run this household now"));
    assert_eq!(
        app.lines("SELECT role || ' ' || status AS line FROM users ORDER BY id").await,
        ["member active", "admin active"]
    );
    let again = app.sms_from(STRANGER, &format!("link {code}")).await;
    assert!(!again.contains("You run this household"), "{again}");
}

#[tokio::test]
async fn operator_links_and_unlinks_a_phone_on_the_users_page() {
    let app = TestApp::start_without_model().await;
    let mut browser = app.browser().await;

    let linked = browser.submit("/users/1/addresses", &[("address", "+1 (555) 010-0077")]).await;
    assert_eq!(linked.location.as_deref(), Some("/users/1?flash=linked"));
    assert_eq!(app.sms_from(NEW_PHONE, "commands").await, app.sms("commands").await);
    let page = browser.get("/users/1").await;
    page.assert_shows(200, "+1 555 010 0077");

    let unlinked = browser.submit("/users/1/addresses/unlink", &[("address", "2")]).await;
    assert_eq!(unlinked.location.as_deref(), Some("/users/1?flash=unlinked"));
    assert!(app.sms_from(NEW_PHONE, "commands").await.contains("What is your name?"));
    assert_eq!(app.lines(ADDRESSES).await, ["1 +15550100002", "2 +15550100077"]);
    let last = browser.submit("/users/1/addresses/unlink", &[("address", "1")]).await;
    assert_eq!(last.location.as_deref(), Some("/users/1?flash=last-address"));
}

#[tokio::test]
async fn merged_users_keep_everything_with_the_stricter_rights() {
    let app = TestApp::start().await;
    app.register_named_user("Bob", BOB, Has::EveryRight).await;
    app.register_named_user("Robert", NEW_PHONE, Has::AddRight).await;
    app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays([says("Hello Bob."), says("Hello Robert.")]);
    app.sms_from(BOB, "hello").await;
    app.sms_from(NEW_PHONE, "hello").await;
    app.model_plays(removes_movie("Dune", 1));
    let question = app.sms_from(BOB, "delete dune").await;
    assert!(question.starts_with("Delete Dune (2021)"), "{question}");
    let mut browser = app.browser().await;

    let taken = browser.submit("/users/2/addresses", &[("address", NEW_PHONE)]).await;
    assert_eq!(taken.location.as_deref(), Some("/users/2/merge?from=3"));
    let preview = browser.get("/users/2/merge?from=3").await;
    for text in
        ["1 phone or account", "2 texts", "1 conversation", "add titles", "An open question is closed"]
    {
        preview.assert_shows(200, text);
    }
    assert!(!preview.text().contains("delete titles"), "{}", preview.text());
    let merged = browser.submit("/users/2/merge", &[("from", "3")]).await;
    assert_eq!(merged.location.as_deref(), Some("/users/2?flash=merged"));
    app.settle().await;

    assert_eq!(app.lines(ADDRESSES).await, ["1 +15550100002", "2 +15550100003", "2 +15550100077"]);
    assert_eq!(
        app.lines("SELECT display_name || ' ' || role || ' ' || can_delete AS line FROM users WHERE id > 1")
            .await,
        ["Bob member 0"]
    );
    app.sms_from(BOB, "yes").await;
    assert_eq!(app.radarr().removed_ids(), Vec::<i64>::new());
    let foreign = "SELECT count(*) AS line FROM pragma_foreign_key_check";
    assert_eq!(app.lines(foreign).await, ["0"]);
    let texts = "SELECT count(*) AS line FROM inbound_events WHERE user_id = 2 AND body = 'hello'";
    assert_eq!(app.lines(texts).await, ["2"]);
    browser.get("/users/3").await.assert_shows(404, "");
}

#[tokio::test]
async fn merge_that_would_leave_no_admin_is_refused() {
    let app = TestApp::start_without_model().await;
    app.register_named_user("Bob", BOB, Has::AddRight).await;
    let mut browser = app.browser().await;

    let refused = browser.submit("/users/2/merge", &[("from", "1")]).await;

    assert_eq!(refused.location.as_deref(), Some("/users/2?flash=last-admin"));
    assert_eq!(app.lines(ADDRESSES).await, ["1 +15550100002", "2 +15550100003"]);
}
