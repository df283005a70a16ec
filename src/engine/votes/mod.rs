//! Votes: their start in a room, answers to polls, and the announcement of results.

pub mod answers;
pub mod closing;
pub(super) mod opening;
