//! A condition that stands written out in its statement.

use diesel::QueryResult;
use diesel::expression::{AppearsOnTable, Expression, SelectableExpression, ValidGrouping, is_aggregate};
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types::Bool;
use diesel::sqlite::Sqlite;

/// The condition of a partial index word for word, with its columns qualified. SQLite uses a partial index only where it
/// can read the index's condition in the statement (<https://www.sqlite.org/partialindex.html>); diesel's own way to
/// write one, `sql`, has the statement prepared anew at each use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written(pub(super) &'static str);

impl Expression for Written {
    type SqlType = Bool;
}

impl<Source> SelectableExpression<Source> for Written {}
impl<Source> AppearsOnTable<Source> for Written {}

impl ValidGrouping<()> for Written {
    type IsAggregate = is_aggregate::No;
}

/// The type does not tell the statement: it is cached by its text.
impl QueryId for Written {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl QueryFragment<Sqlite> for Written {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        pass.push_sql(self.0);
        Ok(())
    }
}
