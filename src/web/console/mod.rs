//! Console: the operator's view and decisions in a browser. Each page has one file, with its template next to it.

mod answers;
pub(super) mod assets;
pub(super) mod audit;
mod audit_labels;
pub(super) mod changing;
mod chart;
pub(super) mod deliveries;
pub(super) mod facts;
mod fates;
mod frame;
pub(super) mod health;
pub(super) mod home;
pub(super) mod keys;
pub(super) mod memory;
mod said;
pub(super) mod sign_in;
pub(super) mod spend;
pub(super) mod talk;
mod trouble;
pub(super) mod user;
pub(super) mod users;
mod words;
