//! Requests at a Seerr: their states, offers to the admins, and decisions that are passed on.

mod decisions;
mod offers;
pub mod request_watcher;
mod states;
