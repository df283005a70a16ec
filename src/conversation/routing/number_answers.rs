//! Bare numbers, which answer only our last message in the chat.

use super::button_press::ButtonChoice;
use crate::conversation::text::message_format;

/// Numbered list that a number may mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberedList {
    /// Question of an open vote that asked the user.
    Vote,
    /// Earlier list of titles.
    Titles,
}

/// Our messages in a chat in which the user texts a number, while an open vote has asked the user.
#[derive(Debug, Clone, Default)]
pub struct NumberedChat<'a> {
    /// Our last message.
    pub last: Option<&'a str>,
    /// True if our last message is the question of the open vote.
    pub is_vote_last: bool,
    /// Our earlier messages that may be lists.
    pub earlier: Vec<&'a str>,
    /// True if the last answer of code is a list.
    pub has_code_list: bool,
}

impl NumberedChat<'_> {
    /// Returns the lists that the number may mean, if it answers none for sure: our last message is neither the question of
    /// the vote, nor a list with the number, nor another question. Empty for everything else.
    pub fn unclear_lists(&self, number: u8) -> Vec<NumberedList> {
        let answers_last = self.is_vote_last
            || self.last.is_some_and(|text| has_entry(text, number) || message_format::asks_question(text));
        if answers_last {
            return Vec::new();
        }
        let has_titles = self.has_code_list || self.earlier.iter().any(|text| has_entry(text, number));
        [Some(NumberedList::Vote), has_titles.then_some(NumberedList::Titles)].into_iter().flatten().collect()
    }
}

impl NumberedList {
    fn name(self) -> &'static str {
        match self {
            Self::Vote => "the vote",
            Self::Titles => "the list",
        }
    }

    /// Returns the words that answer the list regardless of our last message.
    fn answer_words(self, number: u8) -> String {
        match self {
            Self::Vote => format!("text VOTE {number} for the vote"),
            Self::Titles => "ask me for the list again".to_owned(),
        }
    }
}

/// Returns whether a text is a numbered list with this entry.
fn has_entry(text: &str, number: u8) -> bool {
    ButtonChoice::from_list(text).contains(&ButtonChoice::Number(number))
}

/// Formats the question which of several lists a number means; `None` without lists.
pub fn format_which_list(number: u8, lists: &[NumberedList]) -> Option<String> {
    if lists.is_empty() {
        return None;
    }
    let names: Vec<&str> = lists.iter().map(|list| list.name()).collect();
    let words: Vec<String> = lists.iter().map(|list| list.answer_words(number)).collect();
    let words = words.join(", or ");
    Some(format!("Do you mean {}? {}{}.", names.join(" or "), words[..1].to_uppercase(), &words[1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "1. Dune (2021)\n2. Dune (1984)";
    const REMARK: &str = "Heat is downloading, 40%.";

    fn during_vote(last: &str) -> NumberedChat<'_> {
        NumberedChat { last: Some(last), ..NumberedChat::default() }
    }

    #[test]
    fn number_answers_the_last_list_or_question() {
        for chat in [
            during_vote(LIST),
            during_vote("Which season do you want?"),
            NumberedChat { is_vote_last: true, ..NumberedChat::default() },
        ] {
            assert_eq!(chat.unclear_lists(2), [], "{chat:?}");
        }
    }

    #[test]
    fn number_after_other_words_may_mean_any_open_list() {
        use NumberedList::{Titles, Vote};
        assert_eq!(during_vote(REMARK).unclear_lists(2), [Vote]);
        assert_eq!(during_vote(LIST).unclear_lists(3), [Vote], "the list has no such entry");
        let after_list = NumberedChat { earlier: vec![LIST], ..during_vote(REMARK) };
        assert_eq!(after_list.unclear_lists(2), [Vote, Titles]);
        assert_eq!(after_list.unclear_lists(3), [Vote]);
        let after_code = NumberedChat { has_code_list: true, ..during_vote(REMARK) };
        assert_eq!(after_code.unclear_lists(2), [Vote, Titles]);
    }

    #[test]
    fn question_says_how_to_answer_each_list() {
        use NumberedList::{Titles, Vote};
        assert_eq!(
            format_which_list(2, &[Vote, Titles]).unwrap(),
            "Do you mean the vote or the list? Text VOTE 2 for the vote, or ask me for the list again."
        );
        let question = format_which_list(1, &[Vote]).unwrap();
        assert_eq!(question, "Do you mean the vote? Text VOTE 1 for the vote.");
        assert!(!message_format::asks_question(&question), "a later number is no answer to it");
        assert_eq!(format_which_list(1, &[]), None);
    }
}
