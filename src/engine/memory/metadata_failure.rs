//! Failures to extract the metadata of an answer, and the decision whether to continue with the next answer.

use crate::llm::ModelError;

/// Decision whether to continue with the next row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueFlow {
    Continue,
    /// Every other row would fail for the same reason.
    Stop,
}

/// Cause of an attempt that extracted no metadata.
pub(super) enum MetadataFailure {
    /// The day's budget is used up, so code extracts the metadata.
    BudgetSpent,
    /// The running calls have reserved the rest of the day's budget.
    BudgetReserved,
    /// The reply is malformed, or the server rejects this request.
    UnusableReply(String),
    /// The model does not respond to any request.
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

    /// Returns whether the failure counts toward the row's attempts, because a retry may fail for the same reason.
    pub(super) fn counts_as_attempt(&self) -> bool {
        match self {
            Self::BudgetSpent | Self::BudgetReserved => false,
            Self::ModelUnavailable(ModelError::RateLimited { .. } | ModelError::Unavailable(_)) => false,
            Self::UnusableReply(_) | Self::ModelUnavailable(_) => true,
        }
    }

    /// Returns whether a request for fewer rows may succeed.
    pub(super) fn may_depend_on_size(&self) -> bool {
        match self {
            Self::BudgetSpent | Self::UnusableReply(_) | Self::ModelUnavailable(ModelError::Timeout) => true,
            Self::BudgetReserved | Self::ModelUnavailable(_) => false,
        }
    }

    /// Returns whether to continue with the next row.
    pub(super) fn queue_flow(&self) -> QueueFlow {
        match self {
            Self::BudgetSpent | Self::UnusableReply(_) => QueueFlow::Continue,
            Self::BudgetReserved | Self::ModelUnavailable(_) => QueueFlow::Stop,
        }
    }
}
