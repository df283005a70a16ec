//! Quiet hours, during which no notifications are sent, and the commands for notification preferences.

use std::fmt;

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// Range of hours of the day without notifications. The end hour is exclusive, and the range may extend past midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    start: i8,
    end: i8,
}

impl QuietHours {
    /// Empty range: no quiet hours, even if the household has some.
    pub const NEVER: Self = Self { start: 0, end: 0 };

    pub fn new(start: i8, end: i8) -> Option<Self> {
        let is_hour = |hour| (0..24).contains(&hour);
        (is_hour(start) && is_hour(end)).then_some(Self { start, end })
    }

    /// Parses `22-7`, `22:00 to 7:00` and `10pm-7am`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.to_lowercase().replace('\u{2013}', "-");
        let (start, end) = text.split_once('-').or_else(|| text.split_once(" to "))?;
        Self::new(parse_hour(start)?, parse_hour(end)?)
            .filter(|quiet| *quiet != Self::NEVER && quiet.start != quiet.end)
    }

    pub fn start_hour(self) -> i8 {
        self.start
    }

    pub fn end_hour(self) -> i8 {
        self.end
    }

    /// Returns the end of the quiet hours if `now` is within them.
    pub fn next_end(self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let local_time = now.to_zoned(zone.clone());
        let hour = local_time.hour();
        let (is_quiet, ends_tomorrow) = if self.start <= self.end {
            ((self.start..self.end).contains(&hour), false)
        } else {
            (hour >= self.start || hour < self.end, hour >= self.start)
        };
        let day =
            if ends_tomorrow { local_time.date().checked_add(1.day()).ok()? } else { local_time.date() };
        let end = day.at(self.end, 0, 0, 0).to_zoned(zone.clone()).ok()?.timestamp();
        is_quiet.then_some(end).filter(|end| *end > now)
    }
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:00 to {}:00", self.start, self.end)
    }
}

fn parse_hour(text: &str) -> Option<i8> {
    let text = text.trim();
    let (number, half_day_start) = match (text.strip_suffix("am"), text.strip_suffix("pm")) {
        (Some(number), _) => (number, Some(0)),
        (None, Some(number)) => (number, Some(12)),
        (None, None) => (text, None),
    };
    let number: i8 = number.trim().trim_end_matches(":00").parse().ok()?;
    match half_day_start {
        None => Some(number),
        Some(start) => (1..=12).contains(&number).then_some(number % 12 + start),
    }
}

/// Preference of a user for notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationPreference {
    On,
    Off,
    Quiet(QuietHours),
    /// Notifications at any hour, regardless of the quiet hours of the household.
    NeverQuiet,
}

/// Parses a whole message such as `notify off` or `quiet 22-7`.
pub fn parse_preference(text: &str) -> Option<NotificationPreference> {
    let text = text.trim().trim_end_matches(['.', '!']).to_lowercase();
    let (keyword, rest) = text.split_once(char::is_whitespace)?;
    let rest = rest.trim();
    match (keyword, rest) {
        ("notify" | "notices" | "notifications", "on") => Some(NotificationPreference::On),
        ("notify" | "notices" | "notifications", "off") => Some(NotificationPreference::Off),
        ("quiet", "off" | "hours off") => Some(NotificationPreference::NeverQuiet),
        ("quiet", hours) => {
            let hours = hours.strip_prefix("hours ").unwrap_or(hours);
            QuietHours::parse(hours.strip_prefix("from ").unwrap_or(hours)).map(NotificationPreference::Quiet)
        }
        _ => None,
    }
}

/// Formats the reply to a changed preference.
pub fn format_preference_saved(preference: NotificationPreference) -> String {
    match preference {
        NotificationPreference::On => "OK, I'll text you when something is ready.".to_owned(),
        NotificationPreference::Off => {
            "OK, no more notifications. I still answer your texts. Text NOTIFY ON to get them again."
                .to_owned()
        }
        NotificationPreference::Quiet(hours) => {
            format!(
                "OK, no notifications from {hours}. I send them afterward. Text QUIET OFF to change that."
            )
        }
        NotificationPreference::NeverQuiet => "OK, you get notifications at any hour.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(quiet: &str, now: &str, expected: Option<&str>) {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let end = QuietHours::parse(quiet).unwrap().next_end(now.parse().unwrap(), &berlin);
        assert_eq!(end, expected.map(|time| time.parse().unwrap()));
    }

    #[test]
    fn quiet_hours_cross_midnight_in_the_household_zone() {
        check("22-7", "2026-11-20T20:59:00Z", None);
        check("22-7", "2026-11-20T21:00:00Z", Some("2026-11-21T06:00:00Z"));
        check("22-7", "2026-11-21T05:59:59Z", Some("2026-11-21T06:00:00Z"));
        check("22-7", "2026-11-21T06:00:00Z", None);
        check("13-15", "2026-11-20T12:30:00Z", Some("2026-11-20T14:00:00Z"));
        check("13-15", "2026-11-20T14:00:00Z", None);
    }

    #[test]
    fn quiet_hours_end_at_the_same_hour_across_daylight_saving() {
        check("22-7", "2026-10-24T21:00:00Z", Some("2026-10-25T06:00:00Z"));
        check("22-7", "2026-03-28T22:00:00Z", Some("2026-03-29T05:00:00Z"));
    }

    #[test]
    fn quiet_hours_are_parsed_in_common_spellings() {
        let quiet = QuietHours::new(22, 7);
        for text in ["22-7", "22 - 7", "22:00-7:00", "10pm-7am", "22 to 7", "10 PM to 7 AM"] {
            assert_eq!(QuietHours::parse(text), quiet, "{text}");
        }
        assert_eq!(QuietHours::parse("12am-12pm"), QuietHours::new(0, 12));
        for text in ["", "22", "22-24", "7-7", "0-0", "13pm-7am", "late-early", "-1-7"] {
            assert_eq!(QuietHours::parse(text), None, "{text}");
        }
    }

    #[test]
    fn never_quiet_has_no_end() {
        let midnight = "2026-11-20T00:00:00Z".parse().unwrap();
        assert_eq!(QuietHours::NEVER.next_end(midnight, &TimeZone::UTC), None);
    }

    #[test]
    fn notification_preference_is_a_whole_message() {
        assert_eq!(parse_preference("Notify off."), Some(NotificationPreference::Off));
        assert_eq!(parse_preference("notices on"), Some(NotificationPreference::On));
        assert_eq!(parse_preference("QUIET 22-7"), QuietHours::new(22, 7).map(NotificationPreference::Quiet));
        assert_eq!(
            parse_preference("quiet hours from 22 to 7"),
            QuietHours::new(22, 7).map(NotificationPreference::Quiet)
        );
        assert_eq!(parse_preference("quiet off"), Some(NotificationPreference::NeverQuiet));
        for text in ["quiet", "quiet place", "a quiet place 2-3", "notify me", "add quiet 22-7"] {
            assert_eq!(parse_preference(text), None, "{text}");
        }
    }
}
