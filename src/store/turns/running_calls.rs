//! Model calls under way, whose maximum costs are reserved in the budget of their day. They are not stored, because they
//! end with the program: the stored usage contains the input of a call from its start.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::daily_budget::{BudgetedCall, Day};
use crate::conversation::model_cost::CostEstimate;

/// Sums of the reserved costs by day. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct RunningCalls(Arc<Mutex<HashMap<Day, CostEstimate>>>);

/// Reservation of a call's maximum cost, which is released when the value is dropped.
#[derive(Debug)]
pub struct CostReservation {
    call: BudgetedCall,
    calls: RunningCalls,
}

impl RunningCalls {
    pub(super) fn reserve(&self, call: BudgetedCall) -> CostReservation {
        let mut sums = self.lock();
        let sum = sums.entry(call.day.clone()).or_default();
        *sum = CostEstimate {
            input: sum.input.plus(call.estimate.input),
            output: sum.output.plus(call.estimate.output),
        };
        CostReservation { call, calls: self.clone() }
    }

    /// Returns the sum of the reservations of a day.
    pub(super) fn reserved_cost(&self, day: &Day) -> CostEstimate {
        self.lock().get(day).copied().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Day, CostEstimate>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CostReservation {
    pub(super) fn call(&self) -> &BudgetedCall {
        &self.call
    }
}

impl Drop for CostReservation {
    fn drop(&mut self) {
        let BudgetedCall { day, estimate, .. } = &self.call;
        let mut sums = self.calls.lock();
        if let Some(sum) = sums.get_mut(day) {
            *sum = CostEstimate {
                input: sum.input.minus(estimate.input),
                output: sum.output.minus(estimate.output),
            };
            if *sum == CostEstimate::default() {
                sums.remove(day);
            }
        }
    }
}
