//! Newest state of each connection.

use jiff::{SignedDuration, Timestamp};

use super::day_history::DayHistory;
use crate::doctor::connection_test::ConnectionKind;
use crate::doctor::{Finding, FindingGrade};
use crate::live::Live;

/// Duration of a failure after which a connection counts as lost.
const LOST_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// Newest states of all connections, which the monitor replaces; empty before its first round.
pub type ConnectionStates = Live<Vec<ConnectionState>>;

/// State of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionState {
    pub(crate) kind: ConnectionKind,
    /// Finding of the last check. `None` if the connection is not configured.
    pub(crate) finding: Option<Finding>,
    pub(crate) history: DayHistory,
    /// Start of the failure, if the connection fails.
    pub(crate) failing_since: Option<Timestamp>,
    /// True if the connection has worked since the start, or in the 24 hours before it.
    pub(crate) has_worked: bool,
}

impl ConnectionState {
    /// Returns the failure of the last check.
    pub(crate) fn failure(&self) -> Option<&Finding> {
        self.finding.as_ref().filter(|finding| finding.grade == FindingGrade::Failure)
    }

    /// Returns the state in words, without the name of the connection. It is empty if nothing is configured.
    pub(crate) fn sentence(&self) -> String {
        let summary = self.finding.as_ref().map_or("", |finding| finding.summary.as_str());
        summary.split_once(": ").map_or(summary, |(_, state)| state).to_owned()
    }

    /// Returns whether the connection worked and then failed for minutes.
    pub(crate) fn is_lost(&self, now: Timestamp) -> bool {
        let is_long = self.failing_since.is_some_and(|since| now.duration_since(since) >= LOST_AFTER);
        is_long && self.has_worked
    }

    /// Returns whether the last check succeeded. A warning about the public address means that it was not reached.
    pub(crate) fn works(&self) -> bool {
        self.finding.as_ref().is_some_and(|finding| match finding.grade {
            FindingGrade::Ok => true,
            FindingGrade::Warning => self.kind != ConnectionKind::Webhook,
            FindingGrade::Failure => false,
        })
    }
}
