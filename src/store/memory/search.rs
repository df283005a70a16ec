//! Answers that a user may find: every statement filters by owner before it ranks anything.

use std::collections::HashMap;

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
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

/// Maximum number of groups of one user that are searched, beginning with the one that received something most
/// recently.
const GROUPS_SEARCHED: usize = 32;
/// Number of index rows from which a word is too common to be useful. An answer has one or two rows.
const COMMON: usize = 1_000;

/// Owners whose answers a user may find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisibleOwners(Vec<String>);

impl VisibleOwners {
    pub fn keys(&self) -> &[String] {
        &self.0
    }
}

pub fn load_visible_owners(conn: &mut Conn, viewer: UserId) -> QueryResult<VisibleOwners> {
    let groups = groups::load_user_groups(conn, viewer)?;
    let groups =
        groups.into_iter().take(GROUPS_SEARCHED).map(|group| AnswerOwner::Group(group).column_value());
    Ok(VisibleOwners(
        [AnswerOwner::User(viewer).column_value(), AnswerOwner::Everyone.column_value()]
            .into_iter()
            .chain(groups)
            .collect(),
    ))
}

/// Finds the answers of these owners that contain any of `words`, best first: a rarer word has more weight. `words`
/// contain only letters and digits.
pub fn find_by_words(
    conn: &mut Conn,
    owners: &VisibleOwners,
    words: &[String],
    most: usize,
) -> QueryResult<Vec<i64>> {
    // FTS5's own ranking reads every row of each word and of each owner, for all users, on each search.
    let mut weights: HashMap<i64, f64> = HashMap::new();
    let mut common = Vec::new();
    for word in words {
        let rows = load_matching_rows(conn, &owner_filter(owners, &quote_word(word)), COMMON)?;
        if rows.len() == COMMON {
            common.push(word);
            continue;
        }
        let weight = (COMMON as f64 / rows.len() as f64).ln_1p();
        rows.into_iter().for_each(|row| *weights.entry(row).or_default() += weight);
    }
    // If only common words match, answers that contain two of them are worth returning, the newest first.
    if let ([one, other, ..], true) = (common.as_slice(), weights.is_empty()) {
        let both = format!("({} AND {})", quote_word(one), quote_word(other));
        let rows = load_matching_rows(conn, &owner_filter(owners, &both), 2 * most)?;
        weights.extend(rows.into_iter().map(|row| (row, 1.0)));
    }
    Ok(rank_matches(weights, most))
}

/// Ranks answers by the weight of their matches. A text and its notes are stored in two rows, 2 * id and 2 * id + 1;
/// notes have half the weight.
fn rank_matches(weights: HashMap<i64, f64>, most: usize) -> Vec<i64> {
    let mut answers: HashMap<i64, f64> = HashMap::new();
    for (row, weight) in weights {
        let weight = if row % 2 == 0 { weight } else { weight / 2.0 };
        let best = answers.entry(row / 2).or_default();
        *best = best.max(weight);
    }
    let mut answers: Vec<(i64, f64)> = answers.into_iter().collect();
    answers.sort_unstable_by(|one, other| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0)));
    answers.into_iter().take(most).map(|(id, _)| id).collect()
}

#[derive(QueryableByName)]
struct WordMatchRow {
    #[diesel(sql_type = BigInt)]
    rowid: i64,
}

/// Loads the newest matching rows of the index.
fn load_matching_rows(conn: &mut Conn, sought: &str, most: usize) -> QueryResult<Vec<i64>> {
    let rows: Vec<WordMatchRow> = diesel::sql_query(
        "SELECT rowid FROM response_words WHERE response_words MATCH ? ORDER BY rowid DESC LIMIT ?",
    )
    .bind::<Text, _>(sought)
    .bind::<BigInt, _>(i64::try_from(most).unwrap_or(i64::MAX))
    .cached()
    .load(conn)?;
    Ok(rows.into_iter().map(|row| row.rowid).collect())
}

/// Restricts a query to the rows that these owners may find.
fn owner_filter(owners: &VisibleOwners, sought: &str) -> String {
    let owners: Vec<String> = owners.0.iter().map(|owner| quote_word(owner)).collect();
    format!("owner:({}) AND {{said told}}:{sought}", owners.join(" OR "))
}

/// Quotes a word, so that FTS5 treats it only as a word.
fn quote_word(word: &str) -> String {
    format!("\"{}\"", word.replace('"', "\"\""))
}

/// Query vector for the similarity of candidates.
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

/// Loads those of these answers that the owners may find, with their similarity by their stored vectors. Answers of
/// turns from `but_from` on are excluded: the reader already has them in the conversation.
pub fn load_candidates(
    conn: &mut Conn,
    owners: &VisibleOwners,
    ids: &[i64],
    sought: Option<VectorQuery<'_>>,
    but_from: Option<TurnId>,
) -> QueryResult<Vec<RecallCandidate>> {
    let findable =
        agent_responses::owner.eq_any(pad_list(owners.keys())).and(agent_responses::state.eq_any(FINDABLE));
    let but_from = but_from.map_or(i64::MAX, |turn| turn.0);
    let elsewhere = agent_responses::turn_id.is_null().or(agent_responses::turn_id.lt(but_from));
    let rows: Vec<AnswerRow> = agent_responses::table
        .filter(agent_responses::id.eq_any(pad_list(ids)).and(findable).and(elsewhere))
        .select(AnswerRow::as_select())
        .cached()
        .load(conn)?;
    Ok(rows.into_iter().map(|row| build_candidate(row, sought)).collect())
}

/// Pads a list with copies of its last value: with few list lengths there are few statements to cache.
fn pad_list<T: Clone>(values: &[T]) -> Vec<T> {
    let mut padded = values.to_vec();
    if let Some(last) = values.last() {
        padded.resize(values.len().next_power_of_two(), last.clone());
    }
    padded
}

fn build_candidate(row: AnswerRow, sought: Option<VectorQuery<'_>>) -> RecallCandidate {
    // Vectors of different models are never compared.
    let sought = sought.filter(|sought| row.embed_model.as_deref() == Some(sought.model));
    let likeness = |stored: Option<&Vec<u8>>| {
        let (sought, stored) = (sought?, stored?);
        UnitVector::from_bytes(stored).map(|stored| stored.cosine(sought.vector))
    };
    RecallCandidate {
        id: row.id,
        scope: row.scope,
        kind: row.response_type,
        importance: row.importance,
        answered_at: row.created_at,
        question_similarity: likeness(row.trigger_vec.as_ref()),
        answer_similarity: likeness(row.response_vec.as_ref()),
        question: row.trigger_text,
        answer: row.response_text,
        summary: row.summary,
        keywords: row.keywords,
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = agent_responses)]
struct VectorChangeRow {
    id: i64,
    revision: i64,
    embed_model: Option<String>,
    trigger_vec: Option<Vec<u8>>,
    response_vec: Option<Vec<u8>>,
}

/// Loads the changes to an owner's rows after a revision, in order, for an index of this model's vectors.
pub fn load_vector_changes(
    conn: &mut Conn,
    owner: &str,
    model: &str,
    after: i64,
    most: i64,
) -> QueryResult<Vec<VectorChange>> {
    let rows: Vec<VectorChangeRow> = agent_responses::table
        .filter(agent_responses::owner.eq(owner).and(agent_responses::revision.gt(after)))
        .order(agent_responses::revision)
        .limit(most)
        .select(VectorChangeRow::as_select())
        .load(conn)?;
    let read = |row: VectorChangeRow| {
        let response = row.response_vec.filter(|_| row.embed_model.as_deref() == Some(model));
        let response = response.as_deref().and_then(UnitVector::from_bytes);
        let trigger = row.trigger_vec.as_deref().and_then(UnitVector::from_bytes);
        let vectors = response.map(|response| RowVectors { trigger, response });
        VectorChange { id: row.id, revision: row.revision, vectors }
    };
    Ok(rows.into_iter().map(read).collect())
}
