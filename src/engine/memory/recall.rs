//! Recall of earlier answers that a user may find, by vector search and full-text search.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::clock::Clock;
use crate::conversation::memory::answer_metadata;
use crate::conversation::memory::recall::{RANKING_SIZE, RecalledAnswers, rank_candidates};
use crate::conversation::text::normalization::content_words;
use crate::conversation::transcript::UserId;
use crate::engine::model_calls::text_embedder::QueryEmbedding;
use crate::engine::parts::{EngineParts, LiveParts};
use crate::memory::index::VectorIndex;
use crate::store::database::db::{Db, DbError};
use crate::store::memory::search::{self, RecallRange, VectorQuery, VisibleOwners};
use crate::store::{Conn, QueryResult};

/// Number of candidates for each ranking: the ranked rows, plus the rows that the prompt already contains.
const CANDIDATES_PER_RANKING: usize = RANKING_SIZE + 20;
/// Maximum number of changed vectors of each owner that one query loads into the index.
const CHANGE_BATCH: i64 = 1_000;

/// Vector search, with its query and the locked index.
struct VectorSearch {
    query: QueryEmbedding,
    index: OwnedMutexGuard<VectorIndex>,
}

impl VectorSearch {
    /// Returns the rows that can be among the most similar, and the query vector to compare them with. Unlocks the
    /// index.
    fn find_candidates(
        mut self,
        conn: &mut Conn,
        owners: &VisibleOwners,
        floor: f32,
    ) -> QueryResult<(Vec<i64>, Option<QueryEmbedding>)> {
        update_index(&mut self.index, conn, owners, &self.query.vector_space)?;
        let candidates =
            self.index.find_candidates(owners.keys(), &self.query.vector, CANDIDATES_PER_RANKING, floor);
        Ok(([candidates.triggers, candidates.responses].concat(), Some(self.query)))
    }
}

/// Search over the stored answers.
pub struct AnswerRecall {
    db: Db,
    clock: Clock,
    live: LiveParts,
    /// Vectors of the answers that users may find.
    index: Arc<Mutex<VectorIndex>>,
}

impl AnswerRecall {
    pub(crate) fn new(parts: &EngineParts) -> Self {
        let EngineParts { db, clock, live, .. } = parts.clone();
        Self { db, clock, live, index: Arc::default() }
    }

    /// Returns the answers to recall for a query of `viewer`. Queries such as "2" and "yes" recall nothing.
    pub async fn recall_answers(
        &self,
        viewer: UserId,
        query: &str,
        range: RecallRange,
    ) -> Result<RecalledAnswers, DbError> {
        if !answer_metadata::is_meaningful_question(query) {
            return Ok(RecalledAnswers::default());
        }
        let parts = self.live.current();
        let embedding = match &parts.embedder {
            Some(embedder) => embedder.embed_query(query).await,
            None => None,
        };
        let vector_search = match embedding {
            Some(query) => {
                // The index lock is awaited here, so that the wait blocks no database reader.
                let index = self.index.clone().lock_owned().await;
                Some(VectorSearch { query, index })
            }
            None => None,
        };
        let query = query.to_owned();
        let (floor, now) = (parts.settings.similarity_floor, self.clock.now());
        let search =
            move |conn: &mut Conn| search_answers(conn, viewer, (&query, vector_search), range, (floor, now));
        self.db.read(search).await
    }

    /// Returns whether a query is also compared by its vector, which a server computes.
    pub(crate) fn needs_vectors(&self) -> bool {
        self.live.current().embedder.is_some()
    }

    /// Like [`AnswerRecall::recall_answers`], without vectors and in the caller's transaction.
    pub(crate) fn find_by_words(
        &self,
        conn: &mut Conn,
        viewer: UserId,
        query: &str,
        range: RecallRange,
    ) -> QueryResult<RecalledAnswers> {
        if !answer_metadata::is_meaningful_question(query) {
            return Ok(RecalledAnswers::default());
        }
        let floor = self.live.settings().similarity_floor;
        search_answers(conn, viewer, (query, None), range, (floor, self.clock.now()))
    }
}

fn search_answers(
    conn: &mut Conn,
    viewer: UserId,
    (query, vector_search): (&str, Option<VectorSearch>),
    range: RecallRange,
    (floor, now): (f32, Timestamp),
) -> QueryResult<RecalledAnswers> {
    let owners = match range.only_own_after {
        Some(_) => VisibleOwners::only_own(viewer),
        None => search::load_visible_owners(conn, viewer)?,
    };
    let (mut ids, embedding) = match vector_search {
        Some(vector_search) => vector_search.find_candidates(conn, &owners, floor)?,
        None => (Vec::new(), None),
    };
    let text_matches =
        search::find_answers_by_words(conn, &owners, &content_words(query), CANDIDATES_PER_RANKING)?;
    ids.extend(&text_matches);
    let vector_query = embedding
        .as_ref()
        .map(|QueryEmbedding { vector_space, vector }| VectorQuery { model: vector_space, vector });
    let candidates = search::load_candidates(conn, &owners, &ids, vector_query, range)?;
    Ok(rank_candidates(query, candidates, &text_matches, floor, now))
}

/// Updates the in-memory index from the stored vectors.
fn update_index(
    index: &mut VectorIndex,
    conn: &mut Conn,
    owners: &VisibleOwners,
    vector_space: &str,
) -> QueryResult<()> {
    loop {
        let revisions: Vec<_> =
            owners.keys().iter().map(|owner| (owner.as_str(), index.revision(owner, vector_space))).collect();
        let changes = search::load_vector_changes(conn, &revisions, vector_space, CHANGE_BATCH)?;
        let is_full =
            |changes: &Vec<_>| i64::try_from(changes.len()).is_ok_and(|count| count >= CHANGE_BATCH);
        let has_more = changes.values().any(is_full);
        for (owner, changes) in changes {
            index.apply_changes(&owner, vector_space, changes);
            index.evict_rows(owners.keys());
        }
        if !has_more {
            return Ok(());
        }
    }
}
