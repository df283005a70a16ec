//! Notifications about arr events: intake of reported events, reconciliation of missed ones, and fan-out to users.

pub mod arr_event_intake;
mod fanout;
pub mod notifier;
pub mod reconciler;
pub mod season_checker;
pub(crate) mod send_time;
