//! Messages of earlier months, which are written to the database before the program starts.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;

use super::stage::Stage;

/// A million messages of all users with their replies, one an hour.
pub(crate) const A_MILLION: &str = include_str!("a_million.sql");
/// 50,000 messages of one user in one conversation without a pause, the longest possible history.
pub(crate) const LONG_HISTORY: &str = include_str!("../../tests/data/long_history.sql");

pub(crate) fn store_messages(stage: &Stage, script: &str) {
    let mut conn = SqliteConnection::establish(stage.database().to_str().unwrap()).unwrap();
    conn.batch_execute(script).unwrap();
}
