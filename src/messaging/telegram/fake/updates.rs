//! Queue of updates, and the requests that read and confirm them.

use std::collections::VecDeque;
use std::pin::pin;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::api::Refusal;
use super::parameters::MethodParameters;
use super::server::{FakeTelegram, TelegramState};
use super::webhook::FakeWebhook;

const FIRST_UPDATE_ID: i64 = 100_000_001;
const MAX_PAGE_SIZE: i64 = 100;
/// Maximum number of seconds for which a request waits, however long it asks to.
const MAX_WAIT: i64 = 50;
/// Distance above the next id from which Telegram ignores an offset, so that ids may begin again at a smaller one.
const MAX_OFFSET_AHEAD: i64 = 10;
/// Kinds of updates that are sent only if they are named.
const UNUSUAL_KINDS: [&str; 3] = ["chat_member", "message_reaction", "message_reaction_count"];

/// Updates that wait for the bot.
#[derive(Debug)]
pub(super) struct UpdateQueue {
    next_id: i64,
    /// Highest id so far.
    highest_id: i64,
    waiting: VecDeque<QueuedUpdate>,
    confirmed: Vec<QueuedUpdate>,
    /// Kinds of updates that the bot asked for last; empty for all but the unusual ones.
    pub(super) allowed_kinds: Vec<String>,
    pub(super) webhook: Option<FakeWebhook>,
    pub(super) webhook_error: Option<String>,
    /// Number of requests for updates, of which the last one ends the others.
    poll_count: u64,
}

#[derive(Debug, Clone)]
struct QueuedUpdate {
    id: i64,
    json: Value,
    /// Whether no offset confirms the update before it was delivered.
    ignores_offset: bool,
}

/// Request for updates, with its number.
struct UpdatePoll {
    number: u64,
    offset: i64,
    limit: usize,
    deadline: Instant,
}

enum PollStep {
    Answer(Result<Value, Refusal>),
    Wait,
    /// Telegram sleeps.
    NoAnswer,
}

impl UpdateQueue {
    pub(super) fn new() -> Self {
        Self {
            next_id: FIRST_UPDATE_ID,
            highest_id: FIRST_UPDATE_ID - 1,
            waiting: VecDeque::new(),
            confirmed: Vec::new(),
            allowed_kinds: Vec::new(),
            webhook: None,
            webhook_error: None,
            poll_count: 0,
        }
    }

    /// Adds an update unless the bot did not ask for this kind.
    pub(super) fn push(&mut self, kind: &str, content: Value) {
        let is_allowed = match self.allowed_kinds.as_slice() {
            [] => !UNUSUAL_KINDS.contains(&kind),
            kinds => kinds.iter().any(|allowed| allowed == kind),
        };
        if !is_allowed {
            return;
        }
        let id = self.next_id;
        let mut json = json!({ "update_id": id });
        json[kind] = content;
        let ignores_offset = id <= self.highest_id;
        self.waiting.push_back(QueuedUpdate { id, json, ignores_offset });
        self.highest_id = self.highest_id.max(id);
        self.next_id += 1;
    }

    pub(super) fn unread_count(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn skip_ids(&mut self, count: i64) {
        self.next_id = self.next_id.saturating_add(count).max(1);
    }

    pub(super) fn repeat_confirmed(&mut self, count: usize) {
        let start = self.confirmed.len().saturating_sub(count);
        for mut update in self.confirmed.split_off(start).into_iter().rev() {
            update.ignores_offset = true;
            self.waiting.push_front(update);
        }
    }

    pub(super) fn drop_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Takes all updates, as if the webhook had accepted them.
    pub(super) fn take_all(&mut self) -> Vec<Value> {
        let taken: Vec<QueuedUpdate> = self.waiting.drain(..).collect();
        let updates = taken.iter().map(|update| update.json.clone()).collect();
        self.confirmed.extend(taken);
        updates
    }

    /// Confirms the updates before an offset. A negative one counts from the end of the queue.
    fn confirm_before(&mut self, offset: i64) {
        if offset > self.next_id + MAX_OFFSET_AHEAD {
            return;
        }
        let kept = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
        let first_kept = if offset < 0 { self.waiting.len().saturating_sub(kept) } else { 0 };
        for (index, update) in std::mem::take(&mut self.waiting).into_iter().enumerate() {
            let is_before = if offset < 0 { index < first_kept } else { update.id < offset };
            if is_before && !update.ignores_offset {
                self.confirmed.push(update);
            } else {
                self.waiting.push_back(update);
            }
        }
    }

    fn read_page(&mut self, limit: usize) -> Vec<Value> {
        let read = |update: &mut QueuedUpdate| {
            update.ignores_offset = false;
            update.json.clone()
        };
        self.waiting.iter_mut().take(limit).map(read).collect()
    }
}

impl FakeTelegram {
    /// Answers a request for updates as soon as there are any, and with none after its time.
    pub(super) async fn get_updates(&self, parameters: &MethodParameters) -> Result<Value, Refusal> {
        let poll = self.change_state(|state| state.begin_poll(parameters))?;
        loop {
            let mut change = pin!(self.changes.notified());
            // A change between the step and the wait must not be missed.
            change.as_mut().enable();
            let step = self.lock_state().advance_poll(&poll);
            match step {
                PollStep::Answer(answer) => return answer,
                PollStep::NoAnswer => return std::future::pending().await,
                // The next step finds out which of the two ended the wait.
                PollStep::Wait => drop(tokio::time::timeout_at(poll.deadline, change).await),
            }
        }
    }
}

impl TelegramState {
    fn begin_poll(&mut self, parameters: &MethodParameters) -> Result<UpdatePoll, Refusal> {
        if self.faults.take_claimed_poll() {
            return Err(other_poller());
        }
        if self.updates.webhook.is_some() {
            let reason = "can't use getUpdates method while webhook is active; use deleteWebhook to delete the \
                          webhook first";
            return Err(Refusal::conflict(reason));
        }
        if let Some(kinds) = parameters.json("allowed_updates")? {
            self.updates.allowed_kinds = kinds;
        }
        self.updates.poll_count += 1;
        let limit = parameters.integer("limit").filter(|limit| (1..=MAX_PAGE_SIZE).contains(limit));
        let wait = parameters.integer("timeout").unwrap_or(0).clamp(0, MAX_WAIT);
        Ok(UpdatePoll {
            number: self.updates.poll_count,
            offset: parameters.integer("offset").unwrap_or(0),
            limit: usize::try_from(limit.unwrap_or(MAX_PAGE_SIZE)).unwrap_or(1),
            deadline: Instant::now() + Duration::from_secs(wait.unsigned_abs()),
        })
    }

    fn advance_poll(&mut self, poll: &UpdatePoll) -> PollStep {
        if self.faults.is_asleep {
            return PollStep::NoAnswer;
        }
        if self.faults.is_revoked {
            return PollStep::Answer(Err(Refusal::unauthorized()));
        }
        if self.updates.poll_count != poll.number {
            return PollStep::Answer(Err(other_poller()));
        }
        if self.updates.webhook.is_some() {
            return PollStep::Answer(Err(Refusal::conflict("terminated by setWebhook request")));
        }
        self.updates.confirm_before(poll.offset);
        let page = self.updates.read_page(poll.limit);
        if page.is_empty() && Instant::now() < poll.deadline {
            return PollStep::Wait;
        }
        PollStep::Answer(Ok(page.into()))
    }
}

fn other_poller() -> Refusal {
    let reason = "terminated by other getUpdates request; make sure that only one bot instance is running";
    Refusal::conflict(reason)
}
