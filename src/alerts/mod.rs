//! Alerts: messages to the operator outside SMS. They are found and sent every minute.

pub mod alerter;
mod detection;
