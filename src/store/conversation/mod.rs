//! Conversations and their messages, as the engine reads them.

pub mod conversations;
pub mod history;
pub mod message_results;
pub mod reactions;
pub(in crate::store) mod turn_range;
