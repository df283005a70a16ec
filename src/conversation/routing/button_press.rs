//! Presses of the buttons below our messages.

use std::fmt;

use crate::conversation::transcript::OutboxId;

/// Choice that a button stands for. A press counts as the text of its choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ButtonChoice {
    Yes,
    No,
    /// Entry of a numbered list.
    Number(u8),
}

impl ButtonChoice {
    /// Largest number of a list that has buttons.
    pub const MAX_NUMBER: u8 = 10;

    /// Returns the text that the choice counts as.
    pub fn to_text(self) -> String {
        match self {
            Self::Yes => "yes".to_owned(),
            Self::No => "no".to_owned(),
            Self::Number(number) => number.to_string(),
        }
    }

    /// Parses the text of a choice.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "yes" => Some(Self::Yes),
            "no" => Some(Self::No),
            number => {
                let number = number.parse().ok()?;
                (1..=Self::MAX_NUMBER).contains(&number).then_some(Self::Number(number))
            }
        }
    }

    /// Returns the choices of the numbered list in a text: lines that begin with `1. `, `2. ` and so on.
    pub fn from_list(text: &str) -> Vec<Self> {
        let mut next = 1;
        for line in text.lines() {
            if line.starts_with(&format!("{next}. ")) {
                next += 1;
            }
        }
        if next <= Self::MAX_NUMBER + 1 { (1..next).map(Self::Number).collect() } else { Vec::new() }
    }
}

/// Pressed button as received: the message that it claims to belong to, and the token of that message.
#[derive(Clone, PartialEq, Eq)]
pub struct PressedButton {
    pub message: OutboxId,
    pub token: String,
}

/// Omits the token, so that no log contains it.
impl fmt::Debug for PressedButton {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PressedButton").field("message", &self.message).finish_non_exhaustive()
    }
}

/// Press of a button, compared with the stored messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ButtonPress {
    /// The button is below this message to its sender.
    On(OutboxId),
    /// The button is below an earlier copy of a message, or below none of ours.
    Void,
}

impl ButtonPress {
    pub fn is_on(self, message: OutboxId) -> bool {
        self == Self::On(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choice_is_parsed_from_the_text_that_it_counts_as() {
        for choice in [ButtonChoice::Yes, ButtonChoice::No, ButtonChoice::Number(10)] {
            assert_eq!(ButtonChoice::parse(&choice.to_text()), Some(choice));
        }
        for text in ["", "YES", "0", "11", "approve 1234"] {
            assert_eq!(ButtonChoice::parse(text), None, "{text}");
        }
    }

    #[test]
    fn list_of_up_to_ten_entries_has_buttons() {
        let numbers = |text: &str| ButtonChoice::from_list(text).len();
        assert_eq!(numbers("Which one?\n1. Dune (2021)\n2. Dune (1984)"), 2);
        assert_eq!(numbers("1. Dune (2021)\nReply 1"), 1);
        assert_eq!(numbers("Top 2. Dune\n2. Heat"), 0);
        let list = (1..=11).map(|number| format!("{number}. Title\n")).collect::<String>();
        assert_eq!(numbers(&list), 0);
    }
}
