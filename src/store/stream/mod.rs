//! Log of the events in conversations. Triggers write most of it, in the commit of the change that they record; the
//! deltas of responses are written here.

pub mod details;
pub mod forgetting;
pub mod reading;
pub mod snapshot;
pub mod texts;
pub mod watch;
pub mod writing;
