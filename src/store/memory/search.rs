//! What somebody may find: every statement filters by owner before it ranks anything.

use std::collections::HashSet;

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
use crate::store::schema::agent_responses;
use crate::store::{Conn, QueryResult};

/// Groups of one person that are searched, those first that heard something last.
const GROUPS_SEARCHED: usize = 32;
/// Rows of the index in which a word may stand and still tell anything, one or two for an answer; in how many more it
/// stands is not counted.
const COMMON: i64 = 1_000;

/// Those whose answers a person may find.
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

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = BigInt)]
    id: i64,
}

/// The answers of these owners in which most of these words stand, best first. `words` are plain: letters and digits.
pub fn by_words(conn: &mut Conn, owners: &Owners, words: &[String], most: usize) -> QueryResult<Vec<i64>> {
    let mut rare = Vec::new();
    for word in words {
        if counted(conn, owners, word)? < COMMON {
            rare.push(word.as_str());
        }
    }
    // Where every word is a common one, only what holds two of them is worth ranking.
    let wanted = match (rare.as_slice(), words) {
        ([], [one, other, ..]) => format!("{} AND {}", quoted(one), quoted(other)),
        ([], _) => return Ok(Vec::new()),
        (rare, _) => rare.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" OR "),
    };
    let sought = within(owners, &format!("({wanted})"));
    // A text and what was noted of it stand in two rows, 2 * id and 2 * id + 1; notes count half.
    let rows: Vec<Id> = diesel::sql_query(
        "SELECT rowid / 2 AS id FROM response_words WHERE response_words MATCH ? \
         ORDER BY bm25(response_words, 0.0, 1.0, 1.0) / (1 + rowid % 2), rowid DESC LIMIT ?",
    )
    .bind::<Text, _>(sought)
    .bind::<BigInt, _>(i64::try_from(2 * most).unwrap_or(i64::MAX))
    .load(conn)?;
    let mut each = HashSet::new();
    Ok(rows.into_iter().map(|row| row.id).filter(|id| each.insert(*id)).take(most).collect())
}

/// In how many of their answers a word stands, as far as that matters.
fn counted(conn: &mut Conn, owners: &Owners, word: &str) -> QueryResult<i64> {
    let row: Id = diesel::sql_query(
        "SELECT count(*) AS id FROM (SELECT 1 FROM response_words WHERE response_words MATCH ? LIMIT ?)",
    )
    .bind::<Text, _>(within(owners, &quoted(word)))
    .bind::<BigInt, _>(COMMON)
    .get_result(conn)?;
    Ok(row.id)
}

/// What is sought, in what these owners may find.
fn within(owners: &Owners, sought: &str) -> String {
    let owners: Vec<String> = owners.0.iter().map(|owner| quoted(owner)).collect();
    format!("owner:({}) AND {{said told}}:{sought}", owners.join(" OR "))
}

/// A word as FTS5 takes it for nothing but a word.
fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('"', "\"\""))
}

/// How alike candidates are told to be.
#[derive(Debug, Clone, Copy)]
pub struct Sought<'a> {
    pub model: &'a str,
    pub vector: &'a Unit,
}

#[derive(Queryable)]
struct Row {
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

/// Those of these answers that the owners may find, with how alike they are by their stored vectors. Answers of turns
/// from `but_from` on are left out: who is told of them has them before their eyes.
pub fn candidates(
    conn: &mut Conn,
    owners: &Owners,
    ids: &[i64],
    sought: Option<Sought<'_>>,
    but_from: Option<TurnId>,
) -> QueryResult<Vec<Candidate>> {
    let findable =
        agent_responses::owner.eq_any(owners.keys()).and(agent_responses::state.eq_any(["pending", "done"]));
    let but_from = but_from.map_or(i64::MAX, |turn| turn.0);
    let elsewhere = agent_responses::turn_id.is_null().or(agent_responses::turn_id.lt(but_from));
    let rows: Vec<Row> = agent_responses::table
        .filter(agent_responses::id.eq_any(ids).and(findable).and(elsewhere))
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
        .load(conn)?;
    rows.into_iter().map(|row| candidate(row, sought)).collect()
}

fn candidate(row: Row, sought: Option<Sought<'_>>) -> QueryResult<Candidate> {
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

/// What changed of an owner's rows after a revision, in order, for an index of this model's vectors.
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
