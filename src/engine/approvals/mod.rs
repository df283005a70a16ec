//! Approvals that wait for an admin: joining users, removal requests, and their expiry.

pub mod expiry;
pub(super) mod removal_requests;
pub mod user_access;
