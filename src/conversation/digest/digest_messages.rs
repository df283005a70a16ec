//! Replies to commands about the digest, and to the numbers of its lines.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::schedule::{DigestSchedule, weekday_name};

pub const TURNED_OFF: &str = "OK, no more digests. Text DIGEST FRIDAY 18 to get one again.";
pub const NOT_SET: &str =
    "There is no digest here. Text DIGEST FRIDAY 18, or another day and hour, to get one each week.";
pub const UNCLEAR: &str =
    "A digest comes once a week. Text a day and a full hour, for example DIGEST FRIDAY 18.";
/// Sentence in place of a digest without content, for a person who asked for it.
pub const EMPTY: &str = "It would be empty now, so it would not be sent.";
pub const NO_SUCH_LINE: &str = "The digest has no line with that number.";
pub const ALREADY_DECIDED: &str = "That is decided already.";
pub const ADDITION_ENDED: &str = "That request has an outcome already.";

/// Who gets a digest, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestArrival<'a> {
    pub schedule: DigestSchedule,
    /// Arrival of the next digest, if the quiet hours postpone it.
    pub postponed_to: Option<Timestamp>,
    pub is_room: bool,
    pub zone: &'a TimeZone,
    /// False if the person has turned notifications off.
    pub gets_notifications: bool,
}

/// Formats the reply to a schedule that was set.
pub fn format_set(arrival: &DigestArrival<'_>) -> String {
    let reader = if arrival.is_room { "this group gets" } else { "you get" };
    format!(
        "OK, {reader} a digest on {}. {}Text DIGEST OFF to turn it off.",
        arrival.schedule,
        format_limits(arrival)
    )
}

/// Formats the reply to the question when the digest comes. Its contents follow in a message of their own.
pub fn format_shown(arrival: &DigestArrival<'_>) -> String {
    let digest = if arrival.is_room { "The digest of this group" } else { "Your digest" };
    format!("{digest} comes on {}. {}I send what it would say now.", arrival.schedule, format_limits(arrival))
}

fn format_limits(arrival: &DigestArrival<'_>) -> String {
    let postponed = arrival.postponed_to.map(|at| {
        let at = at.to_zoned(arrival.zone.clone());
        format!(
            "Because of the quiet hours, it arrives on {}s at {}:00. ",
            weekday_name(at.weekday()),
            at.hour()
        )
    });
    let off = (!arrival.gets_notifications)
        .then_some("Notifications are off, so it only comes after you text NOTIFY ON. ");
    format!("{}{}", postponed.unwrap_or_default(), off.unwrap_or_default())
}

/// Formats the line of a newcomer who waits for an admin.
pub fn format_newcomer(name: &str) -> String {
    format!("{name} wants to join")
}

/// Formats the line of a person who wants to link an account.
pub fn format_account_link(name: &str) -> String {
    format!("{name} wants to link an account")
}

/// Formats the line of a request for the deletion of a title.
pub fn format_removal(name: &str, title: &str) -> String {
    format!("{name} wants to delete {title}")
}

/// Formats the line of a request for a title.
pub fn format_title_wish(name: &str, title: &str) -> String {
    format!("{name} asks for {title}")
}

/// Formats how a title that leaves is kept. `number` is its number in the list of the titles that leave.
pub fn format_keep(title: &str, number: i64) -> String {
    format!("Text KEEP {number} to keep {title}.")
}

/// Formats the state of an addition that waits.
pub fn format_waiting_addition(title: &str) -> String {
    format!("{title} is not added yet. I keep trying, and text you the outcome.")
}

/// Formats the state of a request for a deletion by the reader.
pub fn format_own_request(title: &str) -> String {
    format!("An admin decides whether {title} is deleted. I text you the outcome.")
}

#[cfg(test)]
mod tests {
    use jiff::civil::Weekday;

    use super::*;
    use crate::conversation::text::normalization::contains_phrase;

    fn arrival(zone: &TimeZone) -> DigestArrival<'_> {
        let schedule = DigestSchedule::new(Weekday::Friday, 18).unwrap();
        DigestArrival { schedule, postponed_to: None, is_room: false, zone, gets_notifications: true }
    }

    #[test]
    fn replies_state_when_the_digest_really_comes() {
        let zone = TimeZone::UTC;
        let usual = arrival(&zone);
        assert_eq!(
            format_set(&usual),
            "OK, you get a digest on Fridays at 18:00. Text DIGEST OFF to turn it off."
        );
        let morning = "2026-11-21T09:00:00Z".parse().ok();
        assert_eq!(
            format_set(&DigestArrival { postponed_to: morning, is_room: true, ..usual }),
            "OK, this group gets a digest on Fridays at 18:00. Because of the quiet hours, it arrives on Saturdays at \
             9:00. Text DIGEST OFF to turn it off."
        );
        assert_eq!(
            format_shown(&DigestArrival { gets_notifications: false, ..usual }),
            "Your digest comes on Fridays at 18:00. Notifications are off, so it only comes after you text NOTIFY ON. I \
             send what it would say now."
        );
    }

    #[test]
    fn fixed_texts_fit_one_segment_without_opt_out_keywords() {
        for text in [TURNED_OFF, NOT_SET, UNCLEAR, EMPTY, NO_SUCH_LINE, ALREADY_DECIDED, ADDITION_ENDED] {
            assert!(text.is_ascii() && text.len() <= 160, "{text}");
            for word in ["cancel", "stop", "end", "quit"] {
                assert!(!contains_phrase(text, word), "{text}");
            }
        }
    }
}
