//! What the model can do to the conversation itself. A kind of action is a variant here and a tool in `tools/`.

use super::reaction;
use super::transcript::{Arguments, CallState, ToolCall};

/// The tool by which the model reacts.
pub const REACT: &str = "react";

/// Something done to the conversation. It never decides whether the words of an answer go out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// On the last text of the person.
    React(Emoji),
}

/// A single emoji.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emoji(String);

impl Emoji {
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        (reaction::is_emoji(text) && text.chars().count() <= MOST_CHARACTERS).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A family with skin tones takes this many.
const MOST_CHARACTERS: usize = 11;

/// The reaction that a call has made, if it made one.
pub fn reaction_of(call: &ToolCall) -> Option<Emoji> {
    let (Arguments::Object(arguments), CallState::Done(_)) = (&call.arguments, &call.state) else {
        return None;
    };
    let emoji = arguments.get("emoji").filter(|_| call.name == REACT)?;
    Emoji::parse(emoji.as_str()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_no_emoji() {
        for text in [
            "\u{1f44d}",
            " \u{2764}\u{fe0f} ",
            "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
            "1\u{fe0f}\u{20e3}",
        ] {
            assert!(Emoji::parse(text).is_some(), "{text:?}");
        }
        for text in ["", "ok", "thumbs up", "1", ":)", "\u{1f44d} great", "<3"] {
            assert_eq!(Emoji::parse(text), None, "{text:?}");
        }
    }
}
