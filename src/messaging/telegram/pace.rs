//! Pace at which messages are sent, below the limits of Telegram.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Interval between two messages to a private chat. The limit is about one per second.
const PRIVATE_CHAT_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between two messages to a group. The limit is 20 per minute.
const GROUP_INTERVAL: Duration = Duration::from_secs(3);
/// Interval between two messages to any chats. The limit is 30 per second.
const OVERALL_INTERVAL: Duration = Duration::from_millis(40);
/// Number of chats above which those that may be written to are forgotten.
const MAX_REMEMBERED_CHATS: usize = 1000;

/// Times from which messages may be sent.
#[derive(Debug, Default)]
pub(super) struct SendPace(Mutex<PaceState>);

#[derive(Debug, Default)]
struct PaceState {
    next_overall: Option<Instant>,
    next_in_chat: HashMap<i64, Instant>,
}

impl SendPace {
    /// Reserves the next time at which a message to a chat may be sent; returns the delay until then if that is longer than
    /// `patience`, without a reservation.
    pub(super) fn reserve(&self, chat: i64, patience: Duration) -> Result<Instant, Duration> {
        let now = Instant::now();
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let in_chat = state.next_in_chat.get(&chat).copied();
        let slot = [in_chat, state.next_overall].into_iter().flatten().fold(now, Instant::max);
        if slot.duration_since(now) > patience {
            return Err(slot.duration_since(now));
        }
        if state.next_in_chat.len() > MAX_REMEMBERED_CHATS {
            state.next_in_chat.retain(|_, next| *next > now);
        }
        // Groups have negative ids.
        let interval = if chat < 0 { GROUP_INTERVAL } else { PRIVATE_CHAT_INTERVAL };
        state.next_in_chat.insert(chat, slot + interval);
        state.next_overall = Some(slot + OVERALL_INTERVAL);
        Ok(slot)
    }

    /// Holds back the messages to a chat, because Telegram asked for that.
    pub(super) fn hold_back(&self, chat: i64, delay: Duration) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = state.next_in_chat.entry(chat).or_insert_with(Instant::now);
        *next = (*next).max(Instant::now() + delay);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn messages_to_a_chat_are_a_second_apart() {
        let (pace, start) = (SendPace::default(), Instant::now());
        let slots = [9, 9, 9].map(|chat| pace.reserve(chat, PATIENCE).unwrap().duration_since(start));
        assert_eq!(slots, [0, 1, 2].map(Duration::from_secs));
    }

    #[tokio::test(start_paused = true)]
    async fn messages_to_different_chats_stay_below_thirty_per_second() {
        let (pace, start) = (SendPace::default(), Instant::now());
        let slots = (1..=60).map(|chat| pace.reserve(chat, PATIENCE).unwrap());
        let within_a_second =
            slots.filter(|slot| slot.duration_since(start) < Duration::from_secs(1)).count();
        assert!((20..=30).contains(&within_a_second), "{within_a_second}");
    }

    #[tokio::test(start_paused = true)]
    async fn chat_that_is_held_back_delays_only_itself() {
        let pace = SendPace::default();
        pace.hold_back(9, Duration::from_secs(30));
        assert_eq!(pace.reserve(9, PATIENCE).unwrap_err(), Duration::from_secs(30));
        assert!(pace.reserve(8, PATIENCE).is_ok());
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(pace.reserve(9, PATIENCE).is_ok());
    }
}
