//! Conversations and their messages, as loaded by the engine.

pub mod conversations;
pub mod history;
pub mod message_results;
pub mod reactions;
pub mod record;
