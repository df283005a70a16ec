//! Search in the stored answers. Every query filters by owner before it ranks.

use std::collections::HashMap;

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Text};
use diesel::sqlite::Sqlite;
use jiff::Timestamp;

use super::groups;
use super::responses::{AnswerOwner, FINDABLE};
use crate::conversation::memory::answer_metadata::ResponseType;
use crate::conversation::memory::recall::{RecallCandidate, RecallScope};
use crate::conversation::transcript::{TurnId, UserId};
use crate::memory::index::{RowVectors, VectorChange};
use crate::memory::vector::UnitVector;
use crate::store::database::statement_cache::CacheStatement;
use crate::store::schema::agent_responses;
use crate::store::{Conn, QueryResult};

/// Maximum number of a user's groups that are searched, most recently active first.
const MAX_SEARCHED_GROUPS: usize = 32;
/// Number of index rows at which a word counts as too common to rank by. An answer has one or two rows.
const COMMON_WORD_ROWS: usize = 1_000;

/// Owners whose answers a user may find, as values of the column `owner`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisibleOwners(Vec<String>);

/// Turns whose answers may be recalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecallRange {
    /// First turn that the prompt already contains.
    pub before: Option<TurnId>,
    /// For readers with an age limit: only answers to them from later turns than this one are recalled, because others
    /// may name titles over the limit.
    pub only_own_after: Option<TurnId>,
}

impl VisibleOwners {
    /// Returns the owner of the answers to one user.
    pub fn only_own(user: UserId) -> Self {
        Self(vec![AnswerOwner::User(user).column_value()])
    }

    pub fn keys(&self) -> &[String] {
        &self.0
    }
}

pub fn load_visible_owners(conn: &mut Conn, viewer: UserId) -> QueryResult<VisibleOwners> {
    let groups = groups::load_user_groups(conn, viewer)?;
    let groups =
        groups.into_iter().take(MAX_SEARCHED_GROUPS).map(|group| AnswerOwner::Group(group).column_value());
    Ok(VisibleOwners(
        [AnswerOwner::User(viewer).column_value(), AnswerOwner::Everyone.column_value()]
            .into_iter()
            .chain(groups)
            .collect(),
    ))
}

/// Returns the ids of the answers of these owners that contain any of `words`, best first: rarer words weigh more. The
/// words contain only letters and digits.
pub fn find_answers_by_words(
    conn: &mut Conn,
    owners: &VisibleOwners,
    words: &[String],
    limit: usize,
) -> QueryResult<Vec<i64>> {
    // FTS5's own ranking would read every row of each word, including the rows of other owners.
    let mut row_weights: HashMap<i64, f64> = HashMap::new();
    let mut common_words = Vec::new();
    for word in words {
        let rows = load_matching_rows(conn, &owner_filter(owners, &quote_word(word)), COMMON_WORD_ROWS)?;
        if rows.len() == COMMON_WORD_ROWS {
            common_words.push(word);
            continue;
        }
        let weight = (COMMON_WORD_ROWS as f64 / rows.len() as f64).ln_1p();
        rows.into_iter().for_each(|row| *row_weights.entry(row).or_default() += weight);
    }
    // If only common words match, the newest answers that contain the first two of them are returned.
    if let ([first, second, ..], true) = (common_words.as_slice(), row_weights.is_empty()) {
        let both = format!("({} AND {})", quote_word(first), quote_word(second));
        let rows = load_matching_rows(conn, &owner_filter(owners, &both), 2 * limit)?;
        row_weights.extend(rows.into_iter().map(|row| (row, 1.0)));
    }
    Ok(rank_matches(row_weights, limit))
}

/// Ranks answers by the weight of their better row. The text of an answer is in index row 2 * id and its metadata in
/// row 2 * id + 1, which has half the weight.
fn rank_matches(row_weights: HashMap<i64, f64>, limit: usize) -> Vec<i64> {
    let mut answer_weights: HashMap<i64, f64> = HashMap::new();
    for (row, weight) in row_weights {
        let weight = if row % 2 == 0 { weight } else { weight / 2.0 };
        let best_weight = answer_weights.entry(row / 2).or_default();
        *best_weight = best_weight.max(weight);
    }
    let mut ranked: Vec<(i64, f64)> = answer_weights.into_iter().collect();
    ranked.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    ranked.into_iter().take(limit).map(|(id, _)| id).collect()
}

#[derive(QueryableByName)]
struct WordMatchRow {
    #[diesel(sql_type = BigInt)]
    rowid: i64,
}

/// Loads the ids of the newest index rows that match an FTS5 query.
fn load_matching_rows(conn: &mut Conn, query: &str, limit: usize) -> QueryResult<Vec<i64>> {
    let rows: Vec<WordMatchRow> = diesel::sql_query(
        "SELECT rowid FROM response_words WHERE response_words MATCH ? ORDER BY rowid DESC LIMIT ?",
    )
    .bind::<Text, _>(query)
    .bind::<BigInt, _>(i64::try_from(limit).unwrap_or(i64::MAX))
    .cached()
    .load(conn)?;
    Ok(rows.into_iter().map(|row| row.rowid).collect())
}

/// Restricts an FTS5 query to the rows of these owners.
fn owner_filter(owners: &VisibleOwners, query: &str) -> String {
    let owners: Vec<String> = owners.0.iter().map(|owner| quote_word(owner)).collect();
    format!("owner:({}) AND {{said told}}:{query}", owners.join(" OR "))
}

/// Quotes a word, so that FTS5 does not interpret it as an operator.
fn quote_word(word: &str) -> String {
    format!("\"{}\"", word.replace('"', "\"\""))
}

/// Vector of the search text, and the model that computed it.
#[derive(Debug, Clone, Copy)]
pub struct VectorQuery<'a> {
    pub model: &'a str,
    pub vector: &'a UnitVector,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = agent_responses)]
struct AnswerRow {
    id: i64,
    scope: RecallScope,
    trigger_text: String,
    response_text: String,
    summary: String,
    keywords: String,
    response_type: Option<ResponseType>,
    importance: f32,
    created_at: Timestamp,
    embed_model: Option<String>,
    trigger_vec: Option<Vec<u8>>,
    response_vec: Option<Vec<u8>>,
}

/// Loads those of these answers that belong to the owners, with the similarity of their stored vectors to `query`. Only
/// answers of turns in the range are loaded.
pub fn load_candidates(
    conn: &mut Conn,
    owners: &VisibleOwners,
    ids: &[i64],
    query: Option<VectorQuery<'_>>,
    range: RecallRange,
) -> QueryResult<Vec<RecallCandidate>> {
    let findable =
        agent_responses::owner.eq_any(pad_list(owners.keys())).and(agent_responses::state.eq_any(FINDABLE));
    let before = range.before.map_or(i64::MAX, |turn| turn.0);
    let is_outside_prompt = agent_responses::turn_id.is_null().or(agent_responses::turn_id.lt(before));
    // An answer without a turn passes only without a limit, in which all turns are later than -1.
    let after = range.only_own_after.map_or(-1, |turn| turn.0);
    let is_later = agent_responses::turn_id.assume_not_null().gt(after);
    let is_in_range = is_later.or(agent_responses::turn_id.is_null().and((after < 0).into_sql::<Bool>()));
    let rows: Vec<AnswerRow> = agent_responses::table
        .filter(agent_responses::id.eq_any(pad_list(ids)).and(findable).and(is_outside_prompt))
        .filter(is_in_range)
        .select(AnswerRow::as_select())
        .cached()
        .load(conn)?;
    Ok(rows.into_iter().map(|row| build_candidate(row, query)).collect())
}

/// Pads a list with copies of its last value to a power of two, so that only few distinct statements are cached.
pub(super) fn pad_list<T: Clone>(values: &[T]) -> Vec<T> {
    let mut padded = values.to_vec();
    if let Some(last) = values.last() {
        padded.resize(values.len().next_power_of_two(), last.clone());
    }
    padded
}

fn build_candidate(row: AnswerRow, query: Option<VectorQuery<'_>>) -> RecallCandidate {
    // Vectors of different models are never compared.
    let query = query.filter(|query| row.embed_model.as_deref() == Some(query.model));
    let similarity = |stored: Option<&Vec<u8>>| {
        let (query, stored) = (query?, stored?);
        UnitVector::from_bytes(stored).map(|stored| stored.cosine(query.vector))
    };
    RecallCandidate {
        id: row.id,
        scope: row.scope,
        kind: row.response_type,
        importance: row.importance,
        answered_at: row.created_at,
        question_similarity: similarity(row.trigger_vec.as_ref()),
        answer_similarity: similarity(row.response_vec.as_ref()),
        question: row.trigger_text,
        answer: row.response_text,
        summary: row.summary,
        keywords: row.keywords,
    }
}

#[derive(QueryableByName)]
#[diesel(table_name = agent_responses)]
struct VectorChangeRow {
    owner: String,
    id: i64,
    revision: i64,
    embed_model: Option<String>,
    trigger_vec: Option<Vec<u8>>,
    response_vec: Option<Vec<u8>>,
}

/// Query for the next changes of one owner.
const OWNER_CHANGES: &str = "SELECT * FROM (
    SELECT owner, id, revision, embed_model, trigger_vec, response_vec FROM agent_responses
    WHERE owner = ? AND revision > ? ORDER BY revision LIMIT ?)";

/// Loads the changes to the rows of each owner after the owner's revision, at most `limit` for each, for an index of this
/// model's vectors.
pub fn load_vector_changes(
    conn: &mut Conn,
    revisions: &[(&str, i64)],
    model: &str,
    limit: i64,
) -> QueryResult<HashMap<String, Vec<VectorChange>>> {
    let mut query =
        diesel::sql_query(vec![OWNER_CHANGES; revisions.len()].join(" UNION ALL ")).into_boxed::<Sqlite>();
    for (owner, revision) in revisions {
        query = query.bind::<Text, _>(*owner).bind::<BigInt, _>(*revision).bind::<BigInt, _>(limit);
    }
    let mut changes: HashMap<String, Vec<VectorChange>> = HashMap::new();
    for row in query.cached().load::<VectorChangeRow>(conn)? {
        let response = row.response_vec.filter(|_| row.embed_model.as_deref() == Some(model));
        let response = response.as_deref().and_then(UnitVector::from_bytes);
        let trigger = row.trigger_vec.as_deref().and_then(UnitVector::from_bytes);
        let vectors = response.map(|response| RowVectors { trigger, response });
        let change = VectorChange { id: row.id, revision: row.revision, vectors };
        changes.entry(row.owner).or_default().push(change);
    }
    Ok(changes)
}
