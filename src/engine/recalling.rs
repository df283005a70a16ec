//! What a turn is told of what was said before: found by meaning and by words among what its user may find.

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

/// Somebody waits for the answer: without vectors by then, words alone are searched.
const PATIENCE: Duration = Duration::from_secs(2);
/// Rows that are looked at by each ranking: as many as count, and those of a whole window, which are left out.
const LOOKED_AT: usize = RANKED + 20;
/// Changed rows that are read at once, so that a long memory is never read in one piece.
const PAGE: i64 = 1_000;

/// What a text means to an embeddings model.
struct Meaning {
    model: String,
    vector: Unit,
}

/// What is sought by its meaning, and where.
struct ByMeaning {
    meaning: Meaning,
    index: OwnedMutexGuard<Index>,
}

impl ByMeaning {
    /// The rows that can be among the likest, and what they are to be compared with. The index is given back.
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
    /// The lines for a turn's prompt, but for what was said from turn `shown` on, which is before the model's eyes. A
    /// memory that cannot be read costs the turn nothing but its lines, and one that is taken back needs none.
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

    /// What `viewer` would be told when they say this, but for what was said from turn `but_from` on. To "2" and "yes"
    /// nothing is like.
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
                // Whoever waits for the index keeps no reader from others meanwhile.
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
        // Waiting for a place counts: somebody waits for the answer.
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

/// Brings what is kept in memory up to what is stored.
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
