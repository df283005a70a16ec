//! State of the bot, for the setup and the doctor.

use secrecy::ExposeSecret;

use super::api::{BotApi, BotApiError};
use super::wire::{BotUser, Empty, SetWebhook, WebhookInfo};

/// Kinds of updates that the program reads.
pub(super) const ALLOWED_UPDATES: [&str; 5] =
    ["message", "callback_query", "my_chat_member", "poll_answer", "message_reaction"];
/// Number of webhook requests at the same time. One keeps the updates in order.
const MAX_WEBHOOK_CONNECTIONS: u8 = 1;

/// State of the bot at Telegram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BotState {
    /// Name of the bot without `@`, as in `https://t.me/NAME`.
    pub username: String,
    /// URL to which Telegram sends the updates; `None` if they are polled.
    pub webhook_url: Option<String>,
    /// Whether Telegram sends all kinds of updates that the program reads to the webhook.
    pub sends_all_updates: bool,
    /// Last error of Telegram when it called the webhook.
    pub webhook_error: Option<String>,
    /// Whether the bot sees all messages in groups, and not only those that are addressed to it.
    pub reads_all_group_messages: bool,
}

impl BotApi {
    /// Fetches the state of the bot.
    pub async fn fetch_bot_state(&self) -> Result<BotState, BotApiError> {
        let bot: BotUser = self.call("getMe", &Empty {}).await?;
        let webhook: WebhookInfo = self.call("getWebhookInfo", &Empty {}).await?;
        Ok(BotState {
            username: bot.username.unwrap_or_default(),
            sends_all_updates: ALLOWED_UPDATES
                .iter()
                .all(|kind| webhook.allowed_updates.iter().any(|sent| sent == kind)),
            webhook_url: Some(webhook.url).filter(|url| !url.is_empty()),
            webhook_error: webhook.last_error_message,
            reads_all_group_messages: bot.can_read_all_group_messages,
        })
    }

    /// Makes Telegram send the updates to a URL, with a header by which its requests are known.
    pub async fn set_webhook(&self, url: &str) -> Result<(), BotApiError> {
        let secret = self.token().webhook_secret();
        let parameters = SetWebhook {
            url,
            secret_token: secret.expose_secret(),
            allowed_updates: &ALLOWED_UPDATES,
            max_connections: MAX_WEBHOOK_CONNECTIONS,
        };
        self.call::<bool>("setWebhook", &parameters).await.map(drop)
    }

    /// Makes Telegram keep the updates until they are polled. Waiting updates are kept.
    pub async fn remove_webhook(&self) -> Result<(), BotApiError> {
        self.call::<bool>("deleteWebhook", &Empty {}).await.map(drop)
    }
}
