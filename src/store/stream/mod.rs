//! Event log of conversations. Database triggers write most events, in the transaction of the change; this module
//! writes the events of streamed responses.

pub mod delta_writer;
pub mod details;
pub mod event_reader;
pub mod pruning;
pub mod subscriptions;
