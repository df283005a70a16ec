//! Webhook of the bot, which Telegram calls with each update if it is configured.

use http::HeaderMap;
use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret;
use subtle::ConstantTimeEq;

use super::port::Telegram;
use super::wire::Update;
use crate::conversation::routing::inbound_message::MessageSource;
use crate::messaging::{WebhookContent, WebhookKind, WebhookRefusal, WebhookRequest};

/// Header with the word that was agreed when the webhook was set.
pub const SECRET_HEADER: &str = "x-telegram-bot-api-secret-token";
/// Age up to which a message came directly. Telegram repeats an update for a day.
const MAX_DIRECT_AGE: SignedDuration = SignedDuration::from_secs(60);

impl Telegram {
    /// Authenticates and parses an update. Updates that mean nothing here are accepted without an effect.
    pub(super) fn read_update(&self, request: &WebhookRequest<'_>) -> Result<WebhookContent, WebhookRefusal> {
        if self.account.webhook_url.is_none() || !self.is_authentic(request.headers) {
            return Err(WebhookRefusal::Unsigned);
        }
        if request.kind != WebhookKind::Messages {
            return Ok(WebhookContent::Nothing);
        }
        let update: Update = serde_json::from_slice(request.body).map_err(|error| {
            WebhookRefusal::Malformed { label: "no_update", description: format!("not an update: {error}") }
        })?;
        if let Some(gesture) = self.account.read_gesture(&update) {
            return Ok(WebhookContent::Gesture(gesture));
        }
        let via = source_at(&update, request.now);
        let message = self.account.received_message(&update, self.username(), via, request.now);
        Ok(message.map_or(WebhookContent::Nothing, |message| WebhookContent::Message(Box::new(message))))
    }

    fn is_authentic(&self, headers: &HeaderMap) -> bool {
        let expected = self.account.token.webhook_secret();
        let given = headers.get(SECRET_HEADER).map_or(&b""[..], |value| value.as_bytes());
        given.ct_eq(expected.expose_secret().as_bytes()).into()
    }
}

fn source_at(update: &Update, now: Timestamp) -> MessageSource {
    let date = update.message.as_ref().and_then(|message| Timestamp::from_second(message.date).ok());
    match date {
        Some(date) if now.duration_since(date).abs() > MAX_DIRECT_AGE => MessageSource::Recovery,
        Some(_) | None => MessageSource::Webhook,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::clock::Clock;
    use crate::http::HttpClient;
    use crate::messaging::telegram::TelegramAccount;
    use crate::messaging::telegram::fake::{FakeBot, FakeTelegram};

    fn telegram(webhook_url: Option<&str>) -> Telegram {
        let bot = FakeBot { token: "501:AAE".to_owned(), username: "home_bot".to_owned() };
        let fake = FakeTelegram::new(bot, Clock::System);
        let account = fake.client_account("https://telegram.invalid");
        let account = TelegramAccount { webhook_url: webhook_url.map(str::to_owned), ..account };
        Telegram::new(account, HttpClient::in_process(fake.in_process()))
    }

    fn read(telegram: &Telegram, secret: &str, date: i64) -> Result<Option<MessageSource>, WebhookRefusal> {
        let body = format!(
            r#"{{"update_id":1,"message":{{"message_id":7,"date":{date},"from":{{"id":9}},"chat":{{"id":9,"type":"private"}},"text":"hi"}}}}"#
        );
        let mut headers = HeaderMap::new();
        headers.insert(SECRET_HEADER, HeaderValue::from_str(secret).unwrap());
        let now = Timestamp::from_second(10_000).unwrap();
        let request = WebhookRequest {
            kind: WebhookKind::Messages,
            target: "/webhook/telegram",
            headers: &headers,
            body: body.as_bytes(),
            now,
        };
        Ok(match telegram.read_update(&request)? {
            WebhookContent::Message(message) => Some(message.via),
            WebhookContent::Report(_) | WebhookContent::Gesture(_) | WebhookContent::Nothing => None,
        })
    }

    #[test]
    fn update_is_read_only_with_the_agreed_word() {
        let telegram = telegram(Some("https://home.invalid/webhook/telegram"));
        let secret = telegram.account.token.webhook_secret();
        assert_eq!(read(&telegram, secret.expose_secret(), 9_990), Ok(Some(MessageSource::Webhook)));
        assert_eq!(read(&telegram, secret.expose_secret(), 9_000), Ok(Some(MessageSource::Recovery)));
        for word in ["", "other", &secret.expose_secret()[1..]] {
            assert_eq!(read(&telegram, word, 9_990), Err(WebhookRefusal::Unsigned), "{word}");
        }
    }

    #[test]
    fn bot_that_polls_refuses_every_webhook_request() {
        let telegram = telegram(None);
        let secret = telegram.account.token.webhook_secret();
        assert_eq!(read(&telegram, secret.expose_secret(), 9_990), Err(WebhookRefusal::Unsigned));
    }
}
