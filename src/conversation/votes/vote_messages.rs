//! Texts about votes.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::vote_decision::VoteDecision;
use super::{InvalidVote, MAX_VOTES_PER_DAY, Tally, VoteQuestion};

pub const NO_OPEN_VOTE: &str =
    "Nobody is voting right now. Text VOTE and some titles to start, like VOTE Dune, Heat.";
pub const NO_SUCH_OPTION: &str = "That is not one of the options.";
pub const ALREADY_OPEN: &str = "There is a vote already. Text VOTE to see it, or CLOSE VOTE to close it.";
pub const NOT_YOURS: &str = "Only the person who started the vote or an admin can close it.";
/// Answer to a person who is not asked in the open vote of the household.
pub const OTHERS_VOTE: &str = "Other people are voting right now. Try again when they are done.";
/// Result of a vote whose options may no longer be shown to its readers.
pub const VOTE_IS_OVER: &str = "The vote is over.";
pub const NOBODY_ELSE: &str = "There is nobody else to ask right now.";

/// Formats the question with its numbered options.
pub fn format_question(question: &VoteQuestion) -> String {
    let options = question.options_with_reasons();
    let lines = (1..).zip(options).map(|(number, option): (usize, _)| format!("\n{number}. {option}"));
    format!("{}{}", question.text(), lines.collect::<String>())
}

/// Formats the message that asks a person in a private chat. `asker` is the name of the person who started the vote.
pub fn format_ballot(question: &VoteQuestion, asker: &str, closes_at: Timestamp, zone: &TimeZone) -> String {
    format!("{asker} asks: {}\n{}", format_question(question), format_hint(closes_at, zone))
}

/// Formats the reply to the person who started a vote in a private chat.
pub fn format_started(
    question: &VoteQuestion,
    asked: &[String],
    closes_at: Timestamp,
    zone: &TimeZone,
) -> String {
    let asked = format_people(asked);
    format!("I asked {asked}. {}\n{}", format_question(question), format_hint(closes_at, zone))
}

/// Formats the people who were asked: up to two names, or their number.
pub(super) fn format_people(names: &[String]) -> String {
    match names {
        [one] => one.clone(),
        [first, second] => format!("{first} and {second}"),
        others => format!("{} people", others.len()),
    }
}

/// Formats the reply to a choice.
pub fn format_choice(option: &str, closes_at: Timestamp, zone: &TimeZone) -> String {
    format!("OK, your vote is {option}. You can change it until {}.", format_time(closes_at, zone))
}

/// Formats the state of an open vote. `own` is the number that the reader chose.
pub fn format_state(
    question: &VoteQuestion,
    tally: &Tally,
    own: Option<u8>,
    closes_at: Timestamp,
    zone: &TimeZone,
) -> String {
    let lines = (1..).zip(question.options()).map(|(number, option)| {
        let mark = if own == Some(number) { ", your vote" } else { "" };
        format!("\n{number}. {option} ({}{mark})", format_votes(tally.votes_for(number)))
    });
    format!("{}{}\n{}", question.text(), lines.collect::<String>(), format_hint(closes_at, zone))
}

/// Formats the result. `tie_breaker` is the name of the person whose choice decided a tie.
pub fn format_result(question: &VoteQuestion, decision: &VoteDecision, tie_breaker: Option<&str>) -> String {
    let tally = &decision.tally;
    let leaders: Vec<&str> =
        tally.leaders().into_iter().filter_map(|number| question.option(number)).collect();
    let most = tally.leaders().first().map_or(0, |number| tally.votes_for(*number));
    let winner = decision.winner.and_then(|number| question.option(number));
    let outcome = match (leaders.as_slice(), winner) {
        ([], _) => return format!("{} Nobody voted.", question.text()),
        ([winner], _) => format!("{winner} wins with {most} of {}.", format_votes(tally.total())),
        (several, winner) => {
            let tie =
                format!("It is a tie between {} with {} each.", join_with_and(several), format_votes(most));
            match (winner, tie_breaker) {
                (None, _) => tie,
                (Some(winner), Some(name)) => {
                    format!("{tie} {winner} wins, because the choice of {name} lost most recently.")
                }
                (Some(winner), None) => format!("{tie} {winner} wins, because it is first in the list."),
            }
        }
    };
    let others: Vec<String> = (1..)
        .zip(question.options())
        .filter(|(number, _)| (1..most).contains(&tally.votes_for(*number)))
        .map(|(number, option)| format!("{option} {}", tally.votes_for(number)))
        .collect();
    let others = if others.is_empty() { String::new() } else { format!(" Others: {}.", others.join(", ")) };
    format!("{} {outcome}{others}", question.text())
}

/// Formats the reason why a vote cannot be started.
pub fn format_invalid(invalid: InvalidVote) -> &'static str {
    match invalid {
        InvalidVote::TooFew => "A vote needs at least two titles, like VOTE Dune, Heat.",
        InvalidVote::TooMany => "A vote can have ten titles at most.",
        InvalidVote::TooLong => "Those titles are too long for a vote.",
        InvalidVote::Repeated => "Two of those titles are the same.",
        InvalidVote::AnswersPrompts => {
            "I can't hold a vote about yes, no or a command. Name titles, like VOTE Dune, Heat."
        }
    }
}

/// Formats the reply to a person who has started too many votes.
pub fn format_too_many() -> String {
    format!("You started {MAX_VOTES_PER_DAY} votes today. Try again tomorrow.")
}

pub(super) fn format_hint(closes_at: Timestamp, zone: &TimeZone) -> String {
    format!("Reply VOTE and a number until {}.", format_time(closes_at, zone))
}

pub(super) fn format_time(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%-I:%M %P").to_string()
}

fn format_votes(count: usize) -> String {
    if count == 1 { "1 vote".to_owned() } else { format!("{count} votes") }
}

pub(super) fn join_with_and(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::grammar::confirmation_reply::{
        ConfirmationReply, ReplyLanguage, parse_confirmation_reply,
    };
    use crate::conversation::text::normalization::contains_phrase;
    use crate::conversation::votes::vote_decision::CountedBallot;

    fn question() -> VoteQuestion {
        VoteQuestion::new(None, &["Dune", "Heat", "Alien"]).unwrap()
    }

    /// Returns the decision of a vote about free text, in which nothing decides a tie.
    fn decision(choices: &[u8]) -> VoteDecision {
        let ballots: Vec<CountedBallot> =
            choices.iter().map(|choice| CountedBallot { voter: None, choice: *choice }).collect();
        VoteDecision::from_ballots(&question(), &ballots, &[])
    }

    #[test]
    fn result_names_the_winner_or_a_tie() {
        let result = |choices: &[u8]| format_result(&question(), &decision(choices), None);
        assert_eq!(result(&[2, 1, 2]), "What should we watch? Heat wins with 2 of 3 votes. Others: Dune 1.");
        assert_eq!(result(&[3]), "What should we watch? Alien wins with 1 of 1 vote.");
        assert_eq!(
            result(&[1, 2]),
            "What should we watch? It is a tie between Dune and Heat with 1 vote each."
        );
        assert_eq!(result(&[]), "What should we watch? Nobody voted.");
    }

    #[test]
    fn result_of_a_decided_tie_says_what_decided_it() {
        let decided = VoteDecision { winner: Some(2), ..decision(&[1, 2]) };
        assert_eq!(
            format_result(&question(), &decided, Some("Dana")),
            "What should we watch? It is a tie between Dune and Heat with 1 vote each. Heat wins, because the choice \
             of Dana lost most recently."
        );
        assert_eq!(
            format_result(&question(), &VoteDecision { winner: Some(1), ..decided }, None),
            "What should we watch? It is a tie between Dune and Heat with 1 vote each. Dune wins, because it is first \
             in the list."
        );
    }

    #[test]
    fn person_is_asked_with_numbers_and_a_time() {
        let (closes_at, zone) = (Timestamp::from_second(79_200 - 1200).unwrap(), TimeZone::UTC);
        let asked =
            "What should we watch?\n1. Dune\n2. Heat\n3. Alien\nReply VOTE and a number until 9:40 pm.";
        assert_eq!(format_ballot(&question(), "Sam", closes_at, &zone), format!("Sam asks: {asked}"));
        let names = ["Dana".to_owned(), "Kim".to_owned()];
        assert_eq!(
            format_started(&question(), &names, closes_at, &zone),
            format!("I asked Dana and Kim. {asked}")
        );
        let tally = Tally::count(&question(), [2]);
        let state = format_state(&question(), &tally, Some(2), closes_at, &zone);
        assert!(state.contains("\n1. Dune (0 votes)\n2. Heat (1 vote, your vote)\n"), "{state}");
    }

    /// A word that a text asks for must not answer a prompt.
    #[test]
    fn no_text_about_a_vote_invites_a_yes_or_a_no() {
        let (closes_at, zone) = (Timestamp::UNIX_EPOCH, TimeZone::UTC);
        let texts = [
            format_ballot(&question(), "Sam", closes_at, &zone),
            format_started(&question(), &["Dana".to_owned()], closes_at, &zone),
            format_state(&question(), &Tally::count(&question(), [2]), None, closes_at, &zone),
            format_result(&question(), &decision(&[2]), None),
            OTHERS_VOTE.to_owned(),
            VOTE_IS_OVER.to_owned(),
            NO_OPEN_VOTE.to_owned(),
            ALREADY_OPEN.to_owned(),
            NOT_YOURS.to_owned(),
            format_too_many(),
        ];
        for text in texts {
            assert!(text.is_ascii(), "{text}");
            for word in ["yes", "no", "okay", "cancel", "stop", "end", "quit"] {
                assert!(!contains_phrase(&text, word), "{text}");
            }
        }
        for reply in ["vote 2", "close vote", "vote", "vote dune, heat"] {
            let parsed = parse_confirmation_reply(reply, None, &ReplyLanguage::ALL);
            assert_eq!(parsed, ConfirmationReply::Unrelated, "{reply}");
        }
    }
}
