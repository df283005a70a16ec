//! Notes for the model about what the messages of a turn do not contain: notifications since the last reply, and
//! pictures.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::inbound_message::InboundEvent;
use super::route::{MessageRef, RecentMessage};
use crate::conversation::text::normalization::contains_phrase;

/// Maximum number of notifications in the notes.
const MAX_NOTIFICATIONS: usize = 3;
/// Maximum age of a notification in the notes.
const MAX_AGE: SignedDuration = SignedDuration::from_hours(24);

/// Maximum number and age of a user's own requests in the notes.
const MAX_REQUESTS: usize = 10;
const MAX_REQUEST_AGE: SignedDuration = SignedDuration::from_hours(24 * 7);

/// Formats the notifications since the last reply, oldest first: `just texted (20:05): Heat (1995) is ready.`
/// `recent` contains our messages newest first.
pub fn format_notifications(recent: &[RecentMessage], zone: &TimeZone, now: Timestamp) -> Vec<String> {
    let ours = recent.iter().filter(|message| matches!(message.message, MessageRef::Outbound(_)));
    let notifications = ours.map_while(|message| Some((message.notified_at?, message.body.as_str())));
    let mut notes: Vec<String> = notifications
        .take(MAX_NOTIFICATIONS)
        .filter(|(at, _)| now.duration_since(*at) < MAX_AGE)
        .map(|(at, body)| {
            let (at, today) = (at.to_zoned(zone.clone()), now.to_zoned(zone.clone()).date());
            let time = at.strftime(if at.date() == today { "%H:%M" } else { "%a %H:%M" });
            format!("just texted ({time}): {}", body.split_whitespace().collect::<Vec<_>>().join(" "))
        })
        .collect();
    notes.reverse();
    notes
}

/// Returns whether a text asks which titles its sender has requested.
pub fn asks_for_requests(text: &str) -> bool {
    [
        "did i ask",
        "have i asked",
        "i asked for",
        "did i request",
        "my requests",
        "did i add",
        "have i requested",
    ]
    .iter()
    .any(|phrase| contains_phrase(text, phrase))
}

/// Formats the requests of a user within the last week, newest first: `they asked for: Heat (1995) on Thu Nov 19`.
pub fn format_own_requests(
    requests: &[(Timestamp, String)],
    zone: &TimeZone,
    now: Timestamp,
) -> Option<String> {
    let recent = requests.iter().rev().filter(|(at, _)| now.duration_since(*at) < MAX_REQUEST_AGE);
    let lines: Vec<String> = recent
        .take(MAX_REQUESTS)
        .map(|(at, name)| format!("{name} on {}", at.to_zoned(zone.clone()).strftime("%a %b %-d")))
        .collect();
    (!lines.is_empty()).then(|| format!("they asked for: {}", lines.join("; ")))
}

/// Returns the note about a picture that came with words.
pub fn picture_note(messages: &[InboundEvent]) -> Option<String> {
    let has_picture = messages.iter().any(|message| !message.media.is_empty());
    has_picture.then(|| "their text came with a picture that you cannot see: say so if it matters".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::transcript::OutboxId;

    #[test]
    fn notifications_since_the_last_reply_are_notes() {
        let now: Timestamp = "2026-11-21T02:04:00Z".parse().unwrap();
        let zone = TimeZone::get("America/New_York").unwrap();
        let message = |minutes: i64, body: &str, is_notification: bool| RecentMessage {
            message: MessageRef::Outbound(OutboxId(1)),
            body: body.to_owned(),
            notified_at: is_notification.then(|| now - SignedDuration::from_mins(minutes)),
        };
        let recent = [
            message(10, "Heat (1995) is ready.", true),
            message(59, "Dune (2021) is ready.", true),
            message(61, "Added Heat (1995).", false),
            message(90, "Alien (1979) is ready.", true),
        ];
        assert_eq!(
            format_notifications(&recent, &zone, now),
            ["just texted (20:05): Dune (2021) is ready.", "just texted (20:54): Heat (1995) is ready."]
        );
        assert_eq!(format_notifications(&recent[2..], &zone, now), [""; 0]);
    }

    #[test]
    fn own_requests_of_a_week_are_listed_newest_first() {
        let now: Timestamp = "2026-11-21T02:04:00Z".parse().unwrap();
        let days_ago = |days: i64, name: &str| (now - SignedDuration::from_hours(24 * days), name.to_owned());
        let requests = [days_ago(9, "Alien (1979)"), days_ago(1, "Heat (1995)"), days_ago(0, "Dune (2021)")];
        assert_eq!(
            format_own_requests(&requests, &TimeZone::UTC, now).unwrap(),
            "they asked for: Dune (2021) on Sat Nov 21; Heat (1995) on Fri Nov 20"
        );
        assert_eq!(format_own_requests(&requests[..1], &TimeZone::UTC, now), None);
        assert!(asks_for_requests("What did I ask yesterday?") && !asks_for_requests("ask my admin"));
    }
}
