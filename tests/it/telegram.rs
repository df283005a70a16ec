//! Private chats with a bot at Telegram.

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::people::naming::UserName;
use dialarr::messaging::telegram::fake::FakeSentMessage;
use http::StatusCode;
use serde_json::json;

use crate::harness::model::{Slow, calls, calls_together, removes_movie, removes_movies, says};
use crate::harness::telegram::{ANN_ACCOUNT, WEBHOOK_URL, account};
use crate::harness::world::World;

const STATUS: &str = "Nothing is downloading.";
const QUESTION: &str = "Delete Heat (1995) and its file, 18.2 GB? Reply YES or NO.";
const DELETED: &str = "Deleted Heat (1995). Freed 18.2 GB.";
const STALE_BUTTON: &str = "That button belongs to an earlier message, so nothing was done.";
const OPTED_OUT: &str = "SELECT address AS line FROM user_addresses WHERE opted_out_at IS NOT NULL";
const OUTBOX: &str = "SELECT state || coalesce(' ' || (error ->> '$.meaning'), '') AS line FROM outbox";
const STRANGER: i64 = 7_000_000_009;
const NONE: [String; 0] = [];

/// Starts a program whose model is about to delete a movie.
async fn world_with_heat() -> (World, i64) {
    let world = World::start_with_bot().await;
    let heat = world.radarr().add(movie("Heat").year(1995).size_gb(18.2));
    world.model_plays(removes_movie("heat", heat));
    (world, heat)
}

/// Returns the newest message of the bot.
fn newest(world: &World) -> FakeSentMessage {
    world.telegram().sent_messages().pop().unwrap()
}

fn labels(message: &FakeSentMessage) -> Vec<&str> {
    message.buttons.iter().flatten().map(|button| button.label.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn text_to_the_bot_is_answered_in_its_chat() {
    let world = World::start_with_bot().await;
    assert_eq!(world.text_to_bot("status").await, [STATUS]);
    assert_eq!(world.lines("SELECT state AS line FROM outbox").await, ["accepted"]);
}

#[tokio::test(start_paused = true)]
async fn updates_delivered_again_are_answered_once() {
    let mut world = World::start_with_bot().await;
    assert_eq!(world.text_to_bot("status").await, [STATUS]);
    world.telegram().repeat_updates(1);
    world.pass(60).await;
    world.kill().await;
    world.telegram().repeat_updates(1);
    world.start_again().await;
    world.pass(60).await;
    assert_eq!(world.bot_texts(), [STATUS]);
}

#[tokio::test(start_paused = true)]
async fn updates_are_confirmed_only_once_they_are_stored() {
    let mut world = World::start_with_bot().await;
    world.kill().await;
    world.telegram().text(ANN_ACCOUNT, "status");
    world.start_again().await;
    world.pass(40).await;
    assert_eq!((world.bot_texts(), world.telegram().unread_updates()), (vec![STATUS.to_owned()], 0));
}

#[tokio::test(start_paused = true)]
async fn numbers_of_updates_may_begin_anew_after_a_week() {
    let mut world = World::start_with_bot().await;
    world.text_to_bot("status").await;
    world.kill().await;
    world.pass(8 * 24 * 3600).await;
    world.telegram().skip_update_ids(-50);
    world.start_again().await;
    world.pass(20).await;
    assert_eq!(world.text_to_bot("status").await, [STATUS, STATUS]);
}

#[tokio::test(start_paused = true)]
async fn prompt_has_buttons_and_a_press_confirms_it() {
    let (world, heat) = world_with_heat().await;
    assert_eq!(world.text_to_bot("delete heat").await, [QUESTION]);
    assert_eq!(labels(&newest(&world)), ["Yes", "No"]);
    assert_eq!(world.press_newest("Yes").await, [QUESTION, DELETED]);
    assert_eq!(world.radarr().removed_ids(), [heat]);
    assert_eq!((world.telegram().answered_presses(), world.telegram().open_presses()), (1, 0));
    assert!(!world.telegram().sent_messages()[0].has_buttons_now, "the buttons are gone");
}

#[tokio::test(start_paused = true)]
async fn prompt_can_be_answered_in_words_too() {
    let (world, heat) = world_with_heat().await;
    world.text_to_bot("delete heat").await;
    assert_eq!(world.text_to_bot("yes").await, [QUESTION, DELETED]);
    assert_eq!(world.radarr().removed_ids(), [heat]);
}

#[tokio::test(start_paused = true)]
async fn press_counts_although_another_message_followed_the_prompt() {
    let (world, heat) = world_with_heat().await;
    world.text_to_bot("delete heat").await;
    let prompt = newest(&world);
    world.telegram().press_data(ANN_ACCOUNT, ANN_ACCOUNT, 1, "1.ab.yes");
    world.pass(20).await;
    assert_eq!(world.bot_texts(), [QUESTION, STALE_BUTTON]);
    assert_eq!(world.press(prompt.message_id, "Yes").await.last().unwrap(), DELETED);
    assert_eq!(world.radarr().removed_ids(), [heat]);
}

#[tokio::test(start_paused = true)]
async fn second_press_deletes_nothing_more() {
    let (world, _) = world_with_heat().await;
    world.text_to_bot("delete heat").await;
    let prompt = newest(&world);
    world.press(prompt.message_id, "Yes").await;
    world.press_former(&prompt, "Yes").await;
    assert_eq!(world.bot_texts()[..2], [QUESTION, DELETED]);
    assert_eq!(world.radarr().removed_ids().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn press_after_five_minutes_only_reports_the_end() {
    let (world, _) = world_with_heat().await;
    world.text_to_bot("delete heat").await;
    let prompt = newest(&world);
    world.pass(6 * 60).await;
    let texts = world.press(prompt.message_id, "Yes").await;
    assert!(texts.last().unwrap().contains("Heat (1995)"), "{texts:?}");
    assert_eq!(world.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test(start_paused = true)]
async fn button_of_an_earlier_prompt_does_not_answer_the_next() {
    let (world, _) = world_with_heat().await;
    world.text_to_bot("delete heat").await;
    let earlier = newest(&world);
    world.text_to_bot("no").await;
    let dune = world.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    world.model_plays(removes_movie("dune", dune));
    world.text_to_bot("delete dune").await;
    assert_eq!(world.press_former(&earlier, "Yes").await.last().unwrap(), STALE_BUTTON);
    assert_eq!(world.press_former(&earlier, "No").await.last().unwrap(), STALE_BUTTON);
    assert_eq!(world.radarr().removed_ids(), Vec::<i64>::new());
    assert_eq!(world.text_to_bot("no").await.last().unwrap(), "OK, kept.");
}

#[tokio::test(start_paused = true)]
async fn press_by_another_person_does_not_confirm() {
    let (world, _) = world_with_heat().await;
    world.text_to_bot("delete heat").await;
    let data = newest(&world).buttons[0][0].data.clone();
    world.telegram().start_bot(STRANGER, "");
    world.telegram().press_data(STRANGER, STRANGER, 1, &data);
    world.telegram().press_data(STRANGER, ANN_ACCOUNT, newest(&world).message_id, &data);
    world.pass(20).await;
    assert_eq!(world.radarr().removed_ids(), Vec::<i64>::new());
    assert_eq!(world.lines("SELECT 'open' AS line FROM pending_actions").await, ["open"]);
}

#[tokio::test(start_paused = true)]
async fn prompt_with_a_code_has_no_buttons() {
    let world = World::start_with_bot().await;
    let heat = world.radarr().add(movie("Heat").year(1995).size_gb(18.2));
    let dune = world.radarr().add(movie("Dune").year(2021).size_gb(21.4));
    world.model_plays(removes_movies(&[("heat", heat), ("dune", dune)]));
    let texts = world.text_to_bot("delete heat and dune").await;
    assert!(texts[0].contains("Reply YES "), "{texts:?}");
    assert_eq!(labels(&newest(&world)), Vec::<&str>::new());
}

#[tokio::test(start_paused = true)]
async fn numbered_list_has_buttons_that_pick_from_it() {
    let world = World::start_with_bot().await;
    world.model_plays([says("Which one?\n1. Dune (2021)\n2. Dune (1984)"), says("Dune (1984) it is.")]);
    world.text_to_bot("which dune do you mean").await;
    let list = newest(&world);
    assert_eq!(labels(&list), ["1", "2"]);
    let picked = world.press(list.message_id, "2").await;
    assert_eq!(picked.last().unwrap(), "Dune (1984) it is.");
    assert!(world.last_user_message().ends_with('2'), "the press counts as the number");
    let again = world.press_former(&list, "1").await;
    assert_eq!(again.last().unwrap(), STALE_BUTTON);
}

#[tokio::test(start_paused = true)]
async fn reply_whose_answer_is_lost_is_sent_twice_at_most() {
    let world = World::start_with_bot().await;
    world.telegram().lose_answers(1);
    world.telegram().text(ANN_ACCOUNT, "status");
    world.pass(120).await;
    assert_eq!(world.bot_texts(), [STATUS, STATUS]);
    world.telegram().lose_answers(2);
    world.telegram().text(ANN_ACCOUNT, "status");
    world.pass(600).await;
    assert_eq!(world.bot_texts().len(), 4);
    assert_eq!(
        world.lines(OUTBOX).await.last().unwrap(),
        "failed may have arrived: the channel gave no answer"
    );
}

#[tokio::test(start_paused = true)]
async fn notification_whose_answer_is_lost_is_not_repeated() {
    let world = World::start_with_bot().await;
    world.text_to_bot("status").await;
    world.telegram().lose_answers(1);
    world.notify(account(ANN_ACCOUNT), "Heat (1995) is ready.").await;
    world.pass(600).await;
    assert_eq!(world.bot_texts(), [STATUS, "Heat (1995) is ready."]);
    assert_eq!(
        world.lines(OUTBOX).await.last().unwrap(),
        "failed may have arrived: the channel gave no answer"
    );
}

#[tokio::test(start_paused = true)]
async fn repeated_prompt_voids_the_buttons_of_its_first_copy() {
    let (world, heat) = world_with_heat().await;
    world.telegram().lose_answers(1);
    world.telegram().text(ANN_ACCOUNT, "delete heat");
    world.pass(120).await;
    assert_eq!(world.bot_texts(), [QUESTION, QUESTION]);
    let [first, second] = world.telegram().sent_messages().try_into().unwrap();
    assert_eq!(world.press(first.message_id, "Yes").await.last().unwrap(), STALE_BUTTON);
    assert_eq!(world.press(second.message_id, "Yes").await.last().unwrap(), DELETED);
    assert_eq!(world.radarr().removed_ids(), [heat]);
}

#[tokio::test(start_paused = true)]
async fn presses_before_the_prompts_are_accepted_repeat_them() {
    let (world, heat) = world_with_heat().await;
    // Both copies of the first prompt, and the first copy of its repeat.
    world.telegram().lose_answers(3);
    world.telegram().text(ANN_ACCOUNT, "delete heat");
    world.pass(5).await;
    assert_eq!(world.press_newest("Yes").await, [QUESTION]);
    while world.bot_texts().len() < 3 {
        world.pass(5).await;
    }
    world.press_newest("Yes").await;
    world.pass(120).await;
    assert_eq!(world.bot_texts(), [QUESTION; 5]);
    assert_eq!(world.radarr().removed_ids(), [0_i64; 0]);
    assert_eq!(world.press_newest("Yes").await.last().unwrap(), DELETED);
    assert_eq!(world.radarr().removed_ids(), [heat]);
}

#[tokio::test(start_paused = true)]
async fn limit_of_telegram_delays_the_answer() {
    let world = World::start_with_bot().await;
    world.telegram().limit_sends(1, 30);
    assert_eq!(world.text_to_bot("status").await, NONE);
    world.pass(30).await;
    assert_eq!(world.bot_texts(), [STATUS]);
}

#[tokio::test(start_paused = true)]
async fn forwarded_yes_confirms_nothing() {
    let (world, _) = world_with_heat().await;
    world.text_to_bot("delete heat").await;
    world.telegram().forward_text(ANN_ACCOUNT, "yes");
    world.pass(20).await;
    assert_eq!(world.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test(start_paused = true)]
async fn edit_runs_nothing_again_and_confirms_nothing() {
    let (world, _) = world_with_heat().await;
    let request = world.telegram().text(ANN_ACCOUNT, "delete heat");
    world.pass(20).await;
    world.telegram().edit_text(ANN_ACCOUNT, request, "yes");
    world.pass(20).await;
    assert_eq!(world.bot_texts(), [QUESTION]);
    assert_eq!(world.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test(start_paused = true)]
async fn typed_yes_from_a_downtime_confirms_nothing_but_a_press_does() {
    let (mut world, heat) = world_with_heat().await;
    world.text_to_bot("delete heat").await;
    let prompt = newest(&world);
    world.kill().await;
    world.telegram().text(ANN_ACCOUNT, "yes");
    world.start_again().await;
    world.pass(20).await;
    assert_eq!(world.radarr().removed_ids(), Vec::<i64>::new());
    assert_eq!(world.bot_texts(), [QUESTION, QUESTION]);
    let repeat = newest(&world);
    world.kill().await;
    assert!(world.telegram().press(ANN_ACCOUNT, ANN_ACCOUNT, repeat.message_id, "Yes"));
    world.start_again().await;
    world.pass(20).await;
    assert_eq!(world.radarr().removed_ids(), [heat]);
    assert_eq!(world.press_former(&prompt, "Yes").await.last().unwrap(), STALE_BUTTON);
}

#[tokio::test(start_paused = true)]
async fn voice_message_is_answered_that_only_text_is_read() {
    let world = World::start_with_bot().await;
    world.telegram().send_voice(ANN_ACCOUNT);
    world.pass(20).await;
    assert_eq!(world.bot_texts(), ["I can only read text. What would you like to watch?"]);
}

#[tokio::test(start_paused = true)]
async fn long_answer_is_sent_whole() {
    let world = World::start_with_bot().await;
    let answer = "A sentence about a movie. ".repeat(140).trim_end().to_owned();
    world.model_plays([says(&answer)]);
    assert_eq!(world.text_to_bot("tell me everything").await, [answer]);
}

#[tokio::test(start_paused = true)]
async fn reaction_of_the_model_is_placed_on_the_message() {
    let world = World::start_with_bot().await;
    world.model_plays([calls("react", json!({ "emoji": "👍" })), says("")]);
    let message = world.telegram().text(ANN_ACCOUNT, "thanks, that was a great movie tip");
    world.pass(30).await;
    assert_eq!(world.telegram().reactions_in(ANN_ACCOUNT), [(message, "👍".to_owned())]);
    assert_eq!(world.bot_texts(), NONE);
}

#[tokio::test(start_paused = true)]
async fn emoji_that_cannot_be_a_reaction_is_sent_as_a_message() {
    let world = World::start_with_bot().await;
    world.model_plays([calls_together(&[("react", json!({ "emoji": "🧇" }))]), says("")]);
    world.telegram().text(ANN_ACCOUNT, "thanks, that was a great movie tip");
    world.pass(30).await;
    assert_eq!(world.bot_texts(), ["🧇"]);
}

#[tokio::test(start_paused = true)]
async fn typing_is_shown_while_the_model_works() {
    let world = World::start_with_bot_and(Slow::playing(10, [says("Here you are.")])).await;
    assert_eq!(world.text_to_bot("what should I watch tonight?").await, ["Here you are."]);
    let shown = world.telegram().typing_count(ANN_ACCOUNT);
    assert!((2..=3).contains(&shown), "{shown}");
    world.pass(60).await;
    assert_eq!(world.telegram().typing_count(ANN_ACCOUNT), shown);
}

#[tokio::test(start_paused = true)]
async fn newcomer_who_starts_the_bot_is_asked_for_a_name() {
    let world = World::start_with_bot().await;
    world.telegram().start_bot(STRANGER, "");
    world.pass(20).await;
    let texts = world.telegram().texts_to(STRANGER);
    assert!(texts.len() == 1 && texts[0].contains("What is your name?"), "{texts:?}");
    world.telegram().text(STRANGER, "Sam");
    world.pass(20).await;
    let waiting = "SELECT display_name || ' ' || status AS line FROM users WHERE display_name IS NOT NULL";
    assert_eq!(world.lines(waiting).await, ["Sam pending"]);
}

#[tokio::test(start_paused = true)]
async fn link_of_the_setup_makes_its_opener_the_first_admin() {
    let world = World::start_with_bot().await;
    let code = world.create_admin_code().await;
    world.telegram().start_bot(STRANGER, &format!("link-{code}"));
    world.pass(20).await;
    let admins =
        "SELECT address AS line FROM users JOIN user_addresses ON user_id = users.id WHERE role = 'admin'";
    assert_eq!(world.lines(admins).await, [format!("telegram:{STRANGER}")]);
}

#[tokio::test(start_paused = true)]
async fn person_who_blocks_the_bot_gets_nothing_until_they_return() {
    let world = World::start_with_bot().await;
    world.text_to_bot("status").await;
    world.telegram().block_bot(ANN_ACCOUNT);
    world.pass(20).await;
    assert_eq!(world.lines(OPTED_OUT).await, [format!("telegram:{ANN_ACCOUNT}")]);
    world.notify(account(ANN_ACCOUNT), "Heat (1995) is ready.").await;
    world.pass(60).await;
    assert_eq!(world.bot_texts(), [STATUS]);
    world.telegram().unblock_bot(ANN_ACCOUNT);
    world.pass(20).await;
    assert_eq!(world.lines(OPTED_OUT).await, NONE);
    assert_eq!(world.text_to_bot("status").await, [STATUS, STATUS]);
}

#[tokio::test(start_paused = true)]
async fn text_in_a_group_is_ignored() {
    let world = World::start_with_bot().await;
    world.telegram().set_privacy_mode(false);
    world.telegram().create_group(-1_001, &[ANN_ACCOUNT, STRANGER]);
    world.telegram().group_text(-1_001, ANN_ACCOUNT, "status");
    world.pass(30).await;
    assert_eq!(world.telegram().sent_messages().len(), 0);
    assert_eq!(world.lines("SELECT body AS line FROM inbound_events").await, NONE);
}

#[tokio::test(start_paused = true)]
async fn second_poller_is_reported_and_loses_nothing() {
    let world = World::start_with_bot().await;
    world.telegram().claim_by_other_poller(2);
    world.telegram().text(ANN_ACCOUNT, "status");
    world.pass(300).await;
    assert_eq!(world.bot_texts(), [STATUS]);
}

#[tokio::test(start_paused = true)]
async fn webhook_is_set_and_its_updates_are_answered() {
    let world = World::start_with_bot_and_webhook().await;
    let heat = world.radarr().add(movie("Heat").year(1995).size_gb(18.2));
    world.model_plays(removes_movie("heat", heat));
    let (url, secret) = world.telegram().webhook().unwrap();
    assert_eq!(url, WEBHOOK_URL);

    world.telegram().text(ANN_ACCOUNT, "delete heat");
    assert_eq!(world.deliver_updates(&secret).await, [(StatusCode::OK, String::new())]);
    assert_eq!(world.bot_texts(), [QUESTION]);
    assert!(world.telegram().press(ANN_ACCOUNT, ANN_ACCOUNT, newest(&world).message_id, "Yes"));
    let responses = world.deliver_updates(&secret).await;
    assert!(responses[0].1.contains("answerCallbackQuery"), "{responses:?}");
    assert_eq!(world.radarr().removed_ids(), [heat]);
}

#[tokio::test(start_paused = true)]
async fn webhook_request_without_the_agreed_word_is_refused() {
    let world = World::start_with_bot_and_webhook().await;
    world.telegram().text(ANN_ACCOUNT, "status");
    let responses = world.deliver_updates("guess").await;
    assert_eq!(responses[0].0, StatusCode::FORBIDDEN);
    assert_eq!(world.bot_texts(), NONE);
}

#[tokio::test(start_paused = true)]
async fn invitation_admits_one_new_person() {
    let world = World::start_with_bot().await;
    world.make_admin(ANN_ACCOUNT).await;
    let texts = world.text_to_bot("invite Sam").await;
    let payload = texts[0]
        .strip_prefix("Send this link to Sam. It works once, within 7 days: https://t.me/home_bot?start=");
    let payload = payload.unwrap().to_owned();

    world.telegram().start_bot(STRANGER, &payload);
    world.pass(20).await;
    let welcome = world.telegram().texts_to(STRANGER);
    assert!(welcome.len() == 1 && welcome[0].starts_with("Hello Sam, you can text me now."), "{welcome:?}");
    assert_eq!(world.bot_texts()[1..], ["Sam has used your invitation and can write to me now."]);
    let members =
        "SELECT display_name || ' ' || status || ' ' || role AS line FROM users WHERE display_name = 'Sam'";
    assert_eq!(world.lines(members).await, ["Sam active member"]);

    world.telegram().start_bot(STRANGER + 1, &payload);
    world.pass(20).await;
    let second = world.telegram().texts_to(STRANGER + 1);
    assert!(second[0].contains("What is your name?"), "{second:?}");
    assert_eq!(world.lines(members).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn invitation_opened_by_a_member_stays_usable() {
    let world = World::start_with_bot().await;
    world.make_admin(ANN_ACCOUNT).await;
    let texts = world.text_to_bot("invite Sam").await;
    let payload = texts[0].split("start=").nth(1).unwrap().to_owned();
    world.telegram().start_bot(ANN_ACCOUNT, &payload);
    world.pass(20).await;
    assert_eq!(world.bot_texts()[1], "You are in already. The link still works for somebody new.");
    assert_eq!(world.lines("SELECT name AS line FROM invitations").await, ["Sam"]);
}

#[tokio::test(start_paused = true)]
async fn invitation_needs_an_admin_and_a_bot() {
    let world = World::start_with_bot().await;
    world.model_plays([says("Only an admin can invite people.")]);
    world.text_to_bot("invite Sam").await;
    assert_eq!(world.lines("SELECT name AS line FROM invitations").await, NONE);
    let world = World::start().await;
    world.register_admin("+15550100009").await;
    let replies = world.sms_from("+15550100009", "invite Sam").await;
    assert!(replies[0].contains("no Telegram bot is set up"), "{replies:?}");
}

#[tokio::test(start_paused = true)]
async fn operator_invites_a_person_from_the_console() {
    let world = World::start_with_bot().await;
    let link =
        world.engine().decisions.create_invitation(UserName::parse("Sam").unwrap()).await.unwrap().unwrap();
    world.telegram().start_bot(STRANGER, link.split("start=").nth(1).unwrap());
    world.pass(20).await;
    let members = "SELECT display_name || ' ' || status AS line FROM users WHERE display_name = 'Sam'";
    assert_eq!(world.lines(members).await, ["Sam active"]);
}

#[tokio::test(start_paused = true)]
async fn invitation_of_a_former_admin_admits_nobody() {
    let world = World::start_with_bot().await;
    world.make_admin(ANN_ACCOUNT).await;
    let texts = world.text_to_bot("invite Sam").await;
    world.damage_rows("UPDATE users SET role = 'member' WHERE role = 'admin'").await;
    world.telegram().start_bot(STRANGER, texts[0].split("start=").nth(1).unwrap());
    world.pass(20).await;
    let statuses = "SELECT DISTINCT status AS line FROM users ORDER BY status";
    assert_eq!(world.lines(statuses).await, ["active", "pending"]);
}
