//! What a test may know of the database, in words.

use dialarr::store::db::Db;
use diesel::sql_types::{Nullable, Text};
use diesel::{QueryableByName, RunQueryDsl};

use super::TestApp;

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Nullable<Text>)]
    line: Option<String>,
}

impl TestApp {
    /// The received texts with what became of each: `add dune: replied`, `hi: skipped blocked`.
    pub(crate) async fn fates(&self) -> Vec<String> {
        self.lines(
            "SELECT body || ': ' || coalesce(outcome, state) || coalesce(' ' || outcome_reason, '') AS line
             FROM inbound_events ORDER BY id",
        )
        .await
    }

    /// The bodies of the received texts.
    pub(crate) async fn texts_stored(&self) -> Vec<String> {
        self.lines("SELECT body AS line FROM inbound_events ORDER BY id").await
    }

    /// The texts to send with what became of each: `accepted 1 OK, kept.`, the number being the segments.
    pub(crate) async fn outbox(&self) -> Vec<String> {
        self.lines("SELECT state || ' ' || segments || ' ' || body AS line FROM outbox ORDER BY id").await
    }

    /// How far the delivery of each text has come, as the carrier told it.
    pub(crate) async fn deliveries(&self) -> Vec<String> {
        self.lines("SELECT coalesce(delivery, 'untold') AS line FROM outbox ORDER BY id").await
    }

    /// Every report of the carrier, by text and word: `delivered`, `undelivered 30003`.
    pub(crate) async fn reports(&self) -> Vec<String> {
        self.lines(
            "SELECT status || coalesce(' ' || error_code, '') AS line FROM delivery_events ORDER BY provider_sid, status",
        )
        .await
    }

    /// Everyone who is known: `+15550100002 active admin`.
    pub(crate) async fn people(&self) -> Vec<String> {
        self.lines(
            "SELECT phone || ' ' || status || ' ' || role || iif(opted_out_at IS NULL, '', ' opted out') AS line
             FROM users ORDER BY phone",
        )
        .await
    }

    /// The conversations with why each ended: `cleared`, `idle`, `open`.
    pub(crate) async fn conversations(&self) -> Vec<String> {
        self.lines("SELECT coalesce(end_reason, 'open') AS line FROM conversations ORDER BY id").await
    }

    /// Every column of every table in which a word stands, in capitals or not, grouped or not.
    pub(crate) async fn columns_with(&self, word: &'static str) -> Vec<String> {
        let columns = self
            .lines(
                "SELECT m.name || ' ' || c.name AS line FROM sqlite_master m, pragma_table_info(m.name) c
                 WHERE m.type = 'table' AND c.type = 'TEXT' ORDER BY line",
            )
            .await;
        let mut found = Vec::new();
        for column in columns {
            let (table, name) = column.split_once(' ').unwrap();
            let query = format!(
                "SELECT '' AS line FROM \"{table}\" WHERE instr(replace(lower(\"{name}\"), ' ', ''), '{word}') > 0"
            );
            let rows = move |conn: &mut _| diesel::sql_query(query).load::<Line>(conn);
            if !self.app().db.read(rows).await.unwrap().is_empty() {
                found.push(column);
            }
        }
        found
    }

    /// No text can be stored any more, as with a disk that is full.
    pub(crate) async fn refuse_texts(&self) {
        self.app()
            .db
            .write(|conn| {
                diesel::sql_query(
                    "CREATE TRIGGER full BEFORE INSERT ON inbound_events
                     BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END",
                )
                .execute(conn)
                .map(drop)
            })
            .await
            .unwrap();
    }

    pub(crate) async fn accept_texts(&self) {
        self.app()
            .db
            .write(|conn| diesel::sql_query("DROP TRIGGER full").execute(conn).map(drop))
            .await
            .unwrap();
    }

    async fn lines(&self, query: &'static str) -> Vec<String> {
        lines(&self.app().db, query).await
    }
}

/// The column `line` of every row.
pub(crate) async fn lines(db: &Db, query: &'static str) -> Vec<String> {
    let rows = db.read(move |conn| diesel::sql_query(query).load::<Line>(conn)).await.unwrap();
    rows.into_iter().map(|row| row.line.unwrap_or_default()).collect()
}
