//! Port of the channel: sends messages through the bot, and receives updates.

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use http::HeaderMap;
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::account::TelegramAccount;
use super::api::{BotApi, BotApiError};
use super::pace::SendPace;
use super::updates::{self, PollProgress};
use super::webhook::SECRET_HEADER;
use super::wire::{BotUser, Empty, SendChatAction};
use crate::conversation::channel::Channel;
use crate::conversation::channel_list;
use crate::conversation::routing::inbound_message::ReceivedMessage;
use crate::conversation::transcript::Address;
use crate::http::HttpClient;
use crate::messaging::{
    CarrierReceipt, ChannelPort, InboundPage, LookupError, OutboundMessage, Poll, SendError, WebhookContent,
    WebhookRefusal, WebhookRequest,
};

/// Bot, and the channel of messages through it.
#[derive(Debug)]
pub struct Telegram {
    pub(super) account: TelegramAccount,
    pub(super) api: BotApi,
    pub(super) pace: SendPace,
    /// Name of the bot, once it is known.
    username: OnceLock<String>,
    progress: Mutex<PollProgress>,
    /// Whether the bot was usable in the last request; `None` before the first one.
    last_outcome: Mutex<Option<Result<(), String>>>,
}

impl Telegram {
    pub fn new(account: TelegramAccount, http: HttpClient) -> Self {
        let api = BotApi::new(&account.api_url, account.token.clone(), http);
        Self {
            account,
            api,
            pace: SendPace::default(),
            username: OnceLock::new(),
            progress: Mutex::default(),
            last_outcome: Mutex::default(),
        }
    }

    /// Returns our address on the channel.
    pub fn address(&self) -> Address {
        self.account.address()
    }

    /// Returns the client of the Bot API.
    pub fn api(&self) -> &BotApi {
        &self.api
    }

    pub(super) fn lock_progress(&self) -> MutexGuard<'_, PollProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the name of the bot, unless it is known.
    pub(super) async fn learn_username(&self) -> Result<(), BotApiError> {
        if self.username.get().is_none() {
            let bot: BotUser = self.call("getMe", &Empty {}).await?;
            self.username.get_or_init(|| bot.username.unwrap_or_default());
        }
        Ok(())
    }

    /// Returns the name of the bot, once it is known.
    pub(super) fn username(&self) -> Option<&str> {
        self.username.get().map(String::as_str)
    }

    /// Calls a method, and records whether the bot is usable.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &'static str,
        parameters: &impl Serialize,
    ) -> Result<T, BotApiError> {
        let outcome = self.api.call(method, parameters).await;
        self.record_outcome(outcome.as_ref().err());
        outcome
    }

    /// Calls a method whose answer may take this long, and records whether the bot is usable.
    pub(super) async fn call_within<T: DeserializeOwned>(
        &self,
        method: &'static str,
        parameters: &impl Serialize,
        timeout: Duration,
    ) -> Result<T, BotApiError> {
        let outcome = self.api.call_within(method, parameters, timeout).await;
        self.record_outcome(outcome.as_ref().err());
        outcome
    }

    fn record_outcome(&self, error: Option<&BotApiError>) {
        let failure = match error {
            Some(
                BotApiError::NotSent(_)
                | BotApiError::Lost(_)
                | BotApiError::WrongToken
                | BotApiError::Conflict(_),
            ) => error.map(ToString::to_string),
            // The bot works; one request does not.
            Some(
                BotApiError::TooMany(_)
                | BotApiError::Migrated(_)
                | BotApiError::Unreachable(_)
                | BotApiError::Refused(_),
            )
            | None => None,
        };
        *self.last_outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure.map_or(Ok(()), Err));
    }
}

#[async_trait]
impl ChannelPort for Telegram {
    fn channel(&self) -> Channel {
        channel_list::TELEGRAM
    }

    fn reserve_slot(&self, message: &OutboundMessage) -> Result<Option<Instant>, SendError> {
        self.reserve_pace(message)
    }

    async fn send(&self, message: &OutboundMessage) -> Result<CarrierReceipt, SendError> {
        self.send_message(message).await
    }

    /// Finds nothing, because a bot cannot list what it sent.
    async fn find_accepted(
        &self,
        _message: &OutboundMessage,
        _since: Timestamp,
    ) -> Result<Vec<CarrierReceipt>, LookupError> {
        Ok(Vec::new())
    }

    fn source(&self) -> Option<String> {
        Some(self.address().as_str().to_owned())
    }

    async fn poll_received(&self, poll: &Poll) -> Result<InboundPage, LookupError> {
        self.poll_updates(poll).await
    }

    /// The first poll does not wait for updates, because all work waits for it.
    fn poll_timeout(&self) -> Duration {
        if self.lock_progress().has_caught_up() { updates::POLL_TIMEOUT } else { updates::FIRST_POLL_TIMEOUT }
    }

    fn claims_authenticity(&self, headers: &HeaderMap) -> bool {
        headers.contains_key(SECRET_HEADER)
    }

    fn read_webhook(&self, request: &WebhookRequest<'_>) -> Result<WebhookContent, WebhookRefusal> {
        self.read_update(request)
    }

    /// Answers the press of a button in the response to its webhook request.
    fn acknowledgement(&self, message: &ReceivedMessage) -> Option<(&'static str, Cow<'static, str>)> {
        let press = message.external_id.strip_prefix(PRESS_PREFIX)?;
        let answer = serde_json::json!({ "method": "answerCallbackQuery", "callback_query_id": press });
        Some(("application/json", Cow::Owned(answer.to_string())))
    }

    async fn show_typing(&self, to: &Address) {
        let chat = to.as_str().strip_prefix(channel_list::TELEGRAM_PREFIX);
        let Some(chat_id) = chat.and_then(|chat| chat.parse().ok()) else { return };
        let parameters = SendChatAction { chat_id, action: "typing" };
        if let Err(error) = self.api.call::<bool>("sendChatAction", &parameters).await {
            tracing::debug!(%error, "failed to show that an answer is being written");
        }
    }

    fn start_link(&self) -> Option<String> {
        self.username.get().map(|username| format!("https://t.me/{username}?start="))
    }

    fn record_timeout(&self) {
        let timeout = BotApiError::Lost("no answer in time".to_owned());
        self.record_outcome(Some(&timeout));
    }

    fn last_outcome(&self) -> Option<Result<(), String>> {
        self.last_outcome.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn account_identity(&self) -> Option<String> {
        Some(self.account.token.bot_id().to_string())
    }
}

/// Beginning of the id of a message that is the press of a button. The rest is Telegram's id of the press.
pub(super) const PRESS_PREFIX: &str = "press.";
