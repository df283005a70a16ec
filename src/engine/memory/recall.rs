//! Recall of earlier answers, by meaning and by text, among the answers that a user may find.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use super::text_embedder::{QueryEmbedding, TextEmbedder};
use crate::clock::Clock;
use crate::conversation::memory::answer_metadata;
use crate::conversation::memory::recall::{RANKING_SIZE, RecalledAnswers, rank_candidates};
use crate::conversation::text::normalization::content_words;
use crate::conversation::transcript::{TurnId, UserId};
use crate::engine::parts::EngineParts;
use crate::memory::index::VectorIndex;
use crate::store::database::db::{Db, DbError};
use crate::store::memory::search::{self, VectorQuery, VisibleOwners};
use crate::store::{Conn, QueryResult};

/// Number of rows that each ranking considers: the ranked rows, and the rows of a whole window, which are left out.
const CANDIDATES_PER_RANKING: usize = RANKING_SIZE + 20;
/// Number of changed rows that are read at once, so that a large memory is never read in one piece.
const CHANGES_PER_READ: i64 = 1_000;

/// Search by meaning: the vector to search for, and the index to search in.
struct VectorSearch {
    query: QueryEmbedding,
    index: OwnedMutexGuard<VectorIndex>,
}

impl VectorSearch {
    /// Returns the rows that can be among the most similar, and the query vector to compare them with. The index is
    /// released.
    fn find_candidates(
        mut self,
        conn: &mut Conn,
        owners: &VisibleOwners,
        floor: f32,
    ) -> QueryResult<(Vec<i64>, Option<QueryEmbedding>)> {
        update_index(&mut self.index, conn, owners, &self.query.model)?;
        let likest =
            self.index.find_candidates(owners.keys(), &self.query.vector, CANDIDATES_PER_RANKING, floor);
        Ok(([likest.triggers, likest.responses].concat(), Some(self.query)))
    }
}

/// Search over the stored answers.
pub struct AnswerRecall {
    db: Db,
    clock: Clock,
    /// `None` if none is configured: memory is searched by text alone.
    embedder: Option<Arc<TextEmbedder>>,
    /// Minimum similarity at which two texts count as similar.
    similarity_floor: f32,
    /// Vectors of the answers that users may find.
    index: Arc<Mutex<VectorIndex>>,
}

impl AnswerRecall {
    pub(crate) fn new(parts: &EngineParts, embedder: Option<Arc<TextEmbedder>>) -> Self {
        let EngineParts { db, clock, .. } = parts.clone();
        Self { db, clock, embedder, similarity_floor: parts.settings.similarity_floor, index: Arc::default() }
    }

    /// Returns the answers that `viewer` would get recalled for this query, without exchanges from turn `but_from` on.
    /// Texts such as "2" and "yes" are similar to nothing.
    pub async fn recall_answers(
        &self,
        viewer: UserId,
        query: &str,
        but_from: Option<TurnId>,
    ) -> Result<RecalledAnswers, DbError> {
        if !answer_metadata::is_meaningful_question(query) {
            return Ok(RecalledAnswers::default());
        }
        let embedded = match &self.embedder {
            Some(embedder) => embedder.embed_query(query).await,
            None => None,
        };
        let by_meaning = match embedded {
            Some(meaning) => {
                // The index lock is awaited here, so that the wait blocks no database reader.
                let index = self.index.clone().lock_owned().await;
                Some(VectorSearch { query: meaning, index })
            }
            None => None,
        };
        let query = query.to_owned();
        let floor = self.similarity_floor;
        let now = self.clock.now();
        let search = move |conn: &mut Conn| {
            let owners = search::load_visible_owners(conn, viewer)?;
            let (mut ids, sought) = match by_meaning {
                Some(by_meaning) => by_meaning.find_candidates(conn, &owners, floor)?,
                None => (Vec::new(), None),
            };
            let by_words =
                search::find_answers_by_words(conn, &owners, &content_words(&query), CANDIDATES_PER_RANKING)?;
            ids.extend(&by_words);
            let sought =
                sought.as_ref().map(|QueryEmbedding { model, vector }| VectorQuery { model, vector });
            let candidates = search::load_candidates(conn, &owners, &ids, sought, but_from)?;
            Ok(rank_candidates(&query, candidates, &by_words, floor, now))
        };
        self.db.read(search).await
    }
}

/// Brings the index in memory up to date with the stored rows.
fn update_index(
    index: &mut VectorIndex,
    conn: &mut Conn,
    owners: &VisibleOwners,
    model: &str,
) -> QueryResult<()> {
    for owner in owners.keys() {
        loop {
            let changes = search::load_vector_changes(
                conn,
                owner,
                model,
                index.revision(owner, model),
                CHANGES_PER_READ,
            )?;
            let is_last = i64::try_from(changes.len()).is_ok_and(|count| count < CHANGES_PER_READ);
            if !changes.is_empty() {
                index.apply_changes(owner, model, changes);
                index.evict_rows(owners.keys());
            }
            if is_last {
                break;
            }
        }
    }
    Ok(())
}
