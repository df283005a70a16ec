//! Weekly time of a digest in the time zone of the household, and the decision whether a digest is due.

use std::fmt;

use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

use crate::conversation::notifications::quiet_hours::QuietHours;

/// Time after which a digest that was not sent is left out.
const MAX_DELAY: SignedDuration = SignedDuration::from_hours(12);
/// Minimum time between two due times of one schedule. It is shorter than a week, so that a change of the time zone
/// leads to no second digest within a week.
const MIN_INTERVAL: SignedDuration = SignedDuration::from_hours(4 * 24);
const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Day of the week and hour at which a digest is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestSchedule {
    weekday: Weekday,
    hour: i8,
}

impl DigestSchedule {
    pub fn new(weekday: Weekday, hour: i8) -> Option<Self> {
        (0..24).contains(&hour).then_some(Self { weekday, hour })
    }

    pub fn weekday(self) -> Weekday {
        self.weekday
    }

    pub fn hour(self) -> i8 {
        self.hour
    }

    /// Returns the words that set this schedule: `friday 18`.
    pub fn to_words(self) -> String {
        format!("{} {}", weekday_name(self.weekday).to_lowercase(), self.hour)
    }

    /// Returns the last due time up to `now`.
    pub fn last_due(self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        (0..=7).filter_map(|days| self.due_on_day(now, -days, zone)).find(|due| *due <= now)
    }

    /// Returns the first due time after `now`.
    pub fn next_due(self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        (0..=8).filter_map(|days| self.due_on_day(now, days, zone)).find(|due| *due > now)
    }

    /// Returns the due time on the day that is `days` after today, if that day is the day of the week.
    fn due_on_day(self, now: Timestamp, days: i64, zone: &TimeZone) -> Option<Timestamp> {
        let day = now.to_zoned(zone.clone()).date().checked_add(days.days()).ok()?;
        if day.weekday() != self.weekday {
            return None;
        }
        Some(day.at(self.hour, 0, 0, 0).to_zoned(zone.clone()).ok()?.timestamp())
    }
}

/// Formats the time as `Fridays at 18:00`.
impl fmt::Display for DigestSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s at {}:00", weekday_name(self.weekday), self.hour)
    }
}

/// Returns the English name of a day of the week.
pub fn weekday_name(weekday: Weekday) -> &'static str {
    match weekday {
        Weekday::Monday => "Monday",
        Weekday::Tuesday => "Tuesday",
        Weekday::Wednesday => "Wednesday",
        Weekday::Thursday => "Thursday",
        Weekday::Friday => "Friday",
        Weekday::Saturday => "Saturday",
        Weekday::Sunday => "Sunday",
    }
}

/// Returns the time at which a digest arrives that is due at `due`: at the end of the quiet hours, if it is due within
/// them.
pub fn arrival(due: Timestamp, quiet_hours: Option<QuietHours>, zone: &TimeZone) -> Timestamp {
    quiet_hours.and_then(|hours| hours.next_end(due, zone)).unwrap_or(due)
}

/// Schedule with the due times that it has covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestTimes {
    pub schedule: DigestSchedule,
    /// Time at which the schedule was set. Earlier due times do not count.
    pub set_at: Timestamp,
    /// Due time of the last digest that was sent or left out.
    pub last_due_at: Option<Timestamp>,
}

/// Whether a digest is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigestTiming {
    /// No digest is due before this time; `None` if the calendar has no such time.
    NotBefore(Option<Timestamp>),
    /// The digest of this due time is to be sent, in time or late.
    Due { due: Timestamp, arrival: Timestamp },
    /// The digest of this due time is too late to be sent.
    Missed(Timestamp),
}

impl DigestTimes {
    /// Decides whether a digest is due.
    pub fn check(&self, quiet_hours: Option<QuietHours>, zone: &TimeZone, now: Timestamp) -> DigestTiming {
        let arrival_of = |due| arrival(due, quiet_hours, zone);
        let Some(due) = self.schedule.last_due(now, zone).filter(|due| self.is_open(*due, now)) else {
            return DigestTiming::NotBefore(self.schedule.next_due(now, zone).map(arrival_of));
        };
        let arrival = arrival_of(due);
        if now < arrival {
            DigestTiming::NotBefore(Some(arrival))
        } else if now.duration_since(arrival) > MAX_DELAY {
            DigestTiming::Missed(due)
        } else {
            DigestTiming::Due { due, arrival }
        }
    }

    /// Returns whether no digest has covered a due time yet.
    fn is_open(&self, due: Timestamp, now: Timestamp) -> bool {
        // A due time far in the future was stored before the clock was set back.
        let last = self.last_due_at.filter(|last| last.duration_since(now) < WEEK);
        due > self.set_at && last.is_none_or(|last| due.duration_since(last) >= MIN_INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn berlin() -> TimeZone {
        TimeZone::get("Europe/Berlin").unwrap()
    }

    fn friday(hour: i8) -> DigestSchedule {
        DigestSchedule::new(Weekday::Friday, hour).unwrap()
    }

    /// Schedule of Friday at 18:00 in Berlin, set long ago.
    fn times(last_due_at: Option<&str>) -> DigestTimes {
        DigestTimes {
            schedule: friday(18),
            set_at: time("2026-01-01T00:00:00Z"),
            last_due_at: last_due_at.map(time),
        }
    }

    #[track_caller]
    fn check(last: Option<&str>, quiet: &str, now: &str, expected: DigestTiming) {
        let timing = times(last).check(QuietHours::parse(quiet), &berlin(), time(now));
        assert_eq!(timing, expected, "{now}");
    }

    fn due(due: &str, arrival: &str) -> DigestTiming {
        DigestTiming::Due { due: time(due), arrival: time(arrival) }
    }

    fn not_before(at: &str) -> DigestTiming {
        DigestTiming::NotBefore(Some(time(at)))
    }

    #[test]
    fn digest_is_due_at_its_hour_in_the_household_zone() {
        check(Some("2026-11-13T17:00:00Z"), "", "2026-11-20T16:59:59Z", not_before("2026-11-20T17:00:00Z"));
        let on_time = due("2026-11-20T17:00:00Z", "2026-11-20T17:00:00Z");
        check(Some("2026-11-13T17:00:00Z"), "", "2026-11-20T17:00:00Z", on_time);
        check(None, "", "2026-11-21T05:00:00Z", on_time);
        check(Some("2026-11-20T17:00:00Z"), "", "2026-11-20T17:00:01Z", not_before("2026-11-27T17:00:00Z"));
    }

    #[test]
    fn digest_that_is_more_than_twelve_hours_late_is_left_out() {
        check(None, "", "2026-11-21T05:00:01Z", DigestTiming::Missed(time("2026-11-20T17:00:00Z")));
        check(None, "", "2026-11-26T12:00:00Z", DigestTiming::Missed(time("2026-11-20T17:00:00Z")));
    }

    #[test]
    fn quiet_hours_postpone_a_digest_and_its_delay() {
        check(None, "17-9", "2026-11-20T17:00:00Z", not_before("2026-11-21T08:00:00Z"));
        let in_the_morning = due("2026-11-20T17:00:00Z", "2026-11-21T08:00:00Z");
        check(None, "17-9", "2026-11-21T08:00:00Z", in_the_morning);
        check(None, "17-9", "2026-11-21T20:00:00Z", in_the_morning);
        check(None, "17-9", "2026-11-21T20:00:01Z", DigestTiming::Missed(time("2026-11-20T17:00:00Z")));
    }

    #[test]
    fn digest_keeps_its_hour_across_daylight_saving() {
        let schedule = DigestSchedule::new(Weekday::Sunday, 2).unwrap();
        let next = |now: &str| schedule.next_due(time(now), &berlin()).unwrap().to_string();
        assert_eq!(next("2026-10-18T12:00:00Z"), "2026-10-25T00:00:00Z");
        assert_eq!(next("2026-10-25T00:00:00Z"), "2026-11-01T01:00:00Z");
        // The hour does not exist on this day.
        assert_eq!(next("2026-03-22T12:00:00Z"), "2026-03-29T01:00:00Z");
        assert_eq!(
            schedule.last_due(time("2026-03-29T00:59:59Z"), &berlin()),
            Some(time("2026-03-22T01:00:00Z"))
        );
    }

    #[test]
    fn due_times_from_before_the_setting_do_not_count() {
        let set = DigestTimes { set_at: time("2026-11-20T17:30:00Z"), ..times(None) };
        let timing = set.check(None, &berlin(), time("2026-11-20T17:31:00Z"));
        assert_eq!(timing, not_before("2026-11-27T17:00:00Z"));
    }

    #[test]
    fn change_of_the_zone_leads_to_no_second_digest_in_a_week() {
        let sent = times(Some("2026-11-20T17:00:00Z"));
        let new_york = TimeZone::get("America/New_York").unwrap();
        let timing = sent.check(None, &new_york, time("2026-11-20T23:00:00Z"));
        assert_eq!(timing, not_before("2026-11-27T23:00:00Z"));
    }

    #[test]
    fn due_time_from_before_the_clock_was_set_back_is_ignored() {
        check(
            Some("2027-11-19T17:00:00Z"),
            "",
            "2026-11-20T17:00:00Z",
            due("2026-11-20T17:00:00Z", "2026-11-20T17:00:00Z"),
        );
        check(Some("2026-11-20T17:00:00Z"), "", "2026-11-20T16:00:00Z", not_before("2026-11-20T17:00:00Z"));
        check(Some("2026-11-20T17:00:00Z"), "", "2026-11-20T17:00:00Z", not_before("2026-11-27T17:00:00Z"));
    }

    #[test]
    fn schedule_is_shown_and_stored_in_words() {
        assert_eq!(friday(18).to_string(), "Fridays at 18:00");
        assert_eq!(friday(8).to_words(), "friday 8");
        assert_eq!(DigestSchedule::new(Weekday::Friday, 24), None);
    }
}
