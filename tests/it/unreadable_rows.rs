//! Unreadable rows: they fail the work that needs them, and no later work.

use dialarr::arr::fake::media_fixtures::movie;
use diesel::connection::SimpleConnection;

use crate::harness::model::{Slow, finds, removes_movie, says};
use crate::harness::world::World;
use crate::harness::{ANN, BOB, Has, TestApp};

const WENT_WRONG: &str = "Something went wrong on my side. Please try again.";
const CHANGE_UNKNOWN: &str = "Something went wrong on my side, and I can't tell whether your change was made. \
                              Please check before you ask again.";
const QUESTION: &str = "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.";

/// Damages rows by a trigger, as soon as they are written.
async fn damage(app: &TestApp, trigger: &'static str) {
    app.app().db.write(move |conn| conn.batch_execute(trigger)).await.unwrap();
}

async fn stop_the_damage(app: &TestApp) {
    damage(app, "DROP TRIGGER damage").await;
}

async fn with_dune() -> (TestApp, i64) {
    let app = TestApp::start().await;
    let dune = app.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    (app, dune)
}

async fn answers_the_next_text(app: &TestApp) {
    app.model_plays([says("Hello again.")]);
    assert_eq!(app.sms("are you there?").await, "Hello again.");
}

#[tokio::test(start_paused = true)]
async fn unreadable_call_fails_its_resumed_turn_and_the_next_message_is_answered() {
    let mut world = World::start_with(Slow::playing(20, [finds("dune"), says("Hello again.")])).await;
    world.texts("do we have dune?").await;
    world.pass(25).await;
    assert_eq!(world.lines("SELECT state AS line FROM tool_calls").await, ["complete"]);
    world.damage_rows("UPDATE tool_calls SET response = '{\"kept\":1}'").await;

    world.kill().await;
    world.start_again().await;
    world.pass(10).await;
    assert_eq!(world.sent_texts(), [WENT_WRONG]);

    world.texts("are you there?").await;
    world.pass(25).await;
    assert_eq!(world.sent_texts(), [WENT_WRONG, "Hello again."]);
    assert_eq!(
        world.lines("SELECT body || ': ' || outcome AS line FROM inbound_events ORDER BY id").await,
        ["do we have dune?: failed_notified", "are you there?: replied"]
    );
    assert_eq!(world.lines("SELECT response AS line FROM tool_calls").await, ["{\"kept\":1}"]);
}

#[tokio::test(start_paused = true)]
async fn unreadable_plan_fails_its_resumed_turn_and_the_next_message_is_answered() {
    let mut world = World::start_with(Slow::playing(20, [says("Hello again.")])).await;
    world.texts("do we have dune?").await;
    world.pass(10).await;
    assert_eq!(world.lines("SELECT state AS line FROM turns").await, ["IN_PROGRESS"]);
    world.damage_rows("UPDATE turns SET prompt = '{\"brain\":\"none\"}'").await;

    world.kill().await;
    world.start_again().await;
    world.pass(10).await;
    assert_eq!(world.sent_texts(), [WENT_WRONG]);

    world.texts("are you there?").await;
    world.pass(45).await;
    assert_eq!(world.sent_texts(), [WENT_WRONG, "Hello again."]);
    assert_eq!(
        world.lines("SELECT body || ': ' || outcome AS line FROM inbound_events ORDER BY id").await,
        ["do we have dune?: failed_notified", "are you there?: replied"]
    );
}

#[tokio::test]
async fn unreadable_item_fails_its_deletion_and_the_next_message_is_answered() {
    let (app, dune) = with_dune().await;
    app.model_plays(removes_movie("dune", dune));
    assert_eq!(app.sms("delete dune").await, QUESTION);
    damage(
        &app,
        "CREATE TRIGGER damage AFTER UPDATE OF state ON tool_call_items WHEN NEW.state = 'running'
         BEGIN UPDATE tool_call_items SET fingerprint = '{\"kept\":1}'
               WHERE tool_call_id = NEW.tool_call_id AND ord = NEW.ord; END",
    )
    .await;
    assert_eq!(app.sms("yes").await, CHANGE_UNKNOWN);
    stop_the_damage(&app).await;

    answers_the_next_text(&app).await;
    assert_eq!(app.radarr().removed_ids(), [dune]);
    assert_eq!(app.lines("SELECT fingerprint AS line FROM tool_call_items").await, ["{\"kept\":1}"]);
}

#[tokio::test]
async fn unreadable_prompt_is_closed_and_the_next_message_is_answered() {
    let (app, dune) = with_dune().await;
    app.model_plays(removes_movie("dune", dune));
    assert_eq!(app.sms("delete dune").await, QUESTION);
    damage(&app, "UPDATE tool_call_items SET fingerprint = '{}'").await;
    assert_eq!(app.sms("yes").await, WENT_WRONG);

    answers_the_next_text(&app).await;
    assert_eq!((app.count("pending_actions").await, app.radarr().removed_ids()), (0, Vec::new()));
}

#[tokio::test]
async fn unreadable_message_is_given_up_and_its_neighbors_are_answered() {
    let (mut app, _) = with_dune().await;
    damage(
        &app,
        "CREATE TRIGGER damage AFTER INSERT ON inbound_events WHEN NEW.body = 'broken'
         BEGIN UPDATE inbound_events SET media = '{}' WHERE id = NEW.id; END",
    )
    .await;
    app.model_plays([says("One."), says("Three.")]);
    let answers = app.sms_during_restart(&["what is one?", "broken", "what is three?"]).await;
    assert_eq!(answers, format!("One.\n{WENT_WRONG}\nThree."));
}

#[tokio::test]
async fn unreadable_old_result_hides_no_answer_and_is_left_out_of_later_turns() {
    let (app, dune) = with_dune().await;
    app.model_plays([finds("dune"), says("Yes, you have it.")]);
    assert_eq!(app.sms("do we have dune?").await, "Yes, you have it.");
    damage(&app, "UPDATE tool_calls SET response = '{}'").await;
    let page = app.browser().await.get("/conversations/1").await;
    assert!(page.text().contains("Yes, you have it."), "{}", page.text());

    answers_the_next_text(&app).await;
    app.model_plays(removes_movie("dune", dune));
    assert_eq!(app.sms("delete dune").await, QUESTION);
    app.sms("no").await;
}

#[tokio::test]
async fn unreadable_request_of_one_user_fails_no_tool_of_another() {
    let app = TestApp::start_without_model().await;
    app.register_user(BOB, Has::AddRight).await;
    app.radarr().add_to_catalog(movie("Dune").year(2021));
    assert_eq!(app.sms_from(BOB, "add dune").await, "Added Dune (2021).");
    damage(&app, "UPDATE requests SET seasons = '{}'").await;
    assert_eq!(app.sms("have dune?").await, "In the library: Dune (2021), not on disk yet.");
}

#[tokio::test]
async fn unreadable_event_delays_no_other_notification() {
    let app = TestApp::start().await;
    for (title, tmdb) in [("Dune", 1), ("Heat", 2)] {
        app.radarr().add(movie(title).year(2000).tmdb(tmdb));
        app.follow_movie(ANN, tmdb).await;
    }
    app.later(0).await;
    damage(
        &app,
        "CREATE TRIGGER damage AFTER INSERT ON arr_events WHEN instr(NEW.event, 'Dune') > 0
         BEGIN UPDATE arr_events SET event = '{}' WHERE id = NEW.id; END",
    )
    .await;
    for title in ["Dune", "Heat"] {
        app.radarr().download_and_import(title);
        app.receive_event("radarr", &app.radarr().import_event_json(title)).await;
    }
    app.later(1).await;
    assert_eq!(app.messages_to(ANN), ["Heat (2000) is ready to watch."]);
}
