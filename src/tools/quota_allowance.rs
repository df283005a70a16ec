//! Quotas of a user, and what is left of them.

use jiff::Timestamp;

use crate::conversation::rate_limit::RateLimit;

/// Remaining quota of the user.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QuotaAllowance {
    pub movies: QuotaUsage,
    pub seasons: QuotaUsage,
    /// Contact for a higher quota: a name, or "an admin".
    pub contact: String,
}

/// Usage of one quota.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QuotaUsage {
    /// Limit of the quota. `None` if there is no limit.
    pub rate: Option<RateLimit>,
    /// Recent additions with their times, oldest first.
    pub additions: Vec<(Timestamp, u32)>,
}
