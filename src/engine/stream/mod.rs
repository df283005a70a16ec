//! Live events of conversations, written by the [`recorder`] and followed by [`reader`]s. The log in the database is the
//! only source of events; wake-ups and buffered events only save reads of the log.

mod event_buffer;
mod feed;
pub mod hub;
pub mod reader;
pub(super) mod recorder;
