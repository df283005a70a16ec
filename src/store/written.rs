//! A condition that stands written out in its statement. SQLite uses a partial index only where it can read the
//! condition, and prepares a statement anew at each use if a bound value had to be looked at for that
//! (<https://www.sqlite.org/partialindex.html>).

use std::marker::PhantomData;

use diesel::QueryResult;
use diesel::expression::{AppearsOnTable, Expression, SelectableExpression, ValidGrouping, is_aggregate};
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types::Bool;
use diesel::sqlite::Sqlite;

/// A condition on the rows of `T`.
#[derive(Debug)]
pub(super) struct Written<T> {
    sql: &'static str,
    table: PhantomData<T>,
}

/// `sql` must be the condition of a partial index of `T`, with its columns qualified.
pub(super) const fn written<T>(sql: &'static str) -> Written<T> {
    Written { sql, table: PhantomData }
}

impl<T> Clone for Written<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Written<T> {}

impl<T> Expression for Written<T> {
    type SqlType = Bool;
}

impl<T> SelectableExpression<T> for Written<T> {}
impl<T> AppearsOnTable<T> for Written<T> {}

impl<T> ValidGrouping<()> for Written<T> {
    type IsAggregate = is_aggregate::No;
}

/// The type does not tell the statement: it is cached by its text.
impl<T> QueryId for Written<T> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<T> QueryFragment<Sqlite> for Written<T> {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        pass.push_sql(self.sql);
        Ok(())
    }
}
