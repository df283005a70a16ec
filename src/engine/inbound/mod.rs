//! Admission of inbound messages, and scheduling of the work on them.

pub mod admission;
mod failed_work;
pub mod scheduler;
mod user_tasks;
mod verification;
