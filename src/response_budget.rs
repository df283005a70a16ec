//! Memory limit of all response bodies in flight together. A request reserves the limit of its response before the body
//! is read, first come, first served, and never waits while it holds a part of the reservation. So requests cannot wait
//! for each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Budget of Sonarr and Radarr together. The largest response that is read as a whole takes a quarter of it.
pub const LIBRARY_RESPONSE_BYTES: u32 = 128 << 20;

/// Budget in bytes; clones share it.
#[derive(Debug, Clone)]
pub struct ResponseBudget {
    bytes: u32,
    free: Arc<Semaphore>,
    peak: Arc<AtomicU32>,
}

/// Reserved bytes of a budget, returned when the reservation is dropped.
#[derive(Debug)]
pub struct BudgetReservation(OwnedSemaphorePermit);

/// Error for a reservation that would be larger than the whole budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("reserve {wanted} bytes of {}", .budget)]
pub struct AboveBudget {
    wanted: u64,
    budget: u32,
}

impl ResponseBudget {
    pub fn new(bytes: u32) -> Self {
        let free = Arc::new(Semaphore::new(bytes as usize));
        Self { bytes, free, peak: Arc::default() }
    }

    /// Waits until all earlier reservations are served and `bytes` are free.
    pub async fn reserve_bytes(&self, bytes: u64) -> Result<BudgetReservation, AboveBudget> {
        let above = AboveBudget { wanted: bytes, budget: self.bytes };
        let wanted = u32::try_from(bytes).ok().filter(|wanted| *wanted <= self.bytes).ok_or(above)?;
        // The semaphore is never closed.
        let permit = self.free.clone().acquire_many_owned(wanted).await.map_err(|_| above)?;
        self.peak.fetch_max(self.reserved_bytes(), Ordering::Relaxed);
        Ok(BudgetReservation(permit))
    }

    pub fn reserved_bytes(&self) -> u32 {
        let free = u32::try_from(self.free.available_permits()).unwrap_or(u32::MAX);
        self.bytes.saturating_sub(free)
    }

    /// Returns the most bytes that were ever reserved at the same time.
    pub fn peak_bytes(&self) -> u32 {
        self.peak.load(Ordering::Relaxed)
    }
}

impl Default for ResponseBudget {
    fn default() -> Self {
        Self::new(LIBRARY_RESPONSE_BYTES)
    }
}

impl BudgetReservation {
    /// Returns the bytes beyond `bytes` to the budget.
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
        Ask(u32),
        /// Index among the requests that hold a reservation.
        Shrink(usize, u64),
        Finish(usize),
        /// Index among the requests that wait: the request has reached its timeout.
        GiveUp(usize),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            4 => (1..=BUDGET + 20).prop_map(Event::Ask),
            1 => (any::<usize>(), 0..=u64::from(BUDGET)).prop_map(|(index, bytes)| Event::Shrink(index, bytes)),
            2 => any::<usize>().prop_map(Event::Finish),
            1 => any::<usize>().prop_map(Event::GiveUp),
        ]
    }

    proptest! {
        #[test]
        fn reservations_stay_within_the_budget_and_keep_their_order(events in proptest::collection::vec(event(), 1..60)) {
            let budget = ResponseBudget::new(BUDGET);
            let mut held: Vec<(u64, BudgetReservation)> = Vec::new();
            let mut waiting = VecDeque::new();
            for event in events {
                match event {
                    Event::Ask(bytes) if bytes > BUDGET => {
                        assert!(budget.reserve_bytes(u64::from(bytes)).now_or_never().unwrap().is_err());
                    }
                    Event::Ask(bytes) => {
                        let budget = budget.clone();
                        let reserve = async move { budget.reserve_bytes(u64::from(bytes)).await };
                        waiting.push_back((u64::from(bytes), Box::pin(reserve)));
                    }
                    Event::Shrink(index, bytes) if !held.is_empty() => {
                        let index = index % held.len();
                        held[index].1.shrink_to(bytes);
                        held[index].0 = held[index].0.min(bytes);
                    }
                    Event::Finish(index) if !held.is_empty() => drop(held.remove(index % held.len())),
                    Event::GiveUp(index) if !waiting.is_empty() => drop(waiting.remove(index % waiting.len())),
                    Event::Shrink(..) | Event::Finish(_) | Event::GiveUp(_) => {}
                }
                // Polled in the order of their arrival.
                let mut still = VecDeque::new();
                for (bytes, mut reserve) in std::mem::take(&mut waiting) {
                    match (&mut reserve).now_or_never() {
                        Some(reservation) => {
                            assert!(still.is_empty(), "a later reservation was served first");
                            held.push((bytes, reservation.unwrap()));
                        }
                        None => still.push_back((bytes, reserve)),
                    }
                }
                waiting = still;
                let sum: u64 = held.iter().map(|(bytes, _)| bytes).sum();
                assert!(sum <= u64::from(budget.reserved_bytes()) && budget.reserved_bytes() <= BUDGET);
                if let Some((bytes, _)) = waiting.front() {
                    assert!(sum + bytes > u64::from(BUDGET), "{bytes} bytes wait for nothing");
                }
            }
            drop(waiting);
            drop(held);
            assert_eq!(budget.reserved_bytes(), 0);
            assert!(budget.peak_bytes() <= BUDGET);
        }
    }
}
