//! Event log of conversations, in memory. Store functions record events in their transaction, and the writer publishes
//! them after the commit.

pub mod details;
pub mod event_log;
pub mod event_numbers;
pub(in crate::store) mod recording;
pub mod response_blocks;
pub mod subscription;
