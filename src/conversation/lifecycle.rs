//! Start, end and name of a conversation.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::text::message_format;
use super::transcript::ConversationId;

/// Maximum length of the topic of a conversation, in characters.
const MAX_TOPIC_CHARS: usize = 40;

/// Open conversation, with the time that decides its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenConversation {
    pub id: ConversationId,
    pub last_activity_at: Timestamp,
}

/// Conversation to which a message that arrives now belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationSlot {
    /// The open conversation continues.
    Continue(ConversationId),
    /// The open conversation has ended, at that time.
    AfterEnd(ConversationId, Timestamp),
    /// No conversation is open.
    New,
}

/// Chooses the conversation for a message at `now`. A conversation ends when it has been idle for the time `idle`.
pub fn choose_slot(open: Option<OpenConversation>, idle: SignedDuration, now: Timestamp) -> ConversationSlot {
    match open {
        None => ConversationSlot::New,
        Some(open) if open.last_activity_at + idle > now => ConversationSlot::Continue(open.id),
        Some(open) => ConversationSlot::AfterEnd(open.id, open.last_activity_at + idle),
    }
}

/// Formats the name of a conversation without words, its start time: `Nov 20, 2026 21:04`.
pub fn format_start_name(started_at: Timestamp, zone: &TimeZone) -> String {
    started_at.to_zoned(zone.clone()).strftime("%b %-d, %Y %H:%M").to_string()
}

/// Formats the name of a conversation: the beginning of its first message.
pub fn format_topic(first_text: &str) -> Option<String> {
    let line = first_text.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = message_format::format_for_sms(&line, message_format::EmojiPolicy::Remove);
    let topic = match plain.char_indices().nth(MAX_TOPIC_CHARS) {
        None => plain,
        Some((end, _)) => {
            let cut = plain[..end].rfind(' ').unwrap_or(end);
            format!("{}...", plain[..cut].trim_end())
        }
    };
    (!topic.is_empty()).then_some(topic)
}

/// Lifecycle of a conversation, as a response of the API reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationLifecycle {
    /// True if the turn is the first of its conversation.
    pub is_new_conversation: bool,
    pub conversation_id: ConversationId,
    pub conversation_name: String,
    pub started_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversation_ends_after_its_idle_time() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let open = Some(OpenConversation { id: ConversationId(7), last_activity_at: at(100) });
        let idle = SignedDuration::from_secs(60);
        assert_eq!(choose_slot(None, idle, at(0)), ConversationSlot::New);
        assert_eq!(choose_slot(open, idle, at(159)), ConversationSlot::Continue(ConversationId(7)));
        assert_eq!(choose_slot(open, idle, at(160)), ConversationSlot::AfterEnd(ConversationId(7), at(160)));
        assert_eq!(
            choose_slot(open, idle, at(9_999)),
            ConversationSlot::AfterEnd(ConversationId(7), at(160))
        );
    }

    #[test]
    fn topic_is_the_beginning_of_the_first_message() {
        let topics = [
            "add dune",
            "  add\n  dune \u{1f3ac} ",
            "please find me the newest season of that show with the chefs",
            "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz",
        ]
        .map(|text| format_topic(text).unwrap());
        assert_eq!(
            topics,
            [
                "add dune",
                "add dune",
                "please find me the newest season of...",
                "abcdefghijklmnopqrstuvwxyzabcdefghijklmn..."
            ]
        );
        assert_eq!(format_topic(" \u{1f44d} "), None);
    }
}
