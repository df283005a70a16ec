//! Votes: their start by a tool, the people who take part, and the announcement of results.

pub mod closing;
pub(super) mod electorate;
pub(super) mod gathering;
pub(super) mod opening;
