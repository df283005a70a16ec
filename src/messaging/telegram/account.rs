//! Bot of the household, and how to reach the Bot API.

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::conversation::channel_list;
use crate::conversation::transcript::Address;

/// Bot, and how to reach the Bot API.
#[derive(Debug, Clone)]
pub struct TelegramAccount {
    /// Base URL of the Bot API, e.g. `https://api.telegram.org`.
    pub api_url: String,
    pub token: BotToken,
    /// URL of our webhook, e.g. `https://dialarr.example.org/webhook/telegram`; without it, updates are polled.
    pub webhook_url: Option<String>,
}

/// Token of a bot, such as `501:AAE...`: the id of the bot, and a secret.
#[derive(Debug, Clone)]
pub struct BotToken {
    bot_id: i64,
    token: SecretString,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a bot token such as 123456:ABC-DEF1234ghIkl, as BotFather shows it")]
pub struct InvalidBotToken;

impl BotToken {
    pub fn parse(text: &str) -> Result<Self, InvalidBotToken> {
        let (id, secret) = text.split_once(':').ok_or(InvalidBotToken)?;
        let is_number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
        let is_secret = !secret.is_empty()
            && secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        match id.parse() {
            Ok(bot_id) if is_number && is_secret => Ok(Self { bot_id, token: text.into() }),
            Ok(_) | Err(_) => Err(InvalidBotToken),
        }
    }

    /// Returns the id of the bot, which is not secret.
    pub fn bot_id(&self) -> i64 {
        self.bot_id
    }

    /// Returns the word with which Telegram authenticates its webhook requests. It is derived from the token, so it needs no
    /// setting, and changes with the token.
    pub(super) fn webhook_secret(&self) -> SecretString {
        let digest = Sha256::digest(format!("dialarr webhook {}", self.token.expose_secret()).as_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
    }

    /// Returns the part of the token that is secret.
    pub(super) fn secret_part(&self) -> &str {
        self.token.expose_secret().split_once(':').map_or("", |(_, secret)| secret)
    }

    pub(super) fn secret(&self) -> &SecretString {
        &self.token
    }
}

impl TelegramAccount {
    /// Returns our address on the channel.
    pub fn address(&self) -> Address {
        Address::new(format!("{}{}", channel_list::TELEGRAM_PREFIX, self.token.bot_id()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_begins_with_the_id_of_its_bot() {
        assert_eq!(BotToken::parse("501:AAE-x_9").unwrap().bot_id(), 501);
        for text in ["", "501", "501:", ":AAE", "+501:AAE", "501:A/E", "501:A E", "99999999999999999999:A"] {
            assert_eq!(BotToken::parse(text).unwrap_err(), InvalidBotToken, "{text}");
        }
    }

    #[test]
    fn debug_output_hides_the_secret_of_the_token() {
        let token = BotToken::parse("501:AAE-x_9").unwrap();
        assert!(!format!("{token:?}").contains("AAE"));
    }
}
