//! Part of a schedule whose only carrier is a bot at Telegram: its faults, and the unusual acts of the people in its chats.

use crate::plan::{Act, DeliveryMode, Plan};
use crate::rng::Rng;

/// Bot of a schedule.
#[derive(Debug, Clone)]
pub(crate) struct BotPlan {
    /// Percentage of requests to Telegram that fail.
    pub storm: u64,
    pub chats: BotChats,
}

/// Chats in which people write to the bot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BotChats {
    Private,
    /// Private chats and a group, in which people also vote and react.
    PrivateAndGroup,
    /// Only a group, in which people press the button of each prompt.
    OrderlyGroup,
}

/// Event at Telegram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BotAct {
    Sleeps,
    Wakes,
    /// Telegram accepts this number of messages without an answer.
    LosesAnswers(u32),
    /// Telegram refuses this number of messages for some seconds.
    LimitsSends(u32, u64),
    /// Telegram delivers the last confirmed updates again.
    RepeatsUpdates(usize),
    /// Another program asks for the updates of the bot.
    IsPolledElsewhere(u32),
    SkipsUpdateIds(i64),
    /// A person changes their last text to a yes.
    Edits(&'static str),
    /// A person forwards the yes of another person.
    ForwardsYes(&'static str),
    /// A person presses a button of their first message that had one.
    PressesOldButton(&'static str),
    /// A person sends the data of a button that nobody sees.
    ForgesPress(&'static str, ForgedData),
    Blocks(&'static str),
    Unblocks(&'static str),
}

/// Data of a forged press.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForgedData {
    Unreadable,
    /// The current prompt of the person, with another token.
    OtherToken,
    /// The newest prompt of another person.
    PromptOfAnother,
    /// The same, in the chat of that person.
    ChatOfAnother,
}

impl Plan {
    /// Adds the bot. This part uses a separate random stream.
    pub(crate) fn add_bot(&mut self, rng: &mut Rng, end: u64, people: &[&'static str]) {
        let storm = rng.one_of(&[0, 0, 10, 25, 45]);
        let chats = if self.seed % 24 == 14 { BotChats::Private } else { BotChats::PrivateAndGroup };
        self.bot = Some(BotPlan { storm, chats });
        let moments: Vec<u64> = self.acts.iter().map(|(at, _)| *at).collect();
        // Most events hit a conversation that a message has begun.
        let moment = |rng: &mut Rng| match rng.below(4) {
            0 => rng.within(500, end + 20_000),
            1 => rng.one_of(&moments) + rng.within(0, 3_000),
            _ => rng.one_of(&moments) + rng.within(0, 40_000),
        };
        let forged = [
            ForgedData::Unreadable,
            ForgedData::OtherToken,
            ForgedData::PromptOfAnother,
            ForgedData::ChatOfAnother,
        ];
        for (chance, times) in [(60, 1), (60, 3)] {
            if rng.percent(chance) {
                let person = rng.one_of(people);
                let at = moment(rng);
                let acts = [
                    BotAct::LosesAnswers(rng.one_of(&[1, 1, 2])),
                    BotAct::LimitsSends(rng.one_of(&[1, 1, 4]), rng.within(1, 40)),
                    BotAct::RepeatsUpdates(usize::try_from(rng.within(1, 5)).unwrap()),
                    BotAct::IsPolledElsewhere(rng.one_of(&[1, 3])),
                    BotAct::SkipsUpdateIds(5_000),
                    BotAct::Edits(person),
                    BotAct::ForwardsYes(person),
                    BotAct::PressesOldButton(person),
                    BotAct::ForgesPress(person, rng.one_of(&forged)),
                ];
                self.acts.extend(acts.map(|act| (moment(rng), Act::Bot(act))));
                self.acts.extend((1..times).map(|copy| (at + copy * 700, Act::Bot(acts[0]))));
            }
        }
        self.add_interruptions(rng, moment, people);
        self.add_hasty_answers(rng);
    }

    /// Adds answers that people write before they have read the prompt.
    fn add_hasty_answers(&mut self, rng: &mut Rng) {
        let asks = self.acts.iter().filter_map(|(at, act)| match act {
            Act::Text { from, body, .. } if body.starts_with("delete ") => Some((*at, *from)),
            _ => None,
        });
        for (at, from) in asks.collect::<Vec<_>>() {
            if rng.percent(25) {
                let (at, body) = (at + rng.within(800, 9_000), "yes".to_owned());
                self.acts.push((at, Act::Text { from, body, way: DeliveryMode::Straight }));
            }
        }
    }

    /// Adds times in which Telegram sleeps, or a person has blocked the bot.
    fn add_interruptions(
        &mut self,
        rng: &mut Rng,
        moment: impl Fn(&mut Rng) -> u64,
        people: &[&'static str],
    ) {
        let person = rng.one_of(people);
        let pairs = [
            (35, BotAct::Sleeps, BotAct::Wakes),
            (25, BotAct::Sleeps, BotAct::Wakes),
            (30, BotAct::Blocks(person), BotAct::Unblocks(person)),
        ];
        for (chance, begins, ends) in pairs {
            if rng.percent(chance) {
                let at = moment(rng);
                let lasts =
                    if rng.percent(70) { rng.within(1_000, 60_000) } else { rng.within(60_000, 1_800_000) };
                self.acts.extend([(at, Act::Bot(begins)), (at + lasts, Act::Bot(ends))]);
            }
        }
    }
}
