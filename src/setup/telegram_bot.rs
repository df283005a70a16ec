//! Webhook of the bot at Telegram: comparison with its target, and update. A bot whose messages are polled has none.

use url::Url;

use super::setting_diff::SettingDiff;
use super::{SetupOutcome, SetupRequest, WebhookSecret};
use crate::messaging::telegram::{BotApiError, BotState, Telegram, TelegramAccount};

pub(crate) async fn set_up(account: &TelegramAccount, bot: &Telegram, request: SetupRequest) -> SetupOutcome {
    let mut changes = match bot.api().fetch_bot_state().await {
        Ok(state) => webhook_diffs(account, &state),
        Err(error) => return failed_outcome(Vec::new(), &error),
    };
    if changes.is_empty() && request.secret == WebhookSecret::Renew && account.webhook_url.is_some() {
        changes.push(SettingDiff::new("secret", "not readable", "sent again"));
    }
    if changes.is_empty() || !request.applies() {
        return SetupOutcome::planned(changes);
    }
    let result = match &account.webhook_url {
        Some(url) => bot.api().set_webhook(url).await,
        None => bot.api().remove_webhook().await,
    };
    if let Err(error) = result {
        return failed_outcome(changes, &error);
    }
    match bot.api().fetch_bot_state().await.map(|state| webhook_diffs(account, &state)) {
        Ok(remaining) if remaining.is_empty() => SetupOutcome::Applied(changes),
        Ok(_) => {
            let other = "another program has changed it meanwhile".to_owned();
            failed_outcome(changes, &BotApiError::Conflict(other))
        }
        Err(error) => failed_outcome(changes, &error),
    }
}

fn webhook_diffs(account: &TelegramAccount, state: &BotState) -> Vec<SettingDiff> {
    if state.webhook_url == account.webhook_url {
        return Vec::new();
    }
    let current = state.webhook_url.as_deref().map(describe_origin).unwrap_or_default();
    let target = account.webhook_url.clone().unwrap_or_default();
    vec![SettingDiff::new("webhook", current, target)]
}

/// Describes the URL of another program by its host, because the path may contain the token.
pub(crate) fn describe_origin(url: &str) -> String {
    match Url::parse(url) {
        Ok(url) => url.host_str().unwrap_or("an unknown host").to_owned(),
        Err(_) => "an invalid URL".to_owned(),
    }
}

fn failed_outcome(changes: Vec<SettingDiff>, error: &BotApiError) -> SetupOutcome {
    SetupOutcome::Failed { changes, reason: error.to_string(), hint: bot_advice(error).to_owned() }
}

pub(crate) fn bot_advice(error: &BotApiError) -> &'static str {
    match error {
        BotApiError::NotSent(_) | BotApiError::Lost(_) => {
            "check the connection to the internet, and TELEGRAM_API_URL if it is set"
        }
        BotApiError::TooMany(_) => "try again in a minute",
        BotApiError::WrongToken => "copy the token from BotFather to TELEGRAM_BOT_TOKEN again",
        BotApiError::Conflict(_) => {
            "use the bot in one program only: /revoke at BotFather gives a new token for TELEGRAM_BOT_TOKEN"
        }
        BotApiError::Refused(_) | BotApiError::Migrated(_) | BotApiError::Unreachable(_) => {
            "a webhook needs https in PUBLIC_URL, and port 443, 80, 88 or 8443; without TELEGRAM_WEBHOOK, none is needed"
        }
    }
}
