//! Poll of the updates. Asking for the updates from an offset on confirms all earlier ones, so the offset is stored only
//! once their messages are, and a crash lets the same updates be read again.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::port::Telegram;
use super::state::ALLOWED_UPDATES;
use super::wire::{AnswerCallbackQuery, GetUpdates, RemoveKeyboard, Update};
use crate::conversation::routing::inbound_message::MessageSource;
use crate::messaging::{InboundPage, LookupError, Poll, PollDelay};
use crate::store::queue::source_cursors::SourceCursor;
use crate::telemetry;

/// Time for which a poll waits for an update.
const LONG_POLL: Duration = Duration::from_secs(25);
/// Time limit of a poll.
pub(super) const POLL_TIMEOUT: Duration = Duration::from_secs(40);
/// Time limit of the polls before the first successful one.
pub(super) const FIRST_POLL_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of a request for updates, beyond the time for which it waits.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two polls above which a message may have waited.
const MAX_GAP: Duration = Duration::from_secs(15);
/// Maximum number of updates in a page.
const PAGE_SIZE: u8 = 100;
/// Time without updates after which their numbers may begin anew, at a smaller one. Telegram says a week.
const MAX_NUMBER_AGE: SignedDuration = SignedDuration::from_hours(6 * 24);

/// Progress of the polls of this run.
#[derive(Debug, Default)]
pub(super) struct PollProgress {
    /// End of the last successful poll that left no update behind.
    caught_up_at: Option<Instant>,
    /// Presses of the last page. Their buttons wait for an answer until the page is stored.
    presses: Vec<OpenPress>,
}

impl PollProgress {
    pub(super) fn has_caught_up(&self) -> bool {
        self.caught_up_at.is_some()
    }
}

/// Press that Telegram shows as waiting.
#[derive(Debug, Clone)]
struct OpenPress {
    id: String,
    /// Chat and message of the button.
    button: Option<(i64, i64)>,
}

impl Telegram {
    /// Waits for updates, and converts them. With a webhook, nothing is polled.
    pub(super) async fn poll_updates(&self, poll: &Poll) -> Result<InboundPage, LookupError> {
        let cursor = poll.start_cursor();
        self.learn_username().await.map_err(|error| LookupError(telemetry::error_chain(&error)))?;
        if let Some(url) = &self.account.webhook_url {
            self.renew_webhook(url).await?;
            return Ok(InboundPage::empty(cursor, PollDelay::Later));
        }
        // The messages of the last page are stored now.
        self.answer_presses().await;
        let (started, caught_up_at) = (Instant::now(), self.lock_progress().caught_up_at);
        let updates = self.fetch_updates(&cursor, caught_up_at.is_some(), poll.now).await?;
        let is_direct = caught_up_at.is_some_and(|at| started.duration_since(at) <= MAX_GAP);
        let is_last = updates.len() < usize::from(PAGE_SIZE);
        let mut progress = self.lock_progress();
        if is_last {
            progress.caught_up_at = Some(Instant::now());
        }
        progress.presses = updates.iter().filter_map(open_press).collect();
        drop(progress);
        let via = if is_direct { MessageSource::Poll } else { MessageSource::Recovery };
        let cursor = next_cursor(cursor, &updates, poll.now);
        let messages = updates
            .iter()
            .filter_map(|update| self.account.received_message(update, self.username(), via, poll.now));
        let page = InboundPage::empty(cursor, PollDelay::After(Duration::ZERO));
        let gestures = updates.iter().filter_map(|update| self.account.read_gesture(update));
        Ok(InboundPage { messages: messages.collect(), gestures: gestures.collect(), ..page })
    }

    /// Fetches the updates from the cursor on. The first poll of a run does not wait, because work starts after it.
    async fn fetch_updates(
        &self,
        cursor: &SourceCursor,
        may_wait: bool,
        now: Timestamp,
    ) -> Result<Vec<Update>, LookupError> {
        let has_old_numbers = now.duration_since(cursor.read_until) > MAX_NUMBER_AGE;
        let wait = if may_wait { LONG_POLL } else { Duration::ZERO };
        let parameters = GetUpdates {
            offset: cursor.mark.parse().ok().filter(|_| !has_old_numbers),
            limit: PAGE_SIZE,
            timeout: wait.as_secs(),
            allowed_updates: &ALLOWED_UPDATES,
        };
        let updates: Result<Vec<serde_json::Value>, _> =
            self.call_within("getUpdates", &parameters, wait + ANSWER_TIMEOUT).await;
        let updates = updates.map_err(|error| LookupError(telemetry::error_chain(&error)))?;
        // One update that cannot be read must not hold up the others.
        let read = |update: serde_json::Value| match serde_json::from_value(update.clone()) {
            Ok(update) => Some(update),
            // The text of the error may quote the message.
            Err(_) => {
                let update_id = update.get("update_id")?.as_i64()?;
                tracing::error!(update_id, "failed to parse an update from Telegram");
                Some(Update { update_id, ..Update::default() })
            }
        };
        Ok(updates.into_iter().filter_map(read).collect())
    }

    /// Ends the waiting of pressed buttons, and removes the buttons. What a press did is answered by a message, so a failure
    /// here only leaves a button that does nothing.
    async fn answer_presses(&self) {
        let presses = std::mem::take(&mut self.lock_progress().presses);
        for press in presses {
            let answer = AnswerCallbackQuery { callback_query_id: &press.id };
            if let Err(error) = self.call::<bool>("answerCallbackQuery", &answer).await {
                tracing::debug!(%error, "failed to answer the press of a button");
            }
            let Some((chat_id, message_id)) = press.button else { continue };
            let removal = RemoveKeyboard { chat_id, message_id };
            if let Err(error) = self.call::<serde_json::Value>("editMessageReplyMarkup", &removal).await {
                tracing::debug!(%error, "failed to remove a pressed button");
            }
        }
    }

    /// Sets the webhook unless it is set.
    async fn renew_webhook(&self, url: &str) -> Result<(), LookupError> {
        let failed = |error| LookupError(telemetry::error_chain(&error));
        let state = self.api.fetch_bot_state().await.map_err(failed)?;
        if state.webhook_url.as_deref() == Some(url) && state.sends_all_updates {
            return Ok(());
        }
        self.api.set_webhook(url).await.map_err(failed)
    }
}

fn open_press(update: &Update) -> Option<OpenPress> {
    let query = update.callback_query.as_ref()?;
    let button = query.message.as_ref().filter(|message| message.chat.is_private());
    Some(OpenPress {
        id: query.id.clone(),
        button: button.map(|message| (message.chat.id, message.message_id)),
    })
}

/// Returns the cursor after these updates. Its mark is the number from which the next poll reads.
fn next_cursor(cursor: SourceCursor, updates: &[Update], now: Timestamp) -> SourceCursor {
    match updates.last() {
        Some(last) => SourceCursor { read_until: now, mark: (last.update_id + 1).to_string() },
        None => cursor,
    }
}
