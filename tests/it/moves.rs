//! Sonarr, Radarr and the carrier account move to another server, while the program runs or while it is down.

use std::collections::BTreeSet;
use std::sync::Arc;

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::engine::moved_servers::SameServerOutcome;
use dialarr::llm::scripted::ScriptedModel;
use dialarr::store::audit::Actor;
use serde_json::json;

use crate::harness::model::{adds_movie, calls, finds, removes, removes_movie, says};
use crate::harness::world::{OTHER_NUMBER, World};
use crate::harness::{ANN, BOB};

const QUESTION: &str = "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.";
const CLOSED: &str = "Radarr was moved to another server, so nothing was deleted. Ask again if it should go.";
const ADMIN: &str = "+15550100001";
const DUNE: i64 = 438_631;
/// Number of rounds, in each of which Radarr moves while a message arrives.
const MOVES: u64 = 120;
const NONE: [i64; 0] = [];

/// Creates a Radarr on another server, whose item 1 is another movie.
fn other_radarr() -> FakeRadarr {
    let other = FakeRadarr::default();
    other.add(movie("Alien").year(1979).tmdb(348).size_gb(8.0));
    other.add_to_catalog(movie("Dune").year(2021).tmdb(DUNE));
    other
}

async fn world_with_prompt() -> World {
    let world = World::start().await;
    let dune = world.radarr().add(movie("Dune").year(2021).tmdb(DUNE).size_gb(21.4));
    world.model_plays(removes_movie("dune", dune));
    assert_eq!(world.sms("delete dune").await, [QUESTION]);
    world
}

/// Returns the requests to the new servers that concern one title.
fn title_requests(world: &World) -> Vec<String> {
    let requests = world.requests_to_moved_servers().into_iter();
    requests.filter(|request| request.contains("/movie/") || !request.starts_with("GET")).collect()
}

#[tokio::test(start_paused = true)]
async fn prompt_about_a_moved_server_closes_with_a_sentence() {
    let mut world = world_with_prompt().await;
    let other = other_radarr();
    world.move_radarr(&other).await;
    world.pass(5).await;
    assert_eq!(world.messages_to(ANN).pop().unwrap(), CLOSED);

    world.model_plays([says("Nothing is open.")]);
    world.texts("yes").await;
    world.pass(60).await;

    assert_eq!((world.radarr().removed_ids(), other.removed_ids()), (NONE.to_vec(), NONE.to_vec()));
    assert_eq!(title_requests(&world), Vec::<String>::new());
    world.model_plays([]);
}

/// Moves a server at many points of the preparation of a turn, because the ids that a turn shows are void only if the turn
/// was created before the end of the move.
#[tokio::test(start_paused = true)]
async fn turn_that_is_created_after_a_move_runs_on_the_new_parts() {
    let mut world = World::start().await;
    let radarr = other_radarr();
    let mut orders = BTreeSet::new();
    for round in 0..MOVES {
        let answer = format!("Hello from model {round}.");
        let model = Arc::new(ScriptedModel::new(vec![says(&answer); 2]));
        world.text_during_a_move(("how are you today?", round % 12), &radarr, model).await;
        world.pass(600).await;
        let newest = "SELECT iif(max(turns.id) <= moved_after_turn, 'before', 'after') AS line
            FROM turns, service_identities WHERE slot = 'radarr'";
        let order = world.lines(newest).await;
        if order == ["after"] {
            assert_eq!(world.sent_texts().last(), Some(&answer));
        }
        orders.extend(order);
    }
    assert_eq!(orders.into_iter().collect::<Vec<_>>(), ["after", "before"]);
}

#[tokio::test(start_paused = true)]
async fn prompt_closes_if_its_server_moved_while_the_program_was_down() {
    let mut world = world_with_prompt().await;
    world.kill().await;
    world.move_radarr(&other_radarr()).await;
    world.start_again().await;
    world.pass(60).await;
    assert_eq!(world.messages_to(ANN).pop().unwrap(), CLOSED);
}

#[tokio::test(start_paused = true)]
async fn removal_request_about_a_moved_server_ends_with_a_sentence() {
    let mut world = World::start().await;
    world.register_admin(ADMIN).await;
    world.register_user(BOB).await;
    let dune = world.radarr().add(movie("Dune").year(2021).tmdb(DUNE).size_gb(21.4));
    let asks = calls("request_removal", json!({ "type": "movie", "id": dune }));
    world.model_plays([finds("dune"), asks, says("I asked the admins.")]);
    assert_eq!(world.sms_from(BOB, "delete dune").await, ["I asked the admins."]);
    let request = world.messages_to(ADMIN).pop().unwrap();
    let code = request.split_once("APPROVE ").unwrap().1[..4].to_owned();

    let other = other_radarr();
    world.move_radarr(&other).await;
    world.pass(5).await;
    assert_eq!(
        world.messages_to(BOB).pop().unwrap(),
        "Radarr was moved to another server, so your request to delete Dune (2021) has ended. You can ask again."
    );
    world.sms_from(ADMIN, &format!("approve {code}")).await;
    assert_eq!((world.radarr().removed_ids(), other.removed_ids()), (NONE.to_vec(), NONE.to_vec()));
    assert_eq!(title_requests(&world), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn unknown_deletion_is_not_looked_up_on_the_new_server() {
    let mut world = world_with_prompt().await;
    world.radarr().drop_next_write_response();
    world.texts("yes").await;
    world.pass(2).await;
    assert_eq!(world.radarr().removed_ids().len(), 1);
    world.kill().await;
    world.move_radarr(&other_radarr()).await;
    world.start_again().await;
    world.pass(120).await;

    assert_eq!(title_requests(&world), Vec::<String>::new());
    assert_eq!(
        world.messages_to(ANN).pop().unwrap(),
        "I could not find out whether Dune (2021) was deleted. Please check."
    );
}

#[tokio::test(start_paused = true)]
async fn unknown_addition_is_not_looked_up_on_the_new_server() {
    let mut world = World::start().await;
    world.radarr().add_to_catalog(movie("Dune").year(2021).tmdb(DUNE));
    let [searches, adds] = adds_movie("dune", DUNE);
    world.model_plays([searches, adds]);
    world.radarr().drop_next_write_response();
    world.texts("add dune").await;
    world.pass(2).await;
    assert_eq!(world.radarr().added_ids(), [DUNE]);
    world.kill().await;
    world.move_radarr(&other_radarr()).await;
    world.model_plays([says("I could not find out whether it was added.")]);
    world.start_again().await;
    world.pass(120).await;

    assert_eq!(title_requests(&world), Vec::<String>::new());
    let calls = world.lines("SELECT tool_name || ' ' || state AS line FROM tool_calls ORDER BY id").await;
    assert_eq!(calls, ["search_media complete", "add_movie error"]);
}

#[tokio::test(start_paused = true)]
async fn waiting_addition_is_made_on_the_new_server() {
    let mut world = World::start().await;
    world.radarr().add_to_catalog(movie("Dune").year(2021).tmdb(DUNE));
    let [searches, adds] = adds_movie("dune", DUNE);
    world.model_plays([searches, says("Which one?"), adds, says("It will be added.")]);
    world.sms("find dune").await;
    world.radarr().set_down(true);
    world.sms("add the first one").await;

    let other = other_radarr();
    world.move_radarr(&other).await;
    world.pass(3_600).await;

    assert_eq!((world.radarr().added_ids(), other.added_ids()), (NONE.to_vec(), vec![DUNE]));
}

#[tokio::test(start_paused = true)]
async fn ids_of_an_earlier_server_are_refused() {
    let mut world = World::start().await;
    let dune = world.radarr().add(movie("Dune").year(2021).tmdb(DUNE).size_gb(21.4));
    world.model_plays([finds("dune"), says("You have Dune.")]);
    world.sms("do i have dune?").await;
    let other = other_radarr();
    world.move_radarr(&other).await;

    world.model_plays([removes(&json!([{ "type": "movie", "id": dune }])), says("Search again.")]);
    assert_eq!(world.sms("delete dune").await.pop().unwrap(), "Search again.");
    assert_eq!(title_requests(&world), Vec::<String>::new());
}

/// Starts with a Radarr of 25 movies, of which the user has seen one and a sample is stored. Returns the id of the movie.
async fn world_with_sample() -> (World, i64) {
    let world = World::start().await;
    let dune = world.radarr().add(movie("Dune").year(2021).tmdb(DUNE).size_gb(21.4));
    for number in 1..25 {
        world.radarr().add(movie(&format!("Movie {number}")).tmdb(number));
    }
    world.model_plays([finds("dune"), says("You have Dune.")]);
    world.sms("do i have dune?").await;
    world.run_maintenance().await;
    (world, dune)
}

async fn confirm_same_server(world: &World) -> SameServerOutcome {
    world.engine().moved_servers.confirm_same_server("radarr", Actor::Console).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn ids_are_valid_again_if_the_moved_server_is_the_same() {
    let (mut world, dune) = world_with_sample().await;
    assert_eq!(confirm_same_server(&world).await, SameServerOutcome::NotMoved);
    let radarr = world.radarr().clone();
    world.move_radarr(&radarr).await;
    world.run_maintenance().await;
    assert_eq!(confirm_same_server(&world).await, SameServerOutcome::Confirmed);
    assert_eq!(confirm_same_server(&world).await, SameServerOutcome::NotMoved);

    world.model_plays([removes(&json!([{ "type": "movie", "id": dune }]))]);
    assert_eq!(world.sms("delete dune").await.pop().unwrap(), QUESTION);
    let audit = "SELECT detail AS line FROM audit_log WHERE kind = 'same_server'";
    assert_eq!(world.lines(audit).await, [r#"{"by":"console","instance":"radarr"}"#]);
}

#[tokio::test(start_paused = true)]
async fn server_with_other_titles_is_not_the_same() {
    let (mut world, dune) = world_with_sample().await;
    world.move_radarr(&other_radarr()).await;
    assert_eq!(confirm_same_server(&world).await, SameServerOutcome::Different);

    world.model_plays([removes(&json!([{ "type": "movie", "id": dune }])), says("Search again.")]);
    assert_eq!(world.sms("delete dune").await.pop().unwrap(), "Search again.");
}

#[tokio::test(start_paused = true)]
async fn ids_stay_void_after_the_statement_of_another_server() {
    let (mut world, dune) = world_with_sample().await;
    world.move_radarr(&other_radarr()).await;
    let moved = world.engine().moved_servers.list_moved().await.unwrap().remove(0);
    let is_recorded = async || {
        world.engine().moved_servers.confirm_other_server(moved.clone(), Actor::Console).await.unwrap()
    };
    assert_eq!([is_recorded().await, is_recorded().await], [true, false]);
    assert_eq!(world.engine().moved_servers.list_moved().await.unwrap(), []);
    assert_eq!(confirm_same_server(&world).await, SameServerOutcome::NotMoved);

    world.model_plays([removes(&json!([{ "type": "movie", "id": dune }])), says("Search again.")]);
    assert_eq!(world.sms("delete dune").await.pop().unwrap(), "Search again.");
}

#[tokio::test(start_paused = true)]
async fn second_move_is_compared_with_the_server_between() {
    let (mut world, dune) = world_with_sample().await;
    world.move_radarr(&other_radarr()).await;
    world.model_plays([finds("alien"), says("You have Alien.")]);
    world.sms("do i have alien?").await;
    world.run_maintenance().await;
    world.kill().await;
    world.move_radarr_back();
    world.start_again().await;
    world.pass(60).await;
    assert_eq!(confirm_same_server(&world).await, SameServerOutcome::Different);

    world.model_plays([removes(&json!([{ "type": "movie", "id": dune }])), says("Search again.")]);
    assert_eq!(world.sms("delete dune").await.pop().unwrap(), "Search again.");
}

#[tokio::test(start_paused = true)]
async fn message_with_unknown_status_is_not_looked_up_at_another_account() {
    let mut world = World::start().await;
    world.model_plays([says("Hello.")]);
    world.twilio().lose_next_answer();
    world.texts("hi there, who are you?").await;
    world.pass(1).await;
    world.kill().await;
    world.move_carrier().await;
    world.start_again().await;
    world.pass(600).await;

    assert_eq!(world.requests_to_moved_servers(), Vec::<String>::new());
    assert_eq!(world.lines("SELECT state AS line FROM outbox").await, ["failed"]);
}

#[tokio::test(start_paused = true)]
async fn notification_after_a_move_comes_from_the_number_of_the_new_account() {
    let mut world = world_with_prompt().await;
    world.move_carrier().await;
    world.move_radarr(&other_radarr()).await;
    let notification = "SELECT from_addr AS line FROM outbox WHERE body LIKE 'Radarr was moved%'";
    assert_eq!(world.lines(notification).await, [OTHER_NUMBER]);
}

#[tokio::test(start_paused = true)]
async fn queued_message_comes_from_the_number_of_the_new_account() {
    let mut world = World::start().await;
    world.model_plays([says("Hello.")]);
    world.twilio().fail_next(429, 20_429);
    world.texts("hi there, who are you?").await;
    world.pass(1).await;
    world.move_carrier().await;

    let queued = "SELECT from_addr || ': ' || body AS line FROM outbox WHERE state = 'queued'";
    assert_eq!(world.lines(queued).await, [format!("{OTHER_NUMBER}: Hello.")]);
}
