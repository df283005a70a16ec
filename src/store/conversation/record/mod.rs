//! Records of conversations: the one set of types for reading a conversation. The console, the API, the event stream,
//! the export and the engine build their own types from these records. docs/internals/CONVERSATION_RECORD.md shows how.

pub mod conversations;
pub mod delivery;
pub mod messages;
pub mod pages;
pub mod steps;
pub(in crate::store) mod turn_range;
pub mod turns;
