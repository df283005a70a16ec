//! Path and size of the database file.

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};

use crate::store::Conn;

/// Path of the database file, and its size without the write-ahead log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseFileSize {
    pub path: String,
    pub bytes: u64,
}

#[derive(QueryableByName)]
struct DatabaseFileSizeRow {
    #[diesel(sql_type = Text)]
    path: String,
    #[diesel(sql_type = BigInt)]
    bytes: i64,
}

pub fn load_database_file_size(conn: &mut Conn) -> QueryResult<DatabaseFileSize> {
    let row: DatabaseFileSizeRow = diesel::sql_query(
        "SELECT file AS path, page_count * page_size AS bytes
         FROM pragma_database_list, pragma_page_count, pragma_page_size WHERE name = 'main'",
    )
    .get_result(conn)?;
    Ok(DatabaseFileSize { path: row.path, bytes: u64::try_from(row.bytes).unwrap_or(0) })
}
