//! Who wrote a text down: its sender, or somebody in their name. It stands in the id by which a repeat of the text is
//! known.

use super::transcript::ChannelKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Whoever it is from, on a phone or in the terminal.
    Sender,
    /// The operator, as a test user.
    Typed,
    /// A button that the operator pressed.
    Button,
    /// A program, with the API key of this id.
    Key(i64),
    /// The API, from a browser that is signed in to the console.
    Session,
}

/// What the ids of texts begin with that a button made.
pub const BUTTON: &str = "button:";
const TYPED: &str = "typed:";
const KEY: &str = "api:key-";
const SESSION: &str = "api:console:";

impl Origin {
    /// The id of a text that is known by `rest` where it comes from. Two keys do not know each other's texts.
    pub fn id(self, rest: &str) -> String {
        match self {
            Self::Sender => rest.to_owned(),
            Self::Typed => format!("{TYPED}{rest}"),
            Self::Button => format!("{BUTTON}{rest}"),
            Self::Key(key) => format!("{KEY}{key}:{rest}"),
            Self::Session => format!("{SESSION}{rest}"),
        }
    }

    /// As the id tells.
    pub fn of(channel: ChannelKind, id: &str) -> Self {
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
        key.map_or(Self::Typed, Self::Key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_where_its_text_comes_from_only_where_nobody_else_can_choose_it() {
        for origin in [Origin::Typed, Origin::Button, Origin::Key(7), Origin::Session] {
            let id = origin.id("button:api:key-9:x");
            assert_eq!(Origin::of(ChannelKind::Console, &id), origin);
            assert_eq!(Origin::of(ChannelKind::Twilio, &id), Origin::Sender);
        }
    }
}
