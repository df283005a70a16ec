//! Log of the events in conversations. Triggers write most of it, in the commit of the change that they record; the
//! deltas of responses are written here.

pub mod delta_writer;
pub mod details;
pub mod event_reader;
pub mod pruning;
pub mod subscriptions;
