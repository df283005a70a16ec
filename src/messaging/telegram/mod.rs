//! Telegram through a bot: its client, and the port of its channel.

mod account;
mod api;
mod buttons;
mod gestures;
mod groups;
mod pace;
mod polls;
mod port;
mod received;
mod sending;
mod state;
mod updates;
mod webhook;
mod wire;

pub mod fake;

pub use account::{BotToken, InvalidBotToken, TelegramAccount};
pub use api::{BotApi, BotApiError};
pub use port::Telegram;
pub use state::BotState;
