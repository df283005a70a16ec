//! Faults that tests inject.

use serde_json::json;

use super::api::Refusal;
use super::server::FakeTelegram;

#[derive(Debug, Default)]
pub(super) struct TelegramFaults {
    /// Nothing is answered.
    pub(super) is_asleep: bool,
    /// The token is not valid any more.
    pub(super) is_revoked: bool,
    /// Number of messages that are accepted without an answer.
    lost_answers: u32,
    /// Number of messages that are refused, and how.
    refused_sends: (u32, Option<Refusal>),
    /// Number of messages that are refused because there were too many, and the seconds to wait.
    limited_sends: (u32, u64),
    /// Number of requests for updates that end because another program asks too.
    claimed_polls: u32,
}

impl FakeTelegram {
    /// Accepts the next messages without an answer.
    pub fn lose_answers(&self, count: u32) {
        self.lock_state().faults.lost_answers = count;
    }

    /// Refuses the next messages with a status and the whole description.
    pub fn refuse_sends(&self, count: u32, status: u16, description: &str) {
        let refusal = Refusal { code: status, description: description.to_owned(), parameters: None };
        self.lock_state().faults.refused_sends = (count, Some(refusal));
    }

    /// Refuses the next messages because there were too many.
    pub fn limit_sends(&self, count: u32, retry_after: u64) {
        self.lock_state().faults.limited_sends = (count, retry_after);
    }

    /// Lets Telegram sleep or wake. Requests that reach it while it sleeps are never answered.
    pub fn set_silent(&self, is_asleep: bool) {
        self.change_state(|state| state.faults.is_asleep = is_asleep);
    }

    /// Delivers the last confirmed updates again, with the same ids.
    pub fn repeat_updates(&self, count: usize) {
        self.change_state(|state| state.updates.repeat_confirmed(count));
    }

    /// Lets the ids of the next updates jump. After a week without updates, Telegram chooses a random one, so the number
    /// may be negative. The updates after a jump back are delivered whatever the offset is.
    pub fn skip_update_ids(&self, count: i64) {
        self.change_state(|state| state.updates.skip_ids(count));
    }

    /// Ends the next requests for updates, because another program asks for them too.
    pub fn claim_by_other_poller(&self, count: u32) {
        self.change_state(|state| state.faults.claimed_polls = count);
    }

    /// Refuses the token from now on.
    pub fn revoke_token(&self) {
        self.change_state(|state| state.faults.is_revoked = true);
    }
}

impl TelegramFaults {
    /// Returns how the next message is refused; `None` if it is not.
    pub(super) fn take_send_refusal(&mut self) -> Option<Refusal> {
        let (limited, seconds) = &mut self.limited_sends;
        if take_one(limited) {
            return Some(Refusal {
                code: 429,
                description: format!("Too Many Requests: retry after {seconds}"),
                parameters: Some(json!({ "retry_after": seconds })),
            });
        }
        let (refused, refusal) = &mut self.refused_sends;
        if take_one(refused) { refusal.clone() } else { None }
    }

    pub(super) fn take_lost_answer(&mut self) -> bool {
        take_one(&mut self.lost_answers)
    }

    pub(super) fn take_claimed_poll(&mut self) -> bool {
        take_one(&mut self.claimed_polls)
    }
}

fn take_one(count: &mut u32) -> bool {
    let is_left = *count > 0;
    *count = count.saturating_sub(1);
    is_left
}
