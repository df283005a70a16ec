//! Rooms: groups at Telegram in which several people talk with the bot.

use axum::body::Body;
use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::routing::rooms::RoomMode;
use dialarr::store::people::rooms;
use dialarr::store::people::users::{self, FirstContactRole};
use dialarr::web;
use http::Request;
use http::header::{CONTENT_TYPE, HOST, ORIGIN};
use jiff::Timestamp;
use serde_json::json;
use tower::ServiceExt;

use crate::harness::model::{Gated, calls, removes_movie, says};
use crate::harness::room::{BOB_ACCOUNT, FAMILY, GREETING, STRANGER};
use crate::harness::telegram::{ANN_ACCOUNT, account};
use crate::harness::world::World;

const QUESTION: &str = "Delete Heat (1995) and its file, 18.2 GB? Reply YES or NO.";
const DELETED: &str = "Deleted Heat (1995). Freed 18.2 GB.";
const PRIVATELY: &str = "I sent you a private message.";
const STATUS: &str = "Nothing is downloading.";
const NONE: [String; 0] = [];

impl World {
    /// Returns a page of the console.
    async fn page(&self, path: &str) -> String {
        let request = Request::get(path).header(HOST, "localhost:3001").body(Body::empty()).unwrap();
        self.ask_console(request).await
    }

    /// Sends a form of the console.
    async fn submit(&self, path: &str, fields: &[(&str, &str)]) {
        let page = self.page("/users").await;
        let token = page.split("name=\"token\" value=\"").nth(1).unwrap().split('"').next().unwrap();
        let fields = [&[("token", token)], fields].concat();
        let request = Request::post(path)
            .header(HOST, "localhost:3001")
            .header(ORIGIN, "http://localhost:3001")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from(serde_urlencoded::to_string(fields).unwrap()))
            .unwrap();
        self.ask_console(request).await;
    }

    async fn ask_console(&self, request: Request<Body>) -> String {
        let response = web::console_router(self.console()).oneshot(request).await.unwrap();
        assert!(response.status().as_u16() < 400, "{}", response.status());
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    }

    fn model_deletes_heat(&self) -> i64 {
        let heat = self.radarr().add(movie("Heat").year(1995).size_gb(18.2));
        self.model_plays(removes_movie("heat", heat));
        heat
    }
}

#[tokio::test(start_paused = true)]
async fn mention_in_a_group_is_answered_there_with_a_quote() {
    let world = World::start_in_room().await;
    let text = world.telegram().group_text(FAMILY, BOB_ACCOUNT, "@home_bot status");
    world.pass(20).await;
    assert_eq!(world.answers_in_room(), [STATUS]);
    assert_eq!(world.newest_in_room().reply_to, Some(text));
    assert_eq!(
        (world.private_texts(ANN_ACCOUNT), world.private_texts(BOB_ACCOUNT)),
        (Vec::new(), Vec::new())
    );
}

#[tokio::test(start_paused = true)]
async fn reply_and_command_are_addressed_and_other_words_are_not() {
    let world = World::start_in_room().await;
    assert_eq!(world.write_in_room(BOB_ACCOUNT, "status").await, NONE);
    assert_eq!(world.write_in_room(BOB_ACCOUNT, "/status").await, [STATUS]);
    assert_eq!(world.write_in_room(BOB_ACCOUNT, "/status@other_bot").await, [STATUS]);
    let answer = world.newest_in_room().message_id;
    world.telegram().reply_in_group(FAMILY, BOB_ACCOUNT, answer, "status");
    world.pass(20).await;
    assert_eq!(world.answers_in_room(), [STATUS, STATUS]);
}

#[tokio::test(start_paused = true)]
async fn group_of_a_member_is_answered_once_an_admin_approves() {
    let mut world = World::start_in_room().await;
    world.telegram().create_group(-600, &[BOB_ACCOUNT]);
    world.telegram().add_bot_to_group(-600, BOB_ACCOUNT);
    world.telegram().group_text(-600, BOB_ACCOUNT, "@home_bot status");
    world.pass(20).await;
    assert_eq!(world.telegram().texts_to(-600), NONE);
    let request = world.bot_texts().pop().unwrap();
    assert!(request.starts_with("New group \"Group -600\": reply APPROVE "), "{request}");
    let code: String = request.split("APPROVE ").nth(1).unwrap().chars().take(4).collect();
    world.text_to_bot(&format!("approve {code}")).await;
    assert_eq!(world.telegram().texts_to(-600), [GREETING]);
    world.telegram().group_text(-600, BOB_ACCOUNT, "@home_bot status");
    world.pass(20).await;
    assert_eq!(world.telegram().texts_to(-600), [GREETING, STATUS]);
    world.kill().await;
}

#[tokio::test(start_paused = true)]
async fn bot_that_is_promoted_in_a_waiting_group_asks_the_admins_once() {
    let world = World::start_in_room().await;
    world.telegram().create_group(-600, &[BOB_ACCOUNT]);
    world.telegram().add_bot_to_group(-600, BOB_ACCOUNT);
    world.telegram().promote_bot(-600, BOB_ACCOUNT);
    world.pass(20).await;
    assert_eq!(world.text_to_bot("status").await.last().unwrap(), STATUS, "other messages are read");
    let requests = world.bot_texts().into_iter().filter(|text| text.starts_with("New group")).count();
    assert_eq!(requests, 1);
}

#[tokio::test(start_paused = true)]
async fn group_of_a_stranger_is_not_answered_and_nothing_of_it_is_stored() {
    let world = World::start_in_room().await;
    world.telegram().create_group(-600, &[STRANGER]);
    world.telegram().add_bot_to_group(-600, STRANGER);
    world.telegram().group_text(-600, STRANGER, "@home_bot secret words");
    world.pass(20).await;
    assert_eq!((world.telegram().texts_to(-600), world.private_texts(ANN_ACCOUNT)), (Vec::new(), Vec::new()));
    assert_eq!(world.lines(WORDS).await, NONE);
}

#[tokio::test(start_paused = true)]
async fn member_of_the_group_without_a_private_chat_gets_a_link_once_a_day() {
    let world = World::start_in_room().await;
    let hint = "I can answer you here once you have opened a private chat with me: https://t.me/home_bot";
    assert_eq!(world.write_in_room(STRANGER, "@home_bot add dune").await, [hint]);
    assert_eq!(world.write_in_room(STRANGER, "@home_bot add dune").await, [hint]);
    world.pass(24 * 3600).await;
    assert_eq!(world.write_in_room(STRANGER, "@home_bot add dune").await, [hint, hint]);
    assert_eq!(world.write_in_room(STRANGER, "we like dune").await, [hint, hint]);
    assert_eq!(world.lines(WORDS).await, NONE);
    assert_eq!(world.lines("SELECT id AS line FROM users WHERE status = 'pending'").await, NONE);
}

#[tokio::test(start_paused = true)]
async fn model_reads_the_words_of_the_group_with_their_authors() {
    let world = World::start_in_room().await;
    world.write_in_room(BOB_ACCOUNT, "we could watch Heat\ntonight").await;
    world.model_plays([says("Heat is a good choice."), says("It is from 1995.")]);
    world.write_in_room(ANN_ACCOUNT, "@home_bot what do you think?").await;
    assert_eq!(world.answers_in_room(), ["Heat is a good choice."]);
    let request = world.last_request_text();
    assert!(request.contains("Bob: we could watch Heat\n  tonight"), "{request}");
    assert!(request.contains("Ann: what do you think?"), "{request}");
    assert!(request.contains("group chat: Group -500;"), "{request}");
    world.write_in_room(BOB_ACCOUNT, "@home_bot from which year?").await;
    let request = world.last_request_text();
    assert!(request.contains("Ann: what do you think?") && request.contains("Bob: from which year?"));
}

#[tokio::test(start_paused = true)]
async fn only_the_person_who_was_asked_can_confirm_in_a_group() {
    let world = World::start_in_room().await;
    let heat = world.model_deletes_heat();
    assert_eq!(world.write_in_room(ANN_ACCOUNT, "@home_bot delete heat").await, [QUESTION]);
    let question = world.newest_in_room().message_id;
    world.press_in_room(BOB_ACCOUNT, question, "Yes").await;
    world.telegram().reply_in_group(FAMILY, BOB_ACCOUNT, question, "yes");
    world.telegram().group_text(FAMILY, STRANGER, "@home_bot yes");
    world.pass(20).await;
    assert!(world.radarr().removed_ids().is_empty());
    let answers = world.press_in_room(ANN_ACCOUNT, question, "Yes").await;
    assert_eq!(answers.last().unwrap(), DELETED);
    assert_eq!(world.radarr().removed_ids(), [heat]);
    let confirmed = world.lines(CONFIRMED_BY).await;
    assert_eq!(confirmed, ["Ann"]);
}

/// Texts that are stored, without those of /start.
const WORDS: &str = "SELECT body AS line FROM inbound_events WHERE body <> 'start'";

const CONFIRMED_BY: &str = "SELECT display_name AS line FROM tool_calls JOIN inbound_events e ON e.id = confirmed_by \
                            JOIN users ON users.id = e.user_id";

#[tokio::test(start_paused = true)]
async fn words_confirm_in_the_group_unless_something_else_was_sent_there() {
    let world = World::start_in_room().await;
    let heat = world.model_deletes_heat();
    world.write_in_room(ANN_ACCOUNT, "@home_bot delete heat").await;
    // The private chat is another chat.
    assert!(world.text_to_bot("yes").await.iter().all(|text| text != DELETED));
    assert!(world.radarr().removed_ids().is_empty());
    world.write_in_room(BOB_ACCOUNT, "/status").await;
    world.write_in_room(ANN_ACCOUNT, "@home_bot yes").await;
    assert_eq!(world.answers_in_room(), [QUESTION, STATUS, QUESTION], "the question is repeated");
    assert_eq!(world.write_in_room(ANN_ACCOUNT, "@home_bot yes").await.last().unwrap(), DELETED);
    assert_eq!(world.radarr().removed_ids(), [heat]);
}

#[tokio::test(start_paused = true)]
async fn question_of_the_private_chat_cannot_be_answered_in_a_group() {
    let world = World::start_in_room().await;
    let heat = world.model_deletes_heat();
    assert_eq!(world.text_to_bot("delete heat").await.pop().unwrap(), QUESTION);
    world.model_plays([says("Yes to what?")]);
    assert_eq!(world.write_in_room(ANN_ACCOUNT, "@home_bot yes").await, ["Yes to what?"]);
    assert!(world.radarr().removed_ids().is_empty());
    assert_eq!(world.press_newest_of_ann("Yes").await.last().unwrap(), DELETED);
    assert_eq!(world.radarr().removed_ids(), [heat]);
}

impl World {
    async fn press_newest_of_ann(&self, label: &str) -> Vec<String> {
        let newest = self.telegram().sent_messages().into_iter().rfind(|sent| sent.chat_id == ANN_ACCOUNT);
        self.press(newest.unwrap().message_id, label).await
    }
}

#[tokio::test(start_paused = true)]
async fn private_commands_of_the_group_are_answered_in_the_private_chat() {
    let world = World::start_in_room().await;
    for (index, command) in
        ["what do you know about me", "users", "commands", "quiet off"].into_iter().enumerate()
    {
        let answers = world.write_in_room(ANN_ACCOUNT, &format!("@home_bot {command}")).await;
        assert_eq!(answers, vec![PRIVATELY; index + 1], "{command}");
        assert_eq!(world.private_texts(ANN_ACCOUNT).len(), index + 1, "{command}");
    }
    assert!(world.private_texts(ANN_ACCOUNT)[1].contains("Bob"), "{:?}", world.bot_texts());
}

#[tokio::test(start_paused = true)]
async fn stop_in_a_group_opts_out_of_the_private_chat_only() {
    let world = World::start_in_room().await;
    assert_eq!(world.write_in_room(BOB_ACCOUNT, "@home_bot stop").await, [PRIVATELY]);
    assert_eq!(world.private_texts(BOB_ACCOUNT).len(), 1);
    assert_eq!(
        world.lines("SELECT address AS line FROM user_addresses WHERE opted_out_at IS NOT NULL").await,
        ["telegram:7000000003"]
    );
    assert_eq!(world.write_in_room(BOB_ACCOUNT, "/status").await, [PRIVATELY, STATUS]);
}

#[tokio::test(start_paused = true)]
async fn secrets_of_one_person_reach_no_request_and_no_message_of_the_group() {
    let world = World::start_in_room().await;
    for (person, secret) in [(ANN_ACCOUNT, "marzipan"), (BOB_ACCOUNT, "tangerine")] {
        let fact = json!({ "kind": "dislike", "value": secret });
        world.model_plays([calls("remember", fact), says(&format!("I noted {secret}."))]);
        world.telegram().text(person, &format!("i dislike {secret}"));
        world.pass(20).await;
        let reply = world.telegram().texts_to(person).pop().unwrap();
        assert!(reply.contains(secret), "{reply}");
    }
    for (person, body) in [(ANN_ACCOUNT, "what do i like?"), (BOB_ACCOUNT, "what did ann say she likes?")] {
        world.model_plays([says("I do not know.")]);
        let count = world.model_request_count();
        world.write_in_room(person, &format!("@home_bot {body}")).await;
        assert!(world.model_request_count() > count);
        let request = format!("{:?}", world.last_request());
        assert!(!request.contains("marzipan") && !request.contains("tangerine"), "{request}");
        assert!(!request.contains("\"remember\""), "{request}");
    }
    let sent = world.room_texts().join("\n");
    assert!(!sent.contains("marzipan") && !sent.contains("tangerine"), "{sent}");
}

#[tokio::test(start_paused = true)]
async fn words_of_the_group_reach_no_request_of_a_private_chat() {
    let world = World::start_in_room().await;
    world.write_in_room(BOB_ACCOUNT, "the gift for Ann is a marzipan pig").await;
    world.model_plays([says("Nice."), says("I do not know.")]);
    world.write_in_room(BOB_ACCOUNT, "@home_bot is marzipan nice?").await;
    world.text_to_bot("what about marzipan").await;
    let requests = world.last_request_text();
    assert!(!requests.contains("pig") && !requests.contains("Nice."), "{requests}");
}

#[tokio::test(start_paused = true)]
async fn question_with_a_code_is_asked_in_the_private_chat() {
    let world = World::start_in_room().await;
    world.require_codes().await;
    let heat = world.model_deletes_heat();
    assert_eq!(world.write_in_room(ANN_ACCOUNT, "@home_bot delete heat").await, [PRIVATELY]);
    let question = world.bot_texts().pop().unwrap();
    let code = question.rsplit("YES ").next().unwrap();
    let code: String = code.chars().take_while(char::is_ascii_digit).collect();
    assert!(!code.is_empty(), "{question}");
    world.write_in_room(ANN_ACCOUNT, &format!("@home_bot yes {code}")).await;
    assert!(world.radarr().removed_ids().is_empty());
    assert_eq!(world.text_to_bot(&format!("yes {code}")).await.last().unwrap(), DELETED);
    assert_eq!(world.radarr().removed_ids(), [heat]);
    assert!(world.room_texts().iter().all(|text| !text.contains(&code)), "{:?}", world.room_texts());
}

#[tokio::test(start_paused = true)]
async fn turns_of_a_group_and_of_its_people_run_one_after_another() {
    let model = Gated::playing([says("One."), says("Two."), says("Three.")]);
    let mut world = World::start_with_bot_and(model.clone()).await;
    world.open_room().await;
    world.telegram().group_text(FAMILY, ANN_ACCOUNT, "@home_bot first question");
    model.is_asked().await;
    // The room has a turn, and so has Ann.
    world.telegram().group_text(FAMILY, BOB_ACCOUNT, "@home_bot second question");
    world.telegram().text(ANN_ACCOUNT, "third question");
    world.pass(30).await;
    assert_eq!(world.lines("SELECT id AS line FROM turns WHERE finished_at IS NULL").await.len(), 1);
    model.release(3);
    world.pass(30).await;
    assert_eq!(world.answers_in_room().len(), 2);
    assert_eq!(world.private_texts(ANN_ACCOUNT).len(), 1);
    assert_eq!(world.lines("SELECT id AS line FROM turns WHERE finished_at IS NULL").await, NONE);
}

#[tokio::test(start_paused = true)]
async fn private_chat_does_not_wait_for_the_turn_of_another_person_in_the_group() {
    let model = Gated::playing([says("One."), says("Two."), says("Three.")]);
    let mut world = World::start_with_bot_and(model.clone()).await;
    world.open_room().await;
    world.telegram().group_text(FAMILY, ANN_ACCOUNT, "@home_bot first question");
    model.is_asked().await;
    world.telegram().group_text(FAMILY, BOB_ACCOUNT, "@home_bot second question");
    world.pass(10).await;
    world.telegram().text(BOB_ACCOUNT, "status");
    world.pass(20).await;
    assert_eq!(world.private_texts(BOB_ACCOUNT), [STATUS]);
    model.release(3);
    world.pass(30).await;
    assert_eq!(world.answers_in_room().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn turn_of_a_group_ends_after_a_crash_before_the_next_begins() {
    let model = Gated::playing([says("One."), says("Two."), says("Three."), says("Four.")]);
    let mut world = World::start_with_bot_and(model.clone()).await;
    world.open_room().await;
    world.telegram().group_text(FAMILY, ANN_ACCOUNT, "@home_bot first question");
    model.is_asked().await;
    world.telegram().group_text(FAMILY, BOB_ACCOUNT, "@home_bot second question");
    world.pass(10).await;
    world.kill().await;
    world.start_again().await;
    model.release(4);
    world.pass(90).await;
    assert_eq!(world.answers_in_room().len(), 2, "{:?}", world.answers_in_room());
    assert_eq!(world.lines("SELECT id AS line FROM turns WHERE finished_at IS NULL").await, NONE);
}

#[tokio::test(start_paused = true)]
async fn room_is_closed_while_the_bot_is_no_member_of_the_group() {
    let world = World::start_in_room().await;
    world.telegram().remove_bot_from_group(FAMILY, ANN_ACCOUNT);
    world.pass(20).await;
    assert_eq!(
        world.lines("SELECT address AS line FROM user_addresses WHERE opted_out_at IS NOT NULL").await,
        ["telegram:-500"]
    );
    world.telegram().add_bot_to_group(FAMILY, BOB_ACCOUNT);
    assert_eq!(world.write_in_room(BOB_ACCOUNT, "@home_bot status").await, [STATUS]);
}

#[tokio::test(start_paused = true)]
async fn group_that_becomes_a_supergroup_stays_the_same_room() {
    let world = World::start_in_room().await;
    world.write_in_room(ANN_ACCOUNT, "@home_bot status").await;
    world.telegram().migrate_group(FAMILY, -1_000_000_000_500);
    world.pass(20).await;
    world.telegram().group_text(-1_000_000_000_500, ANN_ACCOUNT, "@home_bot status");
    world.pass(20).await;
    assert_eq!(world.telegram().texts_to(-1_000_000_000_500), [STATUS]);
    assert_eq!(world.lines("SELECT id AS line FROM rooms").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn person_who_erases_everything_erases_their_words_in_groups() {
    let world = World::start_in_room().await;
    world.write_in_room(BOB_ACCOUNT, "tangerine pudding").await;
    world.write_in_room(ANN_ACCOUNT, "marzipan pig").await;
    world.model_plays([says("With tangerines, of course.")]);
    world.write_in_room(BOB_ACCOUNT, "@home_bot how do i make it?").await;
    world.telegram().text(BOB_ACCOUNT, "forget all");
    world.pass(20).await;
    let bodies = world.lines("SELECT body AS line FROM inbound_events WHERE body NOT IN ('', 'start')").await;
    assert_eq!(bodies, ["marzipan pig"]);
    let answers = "SELECT response_text AS line FROM turns WHERE response_text LIKE '%tangerine%' \
                   UNION ALL SELECT content FROM blocks WHERE content LIKE '%tangerine%' \
                   UNION ALL SELECT response_text FROM agent_responses WHERE response_text LIKE '%tangerine%'";
    assert_eq!(world.lines(answers).await, NONE);
    world.model_plays([says("Hm.")]);
    world.write_in_room(ANN_ACCOUNT, "@home_bot what did we talk about?").await;
    let request = world.last_request_text();
    assert!(!request.contains("tangerine") && request.contains("marzipan"), "{request}");
}

#[tokio::test(start_paused = true)]
async fn room_that_remembers_nothing_gives_the_model_no_history() {
    let world = World::start_in_room().await;
    world.change_room(RoomMode::Mentioned, false).await;
    world.write_in_room(BOB_ACCOUNT, "tangerine pudding").await;
    assert_eq!(world.lines(WORDS).await, NONE);
    world.model_plays([says("Fine."), says("Hm.")]);
    world.write_in_room(ANN_ACCOUNT, "@home_bot i like marzipan").await;
    world.write_in_room(ANN_ACCOUNT, "@home_bot what do i like?").await;
    let request = world.last_request_text();
    assert!(!request.contains("marzipan") && !request.contains("Fine."), "{request}");
    assert_eq!(world.lines("SELECT source AS line FROM agent_responses").await, NONE);
}

#[tokio::test(start_paused = true)]
async fn answers_of_a_group_are_remembered_for_the_group() {
    let world = World::start_in_room().await;
    world.model_plays([says("The spice must flow on Arrakis.")]);
    world.write_in_room(ANN_ACCOUNT, "@home_bot what is the saying about spice?").await;
    let stored = world
        .lines("SELECT scope || ' ' || (owner = 'g' || (SELECT group_id FROM rooms)) AS line FROM agent_responses")
        .await;
    assert_eq!(stored, ["group 1"]);
}

#[tokio::test(start_paused = true)]
async fn room_that_is_off_answers_nothing() {
    let world = World::start_in_room().await;
    world.change_room(RoomMode::Off, true).await;
    assert_eq!(world.write_in_room(BOB_ACCOUNT, "@home_bot status").await, NONE);
    assert_eq!(world.lines(WORDS).await, NONE);
}

#[tokio::test(start_paused = true)]
async fn model_decides_which_words_of_a_group_it_answers() {
    let world = World::start_in_room().await;
    world.change_room(RoomMode::Ai, true).await;
    world.model_plays([says("SKIP")]);
    assert_eq!(world.write_in_room(BOB_ACCOUNT, "dinner is ready").await, NONE);
    world.model_plays([says("ANSWER"), says("It plays at eight.")]);
    assert_eq!(world.write_in_room(BOB_ACCOUNT, "when does the film start").await, ["It plays at eight."]);
}

#[tokio::test(start_paused = true)]
async fn export_of_a_person_has_their_own_words_in_groups_only() {
    let world = World::start_in_room().await;
    world.write_in_room(ANN_ACCOUNT, "marzipan pig").await;
    world.model_plays([says("Yes.")]);
    world.write_in_room(BOB_ACCOUNT, "@home_bot tangerine pudding?").await;
    let export = world.read_database(|conn| {
        let bob =
            users::ensure_user(conn, account(BOB_ACCOUNT), FirstContactRole::Member, Timestamp::UNIX_EPOCH)?;
        dialarr::store::privacy::export::export_user(conn, bob)
    });
    let export = serde_json::to_string(&export.await).unwrap();
    assert!(export.contains("tangerine pudding") && !export.contains("marzipan"), "{export}");
}

#[tokio::test(start_paused = true)]
async fn operator_sees_the_group_with_its_authors_and_changes_it() {
    let world = World::start_in_room().await;
    world.model_plays([says("Yes.")]);
    world.write_in_room(BOB_ACCOUNT, "@home_bot is heat good?").await;
    let page = world.page("/users").await;
    assert!(page.contains("<bdi>Group -500</bdi>") && !page.contains("telegram -500"), "{page}");
    let conversations = world.page("/conversations").await;
    assert!(conversations.contains("Group -500"), "{conversations}");
    let id =
        world.lines("SELECT conversation_id AS line FROM turns ORDER BY id DESC LIMIT 1").await.remove(0);
    let conversation = world.page(&format!("/conversations/{id}")).await;
    assert!(conversation.contains("Bob, "), "{conversation}");
    let room = world.lines("SELECT id AS line FROM rooms").await.remove(0);
    world.submit(&format!("/rooms/{room}"), &[("mode", "ai")]).await;
    let settings = world.lines("SELECT mode || ' ' || remembers AS line FROM rooms").await;
    assert_eq!(settings, ["ai 0"]);
    world.submit(&format!("/rooms/{room}/block"), &[]).await;
    assert_eq!(world.write_in_room(BOB_ACCOUNT, "/status").await, ["Yes."]);
}

#[tokio::test(start_paused = true)]
async fn block_of_a_group_ends_its_turn_and_its_prompts() {
    let model = Gated::playing([says("One.")]);
    let mut world = World::start_with_bot_and(model.clone()).await;
    world.open_room().await;
    world.telegram().group_text(FAMILY, BOB_ACCOUNT, "@home_bot first question");
    model.is_asked().await;
    let room = world.lines("SELECT id AS line FROM rooms").await.remove(0);
    world.submit(&format!("/rooms/{room}/block"), &[]).await;
    model.release(1);
    world.pass(30).await;
    assert_eq!(world.answers_in_room(), NONE);
    assert_eq!(world.lines("SELECT id AS line FROM turns WHERE finished_at IS NULL").await, NONE);
    world.submit(&format!("/rooms/{room}/approve"), &[]).await;
    assert_eq!(world.write_in_room(BOB_ACCOUNT, "/status").await, [STATUS]);
}

#[tokio::test(start_paused = true)]
async fn prompt_of_a_group_that_the_bot_left_is_closed() {
    let world = World::start_in_room().await;
    world.model_deletes_heat();
    assert_eq!(world.write_in_room(ANN_ACCOUNT, "@home_bot delete heat").await, [QUESTION]);
    world.telegram().remove_bot_from_group(FAMILY, BOB_ACCOUNT);
    world.pass(20).await;
    assert_eq!(world.lines("SELECT id AS line FROM pending_actions").await, NONE);
}

#[tokio::test(start_paused = true)]
async fn merged_user_keeps_the_words_in_groups() {
    let world = World::start_in_room().await;
    world.model_plays([says("Yes.")]);
    world.write_in_room(BOB_ACCOUNT, "@home_bot is heat good?").await;
    world.register(STRANGER, "Sam").await;
    let ids =
        world.lines("SELECT user_id AS line FROM user_addresses WHERE address LIKE 'telegram:7%'").await;
    let [bob, sam] = [&ids[1], &ids[2]].map(Clone::clone);
    world.submit(&format!("/users/{sam}/merge"), &[("from", &bob)]).await;
    let author = world.lines("SELECT user_id AS line FROM turns WHERE response_text = 'Yes.'").await;
    assert_eq!(author, [sam]);
}

#[tokio::test(start_paused = true)]
async fn words_to_others_in_the_group_leave_a_prompt_alone() {
    let world = World::start_in_room().await;
    let heat = world.model_deletes_heat();
    world.write_in_room(ANN_ACCOUNT, "@home_bot delete heat").await;
    for words in ["see you at eight", "yes", "no"] {
        assert_eq!(world.write_in_room(ANN_ACCOUNT, words).await, [QUESTION], "{words}");
    }
    let question = world.newest_in_room().message_id;
    world.telegram().reply_in_group(FAMILY, ANN_ACCOUNT, question, "yes");
    world.pass(20).await;
    assert_eq!(world.radarr().removed_ids(), [heat]);
}

#[tokio::test(start_paused = true)]
async fn operator_answers_a_prompt_of_the_group_for_the_person_who_was_asked() {
    let world = World::start_in_room().await;
    let heat = world.model_deletes_heat();
    world.write_in_room(ANN_ACCOUNT, "@home_bot delete heat").await;
    let prompt = world.lines("SELECT id AS line FROM pending_actions").await.remove(0);
    let conversation = world.lines("SELECT conversation_id AS line FROM pending_actions").await.remove(0);
    let path = format!("/conversations/{conversation}/question");
    world.submit(&path, &[("question", &prompt), ("answer", "yes")]).await;
    world.pass(20).await;
    assert_eq!(world.answers_in_room(), [QUESTION, DELETED]);
    assert_eq!(world.radarr().removed_ids(), [heat]);
}

#[tokio::test(start_paused = true)]
async fn several_words_in_a_row_are_left_to_the_model_too() {
    let world = World::start_in_room().await;
    world.change_room(RoomMode::Ai, true).await;
    world.model_plays([says("SKIP")]);
    world.telegram().group_text(FAMILY, BOB_ACCOUNT, "dinner is ready");
    assert_eq!(world.write_in_room(BOB_ACCOUNT, "come down").await, NONE);
}

#[tokio::test(start_paused = true)]
async fn person_who_stopped_private_messages_is_asked_to_start_them() {
    let world = World::start_in_room().await;
    world.telegram().text(BOB_ACCOUNT, "stop");
    world.pass(20).await;
    let stopped = "I can't write to you in private. Send me START in our private chat first.";
    assert_eq!(world.write_in_room(BOB_ACCOUNT, "@home_bot what do you know").await, [stopped]);
    world.require_codes().await;
    world.model_deletes_heat();
    let refusal =
        "That needs a code, and I can't write to you in private. Send me START in our private chat first.";
    let answers = world.write_in_room(BOB_ACCOUNT, "@home_bot delete heat").await;
    assert!(answers.last().unwrap().contains(refusal), "{answers:?}");
    assert_eq!(world.lines("SELECT id AS line FROM pending_actions").await, NONE);
}

#[tokio::test(start_paused = true)]
async fn groups_beyond_three_that_wait_are_not_stored() {
    let world = World::start_in_room().await;
    for chat in -605..-600 {
        world.telegram().create_group(chat, &[BOB_ACCOUNT]);
        world.telegram().add_bot_to_group(chat, BOB_ACCOUNT);
    }
    world.pass(20).await;
    assert_eq!(world.lines("SELECT id AS line FROM rooms").await.len(), 4);
    assert_eq!(world.private_texts(ANN_ACCOUNT).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn room_cannot_be_made_an_admin() {
    let world = World::start_in_room().await;
    let found = world.read_database(|conn| {
        let room = rooms::load_rooms(conn, 1)?.remove(0);
        let address = dialarr::conversation::transcript::UserAddress::parse("telegram:-500").unwrap();
        let by_address = dialarr::store::people::user_admin::find_user_id(conn, address)?;
        Ok((by_address, dialarr::store::people::user_admin::find_known_user(conn, room.id)?))
    });
    assert_eq!(found.await, (None, None));
}

/// Reactions of people that were not removed, with the name of the person.
const REACTIONS: &str = "SELECT display_name || ' ' || emoji AS line FROM reactions JOIN users ON users.id = user_id \
                         WHERE author = 'user' AND removed_at IS NULL ORDER BY reactions.id";

#[tokio::test(start_paused = true)]
async fn each_person_has_one_reaction_to_a_message_and_it_confirms_nothing() {
    let mut world = World::start_in_room().await;
    world.telegram().promote_bot(FAMILY, ANN_ACCOUNT);
    world.model_deletes_heat();
    world.write_in_room(ANN_ACCOUNT, "@home_bot delete heat").await;
    let question = world.newest_in_room().message_id;
    for (person, emoji) in [(ANN_ACCOUNT, "\u{1f44d}"), (BOB_ACCOUNT, "\u{1f44e}"), (STRANGER, "\u{1f525}")] {
        world.telegram().react(person, FAMILY, question, emoji);
    }
    world.pass(20).await;
    assert_eq!(world.lines(REACTIONS).await, ["Ann \u{1f44d}", "Bob \u{1f44e}"]);
    world.telegram().react(BOB_ACCOUNT, FAMILY, question, "\u{1f44d}");
    // A report that is repeated after a later one changes nothing.
    world.telegram().repeat_updates(3);
    world.pass(20).await;
    assert_eq!(world.lines(REACTIONS).await, ["Ann \u{1f44d}", "Bob \u{1f44d}"]);
    world.telegram().react(ANN_ACCOUNT, FAMILY, question, "");
    world.kill().await;
    world.start_again().await;
    world.pass(20).await;
    assert_eq!(world.lines(REACTIONS).await, ["Bob \u{1f44d}"]);
    assert!(world.radarr().removed_ids().is_empty());
    assert_eq!(world.answers_in_room(), [QUESTION], "a reaction gets no answer");
}

#[tokio::test(start_paused = true)]
async fn reaction_in_the_private_chat_is_stored_with_its_message() {
    let world = World::start_in_room().await;
    world.text_to_bot("status").await;
    let sent =
        world.telegram().sent_messages().into_iter().rfind(|sent| sent.chat_id == ANN_ACCOUNT).unwrap();
    world.telegram().react(ANN_ACCOUNT, ANN_ACCOUNT, sent.message_id, "\u{1f389}");
    world.pass(20).await;
    assert_eq!(world.lines(REACTIONS).await, ["Ann \u{1f389}"]);
    assert_eq!(world.private_texts(ANN_ACCOUNT), [STATUS]);
}
