//! Actual times of events in a schedule in which the wall clock was set forward and back.

use serde_json::Value;

use crate::records::{Records, number, word};

/// Longest time between the adoption of a step by the program and its record here.
const NOTED_WITHIN_MS: i64 = 200;
/// Columns whose times the checker compares.
const COLUMNS: [&str; 7] =
    ["created_at", "finished_at", "accepted_at", "received_at", "provider_at", "settled_at", "started_at"];
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Result of tracing every stored time back to one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    Known,
    /// The clock showed some of the times more than once.
    Ambiguous,
}

/// Offset of the program's clock and the moment from which that offset applies; in milliseconds.
#[derive(Debug, Clone)]
pub(crate) struct Timeline(Vec<(i64, i64)>);

impl Timeline {
    pub(crate) fn new(start: i64) -> Self {
        Self(vec![(start, 0)])
    }

    pub(crate) fn note(&mut self, moment: i64, ahead: i64) {
        if self.0.last().is_none_or(|(_, last)| *last != ahead) {
            self.0.push((moment, ahead));
        }
    }

    pub(crate) fn steps(&self) -> usize {
        self.0.len() - 1
    }

    /// Returns the moment at which the clock showed `wall`; `None` if there were several.
    fn moment(&self, wall: i64) -> Option<i64> {
        let last = self.0.last().map_or(0, |(from, _)| from + DAY_MS);
        let ends = self.0.iter().skip(1).map(|(from, _)| from + NOTED_WITHIN_MS).chain([last]);
        let shown = self.0.iter().zip(ends).filter_map(|((from, ahead), end)| {
            let moment = wall - ahead;
            (from - NOTED_WITHIN_MS..=end).contains(&moment).then_some(moment)
        });
        // Waiting work was shifted along with the clock, to before the step.
        let first = self.0.first().map_or(0, |(from, _)| from - DAY_MS / 24);
        let moved = self.0.iter().map(|(_, ahead)| wall - ahead).filter(|at| (first..=last).contains(at));
        only(shown.collect()).or_else(|| only(moved.collect()))
    }

    /// Replaces stored times by the moments at which they were stored.
    pub(crate) fn translate(&self, records: &mut Records) -> Times {
        if self.steps() == 0 {
            return Times::Known;
        }
        let mut times = Times::Known;
        for row in records.tables().into_iter().flatten() {
            for column in COLUMNS {
                let wall = number(row, column);
                // A confirmation prompt that was closed early ends when it would have ended.
                if wall == 0 || (column == "finished_at" && word(row, "state") == "canceled") {
                    continue;
                }
                match self.moment(wall) {
                    Some(moment) => row[column] = Value::from(moment),
                    None => times = Times::Ambiguous,
                }
            }
            if row["expires_at"].is_i64() {
                row["expires_at"] = Value::from(number(row, "created_at") + DAY_MS);
            }
        }
        times
    }
}

fn only(mut moments: Vec<i64>) -> Option<i64> {
    moments.dedup();
    if let [moment] = moments[..] { Some(moment) } else { None }
}
