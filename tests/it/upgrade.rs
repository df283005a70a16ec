//! Upgrades from each released version, from rows that the program of that version wrote: no data is lost, waiting
//! messages are sent, and a yes keeps its meaning.

use std::path::Path;

use dialarr::arr::fake::media_fixtures::movie;
use jiff::SignedDuration;

use crate::harness::model::says;
use crate::harness::old_database::{LATEST_RELEASE, write_database};
use crate::harness::world::World;
use crate::harness::{ANN, BOB};

const EVE: &str = "+15550100001";
const SAM: &str = "+15550100009";
const QUESTION: &str = "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.";
const WAITED: &str = "Nothing is downloading.";
const ANSWER: &str = "You follow none.";
const HEAT: &str = "Heat (1995) is added now.";
const CONVERSATIONS: &str = "20261120000000";
const PEOPLE: &str = "20261121000000";
const REQUESTS: &str = "20261121120000";
const CONSOLE: &str = "20261121180000";
const MEMORY: &str = "20261122000000";
const WORDS: &str = "20261122120000";
const ASIDES: &str = "20261122180000";
const FIRST_RELEASE: &str = "20261123000000";
const AUDIT: &str = "20261123120000";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the versions with an entry in a folder, oldest first.
fn versions(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut versions: Vec<String> =
        names.map(|name| name.chars().filter(char::is_ascii_digit).take(14).collect()).collect();
    versions.sort();
    versions
}

/// Starts the current program on a database of that version, three minutes later.
async fn upgraded(version: &str) -> World {
    World::upgraded(
        "2026-11-20T21:07:00Z",
        |file| write_database(file, version),
        |peers| {
            peers.radarr.add(movie("Dune").year(2021).size_gb(21.4));
            peers.radarr.add_to_catalog(movie("Heat").year(1995).tmdb(949));
        },
    )
    .await
}

/// Returns the files beside the database, without those of SQLite.
fn copies(world: &World) -> Vec<String> {
    let folder = std::fs::read_dir(world.database().parent().unwrap()).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains("before")).collect()
}

fn were_made_days_ago(world: &World, days: i64) {
    for copy in copies(world) {
        let file = std::fs::File::open(world.database().with_file_name(copy)).unwrap();
        file.set_modified((world.now() - SignedDuration::from_hours(24 * days)).into()).unwrap();
    }
}

/// Checks the behavior that all versions share.
async fn check(version: &str, bob_hears: &[&str]) -> World {
    let world = upgraded(version).await;
    world.model_plays([says(ANSWER)]);
    world.pass(30).await;
    let people =
        "SELECT address || ' ' || status || ' ' || role || iif(can_delete, ' may delete', '') AS line
                  FROM users JOIN user_addresses ON user_id = users.id
                  WHERE address IN ('+15550100002', '+15550100003') ORDER BY address";
    assert_eq!(
        world.lines(people).await,
        [format!("{ANN} active member may delete"), format!("{BOB} active member")]
    );
    let conversations = "SELECT coalesce(end_reason, 'open') AS line FROM conversations WHERE user_id IN
                         (SELECT user_id FROM user_addresses WHERE address = '+15550100002') ORDER BY id";
    assert_eq!(world.lines(conversations).await, ["cleared", "open"]);
    // The deferred title is added beside the replies, before or after any of them.
    let (added, answers): (Vec<String>, Vec<String>) =
        world.messages_to(BOB).into_iter().partition(|text| text == HEAT);
    let (promised, answered): (Vec<&str>, Vec<&str>) = bob_hears.iter().partition(|text| **text == HEAT);
    assert_eq!((added.len(), answers), (promised.len(), answered.into_iter().map(str::to_owned).collect()));

    assert_eq!(world.sms_from(ANN, "yes").await, ["Deleted Dune (2021). Freed 21.4 GB."]);
    assert_eq!(world.radarr().removed_ids(), [1]);
    world.model_plays([says("You asked for it.")]);
    world.sms_from(ANN, "why is it gone?").await;
    let request = world.last_request_text();
    for text in ["have dune?", "Dune is there.", "delete dune", QUESTION] {
        assert!(request.contains(text), "the model was not told {text:?}:\n{request}");
    }

    let faults = "SELECT \"table\" || ' ' || parent AS line FROM pragma_foreign_key_check
                  UNION ALL SELECT integrity_check FROM pragma_integrity_check";
    assert_eq!(world.lines(faults).await, ["ok"]);
    let lacks = versions("migrations").into_iter().find(|known| known.as_str() > version);
    assert_eq!(
        copies(&world),
        lacks.map(|lacks| format!("test.db.before-{lacks}")).into_iter().collect::<Vec<_>>()
    );
    world
}

async fn lets_sam_in(world: &World) {
    let code = world.lines("SELECT code AS line FROM approvals WHERE state = 'open'").await.remove(0);
    let messages = world.sms_from(EVE, &format!("approve {code}")).await;
    assert_eq!(messages.last().unwrap(), "Sam can text me now.");
    assert_eq!(
        world.lines("SELECT status AS line FROM users WHERE id = (SELECT user_id FROM user_addresses WHERE address = '+15550100009')").await,
        ["active"]
    );
    assert!(world.messages_to(SAM)[0].starts_with("Hello Sam, you can text me now."));
}

async fn has_added_heat(world: &World) {
    assert_eq!(world.radarr().added_ids(), [949]);
    assert_eq!(world.requests().await, [format!("{BOB} added radarr Heat (1995)")]);
    assert_eq!(world.follows().await, [format!("{BOB} radarr movie 949")]);
}

#[tokio::test(start_paused = true)]
async fn first_database_version_is_upgraded() {
    check(CONVERSATIONS, &[WAITED, ANSWER]).await;
}

#[tokio::test(start_paused = true)]
async fn database_of_the_people_version_is_upgraded() {
    let world = check(PEOPLE, &[WAITED, ANSWER]).await;
    lets_sam_in(&world).await;
}

#[tokio::test(start_paused = true)]
async fn database_of_the_requests_version_keeps_deferred_additions() {
    let world = check(REQUESTS, &[WAITED, HEAT, ANSWER]).await;
    lets_sam_in(&world).await;
    has_added_heat(&world).await;
}

#[tokio::test(start_paused = true)]
async fn database_of_the_console_version_is_upgraded() {
    let world = check(CONSOLE, &[WAITED, HEAT, ANSWER]).await;
    lets_sam_in(&world).await;
    has_added_heat(&world).await;
}

#[tokio::test(start_paused = true)]
async fn database_of_the_memory_version_keeps_searchable_answers() {
    let world = check(MEMORY, &[WAITED, HEAT, ANSWER]).await;
    lets_sam_in(&world).await;
    has_added_heat(&world).await;
    let found = "SELECT told AS line FROM response_words WHERE response_words MATCH 'dune' ORDER BY rowid";
    assert_eq!(world.lines(found).await[0], "Dune is there.");
}

#[tokio::test(start_paused = true)]
async fn database_of_the_words_version_assigns_messages_to_conversations() {
    let world = check(WORDS, &[WAITED, HEAT, ANSWER]).await;
    lets_sam_in(&world).await;
    has_added_heat(&world).await;
    let asides = "SELECT conversation_id || ' ' || body AS line FROM outbox WHERE conversation_id IS NOT NULL AND id <= 10
                  UNION ALL SELECT conversation_id || ' ' || body FROM inbound_events WHERE conversation_id IS NOT NULL";
    assert_eq!(world.lines(asides).await, ["3 Alien (1979) is ready to watch.", "3 thanks!"]);
}

#[tokio::test(start_paused = true)]
async fn database_of_the_asides_version_keeps_messages_searchable() {
    let world = check(ASIDES, &[WAITED, HEAT, ANSWER]).await;
    lets_sam_in(&world).await;
    has_added_heat(&world).await;
    let found =
        "SELECT body AS line FROM words_in WHERE words_in MATCH 'sam OR thanks OR have' ORDER BY rowid";
    assert_eq!(world.lines(found).await, ["have dune?", "I'm Sam", "thanks!"]);
}

#[tokio::test(start_paused = true)]
async fn database_from_before_explicit_follows_is_upgraded() {
    let world = check(AUDIT, &[WAITED, HEAT, ANSWER]).await;
    lets_sam_in(&world).await;
    has_added_heat(&world).await;
}

#[tokio::test(start_paused = true)]
async fn database_of_the_latest_release_keeps_explicit_follows() {
    let world = check(LATEST_RELEASE, &[WAITED, HEAT, ANSWER]).await;
    lets_sam_in(&world).await;
    has_added_heat(&world).await;
    assert_eq!(world.lines("SELECT catalog_id || '' AS line FROM follows WHERE explicit = 1").await, ["348"]);
    let codes = "SELECT id || ' ' || (error ->> '$.code') AS line FROM outbox WHERE delivery = 'undelivered'";
    assert_eq!(world.lines(codes).await, ["5 30003"]);
    // A block of event numbers was reserved after those of the stored events.
    let numbers = "SELECT iif(reserved_events > 1 << 20, 'later', 'reused') AS line FROM instance";
    assert_eq!(world.lines(numbers).await, ["later"]);
}

#[tokio::test(start_paused = true)]
async fn database_of_version_0_1_is_upgraded_with_an_application_id() {
    let world = check(FIRST_RELEASE, &[WAITED, HEAT, ANSWER]).await;
    lets_sam_in(&world).await;
    has_added_heat(&world).await;
    assert_eq!(
        world.lines("SELECT printf('%x', application_id) AS line FROM pragma_application_id").await,
        ["4469616c"]
    );
}

#[test]
fn every_released_version_has_upgrade_data() {
    let evenings = versions("tests/data/upgrades");
    let mut released = versions("migrations");
    released.retain(|version| version.as_str() <= LATEST_RELEASE);
    let missing: Vec<_> = released.iter().filter(|version| !evenings.contains(version)).collect();
    assert!(missing.is_empty(), "no rows in tests/data/upgrades for {missing:?}");
}

#[tokio::test(start_paused = true)]
async fn backup_before_an_upgrade_is_complete_and_deleted_after_a_month() {
    let world = upgraded(CONSOLE).await;
    let copy = world.database().with_file_name(copies(&world).remove(0));
    let again = World::upgraded(
        "2026-11-20T21:07:00Z",
        |file| assert!(std::fs::copy(&copy, file).unwrap() > 0),
        |_| {},
    )
    .await;
    assert_eq!(again.lines("SELECT address AS line FROM user_addresses ORDER BY address").await.len(), 4);

    were_made_days_ago(&world, 29);
    world.run_maintenance().await;
    assert_eq!(copies(&world).len(), 1);
    were_made_days_ago(&world, 31);
    world.run_maintenance().await;
    assert_eq!(copies(&world), Vec::<String>::new());
}
