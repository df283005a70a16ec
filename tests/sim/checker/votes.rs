//! I23: a closed vote has one result for each recipient and an open one none; each choice is the last one that its person
//! made while the vote was open; a person has one reaction to a message at most, which the person gave.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Evidence, Tally};
use crate::house_bot;
use crate::records::{Records, by_id, number, word};
use crate::vote_people::PollVote;
use crate::world::World;

pub(super) fn check(evidence: &mut Evidence<'_>, world: &World) {
    let answers = world.carriers.bot.votes.lock().unwrap().clone();
    let polls = polls(world);
    let records = evidence.records;
    for vote in &records.votes {
        results(evidence, vote);
        choices(evidence, vote, &polls, &answers);
    }
    reactions(evidence, world);
    let of_no_vote =
        records.ballots.iter().find(|ballot| by_id(&records.votes, number(ballot, "vote_id")).is_none());
    evidence.expect(of_no_vote.is_none(), || format!("I23 a choice in no vote: {of_no_vote:?}"));
}

fn results(evidence: &mut Evidence<'_>, vote: &Value) {
    let kind = if vote["room_id"].is_null() { "vote" } else { "poll" };
    let key = format!("{kind}:{}:result:", number(vote, "id"));
    let results =
        evidence.records.outbox.iter().filter(|row| word(row, "dedupe_key").starts_with(&key)).count();
    let is_open = vote["closed_at"].is_null();
    let is_fine = match (is_open, vote["room_id"].is_null()) {
        (true, _) => results == 0,
        (false, false) => results == 1,
        // The people who were asked may have been blocked or have opted out.
        (false, true) => true,
    };
    evidence.expect(is_fine, || format!("I23 {results} results of {vote}"));
}

fn reactions(evidence: &mut Evidence<'_>, world: &World) {
    let given = world.carriers.bot.reactions.lock().unwrap().clone();
    let records = evidence.records;
    let placed =
        records.reactions.iter().filter(|row| row["said_in"].is_null() && word(row, "author") == "user");
    let mut active = Vec::new();
    for row in placed {
        let user = by_id(&records.users, number(row, "user_id"));
        let person = user.map_or("", |user| word(user, "phone"));
        let is_given = given.iter().any(|(by, emoji)| {
            house_bot::person(*by) == person && ["", *emoji].contains(&word(row, "emoji"))
        });
        evidence.expect(is_given || person.is_empty(), || format!("I23 nobody reacted like this: {row}"));
        if row["removed_at"].is_null() {
            active.push((number(row, "user_id"), number(row, "outbox_id"), number(row, "event_id")));
        }
    }
    let all = active.len();
    active.sort_unstable();
    active.dedup();
    evidence.expect(active.len() == all, || "I23 a person has two reactions to a message".to_owned());
}

/// Returns the vote of each poll that Telegram accepted.
fn polls(world: &World) -> BTreeMap<String, usize> {
    let deliveries = world.carriers.bot.deliveries.lock().unwrap();
    let polls = deliveries
        .iter()
        .filter_map(|delivery| Some((delivery.message.poll.as_ref()?.id.clone(), delivery.request)));
    polls.collect()
}

fn choices(evidence: &mut Evidence<'_>, vote: &Value, polls: &BTreeMap<String, usize>, answers: &[PollVote]) {
    let records = evidence.records;
    if vote["room_id"].is_null() {
        return;
    }
    let rows: Vec<i64> = records
        .vote_messages
        .iter()
        .filter(|message| message["vote_id"] == vote["id"] && word(message, "part") == "ballot")
        .map(|message| number(message, "outbox_id"))
        .collect();
    let is_of_vote = |answer: &&PollVote| {
        polls
            .get(&answer.poll)
            .is_some_and(|request| evidence.bot.row_of(*request).is_some_and(|row| rows.contains(&row)))
    };
    let mut last: BTreeMap<i64, Vec<Option<usize>>> = BTreeMap::new();
    for answer in answers.iter().filter(is_of_vote) {
        last.entry(answer.person).or_default().push(answer.option);
    }
    let ballots = records.ballots.iter().filter(|ballot| ballot["vote_id"] == vote["id"]);
    let chosen: BTreeMap<i64, i64> = ballots
        .filter(|ballot| !ballot["choice"].is_null())
        .map(|ballot| (number(ballot, "user_id"), number(ballot, "choice")))
        .collect();
    for user in records.users.iter().filter(|user| word(user, "status") == "active" && !erased(records, user))
    {
        let stored = chosen.get(&number(user, "id")).map(|choice| *choice as usize - 1);
        let person = word(user, "phone");
        if person.is_empty() {
            continue;
        }
        let made = last.get(&house_bot::account(person)).cloned().unwrap_or_default();
        let is_fine = match vote["closed_at"].is_null() {
            true => made.last().copied().flatten() == stored,
            false => stored.is_none() || made.contains(&stored),
        };
        evidence.expect(is_fine, || format!("I23 {person} chose {made:?}, stored {stored:?}: {vote}"));
    }
}

/// Returns whether a person has erased everything, which includes the choices.
fn erased(records: &Records, user: &Value) -> bool {
    records.notes.iter().any(|note| word(note, "kind") == "forget_all" && note["user_id"] == user["id"])
}

/// Counts the events that only a schedule with votes has.
pub(super) fn count(evidence: &Evidence<'_>, world: &World, tally: &mut Tally) {
    let records = evidence.records;
    let votes =
        |in_room: bool| records.votes.iter().filter(|vote| vote["room_id"].is_null() != in_room).count();
    let closed = records.votes.iter().filter(|vote| !vote["closed_at"].is_null());
    tally.0.extend([
        ("votes of the group", votes(true)),
        ("votes of the household", votes(false)),
        ("closed votes", closed.count()),
        ("answers to polls", world.carriers.bot.votes.lock().unwrap().len()),
        ("choices", records.ballots.len()),
        ("reactions of people", records.reactions.iter().filter(|row| row["said_in"].is_null()).count()),
    ]);
}
