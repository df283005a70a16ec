//! Runs whose responses were lost, and their outcomes.

use super::ToolOutput;
use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::transcript::ToolArguments;

/// Run whose response was lost. Its outcome can be checked, but it cannot be run.
#[derive(Debug, Clone, Copy)]
pub enum InterruptedRun<'a> {
    Call(&'a ToolArguments),
    /// One item of a deletion.
    Item(&'a DeletionTarget),
}

/// Outcome of an interrupted write or deletion.
#[derive(Debug, Clone, PartialEq)]
pub enum RecoveryOutcome {
    Done(ToolOutput),
    /// The run had no effect, so that it can be repeated.
    NotDone,
    /// The outcome cannot be determined.
    Unknown,
}
