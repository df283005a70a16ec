//! Votes: a question with options, on which the people in a room or the whole household choose. A vote changes nothing in
//! the library.

pub mod tonight;
pub mod tonight_messages;
pub mod vote_command;
pub mod vote_decision;
pub mod vote_messages;

use jiff::SignedDuration;

use crate::conversation::grammar::confirmation_reply::{
    ConfirmationReply, ReplyLanguage, parse_confirmation_reply,
};
use crate::conversation::grammar::keyword_grammar;
use crate::conversation::rating_caps::{MinimumAge, RatingCaps};
use crate::conversation::text::normalization::{contains_phrase, normalize_title};
use crate::conversation::text::title::clean_line;
use crate::conversation::transcript::{MediaKind, VoteId};

/// Period after which a vote closes.
pub const VOTE_PERIOD: SignedDuration = SignedDuration::from_hours(2);
/// Maximum number of votes that one person may start within a day.
pub const MAX_VOTES_PER_DAY: i64 = 5;
/// Question of a vote that names only its options.
const DEFAULT_QUESTION: &str = "What should we watch?";

const MIN_OPTIONS: usize = 2;
const MAX_OPTIONS: usize = 10;
const MAX_OPTION_CHARS: usize = 60;
const MAX_QUESTION_CHARS: usize = 120;

/// Role of an outbound message in a vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoteMessage {
    /// The message asks the question.
    Asks(VoteId),
    /// The message asks the person who started the open vote of the household.
    AsksStarter,
    /// The message announces the result.
    Announces(VoteId),
}

/// Question with two to ten different options, none of which is a yes, a no or a command to us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoteQuestion {
    text: String,
    options: Vec<String>,
    /// Short reasons for the options; empty if the options are free text.
    reasons: Vec<String>,
    /// Limit within which the options were checked; `None` if they are free text.
    checked: Option<CheckedLimit>,
}

/// Age limit within which each option of a vote was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedLimit {
    /// Kind of all options.
    pub kind: MediaKind,
    /// Lowest cap of the people for whom they were checked; `None` if none of them has one.
    pub cap: Option<MinimumAge>,
}

impl CheckedLimit {
    /// Returns whether the options may be shown to a person with these caps.
    pub fn allows(self, caps: RatingCaps) -> bool {
        caps.allows(self.kind, self.cap)
    }
}

/// Reason why a vote cannot be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidVote {
    #[error("fewer than two options")]
    TooFew,
    #[error("more than ten options")]
    TooMany,
    #[error("an option or the question is too long")]
    TooLong,
    #[error("two options are the same")]
    Repeated,
    /// A person who answers with the option could confirm something else.
    #[error("an option or the question has words that answer a prompt")]
    AnswersPrompts,
}

impl VoteQuestion {
    /// Checks the words of a question and its options. Without a question, people are asked what to watch.
    pub fn new(question: Option<&str>, options: &[&str]) -> Result<Self, InvalidVote> {
        let text = match question.map(str::trim).filter(|question| !question.is_empty()) {
            Some(question) => clean_line(question, MAX_QUESTION_CHARS + 1).unwrap_or_default(),
            None => DEFAULT_QUESTION.to_owned(),
        };
        // Cleaning quotes words that could be taken for a command.
        let has_answer = options.iter().any(|option| answers_prompts(option)) || invites_to_confirm(&text);
        let options: Vec<String> =
            options.iter().filter_map(|option| clean_line(option, MAX_OPTION_CHARS + 1)).collect();
        let is_long = |option: &String| option.chars().count() > MAX_OPTION_CHARS;
        let keys: Vec<String> = options.iter().map(|option| normalize_title(option)).collect();
        let repeats = |index: usize| keys[..index].contains(&keys[index]);
        if options.len() < MIN_OPTIONS {
            Err(InvalidVote::TooFew)
        } else if options.len() > MAX_OPTIONS {
            Err(InvalidVote::TooMany)
        } else if options.iter().any(is_long) || text.chars().count() > MAX_QUESTION_CHARS {
            Err(InvalidVote::TooLong)
        } else if (0..options.len()).any(repeats) {
            Err(InvalidVote::Repeated)
        } else if has_answer {
            Err(InvalidVote::AnswersPrompts)
        } else {
            Ok(Self { text, options, reasons: Vec::new(), checked: None })
        }
    }

    /// Returns the question with the reasons for its options, which were checked within a limit.
    #[must_use]
    pub fn with_checked_options(self, reasons: Vec<String>, limit: CheckedLimit) -> Self {
        Self { reasons, checked: Some(limit), ..self }
    }

    /// Restores a stored question, which was checked when it was stored.
    pub fn from_stored(text: String, options: Vec<String>) -> Self {
        Self { text, options, reasons: Vec::new(), checked: None }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn options(&self) -> &[String] {
        &self.options
    }

    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }

    pub fn checked(&self) -> Option<CheckedLimit> {
        self.checked
    }

    /// Returns the options, each with its reason.
    pub fn options_with_reasons(&self) -> Vec<String> {
        let reasons = self.reasons.iter().map(String::as_str).chain(std::iter::repeat(""));
        let join = |(option, reason): (&String, &str)| match reason {
            "" => option.clone(),
            reason => format!("{option}, {reason}"),
        };
        self.options.iter().zip(reasons).map(join).collect()
    }

    /// Returns the option with a number, which counts from 1.
    pub fn option(&self, number: u8) -> Option<&str> {
        let index = usize::from(number).checked_sub(1)?;
        self.options.get(index).map(String::as_str)
    }

    /// Returns the number of the only option that has these words.
    pub fn find_option(&self, words: &str) -> Option<u8> {
        let words = normalize_title(words);
        let exact = self.options.iter().position(|option| normalize_title(option) == words);
        let mut similar = (0..self.options.len())
            .filter(|index| !words.is_empty() && contains_phrase(&self.options[*index], &words));
        let index = exact.or_else(|| similar.next().filter(|_| similar.next().is_none()))?;
        u8::try_from(index + 1).ok()
    }
}

/// Number of votes for each option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally(Vec<usize>);

impl Tally {
    /// Counts the choices, which are numbers of options. A number without an option does not count.
    pub fn count(question: &VoteQuestion, choices: impl IntoIterator<Item = u8>) -> Self {
        let mut counts = vec![0; question.options.len()];
        for choice in choices {
            let index = usize::from(choice).checked_sub(1);
            if let Some(count) = index.and_then(|index| counts.get_mut(index)) {
                *count += 1;
            }
        }
        Self(counts)
    }

    /// Returns the number of votes for an option.
    pub fn votes_for(&self, number: u8) -> usize {
        usize::from(number).checked_sub(1).and_then(|index| self.0.get(index)).copied().unwrap_or(0)
    }

    pub fn total(&self) -> usize {
        self.0.iter().sum()
    }

    /// Returns the numbers of the options with the most votes; none if nobody voted.
    pub fn leaders(&self) -> Vec<u8> {
        let most = self.0.iter().copied().max().unwrap_or(0);
        let numbers = (1_u8..).zip(&self.0);
        numbers.filter(|(_, count)| most > 0 && **count == most).map(|(number, _)| number).collect()
    }
}

/// Returns whether a message with only these words could answer a prompt or be a command about messages.
fn answers_prompts(words: &str) -> bool {
    parse_confirmation_reply(words, None, &ReplyLanguage::ALL) != ConfirmationReply::Unrelated
        || keyword_grammar::parse_opt_keyword(words).is_some()
}

fn invites_to_confirm(question: &str) -> bool {
    ["yes", "ok", "okay", "approve", "confirm"].into_iter().any(|word| contains_phrase(question, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(options: &[&str]) -> VoteQuestion {
        VoteQuestion::new(None, options).unwrap()
    }

    #[test]
    fn option_that_could_answer_a_prompt_is_refused() {
        for word in ["yes", "No", "OK", "ja", "stop", "cancel", "help", "delete it"] {
            assert_eq!(VoteQuestion::new(None, &["Dune", word]), Err(InvalidVote::AnswersPrompts), "{word}");
        }
        let invites = VoteQuestion::new(Some("Reply YES?"), &["Dune", "Heat"]);
        assert_eq!(invites, Err(InvalidVote::AnswersPrompts));
    }

    #[test]
    fn vote_has_two_to_ten_short_and_different_options() {
        let numbers: Vec<String> = (1..=11).map(|number| format!("Part {number}")).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let long = "x".repeat(61);
        for (options, expected) in [
            (vec!["Dune"], InvalidVote::TooFew),
            (vec!["Dune", "  "], InvalidVote::TooFew),
            (numbers, InvalidVote::TooMany),
            (vec!["Dune", long.as_str()], InvalidVote::TooLong),
            (vec!["Dune", "Heat", "dune!"], InvalidVote::Repeated),
        ] {
            assert_eq!(VoteQuestion::new(None, &options), Err(expected), "{options:?}");
        }
        let clean = VoteQuestion::new(Some("Tonight?"), &["Dune (2021)\nor so", " Heat "]).unwrap();
        assert_eq!(
            (clean.text(), clean.options()),
            ("Tonight?", ["Dune (2021)", "Heat"].map(str::to_owned).as_slice())
        );
    }

    #[test]
    fn option_is_found_by_words_that_only_it_has() {
        let vote = question(&["Dune", "Dune: Part Two", "Alien"]);
        assert_eq!(vote.find_option("dune"), Some(1));
        assert_eq!(vote.find_option("part two"), Some(2));
        assert_eq!(vote.find_option("alien!"), Some(3));
        assert_eq!(question(&["Alien", "Aliens vs Predator", "Predator"]).find_option("predator"), Some(3));
        assert_eq!(question(&["Rocky 2", "Rocky 3"]).find_option("rocky"), None);
        assert_eq!((vote.find_option(""), vote.find_option("heat")), (None, None));
    }

    #[test]
    fn several_options_can_lead() {
        let vote = question(&["Dune", "Heat", "Alien"]);
        assert_eq!(Tally::count(&vote, [2, 1, 2]).leaders(), [2]);
        assert_eq!(Tally::count(&vote, [2, 1, 9]).leaders(), [1, 2]);
        let none = Tally::count(&vote, []);
        assert_eq!((none.leaders(), none.total()), (Vec::new(), 0));
    }
}
