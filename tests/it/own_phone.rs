//! Texts through a phone of the household with SMS Gateway for Android.

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::delivery_status::DeliveryStatus;
use dialarr::conversation::transcript::PhoneNumber;
use dialarr::engine::operator::test_text::TestTextOutcome;
use dialarr::store::queue::test_text::load_newest_test_text;
use jiff::SignedDuration;
use serde_json::json;

use crate::harness::model::{removes_movie, says};
use crate::harness::phone::{Channels, PHONE_NUMBER};
use crate::harness::world::World;
use crate::harness::{ANN, BOB};

const STATUS: &str = "Nothing is downloading.";
const QUESTION: &str = "Delete Heat (1995) and its file, 18.2 GB? Reply YES or NO.";
const DELETED: &str = "Deleted Heat (1995). Freed 18.2 GB.";
const UNSENT: &str = "I could not ask you in time whether to delete something, so nothing was deleted. Ask again if you still want it.";
const OPTED_OUT: &str = "OK, you get no more texts from me. Text START if you change your mind.";
const OPTED_IN: &str = "Welcome back. You get my texts again. Text HELP for what I can do.";
const NONE: [String; 0] = [];
const DELIVERY: &str =
    "SELECT state || ' ' || delivery || coalesce(' ' || (error ->> '$.meaning'), '') AS line FROM outbox";

async fn world_with_heat() -> (World, i64) {
    let world = World::start_with_channels(Channels::Phone).await;
    let heat = world.radarr().add(movie("Heat").year(1995).size_gb(18.2));
    world.model_plays(removes_movie("heat", heat));
    (world, heat)
}

#[tokio::test(start_paused = true)]
async fn text_to_the_phone_is_answered_by_the_phone() {
    let world = World::start_with_channels(Channels::Phone).await;
    assert_eq!(world.text_to_phone("status").await, [STATUS]);
    let sent = world.phone().radioed_texts().remove(0);
    assert_eq!((sent.to.as_str(), sent.sim), (ANN, None));
    assert_eq!(world.sent_texts(), NONE);
}

#[tokio::test(start_paused = true)]
async fn first_start_answers_nothing_in_the_inbox() {
    let mut world = World::start().await;
    world.phone().receive_text(ANN, "add everything");
    world.pass(5).await;
    world.use_channels(Channels::Phone).await;
    world.pass(3600).await;
    assert_eq!(world.phone_texts(), NONE);
    assert_eq!(world.text_to_phone("status").await, [STATUS]);
    assert_eq!(world.lines("SELECT body AS line FROM inbound_events").await, ["status"]);
}

#[tokio::test(start_paused = true)]
async fn text_that_arrives_late_is_found_behind_newer_ones() {
    let world = World::start_with_channels(Channels::Phone).await;
    assert_eq!(world.text_to_phone("status").await, [STATUS]);
    world.model_plays([says("Better late than never.")]);
    world.phone().receive_text_sent_at(ANN, "how are you?", world.now() - SignedDuration::from_mins(20));
    world.pass(30).await;
    assert_eq!(world.phone_texts(), [STATUS, "Better late than never."]);
}

#[tokio::test(start_paused = true)]
async fn text_stored_twice_by_the_phone_is_answered_once() {
    let world = World::start_with_channels(Channels::Phone).await;
    assert_eq!(world.text_to_phone("status").await, [STATUS]);
    world.phone().duplicate_newest_text();
    world.pass(60).await;
    assert_eq!(world.phone_texts(), [STATUS]);
}

#[tokio::test(start_paused = true)]
async fn text_from_a_short_code_or_a_name_is_ignored() {
    let world = World::start_with_channels(Channels::Phone).await;
    world.phone().receive_text("72404", "Your code is 1234");
    world.phone().receive_text("NETFLIX", "Sign in");
    world.pass(60).await;
    assert_eq!(world.lines("SELECT body AS line FROM inbound_events").await, NONE);
    assert_eq!(world.phone_texts(), NONE);
}

#[tokio::test(start_paused = true)]
async fn text_in_national_form_is_answered_internationally() {
    let world = World::start_with_channels(Channels::Phone).await;
    world.phone().receive_text("(555) 010-0002", "status");
    world.pass(20).await;
    assert_eq!(world.phone().radioed_texts()[0].to, ANN);
}

#[tokio::test(start_paused = true)]
async fn text_to_another_sim_is_ignored() {
    let world = World::start_with_sim(2).await;
    world.phone().receive_text_on_sim(ANN, "status", 1);
    world.pass(60).await;
    assert_eq!(world.phone_texts(), NONE);
    world.phone().receive_text_on_sim(ANN, "status", 2);
    world.pass(20).await;
    assert_eq!(world.phone().radioed_texts()[0].sim, Some(2));
}

#[tokio::test(start_paused = true)]
async fn lost_answer_repeats_the_id_and_adds_no_message() {
    let world = World::start_with_channels(Channels::Phone).await;
    world.phone().lose_answers(1);
    world.phone().receive_text(ANN, "status");
    world.pass(60).await;
    assert_eq!(world.phone_texts(), [STATUS]);
    assert_eq!(world.phone().accepted_count(), 1);
    assert_eq!(world.lines("SELECT state AS line FROM outbox").await, ["accepted"]);
}

#[tokio::test(start_paused = true)]
async fn refused_repeat_after_a_lost_answer_is_not_taken_for_a_failure() {
    let world = World::start_with_channels(Channels::Phone).await;
    world.phone().lose_answers(1);
    world.phone().refuse_repeats(400);
    world.phone().receive_text(ANN, "status");
    world.pass(300).await;
    assert_eq!(world.phone_texts(), [STATUS]);
    assert_eq!(world.lines("SELECT state AS line FROM outbox").await, ["accepted"]);
}

#[tokio::test(start_paused = true)]
async fn kill_during_a_send_adds_no_message_at_the_phone() {
    let mut world = World::start_with_channels(Channels::Phone).await;
    world.phone().lose_answers(2);
    world.phone().receive_text(ANN, "status");
    world.pass(16).await;
    world.kill().await;
    world.start_again().await;
    world.pass(120).await;
    assert_eq!(world.phone_texts(), [STATUS]);
    assert_eq!(world.phone().accepted_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn phone_killed_between_radio_and_record_sends_twice() {
    let world = World::start_with_channels(Channels::Phone).await;
    world.phone().kill_after_radio();
    assert_eq!(world.text_to_phone("status").await, [STATUS, STATUS]);
    assert_eq!(world.phone().accepted_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn reply_waits_for_a_phone_that_sleeps_for_an_hour() {
    let world = World::start_with_channels(Channels::Phone).await;
    world.phone().receive_text(ANN, "status");
    world.phone().set_sleeping(true);
    world.pass(3600).await;
    assert_eq!(world.phone_texts(), NONE);
    world.phone().set_sleeping(false);
    world.pass(120).await;
    let texts = world.phone_texts();
    assert_eq!(texts, ["I was offline and missed your text. Please resend anything you still need."]);
}

#[tokio::test(start_paused = true)]
async fn replies_of_one_user_leave_in_order_despite_the_phones_queue() {
    let world = World::start_with_channels(Channels::Phone).await;
    world.phone().set_signal(false);
    world.phone().receive_text(ANN, "status");
    world.pass(20).await;
    world.phone().receive_text(ANN, "upcoming");
    world.pass(20).await;
    world.phone().set_signal(true);
    world.pass(120).await;
    let texts = world.phone_texts();
    assert_eq!((texts.len(), texts[0].as_str()), (2, STATUS), "{texts:?}");
}

#[tokio::test(start_paused = true)]
async fn replies_leave_in_order_after_a_restart_of_the_program() {
    let mut world = World::start_with_channels(Channels::Phone).await;
    world.phone().set_signal(false);
    world.text_to_phone("status").await;
    world.kill().await;
    world.phone().receive_text(ANN, "upcoming");
    world.start_again().await;
    world.pass(20).await;
    assert_eq!(world.phone().accepted_count(), 1);
    world.phone().set_signal(true);
    world.pass(120).await;
    let texts = world.phone_texts();
    assert_eq!((texts.len(), texts[0].as_str()), (2, STATUS), "{texts:?}");
}

#[tokio::test(start_paused = true)]
async fn delivery_status_follows_the_phone() {
    let world = World::start_with_channels(Channels::Phone).await;
    world.text_to_phone("status").await;
    world.phone().fail_sends(2);
    world.pass(60).await;
    world.phone().receive_text(ANN, "status");
    world.pass(180).await;
    let query =
        "SELECT delivery || coalesce(' ' || (error ->> '$.meaning'), '') AS line FROM outbox ORDER BY id";
    assert_eq!(world.lines(query).await, ["delivered", "failed Send result: RESULT_ERROR_GENERIC_FAILURE"]);
}

#[tokio::test(start_paused = true)]
async fn message_that_the_radio_failed_to_send_is_sent_once_more() {
    let world = World::start_with_channels(Channels::Phone).await;
    world.phone().fail_sends(1);
    assert_eq!(world.text_to_phone("status").await, NONE);
    world.pass(30).await;
    assert_eq!(world.phone_texts(), NONE);
    world.pass(60).await;
    assert_eq!(world.phone_texts(), [STATUS]);
    assert!(world.phone().radioed_texts()[0].id.ends_with("-2"));
    assert_eq!(world.lines(DELIVERY).await, ["accepted delivered"]);
}

#[tokio::test(start_paused = true)]
async fn second_failure_of_the_radio_is_final() {
    let world = World::start_with_channels(Channels::Phone).await;
    world.phone().fail_sends(2);
    world.text_to_phone("status").await;
    world.pass(600).await;
    assert_eq!((world.phone_texts(), world.phone().accepted_count()), (NONE.to_vec(), 2));
    assert_eq!(world.lines(DELIVERY).await, ["accepted failed Send result: RESULT_ERROR_GENERIC_FAILURE"]);
}

#[tokio::test(start_paused = true)]
async fn message_that_waited_too_long_in_the_phone_is_not_sent_again() {
    let world = World::start_with_channels(Channels::Phone).await;
    world.phone().set_signal(false);
    world.text_to_phone("status").await;
    world.pass(3660).await;
    world.phone().set_signal(true);
    world.pass(120).await;
    assert_eq!((world.phone_texts(), world.phone().accepted_count()), (NONE.to_vec(), 1));
    assert_eq!(world.lines(DELIVERY).await, ["accepted failed TTL expired"]);
}

#[tokio::test(start_paused = true)]
async fn repeated_report_of_a_failure_queues_one_further_attempt() {
    let world = World::start_with_channels(Channels::Phone).await;
    world.phone().fail_sends(1);
    world.text_to_phone("status").await;
    let id = world.lines("SELECT substr(callback_word, 1, 24) AS line FROM outbox").await.remove(0);
    for _ in 0..2 {
        let failed = world.phone().report_state("sms:failed", &id).unwrap();
        assert_eq!(world.deliver(failed).await, 204);
    }
    world.pass(120).await;
    assert_eq!((world.phone_texts(), world.phone().accepted_count()), (vec![STATUS.to_owned()], 2));
}

#[tokio::test(start_paused = true)]
async fn prompt_that_the_radio_sent_at_its_second_attempt_opens_then() {
    let (world, heat) = world_with_heat().await;
    world.phone().fail_sends(1);
    assert_eq!(world.text_to_phone("delete heat").await, NONE);
    world.pass(90).await;
    assert_eq!(world.phone_texts(), [QUESTION]);
    assert_eq!(world.text_to_phone("yes").await, [QUESTION, DELETED]);
    assert_eq!(world.radarr().removed_ids(), [heat]);
}

#[tokio::test(start_paused = true)]
async fn picture_that_the_app_downloaded_is_noted_with_its_text() {
    let world = World::start_with_channels(Channels::Phone).await;
    world.phone().receive_picture(ANN, "not downloaded", false);
    world.phone().receive_picture(ANN, "status", true);
    world.pass(20).await;
    assert_eq!(world.phone_texts(), [STATUS]);
    let query = "SELECT body || ' ' || (media ->> '$[0].content_type') AS line FROM inbound_events";
    assert_eq!(world.lines(query).await, ["status image/jpeg"]);
    // A picture is never fetched.
    assert!(world.phone().take_requests().iter().all(|request| !request.contains("attachments")));
}

#[tokio::test(start_paused = true)]
async fn token_replaces_user_name_and_password() {
    let world = World::start_with_token("an-access-token").await;
    world.phone().receive_text(ANN, "status");
    world.pass(60).await;
    assert_eq!(world.phone_texts(), NONE);
    world.phone().accept_token("an-access-token");
    world.pass(60).await;
    // The first poll that is signed in counts what is there as seen.
    assert_eq!(world.phone_texts(), NONE);
    assert_eq!(world.text_to_phone("status").await, [STATUS]);
}

#[tokio::test(start_paused = true)]
async fn message_of_another_program_under_our_id_is_not_taken_for_ours() {
    for (to, body) in [(BOB, STATUS), (ANN, "A text of another program.")] {
        let world = World::start_with_channels(Channels::Phone).await;
        let request = world.phone().report_text(ANN, "status").unwrap();
        world.phone().set_sleeping(true);
        assert_eq!(world.deliver(request).await, 200);
        world.pass(20).await;
        let id = world.lines("SELECT callback_word AS line FROM outbox").await.remove(0);
        world.phone().occupy_id(&id, to, body);
        world.phone().set_sleeping(false);
        world.pass(300).await;
        assert_eq!(world.phone_texts(), NONE);
        let query = "SELECT state || ' ' || (error ->> '$.meaning') AS line FROM outbox";
        assert_eq!(world.lines(query).await, ["failed the phone has another message under this id"]);
    }
}

#[tokio::test(start_paused = true)]
async fn yes_after_the_prompt_was_sent_deletes_the_title() {
    let (world, heat) = world_with_heat().await;
    assert_eq!(world.text_to_phone("delete heat").await, [QUESTION]);
    assert_eq!(world.text_to_phone("yes").await, [QUESTION, DELETED]);
    assert_eq!(world.radarr().removed_ids(), [heat]);
}

#[tokio::test(start_paused = true)]
async fn no_behind_a_yes_of_the_same_poll_deletes_nothing() {
    let (world, _) = world_with_heat().await;
    assert_eq!(world.text_to_phone("delete heat").await, [QUESTION]);
    let now = world.now();
    world.phone().receive_text_sent_at(ANN, "yes", now + SignedDuration::from_millis(100));
    world.phone().receive_text_sent_at(ANN, "no", now + SignedDuration::from_millis(200));
    world.pass(60).await;
    assert_eq!(world.radarr().removed_ids(), Vec::<i64>::new());
}

#[tokio::test(start_paused = true)]
async fn yes_before_the_prompt_was_sent_deletes_nothing() {
    let (world, _) = world_with_heat().await;
    world.phone().set_signal(false);
    world.text_to_phone("delete heat").await;
    world.text_to_phone("yes").await;
    assert_eq!(world.radarr().removed_ids(), [0_i64; 0]);
    world.phone().set_signal(true);
    world.pass(30).await;
    assert_eq!(world.radarr().removed_ids(), [0_i64; 0]);
    assert!(world.phone_texts().iter().all(|text| text == QUESTION), "{:?}", world.phone_texts());
}

#[tokio::test(start_paused = true)]
async fn prompt_that_was_sent_late_can_be_confirmed_for_five_minutes() {
    let (world, heat) = world_with_heat().await;
    world.phone().set_signal(false);
    world.text_to_phone("delete heat").await;
    world.pass(3 * 60).await;
    world.phone().set_signal(true);
    world.pass(4 * 60).await;
    world.text_to_phone("yes").await;
    assert_eq!(world.radarr().removed_ids(), [heat]);
}

#[tokio::test(start_paused = true)]
async fn prompt_that_is_not_sent_in_time_is_withdrawn() {
    let (world, _) = world_with_heat().await;
    world.phone().set_signal(false);
    world.text_to_phone("delete heat").await;
    world.pass(6 * 60).await;
    assert_eq!(world.lines("SELECT 'open' AS line FROM pending_actions").await, NONE);
    world.phone().set_signal(true);
    world.pass(60).await;
    assert_eq!(world.phone_texts(), [UNSENT]);
    world.text_to_phone("yes").await;
    assert_eq!(world.radarr().removed_ids(), [0_i64; 0]);
}

#[tokio::test(start_paused = true)]
async fn prompt_in_a_removed_phone_is_withdrawn() {
    let mut world = World::start_with_channels(Channels::Both).await;
    let heat = world.radarr().add(movie("Heat").year(1995).size_gb(18.2));
    world.model_plays(removes_movie("heat", heat));
    world.phone().set_signal(false);
    world.text_to_phone("delete heat").await;
    world.use_channels(Channels::Twilio).await;
    world.pass(15 * 60).await;
    assert_eq!(world.lines("SELECT 'open' AS line FROM pending_actions").await, NONE);
    assert_eq!(world.sent_texts(), [UNSENT]);
}

#[tokio::test(start_paused = true)]
async fn yes_after_a_gap_of_the_poll_repeats_the_prompt() {
    let (world, heat) = world_with_heat().await;
    assert_eq!(world.text_to_phone("delete heat").await, [QUESTION]);
    world.phone().set_sleeping(true);
    world.pass(90).await;
    world.phone().receive_text(ANN, "yes");
    world.phone().set_sleeping(false);
    world.pass(60).await;
    assert_eq!(world.radarr().removed_ids(), [0_i64; 0]);
    assert_eq!(world.phone_texts(), [QUESTION, QUESTION]);
    assert_eq!(world.text_to_phone("yes").await, [QUESTION, QUESTION, DELETED]);
    assert_eq!(world.radarr().removed_ids(), [heat]);
}

#[tokio::test(start_paused = true)]
async fn yes_with_a_skewed_clock_of_the_phone_repeats_the_prompt() {
    let (world, _) = world_with_heat().await;
    world.phone().set_clock_skew(SignedDuration::from_secs(90));
    assert_eq!(world.text_to_phone("delete heat").await, [QUESTION]);
    assert_eq!(world.text_to_phone("yes").await, [QUESTION, QUESTION]);
    assert_eq!(world.radarr().removed_ids(), [0_i64; 0]);
}

#[tokio::test(start_paused = true)]
async fn yes_that_was_sent_before_the_prompt_repeats_it() {
    let (world, _) = world_with_heat().await;
    assert_eq!(world.text_to_phone("delete heat").await, [QUESTION]);
    world.phone().receive_text_sent_at(ANN, "yes", world.now() - SignedDuration::from_mins(3));
    world.pass(30).await;
    assert_eq!(world.phone_texts(), [QUESTION, QUESTION]);
    assert_eq!(world.radarr().removed_ids(), [0_i64; 0]);
}

#[tokio::test(start_paused = true)]
async fn stop_is_confirmed_once_and_start_returns() {
    let world = World::start_with_channels(Channels::Phone).await;
    assert_eq!(world.text_to_phone("STOP").await, [OPTED_OUT]);
    assert_eq!(world.text_to_phone("stop").await, [OPTED_OUT]);
    assert_eq!(world.text_to_phone("status").await, [OPTED_OUT]);
    assert_eq!(world.text_to_phone("START").await, [OPTED_OUT, OPTED_IN]);
    assert_eq!(world.text_to_phone("status").await, [OPTED_OUT, OPTED_IN, STATUS]);
    assert_eq!(world.text_to_phone("STOP").await, [OPTED_OUT, OPTED_IN, STATUS, OPTED_OUT]);
}

#[tokio::test(start_paused = true)]
async fn help_is_answered_by_us_without_a_carrier() {
    let world = World::start_with_channels(Channels::Phone).await;
    let texts = world.text_to_phone("HELP").await;
    assert_eq!(texts.len(), 1);
    assert!(texts[0].starts_with("You can text: "), "{}", texts[0]);
}

#[tokio::test(start_paused = true)]
async fn signed_webhook_is_answered_and_its_repeat_changes_nothing() {
    let world = World::start_with_channels(Channels::Phone).await;
    let request = world.phone().report_text(ANN, "status").unwrap();
    assert_eq!(world.deliver(request.clone()).await, 200);
    world.pass(20).await;
    assert_eq!(world.phone_texts(), [STATUS]);
    assert_eq!(world.deliver(request).await, 200);
    world.pass(60).await;
    assert_eq!(world.phone_texts(), [STATUS]);
    assert_eq!(world.lines("SELECT via AS line FROM inbound_events").await, ["webhook"]);
}

#[tokio::test(start_paused = true)]
async fn webhook_without_a_recent_signature_is_refused() {
    let world = World::start_with_channels(Channels::Phone).await;
    let payload = json!({ "sender": ANN, "message": "status", "receivedAt": world.now().to_string() });
    let sign = |age| {
        let signed_at = world.now() - SignedDuration::from_secs(age);
        world.phone().sign_event("sms:received", &payload, signed_at).unwrap()
    };
    assert_eq!(world.deliver(sign(301)).await, 403);
    assert_eq!(world.deliver(sign(-301)).await, 403);
    let mut forged = sign(0);
    *forged.body_mut() = forged.body().iter().rev().copied().collect::<Vec<u8>>().into();
    assert_eq!(world.deliver(forged).await, 403);
    let mut unsigned = sign(0);
    unsigned.headers_mut().remove("x-signature");
    assert_eq!(world.deliver(unsigned).await, 403);
    assert_eq!(world.deliver(sign(299)).await, 200);
}

#[tokio::test(start_paused = true)]
async fn state_that_a_webhook_reports_is_stored() {
    let world = World::start_with_channels(Channels::Phone).await;
    world.phone().set_signal(false);
    world.text_to_phone("status").await;
    let id = world.lines("SELECT provider_sid AS line FROM outbox").await.remove(0);
    let failed = world.phone().report_state("sms:failed", &id).unwrap();
    assert_eq!(world.deliver(failed).await, 204);
    let of_another_program = world.phone().report_state("sms:sent", "0123").unwrap();
    assert_eq!(world.deliver(of_another_program).await, 204);
    assert_eq!(world.lines("SELECT delivery AS line FROM outbox").await, ["failed"]);
}

#[tokio::test(start_paused = true)]
async fn webhook_about_a_sent_prompt_does_not_open_it_before_the_inbox_is_read() {
    let (world, _) = world_with_heat().await;
    world.phone().set_signal(false);
    world.text_to_phone("delete heat").await;
    let id = world.lines("SELECT provider_sid AS line FROM outbox").await.remove(0);
    let sent = world.phone().report_state("sms:sent", &id).unwrap();
    assert_eq!(world.deliver(sent).await, 204);
    assert_eq!(world.lines("SELECT 'armed' AS line FROM pending_actions WHERE armed_at > 0").await, NONE);
}

#[tokio::test(start_paused = true)]
async fn sent_test_text_and_its_reply_are_reported() {
    let world = World::start_with_channels(Channels::Both).await;
    let admin = || PhoneNumber::parse(ANN).unwrap();
    let newest = async || world.read_database(load_newest_test_text).await;
    assert_eq!(newest().await, None);
    let queued = world.engine().decisions.queue_test_text(admin()).await.unwrap();
    assert_eq!(queued, TestTextOutcome::Queued);
    world.pass(30).await;
    assert_eq!(world.phone_texts().len(), 1);
    let sent = newest().await.unwrap();
    assert_eq!((sent.delivery, sent.has_reply), (Some(DeliveryStatus::Delivered), false));
    // A text on the other channel proves nothing.
    world.sms("status").await;
    assert!(!newest().await.unwrap().has_reply);
    world.text_to_phone("status").await;
    assert!(newest().await.unwrap().has_reply);
    assert_eq!(
        world.engine().decisions.queue_test_text(PhoneNumber::parse(BOB).unwrap()).await.unwrap(),
        TestTextOutcome::NoRecipient
    );
}

#[tokio::test(start_paused = true)]
async fn sending_a_test_text_needs_a_phone() {
    let world = World::start().await;
    let admin = PhoneNumber::parse(ANN).unwrap();
    let outcome = world.engine().decisions.queue_test_text(admin).await.unwrap();
    assert_eq!(outcome, TestTextOutcome::NoPhone);
}

#[tokio::test(start_paused = true)]
async fn each_carrier_answers_the_texts_that_it_received() {
    let world = World::start_with_channels(Channels::Both).await;
    world.register_user(BOB).await;
    assert_eq!(world.text_to_phone("status").await, [STATUS]);
    assert_eq!(world.sms_from(BOB, "status").await, [STATUS]);
    let to_phone = "SELECT to_addr || ' ' || channel AS line FROM inbound_events ORDER BY id";
    assert_eq!(
        world.lines(to_phone).await,
        [format!("smsgate:{PHONE_NUMBER} smsgate"), "+15550100000 twilio".to_owned()]
    );
    assert_eq!(world.phone_texts().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn yes_on_another_channel_than_the_prompt_deletes_nothing() {
    let world = World::start_with_channels(Channels::Both).await;
    let heat = world.radarr().add(movie("Heat").year(1995).size_gb(18.2));
    world.model_plays(removes_movie("heat", heat));
    assert_eq!(world.text_to_phone("delete heat").await, [QUESTION]);
    assert_eq!(world.sms("yes").await, [QUESTION]);
    assert_eq!(world.radarr().removed_ids(), [0_i64; 0]);
}

#[tokio::test(start_paused = true)]
async fn waiting_text_moves_to_the_phone_when_the_carrier_is_replaced() {
    let mut world = World::start().await;
    world.twilio().fail_next(429, 20429);
    world.texts("status").await;
    world.pass_ms(500).await;
    world.use_channels(Channels::Phone).await;
    world.pass(60).await;
    assert_eq!(world.phone_texts(), [STATUS]);
    assert_eq!(world.sent_texts(), NONE);
}

#[tokio::test(start_paused = true)]
async fn phone_that_refuses_the_password_keeps_texts_waiting() {
    let world = World::start_with_channels(Channels::Phone).await;
    world.phone().receive_text(ANN, "status");
    world.pass(1).await;
    world.phone().fail_with(Some(401));
    world.pass(60).await;
    assert_eq!(world.phone_texts(), NONE);
    world.phone().fail_with(None);
    world.pass(400).await;
    assert_eq!(world.phone_texts(), [STATUS]);
}
