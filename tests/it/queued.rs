//! Deferred additions: repeated for a day while the library is unreachable, with one message about the outcome.

use dialarr::arr::fake::media_fixtures::{movie, series};
use serde_json::json;

use crate::harness::model::{adds_movie, calls, removes_movie, says};
use crate::harness::world::World;
use crate::harness::{ANN, BOB};

const DUNE: i64 = 438_631;
const SEVERANCE: i64 = 371_980;
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const PROMISE: &str = "Radarr is down, I'll keep trying.";
const ADDED: &str = "Dune (2021) is added now.";
const GIVEN_UP: &str =
    "I could not add Dune (2021): Radarr could not be reached for a day. Ask me again later.";

/// Lets a user find Dune and request it while Radarr is down.
async fn asks_in_vain(world: &World, phone: &str) {
    let [searches, adds] = adds_movie("dune", DUNE);
    world.model_plays([searches, says("Dune (2021)?"), adds, says(PROMISE)]);
    world.radarr().set_down(false);
    world.sms_from(phone, "search dune").await;
    world.radarr().set_down(true);
    let replies = world.sms_from(phone, "yes, add it").await;
    assert_eq!(replies.last().unwrap(), PROMISE);
}

async fn world_with_dune_queued() -> World {
    let world = World::start().await;
    world.radarr().add_to_catalog(movie("Dune").year(2021).tmdb(DUNE));
    asks_in_vain(&world, ANN).await;
    world
}

fn last(world: &World) -> String {
    world.messages_to(ANN).pop().unwrap()
}

#[tokio::test(start_paused = true)]
async fn addition_during_an_outage_is_promised_and_made_later() {
    let world = world_with_dune_queued().await;
    assert!(world.last_tool_result().contains(r#""status":"queued""#), "{}", world.last_tool_result());
    assert_eq!(world.requests().await, ["+15550100002 queued radarr Dune (2021)"]);
    world.pass(40 * MINUTE).await;
    assert_eq!(last(&world), PROMISE);

    world.radarr().set_down(false);
    world.pass(HOUR).await;
    assert_eq!(last(&world), ADDED);
    assert_eq!(world.requests().await, ["+15550100002 added radarr Dune (2021)"]);
    assert_eq!(world.follows().await, ["+15550100002 radarr movie 438631"]);
    assert_eq!(world.additions().await, ["movie 1"]);

    let before = world.messages_to(ANN);
    world.pass(2 * HOUR).await;
    assert_eq!(world.messages_to(ANN), before);
    assert_eq!(world.radarr().added_ids(), [DUNE]);
}

#[tokio::test(start_paused = true)]
async fn promise_without_a_model_is_a_plain_sentence() {
    let world =
        World::start_with(std::sync::Arc::new(dialarr::llm::keyword::KeywordResponder::NoModel)).await;
    world.radarr().add_to_catalog(movie("Dune").year(2021).tmdb(DUNE));
    world.radarr().add_to_catalog(movie("Dune: Part Two").year(2024).tmdb(693_134));
    world.sms("search dune").await;
    world.radarr().set_down(true);
    let replies = world.sms("1").await;
    assert_eq!(
        replies.last().unwrap(),
        "Radarr can't be reached right now. I'll keep trying for a day and text you."
    );
    world.radarr().set_down(false);
    world.pass(5 * MINUTE).await;
    assert!(last(&world).ends_with("is added now."), "{}", last(&world));
}

#[tokio::test(start_paused = true)]
async fn addition_outcome_waits_for_quiet_hours_and_ignores_notify_off() {
    let world = world_with_dune_queued().await;

    world.sms("quiet 21-2").await;
    world.sms("notify off").await;
    let before = world.messages_to(ANN);
    world.radarr().set_down(false);
    world.pass(HOUR).await;
    assert_eq!((world.radarr().added_ids(), world.messages_to(ANN)), (vec![DUNE], before));
    world.pass(4 * HOUR).await;
    assert_eq!(last(&world), ADDED);
}

#[tokio::test(start_paused = true)]
async fn deferred_addition_survives_a_restart() {
    let mut world = world_with_dune_queued().await;
    world.pass(10 * MINUTE).await;
    world.kill().await;
    world.radarr().set_down(false);
    world.pass(3 * HOUR).await;
    world.start_again().await;
    world.pass(MINUTE).await;
    assert_eq!(last(&world), ADDED);
    assert_eq!(world.radarr().added_ids(), [DUNE]);
}

#[tokio::test(start_paused = true)]
async fn deferred_addition_is_given_up_after_a_day_with_one_message() {
    let world = world_with_dune_queued().await;
    world.pass(24 * HOUR - 5 * MINUTE).await;
    assert_eq!(last(&world), PROMISE);
    world.pass(10 * MINUTE).await;
    assert_eq!(last(&world), GIVEN_UP);
    let before = world.messages_to(ANN);
    world.radarr().set_down(false);
    world.pass(2 * HOUR).await;
    assert_eq!(world.messages_to(ANN), before);
    assert_eq!(world.radarr().added_ids(), Vec::<i64>::new());
    assert_eq!(world.requests().await, ["+15550100002 given_up radarr Dune (2021)"]);
}

#[tokio::test(start_paused = true)]
async fn deferred_addition_gets_a_last_try_after_downtime_of_a_day() {
    let mut world = world_with_dune_queued().await;
    world.kill().await;
    world.pass(30 * HOUR).await;
    world.start_again().await;
    world.pass(MINUTE).await;
    assert_eq!(last(&world), GIVEN_UP);

    let mut world = world_with_dune_queued().await;
    world.kill().await;
    world.radarr().set_down(false);
    world.pass(30 * HOUR).await;
    world.start_again().await;
    world.pass(MINUTE).await;
    assert_eq!(last(&world), ADDED);
}

#[tokio::test(start_paused = true)]
async fn two_requesters_of_a_title_cause_one_addition() {
    let world = world_with_dune_queued().await;
    world.register_user(BOB).await;
    asks_in_vain(&world, BOB).await;
    world.radarr().set_down(false);
    world.pass(HOUR).await;
    let ends = [world.messages_to(ANN).pop().unwrap(), world.messages_to(BOB).pop().unwrap()];
    assert!(ends.contains(&ADDED.to_owned()), "{ends:?}");
    assert!(ends.contains(&"Dune (2021) is in the library now.".to_owned()), "{ends:?}");
    assert_eq!((world.radarr().added_ids(), world.radarr().post_count()), (vec![DUNE], 1));
    assert_eq!(world.follows().await.len(), 2);
    assert_eq!(world.additions().await, ["movie 1"]);
}

#[tokio::test(start_paused = true)]
async fn repeated_request_of_a_waiting_title_is_reported_once() {
    let world = world_with_dune_queued().await;
    asks_in_vain(&world, ANN).await;
    assert_eq!(world.requests().await, ["+15550100002 queued radarr Dune (2021)"]);
    world.radarr().set_down(false);
    world.pass(HOUR).await;
    assert_eq!(world.messages_to(ANN).iter().filter(|text| *text == ADDED).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn addition_interrupted_by_a_crash_is_checked_and_not_repeated() {
    let mut world = world_with_dune_queued().await;
    world.radarr().drop_next_write_response();
    world.radarr().set_down(false);
    world.pass(70).await;
    assert_eq!(world.radarr().post_count(), 1);
    world.kill().await;
    world.start_again().await;
    world.pass(10 * MINUTE).await;
    assert_eq!(last(&world), ADDED);
    assert_eq!((world.radarr().added_ids(), world.radarr().post_count()), (vec![DUNE], 1));
    assert_eq!(world.additions().await, ["movie 1"]);
}

#[tokio::test(start_paused = true)]
async fn addition_with_a_lost_response_is_checked_before_a_retry() {
    let world = world_with_dune_queued().await;
    world.radarr().complete_next_write_with_status(500);
    world.radarr().set_down(false);
    world.pass(10 * MINUTE).await;
    assert_eq!(last(&world), ADDED);
    assert_eq!((world.radarr().added_ids(), world.radarr().post_count()), (vec![DUNE], 1));
}

#[tokio::test(start_paused = true)]
async fn addition_with_an_unknown_outcome_is_not_deferred() {
    let world = World::start().await;
    world.radarr().add_to_catalog(movie("Dune").year(2021).tmdb(DUNE));
    let [searches, adds] = adds_movie("dune", DUNE);
    world.model_plays([searches, adds, says("I could not find out.")]);
    world.radarr().drop_next_write_response();
    world.texts("add dune").await;
    world.pass(15).await;
    world.radarr().set_down(true);
    world.pass(10 * MINUTE).await;
    assert!(world.last_tool_result().contains("outcome_unknown"), "{}", world.last_tool_result());
    assert_eq!(world.requests().await, Vec::<String>::new());
    world.radarr().set_down(false);
    world.pass(HOUR).await;
    assert_eq!(world.radarr().post_count(), 1);
    assert_eq!(last(&world), "I could not find out.");
}

#[tokio::test(start_paused = true)]
async fn addition_outcome_does_not_come_between_a_prompt_and_its_answer() {
    let world = world_with_dune_queued().await;
    world.radarr().set_down(false);
    let heat = world.radarr().add(movie("Heat").year(1995).tmdb(949).size_gb(18.2));
    world.model_plays(removes_movie("heat", heat));
    let question = "Delete Heat (1995) and its file, 18.2 GB? Reply YES or NO.";
    assert_eq!(world.sms("delete heat").await.last().unwrap(), question);
    world.pass(2 * MINUTE).await;
    assert_eq!(world.radarr().added_ids(), [DUNE]);
    assert_eq!(last(&world), question);
    let replies = world.sms("no").await;
    assert_eq!(replies[replies.len() - 3..], [question, ADDED, "OK, kept."]);
}

#[tokio::test(start_paused = true)]
async fn additions_of_unavailable_users_are_given_up() {
    let world = World::start().await;
    world.radarr().add_to_catalog(movie("Dune").year(2021).tmdb(DUNE));
    for phone in ["+15550100011", "+15550100012", "+15550100013"] {
        world.register_user(phone).await;
        asks_in_vain(&world, phone).await;
    }
    world.block_user("+15550100011").await;
    world.forget_user("+15550100012").await;
    world.sms_from("+15550100013", "STOP").await;
    let before = world.sent_texts();
    world.radarr().set_down(false);
    world.pass(2 * HOUR).await;
    assert_eq!((world.sent_texts(), world.radarr().added_ids()), (before, Vec::new()));
    assert_eq!(
        world.requests().await,
        ["+15550100011 given_up radarr Dune (2021)", "+15550100013 given_up radarr Dune (2021)",]
    );
}

#[tokio::test(start_paused = true)]
async fn forget_all_cancels_deferred_additions() {
    let world = world_with_dune_queued().await;
    world.sms("forget all").await;
    assert_eq!(world.requests().await, Vec::<String>::new());
    world.radarr().set_down(false);
    world.pass(2 * HOUR).await;
    assert_eq!(world.radarr().added_ids(), Vec::<i64>::new());
}

#[tokio::test(start_paused = true)]
async fn forget_all_erases_a_waiting_addition_outcome() {
    let world = world_with_dune_queued().await;
    world.sms("quiet 21-2").await;
    world.radarr().set_down(false);
    world.pass(HOUR).await;
    assert_eq!(world.radarr().added_ids(), [DUNE]);
    world.sms("forget all").await;
    let before = world.messages_to(ANN);
    world.pass(5 * HOUR).await;
    assert_eq!(world.messages_to(ANN), before);
    let kept = "SELECT body AS line FROM outbox WHERE dedupe_key LIKE 'request:%'";
    assert_eq!(world.lines(kept).await, [""]);
}

/// Lets Bob follow Dune while its addition waits.
async fn bob_follows_dune(world: &World) {
    world.register_user(BOB).await;
    world.radarr().set_down(false);
    world.model_plays([calls("search_media", json!({ "query": "dune" })), says("Dune?")]);
    world.radarr().allow_next();
    world.sms_from(BOB, "is dune coming?").await;
    world.radarr().set_down(true);
    let follows = calls("tell_me_when_ready", json!({ "type": "movie", "tmdb": DUNE }));
    world.model_plays([follows, says("I will tell you.")]);
    world.sms_from(BOB, "tell me too").await;
}

#[tokio::test(start_paused = true)]
async fn deferred_addition_can_be_followed() {
    let world = world_with_dune_queued().await;
    bob_follows_dune(&world).await;
    assert_eq!(world.follows().await, ["+15550100003 radarr movie 438631"]);
}

#[tokio::test(start_paused = true)]
async fn follower_of_a_given_up_addition_is_notified() {
    let world = world_with_dune_queued().await;
    bob_follows_dune(&world).await;
    world.pass(25 * HOUR).await;
    assert_eq!((last(&world), world.messages_to(BOB).pop().unwrap()), (GIVEN_UP.into(), GIVEN_UP.into()));
}

#[tokio::test(start_paused = true)]
async fn explicit_follow_of_a_waiting_title_is_delivered_without_notifications() {
    let world = world_with_dune_queued().await;
    world.register_user(BOB).await;
    world.sms_from(BOB, "notify off").await;
    bob_follows_dune(&world).await;
    world.pass(25 * HOUR).await;
    assert_eq!(world.messages_to(BOB).pop().unwrap(), GIVEN_UP);
}

#[tokio::test(start_paused = true)]
async fn follower_of_an_already_available_title_is_notified() {
    let world = world_with_dune_queued().await;
    bob_follows_dune(&world).await;
    world.radarr().add(movie("Dune").year(2021).tmdb(DUNE).size_gb(8.0));
    world.radarr().set_down(false);
    world.pass(HOUR).await;
    assert_eq!(last(&world), "Dune (2021) is in the library now.");
    assert_eq!(world.messages_to(BOB).pop().unwrap(), "Dune (2021) is ready to watch.");
}

#[tokio::test(start_paused = true)]
async fn addition_waits_for_a_corrected_key_or_address() {
    let world = World::start().await;
    world.radarr().add_to_catalog(movie("Dune").year(2021).tmdb(DUNE));
    let [searches, adds] = adds_movie("dune", DUNE);
    world.model_plays([searches, says("Dune (2021)?"), adds, says(PROMISE)]);
    world.sms("search dune").await;
    world.radarr().fail_next(401);
    world.sms("yes, add it").await;
    world.radarr().return_html_next();
    world.pass(10 * MINUTE).await;
    assert_eq!(world.messages_to(ANN)[1..], [PROMISE, ADDED]);
}

#[tokio::test(start_paused = true)]
async fn queued_addition_in_4k_needs_the_right() {
    let world = World::start().await;
    world.radarr().add_to_catalog(movie("Dune").year(2021).tmdb(DUNE));
    let adds = calls("add_movie", json!({ "tmdb": DUNE, "quality": "Ultra-HD" }));
    let [searches, _] = adds_movie("dune", DUNE);
    world.model_plays([searches, says("Dune (2021)?"), adds, says(PROMISE)]);
    world.sms("search dune").await;
    world.radarr().set_down(true);
    world.sms("yes, in 4K").await;
    world.radarr().set_down(false);
    world.pass(HOUR).await;
    assert_eq!(last(&world), "I could not add Dune (2021). You can't add titles in 4K. Please ask an admin.");
    assert_eq!(world.radarr().added_ids(), Vec::<i64>::new());
}

/// Starts after Ann found Severance, which has three seasons.
async fn world_with_severance_found() -> World {
    let world = World::start().await;
    world.sonarr().add_to_catalog(series("Severance").year(2022).tvdb(SEVERANCE).seasons(3));
    world.model_plays([calls("search_media", json!({ "query": "severance" })), says("Severance (2022)?")]);
    world.sms("search severance").await;
    world
}

/// Lets Ann request one season while Sonarr is down.
async fn asks_for_season_in_vain(world: &World, season: u32) {
    world.sonarr().set_down(true);
    let adds = calls("add_series", json!({ "tvdb": SEVERANCE, "seasons": [season] }));
    world.model_plays([adds, says("Sonarr is down, I'll keep trying.")]);
    world.sms(&format!("add season {season}")).await;
}

fn monitored_seasons(world: &World) -> Vec<bool> {
    world.sonarr().title(1).unwrap().details.seasons.iter().map(|season| season.monitored).collect()
}

#[tokio::test(start_paused = true)]
async fn seasons_requested_during_an_outage_are_added_together() {
    let world = world_with_severance_found().await;
    asks_for_season_in_vain(&world, 1).await;
    asks_for_season_in_vain(&world, 2).await;
    let queued = |season: u32| format!("+15550100002 queued sonarr Severance (2022) [{season}]");
    assert_eq!(world.requests().await, [queued(1), queued(2)]);
    let before = world.messages_to(ANN).len();
    world.sonarr().set_down(false);
    world.pass(HOUR).await;
    assert_eq!(world.messages_to(ANN)[before..], ["Severance (2022), seasons 1 and 2 are added now."]);
    assert_eq!(world.requests().await, ["+15550100002 added sonarr Severance (2022) [1,2]"]);
    assert_eq!(monitored_seasons(&world), [true, true, false]);
    assert_eq!(world.follows().await.len(), 2);
    assert_eq!(world.additions().await, ["season 2"]);
}

#[tokio::test(start_paused = true)]
async fn season_requested_during_a_try_is_looked_for_afterwards() {
    let world = world_with_severance_found().await;
    asks_for_season_in_vain(&world, 1).await;
    world.sonarr().drop_next_write_response();
    world.sonarr().set_down(false);
    world.pass(70).await;
    assert_eq!(world.sonarr().post_count(), 1);
    asks_for_season_in_vain(&world, 2).await;
    let before = world.messages_to(ANN).len();
    world.sonarr().set_down(false);
    world.pass(HOUR).await;
    let mut new_messages = world.messages_to(ANN)[before..].to_vec();
    new_messages.sort();
    assert_eq!(
        new_messages,
        ["Severance (2022), season 1 is added now.", "Severance (2022), season 2 is added now."]
    );
    assert_eq!(monitored_seasons(&world), [true, true, false]);
}

#[tokio::test(start_paused = true)]
async fn season_that_does_not_exist_refuses_only_its_own_request() {
    let world = world_with_severance_found().await;
    asks_for_season_in_vain(&world, 1).await;
    asks_for_season_in_vain(&world, 9).await;
    let before = world.messages_to(ANN).len();
    world.sonarr().set_down(false);
    world.pass(HOUR).await;
    assert_eq!(
        world.messages_to(ANN)[before..],
        [
            "Severance (2022), season 1 is added now.",
            "I could not add Severance (2022), season 9. Severance (2022) has no season 9, only seasons 1 to 3."
        ]
    );
    assert_eq!(monitored_seasons(&world), [true, false, false]);
    assert_eq!(
        world.requests().await,
        [
            "+15550100002 added sonarr Severance (2022) [1]",
            "+15550100002 given_up sonarr Severance (2022) [9]"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn refused_quality_of_a_later_request_keeps_the_earlier_one() {
    let world = world_with_dune_queued().await;
    let sharper = calls("add_movie", json!({ "tmdb": DUNE, "quality": "Ultra-HD" }));
    world.model_plays([sharper, says(PROMISE)]);
    world.sms("make that 4K").await;
    let before = world.messages_to(ANN).len();
    world.radarr().set_down(false);
    world.pass(HOUR).await;
    assert_eq!(
        world.messages_to(ANN)[before..],
        ["Dune (2021) is added now. You can't add titles in 4K. Please ask an admin."]
    );
    assert_eq!((world.radarr().added_ids(), world.radarr().post_count()), (vec![DUNE], 1));
    assert_eq!(world.requests().await, ["+15550100002 added radarr Dune (2021)"]);
}

#[tokio::test(start_paused = true)]
async fn waiting_seasons_of_one_show_count_towards_the_quota() {
    let world = World::start().await;
    world.sonarr().add_to_catalog(series("Severance").year(2022).tvdb(SEVERANCE).seasons(14));
    world.model_plays([calls("search_media", json!({ "query": "severance" })), says("Severance (2022)?")]);
    world.sms("search severance").await;
    world.sonarr().set_down(true);
    for seasons in [(1..=6).collect::<Vec<u32>>(), (5..=12).collect()] {
        let adds = calls("add_series", json!({ "tvdb": SEVERANCE, "seasons": seasons }));
        world.model_plays([adds, says("Noted.")]);
        world.sms(&format!("add seasons {seasons:?}")).await;
    }
    assert!(world.last_tool_result().contains("\"error\":\"quota\""), "{}", world.last_tool_result());
    assert_eq!(world.requests().await, ["+15550100002 queued sonarr Severance (2022) [1,2,3,4,5,6]"]);
}

/// Starts with Severance unmonitored in the library, and with a waiting request of Ann for its second season.
async fn world_with_a_season_of_a_held_show_queued() -> (World, i64) {
    let world = World::start().await;
    let show = series("Severance").year(2022).tvdb(SEVERANCE).seasons(3).episodes(6).missing(6);
    let show =
        [1, 2, 3].into_iter().fold(show, dialarr::arr::fake::media_fixtures::FakeSeries::unmonitored_season);
    let id = world.sonarr().add(show);
    let found = ["find_in_library", "search_media"].map(|tool| calls(tool, json!({ "query": "severance" })));
    world.model_plays(found.into_iter().chain([says("Severance (2022)?")]));
    world.sms("search severance").await;
    asks_for_season_in_vain(&world, 2).await;
    (world, id)
}

/// Lets Ann get a part of Severance before the waiting season is tried.
async fn gets_a_part(part: &str) -> World {
    let (world, id) = world_with_a_season_of_a_held_show_queued().await;
    world.sonarr().set_down(false);
    let gets = calls("get_more", json!({ "type": "series", "id": id, "seasons": [part] }));
    world.model_plays([gets, says("OK.")]);
    world.sms(&format!("get {part}")).await;
    world
}

#[tokio::test(start_paused = true)]
async fn single_episode_does_not_settle_its_waiting_season() {
    let world = gets_a_part("S02E01").await;
    let before = world.messages_to(ANN).len();
    world.pass(HOUR).await;
    assert_eq!(world.messages_to(ANN)[before..], ["Severance (2022), season 2 is added now."]);
    assert_eq!(monitored_seasons(&world), [false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn future_episodes_do_not_settle_a_waiting_season() {
    let world = gets_a_part("future").await;
    let before = world.messages_to(ANN).len();
    world.pass(HOUR).await;
    assert_eq!(world.messages_to(ANN)[before..], ["Severance (2022), season 2 is added now."]);
    assert!(monitored_seasons(&world)[1]);
}

#[tokio::test(start_paused = true)]
async fn whole_season_settles_its_waiting_request() {
    let world = gets_a_part("2").await;
    let before = world.messages_to(ANN).len();
    world.pass(HOUR).await;
    assert_eq!(world.messages_to(ANN)[before..], Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn unreadable_addition_is_given_up_with_one_message() {
    let world = world_with_dune_queued().await;
    world.damage_rows("UPDATE requests SET arguments = '[]', seasons = '{}'").await;
    let before = world.messages_to(ANN).len();
    world.radarr().set_down(false);
    world.pass(HOUR).await;
    let lost = "Something went wrong on my side, and I could not add Dune (2021). Please ask me again.";
    assert_eq!(world.messages_to(ANN)[before..], [lost]);
    assert_eq!(world.radarr().added_ids(), Vec::<i64>::new());
    assert_eq!(world.requests().await, ["+15550100002 given_up radarr Dune (2021) {}"]);
}

#[tokio::test(start_paused = true)]
async fn addition_with_an_unreadable_turn_is_given_up_with_one_message() {
    let world = world_with_dune_queued().await;
    world.damage_rows("UPDATE turns SET prompt = '7'").await;
    let before = world.messages_to(ANN).len();
    world.radarr().set_down(false);
    world.pass(HOUR).await;
    assert_eq!(world.messages_to(ANN).len(), before + 1);
    assert!(last(&world).contains("I could not add Dune (2021)"), "{}", last(&world));
}

#[tokio::test(start_paused = true)]
async fn unreadable_addition_under_way_is_reported_as_unknown() {
    let world = world_with_dune_queued().await;
    world.radarr().drop_next_write_response();
    world.radarr().set_down(false);
    world.pass(70).await;
    assert_eq!(world.requests().await, ["+15550100002 adding radarr Dune (2021)"]);
    world.damage_rows("UPDATE requests SET seasons = '{}'").await;
    world.pass(HOUR).await;
    assert_eq!(
        last(&world),
        "Something went wrong on my side, and I can't tell whether Dune (2021) was added. Please check before you ask \
         again."
    );
}
