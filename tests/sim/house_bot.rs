//! Bot at Telegram, the only carrier of some schedules. The account of a person has the digits of their phone number, so
//! that people have the same names as in other schedules.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use dialarr::clock::Clock;
use dialarr::conversation::routing::senders::Senders;
use dialarr::http::{HttpClient, InProcess};
use dialarr::messaging::channel_ports::ChannelPorts;
use dialarr::messaging::telegram::Telegram;
use dialarr::messaging::telegram::fake::{FakeBot, FakeSentMessage, FakeTelegram};
use futures_util::FutureExt;
use http::{Request, Uri};
use sha2::{Digest, Sha256};

use crate::numbered_port::{self, NumberedPort};
use crate::records::Records;
use crate::vote_people::PollVote;
use crate::world::{SECRET, World};

const API_URL: &str = "http://telegram.invalid";
const BOT_ID: i64 = 501;
/// Source of the updates, under which their offset is stored.
const SOURCE: &str = "telegram:501";
/// Id of the first press at the simulated Telegram.
const FIRST_PRESS: usize = 4_300_000_000_000_001;

/// Group of all people.
pub(crate) const ROOM: i64 = -700;

/// Text of a person in a chat with the bot.
#[derive(Debug, Clone)]
pub(crate) struct BotText {
    pub person: i64,
    pub chat: i64,
    pub message_id: i64,
    pub body: String,
    pub is_forwarded: bool,
    /// True time in milliseconds.
    pub sent_at: i64,
}

/// Press of a button.
#[derive(Debug, Clone)]
pub(crate) struct BotPress {
    /// Id of the message that the program makes of it.
    pub external_id: String,
    pub person: i64,
    pub chat: i64,
    pub message_id: i64,
    pub data: String,
    /// True time in milliseconds.
    pub sent_at: i64,
    /// False if the program can make no message of it.
    pub is_readable: bool,
}

/// Message that Telegram accepted.
#[derive(Debug, Clone)]
pub(crate) struct BotDelivery {
    /// Number of the request.
    pub request: usize,
    pub message: FakeSentMessage,
    /// True time in milliseconds.
    pub at: i64,
}

/// Start of the program, with the offset that was stored then.
#[derive(Debug, Clone)]
pub(crate) struct BotStart {
    pub at: i64,
    pub offset: Option<i64>,
}

/// End of a run of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunEnd {
    pub from: i64,
    pub to: i64,
    /// True if the database may have lost commits.
    pub is_power_cut: bool,
}

/// Bot of a world, with everything that happened in its chats.
pub(crate) struct HouseBot {
    pub fake: FakeTelegram,
    true_clock: Clock,
    pub texts: Mutex<Vec<BotText>>,
    pub presses: Mutex<Vec<BotPress>>,
    /// Answers to polls.
    pub votes: Mutex<Vec<PollVote>>,
    /// Reactions, each with the person and the emoji, which is empty for a removal.
    pub reactions: Mutex<Vec<(i64, &'static str)>>,
    pub deliveries: Mutex<Vec<BotDelivery>>,
    pub starts: Mutex<Vec<BotStart>>,
    pub run_ends: Mutex<Vec<RunEnd>>,
    /// Number of the sent messages that people have read.
    pub read_messages: AtomicUsize,
    requests: AtomicUsize,
}

/// Returns the account of a person.
pub(crate) fn account(person: &str) -> i64 {
    person.trim_start_matches('+').parse().unwrap()
}

/// Returns the person with an account.
pub(crate) fn person(account: i64) -> String {
    format!("+{account}")
}

/// Returns the id under which the program stores a message of a chat.
pub(crate) fn message_id(chat: i64, number: i64) -> String {
    let digest = Sha256::digest(format!("{BOT_ID}:{chat}").as_bytes());
    let chat: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{number}.{chat}")
}

impl BotText {
    pub(crate) fn external_id(&self) -> String {
        message_id(self.chat, self.message_id)
    }
}

impl HouseBot {
    pub(crate) fn new(true_clock: Clock) -> Self {
        let bot = FakeBot { token: format!("{BOT_ID}:{SECRET}"), username: "home_bot".to_owned() };
        Self {
            // Telegram's clock is not the program's, which may be set.
            fake: FakeTelegram::new(bot, true_clock.clone()),
            true_clock,
            texts: Mutex::default(),
            presses: Mutex::default(),
            votes: Mutex::default(),
            reactions: Mutex::default(),
            deliveries: Mutex::default(),
            starts: Mutex::default(),
            run_ends: Mutex::default(),
            read_messages: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
        }
    }

    /// Returns the number of sent messages that people have not read.
    pub(crate) fn unread_messages(&self) -> usize {
        self.fake.sent_messages().len() - self.read_messages.load(Ordering::SeqCst)
    }

    fn now(&self) -> i64 {
        self.true_clock.now().as_millisecond()
    }

    pub(crate) fn write(&self, person: &str, body: &str, is_forwarded: bool) {
        let person = account(person);
        let message_id = match is_forwarded {
            true => self.fake.forward_text(person, body),
            false => self.fake.text(person, body),
        };
        let (body, sent_at) = (body.to_owned(), self.now());
        self.texts.lock().unwrap().push(BotText {
            person,
            chat: person,
            message_id,
            body,
            is_forwarded,
            sent_at,
        });
    }

    /// Creates the group, to which its first member adds the bot.
    pub(crate) fn open_room(&self, people: &[&str]) {
        let members: Vec<i64> = people.iter().map(|person| account(person)).collect();
        self.fake.set_privacy_mode(false);
        self.fake.create_group(ROOM, &members);
        self.fake.add_bot_to_group(ROOM, members[0]);
        // Only an admin of the group is shown reactions.
        self.fake.promote_bot(ROOM, members[0]);
    }

    /// Writes in the group, with or without a mention of the bot.
    pub(crate) fn write_in_room(&self, person: &str, body: &str, is_mention: bool) {
        let person = account(person);
        let written = if is_mention { format!("@home_bot {body}") } else { body.to_owned() };
        let message_id = self.fake.group_text(ROOM, person, &written);
        let text = BotText {
            person,
            chat: ROOM,
            message_id,
            body: body.to_owned(),
            is_forwarded: false,
            sent_at: self.now(),
        };
        self.texts.lock().unwrap().push(text);
    }

    /// Returns the person to whom a message is addressed: in the group, the author of the quoted text.
    pub(crate) fn addressee(&self, message: &FakeSentMessage) -> Option<i64> {
        if message.chat_id != ROOM {
            return Some(message.chat_id);
        }
        let texts = self.texts.lock().unwrap();
        texts
            .iter()
            .find(|text| text.chat == ROOM && Some(text.message_id) == message.reply_to)
            .map(|text| text.person)
    }

    /// Presses a button that a person sees, and returns whether there is one.
    pub(crate) fn press(&self, person: i64, message: &FakeSentMessage, label: &str) -> bool {
        let Some(data) = button_data(message, label) else { return false };
        let chat = message.chat_id;
        let mut presses = self.presses.lock().unwrap();
        let is_there = self.fake.press(person, chat, message.message_id, label);
        if is_there {
            let press = self.new_press(presses.len(), person, (chat, message.message_id), data);
            presses.push(press);
        }
        is_there
    }

    /// Sends the data of a button, which may be gone or belong to another person.
    pub(crate) fn press_data(&self, person: i64, message: (i64, i64), data: &str) {
        let mut presses = self.presses.lock().unwrap();
        self.fake.press_data(person, message.0, message.1, data);
        let press = self.new_press(presses.len(), person, message, data.to_owned());
        presses.push(press);
    }

    fn new_press(&self, count: usize, person: i64, (chat, message_id): (i64, i64), data: String) -> BotPress {
        let is_readable = (chat == person || chat == ROOM) && data.split('.').count() == 3;
        let external_id = format!("press.{}", FIRST_PRESS + count);
        BotPress { external_id, person, chat, message_id, data, sent_at: self.now(), is_readable }
    }

    /// Records an end of the program, which begins at `from`.
    pub(crate) fn note_run_end(&self, from: i64, is_power_cut: bool) {
        self.run_ends.lock().unwrap().push(RunEnd { from, to: self.now(), is_power_cut });
    }

    pub(crate) fn note_start(&self, database: &Path) {
        let offset = Records::mark(database, SOURCE).and_then(|mark| mark.parse().ok());
        self.starts.lock().unwrap().push(BotStart { at: self.now(), offset });
    }

    /// Makes Telegram work as usual.
    pub(crate) fn calm_down(&self) {
        self.fake.set_silent(false);
        self.fake.lose_answers(0);
        self.fake.limit_sends(0, 0);
        self.fake.claim_by_other_poller(0);
    }

    /// Returns Telegram as a server that records the messages it accepts, also those whose answer is lost.
    fn server(self: Arc<Self>) -> InProcess {
        let server = self.fake.in_process();
        Arc::new(move |request: Request<Bytes>| {
            let Some(number) = query_number(request.uri(), "request") else { return server(request) };
            let known = self.fake.sent_messages().len();
            let answer = server(request).now_or_never();
            let mut deliveries = self.deliveries.lock().unwrap();
            for message in self.fake.sent_messages().split_off(known) {
                deliveries.push(BotDelivery { request: number, message, at: self.now() });
            }
            match answer {
                Some(answer) => Box::pin(std::future::ready(answer)),
                None => Box::pin(std::future::pending()),
            }
        })
    }

    /// Adds to each request to send a message its number and its row in the outbox, which Telegram ignores.
    fn numbered(self: Arc<Self>, network: InProcess) -> InProcess {
        Arc::new(move |mut request: Request<Bytes>| {
            if is_sending(request.uri().path()) {
                let row = numbered_port::row_being_sent().unwrap_or(0);
                let request_number = self.requests.fetch_add(1, Ordering::SeqCst);
                let uri = format!("{}?row={row}&request={request_number}", request.uri());
                *request.uri_mut() = uri.parse().unwrap();
            }
            network(request)
        })
    }
}

pub(crate) fn is_sending(path: &str) -> bool {
    ["/sendMessage", "/sendPhoto", "/sendPoll"].into_iter().any(|method| path.ends_with(method))
}

/// Returns a number that [`HouseBot`] added to the query of a request.
pub(crate) fn query_number(uri: &Uri, name: &str) -> Option<usize> {
    let pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(key, _)| *key == name)?.1.parse().ok()
}

pub(crate) fn button_data(message: &FakeSentMessage, label: &str) -> Option<String> {
    let button = message.buttons.iter().flatten().find(|button| button.label == label);
    button.map(|button| button.data.clone())
}

impl World {
    /// Returns the ports of a world whose only carrier is the bot.
    pub(crate) fn bot_ports(&self, storm: u64) -> (ChannelPorts, Senders) {
        let bot = &self.carriers.bot;
        let network = self.network_faults("telegram", storm).before(bot.clone().server());
        let server = bot.clone().numbered(network);
        let port = Telegram::new(bot.fake.client_account(API_URL), HttpClient::in_process(server));
        let senders = Senders::from_addresses(vec![port.address()]);
        (ChannelPorts::local().with(Arc::new(NumberedPort(port))), senders)
    }
}
