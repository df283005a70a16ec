//! Failures to extract the metadata of an answer, and the decision whether the next answer is worth a try.

use crate::llm::ModelError;

/// Decision whether the next row is worth a try.
pub(super) enum QueueFlow {
    Continue,
    /// The cause that stopped this row would stop every other row.
    Stop,
}

/// Cause of a try that extracted no metadata.
pub(super) enum MetadataFailure {
    /// The day's budget has no room for the call, so code extracts the metadata.
    BudgetSpent,
    /// The running calls may use up the budget.
    BudgetReserved,
    /// The reply is unusable, or the server refuses this request.
    UnusableReply(String),
    /// The model answers no request at the moment.
    ModelUnavailable(ModelError),
}

impl MetadataFailure {
    pub(super) fn from_error(error: ModelError) -> Self {
        match error {
            ModelError::ContextTooLong | ModelError::Rejected(_) => Self::UnusableReply(error.to_string()),
            ModelError::RateLimited { .. }
            | ModelError::Unavailable(_)
            | ModelError::Timeout
            | ModelError::Malformed(_)
            | ModelError::Unauthorized(_)
            | ModelError::QuotaSpent(_) => Self::ModelUnavailable(error),
        }
    }

    /// Returns whether another try of the same row may fail for the same reason. Such tries are counted.
    pub(super) fn counts_as_try(&self) -> bool {
        match self {
            Self::BudgetSpent | Self::BudgetReserved => false,
            Self::ModelUnavailable(ModelError::RateLimited { .. } | ModelError::Unavailable(_)) => false,
            Self::UnusableReply(_) | Self::ModelUnavailable(_) => true,
        }
    }

    /// Returns whether every other row would fail for the same reason.
    pub(super) fn queue_flow(&self) -> QueueFlow {
        match self {
            Self::BudgetSpent | Self::UnusableReply(_) => QueueFlow::Continue,
            Self::BudgetReserved | Self::ModelUnavailable(_) => QueueFlow::Stop,
        }
    }
}
