//! States of one connection in the last 24 hours, by quarter hours.

use jiff::Timestamp;

use crate::doctor::FindingGrade;

/// Number of quarter hours in a day.
pub(crate) const DAY_QUARTERS: usize = 96;
const QUARTER_SECONDS: i64 = 15 * 60;

/// Worst state of a connection in each quarter hour of the last 24 hours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DayHistory {
    /// Number of the newest quarter hour.
    last_quarter: i64,
    /// Worst state in each quarter hour up to the newest; `None` without a check in it.
    states: Vec<Option<FindingGrade>>,
}

/// Returns the number of the quarter hour, counted since 1970.
pub(crate) fn quarter_number(at: Timestamp) -> i64 {
    at.as_second().div_euclid(QUARTER_SECONDS)
}

impl DayHistory {
    pub(crate) fn from_stored(last_quarter: i64, states: &str) -> Self {
        let parse_state = |character| match character {
            'o' => Some(FindingGrade::Ok),
            'w' => Some(FindingGrade::Warning),
            'f' => Some(FindingGrade::Failure),
            _ => None,
        };
        Self { last_quarter, states: states.chars().map(parse_state).collect() }
    }

    /// Returns the stored form: the newest quarter hour, and a character for each state.
    pub(crate) fn to_stored(&self) -> (i64, String) {
        let format_state = |state: &Option<FindingGrade>| match state {
            None => '-',
            Some(FindingGrade::Ok) => 'o',
            Some(FindingGrade::Warning) => 'w',
            Some(FindingGrade::Failure) => 'f',
        };
        (self.last_quarter, self.states.iter().map(format_state).collect())
    }

    /// Adds the state of a check. After the clock was set back, the history begins again.
    pub(crate) fn add_state(&mut self, grade: FindingGrade, now: Timestamp) {
        let quarter = quarter_number(now);
        if quarter < self.last_quarter {
            self.states.clear();
        }
        self.states = self.states_until(now);
        self.last_quarter = quarter;
        if let Some(newest) = self.states.last_mut() {
            *newest = (*newest).max(Some(grade));
        }
    }

    /// Returns the states of the 96 quarter hours that end with the one of `now`.
    pub(crate) fn states_until(&self, now: Timestamp) -> Vec<Option<FindingGrade>> {
        let first = quarter_number(now) - DAY_QUARTERS as i64 + 1;
        let oldest = self.last_quarter - self.states.len() as i64 + 1;
        let state_at = |quarter: i64| {
            let index = usize::try_from(quarter - oldest).ok()?;
            self.states.get(index).copied().flatten()
        };
        (first..first + DAY_QUARTERS as i64).map(state_at).collect()
    }

    /// Returns whether the connection worked in the 24 hours before `now`.
    pub(crate) fn has_worked(&self, now: Timestamp) -> bool {
        self.states_until(now).contains(&Some(FindingGrade::Ok))
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn after(minutes: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(480_000) + SignedDuration::from_mins(minutes)
    }

    /// Returns the stored states without the quarter hours before the first check.
    fn stored(history: &DayHistory) -> String {
        history.to_stored().1.trim_start_matches('-').to_owned()
    }

    #[test]
    fn quarter_hour_keeps_its_worst_state() {
        let mut history = DayHistory::default();
        for (minute, grade) in [
            (0, FindingGrade::Ok),
            (1, FindingGrade::Failure),
            (14, FindingGrade::Ok),
            (15, FindingGrade::Ok),
            (50, FindingGrade::Warning),
        ] {
            history.add_state(grade, after(minute));
        }
        assert_eq!(stored(&history), "fo-w");
        let (last_quarter, states) = history.to_stored();
        assert_eq!(DayHistory::from_stored(last_quarter, &states), history);
    }

    #[test]
    fn states_of_yesterday_are_forgotten() {
        let mut history = DayHistory::default();
        history.add_state(FindingGrade::Ok, after(0));
        history.add_state(FindingGrade::Failure, after(15));
        assert!(history.has_worked(after(24 * 60 - 1)));
        assert!(!history.has_worked(after(24 * 60)));
        history.add_state(FindingGrade::Failure, after(24 * 60));
        assert_eq!(history.to_stored().1.len(), DAY_QUARTERS);
        assert_eq!(stored(&history).trim_matches('-').len(), DAY_QUARTERS);
    }

    #[test]
    fn clock_that_is_set_back_begins_a_history() {
        let mut history = DayHistory::default();
        history.add_state(FindingGrade::Failure, after(300));
        history.add_state(FindingGrade::Ok, after(0));
        assert_eq!(stored(&history), "o");
    }
}
