//! Formatting of numbers, links and users on the pages.

use crate::conversation::people::naming;
use crate::conversation::transcript::{ConversationId, TurnId, User, UserAddress};
use crate::store::console::user_ref::{UserIdentity, UserRef};

/// Formats a number: `12,345`.
pub(super) fn format_count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats an amount in millionths of the currency: `1.25`, or with four decimal places if it is small.
pub(super) fn format_cost(micros: u64) -> String {
    if micros == 0 {
        return "0".to_owned();
    }
    if micros < 100_000 {
        let tenths_of_a_thousandth = micros.div_ceil(100);
        return format!("0.{tenths_of_a_thousandth:04}");
    }
    let cents = micros.div_ceil(10_000);
    format!("{}.{:02}", format_count(cents / 100), cents % 100)
}

/// Returns the URL of a turn in its conversation, on the page that ends with the turn.
pub(super) fn turn_path(conversation: ConversationId, turn: TurnId) -> String {
    format!("/conversations/{conversation}?before={}#turn-{turn}", turn.0 + 1)
}

/// Name of a user, with a link to their page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UserLink {
    pub(super) name: String,
    /// Path of their page, or of the list of groups; `None` for a user who was erased.
    pub(super) path: Option<String>,
    pub(super) is_test: bool,
    pub(super) is_room: bool,
}

impl From<&UserRef> for UserLink {
    fn from(user: &UserRef) -> Self {
        let path = if user.is_room { "/users".to_owned() } else { format!("/users/{}", user.id) };
        let (name, path) = match &user.identity {
            UserIdentity::Known { name: Some(name), .. } => (name.clone(), Some(path)),
            UserIdentity::Known { name: None, address } => {
                (address.as_ref().map(UserAddress::format_grouped).unwrap_or_default(), Some(path))
            }
            UserIdentity::Erased => ("Erased user".to_owned(), None),
        };
        Self { name, path, is_test: user.is_test, is_room: user.is_room }
    }
}

/// Returns the name, or the number of a user without a name.
pub(super) fn display_name(user: &User) -> String {
    naming::display_name(user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_and_small_costs_are_not_rounded_away() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(format_count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0, 1, 12_345, 100_000, 1_234_567_890].map(format_cost),
            ["0", "0.0001", "0.0124", "0.10", "1,234.57"]
        );
    }
}
