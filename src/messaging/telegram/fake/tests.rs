//! Checks of the simulated Bot API through its requests.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{FakeBot, FakeTelegram};
use crate::clock::Clock;

const SAM: i64 = 7;
const KIM: i64 = 8;
const GROUP: i64 = -1001;
const YES_OR_NO: &str =
    r#"{"inline_keyboard":[[{"text":"Yes","callback_data":"t:1"},{"text":"No","callback_data":"t:2"}]]}"#;

fn telegram() -> FakeTelegram {
    let bot = FakeBot { token: "501:AAE-x_9".to_owned(), username: "home_bot".to_owned() };
    FakeTelegram::new(bot, Clock::from_runtime(Timestamp::from_second(1_763_800_000).unwrap()))
}

async fn send_request(telegram: &FakeTelegram, request: Request<Bytes>) -> Value {
    let (head, body) = telegram.in_process()(request).await.into_parts();
    let answer: Value = serde_json::from_slice(&body).unwrap();
    let status = if answer["ok"] == true { 200 } else { answer["error_code"].as_u64().unwrap() };
    assert_eq!(u64::from(head.status.as_u16()), status);
    answer
}

/// Calls a method, and returns its whole answer.
async fn call(telegram: &FakeTelegram, method: &str, parameters: Value) -> Value {
    let request = Request::post(format!("https://telegram.invalid/bot501:AAE-x_9/{method}"));
    send_request(telegram, request.body(Bytes::from(parameters.to_string())).unwrap()).await
}

async fn call_result(telegram: &FakeTelegram, method: &str, parameters: Value) -> Value {
    let mut answer = call(telegram, method, parameters).await;
    assert_eq!(answer["ok"], true, "{answer}");
    answer["result"].take()
}

async fn call_error(telegram: &FakeTelegram, method: &str, parameters: Value) -> String {
    let answer = call(telegram, method, parameters).await;
    format!("{} {}", answer["error_code"], answer["description"].as_str().unwrap_or_default())
}

async fn send_text(telegram: &FakeTelegram, chat: i64, text: &str) -> Value {
    call(telegram, "sendMessage", json!({ "chat_id": chat, "text": text })).await
}

async fn updates_from(telegram: &FakeTelegram, offset: i64) -> Vec<Value> {
    let updates = call_result(telegram, "getUpdates", json!({ "offset": offset })).await;
    updates.as_array().unwrap().clone()
}

/// Polls as a client does that confirms what it gets, and returns the updates.
async fn read_updates(telegram: &FakeTelegram) -> Vec<Value> {
    let updates = updates_from(telegram, 0).await;
    if let Some(last) = updates.last() {
        updates_from(telegram, last["update_id"].as_i64().unwrap() + 1).await;
    }
    updates
}

fn ids(updates: &[Value]) -> Vec<i64> {
    updates.iter().map(|update| update["update_id"].as_i64().unwrap()).collect()
}

fn texts(updates: &[Value]) -> Vec<&str> {
    updates.iter().map(|update| update["message"]["text"].as_str().unwrap_or_default()).collect()
}

#[tokio::test(start_paused = true)]
async fn offset_confirms_all_updates_before_it() {
    let telegram = telegram();
    telegram.start_bot(SAM, "link-123456");
    telegram.text(SAM, "add heat");
    let updates = updates_from(&telegram, 0).await;
    assert_eq!(texts(&updates), ["/start link-123456", "add heat"]);
    let second = ids(&updates)[1];
    assert_eq!(ids(&updates_from(&telegram, second).await), [second]);
    assert_eq!(telegram.unread_updates(), 1);
    assert_eq!(ids(&updates_from(&telegram, second + 1).await), [0; 0]);
    assert_eq!(telegram.unread_updates(), 0);
    assert_eq!(ids(&updates_from(&telegram, 0).await), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn unconfirmed_updates_are_delivered_with_each_request() {
    let telegram = telegram();
    for text in ["one", "two", "three"] {
        telegram.text(SAM, text);
    }
    let first = updates_from(&telegram, 0).await;
    assert_eq!(updates_from(&telegram, 0).await, first);
    let page = call_result(&telegram, "getUpdates", json!({ "limit": 2 })).await;
    assert_eq!(texts(page.as_array().unwrap()), ["one", "two"]);
    // A negative offset counts from the end.
    assert_eq!(texts(&updates_from(&telegram, -1).await), ["three"]);
    assert_eq!(telegram.unread_updates(), 1);
}

#[tokio::test(start_paused = true)]
async fn update_has_the_fields_of_a_private_message() {
    let telegram = telegram();
    let message_id = telegram.text(SAM, "ök /help");
    let update = read_updates(&telegram).await.remove(0);
    let person = json!({ "id": 7, "is_bot": false, "first_name": "Person 7", "language_code": "en" });
    assert_eq!(
        update["message"],
        json!({
            "message_id": message_id, "date": 1_763_800_000, "from": person, "text": "ök /help",
            "chat": { "id": 7, "first_name": "Person 7", "type": "private" },
            "entities": [{ "type": "bot_command", "offset": 3, "length": 5 }],
        })
    );
    telegram.edit_text(SAM, message_id, "ok");
    let edited = read_updates(&telegram).await.remove(0);
    assert_eq!(edited["edited_message"]["message_id"], message_id);
    assert_eq!(edited["edited_message"].get("entities"), None);
}

#[tokio::test(start_paused = true)]
async fn long_poll_ends_with_a_new_update() {
    let telegram = telegram();
    let started = tokio::time::Instant::now();
    let poll = call_result(&telegram, "getUpdates", json!({ "timeout": 30 }));
    let write = async {
        assert!(tokio::time::timeout(Duration::from_secs(9), std::future::pending::<()>()).await.is_err());
        telegram.text(SAM, "add heat");
    };
    let (updates, ()) = tokio::join!(poll, write);
    assert_eq!(texts(updates.as_array().unwrap()), ["add heat"]);
    assert_eq!(started.elapsed().as_secs(), 9);
}

#[tokio::test(start_paused = true)]
async fn long_poll_without_updates_ends_after_its_time() {
    let telegram = telegram();
    let started = tokio::time::Instant::now();
    assert_eq!(call_result(&telegram, "getUpdates", json!({ "timeout": 30 })).await, json!([]));
    assert_eq!(started.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn second_poll_ends_the_first_with_a_conflict() {
    let telegram = telegram();
    let first = call_error(&telegram, "getUpdates", json!({ "timeout": 30 }));
    let (first, second) = tokio::join!(first, call_result(&telegram, "getUpdates", json!({ "timeout": 0 })));
    let conflict = "409 Conflict: terminated by other getUpdates request; make sure that only one bot instance is running";
    assert_eq!((first.as_str(), second), (conflict, json!([])));
    telegram.claim_by_other_poller(1);
    assert_eq!(call_error(&telegram, "getUpdates", json!({})).await, conflict);
    assert_eq!(ids(&updates_from(&telegram, 0).await), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn allowed_updates_persist_until_they_are_changed() {
    let telegram = telegram();
    let message_id = telegram.text(SAM, "hi");
    telegram.react(SAM, SAM, message_id, "👍");
    assert_eq!(read_updates(&telegram).await.len(), 1);

    let kinds = json!({ "allowed_updates": ["message_reaction"] });
    assert_eq!(call_result(&telegram, "getUpdates", kinds).await, json!([]));
    telegram.text(SAM, "unseen");
    telegram.react(SAM, SAM, message_id, "🔥");
    let updates = read_updates(&telegram).await;
    let emoji = |field: &str| updates[0]["message_reaction"][field][0]["emoji"].clone();
    assert_eq!((updates.len(), emoji("old_reaction"), emoji("new_reaction")), (1, json!("👍"), json!("🔥")));

    call_result(&telegram, "getUpdates", json!({ "allowed_updates": [] })).await;
    telegram.text(SAM, "seen");
    telegram.react(SAM, SAM, message_id, "");
    assert_eq!(texts(&read_updates(&telegram).await), ["seen"]);
}

#[tokio::test(start_paused = true)]
async fn repeated_updates_arrive_despite_a_later_offset() {
    let telegram = telegram();
    for text in ["one", "two", "three"] {
        telegram.text(SAM, text);
    }
    let all = ids(&read_updates(&telegram).await);
    telegram.repeat_updates(2);
    assert_eq!(ids(&updates_from(&telegram, all[2] + 1).await), all[1..]);
    assert_eq!(ids(&updates_from(&telegram, all[2] + 1).await), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn smaller_update_ids_arrive_despite_the_old_offset() {
    for jump in [-5, -1_000, 50] {
        let telegram = telegram();
        telegram.text(SAM, "before");
        let offset = ids(&read_updates(&telegram).await)[0] + 1;
        telegram.skip_update_ids(jump);
        assert_eq!(ids(&updates_from(&telegram, offset).await), [0; 0]);
        telegram.text(SAM, "after");
        assert_eq!(ids(&updates_from(&telegram, offset).await), [offset + jump], "{jump}");
        assert_eq!(ids(&updates_from(&telegram, offset + jump + 1).await), [0; 0], "{jump}");
    }
}

#[tokio::test(start_paused = true)]
async fn webhook_excludes_polls_and_receives_the_updates() {
    let telegram = telegram();
    telegram.text(SAM, "before");
    for (url, secret, error) in [
        ("http://home.invalid/", "s", "bad webhook: An HTTPS URL must be provided for webhook"),
        (
            "https://home.invalid:8080/",
            "s",
            "bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443",
        ),
        ("https://home.invalid/", "a b", "secret token contains unallowed characters"),
    ] {
        let parameters = json!({ "url": url, "secret_token": secret });
        let refusal = call_error(&telegram, "setWebhook", parameters).await;
        assert_eq!(refusal, format!("400 Bad Request: {error}"));
    }
    let poll = call_error(&telegram, "getUpdates", json!({ "timeout": 30, "offset": 900_000_000 }));
    let set = async {
        telegram.text(SAM, "seen by the poll");
        call_result(
            &telegram,
            "setWebhook",
            json!({ "url": "https://home.invalid/w", "secret_token": "s_1" }),
        )
        .await
    };
    let (_, set) = tokio::join!(poll, set);
    assert_eq!(set, true);
    assert_eq!(telegram.webhook(), Some(("https://home.invalid/w".to_owned(), "s_1".to_owned())));
    assert!(call_error(&telegram, "getUpdates", json!({})).await.starts_with("409 Conflict: can't use"));
    assert_eq!(texts(&telegram.take_webhook_updates()), ["before", "seen by the poll"]);

    telegram.fail_webhook("Connection refused");
    let info = call_result(&telegram, "getWebhookInfo", json!({})).await;
    assert_eq!(info["last_error_message"], "Connection refused");
    telegram.text(SAM, "dropped");
    call_result(&telegram, "deleteWebhook", json!({ "drop_pending_updates": true })).await;
    assert_eq!((telegram.unread_updates(), telegram.webhook()), (0, None));
}

#[tokio::test(start_paused = true)]
async fn privacy_mode_hides_group_messages_without_an_address() {
    let telegram = telegram();
    telegram.create_group(GROUP, &[SAM, KIM]);
    telegram.group_text(GROUP, SAM, "before the bot");
    telegram.add_bot_to_group(GROUP, SAM);
    let joined = read_updates(&telegram).await;
    assert_eq!(joined[0]["my_chat_member"]["new_chat_member"]["status"], "member");
    assert_eq!(joined[1]["message"]["new_chat_members"][0]["id"], 501);

    let sent = send_text(&telegram, GROUP, "Hi all").await["result"]["message_id"].as_i64().unwrap();
    let texts_seen = ["@home_bot news", "hey @HOME_BOT!", "/help", "/help@home_bot", "yes"];
    for text in ["good morning", "@home_bot_2 hi", "/help@other_bot", "me@home_bot"] {
        telegram.group_text(GROUP, KIM, text);
    }
    for text in &texts_seen[..4] {
        telegram.group_text(GROUP, KIM, text);
    }
    telegram.reply_in_group(GROUP, KIM, sent, "yes");
    assert_eq!(texts(&read_updates(&telegram).await), texts_seen);

    // A group follows the privacy mode only after the bot joined it again.
    telegram.set_privacy_mode(false);
    telegram.group_text(GROUP, KIM, "unseen");
    telegram.remove_bot_from_group(GROUP, SAM);
    telegram.add_bot_to_group(GROUP, SAM);
    read_updates(&telegram).await;
    telegram.group_text(GROUP, KIM, "seen");
    assert_eq!(texts(&read_updates(&telegram).await), ["seen"]);
}

#[tokio::test(start_paused = true)]
async fn migrated_group_answers_with_its_new_id() {
    let telegram = telegram();
    telegram.create_group(-55, &[SAM]);
    telegram.add_bot_to_group(-55, SAM);
    read_updates(&telegram).await;
    telegram.migrate_group(-55, GROUP);
    let updates = read_updates(&telegram).await;
    assert_eq!(updates[0]["message"]["migrate_to_chat_id"], GROUP);
    assert_eq!(updates[1]["message"]["migrate_from_chat_id"], -55);
    let refusal = send_text(&telegram, -55, "hi").await;
    assert_eq!(
        (&refusal["error_code"], &refusal["parameters"]["migrate_to_chat_id"]),
        (&json!(400), &json!(GROUP))
    );
    assert_eq!(send_text(&telegram, GROUP, "hi").await["result"]["chat"]["type"], "supergroup");
    let members = [(SAM, "creator"), (KIM, "left"), (501, "member")];
    for (user, status) in members {
        let parameters = json!({ "chat_id": GROUP, "user_id": user });
        assert_eq!(call_result(&telegram, "getChatMember", parameters).await["status"], status);
    }
}

#[tokio::test(start_paused = true)]
async fn bot_writes_only_to_people_who_let_it() {
    let telegram = telegram();
    let send = |person| call_error(&telegram, "sendMessage", json!({ "chat_id": person, "text": "hi" }));
    assert_eq!(send(SAM).await, "400 Bad Request: chat not found");
    telegram.create_group(GROUP, &[SAM]);
    assert_eq!(send(SAM).await, "403 Forbidden: bot can't initiate conversation with a user");
    telegram.start_bot(SAM, "");
    telegram.block_bot(SAM);
    assert_eq!(send(SAM).await, "403 Forbidden: bot was blocked by the user");
    telegram.unblock_bot(SAM);
    assert_eq!(send_text(&telegram, SAM, "hi").await["ok"], true);
    let updates = read_updates(&telegram).await;
    let statuses: Vec<_> = updates
        .iter()
        .filter_map(|update| update["my_chat_member"]["new_chat_member"]["status"].as_str())
        .collect();
    assert_eq!(statuses, ["kicked", "member"]);
    assert_eq!(telegram.texts_to(SAM), ["hi"]);
}

#[tokio::test(start_paused = true)]
async fn limited_and_refused_messages_are_not_sent() {
    let telegram = telegram();
    telegram.start_bot(SAM, "");
    telegram.limit_sends(1, 7);
    telegram.refuse_sends(1, 502, "Bad Gateway");
    let limited = send_text(&telegram, SAM, "one").await;
    let expected = json!({
        "ok": false, "error_code": 429, "description": "Too Many Requests: retry after 7",
        "parameters": { "retry_after": 7 },
    });
    assert_eq!(limited, expected);
    assert_eq!(send_text(&telegram, SAM, "two").await["error_code"], 502);
    assert_eq!(send_text(&telegram, SAM, "three").await["ok"], true);
    assert_eq!(telegram.texts_to(SAM), ["three"]);
}

#[tokio::test(start_paused = true)]
async fn message_with_a_lost_answer_is_sent() {
    let telegram = telegram();
    telegram.start_bot(SAM, "");
    telegram.lose_answers(1);
    let lost = tokio::time::timeout(Duration::from_secs(60), send_text(&telegram, SAM, "one")).await;
    assert!(lost.is_err());
    assert_eq!(send_text(&telegram, SAM, "two").await["ok"], true);
    assert_eq!(telegram.texts_to(SAM), ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn sleeping_telegram_answers_nothing_and_a_revoked_token_is_refused() {
    let telegram = telegram();
    telegram.set_silent(true);
    let asleep = tokio::time::timeout(Duration::from_secs(60), call(&telegram, "getMe", json!({}))).await;
    assert!(asleep.is_err());
    telegram.set_silent(false);
    let get =
        |path: &str| Request::get(format!("https://telegram.invalid{path}")).body(Bytes::new()).unwrap();
    let me = send_request(&telegram, get("/bot501:AAE-x_9/getMe")).await;
    assert_eq!(me["result"]["can_read_all_group_messages"], false);
    assert_eq!(call_error(&telegram, "getYou", json!({})).await, "404 Not Found");
    let unauthorized = json!({ "ok": false, "error_code": 401, "description": "Unauthorized" });
    assert_eq!(send_request(&telegram, get("/bot501:AAE/getMe")).await, unauthorized);
    let poll = call(&telegram, "getUpdates", json!({ "timeout": 30 }));
    let (poll, ()) = tokio::join!(poll, async { telegram.revoke_token() });
    assert_eq!(poll, unauthorized);
    assert_eq!(telegram.requests(), ["getMe", "getYou", "getMe", "getUpdates"]);
}

#[tokio::test(start_paused = true)]
async fn press_of_a_button_is_answered_once() {
    let telegram = telegram();
    telegram.start_bot(SAM, "");
    read_updates(&telegram).await;
    let message = json!({ "chat_id": SAM, "text": "Delete?", "reply_markup": YES_OR_NO });
    let message_id = call_result(&telegram, "sendMessage", message).await["message_id"].as_i64().unwrap();
    assert!(!telegram.press(SAM, SAM, message_id, "Maybe"));
    assert!(!telegram.press(KIM, SAM, message_id, "Yes"));
    assert!(telegram.press(SAM, SAM, message_id, "Yes"));
    let query = read_updates(&telegram).await[0]["callback_query"].take();
    assert_eq!((&query["data"], &query["message"]["text"]), (&json!("t:1"), &json!("Delete?")));
    assert_eq!(telegram.open_presses(), 1);

    let answer = json!({ "callback_query_id": query["id"] });
    call_result(&telegram, "answerCallbackQuery", answer.clone()).await;
    let refusal = call_error(&telegram, "answerCallbackQuery", answer).await;
    assert!(refusal.starts_with("400 Bad Request: query is too old"));
    assert_eq!((telegram.open_presses(), telegram.answered_presses()), (0, 2));

    let removal = json!({ "chat_id": SAM, "message_id": message_id });
    let edited = call_result(&telegram, "editMessageReplyMarkup", removal.clone()).await;
    assert_eq!(edited.get("reply_markup"), None);
    let refusal = call_error(&telegram, "editMessageReplyMarkup", removal).await;
    assert!(refusal.starts_with("400 Bad Request: message is not modified"));
    assert!(!telegram.press(SAM, SAM, message_id, "Yes"));
    let sent = &telegram.sent_messages()[0];
    assert_eq!((sent.has_buttons_now, sent.buttons[0][1].label.as_str()), (false, "No"));

    telegram.press_data(KIM, SAM, 999, "forged");
    let query = read_updates(&telegram).await[0]["callback_query"].take();
    assert_eq!((&query["data"], &query["message"]["date"]), (&json!("forged"), &json!(0)));
}

#[tokio::test(start_paused = true)]
async fn invalid_messages_are_refused_with_the_reason() {
    let telegram = telegram();
    telegram.start_bot(SAM, "");
    let keyboard = |data: &str| json!({ "inline_keyboard": [[{ "text": "Yes", "callback_data": data }]] });
    let cases = [
        (json!({ "text": " " }), "message text is empty"),
        (json!({ "text": "😀".repeat(2_049) }), "message is too long"),
        (json!({ "text": "x", "reply_markup": keyboard("") }), "BUTTON_DATA_INVALID"),
        (json!({ "text": "x", "reply_markup": keyboard(&"x".repeat(65)) }), "BUTTON_DATA_INVALID"),
        (json!({ "text": "x", "reply_parameters": { "message_id": 99 } }), "message to be replied not found"),
    ];
    for (mut parameters, reason) in cases {
        parameters["chat_id"] = SAM.into();
        let refusal = call_error(&telegram, "sendMessage", parameters).await;
        assert_eq!(refusal, format!("400 Bad Request: {reason}"));
    }
    let photo = json!({ "chat_id": SAM, "photo": "https://", "caption": "Heat" });
    let refusal = call_error(&telegram, "sendPhoto", photo).await;
    assert_eq!(refusal, "400 Bad Request: wrong file identifier/HTTP URL specified");
    assert_eq!(telegram.sent_messages(), []);
}

#[tokio::test(start_paused = true)]
async fn reply_and_picture_are_recorded_with_their_target() {
    let telegram = telegram();
    let message_id = telegram.send_photo(SAM, Some("this one?"));
    let reply = json!({ "message_id": message_id, "allow_sending_without_reply": true });
    let url = "https://image.invalid/heat.jpg";
    let photo = json!({ "chat_id": SAM, "photo": url, "caption": "Heat", "reply_parameters": reply });
    let answer = call_result(&telegram, "sendPhoto", photo).await;
    assert_eq!(answer["reply_to_message"]["caption"], "this one?");
    let sent = telegram.sent_messages().remove(0);
    assert_eq!(
        (sent.text.as_str(), sent.photo.as_deref(), sent.reply_to, sent.message_id),
        ("Heat", Some(url), Some(message_id), message_id + 1)
    );
    assert_eq!(sent.sent_at.as_second(), answer["date"].as_i64().unwrap());
}

#[tokio::test(start_paused = true)]
async fn only_known_emoji_can_be_reactions() {
    let telegram = telegram();
    let message_id = telegram.text(SAM, "thanks");
    let react = |message_id: i64, emoji: &str| {
        let reaction = json!([{ "type": "emoji", "emoji": emoji }]);
        let parameters = json!({ "chat_id": SAM, "message_id": message_id, "reaction": reaction });
        let telegram = &telegram;
        async move { call_error(telegram, "setMessageReaction", parameters).await }
    };
    assert_eq!(react(message_id, "✅").await, "400 Bad Request: REACTION_INVALID");
    assert_eq!(react(99, "👍").await, "400 Bad Request: message to react not found");
    react(message_id, "👀").await;
    react(message_id, "👍").await;
    assert_eq!(telegram.reactions_in(SAM), [(message_id, "👍".to_owned())]);
    for action in ["typing", "upload_photo", "typing"] {
        call_result(&telegram, "sendChatAction", json!({ "chat_id": SAM, "action": action })).await;
    }
    assert_eq!(telegram.typing_count(SAM), 2);
}

#[tokio::test(start_paused = true)]
async fn votes_of_a_named_poll_are_reported() {
    let telegram = telegram();
    telegram.create_group(GROUP, &[SAM, KIM]);
    telegram.add_bot_to_group(GROUP, SAM);
    read_updates(&telegram).await;
    let options = json!([{ "text": "Heat" }, { "text": "Ronin" }]);
    let poll = |options: Value| json!({ "chat_id": GROUP, "question": "Which?", "options": options, "is_anonymous": false });
    let sent = call_result(&telegram, "sendPoll", poll(options)).await;
    let message_id = sent["message_id"].as_i64().unwrap();
    assert!(telegram.vote(KIM, GROUP, message_id, &[1]));
    let answer = read_updates(&telegram).await[0]["poll_answer"].take();
    assert_eq!((&answer["poll_id"], &answer["option_ids"]), (&sent["poll"]["id"], &json!([1])));

    let target = json!({ "chat_id": GROUP, "message_id": message_id });
    let stopped = call_result(&telegram, "stopPoll", target.clone()).await;
    assert_eq!((&stopped["is_closed"], &stopped["options"][1]["voter_count"]), (&json!(true), &json!(1)));
    assert_eq!(
        call_error(&telegram, "stopPoll", target).await,
        "400 Bad Request: poll has already been closed"
    );
    assert!(!telegram.vote(SAM, GROUP, message_id, &[0]));
    let refusal = call_error(&telegram, "sendPoll", poll(json!(vec!["x"; 13]))).await;
    assert_eq!(refusal, "400 Bad Request: poll can't have more than 12 options");
}
