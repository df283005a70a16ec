//! Origin of a message: its sender, or another party in the sender's name. The origin is part of the id by which a
//! repeated message is recognized.

use crate::conversation::transcript::ChannelKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageOrigin {
    /// The sender, on a phone or in the terminal.
    Sender,
    /// The operator, as a test user.
    TestUser,
    /// A button that the operator pressed.
    Button,
    /// A program, with the API key of this id.
    Key(i64),
    /// The API, from a browser that is signed in to the console.
    Session,
}

/// Prefix of the ids of messages that a button created.
pub const BUTTON: &str = "button:";
const TYPED: &str = "typed:";
const KEY: &str = "api:key-";
const SESSION: &str = "api:console:";

impl MessageOrigin {
    /// Returns the id of a message that its origin identifies by `rest`. Two keys do not share the ids of their
    /// messages.
    pub fn to_message_id(self, rest: &str) -> String {
        match self {
            Self::Sender => rest.to_owned(),
            Self::TestUser => format!("{TYPED}{rest}"),
            Self::Button => format!("{BUTTON}{rest}"),
            Self::Key(key) => format!("{KEY}{key}:{rest}"),
            Self::Session => format!("{SESSION}{rest}"),
        }
    }

    /// Parses the origin from the id.
    pub fn from_message_id(channel: ChannelKind, id: &str) -> Self {
        match channel {
            ChannelKind::Twilio | ChannelKind::Local => return Self::Sender,
            ChannelKind::Console => {}
        }
        if id.starts_with(BUTTON) {
            return Self::Button;
        }
        if id.starts_with(SESSION) {
            return Self::Session;
        }
        let key = id.strip_prefix(KEY).and_then(|rest| rest.split_once(':')?.0.parse().ok());
        key.map_or(Self::TestUser, Self::Key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_id_identifies_its_origin_only_on_trusted_channels() {
        for origin in
            [MessageOrigin::TestUser, MessageOrigin::Button, MessageOrigin::Key(7), MessageOrigin::Session]
        {
            let id = origin.to_message_id("button:api:key-9:x");
            assert_eq!(MessageOrigin::from_message_id(ChannelKind::Console, &id), origin);
            assert_eq!(MessageOrigin::from_message_id(ChannelKind::Twilio, &id), MessageOrigin::Sender);
        }
    }
}
