//! Confirmation prompts and approvals: pending actions, deletion items and codes.

pub mod approvals;
pub mod code_misses;
pub mod deletion_items;
pub mod ended_question;
pub mod pending_action;
pub mod pending_lookup;
