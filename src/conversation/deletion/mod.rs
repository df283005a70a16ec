//! Deletions that need confirmation: their targets, their messages, and the proof that a yes has claimed them.

pub mod claimed_deletion;
pub mod deletion_messages;
pub mod target;
