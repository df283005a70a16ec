//! Stored state of the program, read by a second process.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text};

use super::stage::Stage;

pub(crate) struct Ledger {
    pub(crate) events: Vec<Event>,
    pub(crate) outbox: Vec<Outgoing>,
    /// Turns, calls, items and confirmation prompts that wait for an event.
    pub(crate) open: Vec<Open>,
    /// Replies without a row in `agent_responses`, which cannot be found again.
    pub(crate) unremembered: Vec<Open>,
}

#[derive(Debug, QueryableByName)]
pub(crate) struct Event {
    #[diesel(sql_type = Text)]
    pub(crate) external_id: String,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) outcome: Option<String>,
    #[diesel(sql_type = Nullable<BigInt>)]
    pub(crate) turn_id: Option<i64>,
}

#[derive(Debug, QueryableByName)]
pub(crate) struct Outgoing {
    #[diesel(sql_type = Text)]
    pub(crate) dedupe_key: String,
    #[diesel(sql_type = Nullable<BigInt>)]
    pub(crate) turn_id: Option<i64>,
    #[diesel(sql_type = Text)]
    pub(crate) state: String,
    #[diesel(sql_type = Text)]
    pub(crate) to_addr: String,
    #[diesel(sql_type = Text)]
    pub(crate) body: String,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) provider_sid: Option<String>,
}

#[derive(Debug, QueryableByName)]
pub(crate) struct Open {
    #[diesel(sql_type = Text)]
    pub(crate) what: String,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

const OPEN: &str = "
    SELECT 'turn ' || id || ' ' || state AS what FROM turns WHERE finished_at IS NULL
    UNION ALL SELECT 'call ' || id || ' ' || state FROM tool_calls
        WHERE state IN ('created', 'held', 'running', 'unknown')
    UNION ALL SELECT 'item ' || ord || ' of call ' || tool_call_id || ' ' || state FROM tool_call_items
        WHERE state IN ('held', 'running', 'unknown')
    UNION ALL SELECT 'step of turn ' || turn_id FROM llm_steps WHERE state = 'started'
    UNION ALL SELECT 'question of user ' || user_id FROM pending_actions";

const UNREMEMBERED: &str = "
    SELECT 'the answer of turn ' || turns.id AS what FROM turns
    JOIN outbox ON outbox.turn_id = turns.id AND outbox.kind = 'reply'
    WHERE turns.kind IN ('chat', 'confirm')
        AND EXISTS (SELECT 1 FROM inbound_events WHERE turn_id = turns.id AND outcome = 'replied')
        AND NOT EXISTS (SELECT 1 FROM agent_responses WHERE agent_responses.turn_id = turns.id)";

/// Query for the work that the program still has to do.
const UNSETTLED: &str = "
    SELECT (SELECT count(*) FROM inbound_events WHERE outcome IS NULL)
         + (SELECT count(*) FROM turns WHERE finished_at IS NULL)
         + (SELECT count(*) FROM outbox WHERE state IN ('queued', 'attempting', 'unknown')) AS n";

impl Ledger {
    pub(crate) fn read(stage: &Stage) -> Self {
        let mut conn = connect(stage);
        let events = "SELECT external_id, outcome, turn_id FROM inbound_events ORDER BY id";
        let outbox = "SELECT dedupe_key, turn_id, state, to_addr, body, provider_sid FROM outbox ORDER BY id";
        Self {
            events: diesel::sql_query(events).load(&mut conn).unwrap(),
            outbox: diesel::sql_query(outbox).load(&mut conn).unwrap(),
            open: diesel::sql_query(OPEN).load(&mut conn).unwrap(),
            unremembered: diesel::sql_query(UNREMEMBERED).load(&mut conn).unwrap(),
        }
    }
}

/// Returns whether all messages are answered and sent. Call this only while the program runs.
pub(crate) fn is_settled(stage: &Stage) -> bool {
    count(stage, UNSETTLED) == 0
}

pub(crate) fn count(stage: &Stage, query: &str) -> i64 {
    diesel::sql_query(query).get_result::<Count>(&mut connect(stage)).unwrap().n
}

fn connect(stage: &Stage) -> SqliteConnection {
    let mut conn = SqliteConnection::establish(stage.database().to_str().unwrap()).unwrap();
    conn.batch_execute("PRAGMA busy_timeout=5000; PRAGMA query_only=ON;").unwrap();
    conn
}
