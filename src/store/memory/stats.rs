//! Memory statistics for the operator.

use std::collections::BTreeMap;

use diesel::dsl::count_star;
use diesel::prelude::*;
use jiff::Timestamp;

use crate::store::codec::timestamp_from_ms;
use crate::store::schema::{agent_responses, user_facts};
use crate::store::{Conn, QueryResult};

/// Number of answers by several criteria, each in the order of the names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredAnswerStats {
    /// By state: `pending`, `done`, `skipped`, `repeated`, `erased`.
    pub by_state: BTreeMap<String, i64>,
    /// Findable answers by scope: `user`, `group`, `global`.
    pub by_scope: BTreeMap<String, i64>,
    /// Findable answers by type, if their type is known.
    pub by_type: BTreeMap<String, i64>,
    /// Findable answers by the model of their vectors; those without vectors are listed under "".
    pub by_model: BTreeMap<String, i64>,
    /// Number of answers that could not be annotated or embedded on the last attempt.
    pub failing: i64,
    /// Number of active facts about users.
    pub facts: i64,
    /// Size of the vectors in the database, in bytes.
    pub vector_bytes: i64,
    pub last_worked_at: Option<Timestamp>,
}

pub fn load_answer_stats(conn: &mut Conn) -> QueryResult<StoredAnswerStats> {
    type AnswerCountRow = (String, String, Option<String>, Option<String>, i64);
    let rows: Vec<AnswerCountRow> = agent_responses::table
        .group_by((
            agent_responses::state,
            agent_responses::scope,
            agent_responses::response_type,
            agent_responses::embed_model,
        ))
        .select((
            agent_responses::state,
            agent_responses::scope,
            agent_responses::response_type,
            agent_responses::embed_model,
            count_star(),
        ))
        .load(conn)?;
    let mut stats = StoredAnswerStats::default();
    for (state, scope, kind, model, count) in rows {
        let findable = matches!(state.as_str(), "pending" | "done");
        *stats.by_state.entry(state).or_default() += count;
        if !findable {
            continue;
        }
        *stats.by_scope.entry(scope).or_default() += count;
        *stats.by_model.entry(model.unwrap_or_default()).or_default() += count;
        if let Some(kind) = kind {
            *stats.by_type.entry(kind).or_default() += count;
        }
    }
    for (model, count) in stats.by_model.iter().filter(|(model, _)| !model.is_empty()) {
        stats.vector_bytes += 2 * count * vector_size(conn, model)?;
    }
    stats.failing = agent_responses::table
        .filter(agent_responses::state.eq("pending").and(agent_responses::attempts.gt(0)))
        .select(count_star())
        .first(conn)?;
    stats.facts =
        user_facts::table.filter(user_facts::state.eq("active")).select(count_star()).first(conn)?;
    // An erased answer keeps its time and gets a new revision.
    let last: Option<Option<i64>> = agent_responses::table
        .filter(agent_responses::processed_at.is_not_null().and(agent_responses::state.ne("erased")))
        .order(agent_responses::revision.desc())
        .select(agent_responses::processed_at)
        .first(conn)
        .optional()?;
    stats.last_worked_at = last.flatten().map(timestamp_from_ms).transpose()?;
    Ok(stats)
}

/// Returns the size in bytes of one vector of a model: all vectors of a model have the same length.
fn vector_size(conn: &mut Conn, model: &str) -> QueryResult<i64> {
    let vector: Option<Option<Vec<u8>>> = agent_responses::table
        .filter(agent_responses::state.eq("done").and(agent_responses::embed_model.eq(model)))
        .select(agent_responses::response_vec)
        .first(conn)
        .optional()?;
    Ok(vector.flatten().map_or(0, |vector| i64::try_from(vector.len()).unwrap_or(0)))
}
