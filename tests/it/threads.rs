//! Conversations in the console: lists, search, live view, test conversations, prompt decisions and reopening.

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::engine::operator::conversations::{PromptAnswerOutcome, PromptDecision};
use dialarr::messaging::twilio::fake::FakeDelivery;
use diesel::RunQueryDsl;
use futures_util::future::join;

use crate::harness::browser::Browser;
use crate::harness::model::{Holding, calls, finds, removes_movie, says};
use crate::harness::threads::Tab;
use crate::harness::world::World;
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

const QUESTION: &str = "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.";
const DELETED: &str = "Deleted Dune (2021). Freed 21.4 GB.";
const NONE: [i64; 0] = [];

/// Starts with a prompt to Ann by phone about Dune.
async fn asked_about_dune(app: &TestApp) -> i64 {
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    assert_eq!(app.sms("delete dune").await, QUESTION);
    dune
}

#[tokio::test]
async fn conversation_of_a_test_user_sends_no_message() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    let mut browser = app.browser().await;
    let begun = browser.submit("/conversations/new", &[]).await;
    assert_eq!(begun.location.as_deref(), Some("/conversations/1#box"));
    let empty = browser.get("/conversations/1").await.text();
    assert!(empty.contains("Test conversation: no text is sent to its user."), "{empty}");
    assert!(empty.contains("Text as Test user 1"), "{empty}");

    app.model_plays(removes_movie("dune", dune));
    browser.types(1, "delete dune").await;
    let asked = browser.get("/conversations/1").await.text();
    assert!(asked.contains("Awaiting confirmation"), "{asked}");
    assert!(asked.contains("Displayed only"), "{asked}");
    browser.types(1, "yes").await;

    assert!(browser.get("/conversations/1").await.text().contains(DELETED));
    let deliveries = browser.get("/deliveries").await.text();
    assert_eq!(deliveries.matches("Displayed only").count(), 2, "{deliveries}");
    assert_eq!(app.radarr().removed_ids(), [dune]);
    assert_eq!(app.twilio().sent_messages().len(), 0);
    assert_eq!(app.console_actions().await, ["test_conversation user:2"]);
    let listed = browser.get("/conversations?show=test").await.text();
    assert!(listed.contains("Test user 1 Test"), "{listed}");
}

#[tokio::test]
async fn form_submitted_twice_is_one_message() {
    let app = TestApp::start().await;
    let mut browser = app.browser().await;
    browser.submit("/conversations/new", &[]).await;
    app.model_plays([says("Once.")]);
    for _ in 0..2 {
        browser.submit("/conversations/1/texts", &[("text", "hello there"), ("key", "same")]).await;
    }
    app.settle().await;
    assert_eq!(app.lines("SELECT body AS line FROM inbound_events").await, ["hello there"]);
}

#[tokio::test]
async fn overlong_message_stays_in_its_field_with_an_error() {
    let app = TestApp::start().await;
    let mut browser = app.browser().await;
    browser.submit("/conversations/new", &[]).await;
    let long = "a\r\n".repeat(800) + "b";

    let page = browser.submit("/conversations/1/texts", &[("text", &long), ("key", "once")]).await;
    let blank = browser.submit("/conversations/1/texts", &[("text", " \n"), ("key", "again")]).await;

    assert_eq!(page.status, 422);
    let text = page.text();
    assert!(text.contains("Not sent: a text can have at most 1,600 characters."), "{text}");
    assert!(
        page.html
            .contains(&format!("maxlength=\"1600\" required>\n{}</textarea>", long.replace("\r\n", "\n")))
    );
    assert_eq!(blank.location.as_deref(), Some("/conversations/1?flash=no-words#tail"));
    assert_eq!(app.lines("SELECT body AS line FROM inbound_events").await, Vec::<String>::new());
}

#[tokio::test]
async fn console_cannot_write_as_a_real_user() {
    let app = TestApp::start().await;
    app.model_plays([says("Hello.")]);
    app.sms("hi dialarr").await;
    let mut browser = app.browser().await;
    let refused = browser.types(1, "delete everything").await;
    assert_eq!(refused.location.as_deref(), Some("/conversations/1?flash=not-here#tail"));
    assert_eq!(app.lines("SELECT body AS line FROM inbound_events").await, ["hi dialarr"]);
    assert!(!browser.get("/conversations/1").await.html.contains("Text as"));
}

#[tokio::test]
async fn broadcasts_and_admin_requests_skip_test_users() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::NoRights).await;
    let mut browser = app.browser().await;
    browser.submit("/conversations/new", &[]).await;
    assert_eq!(app.sms("tell everyone movie night at 8").await, "OK, sent to one person.");
    assert!(app.last_to(BOB).ends_with("movie night at 8"));
    let out = app.lines("SELECT to_addr AS line FROM outbox").await;
    assert!(out.iter().all(|to| !to.starts_with("+155501001")), "{out:?}");
}

#[tokio::test]
async fn stop_only_denies_in_the_console_and_help_lists_commands() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    let mut browser = app.browser().await;
    browser.submit("/conversations/new", &[]).await;
    app.model_plays(removes_movie("dune", dune));
    browser.types(1, "delete dune").await;
    browser.types(1, "STOP").await;
    browser.types(1, "help").await;
    let page = browser.get("/conversations/1").await.text();
    assert!(page.contains("OK, kept."), "{page}");
    assert_eq!(app.radarr().removed_ids(), NONE);
    assert_eq!(app.lines("SELECT opted_out_at AS line FROM user_addresses").await, ["", ""]);
}

#[tokio::test]
async fn deletion_approved_on_the_page_is_reported_by_phone() {
    let app = TestApp::start().await;
    let dune = asked_about_dune(&app).await;
    let mut browser = app.browser().await;
    let page = browser.get("/conversations/1").await.text();
    assert!(page.contains(&format!("Awaiting confirmation {QUESTION} Dune (2021)")), "{page}");
    let before = app.twilio().sent_messages().len();

    let taken = browser.answers(1, "yes").await;
    assert_eq!(taken.location.as_deref(), Some("/conversations/1?flash=taken#tail"));
    assert_eq!(app.texts_to(ANN, before), DELETED);
    assert_eq!(app.radarr().removed_ids(), [dune]);
    assert_eq!(app.console_actions().await, ["approve_question tool_call:2"]);
    assert!(browser.get("/conversations/1").await.text().contains("YES 21:04 you in the console"));

    let again = browser.submit("/conversations/1/question", &[("question", "1"), ("answer", "yes")]).await;
    assert_eq!(again.location.as_deref(), Some("/conversations/1?flash=closed#tail"));
    app.settle().await;
    assert_eq!(app.radarr().removed_ids(), [dune]);
}

#[tokio::test]
async fn deletion_rejected_on_the_page_is_kept() {
    let app = TestApp::start().await;
    asked_about_dune(&app).await;
    let before = app.twilio().sent_messages().len();
    app.browser().await.answers(1, "no").await;
    assert_eq!(app.texts_to(ANN, before), "OK, kept.");
    assert_eq!(app.radarr().removed_ids(), NONE);
    assert_eq!(app.console_actions().await, ["reject_question tool_call:2"]);
}

#[tokio::test]
async fn approval_on_the_page_sends_the_code_and_rechecks_the_right() {
    let app = TestApp::with(|settings| {
        settings.code_policy = dialarr::conversation::deletion::deletion_messages::CodePolicy::Always;
    })
    .await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays(removes_movie("dune", dune));
    app.sms("delete dune").await;
    app.register_user(BOB, Has::EveryRight).await;
    app.register_user(ANN, Has::NoRights).await;
    app.browser().await.answers(1, "yes").await;
    assert_eq!(app.radarr().removed_ids(), NONE);

    app.register_user(ANN, Has::EveryRight).await;
    app.model_plays(removes_movie("dune", dune));
    app.sms("delete dune").await;
    app.browser().await.answers(1, "yes").await;
    assert_eq!(app.radarr().removed_ids(), [dune]);
}

#[tokio::test]
async fn concurrent_yes_by_page_and_phone_delete_once() {
    let app = TestApp::start().await;
    let dune = asked_about_dune(&app).await;
    let mut browser = app.browser().await;
    app.pass(1);
    let form = [("question", "1"), ("answer", "yes")];
    join(browser.submit("/conversations/1/question", &form), app.post(app.text(ANN, "yes"))).await;
    app.settle().await;
    assert_eq!(app.radarr().removed_ids(), [dune]);
}

#[tokio::test]
async fn button_of_a_replaced_prompt_does_nothing() {
    let app = TestApp::start().await;
    asked_about_dune(&app).await;
    let heat = app.radarr().add(movie("Heat").year(1995).size_gb(18.2));
    app.model_plays(removes_movie("heat", heat));
    app.sms("delete heat").await;
    app.pass(1);
    let mut browser = app.browser().await;
    let stale = browser.submit("/conversations/1/question", &[("question", "1"), ("answer", "yes")]).await;
    assert_eq!(stale.location.as_deref(), Some("/conversations/1?flash=closed#tail"));
    app.settle().await;
    assert_eq!(app.radarr().removed_ids(), NONE);
    assert!(browser.get("/conversations/1").await.text().contains("Delete Heat (1995)"));
}

#[tokio::test(start_paused = true)]
async fn button_decision_is_not_in_later_prompts() {
    let late = "That question is closed. Dune (2021) is kept. Ask again to delete.";
    for verdict in [PromptDecision::Approve, PromptDecision::Reject] {
        let world = World::start().await;
        let dune = world.radarr().add(movie("Dune").year(2021).size_gb(21.4));
        world.model_plays(removes_movie("dune", dune));
        assert_eq!(world.sms("delete dune").await, [QUESTION]);
        world.register_admin(BOB).await;
        world.sms_from(BOB, "pause").await;
        world.texts("do we have heat and alien?").await;
        assert_eq!(
            world.engine().conversation_actions.answer_prompt(1, verdict).await.unwrap(),
            PromptAnswerOutcome::Stored
        );
        world.model_plays([says("Neither of them.")]);
        world.sms_from(BOB, "resume").await;

        assert!(world.last_user_message().ends_with("\ndo we have heat and alien?"), "{verdict:?}");
        assert_eq!(
            world.messages_to(ANN)[1..],
            ["OK, Dune (2021) is kept. Neither of them.", late],
            "{verdict:?}"
        );
        assert_eq!(world.radarr().removed_ids(), NONE);
    }
}

#[tokio::test]
async fn ended_conversation_is_reopened_and_continued() {
    let app = TestApp::start().await;
    app.model_plays([says("One."), says("Two."), says("Three.")]);
    app.sms("first things").await;
    app.sms("/clear").await;
    app.sms("second things").await;
    let mut browser = app.browser().await;
    let ended = browser.get("/conversations/1").await.text();
    assert!(ended.contains(": first things Since") && ended.contains("ended by the user"), "{ended}");

    let opened = browser.submit("/conversations/1/reopen", &[]).await;
    assert_eq!(opened.location.as_deref(), Some("/conversations/1?flash=reopened#tail"));
    app.sms("third things").await;
    let page = browser.get("/conversations/1").await.text();
    assert!(page.contains("Open") && page.contains("third things"), "{page}");
    assert!(browser.get("/conversations/2").await.text().contains("ended by the operator"));
    assert_eq!(app.console_actions().await, ["reopen user:1"]);
}

#[tokio::test]
async fn search_finds_messages_and_links_to_them() {
    let app = TestApp::start().await;
    app.model_plays([says("It is on page <1>."), says("Fine.")]);
    app.sms("where is the recipe for pancakes?").await;
    app.sms("and what about waffles").await;
    app.index_new_text().await;
    let mut browser = app.browser().await;
    let found = browser.get("/conversations?q=pancak").await;
    assert!(found.html.contains("recipe for <mark>pancakes</mark>"), "{}", found.html);
    assert!(found.html.contains("href=\"/conversations/1?before=2#turn-1\""), "{}", found.html);
    let found = browser.get("/conversations?q=page+1").await.html;
    assert!(found.contains("on <mark>page</mark> &#60;<mark>1</mark>&#62;."), "{found}");
    for typed in ["%22", "nothing%20here", "*", "body%3Ax", "%22%20OR%20%22a"] {
        assert_eq!(browser.get(&format!("/conversations?q={typed}")).await.status, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn message_is_found_a_minute_later() {
    let world = World::start().await;
    world.sms("notify off").await;
    let found = "SELECT body AS line FROM words_in WHERE words_in MATCH 'notify'";
    assert_eq!(world.lines(found).await, [""; 0]);
    world.pass(60).await;
    assert_eq!(world.lines(found).await, ["notify off"]);
}

/// Returns the hits of a search with their links.
async fn hits(browser: &mut Browser<'_>, word: &str) -> Vec<String> {
    let page = browser.get(&format!("/conversations?q={word}")).await;
    let hits = page.html.split("<li><a class=\"conversation-link\" href=\"").skip(1);
    hits.map(|hit| hit.split('"').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn search_finds_messages_without_a_turn() {
    let app = TestApp::start().await;
    app.register_named_user("Bob", BOB, Has::NoRights).await;
    app.model_plays([says("Here are pancakes."), says("And waffles.")]);
    app.sms_from(BOB, "a recipe?").await;
    app.sms("tell everyone walrus at 8").await;
    app.sms_from(BOB, "and another?").await;
    app.sms_from(BOB, "Liked \u{201c}And waffles.\u{201d}").await;
    let mut browser = app.browser().await;
    let notice = app.lines("SELECT id AS line FROM outbox WHERE kind = 'notice'").await.remove(0);
    let liked = app.lines("SELECT max(id) AS line FROM inbound_events").await.remove(0);
    app.index_new_text().await;

    let walrus = hits(&mut browser, "walrus").await;
    let likes = hits(&mut browser, "liked").await;

    let of_ann = "/conversations/2?before=3#turn-2".to_owned();
    assert_eq!(walrus, [of_ann, format!("/conversations/1?before=3#notice-{notice}")]);
    assert_eq!(likes, [format!("/conversations/1#text-{liked}")]);
    for (hit, words) in [(&walrus[1], "walrus at 8"), (&likes[0], "Liked")] {
        let (path, entry) = hit.split_once('#').unwrap();
        let page = browser.get(path).await.html;
        let (_, article) = page.split_once(&format!("<article id=\"{entry}\"")).unwrap();
        assert!(article.split("</article>").next().unwrap().contains(words), "{article}");
    }
}

#[tokio::test]
async fn search_finds_messages_outside_conversations() {
    let app = TestApp::start_without_model().await;
    app.sms_from(BOB, "hello walrus").await;
    app.index_new_text().await;
    let mut browser = app.browser().await;
    let page = browser.get("/conversations?q=walrus").await.text();
    assert!(page.contains("Outside any conversation"), "{page}");
    assert_eq!(hits(&mut browser, "walrus").await, ["/users/2"]);
    let sent = hits(&mut browser, "opt").await;
    assert_eq!(sent, ["/deliveries?user=2&#38;before=2"]);
    let deliveries = browser.get(&sent[0].replace("&#38;", "&")).await.text();
    assert!(deliveries.contains("What is your name?"), "{deliveries}");
}

#[tokio::test]
async fn message_outside_a_conversation_is_shown_in_full_by_the_search() {
    let app = TestApp::start_without_model().await;
    let long = format!("hello <b>walrus</b> {}the end", "and so on ".repeat(40));
    app.sms_from(BOB, &long).await;
    app.index_new_text().await;
    let mut browser = app.browser().await;
    let page = browser.get("/conversations?q=walrus").await;
    assert!(page.html.contains("&#60;b&#62;<mark>walrus</mark>&#60;/b&#62;"), "{}", page.html);
    assert!(page.text().contains("and so on and so on the end"), "{}", page.text());

    let forgotten = "UPDATE users SET forgotten_at = 1 WHERE id = 2";
    app.app().db.write(move |conn| diesel::sql_query(forgotten).execute(conn).map(drop)).await.unwrap();
    let page = browser.get("/conversations?q=walrus").await.html;
    assert!(
        page.contains("<div class=\"conversation-link\">")
            && !page.contains("<a class=\"conversation-link\""),
        "{page}"
    );
}

#[tokio::test]
async fn text_of_users_and_libraries_is_escaped() {
    let app = TestApp::start().await;
    let evil = "<script>alert(1)</script>";
    app.radarr().add(movie("<img src=x onerror=alert(1)>").year(2021));
    app.model_plays([finds("img"), says("<b>bold</b> & <script>")]);
    app.sms(evil).await;
    app.sms("/clear").await;
    let mut browser = app.browser().await;
    for path in ["/conversations", "/conversations/1", "/conversations?q=script"] {
        let page = browser.get(path).await;
        assert_eq!(page.status, 200);
        for tag in ["<script>", "<img src=x", "<b>bold"] {
            assert!(!page.html.contains(tag), "{tag} in {path}: {}", page.html);
        }
    }
    assert!(browser.get("/conversations/1").await.html.contains("&#60;script&#62;alert(1)"));
}

#[tokio::test]
async fn turn_expands_to_its_steps() {
    let app = TestApp::start().await;
    app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    app.model_plays([finds("dune"), calls("check_status", serde_json::json!({})), says("All is well.")]);
    app.sms("do we have dune").await;
    let page = app.browser().await.get("/conversations/1").await.text();
    for words in
        ["3 steps: find_in_library, check_status", "Step 2", "Done", "\"Dune\"", "All is well.", "1 segment"]
    {
        assert!(page.contains(words), "{words} in {page}");
    }
}

#[tokio::test]
async fn streamed_page_equals_the_reloaded_page() {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    let mut browser = app.browser().await;
    app.model_plays([says("Hello.")]);
    app.sms("hello there").await;
    let mut tab = Tab::of(&browser.get("/conversations/1").await);
    app.model_plays(removes_movie("dune", dune));
    app.sms("delete dune").await;
    app.sms("no").await;
    app.sms("Liked \u{201c}OK, kept.\u{201d}").await;
    app.sms("thanks!").await;
    // Disconnected after every few events, the browser continues from its last cursor.
    for most in [1, 1, 2, 3, 1, 2, usize::MAX] {
        tab.follow(&browser, 1, most).await;
    }
    let reloaded = Tab::of(&browser.get("/conversations/1").await);
    assert_eq!(tab.pieces, reloaded.pieces);
    assert!(reloaded.shows("Reaction: "), "{:#?}", reloaded.pieces);
    assert!(reloaded.shows("small talk"), "{:#?}", reloaded.pieces);
}

#[tokio::test]
async fn partial_reply_is_shown_while_it_streams() {
    let model = Holding::closed();
    let app = Setup::default().holding(&model).start().await;
    let mut browser = app.browser().await;
    app.sms("hello there").await;
    let mut tab = Tab::of(&browser.get("/conversations/1").await);
    app.pass(1);
    app.post(app.text(ANN, "please hold")).await;
    model.holds().await;
    tab.follow(&browser, 1, usize::MAX).await;
    assert!(tab.shows("Working") && tab.shows("<p class=\"message-text\">Fi</p>"), "{:#?}", tab.pieces);
    assert_eq!(tab.pieces, Tab::of(&browser.get("/conversations/1").await).pieces);
    model.let_go();
    app.settle().await;
    tab.follow(&browser, 1, usize::MAX).await;
    assert!(!tab.shows("Working"), "{:#?}", tab.pieces);
    assert_eq!(tab.pieces, Tab::of(&browser.get("/conversations/1").await).pieces);
}

#[tokio::test]
async fn waiting_message_is_shown_at_once() {
    let model = Holding::closed();
    let app = Setup::default().holding(&model).start().await;
    let mut browser = app.browser().await;
    app.sms("hello there").await;
    app.pass(1);
    app.post(app.text(ANN, "please hold")).await;
    model.holds().await;
    let mut tab = Tab::of(&browser.get("/conversations/1").await);
    app.pass(1);
    app.post(app.text(ANN, "and one more thing")).await;
    tab.follow(&browser, 1, usize::MAX).await;
    assert!(tab.pieces["tail"].contains("and one more thing"), "{:#?}", tab.pieces);
    assert_eq!(tab.pieces, Tab::of(&browser.get("/conversations/1").await).pieces);
    model.let_go();
    app.settle().await;
    tab.follow(&browser, 1, usize::MAX).await;
    assert!(!tab.pieces["tail"].contains("and one more thing"), "{:#?}", tab.pieces);
    assert_eq!(tab.pieces, Tab::of(&browser.get("/conversations/1").await).pieces);
}

#[tokio::test]
async fn delivery_of_a_notification_is_shown_in_its_conversation() {
    let app = TestApp::start().await;
    app.register_user(BOB, Has::EveryRight).await;
    app.model_plays([says("One."), says("Two.")]);
    app.sms("first things").await;
    app.sms_from(BOB, "tell everyone movie night at 8").await;
    let notice = app.twilio().sent_messages().into_iter().rfind(|text| text.to.as_str() == ANN).unwrap();
    app.sms("/clear").await;
    app.sms("second things").await;
    let mut browser = app.browser().await;
    let mut tabs = Vec::new();
    for id in [1, 3] {
        tabs.push((id, Tab::of(&browser.get(&format!("/conversations/{id}")).await)));
    }
    app.request(app.twilio().status_callback(&notice, FakeDelivery::Undelivered(30_003)).unwrap().unwrap())
        .await;
    follow(&browser, &mut tabs).await;
    assert!(tabs[0].1.shows("Failed"), "{:#?}", tabs[0].1.pieces);
    app.sms(&format!("Liked \u{201c}{}\u{201d}", notice.body)).await;
    follow(&browser, &mut tabs).await;
    assert!(tabs[0].1.shows("Reaction: "), "{:#?}", tabs[0].1.pieces);
    assert!(!tabs[1].1.shows("movie night at 8</p>"), "{:#?}", tabs[1].1.pieces);
}

/// Lets each tab follow its conversation, and compares it with its page at the end.
async fn follow(browser: &Browser<'_>, tabs: &mut [(i64, Tab)]) {
    for (id, tab) in tabs {
        tab.follow(browser, *id, usize::MAX).await;
        let mut another = browser.program().anonymous_browser().with_cookie(browser.cookie().unwrap());
        assert_eq!(tab.pieces, Tab::of(&another.get(&format!("/conversations/{id}")).await).pieces);
    }
}

#[tokio::test]
async fn prompt_of_an_ended_conversation_is_not_answered_in_another() {
    let app = TestApp::start().await;
    app.model_plays([says("One.")]);
    app.sms("first things").await;
    app.sms("/clear").await;
    asked_about_dune(&app).await;
    let mut browser = app.browser().await;
    let mut tab = Tab::of(&browser.get("/conversations/2").await);
    browser.submit("/conversations/1/reopen", &[]).await;
    tab.follow(&browser, 2, usize::MAX).await;
    assert!(!tab.shows("Awaiting confirmation"), "{:#?}", tab.pieces);
    let stale = browser.submit("/conversations/2/question", &[("question", "1"), ("answer", "yes")]).await;
    assert_eq!(stale.location.as_deref(), Some("/conversations/2?flash=closed#tail"));
    assert_eq!(app.sms("yes").await, "That question is closed. Dune (2021) is kept. Ask again to delete.");
    assert_eq!(app.radarr().removed_ids(), NONE);
}

#[tokio::test]
async fn page_with_an_expired_cursor_is_reloaded() {
    let app = TestApp::start().await;
    app.model_plays([says("Hello.")]);
    app.sms("hello there").await;
    let mut browser = app.browser().await;
    assert_eq!(browser.get("/conversations/99").await.status, 404);
    assert_eq!(browser.get("/conversations/99/live").await.status, 404);
    assert!(app.read_live(&browser, "/conversations/1/live?after=99999").await.contains("event: reset"));
}
