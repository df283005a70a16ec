//! Parser of commands about votes: "vote dune, heat, alien" starts one, "vote 2" chooses, "vote" shows the state, and "close
//! vote" closes it.

use super::{InvalidVote, VoteQuestion};
use crate::conversation::grammar::keyword_grammar::{self, TextCommand};

/// Command about a vote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VoteCommand {
    Start(Result<VoteQuestion, InvalidVote>),
    /// Choose the option with this number.
    Choose(u8),
    /// Choose the option with these words.
    ChooseByName(String),
    Show,
    Close,
}

/// Parses the reply to a message that asks about a vote: a command, or only the number of an option.
pub fn parse_vote_reply(text: &str) -> Option<VoteCommand> {
    match keyword_grammar::parse_command(text) {
        Some(TextCommand::Number(number)) => Some(VoteCommand::Choose(number)),
        Some(_) | None => parse_vote_command(text),
    }
}

/// Parses the whole of `text`, apart from courtesy, as a command about a vote.
pub fn parse_vote_command(text: &str) -> Option<VoteCommand> {
    let text = keyword_grammar::strip_courtesy(text);
    let lower = text.to_lowercase();
    match lower.as_str() {
        "vote" | "votes" | "poll" => return Some(VoteCommand::Show),
        "close vote" | "close the vote" | "close poll" | "close the poll" => return Some(VoteCommand::Close),
        _ => {}
    }
    let word = ["vote", "poll"].into_iter().find(|word| lower.starts_with(word))?;
    let rest = text.get(word.len()..)?;
    let content = rest.trim_start_matches([':', ' ', '\t', '\n']);
    // "Votes are in" is no command.
    if content.len() == rest.len() || content.is_empty() {
        return None;
    }
    Some(parse_content(content))
}

fn parse_content(content: &str) -> VoteCommand {
    if let Some(number) = parse_option_number(content) {
        return VoteCommand::Choose(number);
    }
    let (question, options) = match content.split_once('?') {
        Some((question, options)) if !options.trim().is_empty() => {
            (Some(format!("{}?", capitalize(question.trim()))), options)
        }
        Some(_) | None => (None, content),
    };
    let options = split_options(options);
    if options.len() < 2 && question.is_none() {
        let name = content.strip_prefix("for ").unwrap_or(content);
        return VoteCommand::ChooseByName(name.trim().to_owned());
    }
    VoteCommand::Start(VoteQuestion::new(question.as_deref(), &options))
}

/// Parses "2", "#2" or "for 2".
fn parse_option_number(content: &str) -> Option<u8> {
    let digits =
        content.strip_prefix("for ").unwrap_or(content).trim_start_matches('#').trim_end_matches([')', '.']);
    let is_number = (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { digits.parse().ok() } else { None }
}

/// Splits a list of options. Semicolons and lines separate titles that contain commas.
fn split_options(text: &str) -> Vec<&str> {
    let separators: &[char] = if text.contains([';', '\n']) { &[';', '\n'] } else { &[','] };
    let mut options: Vec<&str> =
        text.split(separators).map(str::trim).filter(|option| !option.is_empty()).collect();
    if let Some(last) = options.pop() {
        let last = last.strip_prefix("or ").unwrap_or(last);
        match last.rsplit_once(" or ") {
            Some((before, after)) => options.extend([before.trim(), after.trim()]),
            None => options.push(last),
        }
    }
    options
}

fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(text: &str) -> (String, Vec<String>) {
        match parse_vote_command(text) {
            Some(VoteCommand::Start(Ok(question))) => {
                (question.text().to_owned(), question.options().to_vec())
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn list_of_titles_starts_a_vote() {
        for text in [
            "vote dune, heat, alien",
            "Vote: dune, heat or alien",
            "poll dune; heat; alien",
            "vote dune, heat, or alien",
            "vote\ndune\nheat\nalien",
        ] {
            let (question, options) = started(text);
            assert_eq!(
                (question.as_str(), options.as_slice()),
                ("What should we watch?", ["dune", "heat", "alien"].map(str::to_owned).as_slice()),
                "{text}"
            );
        }
        assert_eq!(started("vote dune or heat").1, ["dune", "heat"]);
    }

    #[test]
    fn titles_with_commas_are_separated_by_semicolons() {
        assert_eq!(
            started("vote The Good, the Bad and the Ugly; Heat").1,
            ["The Good, the Bad and the Ugly", "Heat"]
        );
        assert_eq!(started("vote Mission: Impossible, Heat").1, ["Mission: Impossible", "Heat"]);
    }

    #[test]
    fn question_comes_before_the_options() {
        let (question, options) = started("vote which one tonight? dune, heat");
        assert_eq!(
            (question.as_str(), options.as_slice()),
            ("Which one tonight?", ["dune", "heat"].map(str::to_owned).as_slice())
        );
    }

    #[test]
    fn one_option_is_a_choice() {
        for (text, expected) in [
            ("vote 2", VoteCommand::Choose(2)),
            ("Vote #2", VoteCommand::Choose(2)),
            ("vote for 2", VoteCommand::Choose(2)),
            ("vote heat", VoteCommand::ChooseByName("heat".to_owned())),
            ("vote for Heat", VoteCommand::ChooseByName("Heat".to_owned())),
            ("vote", VoteCommand::Show),
            ("close vote", VoteCommand::Close),
        ] {
            assert_eq!(parse_vote_command(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_words_are_no_command() {
        for text in ["votes are in", "voters", "pollution", "add vote for me", "devote, heat", ""] {
            assert_eq!(parse_vote_command(text), None, "{text}");
        }
    }
}
