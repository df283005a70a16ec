//! Background indexing of answers for recall: extracts the topics of an answer and computes its vectors. The table is
//! the queue. Full-text search finds answers regardless of it, because their text is added to the index separately.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::metadata_extractor::{MetadataExtractor, SourcedMetadata};
use super::metadata_failure::QueueFlow;
use crate::clock::Clock;
use crate::conversation::memory::answer_metadata;
use crate::conversation::people::facts::UserFact;
use crate::conversation::transcript::UserId;
use crate::engine::lifecycle::EngineLifecycle;
use crate::engine::model_calls::text_embedder::TextEmbedder;
use crate::engine::parts::{EngineParts, LiveParts};
use crate::engine::work_signal::WorkSignal;
use crate::llm::embeddings::EmbedError;
use crate::store::database::db::{Db, DbError};
use crate::store::memory::facts;
use crate::store::memory::indexing_queue::{self, BatchScope, IndexingJob, IndexingOutcome, IndexingResult};
use crate::store::people::users;
use crate::store::text_index::{self, TextIndexProgress};
use crate::store::{Conn, QueryResult};

/// Interval at which the queue is checked in case a wake-up is lost.
const CHECK_INTERVAL: Duration = Duration::from_secs(600);
/// Delay after the first waiting answer before a run starts. Answers that arrive meanwhile share its transactions and
/// model calls, and a running conversation has the model and the database first.
const BATCH_DELAY: Duration = Duration::from_secs(60);
/// Number of rows without vectors that one query loads.
const EMBED_BATCH: i64 = 20;

/// Counts of one indexing run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexingProgress {
    /// Answers that recall can find by their topics.
    pub indexed: usize,
    /// Greetings and similar messages that are not indexed.
    pub skipped: usize,
    /// Answers that were left in the queue for another attempt.
    pub failed: usize,
    /// Answers that were indexed earlier and got their vectors in this run.
    pub embedded: usize,
}

/// Indexer of answers, whose runs do not overlap.
pub struct MemoryIndexer {
    db: Db,
    clock: Clock,
    live: LiveParts,
    extractor: MetadataExtractor,
    lifecycle: EngineLifecycle,
    /// Signal that an answer waits for indexing.
    answer_stored: WorkSignal,
    /// Lock that prevents overlapping runs.
    run_lock: Mutex<()>,
}

/// Row of the queue with everything that is stored about it.
struct IndexedRow {
    id: i64,
    user: Option<UserId>,
    result: IndexingResult,
    /// Facts about the user that the answer suggests.
    suggested: Vec<UserFact>,
}

impl MemoryIndexer {
    pub(crate) fn new(parts: &EngineParts, lifecycle: EngineLifecycle, answer_stored: WorkSignal) -> Self {
        let EngineParts { db, clock, live, .. } = parts.clone();
        Self {
            db,
            clock,
            live,
            extractor: MetadataExtractor::new(parts),
            lifecycle,
            answer_stored,
            run_lock: Mutex::new(()),
        }
    }

    /// Shifts the pause of metadata extraction by a step of the wall clock.
    pub(crate) fn apply_clock_step(&self, step: SignedDuration) {
        self.extractor.apply_clock_step(step);
    }

    /// Indexes answers until `stop` is canceled. An interrupted row is indexed later.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let work = async {
            self.lifecycle.wait_for_turns().await;
            loop {
                tokio::select! {
                    () = self.answer_stored.wait() => tokio::time::sleep(BATCH_DELAY).await,
                    () = tokio::time::sleep(CHECK_INTERVAL) => {}
                }
                if let Err(error) = self.index_due_answers().await {
                    let error = anyhow::Error::from(error);
                    tracing::error!(error = format!("{error:#}"), "failed to index answers");
                }
            }
        };
        tokio::select! {
            () = work => {}
            () = stop.cancelled() => {}
            () = self.lifecycle.wait_for_drain() => {}
        }
    }

    /// Indexes answers and their text while the caller waits. The run continues even if the caller stops waiting.
    pub async fn index_for_caller(self: &Arc<Self>) -> Result<IndexingProgress, DbError> {
        let indexer = self.clone();
        // An operator who requests a run may know that the model is available again.
        self.extractor.end_pause();
        let work = async move {
            while indexer.db.write_unsynced(text_index::index_new_text).await? == TextIndexProgress::More {}
            tokio::select! {
                progress = indexer.index_due_answers() => progress,
                () = indexer.lifecycle.wait_for_drain() => Ok(IndexingProgress::default()),
            }
        };
        self.lifecycle.spawn(work).await.unwrap_or_else(|error| {
            tracing::error!(%error, "indexing of answers ended early");
            Ok(IndexingProgress::default())
        })
    }

    /// Processes every row that is due at its start. Runs do not overlap: a concurrent caller waits, and then finds the
    /// work done.
    pub async fn index_due_answers(&self) -> Result<IndexingProgress, DbError> {
        let _guard = self.run_lock.lock().await;
        let mut progress = IndexingProgress::default();
        // Rows that are stored during the run wait for the next run. Otherwise a busy run would end with batches of one.
        let mut newest: Option<i64> = None;
        while !self.lifecycle.is_draining() {
            let now = self.clock.now();
            if self.extractor.is_paused(now) {
                break;
            }
            // A batch is claimed just before its call, so that a text that is erased meanwhile is not sent to the model,
            // and each attempt is counted when it starts.
            let scope = self.extractor.batch_scope();
            let claim = move |conn: &mut Conn| {
                let newest = newest.map_or_else(|| indexing_queue::load_newest_answer(conn), Ok)?;
                let batch = indexing_queue::claim_indexing_jobs(conn, scope, newest, now)?;
                Ok(match batch.jobs.is_empty() {
                    true => None,
                    false => Some((newest, batch, users::load_user_names(conn)?)),
                })
            };
            let Some((claimed_up_to, batch, names)) = self.db.write_unsynced(claim).await? else { break };
            newest = Some(claimed_up_to);
            let queue_flow = self.index_batch(batch.jobs, scope, &names, &mut progress).await?;
            if queue_flow == QueueFlow::Stop || !batch.has_more {
                break;
            }
        }
        if let Some(embedder) = &self.live.current().embedder {
            self.embed_missing(embedder, &mut progress).await?;
        }
        Ok(progress)
    }

    async fn index_batch(
        &self,
        batch: Vec<IndexingJob>,
        scope: BatchScope,
        names: &[String],
        progress: &mut IndexingProgress,
    ) -> Result<QueueFlow, DbError> {
        let (rows, excluded): (Vec<_>, Vec<_>) = batch.into_iter().partition(|row| {
            row.turn.is_none() || answer_metadata::is_worth_indexing(&row.question, &row.answer, row.effect)
        });
        let extracted = self.extractor.extract_metadata(&rows, scope).await?;
        let mut results = Vec::new();
        for (row, metadata) in rows.into_iter().zip(extracted.metadata) {
            match metadata {
                Some(metadata) => results.push(self.index_row(row, metadata, names).await),
                None => progress.failed += 1,
            }
        }
        let now = self.clock.now();
        let excluded: Vec<i64> = excluded.iter().map(|row| row.id).collect();
        let record = move |conn: &mut _| record_batch(conn, &results, &excluded, now);
        let recorded = self.db.write_unsynced(record).await?;
        progress.indexed += recorded.indexed;
        progress.skipped += recorded.skipped;
        Ok(extracted.queue_flow)
    }

    /// Computes the vectors of a row, and applies the rules for sharing and for suggested facts to its metadata.
    async fn index_row(
        &self,
        row: IndexingJob,
        (metadata, source): SourcedMetadata,
        names: &[String],
    ) -> IndexedRow {
        let vectors = match &self.live.current().embedder {
            Some(embedder) => {
                let embedded = embedder.embed_exchange(&row.question, &row.answer).await;
                embedded
                    .inspect_err(|error| tracing::warn!(row = row.id, %error, "failed to embed an answer, retried in a later run"))
                    .ok()
            }
            None => None,
        };
        let is_shareable = metadata.is_shareable
            && row.turn.is_some()
            && answer_metadata::may_be_shared(&row.question, &row.answer, row.effect, names);
        // Models also report facts that the user did not state. Only supported facts are suggested to the operator.
        let supported = metadata.facts.iter().filter(|fact| fact.is_supported_by([row.question.as_str()]));
        let suggested = supported.cloned().collect();
        let result = IndexingResult { metadata, source, is_shareable, vectors };
        IndexedRow { id: row.id, user: row.user, result, suggested }
    }

    /// Computes the vectors of answers that have none, or that have vectors of another model.
    async fn embed_missing(
        &self,
        embedder: &TextEmbedder,
        progress: &mut IndexingProgress,
    ) -> Result<(), DbError> {
        // Without answers, no vector is computed to learn the vector space.
        if !self.db.read(indexing_queue::has_indexed_answers).await? {
            return Ok(());
        }
        let mut tried = HashSet::new();
        loop {
            let space = match embedder.vector_space().await {
                Ok(space) => space,
                Err(error) => {
                    tracing::warn!(%error, "failed to embed answers, only full-text search finds them");
                    return Ok(());
                }
            };
            let vector_space = space.clone();
            let mut rows = self
                .db
                .read(move |conn| {
                    indexing_queue::load_answers_without_vectors(conn, &vector_space, EMBED_BATCH)
                })
                .await?;
            rows.retain(|(id, ..)| tried.insert(*id));
            if rows.is_empty() || self.lifecycle.is_draining() {
                return Ok(());
            }
            for (id, question, answer) in rows {
                match embedder.embed_exchange(&question, &answer).await {
                    Ok(vectors) => {
                        let now = self.clock.now();
                        let store =
                            move |conn: &mut _| indexing_queue::store_vectors(conn, id, &vectors, now);
                        if self.db.write_unsynced(store).await? == IndexingOutcome::Recorded {
                            progress.embedded += 1;
                        }
                    }
                    Err(
                        error @ (EmbedError::Malformed(_)
                        | EmbedError::Rejected(_)
                        | EmbedError::Blank { .. }),
                    ) => {
                        tracing::warn!(row = id, %error, "failed to embed an answer");
                        // If the model rejects every text, as a nonexistent model does, this text is not the cause.
                        if embedder.rejects_every_text().await {
                            return Ok(());
                        }
                        let space = space.clone();
                        let count =
                            move |conn: &mut _| indexing_queue::count_failed_embedding(conn, id, &space);
                        self.db.write_unsynced(count).await?;
                    }
                    Err(error) => {
                        tracing::warn!(%error, "failed to embed answers, only full-text search finds them");
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// Records indexed rows, and rows that are excluded from search, and returns their counts.
fn record_batch(
    conn: &mut Conn,
    results: &[IndexedRow],
    excluded: &[i64],
    now: Timestamp,
) -> QueryResult<IndexingProgress> {
    let skipped = indexing_queue::exclude_answers(conn, excluded, now)?;
    let mut progress = IndexingProgress { skipped, ..IndexingProgress::default() };
    for row in results {
        if indexing_queue::complete_indexing_job(conn, row.id, &row.result, now)? == IndexingOutcome::Recorded
        {
            progress.indexed += 1;
            if let Some(user) = row.user {
                row.suggested.iter().try_for_each(|fact| facts::suggest_fact(conn, user, fact, now))?;
            }
        }
    }
    Ok(progress)
}
