//! Buttons below messages. Each carries the message that it belongs to, the token of that message and its choice.

use super::wire::{Button, Keyboard};
use crate::conversation::routing::button_press::{ButtonChoice, PressedButton};
use crate::conversation::transcript::OutboxId;
use crate::messaging::OutboundMessage;

/// Maximum number of buttons in a row.
const ROW_LENGTH: usize = 5;
const SEPARATOR: char = '.';

/// Returns the buttons below a message; `None` if it has none.
pub(super) fn keyboard(message: &OutboundMessage) -> Option<Keyboard> {
    let button = |choice: &ButtonChoice| Button {
        text: label(*choice),
        callback_data: format!(
            "{}{SEPARATOR}{}{SEPARATOR}{}",
            message.id.0,
            message.callback_token.as_str(),
            choice.to_text()
        ),
    };
    let buttons: Vec<Button> = message.buttons.iter().map(button).collect();
    let inline_keyboard: Vec<Vec<Button>> = buttons.chunks(ROW_LENGTH).map(<[Button]>::to_vec).collect();
    (!inline_keyboard.is_empty()).then_some(Keyboard { inline_keyboard })
}

fn label(choice: ButtonChoice) -> String {
    match choice {
        ButtonChoice::Yes => "Yes".to_owned(),
        ButtonChoice::No => "No".to_owned(),
        ButtonChoice::Number(number) => number.to_string(),
    }
}

/// Parses the data of a pressed button; `None` if no message of ours can have had it.
pub(super) fn parse_press(data: &str) -> Option<(PressedButton, ButtonChoice)> {
    let mut parts = data.split(SEPARATOR);
    let (message, token, choice) = (parts.next()?, parts.next()?, parts.next()?);
    let choice = ButtonChoice::parse(choice)?;
    let message = OutboxId(message.parse().ok()?);
    let is_whole = parts.next().is_none() && !token.is_empty();
    is_whole.then(|| (PressedButton { message, token: token.to_owned() }, choice))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::conversation::transcript::Address;
    use crate::store::queue::callbacks::CallbackToken;

    fn message(id: i64, buttons: Vec<ButtonChoice>) -> OutboundMessage {
        OutboundMessage {
            id: OutboxId(id),
            attempt: 1,
            to: Address::new("telegram:9"),
            from: Address::new("telegram:501"),
            body: "Delete Heat (1995)?".to_owned(),
            media: Vec::new(),
            reacts_to: None,
            quotes: None,
            poll: None,
            buttons,
            valid_for: Duration::from_secs(60),
            callback_token: CallbackToken::from_stored("0123456789abcdef0123456789abcdef"),
        }
    }

    #[test]
    fn data_of_a_button_names_its_message_and_choice() {
        let keyboard = keyboard(&message(i64::MAX, vec![ButtonChoice::Yes, ButtonChoice::No])).unwrap();
        let [row] = keyboard.inline_keyboard.as_slice() else { panic!("one row") };
        assert!(row.iter().all(|button| button.callback_data.len() <= 64));
        let (pressed, choice) = parse_press(&row[1].callback_data).unwrap();
        assert_eq!(
            (pressed.message, pressed.token.as_str()),
            (OutboxId(i64::MAX), "0123456789abcdef0123456789abcdef")
        );
        assert_eq!((row[1].text.as_str(), choice), ("No", ButtonChoice::No));
    }

    #[test]
    fn list_of_seven_has_two_rows_of_buttons() {
        let buttons = (1..=7).map(ButtonChoice::Number).collect();
        let rows = keyboard(&message(1, buttons)).unwrap().inline_keyboard;
        assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [5, 2]);
        assert_eq!(keyboard(&message(1, Vec::new())), None);
    }

    #[test]
    fn forged_data_is_no_press() {
        for data in ["", "1", "1.a", "1..yes", "x.a.yes", "1.a.approve", "1.a.yes.1", "1.a.11"] {
            assert_eq!(parse_press(data), None, "{data}");
        }
    }
}
