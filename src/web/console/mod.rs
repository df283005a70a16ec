//! Console: the operator's view and decisions in a browser. Each page has one file, with its template next to it.

pub(super) mod assets;
pub(super) mod audit;
mod audit_labels;
mod chart;
pub(super) mod conversation;
pub(super) mod deliveries;
mod delivery_labels;
mod error_page;
pub(super) mod facts;
mod flash;
mod format;
pub(super) mod health;
pub(super) mod home;
pub(super) mod keys;
mod layout;
pub(super) mod memory;
mod responses;
pub(super) mod sign_in;
pub(super) mod spend;
pub(super) mod user;
pub(super) mod user_settings;
pub(super) mod users;
