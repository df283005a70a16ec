//! Conversations with their history, message results, reactions and records.

pub mod conversations;
pub mod history;
pub mod history_cache;
pub mod message_results;
pub mod reactions;
pub mod record;
