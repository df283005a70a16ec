//! Recall of earlier answers for a turn, by meaning and by text, among the answers that the turn's user may find.

use std::sync::PoisonError;
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;

use super::Engine;
use super::turn_loop::TurnContext;
use crate::conversation::memory::answer_metadata;
use crate::conversation::memory::recall::{self, RANKING_SIZE, RecalledAnswers, rank_candidates};
use crate::conversation::text::normalization::content_words;
use crate::conversation::transcript::{Responder, TurnId, UserId};
use crate::memory::index::VectorIndex;
use crate::memory::vector::UnitVector;
use crate::store::database::db::DbError;
use crate::store::memory::search::{self, VectorQuery, VisibleOwners};
use crate::store::{Conn, QueryResult};

/// Maximum wait for vectors while a user waits for the reply. If no vectors arrive in time, only the text is searched.
const EMBED_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of rows that each ranking considers: the ranked rows, and the rows of a whole window, which are left out.
const CANDIDATES_PER_RANKING: usize = RANKING_SIZE + 20;
/// Number of changed rows that are read at once, so that a large memory is never read in one piece.
const CHANGES_PER_READ: i64 = 1_000;

/// Vector of a text, computed by an embeddings model.
struct QueryEmbedding {
    model: String,
    vector: UnitVector,
}

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

impl Engine {
    /// Returns the recalled lines for a turn's prompt, without the exchanges from turn `shown` on, which the prompt
    /// already contains. If the memory cannot be read, the turn continues without the lines. A canceled turn needs no
    /// lines.
    pub(super) async fn recall_lines(&self, scene: &TurnContext, shown: Option<TurnId>) -> Vec<String> {
        let query = scene.turn.texts.join(" ");
        if scene.plan.brain == Responder::Keyword || scene.turn.cancel_requested {
            return Vec::new();
        }
        let found = tokio::select! {
            found = self.recall_answers(scene.user.id, &query, shown) => found,
            () = self.wait_for_cancellation(scene) => return Vec::new(),
        };
        match found {
            Ok(recalled) => recall::format_recall_lines(&recalled, &self.0.parts.settings.zone),
            Err(error) => {
                let error = anyhow::Error::from(error);
                tracing::error!(turn = %scene.live.id, error = format!("{error:#}"), "failed to search the memory");
                Vec::new()
            }
        }
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
        let by_meaning = match self.embed_query(query).await {
            Some(meaning) => {
                // The index lock is awaited here, so that the wait blocks no database reader.
                let index = self.0.index.clone().lock_owned().await;
                Some(VectorSearch { query: meaning, index })
            }
            None => None,
        };
        let query = query.to_owned();
        let floor = self.0.parts.settings.similarity_floor;
        let now = self.now();
        let search = move |conn: &mut Conn| {
            let owners = search::load_visible_owners(conn, viewer)?;
            let (mut ids, sought) = match by_meaning {
                Some(by_meaning) => by_meaning.find_candidates(conn, &owners, floor)?,
                None => (Vec::new(), None),
            };
            let by_words =
                search::find_by_words(conn, &owners, &content_words(&query), CANDIDATES_PER_RANKING)?;
            ids.extend(&by_words);
            let sought =
                sought.as_ref().map(|QueryEmbedding { model, vector }| VectorQuery { model, vector });
            let candidates = search::load_candidates(conn, &owners, &ids, sought, but_from)?;
            Ok(rank_candidates(&query, candidates, &by_words, floor, now))
        };
        self.0.parts.db.read(search).await
    }

    async fn embed_query(&self, query: &str) -> Option<QueryEmbedding> {
        let embedder = self.0.parts.embedder.as_ref()?;
        let texts = [query.to_owned()];
        // The wait for a permit counts toward the limit, since a user waits for the reply.
        let ask = async {
            let _place = self.0.embedding_permits.acquire().await;
            embedder.embed(&texts).await
        };
        let asked = tokio::time::timeout(EMBED_TIMEOUT, ask).await;
        match asked {
            Ok(Ok(vectors)) => {
                let vector = vectors.into_iter().next().and_then(UnitVector::new)?;
                let model = vector.space_key(embedder.model());
                *self.0.vector_space.lock().unwrap_or_else(PoisonError::into_inner) = Some(model.clone());
                Some(QueryEmbedding { model, vector })
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "failed to embed the query, searched the memory by text only");
                None
            }
            Err(_) => {
                tracing::warn!("embedding of the query timed out, searched the memory by text only");
                None
            }
        }
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
