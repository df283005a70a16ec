//! Recall of earlier answers for a turn: found by meaning and by text among the answers its user may find.

use std::sync::PoisonError;
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;

use super::Engine;
use super::run::Scene;
use crate::conversation::extraction;
use crate::conversation::recall::{self, RANKED, Recalled, recall};
use crate::conversation::text_normalization::content_words;
use crate::conversation::transcript::{Brain, TurnId, UserId};
use crate::memory::index::Index;
use crate::memory::vector::Unit;
use crate::store::db::DbError;
use crate::store::memory::search::{self, Owners, Sought};
use crate::store::{Conn, QueryResult};

/// Longest wait for vectors while a user waits for the answer; without them by then, only the text is searched.
const PATIENCE: Duration = Duration::from_secs(2);
/// Number of rows that each ranking considers: the ranked ones, and those of a whole window, which are left out.
const LOOKED_AT: usize = RANKED + 20;
/// Number of changed rows that are read at once, so that a long memory is never read in one piece.
const PAGE: i64 = 1_000;

/// Meaning of a text to an embeddings model.
struct Meaning {
    model: String,
    vector: Unit,
}

/// Search by meaning: the vector to search for, and the index to search in.
struct ByMeaning {
    meaning: Meaning,
    index: OwnedMutexGuard<Index>,
}

impl ByMeaning {
    /// Returns the rows that can be among the most similar, and the meaning to compare them with. The index is
    /// released.
    fn likest(
        mut self,
        conn: &mut Conn,
        owners: &Owners,
        floor: f32,
    ) -> QueryResult<(Vec<i64>, Option<Meaning>)> {
        catch_up(&mut self.index, conn, owners, &self.meaning.model)?;
        let likest = self.index.likest(owners.keys(), &self.meaning.vector, LOOKED_AT, floor);
        Ok(([likest.triggers, likest.responses].concat(), Some(self.meaning)))
    }
}

impl Engine {
    /// Returns the lines for a turn's prompt, without the exchanges from turn `shown` on, which the model sees anyway.
    /// A memory that cannot be read costs the turn nothing but its lines, and a canceled turn needs none.
    pub(super) async fn remembered(&self, scene: &Scene, shown: Option<TurnId>) -> Vec<String> {
        let query = scene.turn.texts.join(" ");
        if scene.plan.brain == Brain::Keyword || scene.turn.cancel_requested {
            return Vec::new();
        }
        let found = tokio::select! {
            found = self.recall(scene.user.id, &query, shown) => found,
            () = self.taken_back(scene) => return Vec::new(),
        };
        match found {
            Ok(recalled) => recall::lines(&recalled, &self.0.parts.settings.zone),
            Err(error) => {
                let error = anyhow::Error::from(error);
                tracing::error!(turn = %scene.live.id, error = format!("{error:#}"), "memory could not be searched");
                Vec::new()
            }
        }
    }

    /// Returns the answers that `viewer` would get recalled for this query, without exchanges from turn `but_from` on.
    /// Nothing is similar to "2" and "yes".
    pub async fn recall(
        &self,
        viewer: UserId,
        query: &str,
        but_from: Option<TurnId>,
    ) -> Result<Recalled, DbError> {
        if !extraction::has_meaning(query) {
            return Ok(Recalled::default());
        }
        let by_meaning = match self.embed_query(query).await {
            Some(meaning) => {
                // The index is awaited here, so that the wait blocks no database reader for others.
                let index = self.0.index.clone().lock_owned().await;
                Some(ByMeaning { meaning, index })
            }
            None => None,
        };
        let query = query.to_owned();
        let floor = self.0.parts.settings.floor;
        let now = self.now();
        let search = move |conn: &mut Conn| {
            let owners = search::owners(conn, viewer)?;
            let (mut ids, sought) = match by_meaning {
                Some(by_meaning) => by_meaning.likest(conn, &owners, floor)?,
                None => (Vec::new(), None),
            };
            let by_words = search::by_words(conn, &owners, &content_words(&query), LOOKED_AT)?;
            ids.extend(&by_words);
            let sought = sought.as_ref().map(|Meaning { model, vector }| Sought { model, vector });
            let candidates = search::candidates(conn, &owners, &ids, sought, but_from)?;
            Ok(recall(&query, candidates, &by_words, floor, now))
        };
        self.0.parts.db.read(search).await
    }

    async fn embed_query(&self, query: &str) -> Option<Meaning> {
        let embedder = self.0.parts.embedder.as_ref()?;
        let texts = [query.to_owned()];
        // The wait for a slot counts toward the limit, since a user waits for the answer.
        let ask = async {
            let _place = self.0.embedding_places.acquire().await;
            embedder.embed(&texts).await
        };
        let asked = tokio::time::timeout(PATIENCE, ask).await;
        match asked {
            Ok(Ok(vectors)) => {
                let vector = vectors.into_iter().next().and_then(Unit::new)?;
                let model = vector.space(embedder.model());
                *self.0.space.lock().unwrap_or_else(PoisonError::into_inner) = Some(model.clone());
                Some(Meaning { model, vector })
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "what was said could not be embedded; memory is searched by words");
                None
            }
            Err(_) => {
                tracing::warn!("what was said was not embedded in time; memory is searched by words");
                None
            }
        }
    }
}

/// Brings the index in memory up to date with the stored rows.
fn catch_up(index: &mut Index, conn: &mut Conn, owners: &Owners, model: &str) -> QueryResult<()> {
    for owner in owners.keys() {
        loop {
            let changes = search::changes(conn, owner, model, index.revision(owner, model), PAGE)?;
            let is_last = i64::try_from(changes.len()).is_ok_and(|count| count < PAGE);
            if !changes.is_empty() {
                index.apply(owner, model, changes);
                index.make_room(owners.keys());
            }
            if is_last {
                break;
            }
        }
    }
    Ok(())
}
