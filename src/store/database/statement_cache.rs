//! Cache for prepared statements that Diesel does not cache.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use diesel::connection::LoadConnection;
use diesel::dsl::Returning;
use diesel::query_builder::{
    AsChangeset, AsQuery, AstPass, IntoUpdateTarget, Query, QueryBuilder, QueryFragment, QueryId,
    UpdateStatement,
};
use diesel::query_source::QuerySource;
use diesel::sql_types::BigInt;
use diesel::sqlite::{Sqlite, SqliteQueryBuilder};
use diesel::{QueryResult, RunQueryDsl, Table};

use crate::store::Conn;

/// Statement that is prepared once per connection. Diesel prepares each `UPDATE`, upsert and `sql_query` at every use,
/// since it cannot know how many different SQL strings may result (`AstPass::unsafe_to_cache_prepared`). Preparing an
/// `UPDATE` also compiles each trigger that the statement fires. For a `SELECT`, Diesel looks through all parts of the
/// statement at each use, which a cached one does not need. The statement is found by its type where the type
/// determines the SQL string, as of an `INSERT` without optional values or a [`cached_update`], else by the string.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct CachedStatement<S>(S);

/// Conversion of statements to [`CachedStatement`].
pub(in crate::store) trait CacheStatement: Sized {
    /// Caches the prepared statement. Use it only for statements with few possible SQL strings: each string is cached
    /// permanently.
    fn cached(self) -> CachedStatement<Self> {
        CachedStatement(self)
    }

    /// Caches the prepared statement, and finds it by the type `K`, which only this call uses. For a statement without a
    /// type of its own, such as an upsert, whose SQL string never changes.
    fn cached_as<K: 'static>(self) -> CachedStatement<KeyedStatement<Self, K>>
    where
        Self: QueryFragment<Sqlite>,
    {
        debug_assert_eq!(
            first_sql::<K>(&self),
            build_sql(&self),
            "the SQL string of a keyed statement changed"
        );
        CachedStatement(KeyedStatement { statement: self, key: PhantomData })
    }
}

impl<S> CacheStatement for S where S: QueryFragment<Sqlite> {}

/// Returns the SQL string with which `K` was used first.
fn first_sql<K: 'static>(statement: &impl QueryFragment<Sqlite>) -> String {
    static FIRST: Mutex<BTreeMap<TypeId, String>> = Mutex::new(BTreeMap::new());
    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    first.entry(TypeId::of::<K>()).or_insert_with(|| build_sql(statement)).clone()
}

fn build_sql(statement: &impl QueryFragment<Sqlite>) -> String {
    let mut sql = SqliteQueryBuilder::new();
    match statement.to_sql(&mut sql, &Sqlite) {
        Ok(()) => sql.finish(),
        Err(error) => error.to_string(),
    }
}

/// Statement with a type that determines its SQL string.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct KeyedStatement<S, K> {
    statement: S,
    key: PhantomData<K>,
}

impl<S, K: 'static> QueryId for KeyedStatement<S, K> {
    type QueryId = KeyedStatement<(), K>;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<S: Query, K> Query for KeyedStatement<S, K> {
    type SqlType = S::SqlType;
}

impl<S: QueryFragment<Sqlite>, K> QueryFragment<Sqlite> for KeyedStatement<S, K> {
    fn walk_ast<'b>(&'b self, pass: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        self.statement.walk_ast(pass)
    }
}

impl<S: QueryFragment<Sqlite> + QueryId> CachedStatement<S> {
    /// Runs the statement.
    pub(in crate::store) fn run(self, conn: &mut Conn) -> QueryResult<()> {
        // The statement runs as a query without rows: diesel borrows a statement that is only executed, and then does
        // not recognize that it is cached.
        for row in LoadConnection::load(conn, CachedExecution(self))? {
            row?;
        }
        Ok(())
    }
}

impl<S, C> RunQueryDsl<C> for CachedStatement<S> {}

impl<S: Query> Query for CachedStatement<S> {
    type SqlType = S::SqlType;
}

impl<S: QueryId> QueryId for CachedStatement<S> {
    type QueryId = CachedStatement<S::QueryId>;
    const HAS_STATIC_QUERY_ID: bool = S::HAS_STATIC_QUERY_ID;
}

impl<S: QueryFragment<Sqlite>> QueryFragment<Sqlite> for CachedStatement<S> {
    fn walk_ast<'b>(&'b self, pass: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        self.0.walk_ast(pass)
    }

    fn is_safe_to_cache_prepared(&self, _backend: &Sqlite) -> QueryResult<bool> {
        Ok(true)
    }
}

/// Starts an `UPDATE` that is prepared once and found by its type. The columns that it assigns must not vary: an `Option`
/// of an assignment does not compile.
pub(in crate::store) fn cached_update<T: IntoUpdateTarget>(
    target: T,
) -> CachedUpdateTarget<UpdateStatement<T::Table, T::WhereClause>> {
    CachedUpdateTarget(diesel::update(target))
}

/// Cached `UPDATE` that assigns the values `V`.
type CachedUpdate<T, U, V> =
    CachedStatement<TypedUpdate<UpdateStatement<T, U, <V as AsChangeset>::Changeset>, V>>;
/// Cached `UPDATE` that assigns the values `V` and returns the columns `E`.
type CachedReturning<T, U, C, V, E> = CachedStatement<TypedUpdate<Returning<UpdateStatement<T, U, C>, E>, V>>;

/// Cached `UPDATE` without assignments.
pub(in crate::store) struct CachedUpdateTarget<S>(S);

impl<T: Table, U> CachedUpdateTarget<UpdateStatement<T, U>> {
    /// Assigns values.
    pub(in crate::store) fn set<V: AsChangeset<Target = T>>(self, values: V) -> CachedUpdate<T, U, V>
    where
        UpdateStatement<T, U, V::Changeset>: AsQuery,
    {
        CachedStatement(TypedUpdate { statement: self.0.set(values), values: PhantomData })
    }
}

/// `UPDATE` with the values that it assigns as part of its type. Diesel's own type has none to find the statement by.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct TypedUpdate<S, V> {
    statement: S,
    values: PhantomData<V>,
}

impl<T: Table, U, C, V> CachedStatement<TypedUpdate<UpdateStatement<T, U, C>, V>> {
    /// Returns columns of each changed row.
    pub(in crate::store) fn returning<E>(self, columns: E) -> CachedReturning<T, U, C, V, E>
    where
        Returning<UpdateStatement<T, U, C>, E>: Query,
    {
        CachedStatement(TypedUpdate { statement: self.0.statement.returning(columns), values: PhantomData })
    }
}

impl<T, U, C, Ret, V> QueryId for TypedUpdate<UpdateStatement<T, U, C, Ret>, V>
where
    T: QuerySource + QueryId,
    U: QueryId,
    Ret: QueryId,
    V: QueryId,
{
    type QueryId = TypedUpdate<(T::QueryId, U::QueryId, Ret::QueryId), V::QueryId>;
    const HAS_STATIC_QUERY_ID: bool = T::HAS_STATIC_QUERY_ID
        && U::HAS_STATIC_QUERY_ID
        && Ret::HAS_STATIC_QUERY_ID
        && V::HAS_STATIC_QUERY_ID;
}

impl<S: Query, V> Query for TypedUpdate<S, V> {
    type SqlType = S::SqlType;
}

impl<S: QueryFragment<Sqlite>, V> QueryFragment<Sqlite> for TypedUpdate<S, V> {
    fn walk_ast<'b>(&'b self, pass: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        self.statement.walk_ast(pass)
    }
}

/// A cached statement as a query that returns no rows.
struct CachedExecution<S>(CachedStatement<S>);

impl<S> Query for CachedExecution<S> {
    type SqlType = BigInt;
}

impl<S: QueryId> QueryId for CachedExecution<S> {
    type QueryId = CachedStatement<S::QueryId>;
    const HAS_STATIC_QUERY_ID: bool = S::HAS_STATIC_QUERY_ID;
}

impl<S: QueryFragment<Sqlite>> QueryFragment<Sqlite> for CachedExecution<S> {
    fn walk_ast<'b>(&'b self, pass: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        self.0.walk_ast(pass)
    }

    fn is_safe_to_cache_prepared(&self, backend: &Sqlite) -> QueryResult<bool> {
        self.0.is_safe_to_cache_prepared(backend)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use diesel::connection::InstrumentationEvent;
    use diesel::prelude::*;
    use diesel::sql_query;

    use super::*;
    use crate::store::schema::{budget_blocks, conversations};
    use crate::store::scratch;

    /// Returns the number of statements that are cached while `work` runs twice.
    fn count_cached(work: impl Fn(&mut Conn)) -> usize {
        let mut conn = scratch();
        let count = Arc::new(Mutex::new(0));
        let shared_count = Arc::clone(&count);
        conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
            if let InstrumentationEvent::CacheQuery { .. } = event {
                *shared_count.lock().unwrap() += 1;
            }
        });
        work(&mut conn);
        work(&mut conn);
        *count.lock().unwrap()
    }

    #[test]
    fn update_is_prepared_once() {
        let name = || conversations::name.eq("Dune");
        let rename = || cached_update(conversations::table.find(1)).set(name());
        assert_eq!(count_cached(|conn| assert_eq!(rename().run(conn), Ok(()))), 1);
        // If this fails, diesel caches updates itself, and `CachedStatement` can be removed.
        let rename = || diesel::update(conversations::table.find(1)).set(name());
        assert_eq!(count_cached(|conn| assert_eq!(rename().execute(conn), Ok(0))), 0);
    }

    #[test]
    fn sql_query_is_prepared_once() {
        #[derive(Debug, PartialEq, QueryableByName)]
        struct Name {
            #[diesel(sql_type = diesel::sql_types::Text)]
            name: String,
        }
        let names = |conn: &mut Conn| sql_query("SELECT name FROM conversations").cached().load::<Name>(conn);
        assert_eq!(count_cached(|conn| assert_eq!(names(conn), Ok(Vec::new()))), 1);
    }

    #[test]
    fn upsert_with_a_key_is_prepared_once() {
        enum NewBlock {}
        let insert = |conn: &mut Conn| {
            diesel::insert_into(budget_blocks::table)
                .values((
                    budget_blocks::day.eq("2026-11-20"),
                    budget_blocks::epoch.eq(1),
                    budget_blocks::tokens.eq(1),
                    budget_blocks::cost_micros.eq(1),
                ))
                .on_conflict_do_nothing()
                .cached_as::<NewBlock>()
                .run(conn)
        };
        assert_eq!(count_cached(|conn| assert_eq!(insert(conn), Ok(()))), 1);
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "the SQL string of a keyed statement changed")]
    fn key_of_two_statements_is_detected() {
        enum TwoStatements {}
        for statement in ["SELECT 1", "SELECT 2"] {
            let _ = sql_query(statement).cached_as::<TwoStatements>();
        }
    }
}
