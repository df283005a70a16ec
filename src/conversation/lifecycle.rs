//! When a conversation begins and ends, and what it is called.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::text;
use super::transcript::ConversationId;

/// What a conversation was about is told in this many characters.
const TOPIC_CHARS: usize = 40;

/// A conversation as far as its end matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    pub id: ConversationId,
    pub last_activity_at: Timestamp,
}

/// Where a text that comes now belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It goes on.
    In(ConversationId),
    /// The open one is over, as of that moment.
    AfterEnd(ConversationId, Timestamp),
    /// None is open.
    New,
}

pub fn place(open: Option<Open>, idle: SignedDuration, now: Timestamp) -> Place {
    match open {
        None => Place::New,
        Some(open) if open.last_activity_at + idle > now => Place::In(open.id),
        Some(open) => Place::AfterEnd(open.id, open.last_activity_at + idle),
    }
}

/// `Nov 20, 2026 21:04`: what a conversation is called while it lasts.
pub fn name(now: Timestamp, zone: &TimeZone) -> String {
    now.to_zoned(zone.clone()).strftime("%b %-d, %Y %H:%M").to_string()
}

/// What an ended conversation is called: the beginning of what it began with.
pub fn topic(first_text: &str) -> Option<String> {
    let line = first_text.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = text::for_sms(&line, text::Emoji::Remove);
    let topic = match plain.char_indices().nth(TOPIC_CHARS) {
        None => plain,
        Some((end, _)) => {
            let cut = plain[..end].rfind(' ').unwrap_or(end);
            format!("{}...", plain[..cut].trim_end())
        }
    };
    (!topic.is_empty()).then_some(topic)
}

/// What an answer says about the conversation it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifecycle {
    /// The answer's turn is the first of its conversation.
    pub is_new_conversation: bool,
    pub conversation_id: ConversationId,
    pub conversation_name: String,
    pub started_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_ends_with_the_silence_after_it() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let open = Some(Open { id: ConversationId(7), last_activity_at: at(100) });
        let idle = SignedDuration::from_secs(60);
        assert_eq!(place(None, idle, at(0)), Place::New);
        assert_eq!(place(open, idle, at(159)), Place::In(ConversationId(7)));
        assert_eq!(place(open, idle, at(160)), Place::AfterEnd(ConversationId(7), at(160)));
        assert_eq!(place(open, idle, at(9_999)), Place::AfterEnd(ConversationId(7), at(160)));
    }

    #[test]
    fn a_topic_is_the_beginning_of_the_first_text() {
        let told = [
            "add dune",
            "  add\n  dune \u{1f3ac} ",
            "please find me the newest season of that show with the chefs",
            "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz",
        ]
        .map(|text| topic(text).unwrap());
        assert_eq!(
            told,
            [
                "add dune",
                "add dune",
                "please find me the newest season of...",
                "abcdefghijklmnopqrstuvwxyzabcdefghijklmn..."
            ]
        );
        assert_eq!(topic(" \u{1f44d} "), None);
    }
}
