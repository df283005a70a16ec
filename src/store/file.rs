//! The file that holds all data: its path and its size.

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};

use super::Conn;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub path: String,
    pub bytes: u64,
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    path: String,
    #[diesel(sql_type = BigInt)]
    bytes: i64,
}

pub fn of(conn: &mut Conn) -> QueryResult<File> {
    let row: Row = diesel::sql_query(
        "SELECT file AS path, page_count * page_size AS bytes
         FROM pragma_database_list, pragma_page_count, pragma_page_size WHERE name = 'main'",
    )
    .get_result(conn)?;
    Ok(File { path: row.path, bytes: u64::try_from(row.bytes).unwrap_or(0) })
}
