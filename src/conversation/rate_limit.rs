//! Rate limits with a sliding window, such as "10 messages within 7 days".

use jiff::{SignedDuration, Timestamp};

use super::grammar::confirmation_reply::{self, ConfirmationReply, ReplyLanguage};
use super::grammar::keyword_grammar::{self, TextCommand};
use super::transcript::OptKeyword;

/// Rate limit toward which a message counts. Messages that protect the user have a separate limit, which other messages
/// cannot use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextAllowance {
    Ordinary,
    /// A no, an opt-out keyword, or a command about stored data. The limit has the same size, so that our replies to
    /// these messages are limited too.
    Protected,
}

impl TextAllowance {
    pub const ALL: [Self; 2] = [Self::Ordinary, Self::Protected];

    pub fn from_text(text: &str, languages: &[ReplyLanguage]) -> Self {
        let is_privacy_command = matches!(
            keyword_grammar::parse_command(text),
            Some(TextCommand::ForgetAll | TextCommand::ListFacts | TextCommand::ForgetFact(_))
        );
        let opts_out = keyword_grammar::parse_opt_keyword(text) == Some(OptKeyword::Out);
        match confirmation_reply::parse_confirmation_reply(text, None, languages) {
            ConfirmationReply::No => Self::Protected,
            ConfirmationReply::Yes | ConfirmationReply::UnclearYes(_) | ConfirmationReply::Unrelated
                if is_privacy_command || opts_out =>
            {
                Self::Protected
            }
            ConfirmationReply::Yes | ConfirmationReply::UnclearYes(_) | ConfirmationReply::Unrelated => {
                Self::Ordinary
            }
        }
    }
}

/// Maximum number of events within any period of a given length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    pub max: u32,
    pub period: SignedDuration,
}

impl RateLimit {
    /// Parses `10/7d`: the maximum, then a number of minutes (`m`), hours (`h`) or days (`d`), which may be omitted if
    /// it is 1.
    pub fn parse(text: &str) -> Option<Self> {
        let (max, period) = text.split_once('/')?;
        let max = max.trim().parse().ok().filter(|max| (1..=1_000_000).contains(max))?;
        let period = period.trim();
        let unit = period.chars().last()?;
        let count = &period[..period.len() - unit.len_utf8()];
        let count: i64 = if count.is_empty() { 1 } else { count.parse().ok()? };
        let minutes = match unit {
            'm' => 1,
            'h' => 60,
            'd' => 24 * 60,
            _ => return None,
        };
        let minutes = count.checked_mul(minutes).filter(|minutes| (1..=527_040).contains(minutes))?;
        Some(Self { max, period: SignedDuration::from_mins(minutes) })
    }

    /// Formats the limit for users: `1 movie within a day`, `15 movies within 7 days`.
    pub fn format_limit(&self, noun: &str) -> String {
        let plural = if self.max == 1 { "" } else { "s" };
        format!("{} {noun}{plural} within {}", self.max, self.format_period())
    }

    /// Formats the period: `a minute`, `3 hours`, `7 days`.
    fn format_period(&self) -> String {
        let minutes = self.period.as_mins();
        let (count, unit) = match minutes {
            _ if minutes % (24 * 60) == 0 => (minutes / (24 * 60), "day"),
            _ if minutes % 60 == 0 => (minutes / 60, "hour"),
            _ => (minutes, "minute"),
        };
        let article = if unit == "hour" { "an" } else { "a" };
        if count == 1 { format!("{article} {unit}") } else { format!("{count} {unit}s") }
    }

    /// Returns for each message, in order, whether it exceeds the limit, given the times of the messages counted
    /// before.
    pub fn mark_excess(&self, mut counted: Vec<Timestamp>, messages: &[Timestamp]) -> Vec<bool> {
        let max = usize::try_from(self.max).unwrap_or(usize::MAX);
        let is_excess = |time: &Timestamp| {
            // A time further in the future dates from before the clock was set back.
            let is_within_period = |other: &&Timestamp| other.duration_since(*time).abs() < self.period;
            let is_excess = counted.iter().filter(is_within_period).count() >= max;
            if !is_excess {
                counted.push(*time);
            }
            is_excess
        };
        messages.iter().map(is_excess).collect()
    }

    /// Returns when the limit has capacity for `amount`, given the counted amounts with their times, oldest first.
    pub fn capacity_at(&self, counted: &[(Timestamp, u32)], amount: u32, now: Timestamp) -> RateCapacity {
        if amount > self.max {
            return RateCapacity::Never;
        }
        let mut excess = self.used_at(counted, now).saturating_add(amount).saturating_sub(self.max);
        if excess == 0 {
            return RateCapacity::Available;
        }
        for (time, amount) in self.recent_amounts(counted, now) {
            excess = excess.saturating_sub(amount);
            if excess == 0 {
                return RateCapacity::AvailableAt(time + self.period);
            }
        }
        RateCapacity::Never
    }

    /// Returns the amount for which the limit has capacity now.
    pub fn remaining_at(&self, counted: &[(Timestamp, u32)], now: Timestamp) -> u32 {
        self.max.saturating_sub(self.used_at(counted, now))
    }

    fn used_at(&self, counted: &[(Timestamp, u32)], now: Timestamp) -> u32 {
        self.recent_amounts(counted, now).fold(0, |sum, (_, amount)| sum.saturating_add(amount))
    }

    /// Returns the counted amounts within the period before `now`.
    fn recent_amounts(
        &self,
        counted: &[(Timestamp, u32)],
        now: Timestamp,
    ) -> impl Iterator<Item = (Timestamp, u32)> {
        let period_start = now - self.period;
        // A time in the future dates from before the clock was set back, and its real age is unknown.
        counted.iter().copied().filter(move |(time, _)| *time > period_start && *time <= now)
    }
}

/// Time at which a rate limit has capacity for an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateCapacity {
    Available,
    /// Earliest time with capacity.
    AvailableAt(Timestamp),
    /// The amount exceeds the whole limit.
    Never,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(n: i64) -> Timestamp {
        Timestamp::from_second(60 * n).unwrap()
    }

    #[test]
    fn rate_limit_is_a_number_and_a_period() {
        for (text, max, minutes, formatted) in [
            ("10/7d", 10, 7 * 24 * 60, "10 texts within 7 days"),
            ("10/1m", 10, 1, "10 texts within a minute"),
            ("3/h", 3, 60, "3 texts within an hour"),
            ("1/d", 1, 24 * 60, "1 text within a day"),
            (" 5 / 90m ", 5, 90, "5 texts within 90 minutes"),
        ] {
            let rate = RateLimit::parse(text).unwrap();
            assert_eq!((rate.max, rate.period), (max, SignedDuration::from_mins(minutes)), "{text}");
            assert_eq!(rate.format_limit("text"), formatted);
        }
        for text in ["", "10", "0/d", "-1/d", "10/", "10/0d", "10/7w", "ten/7d", "10/7ü", "9/99999d"] {
            assert_eq!(RateLimit::parse(text), None, "{text}");
        }
    }

    #[test]
    fn excess_messages_do_not_count_against_later_ones() {
        let rate = RateLimit { max: 2, period: SignedDuration::from_mins(10) };
        let messages = [minute(5), minute(6), minute(9), minute(11), minute(16)];
        assert_eq!(rate.mark_excess(vec![minute(0)], &messages), [false, true, true, false, false]);
    }

    #[test]
    fn future_times_after_a_clock_step_do_not_count() {
        let rate = RateLimit { max: 1, period: SignedDuration::from_mins(10) };
        assert_eq!(rate.mark_excess(vec![minute(120)], &[minute(60), minute(61)]), [false, true]);
        assert_eq!(
            rate.mark_excess(vec![minute(65)], &[minute(60)]),
            [true],
            "messages can arrive out of order"
        );
        assert_eq!(rate.capacity_at(&[(minute(120), 1)], 1, minute(60)), RateCapacity::Available);
    }

    #[test]
    fn capacity_returns_when_enough_counted_amounts_are_old() {
        let rate = RateLimit { max: 3, period: SignedDuration::from_mins(10) };
        let counted = [(minute(0), 1), (minute(4), 2)];
        assert_eq!(rate.capacity_at(&counted, 0, minute(5)), RateCapacity::Available);
        assert_eq!(rate.capacity_at(&counted, 1, minute(5)), RateCapacity::AvailableAt(minute(10)));
        assert_eq!(rate.capacity_at(&counted, 2, minute(5)), RateCapacity::AvailableAt(minute(14)));
        assert_eq!(rate.capacity_at(&counted, 1, minute(10)), RateCapacity::Available);
        assert_eq!(rate.capacity_at(&counted, 4, minute(60)), RateCapacity::Never);
    }
}
