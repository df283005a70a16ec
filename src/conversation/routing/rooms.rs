//! Rooms: group chats in which several people talk with us. Everybody in a room reads what is sent to it, so what concerns
//! one person is sent to their private chat.

use crate::conversation::transcript::UserAddress;

/// Messages of a room that are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomMode {
    /// None.
    Off,
    /// Those that mention us or reply to us, and commands.
    Mentioned,
    /// Also others, if the model decides that they need an answer.
    Ai,
}

impl RoomMode {
    pub const ALL: [Self; 3] = [Self::Off, Self::Mentioned, Self::Ai];

    /// Returns the word of the mode in forms and in the audit log.
    pub fn as_word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Mentioned => "mentioned",
            Self::Ai => "ai",
        }
    }

    /// Parses the word of a mode.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_word() == word)
    }
}

/// Part of a received message that only a message from a room has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomUpdate {
    pub address: UserAddress,
    /// Name of the group.
    pub title: String,
    pub change: RoomChange,
}

/// What happened in a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoomChange {
    /// Somebody wrote a message or pressed a button.
    Message {
        /// True if the message mentions us, replies to us or is a command.
        is_addressed: bool,
    },
    /// Somebody added us to the group.
    Joined,
    /// Somebody removed us from the group.
    Left,
    /// The group has another address from now on.
    Moved(UserAddress),
}

/// Message that is sent to a room when the answer is sent to the private chat of the author.
pub const SENT_PRIVATELY: &str = "I sent you a private message.";

/// First message to a room.
pub const GREETING: &str = "Hi! I can add movies and shows here. Mention me, or reply to one of my messages. What concerns \
                            only you, I answer in our private chat.";

/// Formats the answer to somebody in a room who has no private chat with us.
pub fn format_private_chat_hint(link: Option<&str>) -> String {
    match link {
        Some(link) => format!("I can answer you here once you have opened a private chat with me: {link}"),
        None => "I can answer you here once you have opened a private chat with me.".to_owned(),
    }
}

/// Who reads an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Audience {
    /// The author of the messages alone.
    #[default]
    Author,
    /// Everybody in a room.
    Room,
    /// A program that acts for a person.
    Agent,
}
