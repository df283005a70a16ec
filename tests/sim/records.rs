//! Database contents as a checker reads them: each table a list of rows, each row its columns by name.

use std::path::Path;

use diesel::prelude::*;
use diesel::sql_types::Text;
use serde_json::Value;

/// Stored state of the program.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Records {
    pub users: Vec<Value>,
    pub turns: Vec<Value>,
    pub events: Vec<Value>,
    pub steps: Vec<Value>,
    pub calls: Vec<Value>,
    pub items: Vec<Value>,
    pub outbox: Vec<Value>,
    pub pending: Vec<Value>,
    pub conversations: Vec<Value>,
    pub notes: Vec<Value>,
    pub approvals: Vec<Value>,
    pub pauses: Vec<Value>,
    pub requests: Vec<Value>,
    pub arr_events: Vec<Value>,
    pub services: Vec<Value>,
    pub votes: Vec<Value>,
    pub ballots: Vec<Value>,
    pub vote_messages: Vec<Value>,
    pub reactions: Vec<Value>,
    pub proposals: Vec<Value>,
    pub proposal_titles: Vec<Value>,
    pub kept_titles: Vec<Value>,
    pub digest_settings: Vec<Value>,
    pub digest_lines: Vec<Value>,
    pub agent_calls: Vec<Value>,
}

impl Records {
    pub(crate) fn tables(&mut self) -> [&mut Vec<Value>; 8] {
        let Self { turns, events, steps, calls, items, outbox, approvals, requests, .. } = self;
        [turns, events, steps, calls, items, outbox, approvals, requests]
    }

    pub(crate) fn of(database: &Path) -> Self {
        let mut conn = SqliteConnection::establish(database.to_str().unwrap()).unwrap();
        let users = users(&mut conn);
        let mut rows = |table| rows(&mut conn, table);
        Self {
            users,
            turns: rows("turns"),
            events: rows("inbound_events"),
            steps: rows("llm_steps"),
            calls: rows("tool_calls"),
            items: rows("tool_call_items"),
            outbox: rows("outbox"),
            pending: rows("pending_actions"),
            conversations: rows("conversations"),
            notes: rows("audit_log"),
            approvals: rows("approvals"),
            pauses: rows("pauses"),
            requests: rows("requests"),
            arr_events: rows("arr_events"),
            services: rows("service_identities"),
            votes: rows("votes"),
            ballots: rows("ballots"),
            vote_messages: rows("vote_messages"),
            reactions: rows("reactions"),
            proposals: rows("space_proposals"),
            proposal_titles: rows("space_proposal_titles"),
            kept_titles: rows("kept_titles"),
            digest_settings: rows("digest_settings"),
            digest_lines: rows("digest_lines"),
            agent_calls: rows("agent_calls"),
        }
    }

    /// Returns the lists of received messages whose position is stored.
    pub(crate) fn sources(database: &Path) -> Vec<String> {
        let mut conn = SqliteConnection::establish(database.to_str().unwrap()).unwrap();
        rows(&mut conn, "offsets").iter().map(|row| word(row, "source").to_owned()).collect()
    }

    /// Returns the calls of agents that ask their person about a deletion.
    pub(crate) fn questions_of_agents(database: &Path) -> Vec<Value> {
        let mut conn = SqliteConnection::establish(database.to_str().unwrap()).unwrap();
        let mut calls = rows(&mut conn, "agent_calls");
        calls.retain(|call| word(call, "effect") == "destructive");
        calls
    }

    /// Returns the texts of each stored answer. They are no part of the records, because they are indexed later.
    pub(crate) fn stored_answers(database: &Path) -> Vec<String> {
        let mut conn = SqliteConnection::establish(database.to_str().unwrap()).unwrap();
        let texts = "SELECT concat_ws(' ', trigger_text, response_text, summary, topics, keywords) AS line FROM \
                     agent_responses";
        let lines: Vec<Line> = diesel::sql_query(texts).load(&mut conn).unwrap();
        lines.into_iter().map(|line| line.line).collect()
    }

    /// Returns the mark of a list of received messages; `None` if no position is stored.
    pub(crate) fn mark(database: &Path, source: &str) -> Option<String> {
        let mut conn = SqliteConnection::establish(database.to_str().unwrap()).unwrap();
        let offsets = rows(&mut conn, "offsets");
        let offset = offsets.iter().find(|row| word(row, "source") == source);
        offset.map(|row| word(row, "mark").to_owned())
    }

    /// Returns the rows that are in only one of two records.
    pub(crate) fn changed_rows<'a>(&'a self, other: &'a Self) -> Vec<&'a Value> {
        let tables = self.all_tables().into_iter().zip(other.all_tables());
        let changed = tables.flat_map(|(rows, others)| {
            let removed = rows.iter().filter(|row| !others.contains(row));
            removed.chain(others.iter().filter(|row| !rows.contains(row)))
        });
        changed.collect()
    }

    fn all_tables(&self) -> [&Vec<Value>; 25] {
        [
            &self.users,
            &self.turns,
            &self.events,
            &self.steps,
            &self.calls,
            &self.items,
            &self.outbox,
            &self.pending,
            &self.conversations,
            &self.notes,
            &self.approvals,
            &self.pauses,
            &self.requests,
            &self.arr_events,
            &self.services,
            &self.votes,
            &self.ballots,
            &self.vote_messages,
            &self.reactions,
            &self.proposals,
            &self.proposal_titles,
            &self.kept_titles,
            &self.digest_settings,
            &self.digest_lines,
            &self.agent_calls,
        ]
    }

    /// Returns the number of recorded calls of the model.
    pub(crate) fn model_attempts(&self) -> usize {
        self.steps.iter().filter(|step| word(step, "brain") == "model").count()
    }
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

fn rows(conn: &mut SqliteConnection, table: &str) -> Vec<Value> {
    let columns = format!(
        "SELECT group_concat(quote(name) || ',\"' || name || '\"') AS line FROM pragma_table_info('{table}')"
    );
    let columns: Line = diesel::sql_query(columns).get_result(conn).unwrap();
    let lines = format!("SELECT json_object({}) AS line FROM {table} ORDER BY 1", columns.line);
    let lines: Vec<Line> = diesel::sql_query(lines).load(conn).unwrap();
    let mut rows: Vec<Value> = lines.iter().map(|line| serde_json::from_str(&line.line).unwrap()).collect();
    rows.sort_by_key(|row| row["id"].as_i64());
    rows
}

/// Returns the users, each with the number and the opt-out of its first address. The number of an account at Telegram is
/// that of its person.
fn users(conn: &mut SqliteConnection) -> Vec<Value> {
    let addresses = rows(conn, "user_addresses");
    let mut users = rows(conn, "users");
    for user in &mut users {
        let first = addresses.iter().find(|address| address["user_id"] == user["id"]).cloned();
        let first = first.unwrap_or_default();
        user["phone"] = word(&first, "address").replace("telegram:", "+").into();
        user["opted_out_at"] = first["opted_out_at"].clone();
    }
    users
}

/// Returns a number of a row, 0 if there is none.
pub(crate) fn number(row: &Value, column: &str) -> i64 {
    row[column].as_i64().unwrap_or_default()
}

pub(crate) fn word<'a>(row: &'a Value, column: &str) -> &'a str {
    row[column].as_str().unwrap_or_default()
}

pub(crate) fn by_id(rows: &[Value], id: i64) -> Option<&Value> {
    rows.iter().find(|row| number(row, "id") == id)
}
