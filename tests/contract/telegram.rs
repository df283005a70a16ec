//! The bot against npm's `telegram-test-api`, an independent server of the Bot API. It has no polls, no reactions and no
//! limits, returns updates at once, and forgets those that it has returned. `DIALARR_TELEGRAM_URL` is its address; without
//! it nothing is checked.

use std::env;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use dialarr::conversation::routing::button_press::ButtonChoice;
use dialarr::conversation::routing::inbound_message::ReceivedMessage;
use dialarr::conversation::routing::rooms::RoomChange;
use dialarr::conversation::transcript::{Address, OutboxId};
use dialarr::http::HttpClient;
use dialarr::messaging::telegram::{BotToken, Telegram, TelegramAccount};
use dialarr::messaging::{ChannelPort, OutboundMessage, Poll};
use dialarr::store::queue::callbacks::CallbackToken;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

const SAM: i64 = 7_000_000_009;
const FAMILY: i64 = -500;

/// Server with a bot of its own.
struct TestServer {
    url: String,
    token: String,
    telegram: Telegram,
    http: HttpClient,
}

impl TestServer {
    /// Returns the server; `None` without one. Each test has another bot.
    fn open(bot: u32) -> Result<Option<Self>> {
        let Ok(url) = env::var("DIALARR_TELEGRAM_URL") else { return Ok(None) };
        let token = format!("{bot}:AAE-x_9");
        let http = HttpClient::network().context("failed to set up the client")?;
        let account =
            TelegramAccount { api_url: url.clone(), token: BotToken::parse(&token)?, webhook_url: None };
        let telegram = Telegram::new(account, http.clone());
        Ok(Some(Self { url, token, telegram, http }))
    }

    /// Sends a request as the app of a person does.
    async fn act(&self, path: &str, content: Value) -> Result<Value> {
        let request = http::Request::post(format!("{}/{path}", self.url))
            .header("content-type", "application/json")
            .body(Bytes::from(content.to_string()))?;
        let answer = self.http.send(request, Duration::from_secs(10)).await?;
        ensure!(answer.status().is_success(), "{path} answers {}", answer.status());
        Ok(serde_json::from_slice(answer.body())?)
    }

    async fn write(&self, chat: Value, text: &str) -> Result<()> {
        let from = json!({ "id": SAM, "is_bot": false, "first_name": "Sam" });
        let date = Timestamp::now().as_second();
        let message =
            json!({ "botToken": self.token, "from": from, "chat": chat, "date": date, "text": text });
        self.act("sendMessage", message).await.map(drop)
    }

    async fn poll(&self) -> Result<Vec<ReceivedMessage>> {
        let (min_age, now) = (SignedDuration::ZERO, Timestamp::now());
        let poll = Poll { cursor: None, min_age, unfinished: Vec::new(), now };
        Ok(self.telegram.poll_received(&poll).await?.messages)
    }

    /// Returns the messages of the bot that Sam has not read.
    async fn read(&self) -> Result<Vec<Value>> {
        let unread = self.act("getUpdates", json!({ "token": self.token, "chatId": SAM })).await?;
        Ok(unread["result"].as_array().context("a list of messages")?.clone())
    }
}

fn prompt() -> OutboundMessage {
    OutboundMessage {
        id: OutboxId(7),
        attempt: 1,
        to: Address::new(format!("telegram:{SAM}")),
        from: Address::new("telegram:501"),
        body: "Delete <Heat> & its file_1?".to_owned(),
        media: Vec::new(),
        reacts_to: None,
        quotes: None,
        poll: None,
        buttons: vec![ButtonChoice::Yes, ButtonChoice::No],
        valid_for: Duration::from_secs(300),
        callback_token: CallbackToken::from_stored("0123456789abcdef0123456789abcdef"),
    }
}

#[tokio::test]
async fn independent_server_delivers_private_and_group_messages() -> Result<()> {
    let Some(server) = TestServer::open(501)? else { return Ok(()) };
    server.write(json!({ "id": SAM, "type": "private", "first_name": "Sam" }), "/start").await?;
    server.write(json!({ "id": FAMILY, "type": "group", "title": "Family" }), "@TestNameBot status").await?;
    let messages = server.poll().await?;
    let bodies: Vec<&str> = messages.iter().map(|message| message.body.as_str()).collect();
    ensure!(bodies == ["start", "status"], "{bodies:?}");
    ensure!(messages[0].room.is_none() && messages[0].from.to_text() == format!("telegram:{SAM}"));
    let room = messages[1].room.as_ref().context("a message in a group")?;
    ensure!(room.title == "Family" && room.change == RoomChange::Message { is_addressed: true }, "{room:?}");
    ensure!(messages[0].external_id != messages[1].external_id, "two messages have one id");
    Ok(())
}

#[tokio::test]
async fn independent_server_shows_a_prompt_and_returns_its_press() -> Result<()> {
    let Some(server) = TestServer::open(502)? else { return Ok(()) };
    let receipt = server.telegram.send(&prompt()).await?;
    ensure!(!receipt.sid.is_empty(), "{receipt:?}");
    let shown = server.read().await?.pop().context("the prompt")?;
    ensure!(shown["message"]["text"] == prompt().body, "the text is not sent as it is: {shown}");
    let yes = &shown["message"]["reply_markup"]["inline_keyboard"][0][0];
    let data = yes["callback_data"].as_str().context("the data of the button")?;
    ensure!(yes["text"] == "Yes" && data.len() <= 64, "{yes}");

    let chat = json!({ "id": SAM, "type": "private" });
    let message =
        json!({ "message_id": shown["messageId"], "chat": chat, "date": Timestamp::now().as_second() });
    let from = json!({ "id": SAM, "is_bot": false, "first_name": "Sam" });
    server
        .act(
            "sendCallback",
            json!({ "botToken": server.token, "from": from, "message": message, "data": data }),
        )
        .await?;
    let press = server.poll().await?.pop().context("the press")?;
    let button = press.pressed.context("the pressed button")?;
    ensure!(press.body == "yes" && button.message == prompt().id, "{button:?}");
    ensure!(button.token == prompt().callback_token.as_str(), "the press names another message");
    // The next poll answers the press and removes the buttons.
    ensure!(server.poll().await?.is_empty(), "an update was delivered twice");
    Ok(())
}
