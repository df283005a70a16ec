//! Quotas of a user, and what is left of them.

use jiff::Timestamp;

use crate::conversation::rate_limit::RateLimit;
use crate::conversation::transcript::FailureCode;

/// Remaining quota of the user.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QuotaAllowance {
    pub movies: QuotaUsage,
    pub seasons: QuotaUsage,
    /// Gigabytes that the titles of the user may hold. `None` if there is no limit.
    pub space_limit_gb: Option<u32>,
    /// Space that the titles of the user hold, measured for a call that may add something.
    pub held_space: HeldSpace,
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

/// Space that the titles of a user hold in the library.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum HeldSpace {
    #[default]
    NotMeasured,
    Bytes(u64),
    /// A library did not answer, for this reason.
    Unknown(FailureCode),
}
