//! Queries of the database, formatted as text for tests.

use dialarr::store::database::db::Db;
use dialarr::store::text_index;
use diesel::sql_types::{Nullable, Text};
use diesel::{QueryableByName, RunQueryDsl};

use super::TestApp;

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Nullable<Text>)]
    line: Option<String>,
}

/// Query for the lines of [`TestApp::usage`].
pub(super) const USAGE: &str =
    "SELECT day || ' ' || address || ': ' || model_calls || iif(model_calls = 1, ' call, ', ' calls, ')
         || tokens_in || '+' || tokens_out || ' tokens (' || tokens_cached || ' cached), cost ' || cost_micros
         || ', ' || segments || iif(segments = 1, ' segment', ' segments') AS line
     FROM usage JOIN user_addresses USING (user_id) ORDER BY day, address";

/// Query for the title requests and their status: `+15550100003 added radarr Dune (2021)`.
pub(super) const REQUESTS: &str =
    "SELECT address || ' ' || state || ' ' || instance || ' ' || title || ' (' || year || ')'
         || coalesce(' ' || seasons, '') AS line
     FROM requests JOIN user_addresses USING (user_id) ORDER BY requests.id";

/// Query for the followers of titles: `+15550100003 radarr movie 438631`, with the season of a series.
pub(super) const FOLLOWS: &str = "SELECT address || ' ' || instance || ' ' || kind || ' ' || catalog_id
         || coalesce(' season ' || season, '') AS line
     FROM follows JOIN user_addresses USING (user_id) WHERE ended_at IS NULL ORDER BY follows.id";

impl TestApp {
    /// Returns the lines of [`REQUESTS`].
    pub(crate) async fn requests(&self) -> Vec<String> {
        self.lines(REQUESTS).await
    }

    /// Returns the lines of [`FOLLOWS`].
    pub(crate) async fn follows(&self) -> Vec<String> {
        self.lines(FOLLOWS).await
    }

    /// Returns the received messages with the outcome of each: `add dune: replied`, `hi: skipped blocked`.
    pub(crate) async fn message_outcomes(&self) -> Vec<String> {
        self.lines(
            "SELECT body || ': ' || coalesce(outcome, state) || coalesce(' ' || outcome_reason, '') AS line
             FROM inbound_events ORDER BY id",
        )
        .await
    }

    /// Adds all messages to the full-text indexes, as the program does every minute.
    pub(crate) async fn index_new_text(&self) {
        self.app().db.write(text_index::index_new_text).await.unwrap();
    }

    /// Returns the bodies of the received messages.
    pub(crate) async fn stored_texts(&self) -> Vec<String> {
        self.lines("SELECT body AS line FROM inbound_events ORDER BY id").await
    }

    /// Returns the outbound messages with the outcome of each: `accepted 1 OK, kept.`, the number being the segments.
    pub(crate) async fn outbox(&self) -> Vec<String> {
        self.lines("SELECT state || ' ' || segments || ' ' || body AS line FROM outbox ORDER BY id").await
    }

    /// Returns the stored arr events of Sonarr and Radarr: `radarr movie`.
    pub(crate) async fn stored_events(&self) -> Vec<String> {
        self.lines("SELECT instance || ' ' || (event ->> 'kind') AS line FROM arr_events ORDER BY id").await
    }

    /// Returns the delivery status of each message, as the carrier reported it: `delivered`, `undelivered 30003`.
    pub(crate) async fn deliveries(&self) -> Vec<String> {
        self.lines(
            "SELECT coalesce(delivery, 'untold') || coalesce(' ' || (error ->> '$.code'), '') AS line
             FROM outbox ORDER BY id",
        )
        .await
    }

    /// Returns all known users: `+15550100002 active admin`.
    pub(crate) async fn people(&self) -> Vec<String> {
        self.lines(
            "SELECT address || ' ' || status || ' ' || role || iif(opted_out_at IS NULL, '', ' opted out') AS line
             FROM users JOIN user_addresses ON user_id = users.id ORDER BY address",
        )
        .await
    }

    /// Returns the usage of each user on each day: `2026-11-20 +15550100002: 1 call, 120+8 tokens (100 cached), cost 0,
    /// 1 segment`.
    pub(crate) async fn usage(&self) -> Vec<String> {
        self.lines(USAGE).await
    }

    /// Returns the number of running model calls according to the database.
    pub(crate) async fn running_call_count(&self) -> usize {
        self.lines("SELECT model AS line FROM llm_steps WHERE state = 'started'").await.len()
    }

    /// Returns the reasons of failed model calls, as worded for the operator.
    pub(crate) async fn failed_attempts(&self) -> Vec<String> {
        self.lines(
            "SELECT error ->> 'message' AS line FROM llm_steps WHERE state = 'abandoned' ORDER BY turn_id, step, attempt",
        )
        .await
    }

    /// Returns the conversations with the reason that each ended: `cleared`, `idle`, `open`.
    pub(crate) async fn conversations(&self) -> Vec<String> {
        self.lines("SELECT coalesce(end_reason, 'open') AS line FROM conversations ORDER BY id").await
    }

    /// Returns the number of rows that the program has inserted, changed or deleted since its start.
    pub(crate) async fn changed_rows(&self) -> i64 {
        let count = |conn: &mut _| {
            diesel::sql_query("SELECT CAST(total_changes() AS TEXT) AS line").load::<Line>(conn)
        };
        let lines = self.app().db.write(count).await.unwrap();
        lines[0].line.as_ref().unwrap().parse().unwrap()
    }

    /// Returns every column of every table that contains a word, in capitals or not, grouped or not.
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

    /// Returns the reactions with the messages they are on: `user 👍 on Added Dune (2021).`, `assistant 🎉 on thanks`.
    pub(crate) async fn reactions(&self) -> Vec<String> {
        self.lines(
            "SELECT r.author || ' ' || coalesce(r.emoji, 'something') || iif(r.removed_at IS NULL, '', ' taken back')
                 || coalesce(' on ' || coalesce(o.body, e.body), '') AS line
             FROM reactions r LEFT JOIN outbox o ON o.id = r.outbox_id LEFT JOIN inbound_events e ON e.id = r.event_id
             ORDER BY r.id",
        )
        .await
    }

    /// Returns the audit log: `write tool_call:3 by +15550100002`.
    pub(crate) async fn audit(&self) -> Vec<String> {
        self.lines(
            "SELECT a.kind || ' ' || a.subject || ' by ' || coalesce(u.address, json_extract(a.detail, '$.by')) AS line
             FROM audit_log a LEFT JOIN user_addresses u ON u.id = (SELECT min(id) FROM user_addresses WHERE user_id = a.user_id) ORDER BY a.id",
        )
        .await
    }

    /// Returns the start and end times of the ended conversations.
    pub(crate) async fn conversation_times(&self) -> Vec<String> {
        self.lines(
            "SELECT strftime('%Y-%m-%d %H:%M', started_at / 1000, 'unixepoch') || ' - '
                 || strftime('%Y-%m-%d %H:%M', ended_at / 1000, 'unixepoch') AS line
             FROM conversations WHERE ended_at IS NOT NULL ORDER BY id",
        )
        .await
    }

    /// Returns the names of the conversations.
    pub(crate) async fn conversation_names(&self) -> Vec<String> {
        self.lines("SELECT name AS line FROM conversations ORDER BY id").await
    }

    /// Makes every insert into the audit log fail from here on.
    pub(crate) async fn refuse_audit(&self) {
        self.execute(
            "CREATE TRIGGER no_audit BEFORE INSERT ON audit_log BEGIN SELECT RAISE(ABORT, 'no'); END",
        )
        .await;
    }

    /// Makes every insert of a reaction fail from here on.
    pub(crate) async fn refuse_reactions(&self) {
        self.execute(
            "CREATE TRIGGER no_reaction BEFORE INSERT ON reactions BEGIN SELECT RAISE(ABORT, 'no'); END",
        )
        .await;
    }

    /// Turns all API keys into keys from before scopes.
    pub(crate) async fn remove_key_scopes(&self) {
        self.execute("UPDATE api_keys SET scope = 'unscoped'").await;
    }

    pub(crate) async fn execute(&self, statement: &'static str) {
        let execute = move |conn: &mut _| diesel::sql_query(statement).execute(conn).map(drop);
        self.app().db.write(execute).await.unwrap();
    }

    /// Makes every insert of a message fail from here on, as with a full disk.
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

    /// Returns every byte of the database's files that is text.
    pub(crate) fn whole_database(&self) -> String {
        let file = |name| std::fs::read(self.world.folder.path().join(name)).unwrap();
        ["test.db", "test.db-wal"].map(|name| String::from_utf8_lossy(&file(name)).into_owned()).concat()
    }

    /// Returns the number of rows of a table.
    pub(crate) async fn count(&self, table: &str) -> usize {
        let query = format!("SELECT '' AS line FROM {table}");
        let rows = move |conn: &mut _| diesel::sql_query(query).load::<Line>(conn);
        self.app().db.read(rows).await.unwrap().len()
    }

    pub(crate) async fn lines(&self, query: &'static str) -> Vec<String> {
        lines(&self.app().db, query).await
    }
}

/// Returns the column `line` of every row.
pub(crate) async fn lines(db: &Db, query: &'static str) -> Vec<String> {
    let rows = db.read(move |conn| diesel::sql_query(query).load::<Line>(conn)).await.unwrap();
    rows.into_iter().map(|row| row.line.unwrap_or_default()).collect()
}
