//! Notes for the model about what the messages of a turn do not contain: notifications since the last reply, and
//! pictures.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::inbound_message::InboundEvent;
use super::route::{MessageRef, RecentMessage};
use crate::conversation::text::normalization::contains_phrase;
use crate::conversation::title_requests::{Requester, TitleRequest};

/// Maximum number of notifications in the notes.
const MAX_NOTIFICATIONS: usize = 3;
/// Maximum age of a notification in the notes.
const MAX_AGE: SignedDuration = SignedDuration::from_hours(24);

/// Maximum number and age of title requests in the notes.
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

/// Returns whether a text asks which titles its sender or another user has requested.
pub fn asks_for_requests(text: &str) -> bool {
    ["ask for", "asked for", "did i ask", "have i asked", "requests", "requested", "did i add"]
        .iter()
        .any(|phrase| contains_phrase(text, phrase))
}

/// Formats the household's requests within the last week, one line for each user and the newest request first:
/// `they asked for: Heat (1995) on Thu Nov 19`. `requests` are oldest first.
pub fn format_requests(requests: &[TitleRequest], zone: &TimeZone, now: Timestamp) -> Vec<String> {
    let recent =
        requests.iter().rev().filter(|request| now.duration_since(request.requested_at) < MAX_REQUEST_AGE);
    let mut lines: Vec<(&str, Vec<String>)> = Vec::new();
    for request in recent.take(MAX_REQUESTS) {
        let name = match &request.requester {
            Requester::You => "they",
            Requester::Named(name) => name,
            Requester::Unnamed => "someone",
        };
        let day = request.requested_at.to_zoned(zone.clone()).strftime("%a %b %-d");
        let title = format!("{} on {day}", request.wanted.format_name());
        match lines.iter_mut().find(|(requester, _)| *requester == name) {
            Some((_, titles)) => titles.push(title),
            None => lines.push((name, vec![title])),
        }
    }
    if lines.is_empty() {
        return vec!["nobody asked for a title within a week".to_owned()];
    }
    lines.into_iter().map(|(name, titles)| format!("{name} asked for: {}", titles.join("; "))).collect()
}

/// Returns the note about a picture that came with words.
pub fn picture_note(messages: &[InboundEvent]) -> Option<String> {
    let has_picture = messages.iter().any(|message| !message.media.is_empty());
    has_picture.then(|| "their text came with a picture that you cannot see: say so if it matters".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::title_requests::{RequestStatus, RequestedTitle};
    use crate::conversation::transcript::{MediaKind, OutboxId};

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
    fn requests_of_a_week_are_listed_by_user() {
        let now: Timestamp = "2026-11-21T02:04:00Z".parse().unwrap();
        let request = |days: i64, title: &str, requester| TitleRequest {
            requester,
            wanted: RequestedTitle {
                instance: "radarr".to_owned(),
                kind: MediaKind::Movie,
                catalog_id: 1,
                title: title.to_owned(),
                year: 0,
                seasons: None,
            },
            status: RequestStatus::InLibrary,
            requested_at: now - SignedDuration::from_hours(24 * days),
        };
        let bob = || Requester::Named("Bob".to_owned());
        let requests = [
            request(9, "Alien", Requester::You),
            request(2, "Arrival", bob()),
            request(1, "Heat", Requester::You),
            request(0, "Dune", bob()),
        ];
        assert_eq!(
            format_requests(&requests, &TimeZone::UTC, now),
            [
                "Bob asked for: Dune on Sat Nov 21; Arrival on Thu Nov 19",
                "they asked for: Heat on Fri Nov 20"
            ]
        );
        let nobody = "nobody asked for a title within a week";
        assert_eq!(format_requests(&requests[..1], &TimeZone::UTC, now), [nobody]);
        assert!(asks_for_requests("What did I ask yesterday?") && asks_for_requests("what did bob ask for"));
        assert!(!asks_for_requests("ask my admin"));
    }
}
