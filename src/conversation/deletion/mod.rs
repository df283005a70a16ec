//! Confirmed deletions: their targets, the call that a yes has claimed, and their messages.

pub mod claimed_deletion;
pub mod deletion_messages;
pub mod target;
