//! Parser of the commands that make room on the disks: "make room", "make room?" and "review".

use super::keyword_grammar;
use crate::conversation::text::normalization::normalize_title;

/// Step of making room: show what could go, ask the people concerned, or list the titles that an admin may decide on. The
/// model reads the names alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MakeRoomStep {
    Preview,
    Start,
    Review,
}

/// Parses the whole of `text`, apart from courtesy, as a command that makes room. A question only shows what could go.
pub fn parse_make_room_step(text: &str) -> Option<MakeRoomStep> {
    let is_question = text.trim_end().ends_with('?');
    match normalize_title(keyword_grammar::strip_courtesy(text)).as_str() {
        "make room" | "make some room" | "make space" | "make some space" | "free up space"
        | "free up some space" => Some(if is_question { MakeRoomStep::Preview } else { MakeRoomStep::Start }),
        "what could go"
        | "what can go"
        | "what could we delete"
        | "what can we delete"
        | "what could be deleted" => Some(MakeRoomStep::Preview),
        "review" => Some(MakeRoomStep::Review),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_about_room_starts_nothing() {
        for (text, expected) in [
            ("make room", Some(MakeRoomStep::Start)),
            ("Make room please", Some(MakeRoomStep::Start)),
            ("make room?", Some(MakeRoomStep::Preview)),
            ("what could go?", Some(MakeRoomStep::Preview)),
            ("REVIEW", Some(MakeRoomStep::Review)),
            ("review dune", None),
            ("room", None),
            ("panic room", None),
        ] {
            assert_eq!(parse_make_room_step(text), expected, "{text}");
        }
    }
}
