//! Admission of inbound messages, and scheduling of the work on them.

pub mod admission;
mod failed_work;
mod message_storage;
mod room_admission;
pub mod scheduler;
mod user_tasks;
mod verification;
