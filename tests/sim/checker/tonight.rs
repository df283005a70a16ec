//! I32: a vote about titles is decided by the majority, or else by who lost most recently, or else by the lower number;
//! its options are within the cap of everybody who reads about it.

use serde_json::Value;

use super::{Evidence, Tally};
use crate::house_tonight::{CAP, OVER_THE_CAP};
use crate::records::{Records, by_id, number, word};
use crate::world::World;

pub(super) fn check(evidence: &mut Evidence<'_>, world: &World) {
    let records = evidence.records;
    let is_erased = records.notes.iter().any(|note| word(note, "kind") == "forget_all");
    let has_clock_steps = world.timeline.lock().unwrap().steps() > 0;
    for vote in records.votes.iter().filter(|vote| is_about_titles(vote)) {
        if !vote["closed_at"].is_null() && !is_erased {
            let winner = vote["winner"].as_i64();
            let leaders = leaders(records, vote);
            let is_leader = winner.map_or(leaders.is_empty(), |winner| leaders.contains(&winner));
            evidence.expect(is_leader, || format!("I32 {leaders:?} lead, the winner differs: {vote}"));
            if !has_clock_steps {
                let expected = expected_winner(records, vote, &leaders);
                evidence.expect(winner == expected, || format!("I32 {expected:?} wins by the rules: {vote}"));
            }
        }
        check_cap(evidence, vote);
    }
}

/// Returns whether the options of a vote are titles that were found for its people.
fn is_about_titles(vote: &Value) -> bool {
    !vote["checked_kind"].is_null()
}

fn choices<'a>(records: &'a Records, vote: &Value) -> impl Iterator<Item = (i64, i64)> + 'a {
    let vote = vote["id"].clone();
    let ballots = records.ballots.iter().filter(move |ballot| ballot["vote_id"] == vote);
    ballots
        .filter(|ballot| !ballot["choice"].is_null())
        .map(|ballot| (number(ballot, "user_id"), number(ballot, "choice")))
}

fn leaders(records: &Records, vote: &Value) -> Vec<i64> {
    let count = |option: i64| choices(records, vote).filter(|(_, choice)| *choice == option).count();
    let counts: Vec<(i64, usize)> = (1..=10).map(|option| (option, count(option))).collect();
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or_default();
    counts.into_iter().filter(|(_, count)| most > 0 && *count == most).map(|(option, _)| option).collect()
}

/// Returns the winner by the rules. Votes that end while the program is down are closed in the same millisecond, in the
/// order of their ends.
fn expected_winner(records: &Records, vote: &Value, leaders: &[i64]) -> Option<i64> {
    let end = |vote: &Value| (number(vote, "closed_at"), number(vote, "closes_at"));
    let lost_at = |user: i64| {
        let earlier =
            records.votes.iter().filter(|earlier| !earlier["winner"].is_null() && end(earlier) < end(vote));
        let lost = earlier.filter(|earlier| {
            choices(records, earlier)
                .any(|(voter, choice)| voter == user && choice != number(earlier, "winner"))
        });
        lost.map(end).max()
    };
    let losers = choices(records, vote).filter(|(_, choice)| leaders.contains(choice));
    let last = losers.filter_map(|(user, choice)| Some((lost_at(user)?, -choice))).max();
    match last {
        Some((_, choice)) if leaders.len() > 1 => Some(-choice),
        Some(_) | None => leaders.first().copied(),
    }
}

fn check_cap(evidence: &mut Evidence<'_>, vote: &Value) {
    let records = evidence.records;
    let over = |text: &str| OVER_THE_CAP.iter().any(|title| text.contains(title));
    let is_capped = vote["checked_cap"].as_i64() == Some(i64::from(CAP));
    let is_within = !is_capped || !over(word(vote, "options"));
    evidence.expect(is_within, || format!("I32 an option is over the cap of the vote: {vote}"));
    let messages = records.vote_messages.iter().filter(|message| message["vote_id"] == vote["id"]);
    let texts = messages.filter_map(|message| by_id(&records.outbox, number(message, "outbox_id")));
    for text in texts.filter(|text| text["room_id"].is_null()) {
        let reader = by_id(&records.users, number(text, "user_id"));
        let has_cap = reader.is_some_and(|reader| !reader["movie_cap"].is_null());
        let is_within = !has_cap || !over(word(text, "body"));
        evidence.expect(is_within, || format!("I32 a person reads a title over the cap: {text}"));
    }
}

/// Counts the events that only a schedule with votes about titles has.
pub(super) fn count(records: &Records, tally: &mut Tally) {
    let about_titles = || records.votes.iter().filter(|vote| is_about_titles(vote));
    let ties = about_titles().filter(|vote| !vote["winner"].is_null() && leaders(records, vote).len() > 1);
    tally.0.extend([
        ("votes about titles", about_titles().count()),
        ("decided votes about titles", about_titles().filter(|vote| !vote["winner"].is_null()).count()),
        ("votes within a cap", about_titles().filter(|vote| !vote["checked_cap"].is_null()).count()),
        ("ties that were decided", ties.count()),
    ]);
}
