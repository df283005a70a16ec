//! Title that a newcomer requested in their first message. It is stored while the admins decide, and offered to the
//! user after the approval.

use jiff::SignedDuration;

use crate::conversation::grammar::requests::parser::parse_line;
use crate::conversation::grammar::requests::request::Request;
use crate::conversation::grammar::title_reference::TitleReference;
use crate::conversation::text::message_format::{EmojiPolicy, clean_untrusted_text, format_for_sms};

/// Time for which the title is stored, from the first message on.
pub const RETENTION: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Last sentence of the offer, by which the offer is recognized.
const OFFER_INSTRUCTION: &str = "Reply YES to add it.";
/// Maximum length of a title, in characters.
const MAX_TITLE_CHARS: usize = 60;

/// Requested title, cleaned to one line, with the year or the seasons as the user typed them: `Dune 2021`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstRequest(String);

/// Returns the title, with its description, if the line asks to add one title.
fn added_title(line: &str) -> Option<String> {
    match parse_line(line).requests.as_slice() {
        [Request::Add(phrase)] if phrase.reference.is_none() => Some(phrase.full_title()),
        _ => None,
    }
}

impl FirstRequest {
    /// Parses a message that asks to add one title; returns `None` for any other message.
    pub fn from_text(text: &str) -> Option<Self> {
        let line = text.trim();
        let title = added_title(line).filter(|_| line.lines().count() == 1)?;
        let request = clean_untrusted_text(&title, MAX_TITLE_CHARS).map(Self)?;
        // The stored title has to be read as the same request.
        added_title(&request.to_request_text()).map(|_| request)
    }

    pub fn from_stored(title: String) -> Self {
        Self(title)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the request as a text in the grammar of requests.
    pub fn to_request_text(&self) -> String {
        match TitleReference::parse(&self.0) {
            // Quotes keep a title such as It from being parsed as a reference.
            Some(_) => format!("add \"{}\"", self.0),
            None => format!("add {}", self.0),
        }
    }

    /// Formats the offer to add the title.
    pub fn format_offer(&self) -> String {
        format!("You asked for {}. {OFFER_INSTRUCTION}", self.0)
    }

    /// Returns whether an outbound message ends with this offer.
    pub fn is_offered_in(&self, text: &str) -> bool {
        [EmojiPolicy::Keep, EmojiPolicy::Remove]
            .iter()
            .any(|emoji| text.ends_with(&format_for_sms(&self.format_offer(), *emoji)))
    }
}

/// Returns whether an outbound message may end with an offer, in which case the stored title has to be loaded.
pub fn may_contain_offer(text: &str) -> bool {
    text.ends_with(OFFER_INSTRUCTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let request = FirstRequest::from_text(text);
        assert_eq!(request.as_ref().map(FirstRequest::as_str), expected, "{text:?}");
    }

    #[test]
    fn first_message_that_adds_one_title_is_stored() {
        check("add Dune", Some("Dune"));
        check("Please add dune 2021, thanks!", Some("dune 2021"));
        check("get the bear season 2", Some("the bear season 2"));
        check("add Dune (1984)", Some("Dune 1984"));
        check("add 2012", Some("2012"));
    }

    #[test]
    fn offer_is_recognized_only_for_its_own_title() {
        let dune = FirstRequest::from_text("add Dune").unwrap();
        assert!(dune.is_offered_in("Hello Sam. You asked for Dune. Reply YES to add it."));
        assert!(!dune.is_offered_in("Dune 3 is out. Reply YES to add it."));
        let it = FirstRequest::from_text("add the movie It").unwrap();
        assert_eq!(it.to_request_text(), "add the movie It");
    }

    #[test]
    fn other_first_messages_are_not_stored() {
        for text in ["hi", "add", "delete dune", "search dune", "status", "add dune\nadd heat", "add !!!", ""]
        {
            check(text, None);
        }
    }

    #[test]
    fn long_or_hostile_title_becomes_one_short_line() {
        let title = FirstRequest::from_text(&format!("add {}", "x".repeat(500))).unwrap();
        assert_eq!(title.as_str().chars().count(), MAX_TITLE_CHARS);
        check("add du\u{202e}ne\u{0}", Some("dune"));
    }
}
