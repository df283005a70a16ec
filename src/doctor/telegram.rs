//! Check of the bot at Telegram.

use super::{Finding, INSTALL_WEBHOOKS};
use crate::messaging::ChannelPort;
use crate::messaging::telegram::{BotApiError, BotState, Telegram, TelegramAccount};
use crate::setup::telegram_bot::{bot_advice, describe_origin};

/// Words of Telegram about a second program that polls.
const SECOND_POLLER: &str = "terminated by other getUpdates";
/// Words of Telegram about a webhook, which prevents polling.
const ACTIVE_WEBHOOK: &str = "webhook is active";
const REMOVE_WEBHOOK: &str = "if no other program uses the bot, run dialarr setup --apply, or install the webhooks in \
                              the setup assistant of the console";

/// Checks the token, and the webhook or its absence.
pub(super) async fn check_bot(account: &TelegramAccount, bot: &Telegram) -> Vec<Finding> {
    match bot.api().fetch_bot_state().await {
        Ok(state) => {
            let mut findings = vec![name_finding(&state)];
            findings.extend(webhook_findings(account, &state));
            // A request to Telegram by this check would itself be the second one.
            let problem = bot.last_outcome().and_then(Result::err);
            findings.extend(problem.as_deref().and_then(second_poller_finding));
            findings
        }
        Err(error) => vec![error_finding(&error)],
    }
}

/// Checks the token, and whether polling works, without a webhook that is set up later.
pub(super) async fn check_token(account: &TelegramAccount, bot: &Telegram) -> Vec<Finding> {
    if account.webhook_url.is_none() {
        return check_bot(account, bot).await;
    }
    let state = bot.api().fetch_bot_state().await;
    vec![state.as_ref().map_or_else(error_finding, name_finding)]
}

/// Returns a finding on the last request to Telegram.
pub(super) fn last_request_finding(outcome: Option<Result<(), String>>) -> Finding {
    match outcome {
        None => Finding::ok("Telegram: no request was made yet"),
        Some(Ok(())) => Finding::ok("Telegram: responds and accepts the token"),
        Some(Err(problem)) if problem == BotApiError::WrongToken.to_string() => {
            error_finding(&BotApiError::WrongToken)
        }
        Some(Err(problem)) if problem.contains(ACTIVE_WEBHOOK) => {
            Finding::failure("Telegram: a webhook is set elsewhere, so no message is read", REMOVE_WEBHOOK)
        }
        Some(Err(problem)) => second_poller_finding(&problem).unwrap_or_else(|| {
            let advice = bot_advice(&BotApiError::NotSent(problem.clone()));
            Finding::failure(format!("Telegram: failed to {problem}"), advice)
        }),
    }
}

fn name_finding(state: &BotState) -> Finding {
    Finding::ok(format!("Telegram: the bot is @{}", state.username))
}

fn error_finding(error: &BotApiError) -> Finding {
    let summary = match error {
        BotApiError::WrongToken => "Telegram: refuses the token".to_owned(),
        _ => format!("Telegram: failed to {error}"),
    };
    Finding::failure(summary, bot_advice(error))
}

/// Returns the failure of a bot whose messages another program takes.
fn second_poller_finding(problem: &str) -> Option<Finding> {
    problem.contains(SECOND_POLLER).then(|| {
        let advice = bot_advice(&BotApiError::Conflict(problem.to_owned()));
        Finding::failure("Telegram: another program reads this bot's messages", advice)
    })
}

fn webhook_findings(account: &TelegramAccount, state: &BotState) -> Vec<Finding> {
    match (&account.webhook_url, &state.webhook_url) {
        (None, None) => vec![Finding::ok("Telegram: messages are polled")],
        (Some(_), None) => {
            vec![Finding::failure("Telegram: no webhook is set, so no message comes in", INSTALL_WEBHOOKS)]
        }
        (Some(target), Some(current)) if target == current => {
            let error = state.webhook_error.as_ref().map(|error| {
                Finding::warning(
                    format!("Telegram: last failure to call the webhook: {error}"),
                    "check that the proxy forwards /webhook/telegram; after a new token, run \
                     dialarr setup --apply --renew-secret",
                )
            });
            [Finding::ok("Telegram: webhook set")].into_iter().chain(error).collect()
        }
        (_, Some(current)) => vec![Finding::failure(
            format!("Telegram: a webhook is set elsewhere: {}", describe_origin(current)),
            REMOVE_WEBHOOK,
        )],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messaging::telegram::BotToken;

    fn summaries(webhook_url: Option<&str>, state: (Option<&str>, Option<&str>)) -> Vec<String> {
        let account = TelegramAccount {
            api_url: "https://telegram.invalid".to_owned(),
            token: BotToken::parse("501:AAE").unwrap(),
            webhook_url: webhook_url.map(str::to_owned),
        };
        let state = BotState {
            username: "films_bot".to_owned(),
            webhook_url: state.0.map(str::to_owned),
            sends_all_updates: true,
            webhook_error: state.1.map(str::to_owned),
            reads_all_group_messages: false,
        };
        webhook_findings(&account, &state).into_iter().map(|finding| finding.summary).collect()
    }

    #[test]
    fn webhook_is_compared_with_the_configured_one() {
        let ours = Some("https://sms.example.org/webhook/telegram");
        let elsewhere = "Telegram: a webhook is set elsewhere: other.example";
        let with_token = Some("https://other.example/501:AAE");
        assert_eq!(summaries(None, (None, None)), ["Telegram: messages are polled"]);
        assert_eq!(summaries(None, (with_token, None)), [elsewhere]);
        assert_eq!(summaries(ours, (with_token, None)), [elsewhere]);
        assert_eq!(summaries(ours, (None, None)), ["Telegram: no webhook is set, so no message comes in"]);
        assert_eq!(summaries(ours, (ours, None)), ["Telegram: webhook set"]);
        let failing = summaries(ours, (ours, Some("Connection timed out")));
        let expected =
            ["Telegram: webhook set", "Telegram: last failure to call the webhook: Connection timed out"];
        assert_eq!(failing, expected);
    }

    #[test]
    fn finding_on_the_last_request_names_the_problem() {
        let finding = |problem: &str| last_request_finding(Some(Err(problem.to_owned()))).summary;
        let conflict = |words: &str| BotApiError::Conflict(format!("Conflict: {words}")).to_string();
        let cases = [
            (BotApiError::WrongToken.to_string(), "Telegram: refuses the token"),
            (
                conflict(
                    "terminated by other getUpdates request; make sure that only one bot instance is running",
                ),
                "Telegram: another program reads this bot's messages",
            ),
            (
                conflict("can't use getUpdates method while webhook is active; use deleteWebhook"),
                "Telegram: a webhook is set elsewhere, so no message is read",
            ),
            ("reach Telegram: no route".to_owned(), "Telegram: failed to reach Telegram: no route"),
        ];
        for (problem, expected) in cases {
            assert_eq!(finding(&problem), expected, "{problem}");
        }
    }
}
