//! Parsers for the instants, days and time spans of Sonarr and Radarr.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Parses an instant. Returns `None` for text that is not a date, and for the year 1, which stands for "no date".
pub(super) fn parse_instant(text: Option<&str>) -> Option<Timestamp> {
    // A malformed date is not an error, so that the caller can still use the rest of its record.
    let parsed = text?.parse::<Timestamp>();
    parsed.ok().filter(|at| at.to_zoned(TimeZone::UTC).year() > 1)
}

/// Parses the day of an instant, in UTC because releases are dated in UTC.
pub(super) fn parse_day(text: Option<&str>) -> Option<Date> {
    parse_instant(text).map(|at| at.to_zoned(TimeZone::UTC).date())
}

/// Parses a time span in .NET format: `[d.]hh:mm:ss[.fraction]`. The fraction is dropped.
pub(super) fn parse_time_span(text: &str) -> Option<Duration> {
    let mut parts = text.splitn(3, ':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let (days, hours) = hours.split_once('.').unwrap_or(("0", hours));
    let seconds = seconds.split_once('.').map_or(seconds, |(integer, _)| integer);
    let number = |text: &str| text.parse::<u32>().map(u64::from);
    match (number(days), number(hours), number(minutes), number(seconds)) {
        (Ok(days), Ok(hours), Ok(minutes), Ok(seconds)) => {
            Some(Duration::from_secs(((days * 24 + hours) * 60 + minutes) * 60 + seconds))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, seconds: Option<u64>) {
        assert_eq!(parse_time_span(text), seconds.map(Duration::from_secs));
    }

    #[test]
    fn time_span_may_have_days_and_a_fraction() {
        check("00:25:53", Some(1553));
        check("1.02:03:04", Some(93_784));
        check("00:00:01.1672224", Some(1));
        check("00:00:00", Some(0));
    }

    #[test]
    fn malformed_time_span_is_none() {
        check("", None);
        check("12:30", None);
        check("-00:00:01", None);
    }

    #[test]
    fn year_one_is_no_date() {
        assert_eq!(parse_instant(Some("0001-01-01T07:53:00Z")), None);
        assert_eq!(parse_instant(Some("soon")), None);
        assert_eq!(parse_day(Some("2026-12-18T00:00:00Z")), Some(jiff::civil::date(2026, 12, 18)));
    }
}
