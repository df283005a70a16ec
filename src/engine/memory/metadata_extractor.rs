//! Extraction of the metadata of an answer, by the model or by code.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::metadata_failure::{MetadataFailure, QueueFlow};
use super::metadata_pause::MetadataPause;
use crate::clock::Clock;
use crate::conversation::memory::answer_metadata::{self, AnswerMetadata};
use crate::conversation::model_cost::{CostEstimate, ModelCharge};
use crate::conversation::prompt;
use crate::conversation::transcript::Responder;
use crate::engine::model_calls::call_schedule::CallPurpose;
use crate::engine::model_calls::caller::{ModelCall, ModelCallOutcome, ModelCaller};
use crate::engine::parts::EngineParts;
use crate::engine::settings::{HouseholdSettings, MetadataSource};
use crate::store::database::db::{Db, DbError};
use crate::store::memory::indexing_queue::{self, AnnotationSource, IndexingJob};
use crate::store::turns::daily_budget::{self, Day, ReservationOutcome};

/// Number of attempts with the model before code extracts the metadata instead.
const MAX_ATTEMPTS: u32 = 3;
/// Time limit of one model call.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Metadata of a row, its source, and the decision whether to continue with the next row.
pub(super) type ExtractedMetadata = (AnswerMetadata, AnnotationSource, QueueFlow);

/// Extractor of metadata, which pauses while the model does not respond.
pub(super) struct MetadataExtractor {
    db: Db,
    clock: Clock,
    settings: Arc<HouseholdSettings>,
    models: Arc<ModelCaller>,
    pause: MetadataPause,
}

impl MetadataExtractor {
    pub(super) fn new(parts: &EngineParts, models: Arc<ModelCaller>) -> Self {
        let EngineParts { db, clock, settings, .. } = parts.clone();
        Self { db, clock, settings, models, pause: MetadataPause::default() }
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

    /// Extracts the metadata of a row. `Break` leaves the row in the queue for another attempt.
    pub(super) async fn extract_metadata(
        &self,
        row: &IndexingJob,
    ) -> Result<ControlFlow<QueueFlow, ExtractedMetadata>, DbError> {
        match self.try_extraction(row).await? {
            Ok((metadata, source)) => Ok(ControlFlow::Continue((metadata, source, QueueFlow::Continue))),
            Err(failure) => self.fall_back_to_code(row, failure).await,
        }
    }

    /// Extracts metadata by the model if the model is enabled and the call can be charged to a user's turn, and by code
    /// otherwise.
    async fn try_extraction(
        &self,
        row: &IndexingJob,
    ) -> Result<Result<(AnswerMetadata, AnnotationSource), MetadataFailure>, DbError> {
        let by_code = || {
            (
                answer_metadata::extract_without_model(&row.question, &row.answer, row.effect),
                AnnotationSource::Code,
            )
        };
        let (true, Some(turn), Some(user)) = (self.models.has_model(), row.turn, row.user) else {
            return Ok(Ok(by_code()));
        };
        // Attempts that ended in a crash count too, so the row may already have used all of them.
        if self.settings.metadata_source == MetadataSource::ByCode || row.attempt > MAX_ATTEMPTS {
            return Ok(Ok(by_code()));
        }
        let request = prompt::build_metadata_request(&row.question, &row.answer);
        let estimate = CostEstimate::from_request(&request, self.settings.prices);
        let day = Day::from_timestamp(self.clock.now(), &self.settings.zone);
        let (call, budget) = (
            daily_budget::BudgetedCall { turn, user, day, estimate },
            self.settings.budget.background_half(),
        );
        let reserve = move |conn: &mut _| {
            // An interrupted attempt has left its cost reservation.
            daily_budget::settle_call_cost(conn, turn, ModelCharge::Input)?;
            daily_budget::reserve_call_cost(conn, &call, budget)
        };
        match self.db.write(reserve).await? {
            ReservationOutcome::Granted => {}
            ReservationOutcome::BudgetReserved => return Ok(Err(MetadataFailure::BudgetReserved)),
            ReservationOutcome::Exhausted => return Ok(Err(MetadataFailure::BudgetSpent)),
        }
        let call = ModelCall {
            purpose: CallPurpose::Notes,
            responder: Responder::Model,
            request: &request,
            estimate,
            timeout: CALL_TIMEOUT,
        };
        let ModelCallOutcome { response, charge } = self.models.call_model(call, &mut |_| {}).await;
        self.db.write(move |conn| daily_budget::settle_call_cost(conn, turn, charge)).await?;
        Ok(match response {
            Ok(response) => {
                self.pause.end();
                let metadata = answer_metadata::parse_metadata(&response.text);
                metadata.map(|metadata| (metadata, AnnotationSource::Model)).ok_or_else(|| {
                    MetadataFailure::UnusableReply("the reply does not have the requested format".to_owned())
                })
            }
            Err(error) => Err(MetadataFailure::from_error(error)),
        })
    }

    /// Extracts the metadata of a row by code if the attempts or the budget are used up, and leaves the row in the queue
    /// otherwise.
    async fn fall_back_to_code(
        &self,
        row: &IndexingJob,
        failure: MetadataFailure,
    ) -> Result<ControlFlow<QueueFlow, ExtractedMetadata>, DbError> {
        let (id, now, queue_flow) = (row.id, self.clock.now(), failure.queue_flow());
        if let MetadataFailure::ModelUnavailable(error) = &failure {
            self.pause.extend(now, error.failure_class().retry_after);
        }
        if matches!(failure, MetadataFailure::BudgetSpent)
            || (failure.counts_as_attempt() && row.attempt >= MAX_ATTEMPTS)
        {
            let metadata = answer_metadata::extract_without_model(&row.question, &row.answer, row.effect);
            return Ok(ControlFlow::Continue((metadata, AnnotationSource::Code, queue_flow)));
        }
        let reason = match &failure {
            MetadataFailure::BudgetSpent | MetadataFailure::BudgetReserved => {
                "the day's budget is reserved by running calls"
            }
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
        Ok(ControlFlow::Break(queue_flow))
    }
}
