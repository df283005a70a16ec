//! Simulated Telegram, and the state that its clones share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::chats::FakeChat;
use super::faults::TelegramFaults;
use super::people::FakePress;
use super::sending::FakeSentMessage;
use super::updates::UpdateQueue;
use crate::clock::Clock;
use crate::messaging::telegram::{BotToken, TelegramAccount};

/// Bot that Telegram knows.
#[derive(Debug, Clone)]
pub struct FakeBot {
    /// Id and secret, such as `501:AAE...`.
    pub token: String,
    /// Name without `@`.
    pub username: String,
}

/// Simulated Telegram with one bot. Clones share its state.
#[derive(Debug, Clone)]
pub struct FakeTelegram {
    pub(super) bot: Arc<FakeBot>,
    /// Wakes requests that wait for updates.
    pub(super) changes: Arc<Notify>,
    state: Arc<Mutex<TelegramState>>,
}

#[derive(Debug)]
pub(super) struct TelegramState {
    pub(super) clock: Clock,
    pub(super) bot_id: i64,
    pub(super) username: String,
    /// Privacy mode of groups that the bot joins from now on.
    pub(super) has_privacy_mode: bool,
    pub(super) chats: BTreeMap<i64, FakeChat>,
    /// Messages of the bot in the order of their acceptance.
    pub(super) sent: Vec<FakeSentMessage>,
    pub(super) presses: Vec<FakePress>,
    pub(super) answer_count: usize,
    pub(super) updates: UpdateQueue,
    pub(super) faults: TelegramFaults,
    /// Methods of the requests.
    pub(super) requests: Vec<String>,
}

impl FakeTelegram {
    pub fn new(bot: FakeBot, clock: Clock) -> Self {
        let id = bot.token.split(':').next().unwrap_or_default();
        let state = TelegramState {
            clock,
            bot_id: id.parse().unwrap_or_default(),
            username: bot.username.clone(),
            has_privacy_mode: true,
            chats: BTreeMap::new(),
            sent: Vec::new(),
            presses: Vec::new(),
            answer_count: 0,
            updates: UpdateQueue::new(),
            faults: TelegramFaults::default(),
            requests: Vec::new(),
        };
        Self { bot: Arc::new(bot), changes: Arc::default(), state: Arc::new(Mutex::new(state)) }
    }

    /// Returns the settings with which a client connects as the bot. The token of the bot must be valid.
    pub fn client_account(&self, api_url: &str) -> TelegramAccount {
        let token = BotToken::parse(&self.bot.token)
            .unwrap_or_else(|error| panic!("the token of the simulated bot is {error}"));
        TelegramAccount { api_url: api_url.to_owned(), token, webhook_url: None }
    }

    pub(super) fn lock_state(&self) -> MutexGuard<'_, TelegramState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes the requests that wait for updates.
    pub(super) fn change_state<T>(&self, change: impl FnOnce(&mut TelegramState) -> T) -> T {
        let outcome = change(&mut self.lock_state());
        self.changes.notify_waiters();
        outcome
    }
}

impl TelegramState {
    /// Returns the time as Telegram states it, in seconds.
    pub(super) fn date(&self) -> i64 {
        self.clock.now().as_second()
    }

    pub(super) fn bot_json(&self) -> Value {
        json!({ "id": self.bot_id, "is_bot": true, "first_name": "Simulated bot", "username": self.username })
    }

    pub(super) fn find_sent(&mut self, chat: i64, message: i64) -> Option<&mut FakeSentMessage> {
        self.sent.iter_mut().find(|sent| (sent.chat_id, sent.message_id) == (chat, message))
    }
}

pub(super) fn user_json(person: i64) -> Value {
    json!({ "id": person, "is_bot": false, "first_name": format!("Person {person}"), "language_code": "en" })
}
