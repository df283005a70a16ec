//! Group chat of a scenario, with a simulated bot. Messages of people are handed over as the channel's port converts them,
//! and messages of the bot are only recorded.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use async_trait::async_trait;
use jiff::Timestamp;

use super::scenario_file::{MessageEntry, ScenarioFile};
use super::scenario_users;
use crate::app::AppBlueprint;
use crate::conversation::channel::Channel;
use crate::conversation::channel_list;
use crate::conversation::routing::button_press::{ButtonChoice, PressedButton};
use crate::conversation::routing::inbound_message::{MessageSource, ReceivedMessage};
use crate::conversation::routing::rooms::{RoomChange, RoomUpdate};
use crate::conversation::routing::senders::Senders;
use crate::conversation::routing::verification::FieldAuthority;
use crate::conversation::transcript::{Address, UserAddress, UserStatus};
use crate::messaging::{
    CarrierReceipt, ChannelPort, LookupError, OutboundMessage, PollAction, PollAnswer, SendError,
};
use crate::simulation::OUR_NUMBER;
use crate::store::database::db::Db;
use crate::store::people::{addresses, rooms, users};

const BOT: &str = "telegram:501";
/// Address of the group.
pub(super) const ROOM: &str = "telegram:-700";

/// Message that the bot has sent, with the id of its poll.
#[derive(Debug, Clone)]
struct BotMessage {
    message: OutboundMessage,
    poll: Option<String>,
}

/// Action of a person on the bot's channel.
pub(super) enum RoomAction {
    Message(Box<ReceivedMessage>),
    Answer(PollAnswer),
}

/// Group chat and the bot in it. Clones share the sent messages.
#[derive(Clone, Default)]
pub(super) struct ScenarioRoom {
    sent: Arc<Mutex<Vec<BotMessage>>>,
}

impl ScenarioRoom {
    /// Adds the bot to the channels of the program.
    pub(super) fn apply(&self, blueprint: &mut AppBlueprint) {
        blueprint.channels = blueprint.channels.clone().with(Arc::new(self.clone()));
        let senders = vec![Address::new(OUR_NUMBER), Address::new(BOT)];
        blueprint.settings.senders = Senders::from_addresses(senders);
    }

    /// Reads the action of a message entry.
    pub(super) fn read_action(
        &self,
        file: &ScenarioFile,
        entry: &MessageEntry,
        (number, at): (usize, Timestamp),
    ) -> anyhow::Result<RoomAction> {
        let account = account_of(file, &entry.from)?;
        let chat = if entry.room { ROOM.to_owned() } else { account.to_text() };
        let room = |is_addressed| -> anyhow::Result<Option<RoomUpdate>> {
            let change = RoomChange::Message { is_addressed };
            let update = RoomUpdate { address: parse_address(ROOM)?, title: "Family".to_owned(), change };
            Ok(entry.room.then_some(update))
        };
        let empty = empty_message(account.clone(), format!("{number}.{chat}"), at);
        let Some(label) = &entry.press else {
            let room = room(entry.addressed)?;
            return Ok(RoomAction::Message(Box::new(ReceivedMessage {
                body: entry.text.clone(),
                room,
                ..empty
            })));
        };
        let choice = ButtonChoice::parse(&label.to_lowercase());
        let choice = choice.with_context(|| format!("press {label:?}: not a button"))?;
        let found =
            self.lock_sent().iter().rev().find(|sent| sent.is_to(&chat) && sent.offers(choice)).cloned();
        let pressed = found.with_context(|| format!("press {label:?}: no message has such a button"))?;
        if let (Some(poll), ButtonChoice::Number(number)) = (pressed.poll, choice) {
            return Ok(RoomAction::Answer(PollAnswer {
                poll,
                voter: account,
                choice: Some(number),
                number: at.as_millisecond(),
            }));
        }
        let (message, token) = (pressed.message.id, pressed.message.callback_token.as_str().to_owned());
        let pressed = Some(PressedButton { message, token });
        let message = ReceivedMessage { body: choice.to_text(), pressed, room: room(true)?, ..empty };
        Ok(RoomAction::Message(Box::new(message)))
    }

    /// Returns the messages that the bot has sent since the first `count`.
    pub(super) fn sent_after(&self, count: usize) -> Vec<OutboundMessage> {
        self.lock_sent().iter().skip(count).map(|sent| sent.message.clone()).collect()
    }

    fn lock_sent(&self) -> MutexGuard<'_, Vec<BotMessage>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BotMessage {
    fn is_to(&self, address: &str) -> bool {
        self.message.to.as_str() == address
    }

    fn offers(&self, choice: ButtonChoice) -> bool {
        self.message.buttons.contains(&choice)
            || (self.poll.is_some() && matches!(choice, ButtonChoice::Number(_)))
    }
}

#[async_trait]
impl ChannelPort for ScenarioRoom {
    fn channel(&self) -> Channel {
        channel_list::TELEGRAM
    }

    async fn send(&self, message: &OutboundMessage) -> Result<CarrierReceipt, SendError> {
        let mut sent = self.lock_sent();
        let number = sent.len() + 1;
        let poll = match &message.poll {
            Some(PollAction::Ask(_)) => Some(format!("poll-{number}")),
            Some(PollAction::End(_)) | None => None,
        };
        sent.push(BotMessage { message: message.clone(), poll: poll.clone() });
        Ok(CarrierReceipt { sid: format!("{number}.bot"), created_at: None, poll })
    }

    async fn find_accepted(
        &self,
        _message: &OutboundMessage,
        _since: Timestamp,
    ) -> Result<Vec<CarrierReceipt>, LookupError> {
        Ok(Vec::new())
    }
}

/// Opens the group, and gives its members accounts at the bot.
pub(super) async fn open_room(
    db: &Db,
    file: &ScenarioFile,
    members: &[String],
    now: Timestamp,
) -> anyhow::Result<()> {
    let address = parse_address(ROOM)?;
    let open = move |conn: &mut _| {
        let (room, _) = rooms::create_room(conn, &address, "Family", now)?;
        users::set_status(conn, room.id, UserStatus::Active, now)
    };
    db.write(open).await?;
    for member in members {
        let phone = scenario_users::user_phone(file, member)?;
        let account = account_of(file, member)?;
        let join = move |conn: &mut _| match users::find_user_by_phone(conn, &phone)? {
            Some(user) => addresses::insert_address(conn, user.id, &account, now).map(drop),
            None => Ok(()),
        };
        db.write(join).await?;
    }
    Ok(())
}

/// Returns the messages with which the members start their private chats.
pub(super) fn first_messages(
    file: &ScenarioFile,
    members: &[String],
    now: Timestamp,
) -> anyhow::Result<Vec<ReceivedMessage>> {
    let first = |member: &String| {
        let id = format!("start.{member}");
        Ok(ReceivedMessage { body: "start".to_owned(), ..empty_message(account_of(file, member)?, id, now) })
    };
    members.iter().map(first).collect()
}

/// Returns the account of a user at the bot, which has the digits of the phone number.
pub(super) fn account_of(file: &ScenarioFile, name: &str) -> anyhow::Result<UserAddress> {
    let phone = scenario_users::user_phone(file, name)?;
    parse_address(&format!("{}{}", channel_list::TELEGRAM_PREFIX, phone.as_str().trim_start_matches('+')))
}

fn parse_address(text: &str) -> anyhow::Result<UserAddress> {
    UserAddress::parse(text).with_context(|| format!("parse the address {text:?}"))
}

fn empty_message(from: UserAddress, external_id: String, at: Timestamp) -> ReceivedMessage {
    ReceivedMessage {
        channel: channel_list::TELEGRAM,
        external_id,
        from,
        to: Address::new(BOT),
        body: String::new(),
        media: Vec::new(),
        via: MessageSource::Poll,
        authority: FieldAuthority::Certain,
        carrier_word: None,
        pressed: None,
        room: None,
        provider_at: at,
        received_at: at,
    }
}
