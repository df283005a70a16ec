//! Shared memory budget of response bodies. A request reserves the maximum size of its response before the body is
//! read, in the order of arrival. It never waits while it holds a reservation, so requests cannot deadlock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Budget of all responses of Sonarr and Radarr.
pub const LIBRARY_RESPONSE_BYTES: u32 = 128 << 20;

/// Budget in bytes; clones share it.
#[derive(Debug, Clone)]
pub struct ResponseBudget {
    bytes: u32,
    free_bytes: Arc<Semaphore>,
    peak_bytes: Arc<AtomicU32>,
}

/// Reserved bytes of a budget, returned when the reservation is dropped.
#[derive(Debug)]
pub struct BudgetReservation(OwnedSemaphorePermit);

/// Error of a reservation that is larger than the whole budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("reserve {requested} bytes of {}", .budget)]
pub struct AboveBudget {
    requested: u64,
    budget: u32,
}

impl ResponseBudget {
    pub fn new(bytes: u32) -> Self {
        let free_bytes = Arc::new(Semaphore::new(bytes as usize));
        Self { bytes, free_bytes, peak_bytes: Arc::default() }
    }

    /// Waits until all earlier reservations are served and `bytes` are free.
    pub async fn reserve_bytes(&self, bytes: u64) -> Result<BudgetReservation, AboveBudget> {
        let error = AboveBudget { requested: bytes, budget: self.bytes };
        let permits = u32::try_from(bytes).ok().filter(|permits| *permits <= self.bytes).ok_or(error)?;
        // The semaphore is never closed.
        let permit = self.free_bytes.clone().acquire_many_owned(permits).await.map_err(|_| error)?;
        self.peak_bytes.fetch_max(self.reserved_bytes(), Ordering::Relaxed);
        Ok(BudgetReservation(permit))
    }

    pub fn reserved_bytes(&self) -> u32 {
        let free = u32::try_from(self.free_bytes.available_permits()).unwrap_or(u32::MAX);
        self.bytes.saturating_sub(free)
    }

    /// Returns the maximum number of bytes that were reserved at the same time.
    pub fn peak_bytes(&self) -> u32 {
        self.peak_bytes.load(Ordering::Relaxed)
    }
}

impl Default for ResponseBudget {
    fn default() -> Self {
        Self::new(LIBRARY_RESPONSE_BYTES)
    }
}

impl BudgetReservation {
    /// Shrinks the reservation to `bytes`, and returns the rest to the budget.
    pub fn shrink_to(&mut self, bytes: u64) {
        let surplus = (self.0.num_permits() as u64).saturating_sub(bytes);
        drop(usize::try_from(surplus).ok().and_then(|surplus| self.0.split(surplus)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use futures_util::FutureExt;
    use proptest::prelude::{Strategy, any, prop_oneof, proptest};

    use super::*;

    const BUDGET: u32 = 100;

    #[derive(Debug, Clone, Copy)]
    enum Event {
        Reserve(u32),
        /// Index of a request with a reservation, and its new size.
        Shrink(usize, u64),
        /// Index of a request with a reservation.
        Finish(usize),
        /// Index of a waiting request that reaches its timeout.
        TimeOut(usize),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            4 => (1..=BUDGET + 20).prop_map(Event::Reserve),
            1 => (any::<usize>(), 0..=u64::from(BUDGET)).prop_map(|(index, bytes)| Event::Shrink(index, bytes)),
            2 => any::<usize>().prop_map(Event::Finish),
            1 => any::<usize>().prop_map(Event::TimeOut),
        ]
    }

    proptest! {
        #[test]
        fn reservations_stay_within_the_budget_and_keep_their_order(events in proptest::collection::vec(event(), 1..60)) {
            let budget = ResponseBudget::new(BUDGET);
            let mut reservations: Vec<(u64, BudgetReservation)> = Vec::new();
            let mut waiting = VecDeque::new();
            for event in events {
                match event {
                    Event::Reserve(bytes) if bytes > BUDGET => {
                        assert!(budget.reserve_bytes(u64::from(bytes)).now_or_never().unwrap().is_err());
                    }
                    Event::Reserve(bytes) => {
                        let budget = budget.clone();
                        let reserve = async move { budget.reserve_bytes(u64::from(bytes)).await };
                        waiting.push_back((u64::from(bytes), Box::pin(reserve)));
                    }
                    Event::Shrink(index, bytes) if !reservations.is_empty() => {
                        let index = index % reservations.len();
                        reservations[index].1.shrink_to(bytes);
                        reservations[index].0 = reservations[index].0.min(bytes);
                    }
                    Event::Finish(index) if !reservations.is_empty() => drop(reservations.remove(index % reservations.len())),
                    Event::TimeOut(index) if !waiting.is_empty() => drop(waiting.remove(index % waiting.len())),
                    Event::Shrink(..) | Event::Finish(_) | Event::TimeOut(_) => {}
                }
                // Waiting requests are polled in the order of their arrival.
                let mut still_waiting = VecDeque::new();
                for (bytes, mut reserve) in std::mem::take(&mut waiting) {
                    match (&mut reserve).now_or_never() {
                        Some(reservation) => {
                            assert!(still_waiting.is_empty(), "a later reservation was served first");
                            reservations.push((bytes, reservation.unwrap()));
                        }
                        None => still_waiting.push_back((bytes, reserve)),
                    }
                }
                waiting = still_waiting;
                let sum: u64 = reservations.iter().map(|(bytes, _)| bytes).sum();
                assert!(sum <= u64::from(budget.reserved_bytes()) && budget.reserved_bytes() <= BUDGET);
                if let Some((bytes, _)) = waiting.front() {
                    assert!(sum + bytes > u64::from(BUDGET), "{bytes} bytes wait although they are free");
                }
            }
            drop(waiting);
            drop(reservations);
            assert_eq!(budget.reserved_bytes(), 0);
            assert!(budget.peak_bytes() <= BUDGET);
        }
    }
}
