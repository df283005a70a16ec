//! Memory statistics for the operator.

use std::collections::BTreeMap;

use diesel::dsl::{self, AsSelect, count_star};
use diesel::prelude::*;
use diesel::sqlite::Sqlite;
use jiff::Timestamp;

use super::facts::FactState;
use super::indexing_queue::PENDING;
use super::responses::{AnswerState, FINDABLE};
use crate::conversation::memory::answer_metadata::ResponseType;
use crate::conversation::memory::recall::RecallScope;
use crate::store::column_types::StoredEnum;
use crate::store::database::literal_sql::literal_sql;
use crate::store::schema::{agent_responses, user_facts};
use crate::store::{Conn, QueryResult};

literal_sql! {
    /// Condition of the answers in the index by which they are counted.
    const COUNTED = "agent_responses.state <> 'pending'";
}

/// Numbers of stored answers by several criteria, each sorted by name, and of facts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredAnswerStats {
    /// By state: `pending`, `done`, `skipped`, `repeated`, `erased`.
    pub by_state: BTreeMap<String, i64>,
    /// Findable answers by scope: `user`, `group`, `global`.
    pub by_scope: BTreeMap<String, i64>,
    /// Findable answers by type, if their type is known.
    pub by_type: BTreeMap<String, i64>,
    /// Findable answers by the model of their vectors; answers without vectors have the key "".
    pub by_model: BTreeMap<String, i64>,
    /// Number of answers that could not be annotated or embedded on the last attempt.
    pub failing: i64,
    /// Number of active facts about users.
    pub facts: i64,
    /// Size of the vectors in the database, in bytes.
    pub vector_bytes: i64,
    /// Time at which an answer was last indexed.
    pub last_indexed_at: Option<Timestamp>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = agent_responses)]
struct AnswerCountRow {
    state: AnswerState,
    scope: RecallScope,
    response_type: Option<ResponseType>,
    embed_model: Option<String>,
    #[diesel(select_expression = count_star())]
    count: i64,
}

#[dsl::auto_type]
fn answer_counts() -> _ {
    let select: AsSelect<AnswerCountRow, Sqlite> = AnswerCountRow::as_select();
    agent_responses::table
        .group_by((
            agent_responses::state,
            agent_responses::scope,
            agent_responses::response_type,
            agent_responses::embed_model,
        ))
        .select(select)
}

pub fn load_answer_stats(conn: &mut Conn) -> QueryResult<StoredAnswerStats> {
    let mut rows: Vec<AnswerCountRow> = answer_counts().filter(COUNTED).load(conn)?;
    rows.extend(answer_counts().filter(PENDING).load::<AnswerCountRow>(conn)?);
    let mut stats = StoredAnswerStats::default();
    for AnswerCountRow { state, scope, response_type, embed_model, count } in rows {
        *stats.by_state.entry(state.as_text().to_owned()).or_default() += count;
        if !FINDABLE.contains(&state) {
            continue;
        }
        *stats.by_scope.entry(scope.as_text().to_owned()).or_default() += count;
        *stats.by_model.entry(embed_model.unwrap_or_default()).or_default() += count;
        if let Some(kind) = response_type {
            *stats.by_type.entry(kind.as_text().to_owned()).or_default() += count;
        }
    }
    for (model, count) in stats.by_model.iter().filter(|(model, _)| !model.is_empty()) {
        stats.vector_bytes += 2 * count * vector_size(conn, model)?;
    }
    stats.failing = agent_responses::table
        .filter(agent_responses::state.eq(AnswerState::Pending).and(agent_responses::attempts.gt(0)))
        .select(count_star())
        .first(conn)?;
    stats.facts =
        user_facts::table.filter(user_facts::state.eq(FactState::Active)).select(count_star()).first(conn)?;
    // An erased answer gets a new revision but keeps its time, so erased answers are excluded.
    let last_indexed_at: Option<Option<Timestamp>> = agent_responses::table
        .filter(
            agent_responses::processed_at.is_not_null().and(agent_responses::state.ne(AnswerState::Erased)),
        )
        .order(agent_responses::revision.desc())
        .select(agent_responses::processed_at)
        .first(conn)
        .optional()?;
    stats.last_indexed_at = last_indexed_at.flatten();
    Ok(stats)
}

/// Returns the size in bytes of one vector of a model: all vectors of a model have the same length.
fn vector_size(conn: &mut Conn, model: &str) -> QueryResult<i64> {
    let vector: Option<Option<Vec<u8>>> = agent_responses::table
        .filter(agent_responses::state.eq(AnswerState::Done).and(agent_responses::embed_model.eq(model)))
        .select(agent_responses::response_vec)
        .first(conn)
        .optional()?;
    Ok(vector.flatten().map_or(0, |vector| i64::try_from(vector.len()).unwrap_or(0)))
}
