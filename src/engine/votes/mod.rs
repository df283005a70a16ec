//! Votes: their start in a room, and the announcement of results.

pub mod closing;
pub(super) mod opening;
