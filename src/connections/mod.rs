//! States of the connections, which Home and the alerts show: checked every minute, with the last 24 hours.

mod day_history;
pub mod monitor;
pub mod states;
