//! Retries of additions that were queued because their library was unreachable.

pub mod addition_retrier;
mod retry_outcomes;
