//! Tests of the conditions in the schema: constraints of tables, and conditions of partial indexes.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use diesel_migrations::MigrationHarness;

use super::migration::MIGRATIONS;
use crate::store::Conn;

/// Migration that replaces lists of values by comparisons.
const COMPARISONS_MIGRATION: &str = "20261125060000";

#[derive(Debug, PartialEq, QueryableByName)]
struct SchemaObject {
    #[diesel(sql_type = Text)]
    table_name: String,
    #[diesel(sql_type = Text)]
    sql: String,
}

#[derive(QueryableByName)]
struct ColumnName {
    #[diesel(sql_type = Text)]
    name: String,
}

#[derive(QueryableByName)]
struct CountRow {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

#[derive(QueryableByName)]
struct FaultRow {
    #[diesel(sql_type = Text)]
    fault: String,
}

fn load_schema(conn: &mut Conn) -> Vec<SchemaObject> {
    let query = "SELECT tbl_name AS table_name, replace(sql, char(10), ' ') AS sql FROM sqlite_schema
                 WHERE sql IS NOT NULL AND tbl_name <> 'stream_events' ORDER BY type, name";
    diesel::sql_query(query).load(conn).unwrap()
}

fn load_faults(conn: &mut Conn) -> Vec<String> {
    let query = "SELECT \"table\" || ' ' || parent AS fault FROM pragma_foreign_key_check
                 UNION ALL SELECT integrity_check FROM pragma_integrity_check";
    let rows: Vec<FaultRow> = diesel::sql_query(query).load(conn).unwrap();
    rows.into_iter().map(|row| row.fault).collect()
}

/// Returns the conditions of a table or an index.
fn parse_conditions(sql: &str) -> Vec<&str> {
    if let Some((_, condition)) = sql.split_once(" WHERE ").filter(|_| sql.contains(" INDEX ")) {
        return vec![condition];
    }
    let clauses = sql.split("CHECK (").skip(1).map(|clause| {
        let mut depth = 1;
        let is_end = |c: char| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        };
        &clause[..clause.find(is_end).unwrap()]
    });
    clauses.collect()
}

/// Counts the combinations of values for which two conditions of a table differ. The values are those that the first
/// condition names, another text, the numbers 0 to 2, and NULL.
fn count_differences(conn: &mut Conn, table: &str, conditions: (&str, &str)) -> i64 {
    let literals = conditions.0.split('\'').skip(1).step_by(2).map(|value| format!("('{value}')"));
    let values: Vec<String> =
        literals.chain(["('other'), (0), (1), (2), (NULL)"].map(str::to_owned)).collect();
    let values = values.join(", ");
    let is_named = |column: &ColumnName| {
        conditions.0.split(|c: char| c != '_' && !c.is_alphanumeric()).any(|word| word == column.name)
    };
    let columns: Vec<ColumnName> =
        diesel::sql_query("SELECT name FROM pragma_table_info(?)").bind::<Text, _>(table).load(conn).unwrap();
    let sources: Vec<String> = columns
        .iter()
        .filter(|column| is_named(column))
        .map(|column| format!("(SELECT column1 AS {} FROM (VALUES {values}))", column.name))
        .collect();
    let query = format!(
        "SELECT count(*) AS n FROM {} WHERE ({}) IS NOT ({})",
        sources.join(", "),
        conditions.0,
        conditions.1
    );
    diesel::sql_query(query).get_result::<CountRow>(conn).unwrap().n
}

#[test]
fn constraints_contain_no_list_of_values() {
    let mut conn = crate::store::scratch();
    let lists: Vec<SchemaObject> = load_schema(&mut conn)
        .into_iter()
        .filter(|object| object.sql.starts_with("CREATE TABLE"))
        .filter(|object| parse_conditions(&object.sql).iter().any(|condition| condition.contains(" IN ")))
        .collect();
    assert_eq!(lists, []);
}

#[test]
fn comparisons_allow_the_values_of_the_lists() {
    let mut conn = crate::store::scratch();
    while conn.revert_last_migration(MIGRATIONS).unwrap().to_string() != COMPARISONS_MIGRATION {}
    let with_lists = load_schema(&mut conn);
    conn.run_next_migration(MIGRATIONS).unwrap();
    let with_comparisons = load_schema(&mut conn);
    assert_eq!(with_lists.len(), with_comparisons.len());

    let mut changed_conditions = 0;
    for (lists, comparisons) in with_lists.iter().zip(&with_comparisons) {
        let (before, after) = (parse_conditions(&lists.sql), parse_conditions(&comparisons.sql));
        assert_eq!(before.len(), after.len(), "{}", comparisons.sql);
        for (before, after) in before.into_iter().zip(after).filter(|(before, after)| before != after) {
            changed_conditions += 1;
            let differences = count_differences(&mut conn, &lists.table_name, (before, after));
            assert_eq!(differences, 0, "{before} differs from {after}");
        }
    }
    assert_eq!(changed_conditions, 61);
    assert_eq!(load_faults(&mut conn), ["ok"]);

    conn.revert_last_migration(MIGRATIONS).unwrap();
    assert_eq!(load_schema(&mut conn), with_lists);
    assert_eq!(load_faults(&mut conn), ["ok"]);
}

#[test]
fn edited_constraint_rejects_an_unknown_value() {
    let mut conn = crate::store::scratch();
    let insert = |conn: &mut Conn, status: &str| {
        conn.batch_execute(&format!(
            "INSERT INTO users (status, created_at, updated_at) VALUES ('{status}', 1, 1)"
        ))
    };
    assert!(insert(&mut conn, "other").unwrap_err().to_string().starts_with("CHECK constraint failed"));
    insert(&mut conn, "active").unwrap();
}
