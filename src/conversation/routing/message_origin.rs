//! Origin of a message: its sender, or another party that acts in the sender's name. The message id includes the
//! origin, so that messages of different origins are never taken for repetitions of each other.

use crate::conversation::channel::{Channel, SenderKind};

/// Party that submitted a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageOrigin {
    /// The sender, by phone or in the terminal.
    Sender,
    /// The operator, as a test user.
    TestUser,
    /// A button that the operator pressed.
    Button,
    /// The operator, in the name of a user. The text confirms nothing, is no command, and is not the user's own words.
    Operator,
    /// A program, with the API key of this id.
    ApiKey(i64),
    /// A call of the API by a browser that is signed in to the console.
    Session,
}

/// Prefix of the ids of messages that a button created.
pub const BUTTON_PREFIX: &str = "button:";
/// Prefix of the ids of texts that the operator wrote in the name of a user.
pub const OPERATOR_PREFIX: &str = "operator:";
const TEST_USER_PREFIX: &str = "typed:";
const API_KEY_PREFIX: &str = "api:key-";
const SESSION_PREFIX: &str = "api:console:";

impl MessageOrigin {
    /// Returns whether a program wrote the message. It confirms and approves nothing.
    pub fn is_program(self) -> bool {
        match self {
            Self::ApiKey(_) => true,
            Self::Sender | Self::TestUser | Self::Button | Self::Operator | Self::Session => false,
        }
    }

    /// Returns the message id: a prefix for the origin, then `suffix`, which identifies the message for that origin.
    /// The ids of different API keys never collide.
    pub fn to_message_id(self, suffix: &str) -> String {
        match self {
            Self::Sender => suffix.to_owned(),
            Self::TestUser => format!("{TEST_USER_PREFIX}{suffix}"),
            Self::Button => format!("{BUTTON_PREFIX}{suffix}"),
            Self::Operator => format!("{OPERATOR_PREFIX}{suffix}"),
            Self::ApiKey(key) => format!("{API_KEY_PREFIX}{key}:{suffix}"),
            Self::Session => format!("{SESSION_PREFIX}{suffix}"),
        }
    }

    /// Parses the origin from a message id.
    pub fn from_message_id(channel: Channel, id: &str) -> Self {
        if channel.profile().senders != SenderKind::Console {
            return Self::Sender;
        }
        if id.starts_with(BUTTON_PREFIX) {
            return Self::Button;
        }
        if id.starts_with(OPERATOR_PREFIX) {
            return Self::Operator;
        }
        if id.starts_with(SESSION_PREFIX) {
            return Self::Session;
        }
        let key = id.strip_prefix(API_KEY_PREFIX).and_then(|rest| rest.split_once(':')?.0.parse().ok());
        key.map_or(Self::TestUser, Self::ApiKey)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::channel_list;

    #[test]
    fn message_id_identifies_its_origin_only_in_the_console() {
        for origin in [
            MessageOrigin::TestUser,
            MessageOrigin::Button,
            MessageOrigin::Operator,
            MessageOrigin::ApiKey(7),
            MessageOrigin::Session,
        ] {
            let id = origin.to_message_id("button:api:key-9:x");
            assert_eq!(MessageOrigin::from_message_id(channel_list::CONSOLE, &id), origin);
            assert_eq!(MessageOrigin::from_message_id(channel_list::TWILIO, &id), MessageOrigin::Sender);
        }
    }
}
