//! Condition that a statement contains as literal SQL.

use diesel::QueryResult;
use diesel::expression::{AppearsOnTable, Expression, SelectableExpression, ValidGrouping, is_aggregate};
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types::Bool;
use diesel::sqlite::Sqlite;

/// Literal condition of a partial index, with qualified columns. SQLite uses a partial index only if the statement
/// contains the condition of the index (<https://www.sqlite.org/partialindex.html>). Diesel's own function for literal
/// SQL, `sql`, causes the statement to be prepared again at each use.
#[derive(Debug, Clone, Copy)]
pub struct LiteralSql(pub(in crate::store) &'static str);

impl Expression for LiteralSql {
    type SqlType = Bool;
}

impl<Source> SelectableExpression<Source> for LiteralSql {}
impl<Source> AppearsOnTable<Source> for LiteralSql {}

impl ValidGrouping<()> for LiteralSql {
    type IsAggregate = is_aggregate::No;
}

/// The type does not identify the statement, so the statement is cached by its SQL string.
impl QueryId for LiteralSql {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl QueryFragment<Sqlite> for LiteralSql {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        pass.push_sql(self.0);
        Ok(())
    }
}
