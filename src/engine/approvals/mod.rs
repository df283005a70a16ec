//! Approvals by admins and parents: access of users, removal requests of members, links of accounts, titles over the caps
//! of people, and their expiry.

pub(super) mod account_links;
pub mod expiry;
pub(super) mod removal_requests;
pub(super) mod requests;
pub(super) mod room_access;
pub(crate) mod seerr_requests;
pub(super) mod title_approvals;
pub mod user_access;
