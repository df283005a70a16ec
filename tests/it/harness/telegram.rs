//! Bot at Telegram as a channel of a [`World`]. Ann writes to it from her account.

use std::sync::Arc;

use dialarr::app::AppBlueprint;
use dialarr::clock::Clock;
use dialarr::conversation::channel_list;
use dialarr::conversation::routing::senders::Senders;
use dialarr::conversation::transcript::{Address, UserAddress, UserRights, UserRole};
use dialarr::engine::operator::addresses::AdminCodeOutcome;
use dialarr::http::HttpClient;
use dialarr::llm::Model;
use dialarr::messaging::telegram::fake::{FakeBot, FakeSentMessage, FakeTelegram};
use dialarr::messaging::telegram::{Telegram, TelegramAccount};
use dialarr::store::people::addresses::find_address;
use dialarr::store::people::users::{self, FirstContactRole};
use dialarr::store::queue::outbox::{self, NewOutboundMessage, OutboundKind};
use http::{Request, StatusCode};
use jiff::Timestamp;

use super::world::World;

/// Account of Ann, who may delete.
pub(crate) const ANN_ACCOUNT: i64 = 7_000_000_002;
/// URL of the webhook of a bot that has one.
pub(crate) const WEBHOOK_URL: &str = "https://sms.example.org/webhook/telegram";
const API_URL: &str = "https://telegram.invalid";

/// Bot of a world, which is the only channel of the program if it is used.
pub(crate) struct HouseBot {
    pub(crate) telegram: FakeTelegram,
    pub(crate) is_used: bool,
    pub(crate) webhook_url: Option<&'static str>,
}

impl HouseBot {
    pub(crate) fn new(clock: Clock) -> Self {
        let bot = FakeBot { token: "501:AAE-x_9".to_owned(), username: "home_bot".to_owned() };
        Self { telegram: FakeTelegram::new(bot, clock), is_used: false, webhook_url: None }
    }

    pub(crate) fn apply(&self, blueprint: &mut AppBlueprint) {
        if !self.is_used {
            return;
        }
        let webhook_url = self.webhook_url.map(str::to_owned);
        let account = TelegramAccount { webhook_url, ..self.telegram.client_account(API_URL) };
        let port = Telegram::new(account, HttpClient::in_process(self.telegram.in_process()));
        blueprint.settings.senders = Senders::from_addresses(vec![port.address()]);
        blueprint.channels.remove(channel_list::TWILIO);
        blueprint.channels = blueprint.channels.clone().with(Arc::new(port));
    }
}

impl World {
    /// Starts a program whose only channel is a bot.
    pub(crate) async fn start_with_bot() -> Self {
        let mut world = Self::start().await;
        world.use_bot(None).await;
        world
    }

    /// Starts a program whose bot has a webhook.
    pub(crate) async fn start_with_bot_and_webhook() -> Self {
        let mut world = Self::start().await;
        world.use_bot(Some(WEBHOOK_URL)).await;
        world
    }

    /// Starts a program with a bot and another model.
    pub(crate) async fn start_with_bot_and(model: Arc<dyn Model>) -> Self {
        let mut world = Self::start_with(model).await;
        world.use_bot(None).await;
        world
    }

    async fn use_bot(&mut self, webhook_url: Option<&'static str>) {
        let bot = self.house_bot_mut();
        (bot.is_used, bot.webhook_url) = (true, webhook_url);
        self.apply_channels().await;
        let now = self.now();
        let rights = UserRights {
            role: UserRole::Member,
            add: true,
            delete: true,
            four_k: false,
            ..UserRights::MEMBER
        };
        let register = move |conn: &mut _| {
            let id = users::ensure_user(conn, account(ANN_ACCOUNT), FirstContactRole::Member, now)?;
            users::set_rights(conn, id, rights, now)
        };
        self.write_database(register).await;
        self.pass(5).await;
    }

    pub(crate) fn telegram(&self) -> &FakeTelegram {
        &self.house_bot().telegram
    }

    /// Sends a text from Ann to the bot, and returns all texts in her chat so far twenty seconds later.
    pub(crate) async fn text_to_bot(&self, body: &str) -> Vec<String> {
        self.telegram().text(ANN_ACCOUNT, body);
        self.pass(20).await;
        self.bot_texts()
    }

    /// Delivers the waiting updates to the webhook, and returns the statuses and bodies of the responses twenty seconds later.
    pub(crate) async fn deliver_updates(&self, secret: &str) -> Vec<(StatusCode, String)> {
        let mut responses = Vec::new();
        for update in self.telegram().take_webhook_updates() {
            let request = Request::post("/webhook/telegram")
                .header("x-telegram-bot-api-secret-token", secret)
                .body(update.to_string().into())
                .unwrap();
            responses.push(self.deliver_with_body(request).await);
        }
        self.pass(20).await;
        responses
    }

    /// Presses a button below the newest message in Ann's chat, and returns all texts there twenty seconds later.
    pub(crate) async fn press_newest(&self, label: &str) -> Vec<String> {
        let newest = self.telegram().sent_messages().pop().unwrap();
        self.press(newest.message_id, label).await
    }

    /// Presses a button in Ann's chat, and returns all texts there twenty seconds later.
    pub(crate) async fn press(&self, message: i64, label: &str) -> Vec<String> {
        assert!(self.telegram().press(ANN_ACCOUNT, ANN_ACCOUNT, message, label), "there is such a button");
        self.pass(20).await;
        self.bot_texts()
    }

    /// Presses a button that was below a message, although it may be gone.
    pub(crate) async fn press_former(&self, message: &FakeSentMessage, label: &str) -> Vec<String> {
        let button = message.buttons.iter().flatten().find(|button| button.label == label).unwrap();
        self.telegram().press_data(ANN_ACCOUNT, ANN_ACCOUNT, message.message_id, &button.data);
        self.pass(20).await;
        self.bot_texts()
    }

    /// Queues a notification to an account, as the program does when a title is ready.
    pub(crate) async fn notify(&self, address: UserAddress, body: &str) {
        let (now, body) = (self.now(), body.to_owned());
        let (to, from) =
            (Address::new(address.to_text()), self.house_bot().telegram.client_account(API_URL).address());
        let queue = move |conn: &mut _| {
            let user = users::ensure_user(conn, &address, FirstContactRole::Member, now)?;
            let notice = NewOutboundMessage {
                key: format!("test:{body}"),
                user,
                address: find_address(conn, &address)?.map(|(id, _)| id),
                turn: None,
                kind: OutboundKind::Notice,
                to: to.clone(),
                from: from.clone(),
                body: body.clone(),
                media: None,
                reacts_to: None,
                quotes: None,
                room: None,
                vote: None,
                segments: 1,
            };
            outbox::queue_message(conn, &notice, now)
        };
        self.write_database(queue).await;
    }

    /// Makes the person with an account an admin.
    pub(crate) async fn make_admin(&self, id: i64) {
        let make = move |conn: &mut _| {
            let now = Timestamp::UNIX_EPOCH;
            let user = users::ensure_user(conn, account(id), FirstContactRole::Admin, now)?;
            let rights = UserRights {
                role: UserRole::Admin,
                add: true,
                delete: true,
                four_k: false,
                ..UserRights::MEMBER
            };
            users::set_rights(conn, user, rights, now)
        };
        self.write_database(make).await;
    }

    /// Creates the code that makes its sender the first admin.
    pub(crate) async fn create_admin_code(&self) -> String {
        match self.engine().decisions.create_admin_code().await.unwrap() {
            AdminCodeOutcome::Created(code) => code,
            AdminCodeOutcome::HasAdmin => panic!("there is an admin"),
        }
    }

    /// Returns the texts in Ann's chat.
    pub(crate) fn bot_texts(&self) -> Vec<String> {
        self.telegram().texts_to(ANN_ACCOUNT)
    }
}

/// Returns the address of an account.
pub(crate) fn account(id: i64) -> UserAddress {
    UserAddress::parse(&format!("telegram:{id}")).unwrap()
}
