//! How much is remembered, for whoever runs it.

use std::collections::BTreeMap;

use diesel::dsl::count_star;
use diesel::prelude::*;
use jiff::Timestamp;

use crate::store::codec::time;
use crate::store::schema::{agent_responses, user_facts};
use crate::store::{Conn, QueryResult};

/// How many answers there are of each sort, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stats {
    /// `pending`, `done`, `skipped`, `repeated`, `erased`.
    pub by_state: BTreeMap<String, i64>,
    /// Of those that can be found: `user`, `group`, `global`.
    pub by_scope: BTreeMap<String, i64>,
    /// Of those that can be found and of which it is known.
    pub by_type: BTreeMap<String, i64>,
    /// Of those that can be found, by the model of their vectors; those without vectors stand under "".
    pub by_model: BTreeMap<String, i64>,
    /// Of answers that could not be noted or embedded at their last try.
    pub failing: i64,
    /// Facts about people that hold.
    pub facts: i64,
    /// What the vectors take in the database.
    pub vector_bytes: i64,
    pub last_worked_at: Option<Timestamp>,
}

pub fn stats(conn: &mut Conn) -> QueryResult<Stats> {
    type Row = (String, String, Option<String>, Option<String>, i64);
    let rows: Vec<Row> = agent_responses::table
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
    let mut stats = Stats::default();
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
        stats.vector_bytes += 2 * count * vector_bytes(conn, model)?;
    }
    stats.failing = agent_responses::table
        .filter(agent_responses::state.eq("pending").and(agent_responses::attempts.gt(0)))
        .select(count_star())
        .first(conn)?;
    stats.facts =
        user_facts::table.filter(user_facts::state.eq("active")).select(count_star()).first(conn)?;
    // What is erased keeps its time and gets a new revision.
    let last: Option<Option<i64>> = agent_responses::table
        .filter(agent_responses::processed_at.is_not_null().and(agent_responses::state.ne("erased")))
        .order(agent_responses::revision.desc())
        .select(agent_responses::processed_at)
        .first(conn)
        .optional()?;
    stats.last_worked_at = last.flatten().map(time).transpose()?;
    Ok(stats)
}

/// Of one vector of a model: all of its are of one length.
fn vector_bytes(conn: &mut Conn, model: &str) -> QueryResult<i64> {
    let vector: Option<Option<Vec<u8>>> = agent_responses::table
        .filter(agent_responses::state.eq("done").and(agent_responses::embed_model.eq(model)))
        .select(agent_responses::response_vec)
        .first(conn)
        .optional()?;
    Ok(vector.flatten().map_or(0, |vector| i64::try_from(vector.len()).unwrap_or(0)))
}
