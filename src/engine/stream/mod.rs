//! Live events of conversations: written by the [`recorder`], followed by [`reader`]s. The log in the database is the
//! only source of events; wake-ups and events held in memory only save reading it.

mod event_buffer;
mod feed;
pub mod hub;
pub mod reader;
pub(super) mod recorder;
