//! Records of the model calls of a turn, with their reservations in the day's budget.

use std::sync::PoisonError;

use jiff::Timestamp;

use super::turn_log::{TurnLog, TurnLogs, TurnProgress};
use crate::conversation::model_cost::{CostEstimate, ModelCharge};
use crate::conversation::prompt::FrozenContext;
use crate::conversation::transcript::{ModelStep, Responder, UserId};
use crate::conversation::turn::{StepFailure, TurnUpdate};
use crate::engine::reply_address;
use crate::engine::settings::HouseholdSettings;
use crate::engine::stream::recorder::DeltaRecorder;
use crate::engine::turns::turn_context::TurnContext;
use crate::store::database::db::{DbError, Durability};
use crate::store::queue::inbound_messages::MessageOutcome;
use crate::store::turns::budget_blocks::{self, CallCover};
use crate::store::turns::daily_budget::{self, BudgetRefusal, BudgetedCall, Day, ReservationOutcome};
use crate::store::turns::finished_turns::{self, TurnEnd};
use crate::store::turns::model_steps::{self, AbandonedAttempt, AttemptId, RecordedResponse};
use crate::store::turns::running_calls::CostReservation;
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

/// First attempt of a turn, which has started in the transaction that created the turn.
pub(crate) struct StartedAttempt {
    reservation: CostReservation,
    cover: CallCover,
}

impl StartedAttempt {
    /// Returns the durability that its reservation needs.
    pub(crate) fn durability(&self) -> Durability {
        self.cover.durability()
    }
}

impl TurnLogs {
    /// Records the first attempt of a turn, in the transaction that creates the turn. Returns `None`, and records nothing,
    /// if the cost does not fit into the day's budget.
    pub(crate) fn start_first_attempt(
        &self,
        conn: &mut Conn,
        user: UserId,
        attempt: &NewAttempt,
        now: Timestamp,
    ) -> QueryResult<Option<StartedAttempt>> {
        let settings = self.settings();
        let call =
            BudgetedCall { user, day: Day::from_timestamp(now, &settings.zone), estimate: attempt.estimate };
        let cover = self.budget_block.cover_call(&call, settings.budget);
        let reserved = daily_budget::reserve_call_cost(conn, &self.running_calls, &call, settings.budget)?;
        let ReservationOutcome::Granted(reservation) = reserved else { return Ok(None) };
        attempt.store(conn, now)?;
        if let Some(block) = cover.new_block() {
            budget_blocks::open_block(conn, &block)?;
        }
        Ok(Some(StartedAttempt { reservation, cover }))
    }
}

impl NewAttempt {
    fn store(&self, conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
        match &self.context {
            Some(context) => model_steps::start_first_attempt(conn, self.id, &self.model, context, now),
            None => model_steps::start_attempt(conn, self.id, self.responder, &self.model, now),
        }
    }
}

impl TurnLog {
    /// Adopts the first attempt, after the transaction that created the turn was committed.
    pub(crate) fn adopt_first_attempt(&self, StartedAttempt { reservation, cover }: StartedAttempt) {
        cover.commit();
        self.hold_reservation(reservation);
    }

    /// Records an attempt, and abandons it if its cost does not fit into the day's budget. Returns whether the call may be
    /// made: not without the budget, and not if the turn was canceled after it was loaded. The keyword responder costs
    /// nothing.
    pub(crate) async fn start_attempt(&self, attempt: NewAttempt) -> Result<bool, DbError> {
        let (now, id) = (self.now(), attempt.id);
        match attempt.responder {
            Responder::Model => self.start_model_attempt(attempt, now).await,
            Responder::Keyword => {
                let start = move |conn: &mut Conn| {
                    if turn_lifecycle::is_cancel_requested(conn, id.turn)? {
                        return Ok(false);
                    }
                    attempt.store(conn, now)?;
                    Ok(true)
                };
                self.write_with(Durability::Unsynced, start).await
            }
        }
    }

    async fn start_model_attempt(&self, attempt: NewAttempt, now: Timestamp) -> Result<bool, DbError> {
        let id = attempt.id;
        let call = self.budgeted_call(attempt.estimate, now);
        let settings = self.logs.settings();
        // The budget must count a call that was made.
        let cover = self.logs.budget_block.cover_call(&call, settings.budget);
        let (new_block, running_calls) = (cover.new_block(), self.logs.running_calls.clone());
        let start = move |conn: &mut Conn| {
            let reserved =
                daily_budget::reserve_step_cost(conn, &running_calls, id.turn, &call, settings.budget)?;
            let Some(outcome) = reserved else { return Ok(None) };
            attempt.store(conn, now)?;
            if let Some(block) = &new_block {
                budget_blocks::open_block(conn, block)?;
            }
            if let ReservationOutcome::Refused(refusal) = outcome {
                abandon_without_budget(conn, id, (refusal, &call.day), &settings, now)?;
            }
            Ok(Some(outcome))
        };
        let Some(outcome) = self.write_with(cover.durability(), start).await? else { return Ok(false) };
        cover.commit();
        match outcome {
            ReservationOutcome::Granted(reservation) => {
                self.hold_reservation(reservation);
                Ok(true)
            }
            ReservationOutcome::Refused(refusal) => {
                tracing::warn!(turn = %id.turn, ?refusal, "skipped a model call that exceeds the day's budget");
                self.logs.outbox.notify();
                Ok(false)
            }
        }
    }

    fn hold_reservation(&self, reservation: CostReservation) {
        *self.reservation.lock().unwrap_or_else(PoisonError::into_inner) = Some(reservation);
    }

    /// Returns a record that settles the model call under way, if there is one. The reservation ends with the record.
    fn settle_call(
        &self,
        charge: ModelCharge,
    ) -> impl Fn(&mut Conn) -> QueryResult<()> + Send + Sync + 'static {
        let reservation = self.reservation.lock().unwrap_or_else(PoisonError::into_inner).take();
        move |conn| match &reservation {
            Some(reservation) => daily_budget::settle_call_cost(conn, reservation, charge),
            None => Ok(()),
        }
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
        charge: ModelCharge,
    ) -> anyhow::Result<TurnProgress> {
        let (now, settle) = (self.now(), self.settle_call(charge));
        let record = move |conn: &mut Conn, context: &mut TurnContext| {
            settle(conn)?;
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
        charge: ModelCharge,
    ) -> Result<(), DbError> {
        let (now, settle) = (self.now(), self.settle_call(charge));
        let record = move |conn: &mut Conn| {
            settle(conn)?;
            model_steps::abandon_attempt(conn, attempt, &abandoned, now)
        };
        self.write_with(Durability::Unsynced, record).await
    }

    /// Reserves the cost of the triage call. Returns whether the call may be made.
    pub(crate) async fn reserve_triage_cost(&self, estimate: CostEstimate) -> Result<bool, DbError> {
        let (call, budget) = (self.budgeted_call(estimate, self.now()), self.logs.settings().budget);
        let running_calls = self.logs.running_calls.clone();
        let reserve =
            move |conn: &mut Conn| daily_budget::reserve_call_cost(conn, &running_calls, &call, budget);
        match self.write(reserve).await? {
            ReservationOutcome::Granted(reservation) => {
                self.hold_reservation(reservation);
                Ok(true)
            }
            ReservationOutcome::Refused(_) => Ok(false),
        }
    }

    /// Records the triage decision. A skip ends the turn.
    pub(crate) async fn record_triage(
        &self,
        decision: TriageState,
        charge: ModelCharge,
    ) -> Result<TurnProgress, DbError> {
        let (turn, now, settle) = (self.active_turn.id, self.now(), self.settle_call(charge));
        let record = move |conn: &mut Conn| {
            settle(conn)?;
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
        BudgetedCall { user: self.user, day, estimate }
    }
}

/// Abandons an attempt whose cost was not reserved. The admins are notified when the budget of a day is used up.
fn abandon_without_budget(
    conn: &mut Conn,
    attempt: AttemptId,
    (refusal, day): (BudgetRefusal, &Day),
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    let message = match refusal {
        BudgetRefusal::Reserved => "the calls under way may use up the day's budget",
        BudgetRefusal::Exhausted => {
            let (number, key) = (&settings.senders, format!("budget:{day}"));
            reply_address::notify_admins(conn, number, &key, BUDGET_SPENT_NOTIFICATION, now)?;
            "the day's budget is spent"
        }
    };
    let abandoned = AbandonedAttempt { failure: StepFailure::Permanent, message: message.to_owned() };
    model_steps::abandon_attempt(conn, attempt, &abandoned, now)
}
