//! Records of the model calls of a turn, with their reservations in the day's budget.

use jiff::Timestamp;

use super::turn_log::{TurnLog, TurnProgress};
use crate::conversation::model_cost::{CostEstimate, ModelCharge};
use crate::conversation::prompt::FrozenContext;
use crate::conversation::transcript::{ModelStep, Responder};
use crate::conversation::turn::{StepFailure, TurnUpdate};
use crate::engine::reply_address;
use crate::engine::settings::HouseholdSettings;
use crate::engine::stream::recorder::DeltaRecorder;
use crate::engine::turns::turn_context::TurnContext;
use crate::store::database::db::{DbError, Durability};
use crate::store::queue::inbound_messages::MessageOutcome;
use crate::store::turns::budget_blocks::{self, CallCover};
use crate::store::turns::daily_budget::{self, BudgetedCall, Day, ReservationOutcome};
use crate::store::turns::finished_turns::{self, TurnEnd};
use crate::store::turns::model_steps::{self, AbandonedAttempt, AttemptId, RecordedResponse};
use crate::store::turns::turn_lifecycle::{self, TriageState};
use crate::store::{Conn, QueryResult};

/// Notification of the admins, sent at most once a day.
const BUDGET_SPENT_NOTIFICATION: &str = "Today's model budget is used up. Until midnight I only understand short commands such as ADD, STATUS and REMOVE.";
const SKIPPED_SMALL_TALK: MessageOutcome = MessageOutcome::Skipped("small_talk");

/// Attempt of a model call that is about to start.
pub(crate) struct NewAttempt {
    pub(crate) id: AttemptId,
    pub(crate) responder: Responder,
    /// Name of the model.
    pub(crate) model: String,
    pub(crate) estimate: CostEstimate,
    /// Context of the turn, if this is its first request to a model.
    pub(crate) context: Option<FrozenContext>,
}

impl TurnLog {
    /// Records an attempt, and abandons it if its cost does not fit into the day's budget. Returns `None` if the turn
    /// was canceled after it was loaded. The keyword responder costs nothing.
    pub(crate) async fn start_attempt(
        &self,
        attempt: NewAttempt,
    ) -> Result<Option<ReservationOutcome>, DbError> {
        let (now, id, responder) = (self.now(), attempt.id, attempt.responder);
        let call = self.budgeted_call(attempt.estimate, now);
        let settings = self.logs.settings();
        // The budget must count a call that was made. The keyword responder calls nothing.
        let cover = match responder {
            Responder::Model => Some(self.logs.budget_block.cover_call(&call, settings.budget)),
            Responder::Keyword => None,
        };
        let durability = cover.as_ref().map_or(Durability::Unsynced, CallCover::durability);
        let new_block = cover.as_ref().and_then(CallCover::new_block);
        let start = move |conn: &mut Conn| {
            let reservation = match responder {
                Responder::Model => daily_budget::reserve_step_cost(conn, &call, settings.budget)?,
                Responder::Keyword => {
                    let is_canceled = turn_lifecycle::is_cancel_requested(conn, id.turn)?;
                    (!is_canceled).then_some(ReservationOutcome::Granted)
                }
            };
            let Some(reservation) = reservation else { return Ok(None) };
            match &attempt.context {
                Some(context) => model_steps::start_first_attempt(conn, id, &attempt.model, context, now)?,
                None => model_steps::start_attempt(conn, id, responder, &attempt.model, now)?,
            }
            if let Some(block) = &new_block {
                budget_blocks::open_block(conn, block)?;
            }
            abandon_without_budget(conn, id, (reservation, &call.day), &settings, now)?;
            Ok(Some(reservation))
        };
        let reservation = self.write_with(durability, start).await?;
        if let (Some(cover), Some(_)) = (cover, reservation) {
            cover.commit();
        }
        if let Some(reservation @ (ReservationOutcome::BudgetReserved | ReservationOutcome::Exhausted)) =
            reservation
        {
            tracing::warn!(turn = %id.turn, ?reservation, "skipped a model call that exceeds the day's budget");
            self.logs.outbox.notify();
        }
        Ok(reservation)
    }

    /// Returns a recorder of the streamed response to an attempt.
    pub(crate) fn delta_recorder(&self, attempt: AttemptId) -> DeltaRecorder {
        DeltaRecorder::new(self.logs.db.event_log().clone(), self.logs.clock.clone(), attempt)
    }

    /// Records the response to an attempt.
    pub(crate) async fn complete_attempt(
        &self,
        context: &TurnContext,
        (attempt, responder): (AttemptId, Responder),
        response: RecordedResponse,
    ) -> anyhow::Result<TurnProgress> {
        let now = self.now();
        let record = move |conn: &mut Conn, context: &mut TurnContext| {
            let calls = model_steps::complete_attempt(conn, attempt, &response, now)?;
            let (text, stop) = (response.text.clone(), response.stop.clone());
            context.turn.apply_update(TurnUpdate::StepCompleted(ModelStep { text, stop, calls, responder }));
            Ok(())
        };
        self.record_and_continue(context, Durability::Unsynced, record).await
    }

    pub(crate) async fn abandon_attempt(
        &self,
        attempt: AttemptId,
        abandoned: AbandonedAttempt,
    ) -> Result<(), DbError> {
        let now = self.now();
        let record = move |conn: &mut Conn| model_steps::abandon_attempt(conn, attempt, &abandoned, now);
        self.write_with(Durability::Unsynced, record).await
    }

    /// Reserves the cost of the triage call.
    pub(crate) async fn reserve_triage_cost(
        &self,
        estimate: CostEstimate,
    ) -> Result<ReservationOutcome, DbError> {
        let (call, budget) = (self.budgeted_call(estimate, self.now()), self.logs.settings().budget);
        self.write(move |conn| daily_budget::reserve_call_cost(conn, &call, budget)).await
    }

    /// Records the triage decision. A skip ends the turn.
    pub(crate) async fn record_triage(
        &self,
        decision: TriageState,
        charge: ModelCharge,
    ) -> Result<TurnProgress, DbError> {
        let (turn, now) = (self.active_turn.id, self.now());
        let record = move |conn: &mut Conn| {
            daily_budget::settle_call_cost(conn, turn, charge)?;
            turn_lifecycle::set_triage_state(conn, turn, decision, now)?;
            match decision {
                TriageState::Skip => finished_turns::finish_turn(
                    conn,
                    &TurnEnd::without_message(turn, SKIPPED_SMALL_TALK),
                    now,
                ),
                TriageState::Open | TriageState::Respond => Ok(()),
            }
        };
        self.write(record).await?;
        Ok(match decision {
            TriageState::Skip => TurnProgress::Ended,
            TriageState::Open | TriageState::Respond => TurnProgress::Reload,
        })
    }

    fn budgeted_call(&self, estimate: CostEstimate, now: Timestamp) -> BudgetedCall {
        let day = Day::from_timestamp(now, &self.logs.settings().zone);
        BudgetedCall { turn: self.active_turn.id, user: self.user, day, estimate }
    }
}

/// Abandons an attempt whose cost was not reserved. The admins are notified when the budget of a day is used up.
fn abandon_without_budget(
    conn: &mut Conn,
    attempt: AttemptId,
    (reservation, day): (ReservationOutcome, &Day),
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    let message = match reservation {
        ReservationOutcome::Granted => return Ok(()),
        ReservationOutcome::BudgetReserved => "the calls under way may use up the day's budget",
        ReservationOutcome::Exhausted => {
            let (number, key) = (&settings.senders, format!("budget:{day}"));
            reply_address::notify_admins(conn, number, &key, BUDGET_SPENT_NOTIFICATION, now)?;
            "the day's budget is spent"
        }
    };
    let abandoned = AbandonedAttempt {
        failure: StepFailure::Permanent,
        message: message.to_owned(),
        charge: ModelCharge::Nothing,
    };
    model_steps::abandon_attempt(conn, attempt, &abandoned, now)
}
