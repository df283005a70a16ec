//! Results of connection tests, as the pages show them.

use crate::doctor::connection_test::TestOutcome;
use crate::doctor::{Finding, FindingGrade};

/// Result of the tests that a form has started.
pub(super) struct TestReport {
    pub(super) lines: Vec<FindingLine>,
    pub(super) is_busy: bool,
}

pub(super) struct FindingLine {
    pub(super) grade: &'static str,
    pub(super) class: &'static str,
    pub(super) text: String,
    pub(super) hint: Option<String>,
}

impl TestReport {
    pub(super) fn from_outcome(outcome: TestOutcome) -> Self {
        match outcome {
            TestOutcome::Finished(findings) => {
                let lines = findings.into_iter().map(FindingLine::from_finding).collect();
                Self { lines, is_busy: false }
            }
            TestOutcome::Busy => Self { lines: Vec::new(), is_busy: true },
        }
    }

    pub(super) fn has_failure(&self) -> bool {
        self.lines.iter().any(|line| line.grade == FindingGrade::Failure.as_str())
    }
}

impl FindingLine {
    pub(super) fn from_finding(finding: Finding) -> Self {
        let class = match finding.grade {
            FindingGrade::Ok => "good",
            FindingGrade::Warning => "warn",
            FindingGrade::Failure => "bad",
        };
        Self { grade: finding.grade.as_str(), class, text: finding.summary, hint: finding.hint }
    }
}
