//! People in a group who start votes, answer polls, change their choices and close votes, and people who react to
//! messages.

use std::time::Duration;

use dialarr::messaging::telegram::fake::FakeSentMessage;

use crate::house_bot::{ROOM, account, button_data, person};
use crate::plan::PEOPLE;
use crate::rng::Rng;
use crate::world::{World, pass};

/// Largest number of the options of a vote.
const OPTIONS: u64 = 3;

/// Answer to a poll in the group.
#[derive(Debug, Clone)]
pub(crate) struct PollVote {
    pub poll: String,
    pub person: i64,
    /// Position of the chosen option; `None` if the person withdrew the choice.
    pub option: Option<usize>,
}

/// Lets people start votes in the group and in private chats.
pub(crate) fn start_votes(world: &World) {
    let mut rng = Rng::of(world.plan.seed, "votes");
    for _ in 0..rng.below(4) {
        let (starter, closer) = (rng.one_of(&PEOPLE), rng.one_of(&PEOPLE));
        let (at, open_for) = (rng.ms(20_000, 400_000), rng.ms(5_000, 200_000));
        let (is_in_room, is_closed) = (rng.percent(75), rng.percent(60));
        let world = world.clone();
        world.clone().later(async move {
            pass(at).await;
            write(&world, starter, is_in_room, "vote Dune, Heat, Alien");
            if is_closed {
                pass(open_for).await;
                write(&world, closer, is_in_room, "close vote");
            }
        });
    }
}

pub(crate) fn write(world: &World, from: &str, is_in_room: bool, body: &str) {
    world.journal.note(format!("{from} writes {body:?}, in the group: {is_in_room}"));
    match is_in_room {
        true => world.carriers.bot.write_in_room(from, body, true),
        false => world.carriers.bot.write(from, body, false),
    }
}

/// Lets people answer a message that asks about a vote.
pub(crate) fn answer(world: &World, rng: &mut Rng, sent: &FakeSentMessage) {
    if let Some(poll) = sent.poll.as_ref().filter(|_| sent.chat_id == ROOM) {
        for voter in PEOPLE {
            let mut at = 0;
            for _ in 0..rng.below(4) {
                at += rng.one_of(&[0, 20, 400, 3_000, 30_000, 120_000]) + rng.below(200);
                // A poll may have fewer options.
                let option = usize::try_from(rng.below(OPTIONS)).unwrap() % poll.options.len();
                let option = if rng.percent(85) { Some(option) } else { None };
                let vote = PollVote { poll: poll.id.clone(), person: account(voter), option };
                answer_later(world, Duration::from_millis(at), sent.message_id, vote);
            }
        }
    } else if sent.text.contains("Reply VOTE") && sent.chat_id != ROOM && rng.percent(70) {
        let number = (rng.below(OPTIONS) + 1).to_string();
        let (world, sent, is_press, after) =
            (world.clone(), sent.clone(), rng.percent(50), rng.ms(0, 60_000));
        world.clone().later(async move {
            pass(after).await;
            match button_data(&sent, &number).filter(|_| is_press) {
                Some(data) => {
                    world.carriers.bot.press_data(sent.chat_id, (sent.chat_id, sent.message_id), &data);
                }
                None => world.carriers.bot.write(&person(sent.chat_id), &format!("vote {number}"), false),
            }
        });
    }
}

/// Lets a person react to a message of the bot, and change or remove the reaction.
pub(crate) fn react(world: &World, rng: &mut Rng, sent: &FakeSentMessage) {
    let person = if sent.chat_id == ROOM { account(rng.one_of(&PEOPLE)) } else { sent.chat_id };
    let mut at = 0;
    for _ in 0..rng.below(3) {
        at += rng.one_of(&[0, 40, 900, 20_000]) + rng.below(300);
        let emoji = rng.one_of(&["\u{1f44d}", "\u{1f44e}", ""]);
        let (world, chat, message) = (world.clone(), sent.chat_id, sent.message_id);
        world.clone().later(async move {
            pass(Duration::from_millis(at)).await;
            world.journal.note(format!("{person} reacts to {chat}.{message} with {emoji:?}"));
            world.carriers.bot.reactions.lock().unwrap().push((person, emoji));
            world.carriers.bot.fake.react(person, chat, message, emoji);
        });
    }
}

fn answer_later(world: &World, after: Duration, message: i64, vote: PollVote) {
    let world = world.clone();
    world.clone().later(async move {
        pass(after).await;
        let bot = &world.carriers.bot;
        let chosen: Vec<usize> = vote.option.into_iter().collect();
        let mut votes = bot.votes.lock().unwrap();
        if bot.fake.vote(vote.person, ROOM, message, &chosen) {
            world.journal.note(format!("{} chooses {:?} in poll {}", vote.person, vote.option, vote.poll));
            votes.push(vote);
        }
    });
}
