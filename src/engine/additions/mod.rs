//! Queued additions, which are retried until a library that was unreachable has made or refused them.

pub mod addition_retrier;
mod retry_outcomes;
