//! Parser of the commands that make room on the disks: "make room", "make room?" and "review".

use super::keyword_grammar;
use crate::conversation::text::normalization::normalize_title;

/// Step of making room: show what could go, ask the people concerned, or list the titles that an admin may decide on. The
/// model reads the names alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoomStep {
    Preview,
    Start,
    Review,
}

/// Parses the whole of `text`, apart from courtesy, as a command that makes room. A question only shows what could go.
pub fn parse_room_step(text: &str) -> Option<RoomStep> {
    let is_question = text.trim_end().ends_with('?');
    match normalize_title(keyword_grammar::strip_courtesy(text)).as_str() {
        "make room" | "make some room" | "make space" | "make some space" | "free up space"
        | "free up some space" => Some(if is_question { RoomStep::Preview } else { RoomStep::Start }),
        "what could go"
        | "what can go"
        | "what could we delete"
        | "what can we delete"
        | "what could be deleted" => Some(RoomStep::Preview),
        "review" => Some(RoomStep::Review),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_about_room_starts_nothing() {
        for (text, expected) in [
            ("make room", Some(RoomStep::Start)),
            ("Make room please", Some(RoomStep::Start)),
            ("make room?", Some(RoomStep::Preview)),
            ("what could go?", Some(RoomStep::Preview)),
            ("REVIEW", Some(RoomStep::Review)),
            ("review dune", None),
            ("room", None),
            ("panic room", None),
        ] {
            assert_eq!(parse_room_step(text), expected, "{text}");
        }
    }
}
