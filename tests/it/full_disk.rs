//! Disks without space: a record that fails is made again once the disk has space, without a restart.

use diesel::connection::SimpleConnection;

use crate::harness::model::says;
use crate::harness::world::World;

const FULL: &str = "SELECT RAISE(ABORT, 'database or disk is full'); END";

/// Starts a program, of which the updates that match `condition` fail.
async fn world_without_space_for(table: &'static str, condition: &'static str) -> World {
    let world = World::start().await;
    let trigger = format!("CREATE TRIGGER full BEFORE UPDATE ON {table} WHEN {condition} BEGIN {FULL}");
    world.write_database(move |conn| conn.batch_execute(&trigger)).await;
    world
}

async fn free_space(world: &World) {
    world.write_database(|conn| conn.batch_execute("DROP TRIGGER full")).await;
}

#[tokio::test(start_paused = true)]
async fn send_without_a_record_is_recorded_when_space_is_free() {
    let world = world_without_space_for("outbox", "NEW.state = 'accepted'").await;
    world.model_plays([says("One."), says("Two.")]);
    world.texts("first").await;
    world.pass(10).await;
    assert_eq!(world.sent_texts(), ["One."]);

    free_space(&world).await;
    world.pass(40).await;
    world.texts("second").await;
    world.pass(10).await;
    assert_eq!(world.sent_texts(), ["One.", "Two."]);
    assert_eq!(world.lines("SELECT state AS line FROM outbox ORDER BY id").await, ["accepted", "accepted"]);
}

#[tokio::test(start_paused = true)]
async fn attempt_without_a_record_ends_with_its_canceled_turn() {
    let world = world_without_space_for("llm_steps", "NEW.state <> 'started'").await;
    world.model_plays((0..20).map(|_| says("Answered.")));
    world.texts("hello").await;
    world.pass(3).await;
    assert_eq!(world.sent_texts(), [""; 0]);

    world.texts("never mind").await;
    free_space(&world).await;
    world.pass(10).await;
    let states = "SELECT DISTINCT state AS line FROM llm_steps WHERE turn_id = 1";
    assert_eq!(world.lines(states).await, ["abandoned"]);
}
