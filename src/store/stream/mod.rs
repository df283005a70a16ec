//! The log of what happens in conversations. Triggers write most of it, in the commit of what it tells; the deltas of
//! responses are written here.

pub mod details;
pub mod forgetting;
pub mod reading;
pub mod snapshot;
pub mod texts;
pub mod watch;
pub mod writing;
