//! Stored record of conversations: the one set of types in which a conversation is read. The console, the API, the
//! event stream, the export and the engine build what they need from these records. docs/internals/CONVERSATION_RECORD.md
//! draws them.

pub mod conversations;
pub mod delivery;
pub mod messages;
pub mod pages;
pub mod steps;
pub(in crate::store) mod turn_range;
pub mod turns;
