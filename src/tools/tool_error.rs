//! Errors of tool runs.

use crate::conversation::transcript::CallFailure;

#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// Failure that is returned to the model as a result.
    #[error("tool failed: {}", .0.code)]
    CallFailed(CallFailure),
    /// Unknown outcome of a write, which must be determined before the write is reported as failed or successful.
    #[error("outcome unknown: {0}")]
    Unknown(String),
    #[error(transparent)]
    Fatal(#[from] anyhow::Error),
}
