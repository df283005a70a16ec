//! People who write to the bot: they answer prompts in words and by buttons, edit and forward texts, and block the bot.

use std::sync::atomic::Ordering;
use std::time::Duration;

use dialarr::messaging::telegram::fake::FakeSentMessage;

use crate::bot_plan::{BotAct, BotChats, ForgedData};
use crate::checker::may_be_ignored;
use crate::house_agents;
use crate::house_bot::{ROOM, account, button_data, person};
use crate::house_tonight;
use crate::people::{self, ReadMessage};
use crate::plan::{Answers, DeliveryMode, FAY, PEOPLE};
use crate::records::{Records, word};
use crate::rng::Rng;
use crate::vote_people;
use crate::world::{World, pass};

/// Interval at which the users look at their phones.
const GLANCE: Duration = Duration::from_millis(500);

/// Lets everyone open their chat, without which the bot may not write to them.
pub(crate) fn open_chats(world: &World) {
    for user in PEOPLE.into_iter().chain([FAY]) {
        world.carriers.bot.write(user, "/start", false);
    }
    if world.has_room() {
        world.carriers.bot.open_room(&PEOPLE);
        if !world.has_orderly_room() {
            vote_people::start_votes(world);
            house_tonight::ask(world);
        }
    }
}

/// Sends a text to the bot. A text that goes astray is sent once its phone has a connection again; one that arrives by a
/// detour elsewhere is edited here.
pub(crate) fn text(world: &World, from: &str, body: &str, way: DeliveryMode) {
    world.journal.note(format!("{from} writes {body:?} to the bot ({way:?})"));
    let mut rng = Rng::of(world.plan.seed, &format!("way of {from} at {}", world.true_clock.now()));
    let (world, from, body) = (world.clone(), from.to_owned(), body.to_owned());
    world.clone().later(async move {
        pass(rng.ms(50, 900)).await;
        let offline = match way {
            DeliveryMode::Straight | DeliveryMode::Twice(_) | DeliveryMode::Fallback(_) => Duration::ZERO,
            DeliveryMode::Late(ms) => Duration::from_millis(ms),
            // At the end of a schedule, nobody is offline for long.
            DeliveryMode::Lost if world.calm.load(Ordering::SeqCst) => rng.ms(20_000, 60_000),
            DeliveryMode::Lost => rng.ms(20_000, 2_400_000),
        };
        pass(offline).await;
        match choose_chat(&world, &from) {
            Chat::Private => world.carriers.bot.write(&from, &body, false),
            Chat::Room { is_mention } => world.carriers.bot.write_in_room(&from, &body, is_mention),
        }
        match way {
            DeliveryMode::Twice(ms) => {
                pass(Duration::from_millis(ms)).await;
                world.carriers.bot.fake.repeat_updates(1);
            }
            DeliveryMode::Fallback(ms) => {
                pass(Duration::from_millis(ms)).await;
                edit_last_text(&world, &from, rng.one_of(&["yes", "no", "delete Heat"]));
            }
            DeliveryMode::Straight | DeliveryMode::Late(_) | DeliveryMode::Lost => {}
        }
    });
}

/// Chat in which a person writes.
enum Chat {
    Private,
    Room { is_mention: bool },
}

fn choose_chat(world: &World, from: &str) -> Chat {
    if !world.has_room() || !PEOPLE.contains(&from) {
        return Chat::Private;
    }
    if world.has_orderly_room() {
        return Chat::Room { is_mention: true };
    }
    let mut rng = Rng::of(world.plan.seed, &format!("chat of {from} at {}", world.true_clock.now()));
    match rng.percent(45) {
        true => Chat::Room { is_mention: rng.percent(85) },
        false => Chat::Private,
    }
}

fn edit_last_text(world: &World, from: &str, body: &str) {
    let from = account(from);
    let last = world.carriers.bot.texts.lock().unwrap().iter().rfind(|text| text.chat == from).cloned();
    let Some(last) = last else { return };
    world.journal.note(format!("{from} changes {:?} to {body:?}", last.body));
    world.carriers.bot.fake.edit_text(from, last.message_id, body);
}

/// Lets users react to each message of the bot.
pub(crate) fn react(world: &World) {
    let world = world.clone();
    tokio::spawn(async move {
        loop {
            pass(GLANCE).await;
            let bot = &world.carriers.bot;
            for sent in bot.fake.sent_messages().split_off(bot.read_messages.load(Ordering::SeqCst)) {
                bot.read_messages.fetch_add(1, Ordering::SeqCst);
                let id = format!("{}.{}", sent.chat_id, sent.message_id);
                world.journal.note(format!("the bot sends {:?}: {id}", sent.text));
                if world.has_room() && !world.has_orderly_room() {
                    let mut rng = Rng::of(world.plan.seed, &format!("votes after {id}"));
                    vote_people::answer(&world, &mut rng, &sent);
                    vote_people::react(&world, &mut rng, &sent);
                }
                let Some(reader) = world.carriers.bot.addressee(&sent) else { continue };
                let to = person(reader);
                let mut rng = Rng::of(world.plan.seed, &format!("message {id}"));
                if world.has_orderly_room() && button_data(&sent, "Yes").is_some() {
                    press_soon(&world, reader, &sent);
                    continue;
                }
                let presses = world.plan.answers == Answers::AsTheyLike && rng.percent(60);
                let message = ReadMessage { id, to, body: sent.text.clone() };
                if presses && button_data(&sent, "Yes").is_some() {
                    house_agents::text_back(&world, &message);
                    answer_by_button(&world, &mut rng, reader, &sent);
                    continue;
                }
                people::read(&world, &world.plan, &mut rng, &message);
            }
        }
    });
}

/// Lets a user press the button of a prompt, if it is still there.
fn press_soon(world: &World, reader: i64, prompt: &FakeSentMessage) {
    let (world, prompt) = (world.clone(), prompt.clone());
    world.clone().later(async move {
        pass(Duration::from_secs(2)).await;
        give(&world, reader, &prompt, Answer::Press("Yes"));
    });
}

/// Answer of a user to a prompt with buttons.
#[derive(Debug, Clone, Copy)]
enum Answer {
    Press(&'static str),
    /// Press of a button that may be gone by then.
    PressAgain(&'static str),
    Words(&'static str),
}

fn answer_by_button(world: &World, rng: &mut Rng, reader: i64, prompt: &FakeSentMessage) {
    use Answer::{Press, PressAgain, Words};
    let soon = rng.within(1_500, 30_000);
    if prompt.chat_id == ROOM && rng.percent(60) {
        // Somebody else in the group presses the button too.
        let other = account(rng.one_of(&PEOPLE));
        let (world, prompt, after) = (world.clone(), prompt.clone(), rng.within(500, 40_000));
        world.clone().later(async move {
            pass(Duration::from_millis(after)).await;
            give(&world, other, &prompt, PressAgain("Yes"));
        });
    }
    let answers = match rng.below(16) {
        0..5 => vec![(soon, Press("Yes"))],
        5 => vec![(soon, Press("Yes")), (soon + rng.within(0, 2_000), PressAgain("Yes"))],
        6 => vec![(soon, Press("Yes")), (rng.within(60_000, 400_000), PressAgain("Yes"))],
        7 => vec![(soon, Press("No"))],
        8 => vec![(soon, Press("Yes")), (soon + rng.within(0, 1_500), PressAgain("No"))],
        9 => vec![(soon, Press("No")), (soon + rng.within(0, 1_500), PressAgain("Yes"))],
        10 => vec![(rng.within(250_000, 400_000), PressAgain("Yes"))],
        11 => vec![(soon, Words("ok thanks")), (soon + rng.within(5_000, 20_000), PressAgain("Yes"))],
        12 => vec![(rng.within(0, 200), Press("Yes"))],
        13 => vec![(soon, Words("no")), (soon + 900, Words("add Tenet")), (soon + 1_800, Words("no thanks"))],
        14 => vec![(soon, Press("No")), (soon + 100, Words("add Tenet")), (soon + 1_100, Words("no thanks"))],
        _ => vec![(soon, Words("yes")), (soon + rng.within(0, 2_000), PressAgain("Yes"))],
    };
    for (after, answer) in answers {
        let (world, prompt) = (world.clone(), prompt.clone());
        world.clone().later(async move {
            pass(Duration::from_millis(after)).await;
            give(&world, reader, &prompt, answer);
        });
    }
}

fn give(world: &World, reader: i64, prompt: &FakeSentMessage, answer: Answer) {
    let (chat, bot) = (prompt.chat_id, &world.carriers.bot);
    world.journal.note(format!("{reader} answers {chat}.{} with {answer:?}", prompt.message_id));
    match answer {
        Answer::Press(label) => {
            // The buttons are gone if the prompt was answered.
            let _ = bot.press(reader, prompt, label);
        }
        Answer::PressAgain(label) => {
            let data = button_data(prompt, label).unwrap();
            bot.press_data(reader, (chat, prompt.message_id), &data);
        }
        Answer::Words(body) if chat == ROOM => bot.write_in_room(&person(reader), body, true),
        Answer::Words(body) => text(world, &person(reader), body, DeliveryMode::Straight),
    }
}

impl World {
    pub(crate) fn has_room(&self) -> bool {
        self.plan.bot.as_ref().is_some_and(|bot| bot.chats != BotChats::Private)
    }

    /// Returns whether people write only in the group, and do nothing unusual.
    fn has_orderly_room(&self) -> bool {
        self.plan.bot.as_ref().is_some_and(|bot| bot.chats == BotChats::OrderlyGroup)
    }

    pub(crate) fn disturb_bot(&self, act: BotAct) {
        self.journal.note(format!("at Telegram: {act:?}"));
        let (bot, fake) = (&self.carriers.bot, &self.carriers.bot.fake);
        match act {
            BotAct::Sleeps => fake.set_silent(true),
            BotAct::Wakes => fake.set_silent(false),
            BotAct::LosesAnswers(count) => fake.lose_answers(count),
            BotAct::LimitsSends(count, seconds) => fake.limit_sends(count, seconds),
            BotAct::RepeatsUpdates(count) => fake.repeat_updates(count),
            BotAct::IsPolledElsewhere(count) => fake.claim_by_other_poller(count),
            BotAct::SkipsUpdateIds(count) => fake.skip_update_ids(count),
            BotAct::Edits(user) => edit_last_text(self, user, "yes"),
            BotAct::ForwardsYes(user) => bot.write(user, "yes", true),
            BotAct::PressesOldButton(user) => self.press_old_button(account(user)),
            BotAct::ForgesPress(user, data) => self.forge_press(account(user), data),
            BotAct::Blocks(user) => fake.block_bot(account(user)),
            BotAct::Unblocks(user) => fake.unblock_bot(account(user)),
        }
    }

    fn press_old_button(&self, user: i64) {
        let sent = self.carriers.bot.fake.sent_messages();
        let first =
            sent.iter().find(|message| message.chat_id == user && button_data(message, "Yes").is_some());
        let Some(first) = first else { return };
        let data = button_data(first, "Yes").unwrap();
        self.carriers.bot.press_data(user, (user, first.message_id), &data);
    }

    fn forge_press(&self, user: i64, forged: ForgedData) {
        let sent = self.carriers.bot.fake.sent_messages();
        let newest = |is_of: &dyn Fn(i64) -> bool| {
            let mut prompts = sent.iter().filter(|message| button_data(message, "Yes").is_some());
            prompts.rfind(|message| is_of(message.chat_id))
        };
        let data_of = |message: &FakeSentMessage| button_data(message, "Yes").unwrap();
        let is_own: &dyn Fn(i64) -> bool = &|chat| chat == user;
        let is_of_another: &dyn Fn(i64) -> bool = &|chat| chat != user;
        let (message, data) = match forged {
            ForgedData::Unreadable => ((user, 1), "delete everything".to_owned()),
            ForgedData::OtherToken => match newest(is_own) {
                Some(own) => {
                    let row = data_of(own).split('.').next().unwrap().to_owned();
                    ((user, own.message_id), format!("{row}.0123456789abcdef0123456789abcdef.yes"))
                }
                None => ((user, 1), "1.0123456789abcdef0123456789abcdef.yes".to_owned()),
            },
            ForgedData::PromptOfAnother => match newest(is_of_another) {
                Some(other) => ((user, 1), data_of(other)),
                None => return,
            },
            ForgedData::ChatOfAnother => match newest(is_of_another) {
                Some(other) => ((other.chat_id, other.message_id), data_of(other)),
                None => return,
            },
        };
        self.carriers.bot.press_data(user, message, &data);
    }
}

/// Returns the texts and presses that the program does not have yet, and the messages that nobody has read.
pub(crate) fn unfinished(world: &World, records: &Records) -> Vec<String> {
    let is_missing = |id: &String| !records.events.iter().any(|event| word(event, "external_id") == id);
    let bot = &world.carriers.bot;
    let texts = bot.texts.lock().unwrap().clone();
    let texts = texts.into_iter().filter(|text| !may_be_ignored(records, text.chat, text.person));
    let texts = texts.map(|text| text.external_id());
    let presses = bot.presses.lock().unwrap().clone();
    let presses = presses.into_iter().filter(|press| press.is_readable);
    let presses = presses.filter(|press| !may_be_ignored(records, press.chat, press.person));
    let ids = texts.chain(presses.map(|press| press.external_id)).filter(is_missing);
    // A block is no text and no press.
    let unread = Some(bot.fake.unread_updates()).filter(|unread| *unread > 0 && world.plan.bot.is_some());
    let unread = unread.map(|unread| format!("{unread} updates of the bot not read"));
    // People may still react to these.
    let new = Some(bot.unread_messages()).filter(|new| *new > 0 && world.plan.bot.is_some());
    let new = new.map(|new| format!("{new} messages of the bot not read by people"));
    ids.map(|id| format!("{id} of the bot not admitted")).chain(unread).chain(new).collect()
}
