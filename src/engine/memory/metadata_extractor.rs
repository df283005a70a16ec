//! Extraction of the metadata of answers, by the model or by code.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::metadata_failure::{MetadataFailure, QueueFlow};
use super::metadata_pause::MetadataPause;
use crate::clock::Clock;
use crate::conversation::memory::answer_metadata::{self, AnswerMetadata};
use crate::conversation::memory::metadata_reply::{self, Exchange};
use crate::conversation::model_cost::CostEstimate;
use crate::conversation::prompt;
use crate::conversation::transcript::{Responder, UserId};
use crate::engine::model_calls::call_schedule::CallPurpose;
use crate::engine::model_calls::caller::{ModelCall, ModelCallOutcome};
use crate::engine::parts::{ConfiguredParts, EngineParts, LiveParts};
use crate::engine::settings::MetadataSource;
use crate::store::database::db::{Db, DbError};
use crate::store::memory::indexing_queue::{self, AnnotationSource, BatchScope, IndexingJob};
use crate::store::turns::daily_budget::{self, BudgetRefusal, Day, ReservationOutcome};
use crate::store::turns::running_calls::RunningCalls;

/// Number of attempts with the model before code extracts the metadata instead.
const MAX_ATTEMPTS: u32 = 3;
/// Time limit of one model call.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of rows in one model call.
const MAX_BATCH: usize = 8;

/// Metadata of the rows of a batch, and the decision whether to continue with the next batch.
pub(super) struct ExtractedBatch {
    /// `None` for a row that stays in the queue for another attempt.
    pub(super) metadata: Vec<Option<SourcedMetadata>>,
    pub(super) queue_flow: QueueFlow,
}

pub(super) type SourcedMetadata = (AnswerMetadata, AnnotationSource);

/// Extractor of metadata, which pauses while the model does not respond.
pub(super) struct MetadataExtractor {
    db: Db,
    clock: Clock,
    live: LiveParts,
    running_calls: RunningCalls,
    pause: MetadataPause,
    /// Number of rows in one model call. A slow model cannot file as many as a fast one within the time limit.
    batch_limit: AtomicUsize,
}

impl MetadataExtractor {
    pub(super) fn new(parts: &EngineParts) -> Self {
        let EngineParts { db, clock, live, running_calls, .. } = parts.clone();
        let batch_limit = AtomicUsize::new(MAX_BATCH);
        Self { db, clock, live, running_calls, pause: MetadataPause::default(), batch_limit }
    }

    pub(super) fn is_paused(&self, now: Timestamp) -> bool {
        self.pause.is_active(now)
    }

    pub(super) fn end_pause(&self) {
        self.pause.end();
    }

    pub(super) fn apply_clock_step(&self, step: SignedDuration) {
        self.pause.apply_clock_step(step);
    }

    fn batch_limit(&self) -> usize {
        self.batch_limit.load(Ordering::Relaxed)
    }

    /// Returns the answers that the next batch may contain.
    pub(super) fn batch_scope(&self) -> BatchScope {
        match uses_model(&self.live.current()) {
            true => BatchScope::OneUser(self.batch_limit()),
            false => BatchScope::AllUsers,
        }
    }

    /// Extracts metadata by the model if the model is enabled, the rows are from one user, and the call can be charged to
    /// a turn of the user; by code otherwise. A row that failed before is alone.
    pub(super) async fn extract_metadata(
        &self,
        rows: &[IndexingJob],
        scope: BatchScope,
    ) -> Result<ExtractedBatch, DbError> {
        let payer = rows.first().and_then(|row| row.turn.and(row.user));
        let parts = self.live.current();
        let uses_model = scope != BatchScope::AllUsers && uses_model(&parts);
        // Attempts that ended in a crash count too, so a row may already have used all of them.
        let has_attempts = rows.iter().all(|row| row.attempt <= MAX_ATTEMPTS);
        let Some(user) = payer.filter(|_| uses_model && has_attempts) else {
            let metadata = rows.iter().map(|row| Some(extract_by_code(row))).collect();
            return Ok(ExtractedBatch { metadata, queue_flow: QueueFlow::Continue });
        };
        let reply = self.request_metadata(&parts, rows, user).await?;
        self.adapt_batch_limit(rows.len(), &reply);
        let mut metadata = Vec::new();
        match reply {
            Ok(results) => {
                let unusable =
                    MetadataFailure::UnusableReply("the reply has no valid result for it".to_owned());
                for (row, result) in rows.iter().zip(results) {
                    metadata.push(match result {
                        Some(result) => Some((result, AnnotationSource::Model)),
                        None => self.fall_back_to_code(row, rows.len(), &unusable).await?,
                    });
                }
                Ok(ExtractedBatch { metadata, queue_flow: QueueFlow::Continue })
            }
            Err(failure) => {
                if let MetadataFailure::ModelUnavailable(error) = &failure {
                    self.pause.extend(self.clock.now(), error.failure_class().retry_after);
                }
                for row in rows {
                    metadata.push(self.fall_back_to_code(row, rows.len(), &failure).await?);
                }
                Ok(ExtractedBatch { metadata, queue_flow: failure.queue_flow() })
            }
        }
    }

    /// Requests the metadata of all rows in one model call, which is charged to `user`.
    async fn request_metadata(
        &self,
        ConfiguredParts { settings, models, .. }: &ConfiguredParts,
        rows: &[IndexingJob],
        user: UserId,
    ) -> Result<Result<Vec<Option<AnswerMetadata>>, MetadataFailure>, DbError> {
        let exchanges: Vec<_> =
            rows.iter().map(|row| Exchange { question: &row.question, answer: &row.answer }).collect();
        let request = prompt::build_metadata_request(&exchanges);
        let estimate = CostEstimate::from_request(&request, settings.prices);
        let day = Day::from_timestamp(self.clock.now(), &settings.zone);
        let (call, budget) =
            (daily_budget::BudgetedCall { user, day, estimate }, settings.budget.background_half());
        let running_calls = self.running_calls.clone();
        let reserve =
            move |conn: &mut _| daily_budget::reserve_call_cost(conn, &running_calls, &call, budget);
        let reservation = match self.db.write(reserve).await? {
            ReservationOutcome::Granted(reservation) => reservation,
            ReservationOutcome::Refused(BudgetRefusal::Reserved) => {
                return Ok(Err(MetadataFailure::BudgetReserved));
            }
            ReservationOutcome::Refused(BudgetRefusal::Exhausted) => {
                return Ok(Err(MetadataFailure::BudgetSpent));
            }
        };
        let call = ModelCall {
            purpose: CallPurpose::Notes,
            responder: Responder::Model,
            request: &request,
            estimate,
            prices: settings.prices,
            timeout: CALL_TIMEOUT,
        };
        let ModelCallOutcome { response, charge } = models.call_model(call, &mut |_| {}).await;
        self.db.write(move |conn| daily_budget::settle_call_cost(conn, &reservation, charge)).await?;
        Ok(match response {
            Ok(response) => {
                self.pause.end();
                Ok(metadata_reply::parse_metadata(&response.text, &exchanges))
            }
            Err(error) => Err(MetadataFailure::from_error(error)),
        })
    }

    /// Halves the number of rows in a call after a call that was too large, and raises it by one after a full call with a
    /// usable reply.
    fn adapt_batch_limit(&self, batch: usize, reply: &Result<Vec<Option<AnswerMetadata>>, MetadataFailure>) {
        let limit = self.batch_limit();
        let adapted = match reply {
            Ok(results) if results.iter().any(Option::is_some) => limit.max(batch + 1).min(MAX_BATCH),
            Err(failure) if !failure.may_depend_on_size() => limit,
            Ok(_) | Err(_) => (batch / 2).max(1),
        };
        self.batch_limit.store(adapted, Ordering::Relaxed);
    }

    /// Extracts the metadata of a row by code if the attempts or the budget are used up. Returns `None` and leaves the
    /// row in the queue otherwise, for another attempt without the rest of its batch.
    async fn fall_back_to_code(
        &self,
        row: &IndexingJob,
        batch: usize,
        failure: &MetadataFailure,
    ) -> Result<Option<SourcedMetadata>, DbError> {
        let (id, now) = (row.id, self.clock.now());
        if (matches!(failure, MetadataFailure::BudgetSpent) && batch == 1)
            || (failure.counts_as_attempt() && row.attempt >= MAX_ATTEMPTS)
        {
            return Ok(Some(extract_by_code(row)));
        }
        let reason = match failure {
            MetadataFailure::BudgetSpent | MetadataFailure::BudgetReserved => "the day's budget has no room",
            MetadataFailure::UnusableReply(reason) => reason,
            MetadataFailure::ModelUnavailable(error) => &error.to_string(),
        };
        tracing::warn!(
            row = id,
            attempt = row.attempt,
            reason,
            "failed to extract the metadata of an answer"
        );
        if !failure.counts_as_attempt() {
            self.db.write(move |conn| indexing_queue::release_indexing_job(conn, id, now)).await?;
        }
        Ok(None)
    }
}

fn uses_model(parts: &ConfiguredParts) -> bool {
    parts.models.has_model() && parts.settings.metadata_source == MetadataSource::ByModel
}

fn extract_by_code(row: &IndexingJob) -> SourcedMetadata {
    let metadata = answer_metadata::extract_without_model(&row.question, &row.answer, row.effect);
    (metadata, AnnotationSource::Code)
}
