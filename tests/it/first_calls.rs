//! Model calls that are prepared before their turn is created, while something changes in between.

use std::collections::BTreeSet;

use dialarr::conversation::transcript::ConversationId;
use dialarr::store::Conn;
use dialarr::store::conversation::conversations::{self, EndReason};
use dialarr::store::database::shell_access;
use dialarr::store::privacy::erase_answer;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use jiff::Timestamp;

use crate::harness::model::says;
use crate::harness::world::World;

/// Longest time between a message and a change. The rounds of a test end when the turn was created before the change.
const MAX_WAIT_MS: u64 = 30;
const MINUTE: u64 = 60;

/// Change of the database by a command in another process.
type Command = fn(&mut Conn) -> QueryResult<()>;

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

/// Sends a message, and changes the database with a command some time after it. Returns the number of turns before the
/// change.
async fn text_before_command(world: &World, (body, wait_ms): (&str, u64), command: Command) -> i64 {
    let path = world.database();
    let change = async {
        world.pass_ms(wait_ms).await;
        let work = |conn: &mut Conn| {
            let turns = diesel::sql_query("SELECT count(*) AS n FROM turns").get_result::<Count>(conn)?.n;
            command(conn)?;
            Ok(turns)
        };
        shell_access::visit_database(path.to_str().unwrap(), work).unwrap()
    };
    let ((), turns) = tokio::join!(world.texts(body), change);
    world.pass(MINUTE).await;
    turns
}

/// Gets an answer to `question`, and sends `body` after a pause, while a command removes the answer, in each round later.
/// Checks that the request contains the answer only if its turn was created before the command.
async fn check_requests(question: &str, (pause, body): (u64, &str), command: Command) {
    let mut turn_counts = BTreeSet::new();
    for wait_ms in 0..MAX_WAIT_MS {
        let world = World::start().await;
        world.model_plays([says("Heat from 1995 is about robbers."), says("Hello.")]);
        world.sms(question).await;
        world.pass(pause).await;
        let turns = text_before_command(&world, (body, wait_ms), command).await;
        let request = world.last_request_text();
        assert_eq!(request.contains("Heat from 1995"), turns == 2, "{wait_ms}: {request}");
        turn_counts.insert(turns);
        if turns == 2 {
            break;
        }
    }
    // Both orders occurred.
    assert_eq!(turn_counts.into_iter().collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn message_before_the_creation_of_a_turn_is_in_its_first_request() {
    let mut turn_counts = BTreeSet::new();
    for wait_ms in 0..MAX_WAIT_MS {
        let world = World::start().await;
        world.model_plays([says("Fine."), says("It rains.")]);
        let second = async {
            world.pass_ms(wait_ms).await;
            world.texts("and how is the weather?").await;
        };
        tokio::join!(world.texts("how are you today?"), second);
        world.pass(MINUTE).await;
        let turns = world.lines("SELECT count(*) AS line FROM turns").await.remove(0);
        let request = world.last_request_text();
        assert!(
            request.contains("how are you today?") && request.contains("and how is the weather?"),
            "{request}"
        );
        let was_created = turns == "2";
        turn_counts.insert(turns);
        if was_created {
            break;
        }
    }
    assert_eq!(turn_counts.into_iter().collect::<Vec<_>>(), ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn answer_erased_before_the_creation_of_a_turn_is_not_recalled() {
    let again = (30 * MINUTE, "the film about robbers again");
    check_requests("which film is about robbers", again, |conn| {
        erase_answer(conn, 1, Timestamp::UNIX_EPOCH).map(|erased| assert!(erased))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn conversation_cleared_before_the_creation_of_a_turn_is_not_in_its_request() {
    check_requests("which film is about robbers", (0, "how are you today?"), |conn| {
        conversations::end_conversation(conn, ConversationId(1), EndReason::Cleared, Timestamp::UNIX_EPOCH)
            .map(drop)
    })
    .await;
}
