//! Background indexing of answers for recall: the topics of an answer are extracted, and its vectors are computed. The
//! table is the queue. No row is processed twice, and text search finds a row whose indexing failed.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::PoisonError;
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::metadata_failure::{MetadataFailure, QueueFlow};
use super::model_call::{ModelCall, ModelCallOutcome};
use super::{Engine, MetadataSource};
use crate::conversation::memory::answer_metadata::{self, AnswerMetadata};
use crate::conversation::model_cost::{CostEstimate, ModelCharge};
use crate::conversation::people::facts::UserFact;
use crate::conversation::prompt;
use crate::conversation::transcript::UserId;
use crate::llm::embeddings::{EmbedError, Embedder};
use crate::memory::vector::UnitVector;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::database::db::DbError;
use crate::store::memory::facts;
use crate::store::memory::indexing_queue::{
    self, AnnotationSource, EmbeddedAnswer, IndexingJob, IndexingOutcome, IndexingResult,
};
use crate::store::memory::responses::{self, AnswerOwner};
use crate::store::memory::shared_answers::{self, ReviewOutcome};
use crate::store::people::users;
use crate::store::privacy::erase_answer;
use crate::store::turns::daily_budget::{self, Day, ReservationOutcome};

/// Interval at which the queue is checked in case a wake-up is lost.
const CHECK_INTERVAL: Duration = Duration::from_secs(600);
/// Silence after an answer before anything is indexed: the conversation has the model and the database first.
const IDLE_DELAY: Duration = Duration::from_secs(30);
/// Number of rows without vectors that are read at once.
const EMBED_BATCH: i64 = 20;
/// Text that every embeddings model can read.
const PROBE_TEXT: &str = "hello";
/// Number of tries with the model before code extracts as much metadata as it can.
const MAX_TRIES: u32 = 3;
/// Time limit of one model call.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Row counts of one run over the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexingProgress {
    /// Answers that recall can find by their topics.
    pub indexed: usize,
    /// Greetings and similar messages that are not indexed.
    pub skipped: usize,
    /// Answers left for another try.
    pub failed: usize,
    /// Answers that got their vectors after their other metadata.
    pub embedded: usize,
}

/// Users who may find an exchange that the operator adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerAudience {
    User(UserId),
    Everyone,
}

/// Exchange that the operator adds by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManualAnswer {
    pub audience: AnswerAudience,
    pub question: String,
    pub answer: String,
}

/// Admin's decision on an answer that the model considers general.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharingDecision {
    /// All users may find the answer.
    Share,
    Keep,
}

/// Metadata of a row, its source, and the decision whether the next row is worth a try.
type ExtractedMetadata = (AnswerMetadata, AnnotationSource, QueueFlow);

impl Engine {
    /// Indexes answers until `stop` is canceled. A row whose work is interrupted is tried again later.
    pub async fn run_indexing(self, stop: CancellationToken) {
        let work = async {
            self.0.lifecycle.wait_for_turns().await;
            loop {
                tokio::select! {
                    () = self.0.turn_answered.wait() => tokio::time::sleep(IDLE_DELAY).await,
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
            () = self.0.lifecycle.wait_for_drain() => {}
        }
    }

    /// Indexes answers while the caller waits. The work continues if the caller stops waiting.
    pub async fn index_for_caller(&self) -> Result<IndexingProgress, DbError> {
        let engine = self.clone();
        // An operator who requests a run may know that the model is available again.
        self.0.metadata_pause.end();
        let work = async move {
            tokio::select! {
                progress = engine.index_due_answers() => progress,
                () = engine.0.lifecycle.wait_for_drain() => Ok(IndexingProgress::default()),
            }
        };
        self.0.lifecycle.spawn(work).await.unwrap_or_else(|error| {
            tracing::error!(%error, "indexing of answers ended early");
            Ok(IndexingProgress::default())
        })
    }

    /// Processes every due row. Runs do not overlap: a concurrent caller waits, and then finds the work done.
    pub async fn index_due_answers(&self) -> Result<IndexingProgress, DbError> {
        let _turn = self.0.indexing_lock.lock().await;
        let mut progress = IndexingProgress::default();
        let names = self.0.parts.db.read(users::load_user_names).await?;
        while !self.0.lifecycle.is_draining() {
            let now = self.now();
            if self.0.metadata_pause.is_active(now) {
                break;
            }
            // Rows are claimed one by one, so that text that is erased meanwhile is not sent anywhere, and each try is
            // counted when it is made.
            let taken =
                self.0.parts.db.write(move |conn| indexing_queue::claim_indexing_jobs(conn, 1, now)).await?;
            let Some(row) = taken.first() else { break };
            match self.index_answer(row, &names, &mut progress).await? {
                QueueFlow::Continue => {}
                QueueFlow::Stop => break,
            }
        }
        if let Some(embedder) = &self.0.parts.embedder {
            self.embed_missing(&**embedder, &mut progress).await?;
        }
        Ok(progress)
    }

    /// Adds an exchange to the answers that recall can find, and returns its row id.
    pub async fn add_manual_answer(&self, addition: ManualAnswer, by: Actor) -> Result<i64, DbError> {
        let now = self.now();
        let add = move |conn: &mut _| {
            let (owner, user, subject) = match addition.audience {
                AnswerAudience::User(user) => (AnswerOwner::User(user), Some(user), AuditSubject::User(user)),
                AnswerAudience::Everyone => (AnswerOwner::Everyone, None, AuditSubject::Household),
            };
            let entry = NewAuditEntry { actor: by, kind: "memory_added", subject, detail: json!({}) };
            audit::record_change(conn, &entry, now)?;
            let ManualAnswer { question, answer, .. } = addition;
            responses::add_operator_answer(conn, owner, user, (question, answer), now)
        };
        let id = self.0.parts.db.write(add).await?;
        self.0.turn_answered.notify();
        Ok(id)
    }

    /// Records the decision whether all users may find an answer.
    pub async fn decide_suggestion(
        &self,
        id: i64,
        verdict: SharingDecision,
        by: Actor,
    ) -> Result<ReviewOutcome, DbError> {
        let now = self.now();
        let settle = move |conn: &mut _| {
            let (settled, kind) = match verdict {
                SharingDecision::Share => (shared_answers::approve_answer(conn, id)?, "memory_shared"),
                SharingDecision::Keep => (shared_answers::refuse_answer(conn, id)?, "memory_kept"),
            };
            if let (ReviewOutcome::Applied, Some(user)) =
                (settled, shared_answers::load_asking_user(conn, id)?)
            {
                let entry =
                    NewAuditEntry { actor: by, kind, subject: AuditSubject::User(user), detail: json!({}) };
                audit::record_change(conn, &entry, now)?;
            }
            Ok(settled)
        };
        self.0.parts.db.write(settle).await
    }

    /// Erases an answer from memory, regardless of its owner.
    pub async fn forget_answer(&self, id: i64, by: Actor) -> Result<ReviewOutcome, DbError> {
        let now = self.now();
        let forget = move |conn: &mut _| {
            let asked_by = shared_answers::load_asking_user(conn, id)?;
            if !erase_answer(conn, id, now)? {
                return Ok(ReviewOutcome::TooLate);
            }
            let subject = asked_by.map_or(AuditSubject::Household, AuditSubject::User);
            let entry = NewAuditEntry { actor: by, kind: "memory_erased", subject, detail: json!({}) };
            audit::record_change(conn, &entry, now)?;
            Ok(ReviewOutcome::Applied)
        };
        self.0.parts.db.write(forget).await
    }

    async fn index_answer(
        &self,
        row: &IndexingJob,
        names: &[String],
        progress: &mut IndexingProgress,
    ) -> Result<QueueFlow, DbError> {
        let (id, now) = (row.id, self.now());
        let of_conversation = row.turn.is_some();
        if of_conversation && !answer_metadata::is_worth_indexing(&row.question, row.effect) {
            if self.0.parts.db.write(move |conn| indexing_queue::exclude_answer(conn, id, now)).await?
                == IndexingOutcome::Recorded
            {
                progress.skipped += 1;
            }
            return Ok(QueueFlow::Continue);
        }
        let (extraction, by, going) = match self.extract_metadata(row).await? {
            Ok((extraction, by)) => (extraction, by, QueueFlow::Continue),
            Err(unnoted) => match self.fall_back_to_code(row, unnoted, progress).await? {
                ControlFlow::Continue(noted) => noted,
                ControlFlow::Break(going) => return Ok(going),
            },
        };
        let vectors = match &self.0.parts.embedder {
            Some(embedder) => {
                let embedded = self.embed_exchange(&**embedder, &row.question, &row.answer).await;
                embedded
                    .inspect_err(|error| tracing::warn!(row = id, %error, "an answer is not embedded yet"))
                    .ok()
            }
            None => None,
        };
        let general = extraction.is_shareable
            && of_conversation
            && answer_metadata::may_be_shared(&row.question, &row.answer, row.effect, names);
        // A model may report many things as facts. Only facts in the user's own words are suggested to the operator.
        let stated = extraction.facts.iter().filter(|fact| fact.is_supported_by([row.question.as_str()]));
        let (user, suggested): (_, Vec<UserFact>) = (row.user, stated.cloned().collect());
        let learned = IndexingResult { extraction, source: by, is_shareable: general, vectors };
        let complete = move |conn: &mut _| {
            let recorded = indexing_queue::complete_indexing_job(conn, id, &learned, now)?;
            if let (IndexingOutcome::Recorded, Some(user)) = (recorded, user) {
                suggested.iter().try_for_each(|fact| facts::suggest_fact(conn, user, fact, now))?;
            }
            Ok(recorded)
        };
        if self.0.parts.db.write(complete).await? == IndexingOutcome::Recorded {
            progress.indexed += 1;
        }
        Ok(going)
    }

    /// Extracts the metadata of a row by code if the model has used up its tries or the budget, and postpones the row
    /// otherwise.
    async fn fall_back_to_code(
        &self,
        row: &IndexingJob,
        unnoted: MetadataFailure,
        progress: &mut IndexingProgress,
    ) -> Result<ControlFlow<QueueFlow, ExtractedMetadata>, DbError> {
        let (id, now, going) = (row.id, self.now(), unnoted.queue_flow());
        if let MetadataFailure::ModelUnavailable(error) = &unnoted {
            self.0.metadata_pause.extend(now, error.failure_class().retry_after);
        }
        if matches!(unnoted, MetadataFailure::BudgetSpent)
            || (unnoted.counts_as_try() && row.attempt >= MAX_TRIES)
        {
            let extraction = answer_metadata::extract_without_model(&row.question, &row.answer, row.effect);
            return Ok(ControlFlow::Continue((extraction, AnnotationSource::Code, going)));
        }
        let why = match &unnoted {
            MetadataFailure::BudgetSpent | MetadataFailure::BudgetReserved => "the budget is crowded",
            MetadataFailure::UnusableReply(why) => why,
            MetadataFailure::ModelUnavailable(error) => &error.to_string(),
        };
        tracing::warn!(row = id, attempt = row.attempt, why, "failed to extract the metadata of an answer");
        if !unnoted.counts_as_try() {
            self.0.parts.db.write(move |conn| indexing_queue::release_indexing_job(conn, id, now)).await?;
        }
        progress.failed += 1;
        Ok(ControlFlow::Break(going))
    }

    /// Extracts metadata with the model if the model is enabled and the call can be charged to a user's turn, and by
    /// code otherwise.
    async fn extract_metadata(
        &self,
        row: &IndexingJob,
    ) -> Result<Result<(AnswerMetadata, AnnotationSource), MetadataFailure>, DbError> {
        let by_code = || {
            (
                answer_metadata::extract_without_model(&row.question, &row.answer, row.effect),
                AnnotationSource::Code,
            )
        };
        let (Some(model), Some(turn), Some(user)) = (self.0.models.configured_model(), row.turn, row.user)
        else {
            return Ok(Ok(by_code()));
        };
        // If every try ended in a crash, code extracts the metadata without another try.
        if self.0.parts.settings.metadata_source == MetadataSource::ByCode || row.attempt > MAX_TRIES {
            return Ok(Ok(by_code()));
        }
        let request = prompt::build_metadata_request(&row.question, &row.answer);
        let estimate = CostEstimate::from_request(&request, self.0.parts.settings.prices);
        let day = Day::from_timestamp(self.now(), &self.0.parts.settings.zone);
        let (call, budget) = (
            daily_budget::BudgetedCall { turn, user, day, estimate },
            self.0.parts.settings.budget.background_half(),
        );
        let reserve = move |conn: &mut _| {
            // An interrupted try has left its cost reservation.
            daily_budget::settle_call_cost(conn, turn, ModelCharge::Input)?;
            daily_budget::reserve_call_cost(conn, &call, budget)
        };
        match self.0.parts.db.write(reserve).await? {
            ReservationOutcome::Granted => {}
            ReservationOutcome::Crowded => return Ok(Err(MetadataFailure::BudgetReserved)),
            ReservationOutcome::Exhausted => return Ok(Err(MetadataFailure::BudgetSpent)),
        }
        let asked = ModelCall { model, request: &request, estimate, timeout: CALL_TIMEOUT };
        let ModelCallOutcome { response, charge } = self.0.models.call_model(asked, &mut |_| {}).await;
        self.0.parts.db.write(move |conn| daily_budget::settle_call_cost(conn, turn, charge)).await?;
        Ok(match response {
            Ok(step) => {
                self.0.metadata_pause.end();
                let noted =
                    answer_metadata::parse_metadata(&step.text).map(|noted| (noted, AnnotationSource::Model));
                noted.ok_or_else(|| {
                    MetadataFailure::UnusableReply("the reply is not what was asked for".to_owned())
                })
            }
            Err(error) => Err(MetadataFailure::from_error(error)),
        })
    }

    /// Computes the vectors of a question and its answer in one request.
    async fn embed_exchange(
        &self,
        embedder: &dyn Embedder,
        question: &str,
        answer: &str,
    ) -> Result<EmbeddedAnswer, EmbedError> {
        let asked = answer_metadata::is_meaningful_question(question);
        let texts: Vec<String> =
            [answer].into_iter().chain(asked.then_some(question)).map(str::to_owned).collect();
        let _place = self.0.embedding_permits.acquire().await;
        let vectors = tokio::time::timeout(CALL_TIMEOUT, embedder.embed(&texts)).await;
        let mut vectors = vectors.unwrap_or(Err(EmbedError::Timeout))?.into_iter().map(UnitVector::new);
        let none = || EmbedError::Garbled("a vector is missing".to_owned());
        let response = vectors.next().flatten().ok_or_else(none)?;
        let trigger = vectors.next().flatten();
        let space = response.space_key(embedder.model());
        *self.0.vector_space.lock().unwrap_or_else(PoisonError::into_inner) = Some(space.clone());
        Ok(EmbeddedAnswer { model: space, trigger, response })
    }

    /// Returns the vector space of newly computed vectors. Only vectors of one space are comparable. The space is
    /// unknown before the first vector.
    async fn vector_space(&self, embedder: &dyn Embedder) -> Result<String, EmbedError> {
        let known = self.0.vector_space.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(space) => Ok(space),
            None => self.embed_exchange(embedder, "", PROBE_TEXT).await.map(|vectors| vectors.model),
        }
    }

    /// Embeds answers that have no vectors yet, or those of another model.
    async fn embed_missing(
        &self,
        embedder: &dyn Embedder,
        progress: &mut IndexingProgress,
    ) -> Result<(), DbError> {
        let nothing = self
            .0
            .parts
            .db
            .read(|conn| indexing_queue::load_answers_without_vectors(conn, "", 1))
            .await?
            .is_empty();
        if nothing {
            return Ok(());
        }
        let mut tried = HashSet::new();
        loop {
            let space = match self.vector_space(embedder).await {
                Ok(space) => space,
                Err(error) => {
                    tracing::warn!(%error, "failed to embed answers, text search finds them meanwhile");
                    return Ok(());
                }
            };
            let wanted = space.clone();
            let mut rows = self
                .0
                .parts
                .db
                .read(move |conn| indexing_queue::load_answers_without_vectors(conn, &wanted, EMBED_BATCH))
                .await?;
            rows.retain(|(id, ..)| tried.insert(*id));
            if rows.is_empty() || self.0.lifecycle.is_draining() {
                return Ok(());
            }
            for (id, question, answer) in rows {
                match self.embed_exchange(embedder, &question, &answer).await {
                    Ok(vectors) => {
                        let now = self.now();
                        let embed =
                            move |conn: &mut _| indexing_queue::store_vectors(conn, id, &vectors, now);
                        if self.0.parts.db.write(embed).await? == IndexingOutcome::Recorded {
                            progress.embedded += 1;
                        }
                    }
                    Err(
                        error @ (EmbedError::Garbled(_) | EmbedError::Rejected(_) | EmbedError::Blank { .. }),
                    ) => {
                        tracing::warn!(row = id, %error, "failed to embed an answer");
                        // A nonexistent model refuses every text, so the refusal is not caused by this text.
                        if embedder.embed(&[PROBE_TEXT.to_owned()]).await.is_err() {
                            return Ok(());
                        }
                        let space = space.clone();
                        let count =
                            move |conn: &mut _| indexing_queue::count_failed_embedding(conn, id, &space);
                        self.0.parts.db.write(count).await?;
                    }
                    Err(error) => {
                        tracing::warn!(%error, "failed to embed answers, text search finds them meanwhile");
                        return Ok(());
                    }
                }
            }
        }
    }
}
