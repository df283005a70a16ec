//! Answers that a user may find: every statement filters by owner before it ranks anything.

use std::collections::HashMap;

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};

use super::groups;
use super::responses::Owner;
use crate::conversation::extraction::ResponseType;
use crate::conversation::recall::{Candidate, Scope};
use crate::conversation::transcript::{TurnId, UserId};
use crate::memory::index::{Change, Vectors};
use crate::memory::vector::Unit;
use crate::store::codec::{time, unreadable};
use crate::store::kept::Keep;
use crate::store::schema::agent_responses;
use crate::store::{Conn, QueryResult};

/// Maximum number of groups of one user that are searched, beginning with the one that received something most
/// recently.
const GROUPS_SEARCHED: usize = 32;
/// Number of index rows from which a word is too common to be useful. An answer has one or two rows.
const COMMON: usize = 1_000;

/// Owners whose answers a user may find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owners(Vec<String>);

impl Owners {
    pub fn keys(&self) -> &[String] {
        &self.0
    }
}

pub fn owners(conn: &mut Conn, viewer: UserId) -> QueryResult<Owners> {
    let groups = groups::of_user(conn, viewer)?;
    let groups = groups.into_iter().take(GROUPS_SEARCHED).map(|group| Owner::Group(group).key());
    Ok(Owners([Owner::User(viewer).key(), Owner::Everyone.key()].into_iter().chain(groups).collect()))
}

/// Finds the answers of these owners that contain these words, best first: a rarer word has more weight. `words` are
/// plain: letters and digits.
pub fn by_words(conn: &mut Conn, owners: &Owners, words: &[String], most: usize) -> QueryResult<Vec<i64>> {
    // FTS5's own rank reads every row of each word and of each owner, of all users, on each search.
    let mut weights: HashMap<i64, f64> = HashMap::new();
    let mut common = Vec::new();
    for word in words {
        let rows = rows_with(conn, &within(owners, &quoted(word)), COMMON)?;
        if rows.len() == COMMON {
            common.push(word);
            continue;
        }
        let weight = (COMMON as f64 / rows.len() as f64).ln_1p();
        rows.into_iter().for_each(|row| *weights.entry(row).or_default() += weight);
    }
    // If only common words match, answers that contain two of them are worth returning, the newest first.
    if let ([one, other, ..], true) = (common.as_slice(), weights.is_empty()) {
        let both = format!("({} AND {})", quoted(one), quoted(other));
        let rows = rows_with(conn, &within(owners, &both), 2 * most)?;
        weights.extend(rows.into_iter().map(|row| (row, 1.0)));
    }
    Ok(best(weights, most))
}

/// A text and its notes are stored in two rows, 2 * id and 2 * id + 1; notes have half the weight.
fn best(weights: HashMap<i64, f64>, most: usize) -> Vec<i64> {
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
struct Row {
    #[diesel(sql_type = BigInt)]
    rowid: i64,
}

/// Loads the newest matching rows of the index.
fn rows_with(conn: &mut Conn, sought: &str, most: usize) -> QueryResult<Vec<i64>> {
    let rows: Vec<Row> = diesel::sql_query(
        "SELECT rowid FROM response_words WHERE response_words MATCH ? ORDER BY rowid DESC LIMIT ?",
    )
    .bind::<Text, _>(sought)
    .bind::<BigInt, _>(i64::try_from(most).unwrap_or(i64::MAX))
    .kept()
    .load(conn)?;
    Ok(rows.into_iter().map(|row| row.rowid).collect())
}

/// Restricts a query to the rows that these owners may find.
fn within(owners: &Owners, sought: &str) -> String {
    let owners: Vec<String> = owners.0.iter().map(|owner| quoted(owner)).collect();
    format!("owner:({}) AND {{said told}}:{sought}", owners.join(" OR "))
}

/// Quotes a word, so that FTS5 treats it only as a word.
fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('"', "\"\""))
}

/// Query vector for the similarity of candidates.
#[derive(Debug, Clone, Copy)]
pub struct Sought<'a> {
    pub model: &'a str,
    pub vector: &'a Unit,
}

#[derive(Queryable)]
struct Found {
    id: i64,
    scope: String,
    question: String,
    answer: String,
    summary: String,
    keywords: String,
    kind: Option<String>,
    importance: f32,
    created_at: i64,
    embed_model: Option<String>,
    trigger_vec: Option<Vec<u8>>,
    response_vec: Option<Vec<u8>>,
}

/// Loads those of these answers that the owners may find, with their similarity by their stored vectors. Answers of
/// turns from `but_from` on are left out: the reader already has them in the conversation.
pub fn candidates(
    conn: &mut Conn,
    owners: &Owners,
    ids: &[i64],
    sought: Option<Sought<'_>>,
    but_from: Option<TurnId>,
) -> QueryResult<Vec<Candidate>> {
    let findable = agent_responses::owner
        .eq_any(padded(owners.keys()))
        .and(agent_responses::state.eq_any(["pending", "done"]));
    let but_from = but_from.map_or(i64::MAX, |turn| turn.0);
    let elsewhere = agent_responses::turn_id.is_null().or(agent_responses::turn_id.lt(but_from));
    let rows: Vec<Found> = agent_responses::table
        .filter(agent_responses::id.eq_any(padded(ids)).and(findable).and(elsewhere))
        .select((
            agent_responses::id,
            agent_responses::scope,
            agent_responses::trigger_text,
            agent_responses::response_text,
            agent_responses::summary,
            agent_responses::keywords,
            agent_responses::response_type,
            agent_responses::importance,
            agent_responses::created_at,
            agent_responses::embed_model,
            agent_responses::trigger_vec,
            agent_responses::response_vec,
        ))
        .kept()
        .load(conn)?;
    rows.into_iter().map(|row| candidate(row, sought)).collect()
}

/// Pads a list with copies of its last value: with few list lengths there are few statements to cache.
fn padded<T: Clone>(values: &[T]) -> Vec<T> {
    let mut padded = values.to_vec();
    if let Some(last) = values.last() {
        padded.resize(values.len().next_power_of_two(), last.clone());
    }
    padded
}

fn candidate(row: Found, sought: Option<Sought<'_>>) -> QueryResult<Candidate> {
    // Vectors of different models are never compared.
    let sought = sought.filter(|sought| row.embed_model.as_deref() == Some(sought.model));
    let likeness = |stored: Option<&Vec<u8>>| {
        let (sought, stored) = (sought?, stored?);
        Unit::from_bytes(stored).map(|stored| stored.likeness(sought.vector))
    };
    Ok(Candidate {
        id: row.id,
        scope: scope(&row.scope)?,
        kind: row.kind.as_deref().map(kind).transpose()?,
        importance: row.importance,
        said_at: time(row.created_at)?,
        question_likeness: likeness(row.trigger_vec.as_ref()),
        answer_likeness: likeness(row.response_vec.as_ref()),
        question: row.question,
        answer: row.answer,
        summary: row.summary,
        keywords: row.keywords,
    })
}

fn scope(word: &str) -> QueryResult<Scope> {
    match word {
        "user" => Ok(Scope::User),
        "group" => Ok(Scope::Group),
        "global" => Ok(Scope::Global),
        _ => Err(unreadable("scope")),
    }
}

pub(super) fn kind(word: &str) -> QueryResult<ResponseType> {
    match word {
        "greeting" => Ok(ResponseType::Greeting),
        "explanation" => Ok(ResponseType::Explanation),
        "recommendation" => Ok(ResponseType::Recommendation),
        "opinion" => Ok(ResponseType::Opinion),
        "action" => Ok(ResponseType::Action),
        _ => Err(unreadable("response type")),
    }
}

/// Loads the changes to an owner's rows after a revision, in order, for an index of this model's vectors.
pub fn changes(conn: &mut Conn, owner: &str, model: &str, after: i64, most: i64) -> QueryResult<Vec<Change>> {
    type Row = (i64, i64, Option<String>, Option<Vec<u8>>, Option<Vec<u8>>);
    let rows: Vec<Row> = agent_responses::table
        .filter(agent_responses::owner.eq(owner).and(agent_responses::revision.gt(after)))
        .order(agent_responses::revision)
        .limit(most)
        .select((
            agent_responses::id,
            agent_responses::revision,
            agent_responses::embed_model,
            agent_responses::trigger_vec,
            agent_responses::response_vec,
        ))
        .load(conn)?;
    let read = |(id, revision, of, trigger, response): Row| {
        let response =
            response.as_deref().filter(|_| of.as_deref() == Some(model)).and_then(Unit::from_bytes);
        let trigger = trigger.as_deref().and_then(Unit::from_bytes);
        Change { id, revision, vectors: response.map(|response| Vectors { trigger, response }) }
    };
    Ok(rows.into_iter().map(read).collect())
}
