//! Literal SQL in a statement that Diesel finds by its type.

use std::marker::PhantomData;

use diesel::QueryResult;
use diesel::expression::{
    AppearsOnTable, Expression, SelectableExpression, TypedExpressionType, ValidGrouping, is_aggregate,
};
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types::Bool;
use diesel::sqlite::Sqlite;

/// Literal expression with qualified columns, which [`literal_sql`] defines. It is a condition unless it has another SQL
/// type. SQLite uses a partial index only if the statement contains the condition of the index
/// (<https://www.sqlite.org/partialindex.html>). The hash of the text is part of the type, so that diesel finds a prepared
/// statement by its type. Diesel's own function for literal SQL, `sql`, causes the statement to be prepared again at each
/// use.
#[derive(Debug, Clone, Copy)]
pub struct LiteralSql<const HASH: u64, ST = Bool> {
    sql: &'static str,
    sql_type: PhantomData<ST>,
}

/// Defines constants of literal SQL.
macro_rules! literal_sql {
    ($($(#[$attribute:meta])* $visibility:vis const $name:ident $(: $sql_type:ty)? = $sql:expr;)+) => {$(
        $(#[$attribute])*
        $visibility const $name: $crate::store::database::literal_sql::LiteralSql<
            { $crate::store::database::literal_sql::hash_sql($sql) },
            $($sql_type)?
        > = $crate::store::database::literal_sql::LiteralSql::new($sql);
    )+};
}
pub(in crate::store) use literal_sql;

impl<const HASH: u64, ST> LiteralSql<HASH, ST> {
    /// Fails to compile in a constant if the hash is not that of the text.
    pub(in crate::store) const fn new(sql: &'static str) -> Self {
        assert!(hash_sql(sql) == HASH);
        Self { sql, sql_type: PhantomData }
    }

    /// Returns the hash, to name the type of a constant.
    pub(in crate::store) const fn hash(self) -> u64 {
        HASH
    }
}

/// Returns the 64-bit FNV-1a hash of a text.
pub(in crate::store) const fn hash_sql(sql: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut rest = sql.as_bytes();
    while let [byte, others @ ..] = rest {
        hash = (hash ^ *byte as u64).wrapping_mul(0x0100_0000_01b3);
        rest = others;
    }
    hash
}

impl<const HASH: u64, ST: TypedExpressionType> Expression for LiteralSql<HASH, ST> {
    type SqlType = ST;
}

impl<const HASH: u64, ST: TypedExpressionType, Source> SelectableExpression<Source> for LiteralSql<HASH, ST> {}
impl<const HASH: u64, ST: TypedExpressionType, Source> AppearsOnTable<Source> for LiteralSql<HASH, ST> {}

impl<const HASH: u64, ST> ValidGrouping<()> for LiteralSql<HASH, ST> {
    type IsAggregate = is_aggregate::No;
}

impl<const HASH: u64, ST: 'static> QueryId for LiteralSql<HASH, ST> {
    type QueryId = Self;
}

impl<const HASH: u64, ST> QueryFragment<Sqlite> for LiteralSql<HASH, ST> {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        pass.push_sql(self.sql);
        Ok(())
    }
}
