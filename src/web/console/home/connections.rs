//! Strip of the connections: the state of each in one sentence, and its last 24 hours as a bar.

use askama::Template;

use crate::connections::states::ConnectionState;
use crate::doctor::FindingGrade;
use crate::web::console_state::ConsoleState;

#[derive(Template)]
#[template(path = "home_connections.html")]
pub(super) struct ConnectionsView {
    connections: Vec<ConnectionLine>,
}

struct ConnectionLine {
    label: &'static str,
    /// CSS class and text of the badge.
    badge: (&'static str, &'static str),
    sentence: String,
    bar: Vec<BarPart>,
    bar_description: String,
}

/// Quarter hours in a row with the same state.
struct BarPart {
    start: usize,
    length: usize,
    class: &'static str,
}

impl ConnectionsView {
    pub(super) fn build(console: &ConsoleState) -> Self {
        let now = console.clock.now();
        let line = |state: &ConnectionState| {
            let quarters = state.history.states_until(now);
            ConnectionLine {
                label: state.kind.label(),
                badge: badge(state),
                sentence: state.sentence(),
                bar: bar_parts(&quarters),
                bar_description: describe_bar(&quarters),
            }
        };
        Self { connections: console.connections.current().iter().map(line).collect() }
    }
}

fn badge(state: &ConnectionState) -> (&'static str, &'static str) {
    match state.finding.as_ref().map(|finding| finding.grade) {
        None => ("", "Not set up"),
        Some(FindingGrade::Ok) => ("good", "Works"),
        Some(FindingGrade::Warning) => ("warn", "Warning"),
        Some(FindingGrade::Failure) => ("bad", "Failure"),
    }
}

fn bar_parts(quarters: &[Option<FindingGrade>]) -> Vec<BarPart> {
    let mut parts = Vec::new();
    let mut start = 0;
    for run in quarters.chunk_by(|one, next| one == next) {
        let class = match run.first().copied().flatten() {
            None => "bar-none",
            Some(FindingGrade::Ok) => "bar-good",
            Some(FindingGrade::Warning) => "bar-warn",
            Some(FindingGrade::Failure) => "bar-bad",
        };
        parts.push(BarPart { start, length: run.len(), class });
        start += run.len();
    }
    parts
}

fn describe_bar(quarters: &[Option<FindingGrade>]) -> String {
    let checked = quarters.iter().flatten().count();
    let failed = quarters.iter().filter(|state| **state == Some(FindingGrade::Failure)).count();
    match (checked, failed) {
        (0, _) => "Last 24 hours: no checks".to_owned(),
        (_, 0) => "Last 24 hours: no failures".to_owned(),
        _ => format!("Last 24 hours: failures in {failed} of {checked} quarter hours"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_combines_equal_quarter_hours() {
        let (ok, failure) = (Some(FindingGrade::Ok), Some(FindingGrade::Failure));
        let quarters = [None, ok, ok, failure, ok];
        let parts = bar_parts(&quarters).into_iter().map(|part| (part.start, part.length, part.class));
        let expected = [(0, 1, "bar-none"), (1, 2, "bar-good"), (3, 1, "bar-bad"), (4, 1, "bar-good")];
        assert_eq!(parts.collect::<Vec<_>>(), expected);
        assert_eq!(describe_bar(&quarters), "Last 24 hours: failures in 1 of 4 quarter hours");
    }
}
