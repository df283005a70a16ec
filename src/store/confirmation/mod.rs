//! Pending actions and approvals, with the items of confirmed deletions and the count of wrong codes.

pub(in crate::store) mod approval_subjects;
pub mod approvals;
pub mod approved_call;
pub mod code_misses;
pub mod deletion_items;
pub mod ended_prompt;
pub mod pending_action;
pub mod pending_lookup;
mod prompt_message;
pub mod seerr_offers;
