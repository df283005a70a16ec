//! Made-up texts of the last 30 days for `dialarr demo`, so that the pages of the console have content.

use diesel::connection::SimpleConnection;

use super::{Conn, QueryResult};

/// Fills a new database, in which the only user is the admin.
pub fn insert_demo_history(conn: &mut Conn) -> QueryResult<()> {
    conn.batch_execute(include_str!("demo_history.sql"))
}
