//! Stored states of the connections in the last 24 hours, and which losses the operator was alerted to.

use std::collections::BTreeSet;

use diesel::prelude::*;

use super::Conn;
use super::schema::connection_history;

/// States of one connection.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = connection_history)]
pub struct StoredHistory {
    pub name: String,
    /// Number of the newest quarter hour.
    pub last_quarter: i64,
    /// One character for each quarter hour, oldest first.
    pub states: String,
}

pub fn load_histories(conn: &mut Conn) -> QueryResult<Vec<StoredHistory>> {
    connection_history::table.select(StoredHistory::as_select()).load(conn)
}

/// Stores the states of these connections, and deletes those of connections without a check since `oldest_quarter`.
pub fn save_histories(conn: &mut Conn, histories: &[StoredHistory], oldest_quarter: i64) -> QueryResult<()> {
    for StoredHistory { name, last_quarter, states } in histories {
        let values =
            (connection_history::last_quarter.eq(*last_quarter), connection_history::states.eq(states));
        diesel::insert_into(connection_history::table)
            .values((connection_history::name.eq(name), values, connection_history::loss_reported.eq(false)))
            .on_conflict(connection_history::name)
            .do_update()
            .set(values)
            .execute(conn)?;
    }
    let old = connection_history::table.filter(connection_history::last_quarter.lt(oldest_quarter));
    diesel::delete(old).execute(conn).map(drop)
}

/// Loads the names of the connections whose loss was reported, and which were not reported to be back.
pub fn load_reported_losses(conn: &mut Conn) -> QueryResult<BTreeSet<String>> {
    let names = connection_history::table.filter(connection_history::loss_reported);
    names.select(connection_history::name).load(conn).map(|names: Vec<String>| names.into_iter().collect())
}

/// Records whether the loss of a connection was reported.
pub fn record_reported_loss(conn: &mut Conn, name: &str, is_reported: bool) -> QueryResult<()> {
    diesel::update(connection_history::table.find(name))
        .set(connection_history::loss_reported.eq(is_reported))
        .execute(conn)
        .map(drop)
}
