//! Approvals by admins: access of users, removal requests of members, and the expiry of both.

pub mod expiry;
pub(super) mod removal_requests;
pub(super) mod room_access;
pub mod user_access;
