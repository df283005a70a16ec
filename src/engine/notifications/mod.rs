//! Notifications about arr events: their intake, the import of events that were not reported, and the messages.

pub mod arr_event_intake;
mod fanout;
pub mod notifier;
pub mod reconciler;
pub mod season_checker;
pub(crate) mod send_time;
